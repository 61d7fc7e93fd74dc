//! What is said on a target's connections, besides requests with one answer.

use std::time::Duration;

pub(crate) use readings::EventFormat;
use readings::TrafficKind;
use readings::requests::Capture;
use serde::{Deserialize, Serialize};

use super::serde_as;

/// What is said on connections. All targets of a job with one that is not [`Traffic::Answers`] are
/// served by the worker for exchanges that last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Traffic {
    /// Requests with one answer each.
    #[default]
    Answers,
    /// Each request is answered by a stream of events.
    Events(Events),
    /// WebSocket messages; the request is that of the handshake.
    WebSocket(WebSocket),
    /// gRPC calls, over HTTP/2.
    Grpc(Grpc),
    /// Requests with one answer each that is looked into; in rounds they are the steps of users'
    /// sessions.
    Users(Users),
}

impl Traffic {
    /// Its kind.
    pub fn kind(&self) -> TrafficKind {
        match self {
            Traffic::Answers | Traffic::Users(_) => TrafficKind::Answers,
            Traffic::Events(_) => TrafficKind::Events,
            Traffic::WebSocket(_) => TrafficKind::WebSocket,
            Traffic::Grpc(_) => TrafficKind::Grpc,
        }
    }

    /// The deadline of its calls.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match self {
            Traffic::Grpc(grpc) => grpc.deadline,
            _ => None,
        }
    }

    /// The WebSockets.
    pub(crate) fn websocket(&self) -> Option<&WebSocket> {
        match self {
            Traffic::WebSocket(websocket) => Some(websocket),
            _ => None,
        }
    }

    /// Whether messages come on WebSockets that are no answers to others.
    pub(crate) fn is_one_way(&self) -> bool {
        self.websocket().is_some_and(WebSocket::is_one_way)
    }

    /// Whether a call streams messages both ways, each of which is answered.
    pub(crate) fn streams_both_ways(&self) -> bool {
        matches!(self, Traffic::Grpc(grpc) if grpc.call == CallKind::Both)
    }

    /// The users, where requests are the steps of their sessions.
    pub(crate) fn users(&self) -> Option<&Users> {
        match self {
            Traffic::Users(users) if users.in_rounds => Some(users),
            _ => None,
        }
    }

    pub(crate) fn reads_ages(&self) -> bool {
        matches!(self, Traffic::Users(users) if users.reads_ages)
    }

    /// Whether an answer may have no end.
    pub(crate) fn may_last(&self) -> bool {
        match self {
            Traffic::Answers | Traffic::Users(_) => false,
            Traffic::Events(_) | Traffic::WebSocket(_) => true,
            Traffic::Grpc(grpc) => matches!(grpc.call, CallKind::ServerStream | CallKind::Both),
        }
    }

    /// Whether requests have one answer each, and nothing else is done with it.
    pub fn is_answers(&self) -> bool {
        matches!(self, Traffic::Answers)
    }
}

/// Streams of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// How events are told apart.
    pub format: EventFormat,
    /// The pace of the sender, where its events do not say when they are due.
    #[serde(with = "serde_as::option_ns")]
    pub pace: Option<Duration>,
    /// The gap above which it is a stall; `None` for ten paces.
    #[serde(with = "serde_as::option_ns")]
    pub stall: Option<Duration>,
}

/// WebSocket connections and their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSocket {
    /// Messages of a connection that are not answered yet, at most; at least 1.
    pub in_flight: u32,
    /// Bytes of a message.
    pub message_bytes: u32,
    /// Binary messages instead of text.
    pub is_binary: bool,
    /// Whether `permessage-deflate` is offered (RFC 7692).
    pub deflate: bool,
    /// Whether the due messages of an open loop belong to their connections in turn, so that one
    /// that stalls keeps its own waiting. Otherwise any connection takes them.
    pub paced_by_connection: bool,
    /// Who sends.
    pub flow: SocketFlow,
}

