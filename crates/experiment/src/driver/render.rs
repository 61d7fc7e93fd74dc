//! Filling in a driver's command for one run of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use minijinja::{Environment, context};
use readings::QuicCongestion;

use super::{Driver, DriverError};
use crate::manifest::{Value, complaint, environment, params_seen, programs_seen};
use crate::spec::{HttpVersion, TlsSpec};

/// The word of a command in whose place the headers come.
pub(super) const HEADERS: &str = "{{ headers }}";

/// The names that templates of `[run]` may use, besides `params`, `programs` and `weigh`.
pub(super) const NAMES: [&str; 28] = [
    "url",
    "scheme",
    "host",
    "port",
    "path",
    "connections",
    "http",
    "streams",
    "quic_congestion",
    "threads",
    "duration_s",
    "warmup_s",
    "requests",
    "rate_per_s",
    "keepalive",
    "requests_per_connection",
    "timeout_s",
    "timeout_ms",
    "method",
    "body",
    "expect_status",
    "expect_contains",
    "headers",
    "tls_version",
    "tls_suites",
    "tls_groups",
    "tls_resumption",
    "tls_ca",
];

/// The values for one run of a driver.
#[derive(Clone, Debug, PartialEq)]
pub struct RunContext {
    /// Scheme of the URL, such as `http`.
    pub scheme: String,
    /// The host: a name or an address.
    pub host: String,
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Open connections.
    pub connections: u32,
    pub http: HttpVersion,
    /// Streams that each connection has open at once; 1 with HTTP/1.1.
    pub streams: u32,
    /// The congestion control that was asked for, with HTTP/3.
    pub quic_congestion: Option<QuicCongestion>,
    /// Threads of the driver.
    pub threads: u32,
    /// How long it runs; drivers take whole seconds.
    pub duration_s: u64,
    /// The warm-up of a driver that has its own.
    pub warmup_s: u64,
    /// The number of requests of a driver that ends after a count.
    pub requests: u64,
    /// The rate of an open loop, over all connections; `None` for a closed one.
    pub rate_per_s: Option<f64>,
    /// Whether a connection carries more than one request.
    pub keepalive: bool,
    /// Requests after which a connection is closed and another opened.
    pub requests_per_connection: Option<u64>,
    /// The time limit for a response.
    pub timeout: Duration,
    pub method: String,
    /// Headers to add: names and values.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: Option<String>,
    /// The status of a good answer.
    pub expect_status: u16,
    /// A text that a good response contains.
    pub expect_contains: Option<String>,
    /// How it speaks TLS where the scheme is `https`.
    pub tls: TlsSpec,
    /// The driver's parameters, complete.
    pub params: BTreeMap<String, Value>,
    /// The programs that [`Driver::available`] found.
    pub programs: BTreeMap<String, PathBuf>,
    /// The running program.
    pub weigh: PathBuf,
}

impl Driver {
    /// The command for one run, program first. Nothing is started.
    ///
    /// # Errors
    /// When a template fails.
    pub fn command(&self, run: &RunContext) -> Result<Vec<String>, DriverError> {
        let filler = Filler::new(self, &run.programs, &run.weigh).with(self, run);
        let mut words = Vec::new();
        for word in &self.command {
            if word.trim() != HEADERS {
                words.extend(filler.word("run.command", word)?);
                continue;
            }
            for (name, value) in &run.headers {
                let one = filler.with_header(name, value);
                for word in &self.header {
                    words.extend(one.word("run.header", word)?);
                }
            }
        }
        Ok(words)
    }

    /// The variables for one run's environment.
    ///
    /// # Errors
    /// When a template fails.
    pub fn environment(&self, run: &RunContext) -> Result<Vec<(String, String)>, DriverError> {
        let filler = Filler::new(self, &run.programs, &run.weigh).with(self, run);
        self.env
            .iter()
            .map(|(name, value)| Ok((name.clone(), filler.text("run.env", value)?)))
            .collect()
    }
}

/// Fills in templates of one driver.
pub(super) struct Filler {
    driver: String,
    environment: Environment<'static>,
    names: minijinja::Value,
}

impl Filler {
    /// One that knows only `programs` and `weigh`.
    pub fn new(driver: &Driver, programs: &BTreeMap<String, PathBuf>, weigh: &Path) -> Self {
        let programs = programs_seen(&driver.programs, programs);
        Self {
            driver: driver.name.clone(),
            environment: environment(),
            names: context! { programs => programs, weigh => weigh.to_string_lossy() },
        }
    }

    fn with(self, driver: &Driver, run: &RunContext) -> Self {
        let params = params_seen(&driver.params, &run.params);
        let names = context! {
            url => format!("{}://{}:{}{}", run.scheme, run.host, run.port, run.path),
            scheme => run.scheme,
            host => run.host,
            port => run.port,
            path => run.path,
            connections => run.connections,
            http => run.http.name(),
            streams => run.streams,
            quic_congestion => run.quic_congestion.map(QuicCongestion::name),
            threads => run.threads,
            duration_s => run.duration_s,
            warmup_s => run.warmup_s,
            requests => run.requests,
            rate_per_s => run.rate_per_s,
            keepalive => run.keepalive,
            requests_per_connection => run.requests_per_connection,
            timeout_s => run.timeout.as_secs_f64().ceil() as u64,
            timeout_ms => run.timeout.as_millis() as u64,
            method => run.method,
            body => run.body,
            expect_status => run.expect_status,
            expect_contains => run.expect_contains,
            tls_version => run.tls.version.map_or("any", |version| version.name()),
            tls_suites => run.tls.suites,
            tls_groups => run.tls.groups,
            tls_resumption => run.tls.resumption,
            tls_ca => run.tls.ca,
            params => params,
            ..self.names.clone()
        };
        Self { names, ..self }
    }

    fn with_header(&self, name: &str, value: &str) -> Self {
        let header = context! { name => name, value => value };
        Self {
            driver: self.driver.clone(),
            environment: self.environment.clone(),
            names: context! { header => header, ..self.names.clone() },
        }
    }

    fn text(&self, place: &str, text: &str) -> Result<String, DriverError> {
        self.environment
            .render_named_str(place, text, &self.names)
            .map_err(|error| DriverError::Template {
                driver: self.driver.clone(),
                place: place.to_owned(),
                why: complaint(&error),
            })
    }

    /// A command's word; nothing when it comes out empty, so that an option can be dropped.
    fn word(&self, place: &str, word: &str) -> Result<Option<String>, DriverError> {
        let word = self.text(place, word)?;
        Ok((!word.is_empty()).then_some(word))
    }

    /// Command words, without those that come out empty.
    pub fn words(&self, place: &str, words: &[String]) -> Result<Vec<String>, DriverError> {
        words
            .iter()
            .filter_map(|word| self.word(place, word).transpose())
            .collect()
    }
}
