//! The domain types of an experiment.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use readings::{Condition, Gate, GateMetric, HostSpec, HttpVersion};

use super::event::{Event, ParamValue};
use super::load::{Choice, LoadChange, LoadSpec, NamedLoad};
use crate::manifest::Value;
use crate::plan::within::Windows;

/// An experiment. Every name that it uses is defined in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its short name, for folders and lists.
    pub name: String,
    pub title: String,
    /// The question in full.
    pub question: Option<String>,
    /// Hosts, in the order they were written.
    pub hosts: Vec<HostSpec>,
    /// Servers, in the order they were written.
    pub servers: Vec<Server>,
    /// What is compared, in the order it was written; at least one.
    pub subjects: Vec<Subject>,
    /// What is varied, in the order it was written.
    pub factors: Vec<Factor>,
    /// The load, before factors change it; of several loads, the first compared one.
    pub load: LoadSpec,
    /// Several loads that are made at the same time, in the order of the file; empty if there is
    /// only one load.
    pub loads: Vec<NamedLoad>,
    /// What happens to servers in each measured window, in the order it was written.
    pub events: Vec<Event>,
    /// What a good answer is.
    pub expect: Expect,
    /// How it is measured.
    pub design: Design,
    /// Kernel settings that the experiment recommends: names and values. They are compared with
    /// the machine's and recorded, never set.
    pub sysctls: Vec<(String, String)>,
    /// Figures that others published, shown beside the result.
    pub published: Vec<Published>,
    /// Bounds that fail a run, in the order they were written.
    pub gates: Vec<Gate>,
    /// Whether this machine counts instructions. Not part of the file: it is set before the run's
    /// time is estimated, and serves only that.
    pub counts_instructions: bool,
}

/// A program that is started from a recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// Its recipe's name.
    pub recipe: String,
    /// The host it runs on; without one it runs unbound on this machine.
    pub host: Option<String>,
    /// What it passes requests on to.
    pub upstreams: Vec<Upstream>,
    /// All of its recipe's parameters, defaults included.
    pub with: BTreeMap<String, ParamValue>,
    /// The port it listens on; without one a free port is chosen.
    pub port: Option<u16>,
}

/// What a server passes requests on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// A server of the experiment.
    Server(String),
    /// Something that already runs.
    Address(SocketAddr),
}

/// A URL that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    pub name: String,
    /// The scheme of its URL, `http` in most cases.
    pub scheme: String,
    /// Where its requests go.
    pub target: Target,
    /// Path and query of the request; a factor's `{name}` in it is filled in per condition.
    pub path: String,
    /// What makes its load, where that is not the load's driver.
    pub driver: Option<Choice>,
    /// The settings of the load that it has for itself.
    pub load: SubjectLoad,
    /// The background loads of this subject, if it names them.
    pub background: Option<Vec<String>>,
}

/// Settings of the load that a subject has for itself, as where versions of HTTP are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubjectLoad {
    pub connections: Option<u32>,
    pub requests_per_connection: Option<u64>,
    pub http: Option<HttpVersion>,
    pub streams: Option<u32>,
}

/// Who a subject's requests go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A server of the experiment.
    Server(String),
    /// `host:port` of something that already runs.
    Address(String),
}

/// A factor: something that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    pub name: String,
    /// What it changes.
    pub role: Role,
    /// Its values, at least one, no two with the same text.
    pub levels: Vec<Level>,
}

/// What a factor changes. In addition its `{name}` is filled in wherever it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A key of the load.
    Load,
    /// A key of one of several loads.
    OneLoad {
        /// The load's name.
        load: String,
    },
    /// Which background loads are made.
    Background,
    /// A parameter of a server.
    Param {
        /// The server's name.
        server: String,
        /// The parameter's name.
        param: String,
    },
    /// Nothing but the `{name}`s.
    Text,
}

/// One value of a factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its text, as conditions hold it.
    pub text: String,
    /// The value as it was written.
    pub value: Value,
    /// What it does.
    pub effect: Effect,
}

/// What a level does to the load or a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Load(LoadChange),
    /// These background loads are made.
    Background(Vec<String>),
    /// It changes several keys of the load together.
    Loads(Vec<LoadPart>),
    /// It is the value of a server's parameter, in the parameter's own type.
    Param(Value),
    /// It only fills in text.
    Text,
}

/// One key of the load, of several that a level changes.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPart {
    pub key: String,
    /// Its value as it was written.
    pub value: Value,
    /// What it does.
    pub change: LoadChange,
}

/// What a good answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    pub status: u16,
    /// A text that its body contains.
    pub contains: Option<String>,
    /// Whether all its bodies are the same.
    pub body: BodyCheck,
    /// Whether the subjects' answers are the same.
    pub same: SameAnswers,
    /// Whether requests reach every server of a subject's path; not so where a server in front
    /// answers some of them itself.
    pub every_server: bool,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: 200,
            contains: None,
            body: BodyCheck::Auto,
            same: SameAnswers::Auto,
            every_server: true,
        }
    }
}

