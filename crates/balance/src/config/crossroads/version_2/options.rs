//! The options of `xr`.

/// What an option becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Becomes {
    /// `TYPE:ADDRESS:PORT`
    Server,
    /// `ADDRESS:PORT[:MAX[:WEIGHT]]`
    Backend,
    Dispatch,
    /// Masks, in which 255 stands for any number.
    Allow,
    Deny,
    /// A number that is the value of this key.
    Number(&'static str),
    /// Seconds, the first of two.
    Seconds(&'static str),
    /// `NAME: VALUE`
    Header,
    ForwardedFor,
    Sticky,
    /// Nothing, as it is not needed.
    Nothing,
    /// Nothing: it has no equivalent, or one that differs.
    Different(&'static str),
}

pub(super) struct XrOption {
    long: &'static str,
    short: char,
    pub takes_value: bool,
    pub becomes: Becomes,
}

const fn with_value(long: &'static str, short: char, becomes: Becomes) -> XrOption {
    XrOption {
        long,
        short,
        takes_value: true,
        becomes,
    }
}

const fn alone(long: &'static str, short: char, becomes: Becomes) -> XrOption {
    XrOption {
        long,
        short,
        takes_value: false,
        becomes,
    }
}

/// Stands for no short form.
const NONE: char = '\0';
const STATUS: &str = "`weigh balance` has a control socket and a Prometheus page";

pub(super) const OPTIONS: [XrOption; 24] = [
    with_value("server", 's', Becomes::Server),
    with_value("backend", 'b', Becomes::Backend),
    with_value("dispatch-mode", 'd', Becomes::Dispatch),
    with_value("allow-from", 'a', Becomes::Allow),
    with_value("deny-from", 'A', Becomes::Deny),
    with_value("max-connections", 'M', Becomes::Number("connections_max")),
    with_value("checkup-interval", 'c', Becomes::Seconds("check_interval")),
    with_value(
        "wakeup-interval",
        'w',
        Becomes::Seconds("reviving_interval"),
    ),
    with_value(
        "backend-timeout",
        't',
        Becomes::Seconds("timeouts.upstream_answer"),
    ),
    with_value(
        "client-timeout",
        'T',
        Becomes::Seconds("timeouts.client_idle"),
    ),
    with_value("add-server-header", 'H', Becomes::Header),
    alone("add-x-forwarded-for", 'x', Becomes::ForwardedFor),
    alone("sticky-http", 'S', Becomes::Sticky),
    with_value(
        "backend-check",
        'g',
        Becomes::Different("see the key `check`"),
    ),
    with_value(
        "host-match",
        'm',
        Becomes::Different("give each host a service with an address of its own"),
    ),
    with_value("web-interface", 'W', Becomes::Different(STATUS)),
    with_value("web-interface-auth", NONE, Becomes::Different(STATUS)),
    alone(
        "add-xr-version",
        'X',
        Becomes::Different("see the key `headers`"),
    ),
    with_value("pidfile", 'p', Becomes::Nothing),
    with_value("buffer-size", 'B', Becomes::Nothing),
    alone("foreground", 'f', Becomes::Nothing),
    alone("verbose", 'v', Becomes::Nothing),
    alone("debug", 'D', Becomes::Nothing),
    alone("prefix-timestamp", 'P', Becomes::Nothing),
];

/// The modes, with their short forms.
pub(super) const MODES: [(&str, &str, &str); 5] = [
    ("least-connections", "l", "by-connections"),
    ("round-robin", "r", "round-robin"),
    ("first-available", "f", "by-order"),
    ("strict-hashed-ip", "h", "by-client-ip"),
    ("lax-hashed-ip", "H", "by-client-ip"),
];

impl XrOption {
    /// Whether a word such as `--server` or `-s` is this option.
    pub fn is_called(&self, name: &str) -> bool {
        match name.strip_prefix("--") {
            Some(long) => long == self.long,
            None => {
                let mut letters = name.strip_prefix('-').unwrap_or_default().chars();
                letters.next() == Some(self.short) && letters.next().is_none()
            }
        }
    }
}
