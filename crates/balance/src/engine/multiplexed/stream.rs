//! One stream: a request and its response. Its user sends the response to a client, or the request
//! to a back end.

use std::collections::VecDeque;

use net::h2::{ErrorCode, Session};
use net::{ConnId, TargetId};

use crate::h2::{Chunk, Message, Part};

/// How much memory for content is kept for later content.
const KEPT_BYTES: usize = 16 * 1024;

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
    message: Message,
    /// Content to send; the bytes before `sent` have been sent.
    content: Vec<u8>,
    sent: usize,
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
    pub fn of_client(carrier: ConnId, id: u32, is_head_request: bool) -> Self {
        Self::new(carrier, id, Message::response(is_head_request))
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
            message,
            content: Vec::new(),
            sent: 0,
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

    /// Whether the request is HEAD.
    pub fn is_head_request(&self) -> bool {
        self.message.is_head_request()
    }

    /// Takes a part of the message from the user.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn take(&mut self, bytes: &[u8], session: &mut Session) -> Result<(), StreamSendError> {
        let (mut id, content) = (self.id, &mut self.content);
        let is_upstream = self.outgoing.is_some();
        let mut is_refused = false;
        let before = content.len();
        let taken = self.message.take(bytes, |part| match part {
            Part::Head { block, is_last } if is_upstream => match session.open(block, is_last) {
                Some(opened) => id = opened,
                None => is_refused = true,
            },
            Part::Head { block, is_last } => session.send_headers(id, block, is_last),
            Part::Content(bytes) => content.extend_from_slice(bytes),
        });
        if is_upstream && self.id == 0 && id != 0 && self.message.is_head_request() {
            session.expect_no_content(id);
        }
        self.id = id;
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

    fn is_complete(&self) -> bool {
        let ends = self.is_finished && self.message.ends_with_connection();
        self.message.is_complete() || ends
    }

    /// Moves one frame of content to the session, and after the last one the end of the message.
    /// Returns whether anything was moved.
    pub fn send_frame(&mut self, session: &mut Session) -> bool {
        let rest = &self.content[self.sent..];
        let is_complete = self.is_complete();
        let trailers = match is_complete {
            true => self.message.trailers(),
            false => None,
        };
        let ends = is_complete && trailers.is_none();
        if !rest.is_empty() {
            let count = session.send_data(self.id, rest, ends);
            self.sent += count;
            self.total_sent += count as u64;
            while self.ends.front().is_some_and(|end| *end <= self.total_sent) {
                self.ends.pop_front();
            }
            if self.sent < self.content.len() {
                self.drop_sent();
                return count > 0;
            }
            self.content.clear();
            self.content.shrink_to(KEPT_BYTES);
            self.sent = 0;
        }
        match trailers {
            Some(block) => session.send_headers(self.id, &block, true),
            None if is_complete && session.is_sending(self.id) => {
                session.send_data(self.id, &[], true);
            }
            // The message ends too early.
            None if self.is_finished && session.is_open(self.id) => {
                session.reset(self.id, ErrorCode::InternalError);
            }
            None => {}
        }
        true
    }

    /// Removes what was sent once it is half of the content: with a slow peer the content may never be
    /// empty. In total no more bytes are moved than were sent.
    fn drop_sent(&mut self) {
        if self.sent >= KEPT_BYTES.max(self.content.len() / 2) {
            self.content.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Whether there is content to send as soon as the windows allow it.
    pub fn has_unsent(&self) -> bool {
        self.sent < self.content.len()
    }
}

#[cfg(test)]
mod tests {
    use net::h2::{PREFACE, SessionLimits, frame, hpack, settings};

    use super::*;

    const WINDOW: u32 = 16 * 1024;

    /// A client that opens its window as fast as the server answers leaves a little unsent all the
    /// time.
    #[test]
    fn sent_content_is_removed_from_the_buffer() {
        let mut session = Session::of_server(SessionLimits {
            streams_max: 1,
            overhead_max: 10_000,
            reset_cost: 1,
        });
        let mut input = PREFACE.to_vec();
        frame::settings(&mut input, &[(settings::INITIAL_WINDOW_SIZE, WINDOW)]);
        let block = hpack::block(&[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a"),
        ]);
        frame::headers(&mut input, 1, &block, true, WINDOW);
        session.feed(&input, |_| {}).unwrap();
        let mut stream = Stream::of_client(Stream::NO_CARRIER, 1, false);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
        stream.take(head, &mut session).unwrap();
        let piece = vec![b'x'; WINDOW as usize];
        stream.take(&piece, &mut session).unwrap();
        for _ in 0..1_000 {
            stream.take(&piece, &mut session).unwrap();
            while stream.send_frame(&mut session) {}
            assert!(stream.has_unsent(), "the window is as long as one piece");
            let mut open = Vec::new();
            frame::window_update(&mut open, 0, WINDOW);
            frame::window_update(&mut open, 1, WINDOW);
            session.feed(&open, |_| {}).unwrap();
        }
        assert!(stream.content.capacity() < 8 * piece.len());
    }
}
