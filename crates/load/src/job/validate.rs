//! Whether a job makes sense.

use std::time::Duration;

use readings::Pacing;

use super::target::{Request, Target};
use super::traffic::{Traffic, WebSocket};
use super::{CALL_BYTES_MAX, Job, ROW_MIN, Segment, Stage, Stop, fields};

/// A job that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JobError {
    /// No target or no segment.
    #[error("expected at least one target and one segment of load, found none")]
    Empty,
    /// A number that must be at least one is zero.
    #[error("expected at least one {0}, found 0")]
    Zero(&'static str),
    /// HTTP/2, HTTP/3 or places, with bytes that are not an HTTP request.
    #[error(
        "HTTP/2, HTTP/3 and placeholders need requests with a method, a path and header fields"
    )]
    NotHttp,
    /// WebSockets over something else than HTTP/1.1, or with a role that does not exist yet.
    #[error("WebSockets need HTTP/1.1 and GET requests; leave out HTTP/2 and HTTP/3")]
    WebSocket,
    /// HTTP/3 without what it needs.
    #[error("HTTP/3 needs TLS and an IP address, and has no PROXY protocol headers")]
    NotQuic,
    /// Topics that cannot be shared evenly among the threads, or whose pace is none.
    #[error(
        "topics of {members} connections need a multiple of {members} x {threads} threads as \
         connections, found {connections}, a closed loop by time, and a time above 0 between messages"
    )]
    FanOut {
        members: u32,
        threads: usize,
        connections: u32,
    },
    /// gRPC calls without what they need.
    #[error(
        "gRPC calls need HTTP/2 and requests with POST, each with at most {CALL_BYTES_MAX} bytes"
    )]
    NotGrpc,
    /// Sessions whose steps are not the target's requests, capture what has no name, or have no place for
    /// cookies.
    #[error(
        "a session needs a step for each request, a name for each value that it captures, and with \
         cookies templates of all requests"
    )]
    Steps,
    /// Sessions that leave nothing for a user's second round.
    #[error("every step is `first_round`: add a step for later rounds")]
    NoLaterRound,
    /// A segment on a target that does not exist.
    #[error("segment {segment} is on target {target}, but there are {targets} targets")]
    Target {
        /// The segment's number.
        segment: usize,
        /// The target it names.
        target: usize,
        /// How many there are.
        targets: usize,
    },
    /// A rate that is not above zero, or that no client can offer.
    #[error(
        "expected a rate above 0 and of at most {most} requests per second, which no client exceeds, \
         found {0}",
        most = readings::RATE_MAX_PER_S
    )]
    Rate(String),
    /// A target without requests, or with weights that sum to 0.
    #[error("expected at least one request with a weight above 0")]
    Requests,
    /// Stages in a closed loop, or without requests.
    #[error("stages need an open loop, and at least one request that becomes due in them")]
    Stages,
    /// A number of answers for each connection in an open loop.
    #[error(
        "a number of requests for each connection needs a closed loop: in an open loop any free \
             connection takes the next request"
    )]
    EachConnection,
    /// A part with a segment that ends by count, or with fewer threads in all than its own.
    #[error("a load over several machines must end by time, and count the threads of all of them")]
    Part,
    /// A request whose places cannot be filled in.
    #[error("the request `{request}` cannot be sent: {why}")]
    Template {
        /// Its name.
        request: String,
        /// Why.
        why: String,
    },
    /// Requests that are filled in would take too much memory.
    #[error(
        "requests that are filled in would take {gib} GiB, as each connection has its own; expected at \
         most {most} GiB: use fewer connections or a shorter body"
    )]
    FilledMemory { gib: u64, most: u64 },
    /// A feed that is used and has no rows.
    #[error("the feed `{0}` has no rows; give it at least one")]
    EmptyFeed(String),
    /// A value of a feed that would end the part of a request in which it stands.
    #[error(
        "feed `{feed}`, row {row}, column `{column}` has {has}, which a {part} cannot contain; \
         remove it"
    )]
    FeedValue {
        /// The feed's name.
        feed: String,
        /// The row, from 1.
        row: u64,
        /// The column's name.
        column: String,
        /// In which part of the request.
        part: &'static str,
        /// What is wrong with it.
        has: &'static str,
    },
    /// Places or a log where the traffic has none.
    #[error("WebSocket handshakes and gRPC calls take no placeholders; remove them")]
    NotFilled,
    /// A log that cannot be repeated.
    #[error("the log {0}")]
    Log(&'static str),
    /// Rows shorter than [`ROW_MIN`].
    #[error("expected rows of at least 10 ms, found {0:?}")]
    Rows(Duration),
}

