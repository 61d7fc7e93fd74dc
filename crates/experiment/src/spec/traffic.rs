//! Streams of events, WebSockets and gRPC calls as a load's traffic.

use std::sync::Arc;
use std::time::Duration;

use super::call::{Call, MessageFile, SchemaFiles};
use readings::{EventFormat, TrafficKind};

/// The kind of a load's traffic and its settings. Without one of the three kinds: requests with one
/// answer each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficSpec {
    /// Answers are streams of events that are told apart like this.
    pub events: Option<EventFormat>,
    /// The sender's pace, if its events carry no due times.
    pub pace: Option<Duration>,
    /// A longer gap between two events is a stall; `None` for ten paces.
    pub stall: Option<Duration>,
    /// Connections are WebSockets.
    pub websocket: bool,
    /// Messages sent and not yet answered, per WebSocket, `None` for 1; a call with it streams both
    /// ways.
    pub in_flight: Option<u32>,
    /// Bytes of a message that a WebSocket sends; `None` for 32.
    pub message_bytes: Option<u32>,
    /// Messages per second on each WebSocket, in an open loop; of each topic, with `fan_out`.
    pub message_rate: Option<f64>,
    /// Only the servers send.
    pub receive: bool,
    /// Connections of a topic, on which one sends and all receive; 0 for one topic of all.
    pub fan_out: Option<u32>,
    /// Messages after which a WebSocket is closed and another opened.
    pub retire_after: Option<u64>,
    /// The method that is called, as `package.Service/Method`.
    pub grpc: Option<String>,
    /// Files with its schema.
    pub proto: Option<Arc<SchemaFiles>>,
    /// A file with the message, instead of the load's body.
    pub body_file: Option<Arc<MessageFile>>,
    /// What each call sends, once that is known.
    pub call: Option<Arc<Call>>,
    /// Messages that the client streams in a call; `None` for 1.
    pub call_messages: Option<u32>,
    /// The deadline of a call, sent as `grpc-timeout`.
    pub deadline: Option<Duration>,
}

impl TrafficSpec {
    pub fn kind(&self) -> TrafficKind {
        match self {
            Self {
                events: Some(_), ..
            } => TrafficKind::Events,
            Self {
                websocket: true, ..
            } => TrafficKind::WebSocket,
            Self { grpc: Some(_), .. } => TrafficKind::Grpc,
            _ => TrafficKind::Answers,
        }
    }

    /// Whether the sender sets the pace: how many exchanges there are in a second says nothing of
    /// it, and no rate can be asked of it.
    pub fn is_paced_by_sender(&self) -> bool {
        let call = self.call.as_ref();
        let is_sent = call.is_some_and(|call| call.server_streams && !call.client_streams);
        self.events.is_some() || self.receive || self.fan_out.is_some() || is_sent
    }
}

/// A change of one key of the traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficChange {
    Events(Option<EventFormat>),
    Pace(Duration),
    Stall(Duration),
    /// `websocket`
    WebSocket(bool),
    InFlight(u32),
    MessageBytes(u32),
    MessageRate(f64),
    Receive(bool),
    FanOut(Option<u32>),
    RetireAfter(u64),
    Grpc(String),
    CallMessages(u32),
    Deadline(Duration),
}

impl TrafficChange {
    pub(crate) fn apply(&self, traffic: &mut TrafficSpec) {
        match self {
            Self::Events(format) => traffic.events = *format,
            Self::Pace(pace) => traffic.pace = Some(*pace),
            Self::Stall(bound) => traffic.stall = Some(*bound),
            Self::WebSocket(value) => traffic.websocket = *value,
            Self::InFlight(count) => traffic.in_flight = Some(*count),
            Self::MessageBytes(bytes) => traffic.message_bytes = Some(*bytes),
            Self::MessageRate(per_s) => traffic.message_rate = Some(*per_s),
            Self::Receive(value) => traffic.receive = *value,
            Self::FanOut(members) => traffic.fan_out = *members,
            Self::RetireAfter(count) => traffic.retire_after = Some(*count),
            Self::Grpc(method) => traffic.grpc = Some(method.clone()),
            Self::CallMessages(count) => traffic.call_messages = Some(*count),
            Self::Deadline(limit) => traffic.deadline = Some(*limit),
        }
    }
}
