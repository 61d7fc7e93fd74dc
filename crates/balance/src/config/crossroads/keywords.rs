//! Keywords and where they are allowed.

/// The kind of block that a statement is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Service,
    Backend,
}

impl Scope {
    pub fn keywords(self) -> impl Iterator<Item = &'static str> {
        let words = match self {
            Scope::Service => SERVICE,
            Scope::Backend => BACKEND,
        };
        words.split(' ')
    }

    pub fn knows(self, word: &str) -> bool {
        self.keywords().any(|keyword| keyword == word)
    }

    /// Its name in messages.
    pub fn noun(self) -> &'static str {
        match self {
            Scope::Service => "a service",
            Scope::Backend => "a back end",
        }
    }
}

const SERVICE: &str = "\
    port type headerinspection bindto verbosity dispatchmode revivinginterval checkinterval \
    maxconnections backlog shmkey allowfrom denyfrom allowfile denyfile trustedproxies \
    useraccount";

const BACKEND: &str = "\
    server port verbosity retries maxconnections weight decay onstart onend onfail trafficlog \
    throughputlog stickycookie addclientheader appendclientheader setclientheader \
    addserverheader appendserverheader setserverheader sessiontimeout";

/// Whether a word begins a statement or block anywhere.
pub(super) fn is_keyword(word: &str) -> bool {
    matches!(word, "service" | "backend")
        || Scope::Service.knows(word)
        || Scope::Backend.knows(word)
}

pub(super) fn repeats(keyword: &str) -> bool {
    matches!(keyword, "allowfrom" | "denyfrom" | "trustedproxies") || keyword.ends_with("header")
}
