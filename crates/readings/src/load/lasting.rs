//! What a load of exchanges that last measured: streams of events, WebSockets, gRPC calls.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::sums::add_count;

/// The longest message that a load sends on a WebSocket, bytes; the shortest is empty.
pub const SOCKET_MESSAGE_BYTES_MAX: u32 = 16 << 20;
/// Most messages that a load streams in a gRPC call.
pub const CALL_MESSAGES_MAX: u32 = 10_000_000;

/// What is said on connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// Requests with one answer each.
    #[default]
    Answers,
    /// Answers that are streams of events.
    Events,
    /// WebSocket messages.
    WebSocket,
    /// gRPC calls.
    Grpc,
}

impl TrafficKind {
    /// Whether requests have one answer each.
    pub fn is_answers(&self) -> bool {
        *self == TrafficKind::Answers
    }
}

/// How a stream is cut into events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventFormat {
    /// By the answer's `Content-Type`: `text/event-stream`, a type of JSON lines, or reads.
    #[default]
    Auto,
    /// Server-sent events (HTML standard, 9.2).
    Sse,
    /// Lines that are not empty: NDJSON, JSON Lines.
    Lines,
    /// Each read of content is one event: chunks of a format that is not known.
    Reads,
}

impl EventFormat {
    pub const ALL: [EventFormat; 4] = [
        EventFormat::Auto,
        EventFormat::Sse,
        EventFormat::Lines,
        EventFormat::Reads,
    ];

    /// The word on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            EventFormat::Auto => "auto",
            EventFormat::Sse => "sse",
            EventFormat::Lines => "lines",
            EventFormat::Reads => "reads",
        }
    }
}

/// What the lag of messages is counted from; the one that says more comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LagBase {
    /// The due times that the sender wrote into its messages, by the same clock.
    Sender,
    /// The same by another clock: the least lag of each exchange counts as 0.
    SenderOfOtherClock,
    /// The first message and the pace that the user named.
    Pace,
}

/// Exchanges with messages, and connections that last, in the measured windows.
///
/// WebSocket echoes and unary gRPC calls are requests of the load ([`super::LoadReading::requests`]);
/// here stands what a request with one answer does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastingReading {
    pub traffic: TrafficKind,
    /// Exchanges that opened in the whole load: streams, WebSockets, calls.
    pub opened: u64,
    /// The fewest that were open at the end of a measured window; WebSockets after their handshake. Over
    /// several machines, the sum of what was fewest on each: at least so many were open.
    pub open_min: u64,
    /// Messages that the members of topics were to receive: those that were sent while they were open.
    /// 0 without topics.
    pub expected: u64,
    /// Messages received, of exchanges with several for a request.
    pub messages: u64,
    /// Their bytes, framing excluded.
    pub message_bytes: u64,
    /// From the request to the first message, ns.
    pub first_message: Histogram,
    /// Between two messages of an exchange, ns.
    pub gap: Histogram,
    /// From a message of the client's to its answer, ns, in calls with streams both ways.
    pub answer: Histogram,
    /// How late messages arrived, ns; empty where no due times are known.
    pub lag: Histogram,
    /// What [`Self::lag`] is counted from; of several the one that says least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_base: Option<LagBase>,
    /// Gaps above the bound: ten paces, or what the user named.
    pub stalls: u64,
    pub stall_longest_s: f64,
    /// Numbers that never came; of topics, messages that did not reach a member that was to receive them.
    pub lost: u64,
    /// Messages that were due in the window, and had not come when their exchange was cut. They count in
    /// [`Self::lag`] with the time until then: they were at least so late.
    #[serde(default)]
    pub overdue: u64,
    /// Exchanges that opened and had no message.
    #[serde(default)]
    pub without_message: u64,
    /// Messages that came together with the one before, although they were due at least half a pace
    /// later: something on the way held them back.
    pub merged: u64,
    /// Numbers that came after a greater one.
    pub reordered: u64,
    /// Numbers that came twice.
    pub repeated: u64,
    /// How exchanges ended, the most frequent first.
    pub ends: Vec<ExchangeEnd>,
    /// From the loss of a connection to its next one being open, ns.
    pub reconnect: Histogram,
    /// Attempts to open a connection again that failed.
    #[serde(default)]
    pub reconnect_failed: u64,
    /// Losses and reconnections over time, where rows were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionsRow>,
}

