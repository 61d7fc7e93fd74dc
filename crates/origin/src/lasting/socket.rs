//! WebSockets: `/ws/echo`, `/ws/topic/NAME`, `/ws/paced/N`.

use std::sync::Arc;

use net::http::Request;
use net::ws::handshake::{HandshakeError, accept_extension, accept_request};
use net::ws::{
    CloseCode, Deflate, Event, Frame, MessageKind, Opcode, Reader, Role, Writer, write_frame,
};

use super::paced::{Paced, PacedFormat, PacedPlan};
use super::{Refusal, Step, Taken, clock_id};

/// The most bytes of a message; a longer one is answered with close 1009.
const MESSAGE_MAX: usize = 16 << 20;
/// The same of a message that goes to all members of a topic.
const TOPIC_MESSAGE_MAX: usize = 64 << 10;
/// The most bytes of a topic's name.
const NAME_MAX: usize = 100;
/// How long a client may take to answer a close frame.
const CLOSE_NS: u64 = 2_000_000_000;

/// What a WebSocket is for.
#[derive(Clone, Debug)]
enum Use<P> {
    /// Each message comes back.
    Echo,
    /// Each message goes to all members of the topic.
    Topic(Arc<str>),
    /// Messages at a pace; what comes is ignored.
    Paced(P),
}

/// A WebSocket that was asked for, and agreed to.
#[derive(Clone, Debug)]
pub(crate) struct SocketPlan {
    purpose: Use<PacedPlan>,
    deflate: Option<Deflate>,
    /// The head of the answer in HTTP/1.1.
    pub(super) head: String,
}

impl SocketPlan {
    /// Reads a request for a path behind `/ws/`. The field `:protocol` is that of an extended CONNECT
    /// (RFC 8441).
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub(super) fn parse(path: &str, query: &str, request: &Request) -> Result<Self, Refusal> {
        let purpose = match path.split_once('/') {
            _ if path == "echo" => Use::Echo,
            Some(("topic", name)) if (1..=NAME_MAX).contains(&name.len()) => {
                Use::Topic(name.into())
            }
            Some(("paced", count)) => {
                let format = PacedFormat::Messages;
                Use::Paced(PacedPlan::parse("/ws/paced/", count, query, format)?)
            }
            _ => {
                return Err(Refusal::not_found(
                    "expected /ws/echo, /ws/topic/NAME or /ws/paced/N",
                ));
            }
        };
        // A message of a topic is framed once for all members.
        let with_deflate = matches!(purpose, Use::Echo);
        let fields = request
            .fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()));
        let clock = format!("Weigh-Clock: {}\r\n", clock_id());
        if request.field(":protocol") == Some("websocket") {
            let agreed = accept_extension(fields).filter(|_| with_deflate);
            let extensions = agreed.as_ref().map_or(String::new(), |(_, extensions)| {
                format!("Sec-WebSocket-Extensions: {extensions}\r\n")
            });
            return Ok(Self {
                purpose,
                deflate: agreed.map(|(deflate, _)| deflate),
                head: format!("HTTP/1.1 200 OK\r\n{clock}{extensions}\r\n"),
            });
        }
        match accept_request(&request.method, fields, with_deflate) {
            Ok(accepted) => Ok(Self {
                purpose,
                deflate: accepted.deflate,
                head: accepted.answer(&clock),
            }),
            Err(error) => Err(Refusal {
                status: match error {
                    HandshakeError::Version => 426,
                    _ => 400,
                },
                text: format!("expected a WebSocket's handshake (RFC 6455 4.1): {error}"),
            }),
        }
    }

    pub(super) fn begin(self, arrived_ns: u64) -> Socket {
        let (message_max, purpose) = match self.purpose {
            Use::Echo => (MESSAGE_MAX, Use::Echo),
            Use::Topic(name) => (TOPIC_MESSAGE_MAX, Use::Topic(name)),
            Use::Paced(plan) => (MESSAGE_MAX, Use::Paced(Paced::new(plan, arrived_ns))),
        };
        Socket {
            reader: Reader::new(Role::Server, message_max, self.deflate),
            writer: Writer::new(Role::Server, 0, self.deflate),
            purpose,
            closing_until_ns: None,
        }
    }
}

/// The server's side of a WebSocket.
pub(crate) struct Socket {
    reader: Reader,
    writer: Writer,
    purpose: Use<Paced>,
    /// Once a close frame was sent: until when the client's is waited for, ns of CLOCK_MONOTONIC.
    closing_until_ns: Option<u64>,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").finish_non_exhaustive()
    }
}

impl Socket {
    /// The topic of which it is a member.
    pub(super) fn topic(&self) -> Option<&Arc<str>> {
        match &self.purpose {
            Use::Topic(name) => Some(name),
            _ => None,
        }
    }

    /// When it has something to do, if the client sends nothing.
    pub(super) fn first_ns(&self) -> Option<u64> {
        matches!(self.purpose, Use::Paced(_)).then_some(0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.reader.memory_bytes()
    }

    pub(super) fn step(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Step {
        match (self.closing_until_ns, &mut self.purpose) {
            (Some(until_ns), _) if now_ns >= until_ns => Step::End,
            (Some(until_ns), _) => Step::Until(until_ns),
            (None, Use::Paced(paced)) => match paced.step(now_ns, out) {
                Step::End => {
                    let until_ns = now_ns.saturating_add(CLOSE_NS);
                    self.closing_until_ns = Some(until_ns);
                    Step::Until(until_ns)
                }
                step => step,
            },
            (None, _) => Step::Idle,
        }
    }

    /// Takes bytes of the client, and appends what is to be sent: to the client, and to all members of
    /// its topic.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        published: &mut Vec<u8>,
    ) -> Taken {
        let mut taken = Taken::default();
        loop {
            match self.reader.next(&mut bytes) {
                Ok(None) => return taken,
                Ok(Some(Event::Message(kind, content))) => match &self.purpose {
                    Use::Echo => {
                        self.writer.message(out, kind, content);
                        taken.messages += 1;
                    }
                    Use::Topic(_) => {
                        write_frame(published, whole(opcode(kind)), content);
                        taken.published += 1;
                    }
                    Use::Paced(_) => {}
                },
                Ok(Some(Event::Ping(payload))) => self.writer.pong(out, payload),
                Ok(Some(Event::Pong(_))) => {}
                Ok(Some(Event::Close(code, _))) => {
                    if self.closing_until_ns.is_none() {
                        self.writer.close(out, code, "");
                    }
                    taken.is_over = true;
                    return taken;
                }
                Err(error) => {
                    if self.closing_until_ns.is_none() {
                        close(out, error.close_code(), &error.to_string());
                    }
                    taken.is_over = true;
                    return taken;
                }
            }
        }
    }
}

fn opcode(kind: MessageKind) -> Opcode {
    match kind {
        MessageKind::Text => Opcode::Text,
        MessageKind::Binary => Opcode::Binary,
    }
}

/// The head of a server's frame that is not fragmented and not compressed.
pub(super) fn whole(opcode: Opcode) -> Frame {
    Frame {
        opcode,
        is_final: true,
        is_compressed: false,
        mask: None,
        length: 0,
    }
}

/// Appends a server's close frame.
pub(crate) fn close(out: &mut Vec<u8>, code: CloseCode, reason: &str) {
    Writer::new(Role::Server, 0, None).close(out, Some(code), reason);
}
