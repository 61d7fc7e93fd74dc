//! Messages that say their number and when they were due.

use std::io::Write as _;

/// The most bytes of a message.
pub(super) const BYTES_MAX: u64 = 1 << 20;

/// Appends message `number` of an exchange, which was due at this time: `weigh N DUE_NS `, then
/// letters up to `bytes`. A message is never shorter than what it says.
pub(super) fn append(out: &mut Vec<u8>, number: u64, due_ns: u64, bytes: usize) {
    let start = out.len();
    // Writing to a vector does not fail.
    let _ = write!(out, "weigh {number} {due_ns} ");
    let letters = bytes.saturating_sub(out.len() - start);
    out.extend((b'a'..=b'z').cycle().take(letters));
}