/// Which subjects answer the same, by length and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameAnswers {
    /// Those that are asked for the same path; of the others none may be empty where another is
    /// not.
    Auto,
    /// All of them.
    All,
    Differ,
}

/// Whether the bodies of good answers are all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyCheck {
    /// Every byte is the same in each answer of every subject.
    Same,
    /// They differ from answer to answer.
    Varies,
    /// Decided before the load: `Same` where a few responses in a row were equal.
    Auto,
}

/// How the experiment is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// The subject that the others are compared with.
    pub baseline: String,
    /// By factor, the level that its others are compared with, where that is not the first.
    pub reference: Condition,
    /// Factors over which the growth of metrics is asked: each has levels that are numbers, at least
    /// three.
    pub growth: Vec<String>,
    /// Number of blocks; each starts all servers afresh.
    pub blocks: u32,
    /// Load before measuring, per subject and block.
    pub warmup: Duration,
    /// The longest warm-up to which a run may extend it, if servers are not warm.
    pub warmup_max: Duration,
    /// Closed loop, measured per subject and block, cut into slices; zero, and left out, in an
    /// experiment with events.
    pub window: Duration,
    /// Open loop, measured per subject and block; zero leaves it out.
    pub latency_window: Duration,
    /// Open loop at each rate of a curve, measured per subject and block.
    pub curve_window: Duration,
    /// How long a slice is.
    pub slice: SliceLength,
    /// The declared windows, where shorter ones were chosen to fit into `within`.
    pub declared_windows: Option<Windows>,
    /// The time that the run may take; no block begins that would not end in it.
    pub within: Option<Duration>,
    /// The smallest difference that matters, as a fraction.
    pub matters: f64,
    /// The smallest difference that matters between two shares of failed requests, as a fraction of
    /// all requests.
    pub matters_failures: f64,
    /// The smallest difference of a latency that matters, whatever its share.
    pub matters_latency: Option<Duration>,
    /// The metrics that the run is about; the first come first in results, and the run goes on until
    /// they are settled. Empty: all.
    pub primary: Vec<GateMetric>,
    /// The share of requests that may fail, as a fraction; beyond it a trial is invalid.
    pub max_error: f64,
    /// How often a condition of a block is repeated after invalid trials.
    pub retries: u32,
    /// Whether subjects are measured sequentially instead of in alternation.
    pub apart: Apart,
    /// Whether loads are cut into slices. If not, each subject has one open loop in one piece.
    pub alternate: bool,
    /// Whether bottlenecks are looked for after the last block.
    pub bottleneck: bool,
}

impl Experiment {
    /// Whether each subject has one open loop in one piece, as with events.
    pub fn is_in_one_piece(&self) -> bool {
        !self.events.is_empty() || !self.design.alternate
    }
}

/// Whether each subject's servers run alone while it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Where servers take CPU time while idle, or cannot run at the same time.
    Auto,
    /// All servers of a condition run at the same time.
    Never,
    /// They run and are measured one after the other.
    Always,
}

impl Design {
    /// The warm-up where the experiment does not say.
    pub(crate) const WARMUP: Duration = Duration::from_secs(2);
    /// The longest to which a run may extend that.
    pub(crate) const WARMUP_MAX: Duration = Duration::from_secs(10);

    /// The defaults.
    pub fn with_baseline(baseline: &str) -> Self {
        Self {
            baseline: baseline.to_owned(),
            reference: Condition::new(),
            growth: Vec::new(),
            blocks: 30,
            warmup: Self::WARMUP,
            warmup_max: Self::WARMUP_MAX,
            window: Duration::from_secs(10),
            latency_window: Duration::from_secs(5),
            curve_window: Duration::from_secs(2),
            slice: SliceLength::Auto,
            declared_windows: None,
            within: None,
            matters: 0.03,
            matters_failures: 0.001,
            matters_latency: None,
            primary: Vec::new(),
            max_error: 0.01,
            retries: 2,
            apart: Apart::Auto,
            alternate: true,
            bottleneck: true,
        }
    }

    /// The longest windows that a run may choose.
    pub fn longest(&self) -> Windows {
        self.declared_windows.unwrap_or(Windows::of(self))
    }

    /// Takes other windows.
    pub(crate) fn set_windows(&mut self, windows: Windows) {
        self.window = windows.closed;
        self.latency_window = windows.open;
        self.slice = windows.slice;
    }
}

/// How long the load stays on one subject before it turns to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceLength {
    /// The runner chooses.
    Auto,
    /// This long.
    Fixed(Duration),
}

/// A figure that someone published.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub value: f64,
    pub unit: String,
    /// Who published it, and where.
    pub source: String,
}
