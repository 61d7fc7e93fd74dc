//! Heads that a server sends again and again.

use super::response::Parsed;

/// The longest head that is kept to know it again.
const KNOWN_BYTES_MAX: usize = 1_024;

/// The last head of a final answer. A server sends the same one again and again, until its clock goes
/// on; what it says need not be found out each time.
#[derive(Debug, Default)]
pub(super) struct KnownHead {
    /// Empty until a second answer comes: a connection with one answer needs no memory for it.
    bytes: Vec<u8>,
    bodiless: bool,
    parsed: Option<Parsed>,
    has_answered: bool,
}

impl KnownHead {
    /// What the head at the front of `input` says, if it is the known one.
    #[inline]
    pub(super) fn find(&self, input: &[u8], bodiless: bool) -> Option<(usize, Parsed)> {
        let parsed = self.parsed.filter(|_| self.bodiless == bodiless)?;
        input
            .starts_with(&self.bytes)
            .then_some((self.bytes.len(), parsed))
    }

    pub(super) fn keep(&mut self, head: &[u8], bodiless: bool, parsed: Parsed) {
        let is_first = !std::mem::replace(&mut self.has_answered, true);
        self.parsed = None;
        if !is_first && head.len() <= KNOWN_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(head);
            (self.bodiless, self.parsed) = (bodiless, Some(parsed));
        }
    }
}
