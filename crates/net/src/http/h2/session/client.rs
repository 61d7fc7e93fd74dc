//! What only a client's session does: opening streams, and handling responses.

use super::{
    FRAME_MAX, Incoming, ResetCause, STREAM_MAX, Session, SessionLimits, Stream, Tunnel,
    WINDOW_AT_START, error,
};
use crate::http::FieldSection;
use crate::http::h1::{HEAD_BYTES_MAX, may_have_content};
use crate::http::h2::{ErrorCode, FrameReader, H2Error, PREFACE, frame, settings};

/// How many streams are opened if the server does not say how many it allows (RFC 9113 6.5.2).
const STREAMS_AT_START: u32 = 100;
/// The window of the connection. It is refilled whether or not content is consumed, so that a
/// stream whose content is not consumed does not stall others. Each stream's own window bounds what
/// has to be kept of it.
const CONNECTION_WINDOW: i64 = 1 << 20;

impl Session {
    /// A client's session; preface and settings are in `out`.
    pub fn of_client(limits: SessionLimits) -> Self {
        let mut out = PREFACE.to_vec();
        frame::settings(&mut out, &[(settings::ENABLE_PUSH, 0)]);
        let more = CONNECTION_WINDOW - WINDOW_AT_START;
        frame::window_update(&mut out, 0, more as u32);
        let reader = FrameReader::new(FRAME_MAX, HEAD_BYTES_MAX);
        Self {
            is_client: true,
            credit: CONNECTION_WINDOW,
            credit_max: CONNECTION_WINDOW,
            streams_allowed: STREAMS_AT_START,
            ..Self::new(reader, 2 * HEAD_BYTES_MAX, out, limits)
        }
    }

    /// Whether the server has sent its settings.
    pub fn has_settings(&self) -> bool {
        self.has_settings
    }

    /// How many streams the server lets this client have open at once.
    pub fn streams_allowed(&self) -> u32 {
        self.streams_allowed
    }

    /// Sends the head of a request on a new stream. `is_last`: the request has no content. `None`:
    /// the connection takes no more requests.
    pub fn open(&mut self, block: &[u8], is_last: bool) -> Option<u32> {
        let stream = match self.last {
            0 => 1,
            last => last + 2,
        };
        if self.goes_away || stream > STREAM_MAX - 2 {
            self.goes_away = true;
            return None;
        }
        self.last = stream;
        let one = Stream {
            is_received: false,
            is_sent: is_last,
            has_head: false,
            is_head_request: false,
            tunnel: Tunnel::No,
            left: None,
            window: self.stream_window,
            credit: WINDOW_AT_START,
        };
        self.streams.insert(stream, one);
        frame::headers(&mut self.out, stream, block, is_last, self.frame_max);
        Some(stream)
    }

    /// Notes that a request is HEAD, so that its response has no content.
    pub fn expect_no_content(&mut self, stream: u32) {
        if let Some(one) = self.streams.get_mut(&stream) {
            one.is_head_request = true;
        }
    }

    /// Notes that a request is an extended CONNECT: a response of success opens a tunnel.
    pub fn expect_tunnel(&mut self, stream: u32) {
        if let Some(one) = self.streams.get_mut(&stream) {
            one.tunnel = Tunnel::Asked;
        }
    }

    /// Sends a PING, to learn whether the server is alive.
    pub fn ping(&mut self) {
        frame::ping(&mut self.out, *b"alive\0\0\0");
    }

    /// Opens no more streams, and tells the server that the connection ends.
    pub fn send_go_away(&mut self) {
        self.goes_away = true;
        frame::go_away(&mut self.out, 0, ErrorCode::NoError);
    }

    /// Handles GOAWAY from a server.
    pub(super) fn on_go_away<F>(&mut self, last_stream: u32, each: &mut F)
    where
        F: FnMut(Incoming<'_>),
    {
        self.goes_away = true;
        for (stream, _) in self.streams.split_off(&last_stream.saturating_add(1)) {
            let cause = ResetCause::NotProcessed;
            each(Incoming::Reset { stream, cause });
        }
    }

    /// Handles RST_STREAM from a server. After a complete response it only means that the rest of the
    /// request is not needed.
    pub(super) fn reset_by_server<F>(&mut self, stream: u32, code: u32, each: &mut F)
    where
        F: FnMut(Incoming<'_>),
    {
        let cause = match code == ErrorCode::RefusedStream as u32 {
            true => ResetCause::NotProcessed,
            false => ResetCause::Peer(code),
        };
        if self
            .streams
            .remove(&stream)
            .is_some_and(|one| !one.is_received || one.tunnel == Tunnel::Open)
        {
            each(Incoming::Reset { stream, cause });
        }
    }

    /// Notes that a response is complete.
    pub(super) fn received(&mut self, stream: u32) {
        self.answered += 1;
        if let Some(one) = self.streams.get_mut(&stream) {
            one.is_received = true;
            if one.is_sent {
                self.streams.remove(&stream);
            }
        }
    }

    /// Handles HEADERS from a server.
    pub(super) fn response<F>(
        &mut self,
        stream: u32,
        end_stream: bool,
        section: &FieldSection,
        each: &mut F,
    ) -> Result<(), H2Error>
    where
        F: FnMut(Incoming<'_>),
    {
        if stream.is_multiple_of(2) || stream > self.last {
            return Err(error(ErrorCode::ProtocolError, "HEADERS on an idle stream"));
        }
        let Some(one) = self.streams.get_mut(&stream).filter(|one| !one.is_received) else {
            self.overhead += 1;
            return Ok(());
        };
        if one.has_head {
            if !one.ends_with(section, end_stream) {
                self.fault(stream, ErrorCode::ProtocolError, each);
                return Ok(());
            }
            self.received(stream);
            let fields = section;
            each(Incoming::Trailers { stream, fields });
            return Ok(());
        }
        let status = section.status();
        let is_interim = status < 200;
        if one.tunnel == Tunnel::Asked && !is_interim {
            one.tunnel = match status {
                200..300 => Tunnel::Open,
                _ => Tunnel::No,
            };
        }
        let length = match is_interim || may_have_content(status, one.is_head_request) {
            // Of a tunnel a length says nothing (RFC 9110 8.6).
            _ if one.tunnel == Tunnel::Open => None,
            true => section.length(),
            false => Some(0),
        };
        let is_short = end_stream && (is_interim || length.is_some_and(|length| length > 0));
        if !section.is_response() || is_short {
            self.fault(stream, ErrorCode::ProtocolError, each);
            return Ok(());
        }
        if !is_interim {
            (one.has_head, one.left) = (true, length);
        }
        if end_stream {
            self.received(stream);
        }
        each(Incoming::Head {
            stream,
            head: section,
            is_complete: end_stream,
        });
        Ok(())
    }
}
