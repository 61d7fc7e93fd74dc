//! What a load says on its connections, as the engine is told.

use std::time::Duration;

use experiment::LoadSpec;
use load::{CallKind, Events, Grpc, SocketFlow, Traffic, WebSocket};
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
            call: match (asked.call_messages, asked.in_flight) {
                (_, Some(_)) => CallKind::Both,
                (Some(_), None) => CallKind::ClientStream,
                (None, None) => CallKind::Unary,
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
