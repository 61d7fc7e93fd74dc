//! What one load measured.

mod batches;
mod client;
mod errors;
mod idle;
mod lasting;
mod merge;
mod open_loop;
mod quic;
mod received;
mod slices;
mod tls;
mod users;
mod wrong;

pub use batches::Batch;
pub use client::{AcceptQueue, ClientReading, Fairness, HostReading, START_LATE_US, ThreadReading};
pub use errors::ErrorCounts;
pub use idle::{IdleClosed, IdleEnd, IdleHeld, IdleReading, IdleStage, ServerState};
pub use lasting::{
    CALL_MESSAGES_MAX, ConnectionsRow, EventFormat, ExchangeEnd, LagBase, LastingReading,
    SOCKET_MESSAGE_BYTES_MAX, TrafficKind, count_end,
};
pub use open_loop::{ClientPauses, Offered, Pause, Peaks};
pub use quic::{QuicCongestion, QuicReading, is_same_congestion};
pub use received::{ARRIVAL_SLOT_NS, AgeReading, Arrivals, Received, RequestBody};
pub use slices::{Answered, LATE_S, LoadRow, Silence, Slice};
pub use tls::{Negotiated, TlsReading};
pub use users::{GivenUp, UsersReading};
pub use wrong::{FIRST_ANSWER, NO_PORT, Wrong, WrongKind};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Histogram, Quantiles};
use slices::{is_zero, per_s};

/// The highest rate of an open loop, requests per second: far above what a client can send. Above it
/// the requests that are due would fill the memory within seconds.
pub const RATE_MAX_PER_S: f64 = 1e8;

/// How requests were timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pacing {
    /// Closed loop: each connection sends its next request when the last answer is complete.
    #[default]
    Closed,
    /// Open loop: requests are due at a rate, whatever the answers do.
    Open {
        /// Requests due per second, over all connections.
        rate_per_s: f64,
    },
}

/// What one load measured on one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReading {
    /// How requests were timed.
    pub pacing: Pacing,
    pub connections: u64,
    /// Good answers inside the measured windows.
    pub requests: u64,
    /// Measured time: the sum of the measured windows.
    pub duration_s: f64,
    /// Bytes read inside the measured windows, heads included.
    pub bytes_read: u64,
    /// Failures inside the measured windows.
    pub errors: ErrorCounts,
    /// Every answer and failure of the load, also outside the measured windows.
    pub errors_all: ErrorCounts,
    /// Good answers of the whole load, also outside the measured windows.
    pub requests_all: u64,
    /// Connections opened during the whole load.
    pub connects: u64,
    /// Streams of each connection, with HTTP/2 and HTTP/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Requests that were sent again: the server had not processed them (HTTP/2: GOAWAY, or a
    /// refused stream), or was closing the idle connection (HTTP/1.1).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resent: u64,
    /// The feed each of whose rows was to be used once: they were used up, which ended the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_up: Option<String>,
    /// The fewest connections that were open at the end of a measured window.
    pub connections_open_min: u64,
    /// Status codes seen, in ascending order.
    pub statuses: Vec<StatusCount>,
    /// Complete answer from the intended time, ns.
    pub response: Histogram,
    /// Complete answer from the time it was sent, ns.
    pub service: Histogram,
    /// Opening a connection, ns; a TLS handshake is not in it ([`TlsReading::handshake`]).
    pub connect: Histogram,
    /// First byte of the answer from the time the request was sent, ns.
    pub first_byte: Histogram,
    /// From the first byte to the complete answer, ns.
    pub transfer: Histogram,
    /// How late the client handled each due request, ns (open loop only). Waiting for a free
    /// connection is not in it: the servers cause that, and it is part of the response time.
    pub schedule_lag: Histogram,
    /// How late the client read what had arrived, ns. With kernel timestamps it is part of no other
    /// time. Without them this is empty, and the delay is part of response, service, first byte and
    /// transfer.
    pub receive_lag: Histogram,
    /// What the load cost the machine and whether it kept up.
    pub client: ClientReading,
    /// The stretches of load that make up the measured time.
    pub slices: Vec<Slice>,
    /// The slices of an open loop, several in a batch where there are many; empty with fewer than
    /// three. Loads that took slices in turns can be paired by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Batch>,
    /// The first few wrong answers, for the message that says what was wrong.
    pub wrong: Vec<Wrong>,
    /// Second by second, or as finely as was asked for; empty when no rows were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<LoadRow>,
    /// Rows that were left out because there were too many to keep.
    pub rows_left_out: u64,
    /// The longest times of the measured window without a good answer, in order of time; known
    /// where rows were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<Silence>,
    /// The stages of an open loop whose rate changes; empty when there is one rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageReading>,
    /// Each of several requests; empty when there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_request: Vec<RequestReading>,
    /// How evenly the answers fell on the connections.
    pub fairness: Option<Fairness>,
    /// What was offered and what was answered in time; of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Offered>,
    /// The largest response latencies over the measured time; of an open loop.
    #[serde(default, skip_serializing_if = "Peaks::is_empty")]
    pub peaks: Peaks,
    /// The pauses of the client; of an open loop in which there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<ClientPauses>,
    /// What each host contributed, where several made the load together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReading>,
    /// Its TLS sessions; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReading>,
    /// The congestion control that the kernel gives the client's TCP connections
    /// (`net.ipv4.tcp_congestion_control`), also where the load is over QUIC; several where hosts that
    /// make the load together differ. `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_congestion: Option<String>,
    /// Of a load over HTTP/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicReading>,
    /// Of a load whose exchanges last: streams of events, WebSockets, gRPC calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Box<LastingReading>>,
    /// Of a load whose requests are the steps of users' sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Box<UsersReading>>,
    /// How old answers say that they are; of a load that reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ages: Option<AgeReading>,
    /// Of a load beside which idle connections were held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleReading>,
    /// Accept queues of the servers that were full while the load went on, also outside the
    /// measured windows: a SYN is sent again a second later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_queues: Vec<AcceptQueue>,
    /// What each back end counted in the whole load, also outside the measured windows: to be compared
    /// with [`Self::requests_all`] and [`Self::errors_all`]. Empty where a back end of the path counts
    /// nothing, or several loads were made at once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub received: BTreeMap<String, Received>,
    /// When they received it, by slots of 10 ms, where [`Self::received`] is known and the load was one
    /// measured window of at most 164 s.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrivals: BTreeMap<String, Arrivals>,
    /// The rate limit that the server which the load addresses declares, requests per second. Answers
    /// with status 429 and 503 are good ones then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_per_s: Option<f64>,
    /// The body of each request; absent where they have none, or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_body: Option<RequestBody>,
}

