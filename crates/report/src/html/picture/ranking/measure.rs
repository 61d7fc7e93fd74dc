//! How wide a text may become. The reader's font is not known, so the widths are those of a wide one.

use readings::text::compact::ends_kept;

/// A font size, and whether the letters are bold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Font {
    pub size: f64,
    pub bold: bool,
}

impl Font {
    pub const fn plain(size: f64) -> Self {
        Self { size, bold: false }
    }

    pub const fn bold(size: f64) -> Self {
        Self { size, bold: true }
    }

    /// The most that a text is wide, in the unit of the size.
    pub fn width(self, text: &str) -> f64 {
        let letters: f64 = text.chars().map(letter).sum();
        letters * self.size * if self.bold { 1.1 } else { 1.0 }
    }

    /// The text, with letters left out in its middle until it fits.
    pub fn cut(self, text: &str, width: f64) -> String {
        if self.width(text) <= width {
            return text.to_owned();
        }
        let count = text.chars().count();
        let shorter = (1..count).rev().map(|most| ends_kept(text, most));
        let mut fitting = shorter.filter(|text| self.width(text) <= width);
        fitting.next().unwrap_or_else(|| "…".to_owned())
    }

    /// The lines of a text that fit; a word that is too long is cut.
    pub fn wrap(self, text: &str, width: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let word = self.cut(word, width);
            match lines.last_mut() {
                Some(line) if self.width(&format!("{line} {word}")) <= width => {
                    line.push(' ');
                    line.push_str(&word);
                }
                _ => lines.push(word),
            }
        }
        lines
    }
}

/// The width of a letter as a share of the font's size.
fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.36,
        'f' | 't' | 'r' | '-' | '(' | ')' | '[' | ']' | '/' => 0.42,
        'm' | 'M' | 'w' | 'W' | '%' | '@' | '…' => 0.99,
        '+' | '=' | '<' | '>' | '~' | '≥' | '×' => 0.84,
        '0'..='9' | 'a'..='z' => 0.64,
        letter if u32::from(letter) >= 0x1100 => 1.05,
        _ => 0.76,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_and_wrapped_texts_fit() {
        let font = Font::plain(10.0);
        let text = "a-name-of-some-length, and more words that follow";
        for width in [30.0, 60.0, 100.0] {
            assert!(font.width(&font.cut(text, width)) <= width);
            let lines = font.wrap(text, width);
            assert!(
                lines.iter().all(|line| font.width(line) <= width),
                "{lines:?}"
            );
        }
        assert_eq!(font.cut("short", 100.0), "short");
        assert_eq!(font.wrap("one two", 200.0), ["one two"]);
    }
}
