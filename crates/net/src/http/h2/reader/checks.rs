//! Checks of frame headers and of the values of SETTINGS.

use super::{
    BLOCK_TOO_LONG, CONTINUATIONS_MAX, FrameReader, H2Error, Head, LOW_31, SettingsIter, TOO_SHORT,
    flag, kind,
};
use crate::http::h2::{ErrorCode, settings as ids};

/// Most values of one SETTINGS frame (CVE-2020-11080).
const SETTINGS_VALUES_MAX: u32 = 64;
/// Most bytes of HEADERS beside the block: the padding's length, padding, and priority.
const BESIDE_BLOCK_MAX: usize = 1 + 255 + 5;

impl FrameReader {
    pub(super) fn check(&mut self, head: &Head) -> Result<(), H2Error> {
        if !self.has_settings {
            if head.kind != kind::SETTINGS || head.has(flag::ACK) {
                return Err(H2Error::protocol("the first frame is not SETTINGS"));
            }
            self.has_settings = true;
        }
        if head.length > self.max_frame {
            return Err(H2Error::size(
                "a frame longer than the announced SETTINGS_MAX_FRAME_SIZE",
            ));
        }
        match (&mut self.open, head.kind) {
            (None, kind::CONTINUATION) => {
                return Err(H2Error::protocol("CONTINUATION without HEADERS"));
            }
            (Some(open), kind::CONTINUATION) if open.stream == head.stream => {
                open.continuations += 1;
                if open.continuations > CONTINUATIONS_MAX {
                    return Err(H2Error::calm("a header block of more than 17 frames"));
                }
            }
            (Some(_), _) => {
                return Err(H2Error::protocol("a frame within a header block"));
            }
            (None, _) => {}
        }
        match (head.kind, head.stream) {
            (
                kind::DATA | kind::HEADERS | kind::PRIORITY | kind::RST_STREAM | kind::CONTINUATION,
                0,
            ) => return Err(H2Error::protocol("a frame of this type on stream 0")),
            (kind::SETTINGS | kind::PING | kind::GOAWAY, 1..) => {
                return Err(H2Error::protocol(
                    "a frame of this type on a stream other than 0",
                ));
            }
            (kind::PUSH_PROMISE, _) if self.of_server => {
                return Err(H2Error::protocol("PUSH_PROMISE from a client"));
            }
            (kind::PUSH_PROMISE, _) => {
                return Err(H2Error::protocol("PUSH_PROMISE, which was not enabled"));
            }
            _ => {}
        }
        self.check_length(head)?;
        if !matches!(head.kind, kind::DATA | kind::HEADERS | kind::CONTINUATION) {
            self.count_overhead();
        }
        Ok(())
    }

    fn check_length(&self, head: &Head) -> Result<(), H2Error> {
        let length = head.length;
        match head.kind {
            kind::DATA if head.has(flag::PADDED) && length == 0 => Err(TOO_SHORT),
            kind::HEADERS if length as usize > self.block_max.saturating_add(BESIDE_BLOCK_MAX) => {
                Err(BLOCK_TOO_LONG)
            }
            kind::CONTINUATION if length as usize > self.block_max - self.block.len() => {
                Err(BLOCK_TOO_LONG)
            }
            kind::SETTINGS if head.has(flag::ACK) && length != 0 => {
                Err(H2Error::size("an acknowledgement of SETTINGS with values"))
            }
            kind::SETTINGS if !length.is_multiple_of(6) => Err(H2Error::size(
                "SETTINGS whose length is not a multiple of 6",
            )),
            kind::SETTINGS if length / 6 > SETTINGS_VALUES_MAX => {
                Err(H2Error::calm("SETTINGS of more than 64 values"))
            }
            kind::PING if length != 8 => Err(H2Error::size("PING whose length is not 8")),
            kind::RST_STREAM if length != 4 => {
                Err(H2Error::size("RST_STREAM whose length is not 4"))
            }
            kind::WINDOW_UPDATE if length != 4 => {
                Err(H2Error::size("WINDOW_UPDATE whose length is not 4"))
            }
            kind::GOAWAY if length < 8 => Err(H2Error::size("GOAWAY shorter than 8 bytes")),
            _ => Ok(()),
        }
    }
}

/// The values' ranges, RFC 9113 section 6.5.2.
pub(super) fn settings(values: SettingsIter<'_>, of_server: bool) -> Result<(), H2Error> {
    for (id, value) in values {
        match (id, value) {
            (ids::ENABLE_PUSH, 2..) => {
                return Err(H2Error::protocol("SETTINGS_ENABLE_PUSH other than 0 and 1"));
            }
            (ids::ENABLE_PUSH, 1) if !of_server => {
                return Err(H2Error::protocol("SETTINGS_ENABLE_PUSH of 1 from a server"));
            }
            (ids::ENABLE_CONNECT_PROTOCOL, 2..) => {
                return Err(H2Error::protocol(
                    "SETTINGS_ENABLE_CONNECT_PROTOCOL other than 0 and 1",
                ));
            }
            (ids::INITIAL_WINDOW_SIZE, value) if value > LOW_31 => {
                return Err(H2Error::new(
                    ErrorCode::FlowControlError,
                    "SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1",
                ));
            }
            (ids::MAX_FRAME_SIZE, ..0x4000 | 0x100_0000..) => {
                return Err(H2Error::protocol(
                    "SETTINGS_MAX_FRAME_SIZE other than 2^14 to 2^24-1",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
