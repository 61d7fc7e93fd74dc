//! Frames: each is a line `MARK KIND NUMBER LENGTH CHECKSUM PAYLOAD`.
//!
//! The mark gives the direction, so that an echo is noticed. Number, length and checksum have eight
//! hexadecimal digits each. The checksum is the CRC-32 of kind, number, length and payload. As
//! frames are lines, they can be told from what a login shell prints before the first one.

use std::io::{BufRead, Read};

use super::fault::PipeFault;
use crate::protocol::shortened::{REASON_BYTES_MAX, shortened};

/// Digits of a number, length or checksum.
const DIGITS: usize = 8;
const MARK_BYTES: usize = 6;
/// The longest line up to the first frame, which is a greeting.
const FIRST_BYTES_MAX: usize = 16 << 10;
/// A longer buffer is given back once its frame is read.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Length of ` K NNNNNNNN LLLLLLLL` (kind, number, length), which the checksum covers.
const COVERED_BYTES: usize = 2 + 2 * (1 + DIGITS);
const HEAD_BYTES: usize = MARK_BYTES + COVERED_BYTES + 1 + DIGITS + 1;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Coordinator,
    Agent,
}

impl Side {
    fn mark(self) -> &'static [u8; MARK_BYTES] {
        match self {
            Side::Coordinator => b"weigh>",
            Side::Agent => b"weigh<",
        }
    }

    fn other(self) -> Self {
        match self {
            Side::Coordinator => Side::Agent,
            Side::Agent => Side::Coordinator,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An order or an answer.
    Message,
    Heartbeat,
    /// The final frame.
    End,
    /// A fault in what was received; also the last frame.
    Fault,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Message, Self::Heartbeat, Self::End, Self::Fault];

    fn letter(self) -> u8 {
        match self {
            Kind::Message => b'M',
            Kind::Heartbeat => b'H',
            Kind::End => b'E',
            Kind::Fault => b'F',
        }
    }
}

/// A frame as a line. Line breaks within the payload become spaces.
pub(crate) fn encode(from: Side, kind: Kind, number: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD_BYTES + payload.len() + 1);
    frame.extend_from_slice(from.mark());
    let letter = char::from(kind.letter());
    let covered = format!(" {letter} {number:08x} {:08x}", payload.len());
    frame.extend_from_slice(covered.as_bytes());
    let payload: Vec<u8> = payload
        .iter()
        .map(|byte| if *byte == b'\n' { b' ' } else { *byte })
        .collect();
    let sum = checksum(covered.as_bytes(), &payload);
    frame.extend_from_slice(format!(" {sum:08x} ").as_bytes());
    frame.extend_from_slice(&payload);
    frame.push(b'\n');
    frame
}

fn checksum(covered: &[u8], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(covered);
    sum.update(payload);
    sum.finalize()
}

enum Decoded<'a> {
    Frame(Kind, u32, &'a [u8]),
    /// A line of the other direction.
    Echo,
    Foreign,
    Damaged(String),
}

