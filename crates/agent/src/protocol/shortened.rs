//! Texts of an agent in messages.

use std::fmt::{Debug, Write};

/// The longest reason in a message.
pub(crate) const REASON_BYTES_MAX: usize = 4096;

/// The text; if it is longer than so many bytes, without its middle.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let half = bytes_max / 2;
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let head_to = (0..=half).rev().find(is_boundary).unwrap_or(0);
    let tail_from = (text.len() - half..text.len()).find(is_boundary);
    let tail = &text[tail_from.unwrap_or(text.len())..];
    format!("{}…{tail}", &text[..head_to])
}

/// The start of how a value is shown for debugging; a large one is not shown in full before.
pub(crate) fn start_of(value: &impl Debug) -> String {
    let mut start = Start(String::new());
    // It refuses what does not fit any more.
    let _ = write!(start, "{value:?}");
    shortened(&start.0, REASON_BYTES_MAX)
}

struct Start(String);

impl Write for Start {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() > REASON_BYTES_MAX {
            return Err(std::fmt::Error);
        }
        self.0.push_str(&shortened(text, REASON_BYTES_MAX));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_start_and_its_end() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("a long text", 6), "a l…ext");
        assert_eq!(start_of(&[1, 2]), "[1, 2]");
        assert!(start_of(&vec![0; 1 << 20]).len() < 2 * REASON_BYTES_MAX);
        // No character is cut.
        assert_eq!(shortened("äöüäöü", 6), "ä…ü");
    }
}
