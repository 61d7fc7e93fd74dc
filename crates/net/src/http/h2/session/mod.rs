//! One HTTP/2 connection of a server or of a client, without I/O: settings, streams, flow control in
//! both directions, and limits against floods. This file is about sending, [`receive`] about
//! receiving, [`client`] about what only clients do.

mod client;
#[cfg(test)]
mod client_tests;
mod receive;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tunnel_tests;

use std::collections::{BTreeMap, VecDeque};

use super::{ErrorCode, FrameReader, H2Error, frame, hpack, settings};
use crate::http::FieldSection;

const FRAME_MAX: u32 = 16 * 1024;
/// The initial window of each side (RFC 9113 6.9.2).
const WINDOW_AT_START: i64 = 65_535;
const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Bytes of the dynamic table that the peer may use: the default, which the settings do not change.
const TABLE: usize = 4096;
/// The most bytes of a request's header block, and of its decoded fields.
const BLOCK_MAX: usize = 32 * 1024;
/// The highest stream identifier.
const STREAM_MAX: u32 = (1 << 31) - 1;
/// How many of the streams that this side has reset are remembered, to ignore frames on them that
/// were already in flight (RFC 9113 5.1).
const RESETS_KEPT: usize = 128;

/// Limits for the peer.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Streams that a client may have open at once. Has no effect in a client's session.
    pub streams_max: u32,
    /// Frames without requests or responses (RST_STREAM, PING, SETTINGS and so on) that the peer
    /// may send, as a bound on floods. It may send two more for each complete response, and four
    /// more for each DATA frame that this side has sent.
    pub overhead_max: u64,
    /// How many such frames a reset counts as, whether the peer sends it or causes it by a fault.
    pub reset_cost: u64,
}

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCause {
    /// The peer did it, with this code.
    Peer(u32),
    /// The server has not processed anything of the request, which may be sent again.
    NotProcessed,
    /// This side did it for a fault of the peer.
    Fault,
}

/// What the peer has sent.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A request has begun. To a client: the head of a response, which may be an interim one.
    Head {
        stream: u32,
        /// The head, which has been checked.
        head: &'a FieldSection,
        /// Whether nothing follows.
        is_complete: bool,
    },
    /// Content.
    Data {
        stream: u32,
        /// Content; may be empty at the end.
        bytes: &'a [u8],
        /// Bytes of content and padding, to be given back by [`Session::release`].
        flow: u32,
        is_complete: bool,
    },
    /// The trailer section, which completes a message.
    Trailers {
        stream: u32,
        fields: &'a FieldSection,
    },
    Reset {
        /// The stream, which is no longer open.
        stream: u32,
        /// Why.
        cause: ResetCause,
    },
    /// A request was malformed, and its stream was reset without [`Incoming::Head`].
    Malformed,
}

/// Whether a stream carries the bytes of another protocol (RFC 8441).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tunnel {
    No,
    /// The client asks for it.
    Asked,
    /// The server agreed. Each side ends on its own, as those of a TCP connection do.
    Open,
}

/// A stream that is not closed.
#[derive(Debug)]
struct Stream {
    /// Whether the peer's message is complete.
    is_received: bool,
    /// Whether this side's message is complete; in a server's session such a stream is closed.
    is_sent: bool,
    /// In a client's session: whether the head of the final response has come, and whether the
    /// request is HEAD.
    has_head: bool,
    is_head_request: bool,
    tunnel: Tunnel,
    /// How much of the announced length has not arrived yet.
    left: Option<u64>,
    /// How many bytes this side may still send on it.
    window: i64,
    /// How many bytes the peer may still send on it.
    credit: i64,
}

impl Stream {
    /// Whether a field section behind the head is the trailer section of a whole message.
    fn ends_with(&self, fields: &FieldSection, end_stream: bool) -> bool {
        let may = end_stream && self.tunnel == Tunnel::No;
        may && fields.is_trailers() && self.left.is_none_or(|left| left == 0)
    }
}

#[derive(Clone, Copy, Debug)]
struct ResetStream {
    stream: u32,
    /// How many bytes the peer may still have sent on it.
    credit: i64,
}