/// Who sends the messages of WebSockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketFlow {
    /// The client; each message comes back.
    #[default]
    Echo,
    /// The server alone. A WebSocket is an exchange, as a stream of events is.
    Receive,
    /// The first member of each topic, at a pace; all members receive. Otherwise as [`Self::Receive`].
    FanOut {
        /// Connections of a topic, which are of one thread.
        members: u32,
        /// From one message of a topic to the next.
        #[serde(rename = "every_ns", with = "serde_as::ns")]
        every: Duration,
    },
}

impl WebSocket {
    /// Whether messages are no answers to others.
    pub(crate) fn is_one_way(&self) -> bool {
        self.flow != SocketFlow::Echo
    }

    /// The connections of a topic, and the pace of its messages.
    pub(crate) fn fan_out(&self) -> Option<(u32, Duration)> {
        match self.flow {
            SocketFlow::FanOut { members, every } => Some((members, every)),
            _ => None,
        }
    }

    /// The most threads, of so many, among which topics can be shared evenly: a topic is of one.
    pub(crate) fn threads(&self, connections: u32, threads: u32) -> u32 {
        let Some((members, _)) = self.fan_out() else {
            return threads;
        };
        let topics = connections / members.max(1);
        let even = |count: &u32| topics.is_multiple_of(*count);
        (1..=threads).rev().find(even).unwrap_or(1)
    }
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            in_flight: 1,
            message_bytes: 32,
            is_binary: false,
            deflate: false,
            paced_by_connection: false,
            flow: SocketFlow::Echo,
        }
    }
}

/// The messages of a gRPC method, from the client's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// One message each way.
    #[default]
    Unary,
    /// One message, then a stream of the server's.
    ServerStream,
    /// A stream of the client's, then one message.
    ClientStream,
    /// A stream each way, in which each message is answered.
    Both,
}

/// gRPC calls; the target's requests have the messages, without their prefixes, as bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grpc {
    pub call: CallKind,
    /// Messages that the client sends in a call, of a stream of its own.
    pub messages: u32,
    /// Of them, those that are not answered yet, where each is answered; at most, at least 1.
    pub in_flight: u32,
    /// `grpc-timeout`; calls that are not over by then fail.
    #[serde(with = "serde_as::option_ns")]
    pub deadline: Option<Duration>,
}

/// Users, each of whom has a place, which is a connection or a stream of one, while its session lasts.
///
/// A user of an open loop is due at a time, makes one round of the requests in order, and leaves. In a
/// closed loop a round is that of a new user, and there is always the next; if some steps are made
/// once, the user stays round after round. A user of whom a step failed leaves in both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Users {
    /// What each of the target's requests is as a step.
    pub steps: Vec<Step>,
    /// Whether requests are made in rounds. Otherwise there are no sessions: requests are chosen as
    /// always, and only their answers are looked into.
    pub in_rounds: bool,
    /// Whether the ages of answers are read.
    #[serde(default)]
    pub reads_ages: bool,
    /// Whether users keep cookies.
    pub keeps_cookies: bool,
    /// Names of what is captured.
    pub captured: Vec<String>,
}

/// A request as a step of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The user's pause before it; before the first step it lies between two rounds of a closed loop.
    #[serde(rename = "pause_ns", with = "serde_as::ns")]
    pub pause: Duration,
    /// Whether only the first round of a user has it.
    pub is_once: bool,
    /// What the user keeps of its answer, for later requests.
    pub captures: Vec<Capture>,
    /// Values in its answer's body, which is JSON: pointer (RFC 6901) and value.
    pub json: Vec<(String, serde_json::Value)>,
    /// Header fields of its answer: name in lower case, and value.
    pub fields: Vec<(String, String)>,
}

impl Users {
    /// The step that follows one in its round, or that begins it.
    pub(crate) fn next(&self, after: Option<usize>, is_first_round: bool) -> Option<usize> {
        let from = after.map_or(0, |step| step + 1);
        (from..self.steps.len()).find(|step| is_first_round || !self.steps[*step].is_once)
    }

    /// Whether users stay round after round of a closed loop.
    pub(crate) fn stay(&self) -> bool {
        self.steps.iter().any(|step| step.is_once)
    }
}
