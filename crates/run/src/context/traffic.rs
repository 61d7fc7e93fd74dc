//! What a load says on its connections, as the engine is told.

use experiment::LoadSpec;
use load::{CallKind, Events, Grpc, Traffic, WebSocket};
use readings::TrafficKind;

pub(crate) fn traffic(load: &LoadSpec) -> Traffic {
    let asked = &load.traffic;
    match asked.kind() {
        TrafficKind::Answers => Traffic::Answers,
        TrafficKind::Events => Traffic::Events(Events {
            format: asked.events.unwrap_or_default(),
            pace: asked.pace,
            stall: asked.stall,
        }),
        TrafficKind::WebSocket => {
            let usual = WebSocket::default();
            Traffic::WebSocket(WebSocket {
                in_flight: asked.in_flight.unwrap_or(usual.in_flight),
                message_bytes: asked.message_bytes.unwrap_or(usual.message_bytes),
                paced_by_connection: asked.message_rate.is_some(),
                ..usual
            })
        }
        TrafficKind::Grpc => Traffic::Grpc(Grpc {
            call: match asked.call_messages {
                None => CallKind::Unary,
                Some(_) => CallKind::ClientStream,
            },
            messages: asked.call_messages.unwrap_or(1),
            deadline: asked.deadline,
        }),
    }
}

/// Requests, or messages of a WebSocket, after which a connection is closed.
pub(crate) fn per_connection(load: &LoadSpec) -> Option<u64> {
    match load.keepalive {
        true => load.requests_per_connection.or(load.traffic.retire_after),
        false => Some(1),
    }
}
