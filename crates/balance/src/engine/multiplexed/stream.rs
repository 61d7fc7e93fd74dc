//! One stream: a request and its response. Its user sends the response to a client, or the request
//! to a back end.

use std::collections::VecDeque;

use net::h2::{ErrorCode, Session};
use net::{ConnId, TargetId};

use super::content::Content;
use crate::h2::{Chunk, Message, Part};

/// Whether a stream carries a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tunnel {
    No,
    /// Its request asks for one.
    Asked,
    /// Both sides have agreed.
    Open,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub carrier: ConnId,
    /// 0 until the head of a request to a back end is sent.
    pub id: u32,
    /// `None` on a stream of a client.
    pub outgoing: Option<Outgoing>,
    /// Whether received content is passed on with the chunked coding.
    pub is_chunked: bool,
    /// The part of the received message that has not been passed on, in the form of HTTP/1.1.
    pub inbox: Vec<u8>,
    /// The chunk at the end of `inbox`, to which content can be added; `None` once a part of it has been
    /// passed on.
    pub open_chunk: Option<Chunk>,
    /// Bytes to give back to the peer's window when `inbox` is passed on.
    pub flow: u32,
    pub is_paused: bool,
    /// Whether its user has received any data.
    pub is_given: bool,
    /// Whether it waits in the ring of its carrier.
    pub is_waiting: bool,
    /// Whether the whole response of a back end has been received.
    pub is_complete: bool,
    /// Whether it is closed in the session, and its user has been told.
    pub is_over: bool,
    pub tunnel: Tunnel,
    /// Of a client: whether its request is a gRPC call, and with which code it is aborted.
    pub is_call: bool,
    pub abort_code: ErrorCode,
    /// What a client has sent of a WebSocket before the back end agreed. Its user must not see it
    /// before that: it would take it for the next request.
    pub early: Vec<u8>,
    /// Whether the user of a WebSocket has been told that the other side has ended.
    pub has_told_end: bool,
    /// What the table has counted of [`Stream::held`].
    pub counted: usize,
    message: Message,
    content: Content,
    /// Bytes of content taken from the user so far.
    total: u64,
    /// Bytes of content sent so far.
    total_sent: u64,
    /// For each send of the user that is not fully sent: the value of `total` at its end.
    ends: VecDeque<u64>,
    /// Whether its user has finished sending.
    is_finished: bool,
}

/// The state of a stream to a back end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub target: TargetId,
    /// Whether it has a place on a connection; else it waits for one.
    pub is_connected: bool,
    /// Whether the connection carried other streams before.
    pub is_reused: bool,
}

/// Why something that the user sends cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamSendError {
    /// It is not a valid message.
    Invalid,
    /// The connection takes no more requests.
    NotProcessed,
}

impl Stream {
    /// The carrier of a stream that has none yet.
    pub const NO_CARRIER: ConnId = ConnId::new(0, u32::MAX);

    /// A request of a client.
    /// `key`: that of the WebSocket for which it asks.
    pub fn of_client(carrier: ConnId, id: u32, is_head_request: bool, key: Option<String>) -> Self {
        let tunnel = match key {
            Some(_) => Tunnel::Asked,
            None => Tunnel::No,
        };
        Self {
            tunnel,
            ..Self::new(carrier, id, Message::response(is_head_request, key))
        }
    }

    /// A request to a back end. `is_secure`: it is sent over TLS.
    pub fn to_server(target: TargetId, is_secure: bool) -> Self {
        let message = Message::request(is_secure);
        Self {
            outgoing: Some(Outgoing {
                target,
                is_connected: false,
                is_reused: false,
            }),
            ..Self::new(Self::NO_CARRIER, 0, message)
        }
    }

    fn new(carrier: ConnId, id: u32, message: Message) -> Self {
        Self {
            carrier,
            id,
            outgoing: None,
            is_chunked: false,
            inbox: Vec::new(),
            open_chunk: None,
            flow: 0,
            is_paused: false,
            is_given: false,
            is_waiting: false,
            is_complete: false,
            is_over: false,
            tunnel: Tunnel::No,
            is_call: false,
            abort_code: ErrorCode::InternalError,
            early: Vec::new(),
            has_told_end: false,
            counted: 0,
            message,
            content: Content::default(),
            total: 0,
            total_sent: 0,
            ends: VecDeque::new(),
            is_finished: false,
        }
    }

