//! What a thread records.

mod batches;
mod connections;
pub(crate) mod merge;
pub(crate) mod messages;
pub(crate) mod open_loop;
pub(crate) mod rows;
mod silence;

use std::collections::HashMap;

use net::Handshake;
use readings::{
    AgeReading, ErrorCounts, Histogram, LoadRow, Negotiated, Pacing, QuicReading, RequestReading,
    Slice, StageReading, TlsReading, TrafficKind, UsersReading, Wrong,
};

use crate::job::Stage;
use crate::job::target::Target;
use crate::record::connections::Connections;
use crate::record::messages::Messages;
use crate::record::open_loop::OpenRecorder;
use crate::record::silence::Gaps;

/// Wrong answers that are kept as examples.
const WRONG_MAX: usize = 5;
/// With more requests than this, each has counts, but no histogram of its own.
const HISTOGRAMS_MAX: usize = 64;

/// The row under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowStats {
    pub(crate) row: LoadRow,
    /// Response times of the good answers that are not in [`Recorder::plain`].
    pub(crate) response: Histogram,
}

/// The counts of one stage.
#[derive(Clone, Debug)]
pub(crate) struct StageStats {
    pub(crate) stage: Stage,
    pub(crate) due: u64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) response: Histogram,
}

/// The counts of one of several requests.
#[derive(Clone, Debug)]
pub(crate) struct RequestStats {
    pub(crate) name: String,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) response: Option<Box<Histogram>>,
}

