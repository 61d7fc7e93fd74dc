//! Content that waits to be sent on a stream.

use std::collections::VecDeque;

/// Bytes of a piece: as many as a frame of HTTP/2 holds.
const PIECE: usize = 16 * 1024;

/// A queue of bytes, in pieces that are freed as they are sent. So it takes hardly more memory than
/// the bytes that it holds, and moves none of them.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// The bytes before `sent` have been sent.
    front: Vec<u8>,
    sent: usize,
    /// Further pieces, all but the last full.
    more: VecDeque<Vec<u8>>,
    /// Bytes that have not been sent.
    len: usize,
}

impl Content {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len();
        while !bytes.is_empty() {
            let last = self.more.back_mut().unwrap_or(&mut self.front);
            let (now, later) = bytes.split_at(bytes.len().min(PIECE.saturating_sub(last.len())));
            if last.len() + now.len() > PIECE / 2 {
                // Doubling would exceed a piece.
                last.reserve_exact(PIECE - last.len());
            }
            last.extend_from_slice(now);
            if !later.is_empty() {
                self.more.push_back(Vec::new());
            }
            bytes = later;
        }
    }

    /// The next bytes, and whether they are the last.
    pub fn front(&self) -> (&[u8], bool) {
        (&self.front[self.sent..], self.more.is_empty())
    }

    /// Removes bytes that were sent, of those that [`Content::front`] gave.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        self.len -= count;
        if self.sent == self.front.len() {
            self.sent = 0;
            match self.more.pop_front() {
                Some(next) => self.front = next,
                None => self.front.clear(),
            }
        }
    }
}

#[cfg(test)]
impl Content {
    pub fn capacity(&self) -> usize {
        let more = self.more.iter().map(Vec::capacity);
        self.front.capacity() + more.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_take_little_more_than_their_length() {
        let all: Vec<u8> = (0..1_000_000).map(|at| (at % 251) as u8).collect();
        for (pushed, sent) in [
            (1, 1),
            (7, 5),
            (32_768, 100),
            (32_768, 16_384),
            (70_000, 9_000),
        ] {
            let (mut content, mut got, mut at) = (Content::default(), Vec::new(), 0);
            let most = if pushed == 1 { 20_000 } else { all.len() };
            while got.len() < most {
                // More comes in than goes out, up to a bound, and it is never empty.
                while at < most && content.len() < 256 * 1024 {
                    let end = (at + pushed).min(most);
                    content.push(&all[at..end]);
                    at = end;
                }
                assert!(
                    content.capacity() <= content.len() + 2 * PIECE,
                    "{} for {}",
                    content.capacity(),
                    content.len()
                );
                for _ in 0..10 {
                    let (front, is_last) = content.front();
                    assert_eq!(is_last, front.len() == content.len());
                    let count = sent.min(front.len());
                    got.extend_from_slice(&front[..count]);
                    content.advance(count);
                }
            }
            assert!(got == all[..most], "{pushed}, {sent}");
            assert_eq!(content.len(), 0);
        }
    }
}
