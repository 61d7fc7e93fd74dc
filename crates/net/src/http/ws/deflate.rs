//! `permessage-deflate`, RFC 7692 section 7.

use miniz_oxide::deflate::CompressionLevel;
use miniz_oxide::deflate::core::CompressorOxide;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus, deflate};

use super::{Role, WsError};

/// What the ends of a connection have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deflate {
    /// The client compresses each message by itself.
    pub client_no_context_takeover: bool,
    /// The server compresses each message by itself.
    pub server_no_context_takeover: bool,
}

impl Deflate {
    /// Whether an end compresses each message by itself.
    fn forgets(self, sender: Role) -> bool {
        match sender {
            Role::Client => self.client_no_context_takeover,
            Role::Server => self.server_no_context_takeover,
        }
    }
}

/// What a sender removes from the end of a message and a receiver appends (RFC 7692 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Decompresses what a peer sends. It takes some 43 kB from the first compressed message on.
pub(super) struct Inflater {
    state: Option<Box<InflateState>>,
    forgets: bool,
    has_ended: bool,
}

impl Inflater {
    pub(super) fn new(deflate: Deflate, reader: Role) -> Self {
        let sender = match reader {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        Self {
            state: None,
            forgets: deflate.forgets(sender),
            has_ended: false,
        }
    }

    /// Decompresses a piece of a message to the end of `out`, which must not become longer than
    /// `max`.
    pub(super) fn feed(
        &mut self,
        mut input: &[u8],
        out: &mut Vec<u8>,
        max: usize,
    ) -> Result<(), WsError> {
        let state = self
            .state
            .get_or_insert_with(|| InflateState::new_boxed(DataFormat::Raw));
        let mut piece = [0; 4096];
        // What stands behind a block that ends the stream is padding (RFC 7692 7.2.3.4).
        while !self.has_ended {
            let result = inflate(state, input, &mut piece, MZFlush::None);
            input = &input[result.bytes_consumed..];
            out.extend_from_slice(&piece[..result.bytes_written]);
            if out.len() > max {
                return Err(WsError::TooLong);
            }
            match result.status {
                Ok(MZStatus::StreamEnd) => self.has_ended = true,
                Ok(_) | Err(miniz_oxide::MZError::Buf) => {}
                Err(_) => return Err(WsError::Compressed),
            }
            if input.is_empty() && result.bytes_written < piece.len() {
                break;
            }
        }
        Ok(())
    }

    /// Decompresses what the end of a message implies.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>, max: usize) -> Result<(), WsError> {
        self.feed(&TAIL, out, max)?;
        if let Some(state) = &mut self.state
            && (self.forgets || self.has_ended)
        {
            state.reset(DataFormat::Raw);
            self.has_ended = false;
        }
        Ok(())
    }
}

/// Compresses messages. It takes some 300 kB from the first one on.
pub(super) struct Deflater {
    state: Option<Box<CompressorOxide>>,
    forgets: bool,
    out: Vec<u8>,
}

impl Deflater {
    pub(super) fn new(deflate: Deflate, sender: Role) -> Self {
        Self {
            state: None,
            forgets: deflate.forgets(sender),
            out: Vec::new(),
        }
    }

    /// The compressed form of a message.
    pub(super) fn message(&mut self, mut content: &[u8]) -> &[u8] {
        let state = self.state.get_or_insert_with(|| {
            Box::new(CompressorOxide::with_format_and_level(
                DataFormat::Raw,
                CompressionLevel::BestSpeed,
            ))
        });
        self.out.clear();
        loop {
            let from = self.out.len();
            self.out.resize(from + content.len() / 2 + 64, 0);
            let sync = MZFlush::Sync;
            let result = deflate::stream::deflate(state, content, &mut self.out[from..], sync);
            content = &content[result.bytes_consumed..];
            let has_room = from + result.bytes_written < self.out.len();
            self.out.truncate(from + result.bytes_written);
            // A call that had room may still have left something in the compressor, unless the tail
            // has come or there was nothing to write.
            let is_whole = has_room && self.out.ends_with(&TAIL);
            if content.is_empty() && (is_whole || result.bytes_written == 0) {
                break;
            }
        }
        if self.out.ends_with(&TAIL) {
            self.out.truncate(self.out.len() - TAIL.len());
        }
        if self.out.is_empty() {
            // An empty block (RFC 7692 7.2.3.6).
            self.out.push(0);
        }
        if self.forgets {
            state.reset();
        }
        &self.out
    }
}
