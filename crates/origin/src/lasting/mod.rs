//! Answers that last: exchanges whose messages are due one after the other, without I/O and clocks.

mod events;
mod message;
mod query;

use std::sync::OnceLock;

use net::http::Request;

use crate::pages::ConnectionReuse;
use events::{Events, EventsPlan};

pub(crate) use query::parse_time;

/// A checked request for an exchange that lasts.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Events(EventsPlan),
}

impl Plan {
    /// What a request asks for; `None` if it asks for nothing that lasts.
    ///
    /// # Errors
    /// What is wrong with its path or query, and what was expected.
    pub(crate) fn of(request: &Request) -> Option<Result<Self, String>> {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let count = path.strip_prefix("/events/")?;
        Some(EventsPlan::parse(count, query).map(Plan::Events))
    }

    /// The exchange, for a request that arrived at this time.
    pub(crate) fn begin(self, arrived_ns: u64) -> Exchange {
        match self {
            Plan::Events(plan) => Exchange::Events(Events::new(plan, arrived_ns)),
        }
    }

    /// The head of the answer in HTTP/1.1.
    pub(crate) fn head(&self, framing: Framing, persist: ConnectionReuse) -> Vec<u8> {
        let kind = match self {
            Plan::Events(plan) => plan.format.content_type(),
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

/// How messages are laid on an HTTP/1.1 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each is a chunk.
    Chunked,
    /// As they are, until the connection is closed.
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
    /// It is complete. It may have written its end.
    End,
    /// It breaks off.
    Cut,
}

/// An exchange that lasts.
#[derive(Debug)]
pub(crate) enum Exchange {
    Events(Events),
}

impl Exchange {
    /// Does what is due: at most one message is appended to `out`.
    pub(crate) fn step(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Step {
        match self {
            Exchange::Events(events) => events.step(now_ns, out),
        }
    }
}