fn stages_are_valid(stages: &[Stage]) -> bool {
    let valid = |rate: f64| rate.is_finite() && rate >= 0.0;
    let sum: f64 = stages.iter().map(Stage::requests).sum();
    stages.is_empty()
        || sum > 0.0
            && stages
                .iter()
                .all(|stage| valid(stage.from_per_s) && valid(stage.to_per_s))
}

impl Segment {
    fn validate(&self) -> Result<(), JobError> {
        if matches!(self.stop, Stop::Requests(0) | Stop::EachConnection(0)) {
            return Err(JobError::Zero("request"));
        }
        let is_open = matches!(self.pacing, Pacing::Open { .. });
        if !is_open && !self.stages.is_empty() || !stages_are_valid(&self.stages) {
            return Err(JobError::Stages);
        }
        if is_open && matches!(self.stop, Stop::EachConnection(_)) {
            return Err(JobError::EachConnection);
        }
        let of_stages = self.stages.iter();
        let highest = of_stages.map(|stage| stage.from_per_s.max(stage.to_per_s));
        let rate_per_s = match self.pacing {
            Pacing::Open { rate_per_s } => rate_per_s,
            Pacing::Closed => return Ok(()),
        };
        if rate_per_s.is_nan() || rate_per_s <= 0.0 {
            return Err(JobError::Rate(rate_per_s.to_string()));
        }
        match highest.fold(rate_per_s, f64::max) {
            rate if rate <= readings::RATE_MAX_PER_S => Ok(()),
            rate => Err(JobError::Rate(rate.to_string())),
        }
    }
}

impl Target {
    fn validate_users(&self) -> Result<(), JobError> {
        let Traffic::Users(users) = &self.traffic else {
            return Ok(());
        };
        let captures = users.steps.iter().flat_map(|step| &step.captures);
        let are_named = captures
            .into_iter()
            .all(|one| one.name < users.captured.len());
        let is_complete = users.steps.len() == self.requests.len();
        let goes_on = users.next(None, false).is_some();
        let has_template = |number| self.template(number).is_some();
        let has_cookies = !users.keeps_cookies || (0..self.requests.len()).all(has_template);
        match are_named && is_complete && has_cookies {
            true if goes_on => Ok(()),
            true => Err(JobError::NoLaterRound),
            false => Err(JobError::Steps),
        }
    }

    /// Of a job with so many threads.
    fn validate_topics(&self, threads: usize, segment: &Segment) -> Result<(), JobError> {
        let Some((members, every)) = self.traffic.websocket().and_then(WebSocket::fan_out) else {
            return Ok(());
        };
        let each = u64::from(members) * threads as u64;
        let is_even = each > 0 && u64::from(self.connections).is_multiple_of(each);
        let is_by_time = matches!(segment.stop, Stop::After(_));
        let is_closed = segment.pacing == Pacing::Closed && is_by_time;
        match is_even && is_closed && !every.is_zero() {
            true => Ok(()),
            false => Err(JobError::FanOut {
                members,
                threads,
                connections: self.connections,
            }),
        }
    }

    fn validate_calls(&self) -> Result<(), JobError> {
        let Traffic::Grpc(grpc) = &self.traffic else {
            return Ok(());
        };
        let fits =
            |one: &Request| one.bytes.starts_with(b"POST ") && grpc.bytes(one) <= CALL_BYTES_MAX;
        match self.http2.is_some() && self.requests.iter().all(fits) {
            true => Ok(()),
            false => Err(JobError::NotGrpc),
        }
    }
}