impl LoadReading {
    /// A load of which nothing is known but how its requests were timed.
    pub fn empty(pacing: Pacing) -> Self {
        Self {
            pacing,
            ..Self::default()
        }
    }

    /// Messages received, where one request has several; 0 for requests with one answer.
    pub fn messages(&self) -> u64 {
        self.lasting.as_ref().map_or(0, |lasting| lasting.messages)
    }

    /// Good answers that came inside the measured windows, per second of measured time; 0 without
    /// measured time.
    ///
    /// In an open loop they count whenever their requests were due: what an overloaded server
    /// answers after the window is not in it, see [`Self::answered_per_s`]. In a closed loop those at
    /// the edges of slices count with their part ([`Slice::edges`]).
    pub fn requests_per_s(&self) -> f64 {
        // A reading without slices has the sum only, or nothing.
        let within = self.answered().map(|answered| answered.within);
        match within.or(self.offered.map(|offered| offered.answered_within)) {
            Some(within) => per_s(within as f64, self.duration_s),
            None => self.answered_per_s(),
        }
    }

    /// The answers to an open loop, over all slices; `None` where that was not recorded.
    pub fn answered(&self) -> Option<Answered> {
        let slices = self.slices.iter().map(|slice| slice.answered);
        slices.reduce(|a, b| {
            let (a, b) = a.zip(b)?;
            Some(Answered {
                within: a.within + b.within,
                after: a.after + b.after,
                after_s: a.after_s + b.after_s,
            })
        })?
    }

    /// Good answers per second of measured time; in an open loop to the requests that were due in it,
    /// whenever the answers came. In a closed loop those at the edges of slices count with their part
    /// ([`Slice::edges`]). 0 without measured time.
    pub fn answered_per_s(&self) -> f64 {
        per_s(self.weighted_requests(), self.duration_s)
    }

    /// Good answers, each weighted by the part of its time inside the measured windows. Only in closed
    /// loops do some count in part ([`Slice::edges`]).
    pub fn weighted_requests(&self) -> f64 {
        let edges: f64 = self.slices.iter().map(|slice| slice.edges).sum();
        self.requests as f64 + edges
    }

    /// Bytes read per second at [`Self::requests_per_s`], heads included.
    pub fn bytes_per_s(&self) -> f64 {
        let bytes_per_s = per_s(self.bytes_read as f64, self.duration_s);
        match (self.pacing, self.answered_per_s()) {
            (Pacing::Open { .. }, answered_per_s) if answered_per_s > 0.0 => {
                bytes_per_s * self.requests_per_s() / answered_per_s
            }
            _ => bytes_per_s,
        }
    }

    /// The requests that are due for each arrival: several where users arrive.
    pub fn requests_per_arrival(&self) -> f64 {
        match (&self.users, self.offered) {
            (Some(users), Some(offered)) if users.arrived > 0 => {
                offered.due as f64 / users.arrived as f64
            }
            _ => 1.0,
        }
    }

