//! What to do: targets, connections, stints.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use net::{Address, IoKind};
use readings::Pacing;

use crate::check::Expect;

/// A request and the answers that count as good.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its name in results: method and path.
    pub name: String,
    /// Its bytes, sent as they are.
    pub bytes: Vec<u8>,
    /// The answers that count as good.
    pub expect: Expect,
    /// How often it is sent, against the others.
    pub weight: u32,
}

impl Request {
    /// A request that is sent as often as any other.
    pub fn new(bytes: Vec<u8>, expect: Expect) -> Self {
        let line = bytes.split(|&b| b == b'\r' || b == b'\n').next();
        let line = String::from_utf8_lossy(line.unwrap_or_default());
        let name = line.strip_suffix(" HTTP/1.1").unwrap_or(&line).to_string();
        Self {
            name,
            bytes,
            expect,
            weight: 1,
        }
    }

    /// Whether answers have no body because the request is HEAD.
    pub fn is_head(&self) -> bool {
        self.bytes.starts_with(b"HEAD ")
    }
}

/// Which of several requests comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Choice {
    /// By chance, as often as the weights say.
    #[default]
    Weighted,
    /// One after the other, then again from the first; weights do not count.
    InOrder,
}

/// The version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// Text.
    V1,
    /// Binary.
    V2,
}

/// What a connection says before its first request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The PROXY protocol's version.
    pub version: ProxyVersion,
    /// Clients that connections claim to come from, in turn. Empty numbers them through
    /// 198.18.0.0/15, the range that RFC 2544 sets aside for measurements.
    pub clients: Vec<IpAddr>,
}

/// Where requests go and what they say.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The address to connect to.
    pub address: Address,
    /// The requests, at least one.
    pub requests: Vec<Request>,
    /// Which of them comes next.
    pub choice: Choice,
    /// A PROXY protocol header at the start of every connection.
    pub proxy_header: Option<ProxyHeader>,
}

impl Target {
    /// A target with one request.
    pub fn new(address: impl Into<Address>, request: Vec<u8>, expect: Expect) -> Self {
        Self {
            address: address.into(),
            requests: vec![Request::new(request, expect)],
            choice: Choice::default(),
            proxy_header: None,
        }
    }

    /// What a connection says before its first request; `opening` numbers the connections. Empty
    /// without a PROXY protocol header.
    pub(crate) fn greeting(&self, opening: u64, out: &mut Vec<u8>) {
        let Some(header) = &self.proxy_header else {
            return;
        };
        let ip = match header.clients.as_slice() {
            [] => {
                let [a, b, c] = [opening >> 16, opening >> 8, opening].map(|n| n as u8);
                IpAddr::V4(Ipv4Addr::new(198, 18 + (a & 1), b, c))
            }
            clients => clients[(opening % clients.len() as u64) as usize],
        };
        let client = SocketAddr::new(ip, 1024 + (opening % 64_512) as u16);
        let server = self.address.inet().unwrap_or(match ip {
            IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 80)),
            IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::LOCALHOST, 80)),
        });
        match header.version {
            ProxyVersion::V1 => net::proxy_protocol::encode_v1(client, server, out),
            ProxyVersion::V2 => net::proxy_protocol::encode_v2(client, server, out),
        }
    }
}

/// Connections to one target, held by the threads in near equal shares.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The target.
    pub target: Target,
    /// Connections, exactly, over all threads.
    pub connections: u32,
}

/// When a stint ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// After a time.
    After(Duration),
    /// When so many requests were answered or failed, over all threads.
    Requests(u64),
    /// When every connection has had so many answers or failures. Closed loop only.
    EachConnection(u64),
}

/// A stretch of time in an open loop in which the rate stays, or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Its length.
    pub duration: Duration,
    /// Requests due per second at its start, over all connections.
    pub from_per_s: f64,
    /// Requests due per second at its end.
    pub to_per_s: f64,
}

impl Stage {
    /// Requests that become due in it.
    pub fn requests(&self) -> f64 {
        (self.from_per_s + self.to_per_s) / 2.0 * self.duration.as_secs_f64()
    }
}

/// A stretch of load on one lane. Between stints every answer that is under way is awaited.
#[derive(Clone, Debug, PartialEq)]
pub struct Stint {
    /// Number of the lane.
    pub lane: usize,
    /// How requests are timed. With stages: an open loop at their mean rate.
    pub pacing: Pacing,
    /// The stages of an open loop whose rate changes, from the start of the measured window; empty
    /// for one rate. What is cut off before them runs at the rate that the first begins with.
    pub stages: Vec<Stage>,
    /// What is cut off at the start, before the measured window.
    pub cut: Duration,
    /// The measured window.
    pub stop: Stop,
    /// Number of the reading that it is recorded to; `None` for a warm-up.
    pub reading: Option<usize>,
}

/// When the requests of an open loop are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances.
    Even,
    /// With exponentially distributed distances, as from many independent users.
    Poisson,
}

