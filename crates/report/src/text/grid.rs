//! Text in columns, and text within a width.

use std::borrow::Cow;

use crate::section::columns::Columns;
use crate::text::visible::{one_line, visible};

/// The columns side by side. Where they do not fit into `width` they go on below, the columns up to
/// the subject's name or number repeated; where not even one fits beside those, each row is a list.
/// Control characters in cells, which hold the names of others, become visible.
pub(crate) fn grid(columns: &Columns, width: usize) -> String {
    let cells = columns.rows.iter().flatten();
    let is_plain = |cell: &String| matches!(one_line(cell), Cow::Borrowed(_));
    if cells.chain(&columns.head).all(is_plain) {
        return laid_out(columns, width);
    }
    let mut shown = columns.clone();
    for cell in shown.rows.iter_mut().flatten().chain(&mut shown.head) {
        *cell = one_line(cell).into_owned();
    }
    laid_out(&shown, width)
}

fn laid_out(columns: &Columns, width: usize) -> String {
    let sizes: Vec<usize> = (0..columns.head.len())
        .map(|i| {
            let cells = columns.rows.iter().map(|r| len(&r[i]));
            2 + cells.chain([len(&columns.head[i])]).max().unwrap_or(0)
        })
        .collect();
    let subject = columns.head.iter().position(|h| h == "subject" || h == "#");
    let names: Vec<usize> = (0..subject.map_or(0, |at| at + 1)).collect();
    let names_size: usize = names.iter().map(|i| sizes[*i]).sum();
    let mut bands: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for (i, size) in sizes.iter().enumerate().skip(names.len()) {
        if names_size + size > width {
            return stacked(columns);
        }
        match bands.last_mut().filter(|_| *size <= room) {
            Some(band) => band.push(i),
            None => {
                bands.push(names.iter().copied().chain([i]).collect());
                room = width - names_size;
            }
        }
        room -= size;
    }
    let bands: Vec<String> = bands.iter().map(|b| band(columns, &sizes, b)).collect();
    bands.join("\n")
}

fn band(columns: &Columns, sizes: &[usize], shown: &[usize]) -> String {
    let mut out = String::new();
    for row in std::iter::once(&columns.head).chain(&columns.rows) {
        let mut line = String::new();
        for &i in shown {
            let space = " ".repeat(sizes[i] - 2 - len(&row[i]));
            line.push_str("  ");
            if columns.numeric[i] {
                line.push_str(&space);
                line.push_str(&row[i]);
            } else {
                line.push_str(&row[i]);
                line.push_str(&space);
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn stacked(columns: &Columns) -> String {
    let size = columns.head.iter().map(|h| len(h)).max().unwrap_or(0);
    let mut out = String::new();
    for (i, row) in columns.rows.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        for (name, cell) in columns.head.iter().zip(row) {
            if cell != "-" {
                let space = " ".repeat(size - len(name));
                out.push_str(&format!("  {name}{space}  {cell}\n"));
            }
        }
    }
    out
}

fn len(text: &str) -> usize {
    textwrap::core::display_width(text)
}

/// A text with single spaces between words. A no-break space keeps an interval such as
/// `[8.0%, 10.2%]` together.
fn words(text: &str) -> String {
    let mut out = String::new();
    let mut last = "";
    for word in text.split_whitespace() {
        let inside = last.starts_with('[') && last.ends_with(',');
        match (out.is_empty(), inside) {
            (true, _) => {}
            (false, true) => out.push('\u{a0}'),
            (false, false) => out.push(' '),
        }
        out.push_str(word);
        last = word;
    }
    out
}

/// Breaks text at spaces so that no line is wider than `width`, as far as its words allow; later
/// lines are indented. The first line's `lead` stands before the text and is not part of it. Control
/// characters in the text become visible, but not those in the lead, which may be coloured.
pub(crate) fn wrapped(lead: &str, text: &str, indent: usize, width: usize) -> String {
    let space = " ".repeat(indent);
    let options = textwrap::Options::new(width)
        .initial_indent(&space)
        .subsequent_indent(&space)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    let lines = textwrap::fill(&words(&visible(text)), options).replace('\u{a0}', " ");
    format!("{lead}{}\n", lines.get(indent..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        let texts = |row: &[&str]| row.iter().map(|s| (*s).to_owned()).collect();
        Columns {
            head: texts(&["subject", "requests/s", "p50"]),
            rows: vec![texts(&["direct", "20,123", "4us"]), texts(&["é", "-", "-"])],
            numeric: vec![false, true, true],
        }
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            grid(&columns(), 80),
            "  subject  requests/s  p50\n  direct       20,123  4us\n  é                 -    -\n"
        );
    }

    #[test]
    fn what_does_not_fit_goes_on_below_and_nothing_is_left_out() {
        assert_eq!(
            grid(&columns(), 21),
            "  subject  requests/s\n  direct       20,123\n  é                 -\n\n  \
             subject  p50\n  direct   4us\n  é          -\n"
        );
        assert_eq!(
            grid(&columns(), 20),
            "  subject     direct\n  requests/s  20,123\n  p50         4us\n\n  subject     é\n"
        );
    }

    #[test]
    fn the_words_of_others_hide_nothing_and_make_no_lines() {
        let mut columns = columns();
        columns.rows[0][0] = "a\n+ b\x1b[30;40m".to_owned();
        assert_eq!(
            grid(&columns, 80).lines().nth(1),
            Some("  a\u{240a}+ b\u{241b}[30;40m      20,123  4us")
        );
        let text = "a\n+ faster\x1b[31mx";
        assert_eq!(
            wrapped("\x1b[1m-\x1b[0m ", text, 2, 80),
            "\x1b[1m-\x1b[0m a + faster\u{241b}[31mx\n"
        );
    }

    #[test]
    fn text_is_broken_at_spaces() {
        assert_eq!(
            wrapped("- ", "one two three four", 2, 10),
            "- one two\n  three\n  four\n"
        );
        assert_eq!(
            wrapped("", "costs 9% [8%, 10%] here", 0, 12),
            "costs 9%\n[8%, 10%]\nhere\n"
        );
        assert_eq!(wrapped("", "overlongword", 0, 5), "overlongword\n");
    }
}