    /// Requests that an open loop offers per second, those of users included; `None` for a closed loop.
    pub fn offered_requests_per_s(&self) -> Option<f64> {
        match self.pacing {
            Pacing::Open { rate_per_s } => Some(rate_per_s * self.requests_per_arrival()),
            Pacing::Closed => None,
        }
    }

    /// The typical time that opening a connection takes, TLS handshake included, us.
    pub fn opening_us_p50(&self) -> f64 {
        let handshake = self.tls.as_ref().map(|tls| match tls.handshake.count() {
            0 => tls.resumed_handshake.quantile_us(0.5),
            _ => tls.handshake.quantile_us(0.5),
        });
        self.connect.quantile_us(0.5) + handshake.unwrap_or(0.0)
    }

    /// The congestion control of the client's connections: QUIC's with HTTP/3, otherwise TCP's.
    pub fn congestion(&self) -> Option<&str> {
        match &self.quic {
            Some(quic) => quic.congestion.as_deref(),
            None => self.tcp_congestion.as_deref(),
        }
    }

    /// Drops the histograms of stages and of single requests. Their quantiles stay.
    pub fn keep_quantiles_only(&mut self) {
        let stages = self.stages.iter_mut().map(|one| &mut one.response);
        let requests = self.per_request.iter_mut().map(|one| &mut one.response);
        stages
            .chain(requests)
            .for_each(|histogram| *histogram = Histogram::empty());
    }

    /// How many occasions stand behind the response latencies from a threshold on, of which a pause
    /// of the machine is one; `None` where that was not recorded.
    pub fn exceedances(&self, threshold_us: f64) -> Option<usize> {
        (!self.peaks.is_empty()).then(|| self.peaks.exceedances(threshold_us))
    }
}

fn has_no_values(histogram: &Histogram) -> bool {
    histogram.count() == 0
}

/// A stage of an open loop: a stretch at one rate, or over which the rate changes evenly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageReading {
    pub duration_s: f64,
    /// Requests due per second at its start.
    pub from_per_s: f64,
    /// Requests due per second at its end.
    pub to_per_s: f64,
    /// Requests that became due in it.
    pub due: u64,
    /// Good answers to those.
    pub requests: u64,
    pub errors: u64,
    /// The response times of the good answers.
    pub latency_us: Quantiles,
    /// What was answered while it went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Offered>,
    /// The response times in full, in a reading that is to be merged with those of other hosts; ns.
    #[serde(default = "Histogram::empty", skip_serializing_if = "has_no_values")]
    pub response: Histogram,
}

/// One of several requests that a load sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestReading {
    /// Its name: method and path.
    pub name: String,
    /// Good answers.
    pub requests: u64,
    pub errors: u64,
    /// The response times of the good answers.
    pub latency_us: Quantiles,
    /// The response times in full, in a reading that is to be merged with those of other hosts; ns.
    #[serde(default = "Histogram::empty", skip_serializing_if = "has_no_values")]
    pub response: Histogram,
}

/// How often a status code was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCount {
    pub status: u16,
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_has_the_rate_of_what_came_inside_its_windows() {
        let slice = |within| Slice {
            duration_s: 1.0,
            requests: 1_500,
            answered: Some(Answered {
                within,
                after: 1_500 - within,
                after_s: 1.5,
            }),
            ..Slice::default()
        };
        let mut load = LoadReading {
            requests: 3_000,
            duration_s: 2.0,
            bytes_read: 300_000,
            slices: vec![slice(590), slice(610)],
            ..LoadReading::empty(Pacing::Open {
                rate_per_s: 1_500.0,
            })
        };
        assert_eq!(load.requests_per_s(), 600.0);
        assert_eq!(load.answered_per_s(), 1_500.0);
        assert_eq!(load.bytes_per_s(), 60_000.0);
        assert_eq!(load.answered().unwrap().after, 1_800);
        // Without slices there is the sum.
        load.slices.clear();
        load.offered = Some(Offered {
            answered_within: 1_000,
            ..Offered::default()
        });
        assert_eq!(load.requests_per_s(), 500.0);
        load.offered = None;
        assert_eq!(load.requests_per_s(), 1_500.0);
        assert_eq!(load.bytes_per_s(), 150_000.0);
    }

    #[test]
    fn fairness_is_one_when_equal_and_a_share_when_one_has_all() {
        assert_eq!(Fairness::of(&[7, 7, 7]).unwrap().jain, 1.0);
        let one = Fairness::of(&[0, 0, 8, 0]).unwrap();
        assert_eq!((one.min, one.max, one.mean, one.jain), (0, 8, 2.0, 0.25));
        assert_eq!(Fairness::of(&[0, 0]), None);
        assert_eq!(Fairness::of(&[]), None);
    }
}