/// How a thread waits for what is due or comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It sleeps until the kernel wakes it: tens of microseconds late, and no CPU time wasted.
    Sleep,
    /// In open-loop stints it polls without sleeping: late by a microsecond, and a CPU is taken
    /// whole. Only where the servers do not need that CPU.
    Spin,
}

/// Whose clock reading tells when an answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Received {
    /// The kernel's in open loops, where times are the point; the program's in closed ones, which
    /// the kernel's would cost throughput.
    #[default]
    Auto,
    /// The kernel's, taken when the packet came in: what holds the load's thread up afterwards is
    /// no part of what is measured, and shows as receive lag.
    Kernel,
    /// The load's thread's, when it gets to the answer.
    Program,
}

/// A whole load.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Targets and their connections.
    pub lanes: Vec<Lane>,
    /// What to do, in order.
    pub stints: Vec<Stint>,
    /// Number of threads.
    pub threads: usize,
    /// Requests after which a connection is closed and opened anew; `None` keeps it.
    pub requests_per_connection: Option<u64>,
    /// Longest wait for a connection to open.
    pub connect_timeout: Duration,
    /// Longest wait for a complete answer once its request was sent.
    pub timeout: Duration,
    /// When the requests of open-loop stints are due.
    pub arrivals: Arrivals,
    /// CPUs that the threads are bound to, in turn; empty leaves them free.
    pub cpus: Vec<u32>,
    /// Addresses that connections come from, in turn; empty lets the kernel choose.
    pub sources: Vec<SocketAddr>,
    /// The event loop.
    pub io: IoKind,
    /// How threads wait in open-loop stints; in a closed loop they always sleep.
    pub wait: Wait,
    /// Whose clock reading tells when an answer came.
    pub received: Received,
    /// Length of the rows that a reading is cut into; `None` keeps none.
    pub rows: Option<Duration>,
    /// Seed of random arrivals and of the choice between requests.
    pub seed: u64,
}

/// A job that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JobError {
    /// No lane or no stint.
    #[error("expected at least one target and one stint of load, found none")]
    Empty,
    /// A number that must be at least one is zero.
    #[error("expected at least one {0}, found 0")]
    Zero(&'static str),
    /// A stint on a lane that is not there.
    #[error("stint {stint} is on lane {lane}, but there are {lanes} lanes")]
    Lane {
        /// The stint's number.
        stint: usize,
        /// The lane it names.
        lane: usize,
        /// How many there are.
        lanes: usize,
    },
    /// A rate that is not above zero.
    #[error("expected a rate above 0 requests per second, found {0}")]
    Rate(String),
    /// A target without requests, or whose requests weigh nothing.
    #[error("expected at least one request with a weight above 0")]
    Requests,
    /// Stages in a closed loop, or that ask for nothing.
    #[error("stages need an open loop, and at least one request that becomes due in them")]
    Stages,
    /// A number of answers for each connection in an open loop.
    #[error(
        "a number of requests for each connection needs a closed loop: in an open loop any free \
             connection takes the next request"
    )]
    EachConnection,
    /// Rows too short to be told.
    #[error("expected rows of at least 10 ms, found {0:?}")]
    Rows(Duration),
}

/// Shortest row.
pub const ROW_MIN: Duration = Duration::from_millis(10);

fn stages_are_fit(stages: &[Stage]) -> bool {
    let fit = |rate: f64| rate.is_finite() && rate >= 0.0;
    let sum: f64 = stages.iter().map(Stage::requests).sum();
    stages.is_empty()
        || sum > 0.0
            && stages
                .iter()
                .all(|stage| fit(stage.from_per_s) && fit(stage.to_per_s))
}

impl Job {
    /// Whether the kernel is to tell when answers came. That takes a descriptor for each
    /// connection, which has to be there.
    pub(crate) fn stamps(&self, open_files: u64) -> bool {
        let connections: u64 = self
            .lanes
            .iter()
            .map(|lane| u64::from(lane.connections))
            .sum();
        let open = |stint: &Stint| matches!(stint.pacing, Pacing::Open { .. });
        match self.received {
            Received::Auto => self.stints.iter().all(open) && connections * 2 <= open_files,
            Received::Kernel => true,
            Received::Program => false,
        }
    }

