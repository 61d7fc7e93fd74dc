//! Handling what the peer sends.

use super::{FRAME_MAX, Incoming, ResetCause, Session, Stream, Tunnel, WINDOW_MAX, error};
use crate::http::FieldSection;
use crate::http::h2::{ErrorCode, Event, FrameReader, H2Error, frame, settings};

impl Session {
    /// Takes received bytes.
    ///
    /// # Errors
    /// When the peer breaks a rule of the connection. A GOAWAY with the reason is then in `out`.
    pub fn feed(
        &mut self,
        input: &[u8],
        mut each: impl FnMut(Incoming<'_>),
    ) -> Result<(), H2Error> {
        // Taken out, as its events borrow from it while the rest of the session handles them.
        let mut reader = std::mem::replace(&mut self.reader, FrameReader::new(0, 0));
        let fed = reader.feed(input, |event| {
            self.event(event, &mut each)?;
            self.check_flood()
        });
        self.overhead += u64::from(reader.take_overhead());
        self.reader = reader;
        // The connection's window is refilled at once, so that a slow stream does not stall others.
        let missing = self.credit_max - self.credit;
        let is_worth = missing > self.credit_max / 2 || !self.is_client;
        if missing > 0 && is_worth {
            frame::window_update(&mut self.out, 0, missing as u32);
            self.credit = self.credit_max;
        }
        let fed = fed.and_then(|()| self.check_flood());
        if let Err(failure) = fed {
            let last = if self.is_client { 0 } else { self.last };
            frame::go_away(&mut self.out, last, failure.code);
        }
        fed
    }

    /// Whether frames on a closed stream may have been in flight when this side closed it.
    fn is_ignored(&self, stream: u32) -> bool {
        self.last_served.is_some_and(|served| stream > served) || self.was_reset(stream)
    }

    /// Whether this side has reset a stream, not too long ago.
    pub(super) fn was_reset(&self, stream: u32) -> bool {
        self.resets.iter().any(|one| one.stream == stream)
    }

    /// Takes DATA on a stream that this side has reset: what the peer had sent before it knew.
    fn late_data(&mut self, stream: u32, flow: u32) -> Result<(), H2Error> {
        let Some(one) = self.resets.iter_mut().find(|one| one.stream == stream) else {
            return Ok(());
        };
        one.credit -= i64::from(flow);
        match one.credit < 0 {
            true => Err(error(
                ErrorCode::FlowControlError,
                "more DATA on a reset stream than its window",
            )),
            false => Ok(()),
        }
    }

    fn event<F>(&mut self, event: Event<'_>, each: &mut F) -> Result<(), H2Error>
    where
        F: FnMut(Incoming<'_>),
    {
        match event {
            Event::Headers {
                stream,
                end_stream,
                block,
            } => {
                let mut section = std::mem::take(&mut self.section);
                section.clear();
                let decoded = self.decoder.decode(block, |name, value| {
                    section.take(name, value);
                    Ok(())
                });
                let done = decoded.and_then(|()| match self.is_client {
                    true => self.response(stream, end_stream, &section, each),
                    false => self.headers(stream, end_stream, &section, each),
                });
                self.section = section;
                done
            }
            Event::Data {
                stream,
                bytes,
                flow,
                end_stream,
            } => self.data(stream, bytes, flow, end_stream, each),
            Event::Reset { stream, .. } if stream > self.last => Err(error(
                ErrorCode::ProtocolError,
                "RST_STREAM on an idle stream",
            )),
            Event::Reset { stream, code } => {
                self.overhead += self.limits.reset_cost.saturating_sub(1);
                if self.is_client {
                    self.reset_by_server(stream, code, each);
                } else if self.streams.remove(&stream).is_some() {
                    let cause = ResetCause::Peer(code);
                    each(Incoming::Reset { stream, cause });
                }
                Ok(())
            }
            Event::StreamError { stream, code } if stream > self.last => {
                Err(error(code, "a fault on an idle stream"))
            }
            Event::StreamError { stream, code } => {
                self.fault(stream, code, each);
                Ok(())
            }
            Event::Settings { ack: true, .. } => Ok(()),
            Event::Ping { ack: true, .. } => {
                if self.goes_away && !self.is_client {
                    self.drained();
                }
                Ok(())
            }
            Event::Settings { values, .. } => {
                self.has_settings = true;
                for (id, value) in values {
                    self.setting(id, value)?;
                }
                frame::settings_ack(&mut self.out);
                Ok(())
            }
            Event::Ping { data, .. } => {
                frame::ping_ack(&mut self.out, data);
                Ok(())
            }
            Event::WindowUpdate { stream, increment } => {
                self.window_update(stream, increment, each)
            }
            Event::GoAway { last_stream, .. } => {
                if self.is_client {
                    self.on_go_away(last_stream, each);
                }
                Ok(())
            }
        }
    }

    fn data<F>(
        &mut self,
        stream: u32,
        bytes: &[u8],
        flow: u32,
        end_stream: bool,
        each: &mut F,
    ) -> Result<(), H2Error>
    where
        F: FnMut(Incoming<'_>),
    {
        self.credit -= i64::from(flow);
        if self.credit < 0 {
            return Err(error(
                ErrorCode::FlowControlError,
                "more DATA than the connection's window",
            ));
        }
        // One input may carry several pieces of a body; the window has room for all of them.
        if self.credit < self.credit_max / 2 {
            frame::window_update(&mut self.out, 0, (self.credit_max - self.credit) as u32);
            self.credit = self.credit_max;
        }
        let is_ignored = self.is_ignored(stream);
        let is_client = self.is_client;
        let is_awaited = |one: &&mut Stream| !one.is_received && (one.has_head || !is_client);
        let Some(one) = self.streams.get_mut(&stream).filter(is_awaited) else {
            if is_ignored {
                // Such frames without content use no window.
                self.overhead += u64::from(!is_client || flow == 0);
                return self.late_data(stream, flow);
            }
            if stream > self.last {
                return Err(error(ErrorCode::ProtocolError, "DATA on an idle stream"));
            }
            self.fault(stream, ErrorCode::StreamClosed, each);
            return Ok(());
        };
        one.credit -= i64::from(flow);
        let is_short = match &mut one.left {
            Some(left) => match left.checked_sub(bytes.len() as u64) {
                Some(rest) => {
                    *left = rest;
                    end_stream && rest > 0
                }
                None => true,
            },
            None => false,
        };
        let code = match one.credit < 0 {
            true => Some(ErrorCode::FlowControlError),
            false => is_short.then_some(ErrorCode::ProtocolError),
        };
        if let Some(code) = code {
            self.fault(stream, code, each);
            return Ok(());
        }
        one.is_received = end_stream;
        if end_stream && is_client {
            self.received(stream);
        } else if end_stream && one.is_sent {
            // A tunnel whose other side ended first.
            self.streams.remove(&stream);
        }
        each(Incoming::Data {
            stream,
            bytes,
            flow,
            is_complete: end_stream,
        });
        Ok(())
    }

    /// Resets a stream for a fault of the peer. Such resets are limited, too (CVE-2025-8671).
    pub(super) fn fault<F>(&mut self, stream: u32, code: ErrorCode, each: &mut F)
    where
        F: FnMut(Incoming<'_>),
    {
        self.overhead += self.limits.reset_cost;
        self.write_reset(stream, code);
        if self.streams.remove(&stream).is_some() {
            let cause = ResetCause::Fault;
            each(Incoming::Reset { stream, cause });
        }
    }

    fn window_update<F>(&mut self, stream: u32, increment: u32, each: &mut F) -> Result<(), H2Error>
    where
        F: FnMut(Incoming<'_>),
    {
        let increment = i64::from(increment);
        if stream == 0 {
            self.window += increment;
            if self.window > WINDOW_MAX {
                return Err(error(ErrorCode::FlowControlError, "a window above 2^31-1"));
            }
            return Ok(());
        }
        if stream > self.last {
            return Err(error(
                ErrorCode::ProtocolError,
                "WINDOW_UPDATE on an idle stream",
            ));
        }
        match self.streams.get_mut(&stream) {
            Some(one) if one.window + increment > WINDOW_MAX => {
                self.fault(stream, ErrorCode::FlowControlError, each);
            }
            Some(one) => one.window += increment,
            None => {}
        }
        Ok(())
    }

    fn setting(&mut self, id: u16, value: u32) -> Result<(), H2Error> {
        match id {
            settings::MAX_CONCURRENT_STREAMS => self.streams_allowed = value,
            settings::MAX_FRAME_SIZE => self.frame_max = value.min(FRAME_MAX),
            settings::ENABLE_CONNECT_PROTOCOL if self.is_client => {
                if value == 0 && self.takes_connect {
                    return Err(error(
                        ErrorCode::ProtocolError,
                        "SETTINGS_ENABLE_CONNECT_PROTOCOL taken back",
                    ));
                }
                self.takes_connect = value == 1;
            }
            settings::INITIAL_WINDOW_SIZE => {
                let change = i64::from(value) - self.stream_window;
                self.stream_window += change;
                for stream in self.streams.values_mut() {
                    stream.window += change;
                    if stream.window > WINDOW_MAX {
                        return Err(error(ErrorCode::FlowControlError, "a window above 2^31-1"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles HEADERS from a client.
    fn headers<F>(
        &mut self,
        stream: u32,
        end_stream: bool,
        head: &FieldSection,
        each: &mut F,
    ) -> Result<(), H2Error>
    where
        F: FnMut(Incoming<'_>),
    {
        if stream.is_multiple_of(2) {
            return Err(error(
                ErrorCode::ProtocolError,
                "a client's stream has an odd number",
            ));
        }
        if stream <= self.last {
            return self.trailers(stream, end_stream, head, each);
        }
        self.last = stream;
        if self.last_served.is_some() {
            self.overhead += 1;
            return Ok(());
        }
        if self.streams.len() >= self.limits.streams_max as usize {
            self.fault(stream, ErrorCode::RefusedStream, each);
            return Ok(());
        }
        let length = head.length();
        let is_short = end_stream && length.is_some_and(|length| length > 0);
        let is_connect = self.takes_connect && head.is_extended_connect();
        if !(head.is_request() || is_connect) || is_short {
            self.fault(stream, ErrorCode::ProtocolError, each);
            each(Incoming::Malformed);
            return Ok(());
        }
        let one = Stream {
            is_received: end_stream,
            is_sent: false,
            has_head: false,
            is_head_request: false,
            tunnel: if is_connect {
                Tunnel::Asked
            } else {
                Tunnel::No
            },
            left: length,
            window: self.stream_window,
            credit: self.stream_credit,
        };
        self.streams.insert(stream, one);
        each(Incoming::Head {
            stream,
            head,
            is_complete: end_stream,
        });
        Ok(())
    }

    /// Handles HEADERS on a stream that has begun.
    fn trailers<F>(
        &mut self,
        stream: u32,
        end_stream: bool,
        head: &FieldSection,
        each: &mut F,
    ) -> Result<(), H2Error>
    where
        F: FnMut(Incoming<'_>),
    {
        let is_ignored = self.is_ignored(stream);
        match self.streams.get_mut(&stream) {
            Some(one) if !one.is_received => {
                if !one.ends_with(head, end_stream) {
                    self.fault(stream, ErrorCode::ProtocolError, each);
                    return Ok(());
                }
                one.is_received = true;
                let fields = head;
                each(Incoming::Trailers { stream, fields });
                Ok(())
            }
            None if is_ignored => {
                self.overhead += 1;
                Ok(())
            }
            _ => Err(error(ErrorCode::StreamClosed, "HEADERS on a closed stream")),
        }
    }
}
