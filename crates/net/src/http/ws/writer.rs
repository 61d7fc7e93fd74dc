//! Writing messages and control frames.

use super::deflate::Deflater;
use super::frame::{Frame, Opcode, write_frame};
use super::{CONTROL_BYTES_MAX, CloseCode, Deflate, MessageKind, Role};

/// Writes what one end of a connection sends; each function appends to `out`.
pub struct Writer {
    /// Masks, of a client.
    random: Option<fastrand::Rng>,
    deflater: Option<Deflater>,
}

impl Writer {
    /// A writer for what an end with this role sends. `seed` is for masks; they are not hard to
    /// predict, so nothing secret is to be sent through intermediaries that could be confused (RFC
    /// 6455 10.3). With `deflate` all messages are compressed.
    pub fn new(role: Role, seed: u64, deflate: Option<Deflate>) -> Self {
        Self {
            random: (role == Role::Client).then(|| fastrand::Rng::with_seed(seed)),
            deflater: deflate.map(|deflate| Deflater::new(deflate, role)),
        }
    }

    /// A message in one frame.
    #[inline]
    pub fn message(&mut self, out: &mut Vec<u8>, kind: MessageKind, content: &[u8]) {
        let frame = self.frame(kind.into());
        match &mut self.deflater {
            None => write_frame(out, frame, content),
            Some(deflater) => {
                let is_compressed = true;
                let frame = Frame {
                    is_compressed,
                    ..frame
                };
                write_frame(out, frame, deflater.message(content));
            }
        }
    }

    /// A ping of at most [`CONTROL_BYTES_MAX`] bytes.
    pub fn ping(&mut self, out: &mut Vec<u8>, payload: &[u8]) {
        self.control(out, Opcode::Ping, payload);
    }

    /// The answer to a ping, with its bytes.
    pub fn pong(&mut self, out: &mut Vec<u8>, payload: &[u8]) {
        self.control(out, Opcode::Pong, payload);
    }

    /// A close frame; a code that must not be sent is left out, and a long reason is cut.
    pub fn close(&mut self, out: &mut Vec<u8>, code: Option<CloseCode>, reason: &str) {
        let mut payload = Vec::new();
        if let Some(code) = code.filter(|code| code.may_be_sent()) {
            payload.extend_from_slice(&code.0.to_be_bytes());
            let room = CONTROL_BYTES_MAX - payload.len();
            let ends = reason.char_indices().map(|(at, one)| at + one.len_utf8());
            let cut = ends.take_while(|end| *end <= room).last().unwrap_or(0);
            payload.extend_from_slice(&reason.as_bytes()[..cut]);
        }
        self.control(out, Opcode::Close, &payload);
    }

    fn control(&mut self, out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
        debug_assert!(payload.len() <= CONTROL_BYTES_MAX, "{opcode:?}");
        let frame = self.frame(opcode);
        write_frame(out, frame, payload);
    }

    #[inline]
    fn frame(&mut self, opcode: Opcode) -> Frame {
        let mask = self.random.as_mut().map(|random| random.u32(..));
        Frame {
            opcode,
            is_final: true,
            is_compressed: false,
            mask: mask.map(u32::to_ne_bytes),
            length: 0,
        }
    }
}