/// One thread's recordings for one reading. Its memory is allocated at the start, except for batches,
/// and does not grow with the length of the load.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) pacing: Pacing,
    pub(crate) target: usize,
    pub(crate) errors_all: ErrorCounts,
    pub(crate) requests_all: u64,
    pub(crate) requests: u64,
    pub(crate) errors: ErrorCounts,
    pub(crate) bytes_read: u64,
    pub(crate) connects: u64,
    /// Requests that were sent again.
    pub(crate) resent: u64,
    pub(crate) statuses: Vec<u64>,
    /// Answers in one piece to requests that were sent when they were due: response, service and
    /// first-byte times are equal, and the transfer took no time. One histogram instead of four on
    /// the hot path; merged into those at the end of a row.
    pub(crate) plain: Histogram,
    pub(crate) response: Histogram,
    pub(crate) service: Histogram,
    pub(crate) connect: Histogram,
    pub(crate) first_byte: Histogram,
    pub(crate) transfer: Histogram,
    pub(crate) schedule_lag: Histogram,
    pub(crate) receive_lag: Histogram,
    pub(crate) row: RowStats,
    pub(crate) stages: Vec<StageStats>,
    /// Of each name, if there are several.
    pub(crate) per_request: Vec<RequestStats>,
    /// The number of each request's name; empty where each has its own.
    name_of: Vec<u32>,
    /// The feed whose rows were used up, which ended the load.
    pub(crate) used_up: Option<String>,
    /// Kept where there are rows.
    pub(crate) gaps: Gaps,
    /// Good answers by connection.
    pub(crate) by_conn: Vec<u64>,
    /// One per segment, in order.
    pub(crate) slices: Vec<Slice>,
    /// Open connections at the end of each segment's window.
    pub(crate) open: Vec<u64>,
    pub(crate) wrong: Vec<Wrong>,
    /// Of a kind whose exchanges have messages.
    pub(crate) messages: Option<Box<Messages>>,
    /// Of a target whose connections last.
    pub(crate) connections: Option<Box<Connections>>,
    /// Of a target whose requests are the steps of sessions.
    pub(crate) users: Option<Box<UsersReading>>,
    /// Of a target whose answers' ages are read.
    pub(crate) ages: Option<AgeReading>,
    /// Of an open loop.
    pub(crate) open_loop: Option<Box<OpenRecorder>>,
    /// Of a target with TLS.
    pub(crate) tls: Option<Box<TlsReading>>,
    /// Of a target with HTTP/3.
    pub(crate) quic: Option<Box<QuicReading>>,
    /// Whether the thread polls, so that it always wants a CPU.
    pub(crate) polls: bool,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            statuses: vec![0; 1000],
            ..Self::default()
        }
    }

    /// Allocates what stages and several requests need.
    pub(crate) fn prepare(&mut self, target: &Target, stages: &[Stage]) {
        if stages.len() > 1 && self.stages.is_empty() {
            self.stages = stages
                .iter()
                .map(|&stage| StageStats {
                    stage,
                    due: 0,
                    requests: 0,
                    errors: 0,
                    response: Histogram::new(),
                })
                .collect();
        }
        if self.open_loop.is_none() && matches!(self.pacing, Pacing::Open { .. }) {
            self.open_loop = Some(Box::new(OpenRecorder::new(self.stages.len())));
        }
        if self.tls.is_none() && target.tls.is_some() {
            self.tls = Some(Box::default());
        }
        if self.quic.is_none() && target.http3.is_some() {
            self.quic = Some(Box::default());
        }
        let has_echoes = target.traffic.kind() == TrafficKind::WebSocket;
        let has_echoes = has_echoes && !target.traffic.is_one_way();
        if self.connections.is_none() && has_echoes {
            self.connections = Some(Box::new(Connections::of(target.traffic.kind())));
        }
        if target.traffic.users().is_some() && self.users.is_none() {
            let names = target.requests.iter().map(|request| request.name.as_str());
            self.users = Some(Box::new(UsersReading::of_steps(names)));
        }
        if target.traffic.reads_ages() {
            self.ages.get_or_insert_default();
        }
        if target.requests.len() > 1 && self.per_request.is_empty() {
            self.prepare_requests(target);
        }
    }

    /// Allocates what the requests need; those of the same name are counted together.
    fn prepare_requests(&mut self, target: &Target) {
        let mut known = HashMap::new();
        let mut names = Vec::new();
        let name_of = target.requests.iter().map(|request| {
            *known.entry(request.name.as_str()).or_insert_with(|| {
                names.push(request.name.clone());
                names.len() as u32 - 1
            })
        });
        let name_of: Vec<u32> = name_of.collect();
        let count = names.len();
        if count > 1 {
            let stats = |name| RequestStats {
                name,
                requests: 0,
                errors: 0,
                response: (count <= HISTOGRAMS_MAX).then(Box::default),
            };
            self.per_request = names.into_iter().map(stats).collect();
        }
        if count < target.requests.len() {
            self.name_of = name_of;
        }
    }

    /// The counts of the name of a request.
    #[inline]
    pub(crate) fn of_request(&mut self, request: u32) -> Option<&mut RequestStats> {
        let name = match self.name_of.get(request as usize) {
            Some(name) => *name,
            None => request,
        };
        self.per_request.get_mut(name as usize)
    }

    /// Records a handshake; `is_inside` the measured window or not.
    pub(crate) fn handshake(&mut self, handshake: &Handshake, is_inside: bool) {
        let Some(tls) = &mut self.tls else { return };
        tls.handshakes += 1;
        tls.resumed += u64::from(handshake.is_resumed);
        if is_inside {
            let took_ns = handshake.established_ns.saturating_sub(handshake.opened_ns);
            match handshake.is_resumed {
                true => tls.resumed_handshake.record_ns(took_ns),
                false => tls.handshake.record_ns(took_ns),
            }
        }
        let is_same = |one: &&mut Negotiated| {
            one.version == handshake.version
                && one.suite == handshake.suite
                && one.group.as_deref() == handshake.group
                && one.alpn.as_deref() == handshake.alpn
                && one.key.as_deref() == handshake.key
        };
        match tls.negotiated.iter_mut().find(is_same) {
            Some(known) => known.sessions += 1,
            None => tls.negotiated.push(Negotiated {
                version: handshake.version.into(),
                suite: handshake.suite.into(),
                group: handshake.group.map(Into::into),
                alpn: handshake.alpn.map(Into::into),
                key: handshake.key.map(Into::into),
                sessions: 1,
            }),
        }
    }

    pub(crate) fn keep_sample(&mut self, wrong: Wrong) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(wrong);
        }
    }

    /// Adds the row under way to the sums, and returns it.
    pub(crate) fn finish_row(&mut self) -> RowStats {
        if self.plain.count() > 0 {
            self.row.response.merge(&self.plain);
            self.service.merge(&self.plain);
            self.first_byte.merge(&self.plain);
            self.transfer.record_many_ns(0, self.plain.count());
            self.plain.clear();
        }
        self.response.merge(&self.row.response);
        let finished = self.row.clone();
        self.row.response.clear();
        self.row.row = LoadRow::default();
        finished
    }

    /// Adds another thread's recordings.
    pub(crate) fn merge(&mut self, part: Recorder) {
        self.errors_all.add(&part.errors_all);
        self.errors.add(&part.errors);
        self.requests_all += part.requests_all;
        self.requests += part.requests;
        self.bytes_read += part.bytes_read;
        self.connects += part.connects;
        self.resent += part.resent;
        self.used_up = self.used_up.take().or(part.used_up);
        for (a, b) in self.statuses.iter_mut().zip(&part.statuses) {
            *a += b;
        }
        self.response.merge(&part.response);
        self.service.merge(&part.service);
        self.connect.merge(&part.connect);
        self.first_byte.merge(&part.first_byte);
        self.transfer.merge(&part.transfer);
        self.schedule_lag.merge(&part.schedule_lag);
        self.receive_lag.merge(&part.receive_lag);
        for (a, b) in self.stages.iter_mut().zip(&part.stages) {
            a.due += b.due;
            a.requests += b.requests;
            a.errors += b.errors;
            a.response.merge(&b.response);
        }
        for (a, b) in self.per_request.iter_mut().zip(&part.per_request) {
            a.requests += b.requests;
            a.errors += b.errors;
            if let (Some(a), Some(b)) = (&mut a.response, &b.response) {
                a.merge(b);
            }
        }
        self.gaps.intersect(&part.gaps);
        self.by_conn.extend(&part.by_conn);
        for (a, b) in self.slices.iter_mut().zip(&part.slices) {
            a.requests += b.requests;
            a.errors += b.errors;
            a.client_cpu_s += b.client_cpu_s;
            a.client_waited_s += b.client_waited_s;
            a.edges += b.edges;
            a.add_answered(b);
            a.duration_s = a.duration_s.max(b.duration_s);
        }
        for (a, b) in self.open.iter_mut().zip(&part.open) {
            *a += b;
        }
        for wrong in part.wrong {
            self.keep_sample(wrong);
        }
        if let (Some(sum), Some(part)) = (&mut self.messages, &part.messages) {
            sum.merge(part);
        }
        if let (Some(sum), Some(part)) = (&mut self.connections, &part.connections) {
            sum.merge(part);
        }
        if let (Some(sum), Some(part)) = (&mut self.users, &part.users) {
            sum.add(part);
        }
        if let (Some(sum), Some(part)) = (&mut self.ages, &part.ages) {
            sum.add(part);
        }
        if let (Some(sum), Some(part)) = (&mut self.open_loop, &part.open_loop) {
            sum.merge(part);
        }
        if let (Some(sum), Some(part)) = (&mut self.tls, part.tls) {
            sum.add(*part);
        }
        if let (Some(sum), Some(part)) = (&mut self.quic, part.quic) {
            sum.add(&part);
        }
    }
}

impl StageStats {
    pub(crate) fn reading(&self) -> StageReading {
        StageReading {
            duration_s: self.stage.duration.as_secs_f64(),
            from_per_s: self.stage.from_per_s,
            to_per_s: self.stage.to_per_s,
            due: self.due,
            requests: self.requests,
            errors: self.errors,
            latency_us: self.response.quantiles(),
            offered: None,
            response: self.response.clone(),
        }
    }
}

impl RequestStats {
    pub(crate) fn reading(&self) -> RequestReading {
        let response = self.response.as_deref().cloned();
        let response = response.unwrap_or_else(Histogram::empty);
        RequestReading {
            name: self.name.clone(),
            requests: self.requests,
            errors: self.errors,
            latency_us: response.quantiles(),
            response,
        }
    }
}
