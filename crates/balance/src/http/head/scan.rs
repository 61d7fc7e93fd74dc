//! When an incomplete head is worth parsing again.

use net::http::{HEAD_BYTES_MAX, has_empty_line};

/// Searches for the end of a head that arrives in pieces, looking at each byte once.
///
/// A head is parsed from its start each time, which would be quadratic for a peer that sends single
/// bytes. So it is parsed once with its first bytes, and then only when this says so.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScan {
    looked_at: usize,
}

impl HeadScan {
    /// Whether parsing may give a result: the head in `so_far` is complete or too long. `so_far`
    /// only grows between calls.
    pub fn ready(&mut self, so_far: &[u8]) -> bool {
        let from = std::mem::replace(&mut self.looked_at, so_far.len());
        // With bare line feeds too: that is refused, at once.
        so_far.len() >= HEAD_BYTES_MAX || has_empty_line(so_far, from)
    }

    /// Starts over for the next head.
    pub fn reset(&mut self) {
        self.looked_at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_wherever_it_is_cut() {
        for end in ["\r\n\r\n", "\n\n", "\n\r\n"] {
            let head = format!("GET / HTTP/1.1\r\nHost: x{end}");
            for cut in 0..head.len() {
                let mut scan = HeadScan::default();
                assert!(!scan.ready(&head.as_bytes()[..cut]), "{cut} of {head:?}");
                assert!(scan.ready(head.as_bytes()), "{cut} of {head:?}");
            }
            let mut scan = HeadScan::default();
            let ready: Vec<usize> = (0..=head.len())
                .filter(|n| scan.ready(&head.as_bytes()[..*n]))
                .collect();
            assert_eq!(ready, [head.len()], "{head:?}");
        }
    }

    #[test]
    fn an_endless_head_is_ready_at_its_limit() {
        let mut scan = HeadScan::default();
        assert!(!scan.ready(&vec![b'a'; HEAD_BYTES_MAX - 1]));
        assert!(scan.ready(&vec![b'a'; HEAD_BYTES_MAX]));
    }
}