    /// Looks whether the job makes sense.
    ///
    /// # Errors
    /// When it does not.
    pub fn validate(&self) -> Result<(), JobError> {
        if self.lanes.is_empty() || self.stints.is_empty() {
            return Err(JobError::Empty);
        }
        if self.threads == 0 {
            return Err(JobError::Zero("thread"));
        }
        if self.lanes.iter().any(|lane| lane.connections == 0) {
            return Err(JobError::Zero("connection"));
        }
        for lane in &self.lanes {
            let weight: u64 = lane
                .target
                .requests
                .iter()
                .map(|r| u64::from(r.weight))
                .sum();
            if weight == 0 {
                return Err(JobError::Requests);
            }
        }
        if let Some(rows) = self.rows.filter(|rows| *rows < ROW_MIN) {
            return Err(JobError::Rows(rows));
        }
        if self.requests_per_connection == Some(0) {
            return Err(JobError::Zero("request per connection"));
        }
        for (stint, it) in self.stints.iter().enumerate() {
            if it.lane >= self.lanes.len() {
                return Err(JobError::Lane {
                    stint,
                    lane: it.lane,
                    lanes: self.lanes.len(),
                });
            }
            if matches!(it.stop, Stop::Requests(0) | Stop::EachConnection(0)) {
                return Err(JobError::Zero("request"));
            }
            let open = matches!(it.pacing, Pacing::Open { .. });
            if !open && !it.stages.is_empty() || !stages_are_fit(&it.stages) {
                return Err(JobError::Stages);
            }
            if open && matches!(it.stop, Stop::EachConnection(_)) {
                return Err(JobError::EachConnection);
            }
            if let Pacing::Open { rate_per_s } = it.pacing
                && !(rate_per_s.is_finite() && rate_per_s > 0.0)
            {
                return Err(JobError::Rate(rate_per_s.to_string()));
            }
        }
        Ok(())
    }

    /// Number of readings that the stints record to.
    pub fn readings(&self) -> usize {
        self.stints
            .iter()
            .filter_map(|stint| stint.reading)
            .max()
            .map_or(0, |most| most + 1)
    }

    /// How many of a lane's connections a thread holds.
    pub(crate) fn share(&self, connections: u64, thread: usize) -> u64 {
        self.turns(connections, thread).count(connections)
    }

    /// Which requests of a lane are a thread's.
    pub(crate) fn turns(&self, connections: u64, thread: usize) -> Turns {
        Turns {
            thread: thread as u64,
            threads: self.threads as u64,
            connections,
        }
    }
}

/// How requests go round over the connections of a lane, and these over the threads: request `k` is
/// one for connection `k mod connections`, connection `c` is held by thread `c mod threads`. So each
/// thread has as large a part of the requests as of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) thread: u64,
    pub(crate) threads: u64,
    pub(crate) connections: u64,
}

impl Turns {
    /// How many connections the thread holds.
    fn held(self) -> u64 {
        let more = u64::from(self.thread < self.connections % self.threads);
        self.connections / self.threads + more
    }

    /// How many of the first requests are the thread's.
    pub(crate) fn count(self, requests: u64) -> u64 {
        let rest = requests % self.connections;
        let of_rest = rest / self.threads + u64::from(self.thread < rest % self.threads);
        requests / self.connections * self.held() + of_rest
    }

    /// The place among all of the thread's request with that number; `None` where it has none.
    pub(crate) fn place(self, number: u64) -> Option<u64> {
        let rounds = number.checked_div(self.held())?;
        let at = number % self.held();
        Some(rounds * self.connections + self.thread + at * self.threads)
    }

    /// The part of all requests that is the thread's, 0 to 1.
    pub(crate) fn part(self) -> f64 {
        self.held() as f64 / self.connections as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(header: ProxyHeader, opening: u64) -> String {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let mut target = Target::new(address, Vec::new(), Expect::default());
        target.proxy_header = Some(header);
        let mut out = Vec::new();
        target.greeting(opening, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn each_connection_claims_another_client() {
        let header = |clients| ProxyHeader {
            version: ProxyVersion::V1,
            clients,
        };
        assert_eq!(
            said(header(vec![]), 65_537),
            "PROXY TCP4 198.19.0.1 127.0.0.1 2049 80\r\n"
        );
        let own: Vec<IpAddr> = vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        assert!(said(header(own), 3).starts_with("PROXY TCP4 10.0.0.2 "));
    }

    #[test]
    fn each_thread_has_as_large_a_part_of_the_requests_as_of_the_connections() {
        for (connections, threads) in [(3, 2), (4, 2), (1, 3), (401, 12), (7, 7), (2, 4)] {
            let turns = |thread| Turns {
                thread,
                threads,
                connections,
            };
            let mut owners = [None; 1000];
            for thread in 0..threads {
                let turns = turns(thread);
                let places = (0..1000).map_while(|number| turns.place(number));
                for place in places.take_while(|place| *place < 1000) {
                    assert_eq!(owners[place as usize], None, "{turns:?}");
                    owners[place as usize] = Some(thread);
                }
                for requests in [0, 1, 2, 500, 999] {
                    let of_first = owners[..requests].iter().filter(|o| **o == Some(thread));
                    assert_eq!(of_first.count() as u64, turns.count(requests as u64));
                }
                let all = owners.iter().filter(|o| **o == Some(thread)).count() as f64;
                assert!(
                    (all / 1000.0 - turns.part()).abs() < 0.05,
                    "{turns:?} {all}"
                );
            }
            assert!(owners.iter().all(Option::is_some));
        }
    }

    #[test]
    fn a_request_is_named_by_its_line() {
        let request = Request::new(
            b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            Expect::default(),
        );
        assert_eq!(request.name, "GET /a?b");
    }
}
