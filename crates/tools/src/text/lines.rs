//! A text as lines without what terminals, mails and pages put around them.

use super::numbered;

/// A line without its indentation, quoting, colours, overwritten progress and a listing's number.
pub(crate) struct Line {
    /// Its number in the text, from 1. Progress that was overwritten shares the number.
    pub number: usize,
    pub text: String,
}

impl Line {
    /// What follows a label at the line's start.
    pub fn after(&self, label: &str) -> Option<&str> {
        self.text.strip_prefix(label).map(str::trim)
    }

    pub fn words(&self) -> Vec<&str> {
        self.text.split_whitespace().collect()
    }
}

pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let raws: Vec<&str> = text.split('\n').collect();
    let prefixes = numbered::prefixes(&raws);
    for (index, (raw, prefix)) in raws.into_iter().zip(prefixes).enumerate() {
        let before = lines.len();
        for part in raw[prefix..].split('\r') {
            let text = clean(part);
            if !text.is_empty() {
                let number = index + 1;
                lines.push(Line { number, text });
            }
        }
        if lines.len() == before {
            let (number, text) = (index + 1, String::new());
            lines.push(Line { number, text });
        }
    }
    lines
}

/// Removes what terminals, mails and pages put around a line.
fn clean(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.peek() == Some(&'[') {
            chars.next();
            // A control sequence ends with a letter.
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else if c == '\u{a0}' {
            text.push(' ');
        } else {
            text.push(c);
        }
    }
    let mut rest = text.trim();
    while let Some(quoted) = rest.strip_prefix('>') {
        rest = quoted.trim_start();
    }
    rest.to_owned()
}

/// The next line with something in it.
pub(crate) fn next_filled(lines: &[Line], at: usize) -> Option<&Line> {
    lines
        .iter()
        .skip(at + 1)
        .take(4)
        .find(|line| !line.text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_colours_and_progress_are_taken_away() {
        let text = "> > Requests/sec:    672.87\r\n\u{1b}[32m  Average:\t1 secs\u{1b}[0m\n\n \rSET: rps=1\r   \r====== SET ======\n";
        let lines = lines(text);
        let seen: Vec<_> = lines
            .iter()
            .map(|line| (line.number, line.text.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (1, "Requests/sec:    672.87"),
                (2, "Average:\t1 secs"),
                (3, ""),
                (4, "SET: rps=1"),
                (4, "====== SET ======"),
                (5, ""),
            ]
        );
    }
}