    /// How many sends of the user have content that the carrier has not taken yet.
    pub fn queued(&self) -> usize {
        self.ends.len()
    }

    /// Bytes that it holds of both messages.
    pub fn held(&self) -> usize {
        self.content.len() + self.inbox.len() + self.early.len()
    }

    /// Bytes of memory for what it holds.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.content.capacity() + self.inbox.capacity() + self.early.capacity()
    }

    pub fn is_head_request(&self) -> bool {
        self.message.is_head_request()
    }

    /// The key of the WebSocket for which a request to a back end asks.
    pub fn asked_key(&self) -> Option<&str> {
        self.message.key().filter(|_| self.tunnel == Tunnel::Asked)
    }

    /// Whether the other side has ended a WebSocket, its user has got all that it sent, and has not
    /// been told.
    pub fn has_end_to_tell(&self) -> bool {
        self.tunnel == Tunnel::Open && self.is_complete && !self.has_told_end
    }

    /// Takes a part of the message from the user.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn take(&mut self, bytes: &[u8], session: &mut Session) -> Result<(), StreamSendError> {
        let (mut id, content) = (self.id, &mut self.content);
        let is_upstream = self.outgoing.is_some();
        let (mut is_refused, mut tunnel) = (false, self.tunnel);
        if is_upstream && id == 0 {
            self.message.note_connect(session.takes_extended_connect());
        }
        let before = content.len();
        let taken = self.message.take(bytes, |part| match part {
            Part::Head { block, is_last } if is_upstream => match session.open(block, is_last) {
                Some(opened) => id = opened,
                None => is_refused = true,
            },
            Part::Head { block, is_last } => session.send_headers(id, block, is_last),
            Part::Tunnel { block } if is_upstream => match session.open(block, false) {
                Some(opened) => {
                    (id, tunnel) = (opened, Tunnel::Asked);
                    session.expect_tunnel(opened);
                }
                None => is_refused = true,
            },
            Part::Tunnel { block } => {
                tunnel = Tunnel::Open;
                session.send_headers(id, block, false);
                session.accept_tunnel(id);
            }
            Part::Content(bytes) => content.push(bytes),
        });
        if is_upstream && self.id == 0 && id != 0 && self.message.is_head_request() {
            session.expect_no_content(id);
        }
        self.id = id;
        if tunnel == Tunnel::Open && self.tunnel == Tunnel::Asked {
            self.inbox.append(&mut self.early);
        }
        self.tunnel = tunnel;
        if is_refused {
            return Err(StreamSendError::NotProcessed);
        }
        let added = content.len() - before;
        if added > 0 {
            self.total += added as u64;
            self.ends.push_back(self.total);
        }
        taken.map_err(|_| StreamSendError::Invalid)
    }

    /// Notes that the user sends no more.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Whether its user has finished sending.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn is_complete(&self) -> bool {
        let ends = self.is_finished && self.message.ends_with_connection();
        self.message.is_complete() || ends
    }

    /// Moves one frame of content to the session, and after the last one the end of the message.
    /// Returns whether anything was moved.
    pub fn send_frame(&mut self, session: &mut Session) -> bool {
        let is_complete = self.is_complete();
        let trailers = match is_complete {
            true => self.message.trailers(),
            false => None,
        };
        let (rest, is_last) = self.content.front();
        if !rest.is_empty() {
            let ends = is_complete && trailers.is_none() && is_last;
            let count = session.send_data(self.id, rest, ends);
            self.content.advance(count);
            self.total_sent += count as u64;
            while self.ends.front().is_some_and(|end| *end <= self.total_sent) {
                self.ends.pop_front();
            }
            if self.has_unsent() {
                return count > 0;
            }
        }
        match trailers {
            Some(block) => session.send_headers(self.id, &block, true),
            None if is_complete && session.is_sending(self.id) => {
                session.send_data(self.id, &[], true);
            }
            // The message ends too early.
            None if self.is_finished && !is_complete && session.is_open(self.id) => {
                session.reset(self.id, ErrorCode::InternalError);
            }
            None => {}
        }
        true
    }

    /// Whether there is content to send as soon as the windows allow it.
    pub fn has_unsent(&self) -> bool {
        self.content.len() > 0
    }
}
