//! What a load says on its connections, as the engine is told.

use std::time::Duration;

use experiment::{Call, LoadSpec};
use load::{CallKind, Events, Grpc, SocketFlow, Traffic, WebSocket};
use readings::TrafficKind;

/// `call` is what is known of the method where the load is made of calls.
pub(crate) fn traffic(load: &LoadSpec, call: Option<&Call>) -> Traffic {
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
            let flow = match (asked.fan_out, asked.message_rate) {
                (Some(members), Some(per_s)) => SocketFlow::FanOut {
                    members: if members == 0 {
                        load.connections
                    } else {
                        members
                    },
                    every: Duration::from_secs_f64(1.0 / per_s),
                },
                _ if asked.receive => SocketFlow::Receive,
                _ => SocketFlow::Echo,
            };
            Traffic::WebSocket(WebSocket {
                flow,
                in_flight: asked.in_flight.unwrap_or(usual.in_flight),
                message_bytes: asked.message_bytes.unwrap_or(usual.message_bytes),
                paced_by_connection: asked.message_rate.is_some(),
                ..usual
            })
        }
        TrafficKind::Grpc => Traffic::Grpc(Grpc {
            call: match call.map(|call| (call.client_streams, call.server_streams)) {
                Some((true, true)) => CallKind::Both,
                Some((true, false)) => CallKind::ClientStream,
                Some((false, true)) => CallKind::ServerStream,
                Some((false, false)) | None => CallKind::Unary,
            },
            messages: asked.call_messages.unwrap_or(1),
            in_flight: asked.in_flight.unwrap_or(1),
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
