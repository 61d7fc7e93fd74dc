//! Templates as text again.

use readings::requests::{Fill, Piece, Template};

use super::Names;

/// The text that [`parse`](super::parse) reads as this template; `None` where a part is no UTF-8.
pub fn written(template: &Template, names: Names<'_>) -> Option<String> {
    let mut out = String::new();
    let mut pieces = template.0.iter().peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(bytes) => {
                let is_before_place = matches!(pieces.peek(), Some(Piece::Place { .. }));
                escape(std::str::from_utf8(bytes).ok()?, is_before_place, &mut out);
            }
            Piece::Place { fill, .. } => {
                out.push_str("{{ ");
                out.push_str(&fill_text(fill, names)?);
                out.push_str(" }}");
            }
        }
    }
    Some(out)
}

/// A text in which braces are no placeholders.
pub fn braces_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape(text, false, &mut out);
    out
}

/// Appends a text; several braces in a row, and any before a placeholder, go into quotes.
fn escape(text: &str, is_before_place: bool, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let run = rest[at..].len() - rest[at..].trim_start_matches('{').len();
        let is_last = at + run == rest.len();
        let braces = &rest[at..at + run];
        match run > 1 || is_last && is_before_place {
            true => out.push_str(&format!("{{{{ \"{braces}\" }}}}")),
            false => out.push_str(braces),
        }
        rest = &rest[at + run..];
    }
    out.push_str(rest);
}

fn fill_text(fill: &Fill, names: Names<'_>) -> Option<String> {
    Some(match fill {
        Fill::Column { feed, column } => {
            let feed = names.feeds.get(*feed)?;
            format!("{}.{}", feed.name, feed.columns.get(*column)?)
        }
        Fill::Seq => "seq".to_owned(),
        Fill::Uuid => "uuid".to_owned(),
        Fill::Int { from, to } => format!("int({from}, {to})"),
        Fill::Zipf { keys, exponent } => format!("zipf({keys}, {exponent})"),
        Fill::Hex { digits } => format!("hex({digits})"),
        Fill::Now => "now".to_owned(),
        Fill::Captured { name } => names.captured.get(*name)?.clone(),
    })
}
