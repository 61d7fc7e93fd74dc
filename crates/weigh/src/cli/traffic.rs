//! Options of streams of events, gRPC calls, WebSockets and idle connections.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use load::{Idle, SocketFlow, Traffic};

use crate::units;

/// The kinds of traffic.
#[derive(Clone, Debug, Default, Args)]
pub struct TrafficArgs {
    #[command(flatten)]
    pub events: EventArgs,
    #[command(flatten)]
    pub grpc: GrpcArgs,
    #[command(flatten)]
    pub websocket: WebSocketArgs,
}

impl TrafficArgs {
    /// As a target has it, where neither the URL nor a gRPC method says more.
    pub fn traffic(&self) -> Traffic {
        match self.events.events {
            None => Traffic::Answers,
            Some(format) => Traffic::Events(load::Events {
                format: format.into(),
                pace: self.events.pace,
                stall: self.events.stall,
            }),
        }
    }
}

/// Streams of events.
#[derive(Clone, Debug, Default, Args)]
#[command(group = ArgGroup::new("event_streams").args(["events"]))]
pub struct EventArgs {
    /// Take each answer as a stream and time every event in it: server-sent events, lines that are
    /// not empty, or what each read brings; `auto` goes by the answer's Content-Type. Streams that
    /// outlast the load are closed at its end. --timeout limits the silence.
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    pub events: Option<EventFormat>,
    /// The sender's pace, if its events carry no due times; the first event counts as on time.
    #[arg(long, value_name = "TIME", value_parser = units::some_time, requires = "event_streams")]
    pub pace: Option<Duration>,
    /// A longer gap between two events is a stall [default: ten times the pace, if it is known].
    #[arg(long, value_name = "TIME", value_parser = units::some_time, requires = "event_streams")]
    pub stall: Option<Duration>,
}

/// gRPC calls.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "gRPC")]
pub struct GrpcArgs {
    /// Call this method over HTTP/2, such as weigh.v1.Echo/Unary, with --body as the message: JSON,
    /// by the schema of --proto or of the server's reflection, or, if it does not begin with {, an
    /// encoded message.
    #[arg(long = "grpc", value_name = "PACKAGE.SERVICE/METHOD")]
    pub method_name: Option<String>,
    /// A .proto file with the schema; may be repeated.
    #[arg(long, value_name = "FILE", requires = "method_name")]
    pub proto: Vec<PathBuf>,
    /// A folder in which imports are found [default: those of the files]; may be repeated.
    #[arg(long, value_name = "FOLDER", requires = "proto")]
    pub proto_path: Vec<PathBuf>,
    /// The deadline of a call, sent as grpc-timeout; a later answer is a failure.
    #[arg(long, value_name = "TIME", value_parser = units::some_time, requires = "method_name")]
    pub deadline: Option<Duration>,
    /// Messages that the client streams in a call, if the method takes a stream [default: 1].
    #[arg(long, value_name = "N", requires = "method_name", value_parser = clap::value_parser!(u32).range(1..=i64::from(readings::CALL_MESSAGES_MAX)))]
    pub call_messages: Option<u32>,
}

/// Messages on WebSockets.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "WebSocket (ws:// and wss:// URLs)")]
pub struct WebSocketArgs {
    /// Stop after this many messages instead of a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: Option<u64>,
    /// Bytes of a message [default: 32].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(readings::SOCKET_MESSAGE_BYTES_MAX)))]
    pub message_bytes: Option<u32>,
    /// Open loop: messages per second on each connection. A message waits for its own connection. With
    /// --fan-out: messages per second of each topic.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub message_rate: Option<f64>,
    /// Messages sent and not yet echoed, per connection [default: 1]; with --grpc, per call of a method
    /// that streams both ways.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub in_flight: Option<u32>,
    /// Messages before a connection is closed and another opened.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub retire_after: Option<u64>,
    /// Send nothing, and take what the server sends.
    #[arg(long, conflicts_with_all = ["fan_out", "messages", "message_bytes", "message_rate", "in_flight", "retire_after", "binary"])]
    pub receive: bool,
    /// Topics of N connections [default: one of all]: one connection of each sends, and all receive.
    /// Several topics have the path of the URL with -1, -2 and so on behind it.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        requires = "message_rate",
        conflicts_with_all = ["messages", "in_flight", "retire_after"]
    )]
    pub fan_out: Option<u32>,
    /// Binary messages instead of text.
    #[arg(long)]
    pub binary: bool,
    /// Offer permessage-deflate.
    #[arg(long)]
    pub deflate: bool,
}

impl WebSocketArgs {
    /// An option that was given, but for those that calls have too.
    pub fn given(&self, are_calls: bool) -> Option<&'static str> {
        let options = [
            ("--messages", self.messages.is_some()),
            ("--message-bytes", self.message_bytes.is_some()),
            ("--message-rate", self.message_rate.is_some()),
            ("--in-flight", self.in_flight.is_some() && !are_calls),
            ("--retire-after", self.retire_after.is_some()),
            ("--receive", self.receive),
            ("--fan-out", self.fan_out.is_some()),
            ("--binary", self.binary),
            ("--deflate", self.deflate),
        ];
        let given = options.into_iter().find(|(_, is_given)| *is_given);
        given.map(|(option, _)| option)
    }

    /// Who sends, on so many connections.
    pub fn flow(&self, connections: u32) -> SocketFlow {
        match (self.fan_out, self.message_rate) {
            (Some(members), Some(per_s)) => SocketFlow::FanOut {
                members: if members == 0 { connections } else { members },
                every: Duration::from_secs_f64(1.0 / per_s),
            },
            _ if self.receive => SocketFlow::Receive,
            _ => SocketFlow::Echo,
        }
    }
}

/// How a stream is cut into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EventFormat {
    /// By the answer's Content-Type.
    Auto,
    /// Server-sent events.
    Sse,
    /// Lines, as of NDJSON.
    Lines,
    /// What each read brings.
    Reads,
}

impl From<EventFormat> for load::EventFormat {
    fn from(format: EventFormat) -> Self {
        match format {
            EventFormat::Auto => load::EventFormat::Auto,
            EventFormat::Sse => load::EventFormat::Sse,
            EventFormat::Lines => load::EventFormat::Lines,
            EventFormat::Reads => load::EventFormat::Reads,
        }
    }
}

/// Connections that are held open without being used.
#[derive(Clone, Debug, Args)]
pub struct IdleArgs {
    /// Hold this many idle connections for --duration, up to 50,000. Each makes one request first.
    /// With --connections, --rate, --stages, --count or --each-connection a load runs beside them,
    /// otherwise there is none. The memory of a server on this machine is shown.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=50_000),
        conflicts_with_all = ["hosts", "crawl"]
    )]
    pub idle: Option<u32>,
    /// Make no request on idle connections.
    #[arg(long, requires = "idle")]
    pub idle_silent: bool,
    /// Send a ping on each idle connection at this interval, at least 1s; needs --http 2 or the URL of
    /// a WebSocket.
    #[arg(long, value_name = "TIME", value_parser = units::some_time, requires = "idle")]
    pub idle_ping: Option<Duration>,
}

impl IdleArgs {
    /// The idle connections that are asked for.
    pub fn idle(&self) -> Option<Idle> {
        self.idle.map(|connections| Idle {
            connections,
            is_silent: self.idle_silent,
            ping_every: self.idle_ping,
        })
    }
}
