//! Drivers' command lines and output, as text to store and to quote.

use agent::wire::{Driven, LAST_OUTPUT};

/// Bytes kept of the start and of the end of a long output.
const KEPT_BYTES: usize = 128 * 1024;
const TAIL_LINES: usize = 12;
const TAIL_CHARS: usize = 300;

/// A command line as a person would type it.
pub(super) fn shell(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    let quoted: Vec<String> = words
        .iter()
        .map(|word| match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        })
        .collect();
    quoted.join(" ")
}

/// A long text without its middle.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= 2 * KEPT_BYTES {
        return text.to_owned();
    }
    // A UTF-8 character has at most four bytes.
    let boundary = |at: usize| (at..at + 4).find(|at| text.is_char_boundary(*at));
    let start = boundary(KEPT_BYTES).unwrap_or(0);
    let end = boundary(text.len() - KEPT_BYTES).unwrap_or(text.len());
    let omitted = end - start;
    format!(
        "{}\n[{omitted} bytes omitted]\n{}",
        &text[..start],
        &text[end..]
    )
}

/// The last lines that a driver printed, for a message.
pub(super) fn output_tail(driven: &Driven) -> String {
    let lines: Vec<String> = driven
        .output
        .lines()
        .chain(driven.errors.lines())
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.chars().take(TAIL_CHARS).collect())
        .collect();
    if lines.is_empty() {
        return "; it printed nothing".to_owned();
    }
    let from = lines.len().saturating_sub(TAIL_LINES);
    format!("{LAST_OUTPUT}\n  {}", lines[from..].join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_start_and_its_end() {
        assert_eq!(shortened("short"), "short");
        // Two-byte characters, so that the cut falls inside one.
        let text = format!("x{}end", "\u{e9}".repeat(KEPT_BYTES * 2));
        let kept = shortened(&text);
        assert!(kept.len() < 2 * KEPT_BYTES + 100);
        assert!(kept.starts_with("x\u{e9}") && kept.ends_with("\u{e9}end"));
        assert!(kept.contains(" bytes omitted]"));
    }

    #[test]
    fn commands_can_be_pasted() {
        let words = ["wait", "-H", "X-Y: it's", ""].map(str::to_owned);
        assert_eq!(shell(&words), "wait -H 'X-Y: it'\\''s' ''");
    }

    #[test]
    fn the_output_tail_is_short() {
        let driven = Driven {
            output: format!("{}\n\n", "y".repeat(10_000)).repeat(50),
            errors: "the end\n".into(),
            ..Driven::default()
        };
        let output = output_tail(&driven);
        assert!(output.len() < 5_000 && output.ends_with("\n  the end"));
        assert_eq!(output_tail(&Driven::default()), "; it printed nothing");
    }
}
