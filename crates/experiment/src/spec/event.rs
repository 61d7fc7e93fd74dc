//! What happens to servers and hosts in a measured window.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::manifest::Value;

/// An event in every measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When, after the measured window begins.
    pub at: Duration,
    pub target: EventTarget,
    /// What is done to it.
    pub what: EventWhat,
    /// When it is undone, after the measured window begins; without it, at the window's end.
    pub until: Option<Duration>,
    pub settings: EventSettings<ParamValue>,
}

/// What an event happens to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventTarget {
    /// Servers by name; several only where they are restarted in turn.
    Servers(Vec<String>),
    /// A host as a whole.
    Host(String),
}

impl EventTarget {
    /// The servers by name; none for a host.
    pub fn servers(&self) -> &[String] {
        match self {
            Self::Servers(names) => names,
            Self::Host(_) => &[],
        }
    }
}

/// A parameter's value in an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A value. A factor's `{name}` in a string or list is replaced per condition.
    Value(Value),
    /// All of it is a factor's level.
    Factor {
        /// The factor's name.
        factor: String,
        /// The value for each level, in the parameter's own type, by the level's text.
        by_level: Vec<(String, Value)>,
    },
}

/// Quantities of an event; its kind says which it has. `P` is the value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSettings<P> {
    /// Changed parameters of a reloaded server.
    pub params: BTreeMap<String, P>,
    /// CPU quota, CPUs.
    pub quota: Option<f64>,
    /// Time added to each round trip.
    pub delay: Option<Duration>,
    /// Share of packets lost in each direction.
    pub loss: Option<f64>,
    /// Time from one restarted server's readiness to the next one's stop.
    pub pause: Option<Duration>,
}

impl<P> Default for EventSettings<P> {
    fn default() -> Self {
        Self {
            params: BTreeMap::new(),
            quota: None,
            delay: None,
            loss: None,
            pause: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventWhat {
    /// The same under every condition.
    Kind(EventKind),
    /// As a factor's level says.
    Factor {
        /// The factor's name.
        factor: String,
        /// What is done for each level, by the level's text.
        by_level: Vec<(String, EventKind)>,
    },
}

impl EventWhat {
    /// What is done under any condition.
    pub fn all(&self) -> Vec<EventKind> {
        match self {
            Self::Kind(kind) => vec![*kind],
            Self::Factor { by_level, .. } => by_level.iter().map(|(_, kind)| *kind).collect(),
        }
    }
}

/// What can be done to a server or a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// All its processes are killed (SIGKILL); undone, it is started again.
    Kill,
    /// All its processes are stopped (SIGSTOP); undone, they are continued. The kernel still
    /// accepts connections for it.
    Stop,
    /// The link of its host is taken down; undone, up again.
    Cut,
    /// It reads a new configuration, as its recipe says; undone, the original one.
    Reload,
    /// Servers are stopped as their recipes say and started again, one after the other.
    Rolling,
    /// Its CPU time, or that of its host, is limited.
    Quota,
    /// A round trip over the link of its host takes longer.
    Slow,
    /// The link of its host loses packets.
    Loss,
}

impl EventKind {
    pub const ALL: [EventKind; 8] = [
        EventKind::Kill,
        EventKind::Stop,
        EventKind::Cut,
        EventKind::Reload,
        EventKind::Rolling,
        EventKind::Quota,
        EventKind::Slow,
        EventKind::Loss,
    ];

    /// The word in an experiment file.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::Kill => "kill",
            EventKind::Stop => "stop",
            EventKind::Cut => "cut",
            EventKind::Reload => "reload",
            EventKind::Rolling => "rolling",
            EventKind::Quota => "quota",
            EventKind::Slow => "slow",
            EventKind::Loss => "loss",
        }
    }

    /// The kind of that word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether it changes delay or loss of a host's link, which stays up.
    pub fn changes_link(self) -> bool {
        matches!(self, EventKind::Slow | EventKind::Loss)
    }

    /// Whether it needs a host on which the server is alone.
    pub fn needs_own_host(self) -> bool {
        self == EventKind::Cut || self.changes_link()
    }

    /// Whether a whole host can be its target.
    pub fn takes_host(self) -> bool {
        self == EventKind::Quota || self.changes_link()
    }

    /// Whether the server's processes run on, so that they can be sampled.
    pub fn leaves_processes(self) -> bool {
        self.takes_host() || self == EventKind::Reload
    }
}

/// An event under one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSpec {
    /// When, after the measured window begins.
    pub at: Duration,
    pub target: EventTarget,
    /// What is done to it.
    pub kind: EventKind,
    /// When it is undone, after the measured window begins; without it, at the window's end.
    pub until: Option<Duration>,
    pub settings: EventSettings<Value>,
}
