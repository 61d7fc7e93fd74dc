//! Makes control characters in foreign text visible: in the last step of each report format, and
//! where the program prints.

use std::borrow::Cow;

/// Text that neither controls a terminal nor reorders what a reader sees. Control characters except
/// line feed and tab become their Unicode symbols (`␛` for ESC). Those without a symbol, and the
/// characters that change the direction of text, become escapes such as `\u{9b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, false)
}

/// Foreign text that is part of a line: as [`visible`], and line feeds and tabs become their symbols,
/// so that no name can look like lines of this program.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match visible(text) {
        text if text.contains(['\n', '\t']) => {
            Cow::Owned(text.replace('\n', "\u{240a}").replace('\t', "\u{2409}"))
        }
        text => text,
    }
}

/// As [`visible`], but the colours that this program writes are kept (see `CODES`), for text that
/// it has coloured. Foreign text in it has to be made visible first; where it could not, it can
/// colour itself, and cannot hide anything.
pub fn visible_in_colour(text: &str) -> Cow<'_, str> {
    shown(text, true)
}

/// A JSON document without characters that control a terminal. JSON itself escapes only those below
/// U+0020. The others can occur only in strings, and become escapes such as `\u009b`.
pub fn visible_json(document: &str) -> Cow<'_, str> {
    if !document.contains(acts) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 16);
    for c in document.chars() {
        match acts(c) {
            true => out.push_str(&format!("\\u{:04x}", c as u32)),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn shown(text: &str, colours: bool) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(acts) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = if colours { colour_length(rest) } else { 0 };
        if colour > 0 {
            out.push_str(&rest[..colour]);
            rest = &rest[colour..];
        } else if let Some(c) = rest.chars().next() {
            push_picture(&mut out, c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a character controls a terminal or the direction of text.
fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Marks, embeddings, overrides and isolates of the bidirectional algorithm; line and
        // paragraph separators.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

fn push_picture(out: &mut String, c: char) {
    let picture = match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        None => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
    }
}

/// What this program writes in colour sequences, such as `ESC [ 31 ; 1 m`: the end of a colour, bold,
/// dim and underlined, and red, green, yellow, magenta and cyan text. No background, and no black,
/// with which text could be hidden.
const CODES: [&str; 9] = ["0", "1", "2", "4", "31", "32", "33", "35", "36"];

/// Length of the colour sequence at the start of a text; 0 if there is none.
fn colour_length(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let Some(end) = codes.find(|c: char| !c.is_ascii_digit() && c != ';') else {
        return 0;
    };
    let all = codes[..end].split(';').all(|code| CODES.contains(&code));
    match codes[end..].starts_with('m') && all {
        true => "\x1b[".len() + end + 1,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_becomes_a_picture() {
        for (text, seen) in [
            (
                "plain \u{e9} \u{4e16}\ttab\n",
                "plain \u{e9} \u{4e16}\ttab\n",
            ),
            ("\x1b]0;title\x07", "\u{241b}]0;title\u{2407}"),
            ("\x1b[31mred\x1b[0m", "\u{241b}[31mred\u{241b}[0m"),
            (
                "over\rwrite\x08\x7f\0",
                "over\u{240d}write\u{2408}\u{2421}\u{2400}",
            ),
            ("\u{9b}2J\u{85}", "\\u{9b}2J\\u{85}"),
            ("a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}"),
        ] {
            assert_eq!(visible(text), seen, "{text:?}");
        }
    }

    #[test]
    fn of_sequences_only_colours_are_kept() {
        for kept in ["\x1b[31;1m-\x1b[0m", "\x1b[36;1;4mx\x1b[0m", "\x1b[2m"] {
            assert_eq!(visible_in_colour(kept), kept);
        }
        for other in [
            "\x1b[2J",
            "\x1b[8m",
            "\x1b[5m",
            "\x1b[31",
            "\x1b[",
            "\x1b",
            "\x1b]8;;x\x07",
            "\x1bc",
            "\x1b[31;8m",
            "\x1b[m",
            "\x1b[30;40m",
            "\x1b[30m",
            "\x1b[41m",
            "\x1b[7m",
            "\x1b[38;5;12m",
            "\x1b[38;2;0;0;0m",
            "\x1b[1A",
            "\x1b[?25l",
        ] {
            let seen = visible_in_colour(other);
            assert!(
                !seen.contains('\x1b') && seen.starts_with('\u{241b}'),
                "{seen}"
            );
        }
    }

    #[test]
    fn a_name_is_on_one_line() {
        assert_eq!(one_line("a b"), "a b");
        assert_eq!(
            one_line("a\n+ b\tc\r\x1b[8m"),
            "a\u{240a}+ b\u{2409}c\u{240d}\u{241b}[8m"
        );
    }

    #[test]
    fn a_json_document_stays_the_same_document() {
        let value = serde_json::json!({ "a\u{9b}": "\x1b[2J \u{7f}\u{202e} \r\n\u{e9}" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let seen = visible_json(&text);
        assert!(!seen.contains(acts), "{seen}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&seen).unwrap(),
            value
        );
    }
}
