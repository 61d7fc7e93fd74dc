//! What a reader gives.

use crate::http::h2::ErrorCode;

/// A frame, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// SETTINGS, to be acknowledged, or the acknowledgement of this side's.
    Settings {
        /// Whether it is the acknowledgement; without values then.
        ack: bool,
        /// In their order; unknown identifiers are among them.
        values: SettingsIter<'a>,
    },
    /// A whole header block: CONTINUATION joined, padding and priority removed.
    Headers {
        /// Not 0.
        stream: u32,
        /// Whether the stream has no DATA behind it.
        end_stream: bool,
        /// For [`crate::http::h2::hpack::Decoder`], even if the stream is of no interest.
        block: &'a [u8],
    },
    /// A piece of a DATA frame's content. A frame without content gives one empty piece.
    Data {
        /// Not 0.
        stream: u32,
        /// The piece.
        bytes: &'a [u8],
        /// What counts against flow-control windows with this piece; with the first one of a frame
        /// also its padding.
        flow: u32,
        /// On the last piece of a frame that ends its stream.
        end_stream: bool,
    },
    /// RST_STREAM.
    Reset {
        /// Not 0.
        stream: u32,
        /// See [`ErrorCode::of`].
        code: u32,
    },
    /// GOAWAY.
    GoAway {
        /// Streams above it were not processed.
        last_stream: u32,
        /// See [`ErrorCode::of`].
        code: u32,
    },
    /// PING, to be answered, or the answer to one of this side's.
    Ping {
        /// Whether it is the answer.
        ack: bool,
        /// What the answer repeats.
        data: [u8; 8],
    },
    WindowUpdate {
        /// 0 is the connection.
        stream: u32,
        /// 1 to 2^31-1.
        increment: u32,
    },
    /// An error of one stream, which the user has to reset; if the stream is idle, it is an error of
    /// the connection.
    StreamError {
        /// Not 0.
        stream: u32,
        /// For RST_STREAM.
        code: ErrorCode,
    },
}

/// The values of SETTINGS: an identifier of [`crate::http::h2::settings`] and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsIter<'a>(&'a [u8]);

impl<'a> SettingsIter<'a> {
    /// `payload` is a multiple of 6 bytes.
    pub(super) fn new(payload: &'a [u8]) -> Self {
        SettingsIter(payload)
    }
}

impl Iterator for SettingsIter<'_> {
    type Item = (u16, u32);

    fn next(&mut self) -> Option<(u16, u32)> {
        let (&[i0, i1, v0, v1, v2, v3], rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some((
            u16::from_be_bytes([i0, i1]),
            u32::from_be_bytes([v0, v1, v2, v3]),
        ))
    }
}