/// A session. What has to be sent is appended to [`Session::out`], which the caller empties.
#[derive(Debug)]
pub struct Session {
    is_client: bool,
    reader: FrameReader,
    decoder: hpack::Decoder,
    /// What has to be sent.
    pub out: Vec<u8>,
    section: FieldSection,
    streams: BTreeMap<u32, Stream>,
    /// The streams that this side reset most recently.
    resets: VecDeque<ResetStream>,
    limits: SessionLimits,
    /// The last stream that the client opened.
    last: u32,
    /// The last stream that is still answered when a server's session drains.
    last_served: Option<u32>,
    /// How many bytes this side may still send on the connection.
    window: i64,
    /// How many bytes the peer may still send on the connection.
    credit: i64,
    /// What `credit` is raised to.
    credit_max: i64,
    /// How many bytes the peer may send on a new stream.
    stream_credit: i64,
    /// The window of new streams, as the peer has set it.
    stream_window: i64,
    frame_max: u32,
    /// Streams that the server lets a client open.
    streams_allowed: u32,
    /// Complete responses.
    answered: u64,
    /// Frames that the peer may send in return for DATA frames.
    earned: u64,
    /// Frames without requests or responses that count against the limit.
    overhead: u64,
    /// Whether this side opens or accepts no further streams.
    goes_away: bool,
    has_settings: bool,
    /// Whether the server takes extended CONNECT, this one or the peer.
    takes_connect: bool,
}

fn error(code: ErrorCode, what: &'static str) -> H2Error {
    H2Error { code, what }
}

impl Session {
    /// A server's session; its settings are in `out`.
    pub fn of_server(limits: SessionLimits) -> Self {
        let reader = FrameReader::of_server(FRAME_MAX, BLOCK_MAX);
        let mut session = Self::new(reader, BLOCK_MAX, Vec::new(), limits);
        session.announce();
        session
    }

    /// Writes a server's settings anew, before anything else is sent.
    fn announce(&mut self) {
        self.out.clear();
        let (credit, takes_connect) = (self.stream_credit, self.takes_connect);
        let mut values = vec![(settings::MAX_CONCURRENT_STREAMS, self.limits.streams_max)];
        if credit > WINDOW_AT_START {
            values.push((settings::INITIAL_WINDOW_SIZE, credit as u32));
        }
        if takes_connect {
            values.push((settings::ENABLE_CONNECT_PROTOCOL, 1));
        }
        frame::settings(&mut self.out, &values);
        if credit > WINDOW_AT_START {
            frame::window_update(&mut self.out, 0, (credit - WINDOW_AT_START) as u32);
        }
    }

    /// Lets a client open tunnels by extended CONNECT (RFC 8441). Call it before anything is sent or
    /// received. Its [`Incoming::Head`] names the protocol; answer it with status 200 and
    /// [`Session::accept_tunnel`], or refuse it like any request.
    #[must_use]
    pub fn with_extended_connect(mut self) -> Self {
        self.takes_connect = true;
        self.announce();
        self
    }

    /// Whether the server takes extended CONNECT. A client knows it once it
    /// [has the settings](Session::has_settings).
    pub fn takes_extended_connect(&self) -> bool {
        self.takes_connect
    }

    /// Notes that a server agrees to an extended CONNECT. From then on each side of the stream ends
    /// on its own.
    pub fn accept_tunnel(&mut self, stream: u32) {
        if let Some(one) = self.streams.get_mut(&stream) {
            one.tunnel = Tunnel::Open;
        }
    }

    /// A server's session in its first state.
    fn new(reader: FrameReader, block_max: usize, out: Vec<u8>, limits: SessionLimits) -> Self {
        Self {
            is_client: false,
            reader,
            decoder: hpack::Decoder::new(TABLE, block_max),
            out,
            section: FieldSection::default(),
            streams: BTreeMap::new(),
            resets: VecDeque::new(),
            limits,
            last: 0,
            last_served: None,
            window: WINDOW_AT_START,
            credit: WINDOW_AT_START,
            credit_max: WINDOW_AT_START,
            stream_credit: WINDOW_AT_START,
            stream_window: WINDOW_AT_START,
            frame_max: FRAME_MAX,
            streams_allowed: 0,
            answered: 0,
            earned: 0,
            overhead: 0,
            goes_away: false,
            has_settings: false,
            takes_connect: false,
        }
    }

    /// Lets a client send so many bytes, at least 65,535, on each stream and on the connection before
    /// they are given back. Call it before anything is sent or received. The client knows when the
    /// settings have reached it: until then the windows are 65,535 bytes.
    #[must_use]
    pub fn with_windows(mut self, bytes: u32) -> Self {
        let most = i64::from(bytes).clamp(WINDOW_AT_START, WINDOW_MAX);
        (self.credit, self.credit_max, self.stream_credit) = (most, most, most);
        self.announce();
        self
    }

    /// Number of open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether a request has ever begun.
    pub fn has_begun(&self) -> bool {
        self.last > 0
    }

    fn check_flood(&self) -> Result<(), H2Error> {
        let most = self.limits.overhead_max + 2 * self.answered + self.earned;
        match self.overhead > most {
            true => Err(error(
                ErrorCode::EnhanceYourCalm,
                "too many frames without requests",
            )),
            false => Ok(()),
        }
    }

