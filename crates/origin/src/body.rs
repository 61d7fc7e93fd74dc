//! The content of an answer on a stream.

use bytes::Bytes;

/// The content of an answer: a text, repeated up to a size. Long bodies share one text.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    text: Bytes,
    size: usize,
}

impl Body {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            text: Bytes::copy_from_slice(bytes),
            size: bytes.len(),
        }
    }

    /// `size` bytes of `text`, repeated.
    pub(crate) fn repeated(text: Bytes, size: usize) -> Self {
        // An empty text has no bytes to repeat.
        let size = if text.is_empty() { 0 } else { size };
        Self { text, size }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The bytes from `at` to the end of that repetition of the text, or of the content. Empty only
    /// from the content's end on.
    pub(crate) fn piece(&self, at: usize) -> Bytes {
        if at >= self.size {
            return Bytes::new();
        }
        let from = at % self.text.len();
        let count = (self.text.len() - from).min(self.size - at);
        self.text.slice(from..from + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_from_anywhere_make_the_whole() {
        let body = Body::repeated(Bytes::from_static(b"abc"), 8);
        for start in 0..=8 {
            let (mut all, mut at) = (Vec::new(), start);
            while at < body.size() {
                let piece = body.piece(at);
                at += piece.len();
                all.extend_from_slice(&piece);
            }
            assert_eq!(all, &b"abcabcab"[start..]);
        }
        assert!(body.piece(8).is_empty() && body.piece(9).is_empty());
        assert_eq!(Body::of(b"abc").piece(1), &b"bc"[..]);
        assert!(Body::of(b"").piece(0).is_empty());
        assert_eq!(Body::repeated(Bytes::new(), 5).size(), 0);
    }
}
