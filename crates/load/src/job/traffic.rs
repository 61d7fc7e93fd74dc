//! What is said on a target's connections, besides requests with one answer.

use std::time::Duration;

pub(crate) use readings::EventFormat;
use readings::TrafficKind;
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
}

impl Traffic {
    /// Its kind.
    pub fn kind(&self) -> TrafficKind {
        match self {
            Traffic::Answers => TrafficKind::Answers,
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

    /// Whether an answer may have no end.
    pub(crate) fn may_last(&self) -> bool {
        match self {
            Traffic::Answers => false,
            Traffic::Events(_) | Traffic::WebSocket(_) => true,
            Traffic::Grpc(grpc) => matches!(grpc.call, CallKind::ServerStream | CallKind::Both),
        }
    }

    /// Whether requests have one answer each.
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

/// WebSocket connections, which send messages, each of which comes back.
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
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            in_flight: 1,
            message_bytes: 32,
            is_binary: false,
            deflate: false,
            paced_by_connection: false,
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
    /// A message is sent when the one before was answered.
    Both,
}

/// gRPC calls; the target's requests have the messages, without their prefixes, as bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grpc {
    pub call: CallKind,
    /// Messages that the client sends in a call, of a stream of its own.
    pub messages: u32,
    /// `grpc-timeout`; calls that are not over by then fail.
    #[serde(with = "serde_as::option_ns")]
    pub deadline: Option<Duration>,
}
