//! Reading frames and messages.

use super::deflate::Inflater;
use super::frame::{self, Frame, HEAD_BYTES_MAX};
use super::{CONTROL_BYTES_MAX, CloseCode, Deflate, MessageKind, Opcode, Role, WsError, mask};

/// What a peer has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message; text is UTF-8.
    Message(MessageKind, &'a [u8]),
    /// It is to be answered with a pong of the same bytes.
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    /// It is to be answered with a close frame unless one was sent. What follows is ignored.
    Close(Option<CloseCode>, &'a str),
}

/// Memory that is kept from one message to the next, bytes.
const KEPT_BYTES: usize = 64 << 10;

/// Reads what one end of a connection receives.
///
/// It holds at most the longest message that is allowed, and 43 kB where messages are compressed. A
/// message that arrives in one piece, without mask and compression, is not copied.
pub struct Reader {
    role: Role,
    message_max: usize,
    inflater: Option<Inflater>,
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    /// The frame under way, and how many bytes of its payload have come.
    frame: Option<(Frame, u64)>,
    /// The message under way, and whether it is compressed.
    message: Option<(MessageKind, bool)>,
    content: Vec<u8>,
    /// How many bytes of the content are known to be UTF-8.
    utf8: usize,
    /// Whether the content was handed out.
    is_out: bool,
    control: [u8; CONTROL_BYTES_MAX],
    has_closed: bool,
}

impl Reader {
    /// A reader for what an end with this role receives: messages of at most `message_max` bytes.
    pub fn new(role: Role, message_max: usize, deflate: Option<Deflate>) -> Self {
        Self {
            role,
            message_max,
            inflater: deflate.map(|deflate| Inflater::new(deflate, role)),
            head: [0; HEAD_BYTES_MAX],
            head_len: 0,
            frame: None,
            message: None,
            content: Vec::new(),
            utf8: 0,
            is_out: false,
            control: [0; CONTROL_BYTES_MAX],
            has_closed: false,
        }
    }

    /// Whether the peer has sent a close frame.
    pub fn has_closed(&self) -> bool {
        self.has_closed
    }

    /// Memory that it holds for messages, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.content.capacity()
    }

    /// Whether it is between two messages.
    pub fn is_at_start(&self) -> bool {
        self.head_len == 0 && self.frame.is_none() && self.message.is_none()
    }

    /// Takes bytes from the front of `input` up to the end of the next message or control frame;
    /// `None` when all were taken and more are needed.
    ///
    /// # Errors
    /// When a rule is broken; the connection must be closed then, and nothing more be read.
    #[inline]
    pub fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'a>>, WsError> {
        if std::mem::take(&mut self.is_out) {
            self.content.clear();
            self.content.shrink_to(KEPT_BYTES);
            self.utf8 = 0;
        }
        loop {
            if self.has_closed {
                *input = &[];
                return Ok(None);
            }
            let (frame, before) = match self.frame {
                Some(begun) => begun,
                None => match self.take_head(input)? {
                    Some(frame) => (self.begin(frame)?, 0),
                    None => return Ok(None),
                },
            };
            let missing = frame.length - before;
            let whole = usize::try_from(missing).ok();
            let whole = whole.and_then(|missing| input.split_at_checked(missing));
            if before == 0
                && frame.mask.is_none()
                && let Some((payload, rest)) = whole
            {
                if frame.opcode.is_control() {
                    (*input, self.frame) = (rest, None);
                    let has_closed = &mut self.has_closed;
                    return control_event(frame.opcode, payload, has_closed).map(Some);
                }
                if frame.is_final
                    && self.content.is_empty()
                    && let Some((kind, false)) = self.message
                {
                    if kind == MessageKind::Text && std::str::from_utf8(payload).is_err() {
                        return Err(WsError::Utf8);
                    }
                    (*input, self.frame, self.message) = (rest, None, None);
                    return Ok(Some(Event::Message(kind, payload)));
                }
            }
            let (piece, rest) = whole.unwrap_or((input, &[]));
            *input = rest;
            let is_whole = whole.is_some();
            self.frame = (!is_whole).then_some((frame, before + piece.len() as u64));
            match frame.opcode.is_control() {
                true => {
                    // Its length was checked with its head.
                    let from = before as usize;
                    let control = &mut self.control[from..from + piece.len()];
                    control.copy_from_slice(piece);
                    mask::apply(control, frame.mask.unwrap_or_default(), before);
                }
                false => self.take_content(frame, piece, before)?,
            }
            if !is_whole {
                return Ok(None);
            }
            if frame.opcode.is_control() {
                let payload = &self.control[..frame.length as usize];
                return control_event(frame.opcode, payload, &mut self.has_closed).map(Some);
            }
            if frame.is_final
                && let Some((kind, is_compressed)) = self.message.take()
            {
                self.finish_content(kind, is_compressed)?;
                self.is_out = true;
                return Ok(Some(Event::Message(kind, &self.content)));
            }
        }
    }

    fn take_head(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, WsError> {
        let may_be_compressed = self.inflater.is_some();
        if self.head_len == 0
            && let Some((taken, frame)) = frame::parse_head(input, self.role, may_be_compressed)?
        {
            *input = &input[taken..];
            return Ok(Some(frame));
        }
        while let Some((byte, rest)) = input.split_first() {
            // A head of the greatest length is a whole one.
            self.head[self.head_len] = *byte;
            self.head_len += 1;
            *input = rest;
            let head = &self.head[..self.head_len];
            if let Some((_, frame)) = frame::parse_head(head, self.role, may_be_compressed)? {
                self.head_len = 0;
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Checks a frame against what came before it.
    fn begin(&mut self, frame: Frame) -> Result<Frame, WsError> {
        let begun = match frame.opcode {
            Opcode::Text => Some(MessageKind::Text),
            Opcode::Binary => Some(MessageKind::Binary),
            _ => None,
        };
        match (begun, self.message) {
            (Some(_), Some(_)) => return Err(WsError::Interleaved),
            (Some(kind), None) => self.message = Some((kind, frame.is_compressed)),
            (None, None) if frame.opcode == Opcode::Continuation => {
                return Err(WsError::Continuation);
            }
            (None, _) => {}
        }
        let is_plain = matches!(self.message, Some((_, false))) && !frame.opcode.is_control();
        let room = self.message_max.saturating_sub(self.content.len()) as u64;
        if is_plain && frame.length > room {
            return Err(WsError::TooLong);
        }
        Ok(frame)
    }

    fn take_content(&mut self, frame: Frame, piece: &[u8], before: u64) -> Result<(), WsError> {
        let Some((kind, is_compressed)) = self.message else {
            return Ok(());
        };
        let mask = frame.mask;
        match &mut self.inflater {
            Some(inflater) if is_compressed => {
                let mut at = before;
                let mut unmasked = [0; 1024];
                for part in piece.chunks(unmasked.len()) {
                    let unmasked = &mut unmasked[..part.len()];
                    unmasked.copy_from_slice(part);
                    mask::apply(unmasked, mask.unwrap_or_default(), at);
                    at += part.len() as u64;
                    inflater.feed(unmasked, &mut self.content, self.message_max)?;
                }
            }
            _ => {
                let from = self.content.len();
                self.content.extend_from_slice(piece);
                if let Some(mask) = mask {
                    mask::apply(&mut self.content[from..], mask, before);
                }
            }
        }
        self.check_text(kind)
    }

    fn finish_content(&mut self, kind: MessageKind, is_compressed: bool) -> Result<(), WsError> {
        if let Some(inflater) = &mut self.inflater
            && is_compressed
        {
            inflater.finish(&mut self.content, self.message_max)?;
            self.check_text(kind)?;
        }
        match kind == MessageKind::Text && self.utf8 < self.content.len() {
            true => Err(WsError::Utf8),
            false => Ok(()),
        }
    }

    /// Checks what has come since the last time; the last character may be incomplete.
    fn check_text(&mut self, kind: MessageKind) -> Result<(), WsError> {
        if kind == MessageKind::Text {
            match std::str::from_utf8(&self.content[self.utf8..]) {
                Ok(text) => self.utf8 += text.len(),
                Err(error) if error.error_len().is_none() => self.utf8 += error.valid_up_to(),
                Err(_) => return Err(WsError::Utf8),
            }
        }
        Ok(())
    }
}

fn control_event<'a>(
    opcode: Opcode,
    payload: &'a [u8],
    has_closed: &mut bool,
) -> Result<Event<'a>, WsError> {
    match opcode {
        Opcode::Ping => return Ok(Event::Ping(payload)),
        Opcode::Pong => return Ok(Event::Pong(payload)),
        _ => *has_closed = true,
    }
    match payload {
        [] => Ok(Event::Close(None, "")),
        [_] => Err(WsError::CloseLength),
        [high, low, reason @ ..] => {
            let code = CloseCode(u16::from_be_bytes([*high, *low]));
            if !code.may_be_sent() {
                return Err(WsError::CloseCode);
            }
            let reason = std::str::from_utf8(reason).map_err(|_| WsError::CloseUtf8)?;
            Ok(Event::Close(Some(code), reason))
        }
    }
}
