//! Answers that last: exchanges whose messages are due one after the other, without I/O and clocks.

mod call;
mod message;
mod paced;
mod query;
mod reflection;
mod socket;

use std::sync::{Arc, OnceLock};

use net::http::Request;

use crate::pages::ConnectionReuse;
use call::{Call, CallPlan};
use paced::{Paced, PacedFormat, PacedPlan};
use socket::{Socket, SocketPlan};

pub(crate) use query::parse_time;
pub(crate) use socket::close;

/// A checked request for an exchange that lasts.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Events(PacedPlan),
    Socket(SocketPlan),
    /// Only over HTTP/2.
    Call(CallPlan),
}

/// Why a request for an exchange that lasts is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// What is wrong, and what was expected.
    pub(crate) text: String,
}

impl Refusal {
    fn not_found(text: &str) -> Self {
        Self {
            status: 404,
            text: text.to_owned(),
        }
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { status: 400, text }
    }
}

impl Plan {
    /// What a request asks for; `None` if it asks for nothing that lasts.
    ///
    /// # Errors
    /// What is wrong with the request, and what was expected.
    pub(crate) fn of(request: &Request) -> Option<Result<Self, Refusal>> {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        if request.method == "CONNECT" && !path.starts_with("/ws/") {
            return Some(Err(no_tunnel(request)));
        }
        if let Some(count) = path.strip_prefix("/events/") {
            let plan = PacedPlan::parse("/events/", count, query, PacedFormat::Sse);
            return Some(plan.map(Plan::Events).map_err(Refusal::from));
        }
        if let Some(path) = path.strip_prefix("/ws/") {
            return Some(SocketPlan::parse(path, query, request).map(Plan::Socket));
        }
        CallPlan::of(request).map(|plan| Ok(Plan::Call(plan)))
    }

    /// The exchange, for a request that arrived at this time.
    pub(crate) fn begin(self, arrived_ns: u64) -> Exchange {
        match self {
            Plan::Events(plan) => Exchange::Events(Paced::new(plan, arrived_ns)),
            Plan::Socket(plan) => Exchange::Socket(Box::new(plan.begin(arrived_ns))),
            Plan::Call(plan) => Exchange::Call(Box::new(plan.begin(arrived_ns))),
        }
    }

    /// Whether the connection, or the stream, becomes a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        matches!(self, Plan::Socket(_))
    }

    /// The head of the answer in HTTP/1.1.
    pub(crate) fn head(&self, framing: Framing, persist: ConnectionReuse) -> Vec<u8> {
        let kind = match self {
            Plan::Events(plan) => plan.format.content_type(),
            Plan::Socket(plan) => return plan.head.clone().into_bytes(),
            Plan::Call(_) => net::grpc::CONTENT_TYPE,
        };
        let clock = clock_id();
        let mut head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\nWeigh-Clock: {clock}\r\n"
        );
        head.push_str(match framing {
            Framing::Chunked => "Transfer-Encoding: chunked\r\n",
            Framing::Bare => "",
        });
        head.push_str(match persist {
            ConnectionReuse::Closed => "Connection: close\r\n",
            ConnectionReuse::Kept => "",
            ConnectionReuse::KeptExplicitly => "Connection: keep-alive\r\n",
        });
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// Why a CONNECT is refused: its field `:protocol` is that of an extended one (RFC 8441).
fn no_tunnel(request: &Request) -> Refusal {
    match request.field(":protocol") {
        Some("websocket") => Refusal {
            status: 400,
            text: "no WebSocket is here; expected /ws/echo, /ws/topic/NAME or /ws/paced/N".into(),
        },
        _ => Refusal {
            status: 501,
            text: "the only tunnels here are WebSockets, at /ws/".into(),
        },
    }
}

/// How messages are laid on an HTTP/1.1 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each is a chunk.
    Chunked,
    /// As they are, until the connection is closed; on a stream, as DATA frames.
    Bare,
}

/// Identifies the clock of the times in messages: that of this boot of the machine.
fn clock_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        id.map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned())
    })
}

/// What an exchange does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has written a message.
    Message {
        /// When it was due, ns of CLOCK_MONOTONIC; `None` if it was not due at any time, or was held
        /// back as the request asked.
        due_ns: Option<u64>,
    },
    /// It has written something that is no message.
    Remark,
    /// It has nothing to do before this time, ns of CLOCK_MONOTONIC.
    Until(u64),
    /// It has nothing to do until the client sends something.
    Idle,
    /// It is complete. It may have written its end.
    End,
    /// It breaks off.
    Cut,
}

/// What came of a client's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Messages that were written to the client.
    pub(crate) messages: u64,
    /// Messages that all members of its topic get.
    pub(crate) published: u64,
    /// Whether the exchange is complete.
    pub(crate) is_over: bool,
    /// Whether it has begun to send at a pace.
    pub(crate) is_due: bool,
}

/// An exchange that lasts.
#[derive(Debug)]
pub(crate) enum Exchange {
    Events(Paced),
    Socket(Box<Socket>),
    Call(Box<Call>),
}

impl Exchange {
    /// Does what is due: at most one message is appended to `out`.
    pub(crate) fn step(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Step {
        match self {
            Exchange::Events(paced) => paced.step(now_ns, out),
            Exchange::Socket(socket) => socket.step(now_ns, out),
            Exchange::Call(call) => call.step(now_ns, out),
        }
    }

    /// Takes bytes of the client; `ends` says that no more will come. What is to be sent to the client
    /// is appended to `out`, what all members of its topic get to `published`.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        ends: bool,
        out: &mut Vec<u8>,
        published: &mut Vec<u8>,
    ) -> Taken {
        match self {
            Exchange::Events(_) => Taken::default(),
            Exchange::Socket(socket) => {
                let mut taken = socket.take(bytes, out, published);
                taken.is_over |= ends;
                taken
            }
            Exchange::Call(call) => call.take(bytes, ends, out),
        }
    }

    /// The topic whose messages it gets.
    pub(crate) fn topic(&self) -> Option<&Arc<str>> {
        match self {
            Exchange::Socket(socket) => socket.topic(),
            Exchange::Events(_) | Exchange::Call(_) => None,
        }
    }

    /// When it has something to do, if the client sends nothing more; 0 for at once.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        match self {
            Exchange::Events(_) => Some(0),
            Exchange::Socket(socket) => socket.first_ns(),
            Exchange::Call(call) => call.first_ns(),
        }
    }

    /// The fields of the trailers with which it ends, if it has any.
    pub(crate) fn trailers(&self) -> Option<Vec<(&'static str, String)>> {
        match self {
            Exchange::Call(call) => Some(call.trailers()),
            Exchange::Events(_) | Exchange::Socket(_) => None,
        }
    }

    /// Memory that it holds for messages of the client, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Exchange::Events(_) => 0,
            Exchange::Socket(socket) => socket.memory_bytes(),
            Exchange::Call(call) => call.memory_bytes(),
        }
    }
}
