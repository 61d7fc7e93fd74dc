//! Requests that differ from one to the next, or have the times of a log.

use std::sync::Arc;

use readings::TrafficKind;
use readings::requests::{Feed, RequestSet, RequestSpec, Template, Users};
use requests::placeholder::{Names, Part, has_places, parse};

use super::load::LoadSpec;

/// A file of requests that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFile {
    /// Its path, from the root.
    pub path: String,
    pub set: Arc<RequestSet>,
}

/// A log that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayFile {
    /// Its path, from the root.
    pub path: String,
    /// How many times as fast as the log it is replayed.
    pub speed: f64,
    /// The times in it at which the replay begins and ends, as they were written.
    pub from: Option<String>,
    pub to: Option<String>,
    /// Methods that are replayed besides GET and HEAD.
    pub methods: Vec<String>,
    /// Its requests, with their times.
    pub set: Arc<RequestSet>,
}

/// Feeds that were read, and the path of each one's file, from the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feeds {
    pub files: Vec<String>,
    pub feeds: Vec<Feed>,
}

impl LoadSpec {
    /// The requests that a file, a log or placeholders describe for a subject with this path, in the
    /// order in which they were written; `None` if all requests are the same. Nothing is expected of
    /// their answers but what a file says. `Host` of [`Self::headers`] is not among their fields.
    pub fn request_set(&self, path: &str) -> Option<RequestSet> {
        let read = self.requests.as_ref().map(|file| &file.set);
        let read = read.or(self.replay.as_ref().map(|file| &file.set));
        let mut set = match read {
            Some(set) => RequestSet::clone(set),
            None if self.has_places(path) || self.cookies => self.one_request(path),
            None => return None,
        };
        let fields = self.headers.iter().filter(|(name, _)| !is_host(name));
        for (name, value) in fields {
            let value = template(value, &set.feeds, Part::Text);
            set.add_field(name, &value);
        }
        if self.cookies {
            let keeps_cookies = true;
            set.users = Some(Users { keeps_cookies });
        }
        Some(set)
    }

    /// Whether requests have placeholders, for a subject with this path.
    pub fn has_places(&self, path: &str) -> bool {
        let kind = self.traffic.kind();
        if !matches!(kind, TrafficKind::Answers | TrafficKind::Events) {
            return false;
        }
        let in_body = self.body.as_deref().is_some_and(has_places);
        let mut headers = self.headers.iter();
        has_places(path) || in_body || headers.any(|(_, value)| has_places(value))
    }

    fn one_request(&self, path: &str) -> RequestSet {
        let feeds = self.feeds.feeds.clone();
        let body = match (&self.body, self.body()) {
            (Some(text), _) => Some(template(text, &feeds, Part::Text)),
            (None, body) => body.map(|body| Template::fixed(body.into_owned())),
        };
        let request = RequestSpec {
            name: format!("{} {path}", self.method),
            method: self.method.clone(),
            path: template(path, &feeds, Part::Path),
            body,
            ..RequestSpec::default()
        };
        RequestSet {
            requests: vec![request],
            feeds,
            ..RequestSet::default()
        }
    }
}

/// Whether a header field is the one that names the host.
pub(crate) fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// The template of a text that was checked when the experiment was read.
fn template(text: &str, feeds: &[Feed], part: Part) -> Template {
    let names = Names {
        feeds,
        ..Names::default()
    };
    parse(text, names, part).unwrap_or_else(|_| Template::fixed(text))
}
