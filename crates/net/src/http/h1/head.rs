//! Heads that arrive in pieces.

use super::HttpError;
use super::syntax::has_empty_line;

/// Longest head that is accepted, in bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most header fields that are accepted in one head.
pub const HEADERS_MAX: usize = 100;

/// Up to this many bytes each piece is parsed, so that nonsense is refused at once.
const SMALL: usize = 256;
/// The first two bytes may be an empty line before the head; two more may end there without being
/// the end of a head.
const EMPTY_LINE_BEFORE: usize = 4;
/// Memory that is kept for the next head.
const KEPT_BYTES: usize = 8 * 1024;

/// The beginning of an incomplete head.
///
/// A head is parsed again from its start when its empty line has arrived, and before that only when
/// its length passes a power of two. So a peer that sends single bytes costs a few times the
/// parsing of the head, and not its square; and as only the bytes decide when to parse, any split
/// of them gives the same result.
#[derive(Debug, Default)]
pub(super) struct PartialHead {
    bytes: Vec<u8>,
    /// How many of them were parsed last.
    parsed: usize,
    /// Whether the empty line is among them.
    ended: bool,
}

impl PartialHead {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.parsed = 0;
        self.ended = false;
    }

    /// Takes a head from the front of `input`, behind what came before. `parse` gives a head's
    /// length and what it says, or `None` while its end is missing. Returns how many bytes of the
    /// input were taken, and what the head says; `None` when all were taken and more are needed.
    #[inline]
    pub(super) fn take<T>(
        &mut self,
        input: &[u8],
        mut parse: impl FnMut(&[u8]) -> Result<Option<(usize, T)>, HttpError>,
    ) -> Result<Option<(usize, T)>, HttpError> {
        if input.is_empty() {
            return Ok(None);
        }
        if self.bytes.is_empty()
            && let Ok(Some(whole)) = parse(&input[..input.len().min(HEAD_BYTES_MAX)])
        {
            return Ok(Some(whole));
        }
        self.take_piece(input, parse)
    }

    fn take_piece<T>(
        &mut self,
        input: &[u8],
        mut parse: impl FnMut(&[u8]) -> Result<Option<(usize, T)>, HttpError>,
    ) -> Result<Option<(usize, T)>, HttpError> {
        let before = self.bytes.len();
        let room = HEAD_BYTES_MAX - before;
        self.bytes
            .extend_from_slice(&input[..input.len().min(room)]);
        self.ended = self.ended || has_empty_line(&self.bytes, before.max(EMPTY_LINE_BEFORE));
        let settled = match self.bytes.len() {
            len if self.ended || len <= SMALL => len,
            len => 1 << len.ilog2(),
        };
        if settled > self.parsed {
            self.parsed = settled;
            if let Some((len, head)) = parse(&self.bytes[..settled])? {
                self.clear();
                return Ok(Some((len - before, head)));
            }
        }
        if self.bytes.len() >= HEAD_BYTES_MAX {
            return Err(HttpError::HeadTooLarge);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pieces and counts how many bytes `parse` had to look at.
    fn cost(pieces: impl Iterator<Item = Vec<u8>>) -> (usize, Result<(), HttpError>) {
        let mut head = PartialHead::default();
        let mut looked_at = 0;
        for piece in pieces {
            let result = head.take(&piece, |bytes| {
                looked_at += bytes.len();
                Ok(has_empty_line(bytes, 0).then_some((bytes.len(), ())))
            });
            match result {
                Ok(None) => {}
                Ok(Some(_)) => return (looked_at, Ok(())),
                Err(e) => return (looked_at, Err(e)),
            }
        }
        (looked_at, Ok(()))
    }

    #[test]
    fn single_bytes_cost_no_more_than_a_few_times_the_head() {
        let (looked_at, end) = cost((0..).map(|_| vec![b'x']));
        assert_eq!(end, Err(HttpError::HeadTooLarge));
        assert!(looked_at < 3 * HEAD_BYTES_MAX, "{looked_at}");
        let lines = (0..).map(|n: usize| vec![if n.is_multiple_of(2) { b'x' } else { b'\n' }]);
        let (looked_at, end) = cost(lines);
        assert_eq!(end, Err(HttpError::HeadTooLarge));
        assert!(looked_at < 3 * HEAD_BYTES_MAX, "{looked_at}");
    }

    #[test]
    fn the_empty_line_is_found_wherever_it_is_cut() {
        for end in ["\n\n", "\n\r\n", "\r\n\r\n", "\r\n\n"] {
            let bytes = format!("{}{end}", "x".repeat(1000)).into_bytes();
            for cut in 0..=bytes.len() {
                let (one, two) = bytes.split_at(cut);
                let mut head = PartialHead::default();
                let parse = |b: &[u8]| Ok(has_empty_line(b, 0).then_some((b.len(), ())));
                let first = head.take(one, parse).unwrap();
                let found = first.or_else(|| head.take(two, parse).unwrap());
                assert!(found.is_some(), "{end:?} cut at {cut}");
                assert!(head.is_empty());
            }
        }
    }

    #[test]
    fn memory_for_a_long_head_is_given_back() {
        let mut head = PartialHead::default();
        let none = |_: &[u8]| Ok(None::<(usize, ())>);
        head.take(&[b'x'; 60_000], none).unwrap();
        head.clear();
        assert!(head.bytes.capacity() <= KEPT_BYTES);
    }
}