fn decode(from: Side, line: &[u8]) -> Decoded<'_> {
    if line.starts_with(from.other().mark()) {
        return Decoded::Echo;
    }
    if !line.starts_with(from.mark()) {
        return Decoded::Foreign;
    }
    let Some((head, payload)) = line.split_at_checked(HEAD_BYTES) else {
        return Decoded::Damaged(format!("{} bytes without a whole head", line.len()));
    };
    let covered = &head[MARK_BYTES..MARK_BYTES + COVERED_BYTES];
    let number = |at: usize| hexadecimal(head.get(at..at + DIGITS)?);
    let at_number = MARK_BYTES + 3;
    let at_length = at_number + DIGITS + 1;
    let has_spaces = head[HEAD_BYTES - 1] == b' ' && head[MARK_BYTES + COVERED_BYTES] == b' ';
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.letter() == covered[1]);
    let (Some(kind), Some(found), Some(length), Some(sum)) = (
        kind,
        number(at_number),
        number(at_length),
        number(at_length + DIGITS + 1),
    ) else {
        return Decoded::Damaged("a head that cannot be read".to_owned());
    };
    if length as usize != payload.len() {
        let bytes = payload.len();
        return Decoded::Damaged(format!("{bytes} bytes of {length}"));
    }
    if !has_spaces || sum != checksum(covered, payload) {
        return Decoded::Damaged("another checksum".to_owned());
    }
    Decoded::Frame(kind, found, payload)
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    // Each number has only one form, so that a changed digit never reads as the same number.
    if !digits
        .iter()
        .all(|one| matches!(one, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// What was read from the pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A line before the first frame.
    Foreign(String),
    Message(String),
    Heartbeat,
    End,
    /// A fault that the other side found.
    Fault(String),
}

impl Incoming {
    /// The bytes of its text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Incoming::Foreign(text) | Incoming::Message(text) | Incoming::Fault(text) => text.len(),
            Incoming::Heartbeat | Incoming::End => 0,
        }
    }
}

/// Reads the frames of one side.
pub(crate) struct FrameReader<R> {
    input: R,
    from: Side,
    /// Number of the next frame.
    next: u32,
    bytes_max: usize,
    line: Vec<u8>,
}

impl<R: BufRead> FrameReader<R> {
    /// A reader of frames that `from` sends, each at most `bytes_max` bytes long.
    pub(crate) fn new(input: R, from: Side, bytes_max: usize) -> Self {
        Self {
            input,
            from,
            next: 0,
            bytes_max,
            line: Vec::new(),
        }
    }