    /// Lowers the count of frames without requests, as time passes.
    pub fn forgive(&mut self, frames: u64) {
        self.overhead = self.overhead.saturating_sub(frames);
    }

    /// Sends a head or trailers, unless this side can no longer send on the stream.
    pub fn send_headers(&mut self, stream: u32, block: &[u8], is_last: bool) {
        if self.is_sending(stream) {
            frame::headers(&mut self.out, stream, block, is_last, self.frame_max);
            if is_last {
                self.end(stream);
            }
        }
    }

    /// How many bytes of DATA may be sent on a stream now.
    pub fn room(&self, stream: u32) -> usize {
        let window = self.streams.get(&stream).map_or(0, |one| one.window);
        window.min(self.window).max(0) as usize
    }

    /// Sends as much of `bytes` as the windows and one frame allow, and returns how much.
    /// `is_last`: nothing follows `bytes`.
    pub fn send_data(&mut self, stream: u32, bytes: &[u8], is_last: bool) -> usize {
        let count = bytes
            .len()
            .min(self.room(stream))
            .min(self.frame_max as usize);
        let Some(one) = self.streams.get_mut(&stream).filter(|one| !one.is_sent) else {
            return 0;
        };
        let ends = is_last && count == bytes.len();
        if count == 0 && !ends {
            return 0;
        }
        frame::data(&mut self.out, stream, &bytes[..count], ends);
        let sent = count as i64;
        (one.window, self.window) = (one.window - sent, self.window - sent);
        self.earned += 4;
        if ends {
            self.end(stream);
        }
        count
    }

    /// Ends this side's message. In a server's session this closes the stream, unless it is a tunnel,
    /// and a client that is still sending its request is told that the rest is not needed.
    fn end(&mut self, stream: u32) {
        let Some(one) = self.streams.get_mut(&stream) else {
            return;
        };
        one.is_sent = true;
        let is_received = one.is_received;
        let waits = self.is_client || one.tunnel == Tunnel::Open;
        if !self.is_client {
            self.answered += 1;
        }
        if !is_received && !waits {
            self.write_reset(stream, ErrorCode::NoError);
        }
        if is_received || !waits {
            self.streams.remove(&stream);
        }
    }

    fn write_reset(&mut self, stream: u32, code: ErrorCode) {
        frame::reset(&mut self.out, stream, code);
        if self.resets.len() >= RESETS_KEPT {
            self.resets.pop_front();
        }
        let credit = self.streams.get(&stream).map(|one| one.credit);
        // One that overran its window is not counted from below zero.
        let credit = credit.filter(|left| *left > 0);
        let credit = credit.unwrap_or(self.stream_credit);
        self.resets.push_back(ResetStream { stream, credit });
    }

    pub fn is_open(&self, stream: u32) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Whether a stream is open, and this side's message on it is not complete.
    pub fn is_sending(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_some_and(|one| !one.is_sent)
    }

    /// Resets a stream, unless it is closed.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        if self.streams.contains_key(&stream) {
            self.write_reset(stream, code);
            self.streams.remove(&stream);
        }
    }

    /// Lets the peer send this many more bytes on a stream, as the caller has consumed as many.
    pub fn release(&mut self, stream: u32, bytes: u32) {
        if bytes == 0 {
            return;
        }
        if let Some(one) = self.streams.get_mut(&stream)
            && !one.is_received
        {
            one.credit += i64::from(bytes);
            frame::window_update(&mut self.out, stream, bytes);
        }
    }

    /// Begins to drain a server's session: announces that no more requests are wanted, but still
    /// serves those in flight. This phase ends with [`Session::drained`], or when the client has
    /// acknowledged the PING.
    pub fn drain(&mut self) {
        if !self.goes_away {
            self.goes_away = true;
            frame::go_away(&mut self.out, STREAM_MAX, ErrorCode::NoError);
            frame::ping(&mut self.out, *b"draining");
        }
    }

    /// Announces the last stream that a server serves. Later ones are ignored, and the client may
    /// send their requests elsewhere.
    pub fn drained(&mut self) {
        if self.last_served.is_none() {
            self.goes_away = true;
            self.last_served = Some(self.last);
            frame::go_away(&mut self.out, self.last, ErrorCode::NoError);
        }
    }

    /// Whether a server's session drains and has no stream left.
    pub fn is_done(&self) -> bool {
        self.last_served.is_some() && self.streams.is_empty()
    }

    /// Whether the session takes no more requests.
    pub fn is_draining(&self) -> bool {
        self.goes_away
    }
}