impl Job {
    /// Checks that the job makes sense.
    ///
    /// # Errors
    /// When it does not.
    pub fn validate(&self) -> Result<(), JobError> {
        if self.targets.is_empty() || self.segments.is_empty() {
            return Err(JobError::Empty);
        }
        if self.threads == 0 {
            return Err(JobError::Zero("thread"));
        }
        for target in &self.targets {
            if target.connections == 0 {
                return Err(JobError::Zero("connection"));
            }
            target.validate_filling()?;
            let is_http = |one: &Request| fields::read(&one.bytes, "http", |_, _| {}).is_some();
            let is_quic = target.tls.is_some()
                && target.address.inet().is_some()
                && target.proxy_header.is_none()
                && target.http2.is_none();
            if target.http3.is_some() && !is_quic {
                return Err(JobError::NotQuic);
            }
            let has_places = |number| target.template(number).is_some();
            let has_any = (0..target.requests.len()).any(has_places);
            if (target.streams().is_some() || has_any) && !target.requests.iter().all(is_http) {
                return Err(JobError::NotHttp);
            }
            target.validate_calls()?;
            target.validate_users()?;
            let is_get = |one: &Request| is_http(one) && one.bytes.starts_with(b"GET ");
            if matches!(target.traffic, Traffic::WebSocket(_))
                && (target.streams().is_some() || !target.requests.iter().all(is_get))
            {
                return Err(JobError::WebSocket);
            }
            if target.places() == Some(0) {
                return Err(JobError::Zero("stream"));
            }
            if target.requests_per_connection == Some(0) {
                return Err(JobError::Zero("request per connection"));
            }
            if target.requests.iter().all(|request| request.weight == 0) {
                return Err(JobError::Requests);
            }
        }
        if let Some(rows) = self.rows.filter(|rows| *rows < ROW_MIN) {
            return Err(JobError::Rows(rows));
        }
        if self.requests_per_connection == Some(0) {
            return Err(JobError::Zero("request per connection"));
        }
        if let Some(part) = self.part {
            let by_time = |segment: &Segment| matches!(segment.stop, Stop::After(_));
            let fits = part.first_thread + self.threads <= part.all_threads;
            if !fits || !self.segments.iter().all(by_time) {
                return Err(JobError::Part);
            }
        }
        for (number, segment) in self.segments.iter().enumerate() {
            if segment.target >= self.targets.len() {
                return Err(JobError::Target {
                    segment: number,
                    target: segment.target,
                    targets: self.targets.len(),
                });
            }
            segment.validate()?;
            let is_open = matches!(segment.pacing, Pacing::Open { .. });
            self.targets[segment.target].validate_topics(self.all_threads(), segment)?;
            let is_by_time = matches!(segment.stop, Stop::After(_)) && segment.stages.is_empty();
            if is_open && self.targets[segment.target].log().is_some() && !is_by_time {
                return Err(JobError::Log(
                    "says when requests are due; end the load by time, and leave out stages",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use readings::requests::{RequestSet, RequestSpec, Template};

    use super::*;
    use crate::job::expect::Expect;

    #[test]
    fn users_need_a_step_for_later_rounds() {
        let judged = |is_once| {
            let set = RequestSet {
                requests: vec![RequestSpec {
                    name: "login".to_owned(),
                    path: Template::fixed("/"),
                    is_once,
                    ..RequestSpec::default()
                }],
                users: Some(readings::requests::Users::default()),
                in_order: true,
                ..RequestSet::default()
            };
            let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
            let target = Target::new(address, Vec::new(), Expect::default());
            let target = target.with_requests(&set, "a", &[]);
            let segment = Segment::closed(Stop::Requests(1));
            Job::to(target).segment(segment).validate()
        };
        assert_eq!(judged(false), Ok(()));
        assert_eq!(judged(true), Err(JobError::NoLaterRound));
    }

    #[test]
    fn a_rate_that_no_client_can_offer_is_refused() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let request = b"GET / HTTP/1.1\r\n\r\n".to_vec();
        let target = Target::new(address, request, Expect::default());
        let judged = |rate_per_s, highest| {
            let segment = Segment {
                stages: vec![Stage {
                    duration: Duration::from_secs(1),
                    from_per_s: 1.0,
                    to_per_s: highest,
                }],
                ..Segment::open(rate_per_s, Stop::After(Duration::from_secs(1)))
            };
            Job::to(target.clone()).segment(segment).validate()
        };
        assert_eq!(judged(1e8, 1e8), Ok(()));
        let refused = |found: &str| Err(JobError::Rate(found.to_owned()));
        assert_eq!(judged(1e12, 1.0), refused("1000000000000"));
        assert_eq!(judged(1.0, 2e8), refused("200000000"));
        assert_eq!(judged(0.0, 1.0), refused("0"));
        assert_eq!(judged(f64::NAN, 1.0), refused("NaN"));
        let text = judged(1e12, 1.0).unwrap_err().to_string();
        assert!(text.contains("at most 100000000 requests"), "{text}");
    }
}