    /// The next frame.
    ///
    /// # Errors
    /// When anything is wrong with the pipe. Nothing that follows can then be trusted.
    pub(crate) fn read(&mut self) -> Result<Incoming, PipeFault> {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES_MAX);
        let has_begun = self.next > 0;
        let bytes_max = match has_begun {
            true => self.bytes_max,
            false => self.bytes_max.min(FIRST_BYTES_MAX),
        };
        // One byte more than allowed, so that a longer line is noticed.
        let limit = bytes_max as u64 + 1;
        let read = (&mut self.input)
            .take(limit)
            .read_until(b'\n', &mut self.line)
            .map_err(|e| PipeFault::Unreadable {
                reason: e.to_string(),
            })?;
        if read == 0 {
            return Err(PipeFault::Ended { status: None });
        }
        let is_whole = self.line.pop_if(|last| *last == b'\n').is_some();
        if !is_whole && self.line.len() > bytes_max {
            return Err(match has_begun {
                true => PipeFault::TooLong { bytes_max },
                false => PipeFault::LongLine { bytes_max },
            });
        }
        if !is_whole && (has_begun || self.line.starts_with(self.from.mark())) {
            let bytes = self.line.len();
            return Err(PipeFault::Truncated { bytes });
        }
        let expected = self.next;
        let (kind, found, payload) = match decode(self.from, &self.line) {
            Decoded::Frame(kind, found, payload) => (kind, found, payload),
            Decoded::Echo => return Err(PipeFault::Echo),
            Decoded::Damaged(found) => return Err(PipeFault::Damaged { expected, found }),
            Decoded::Foreign if has_begun => return Err(PipeFault::foreign(&self.line)),
            Decoded::Foreign => {
                let text = String::from_utf8_lossy(&self.line);
                return Ok(Incoming::Foreign(text.trim_end_matches('\r').to_owned()));
            }
        };
        if found > expected {
            return Err(PipeFault::Missing { expected, found });
        }
        if found < expected {
            return Err(PipeFault::Repeated { expected, found });
        }
        self.next += 1;
        let text = || String::from_utf8_lossy(payload).into_owned();
        Ok(match kind {
            Kind::Message => Incoming::Message(text()),
            Kind::Heartbeat => Incoming::Heartbeat,
            Kind::End => Incoming::End,
            Kind::Fault => Incoming::Fault(shortened(&text(), REASON_BYTES_MAX)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES_MAX: usize = 1 << 16;

    fn conversation() -> Vec<Vec<u8>> {
        vec![
            encode(Side::Agent, Kind::Message, 0, br#"{"answer":"done"}"#),
            encode(Side::Agent, Kind::Heartbeat, 1, b""),
            encode(
                Side::Agent,
                Kind::Message,
                2,
                br#"{"answer":"free","free":true}"#,
            ),
            encode(Side::Agent, Kind::End, 3, b""),
        ]
    }

    /// Everything that is read until the pipe ends or has a fault.
    fn read(bytes: &[u8]) -> (Vec<Incoming>, PipeFault) {
        let mut reader = FrameReader::new(bytes, Side::Agent, BYTES_MAX);
        let mut all = Vec::new();
        loop {
            match reader.read() {
                Ok(one) => all.push(one),
                Err(fault) => return (all, fault),
            }
        }
    }

    #[test]
    fn a_conversation_arrives_after_what_a_login_shell_prints() {
        let mut bytes = b"welcome\r\n\n".to_vec();
        bytes.extend(conversation().concat());
        let (all, fault) = read(&bytes);
        assert_eq!(all[0], Incoming::Foreign("welcome".into()));
        assert_eq!(all[2], Incoming::Message(r#"{"answer":"done"}"#.into()));
        assert_eq!(all[5], Incoming::End);
        assert_eq!(fault, PipeFault::Ended { status: None });
    }

    #[test]
    fn each_fault_has_its_name() {
        let [one, two, three, end] = conversation().try_into().unwrap();
        let fault = |frames: &[&[u8]]| read(&frames.concat()).1;
        assert_eq!(
            fault(&[&one, &three, &end]),
            PipeFault::Missing {
                expected: 1,
                found: 2
            }
        );
        assert_eq!(
            fault(&[&one, &two, &two]),
            PipeFault::Repeated {
                expected: 2,
                found: 1
            }
        );
        assert_eq!(
            fault(&[&one, &two, &three[..50]]),
            PipeFault::Truncated { bytes: 50 }
        );
        let foreign = fault(&[&one, b"oops\n"]);
        assert_eq!(foreign.to_string(), PipeFault::foreign(b"oops").to_string());
        let order = encode(Side::Coordinator, Kind::Message, 0, b"{}");
        assert_eq!(fault(&[&order]), PipeFault::Echo);
        let long = vec![b'x'; BYTES_MAX + 1];
        let bytes_max = BYTES_MAX;
        assert_eq!(fault(&[&one, &long]), PipeFault::TooLong { bytes_max });
        // A login shell prints nothing that long.
        let bytes_max = FIRST_BYTES_MAX;
        let long = &long[..=bytes_max];
        assert_eq!(fault(&[long]), PipeFault::LongLine { bytes_max });
    }

    proptest! {
        /// Whatever happens to one byte, only messages that were sent are read.
        #[test]
        fn one_changed_dropped_or_inserted_byte_is_noticed(
            at in 0usize..1000, byte in any::<u8>(), how in 0..4u8
        ) {
            let whole = conversation().concat();
            let at = at % whole.len();
            let mut bytes = whole.clone();
            match how {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
            prop_assume!(bytes != whole);
            let sent = read(&whole).0;
            let (got, fault) = read(&bytes);
            let frames: Vec<_> =
                got.iter().filter(|one| !matches!(one, Incoming::Foreign(_))).collect();
            // Each message that was read was sent, in its place.
            prop_assert!(frames.iter().zip(&sent).all(|(got, sent)| *got == sent));
            // Only changes before the first frame and in the last line break may go unnoticed.
            let is_noticed = fault != PipeFault::Ended { status: None };
            prop_assert!(is_noticed || frames.len() < sent.len() || got.len() > frames.len());
        }
    }
}
