//! Frames, RFC 6455 section 5.2.

use super::{CONTROL_BYTES_MAX, MessageKind, Role, WsError, mask};

/// Longest head of a frame, bytes.
pub const HEAD_BYTES_MAX: usize = 14;

/// Longest payload that a head can tell, bytes.
pub const LENGTH_MAX: u64 = (1 << 63) - 1;

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    fn of(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    pub fn is_control(self) -> bool {
        self as u8 >= Opcode::Close as u8
    }
}

impl From<MessageKind> for Opcode {
    fn from(kind: MessageKind) -> Self {
        match kind {
            MessageKind::Text => Opcode::Text,
            MessageKind::Binary => Opcode::Binary,
        }
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub opcode: Opcode,
    /// Whether it is the last of its message.
    pub is_final: bool,
    /// RSV1: its message is compressed (RFC 7692 6).
    pub is_compressed: bool,
    pub mask: Option<[u8; 4]>,
    /// Bytes of the payload.
    pub length: u64,
}

/// Reads the head of a frame that `reader` receives: its length in bytes and what it says; `None`
/// when more bytes are needed.
///
/// # Errors
/// When the frame must not be sent whatever came before it, as soon as that can be told.
#[inline]
pub(super) fn parse_head(
    input: &[u8],
    reader: Role,
    may_be_compressed: bool,
) -> Result<Option<(usize, Frame)>, WsError> {
    let Some(&first) = input.first() else {
        return Ok(None);
    };
    let opcode = Opcode::of(first & OPCODE).ok_or(WsError::Opcode)?;
    let is_compressed = first & RSV1 != 0;
    let may_be_compressed = may_be_compressed && matches!(opcode, Opcode::Text | Opcode::Binary);
    if first & (RESERVED & !RSV1) != 0 || (is_compressed && !may_be_compressed) {
        return Err(WsError::Reserved);
    }
    let is_final = first & FIN != 0;
    if opcode.is_control() && !is_final {
        return Err(WsError::FragmentedControl);
    }
    let Some(&second) = input.get(1) else {
        return Ok(None);
    };
    match (reader, second & MASKED != 0) {
        (Role::Client, true) => return Err(WsError::Masked),
        (Role::Server, false) => return Err(WsError::NotMasked),
        _ => {}
    }
    let short = second & !MASKED;
    if opcode.is_control() && usize::from(short) > CONTROL_BYTES_MAX {
        return Err(WsError::LongControl);
    }
    let (mut at, length) = match (short, &input[2..]) {
        (..126, _) => (2, u64::from(short)),
        (126, [a, b, ..]) => (4, u64::from(u16::from_be_bytes([*a, *b]))),
        (127, [a, b, c, d, e, f, g, h, ..]) => {
            (10, u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]))
        }
        _ => return Ok(None),
    };
    if length > LENGTH_MAX {
        return Err(WsError::Length);
    }
    let is_shortest = match short {
        126 => length > 125,
        127 => length > u64::from(u16::MAX),
        _ => true,
    };
    if !is_shortest {
        return Err(WsError::LengthForm);
    }
    let mask = match (second & MASKED != 0, input.get(at..at + 4)) {
        (false, _) => None,
        (true, Some(&[a, b, c, d])) => {
            at += 4;
            Some([a, b, c, d])
        }
        (true, _) => return Ok(None),
    };
    let frame = Frame {
        opcode,
        is_final,
        is_compressed,
        mask,
        length,
    };
    Ok(Some((at, frame)))
}

/// Writes a frame as its head says, whether it is allowed or not, with the length of `payload`.
#[inline]
pub fn write_frame(out: &mut Vec<u8>, frame: Frame, payload: &[u8]) {
    let bit = |bit: u8, is_set: bool| if is_set { bit } else { 0 };
    let first = frame.opcode as u8 | bit(FIN, frame.is_final) | bit(RSV1, frame.is_compressed);
    let masked = bit(MASKED, frame.mask.is_some());
    match payload.len() {
        length @ ..126 => out.extend_from_slice(&[first, masked | length as u8]),
        length @ 126..=0xffff => {
            let [a, b] = (length as u16).to_be_bytes();
            out.extend_from_slice(&[first, masked | 126, a, b]);
        }
        length => {
            out.extend_from_slice(&[first, masked | 127]);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    if let Some(mask) = frame.mask {
        out.extend_from_slice(&mask);
    }
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = frame.mask {
        mask::apply(&mut out[start..], mask, 0);
    }
}
