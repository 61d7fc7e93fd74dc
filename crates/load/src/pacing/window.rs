//! The measured window of a segment, and its rows.

use readings::LATE_S;

/// The measured window, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from: u64,
    /// `u64::MAX` in a segment by count, until its last request is done.
    pub(crate) end: u64,
}

impl Window {
    #[inline]
    pub(crate) fn contains(&self, at: u64) -> bool {
        at >= self.from && at < self.end
    }

    /// The correction for a request at an edge of the window: it counts with the fraction of its
    /// time that lies inside. See [`Slice::edges`](readings::Slice::edges).
    pub(crate) fn edge_correction(&self, sent: u64, now: u64) -> f64 {
        let (begin, end) = (sent.max(self.from), now.min(self.end));
        if sent >= self.from && now < self.end || now <= sent || end <= begin {
            return 0.0;
        }
        let inside = (end - begin) as f64 / (now - sent) as f64;
        match self.contains(now) {
            true => inside - 1.0,
            false => inside,
        }
    }
}

/// An answer that takes longer counts as late in rows.
pub(crate) const LATE_NS: u64 = (LATE_S * 1e9) as u64;

/// The row under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSpan {
    pub(crate) length: u64,
    pub(crate) from: u64,
    pub(crate) number: u64,
}

impl RowSpan {
    /// How many rows before this one a time is, from 1 to 3; `None` where it is not before it, or rows
    /// are longer than a third of [`LATE_NS`].
    #[inline]
    pub(crate) fn rows_before(self, at: u64) -> Option<usize> {
        if at >= self.from || 3 * self.length > LATE_NS {
            return None;
        }
        Some((self.from - at).div_ceil(self.length).min(3) as usize)
    }
}