/// How exchanges ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeEnd {
    /// `end` as the format says, `window` by the client at the end of the measured window, `retired`,
    /// `close 1001`, `grpc-status 14`, `unfinished`, `closed`, `reset`, `silent`, `malformed`, ...
    pub how: String,
    /// Whether it was cut: neither client nor format ended it.
    pub is_cut: bool,
    pub count: u64,
}

/// Connections in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionsRow {
    /// From the start of the measured window, s.
    pub start_s: f64,
    pub open: u64,
    pub cut: u64,
    pub opened: u64,
}

/// Counts the end of an exchange among others.
pub fn count_end(ends: &mut Vec<ExchangeEnd>, how: &str, is_cut: bool, count: u64) {
    match ends.iter_mut().find(|one| one.how == how) {
        Some(known) => add_count(&mut known.count, count),
        None => ends.push(ExchangeEnd {
            how: how.to_owned(),
            is_cut,
            count,
        }),
    }
}

impl LastingReading {
    /// Counts the end of an exchange.
    pub fn count_end(&mut self, how: &str, is_cut: bool, count: u64) {
        count_end(&mut self.ends, how, is_cut, count);
    }

    /// Whether exchanges had messages: then they may outlast any window, and their requests say little.
    pub fn has_messages(&self) -> bool {
        self.messages > 0
    }

    /// The share of the messages to members of topics that reached them.
    pub fn reach(&self) -> Option<f64> {
        let expected = Some(self.expected).filter(|count| *count > 0)?;
        Some(expected.saturating_sub(self.lost) as f64 / expected as f64)
    }

    /// Exchanges that were cut.
    pub fn cut(&self) -> u64 {
        let cut = self.ends.iter().filter(|one| one.is_cut);
        cut.map(|one| one.count).sum()
    }

    /// Adds what another thread or host measured.
    pub fn add(&mut self, part: &LastingReading) {
        add_count(&mut self.opened, part.opened);
        add_count(&mut self.open_min, part.open_min);
        add_count(&mut self.expected, part.expected);
        add_count(&mut self.messages, part.messages);
        add_count(&mut self.message_bytes, part.message_bytes);
        self.first_message.merge(&part.first_message);
        self.gap.merge(&part.gap);
        self.answer.merge(&part.answer);
        self.lag.merge(&part.lag);
        self.lag_base = self.lag_base.max(part.lag_base);
        add_count(&mut self.stalls, part.stalls);
        self.stall_longest_s = self.stall_longest_s.max(part.stall_longest_s);
        add_count(&mut self.lost, part.lost);
        add_count(&mut self.overdue, part.overdue);
        add_count(&mut self.without_message, part.without_message);
        add_count(&mut self.merged, part.merged);
        add_count(&mut self.reordered, part.reordered);
        add_count(&mut self.repeated, part.repeated);
        for end in &part.ends {
            self.count_end(&end.how, end.is_cut, end.count);
        }
        self.ends.sort_by_key(|one| std::cmp::Reverse(one.count));
        self.reconnect.merge(&part.reconnect);
        add_count(&mut self.reconnect_failed, part.reconnect_failed);
        for (at, row) in part.connections.iter().enumerate() {
            match self.connections.get_mut(at) {
                Some(sum) => {
                    add_count(&mut sum.open, row.open);
                    add_count(&mut sum.cut, row.cut);
                    add_count(&mut sum.opened, row.opened);
                }
                None => self.connections.push(*row),
            }
        }
    }
}
