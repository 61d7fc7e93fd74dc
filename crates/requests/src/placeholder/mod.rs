//! Placeholders: `{{ user.id }}` in a path, a header's value or a body.
//!
//! Between `{{` and `}}` stands a column of a feed (`user.id`), the name of something captured
//! (`token`), one of the built-in words of [`FORMS`], or a text in quotes: `{{ "{{" }}` writes two
//! braces. Single braces, and `}}` alone, are text.

use config::nearest::suggestion;
use config::units::shown;
use readings::requests::{Feed, Fill, Piece, Template};
use readings::url::encoded_path;

mod call;
#[cfg(test)]
mod tests;
mod write;

pub use write::{braces_escaped, written};

use crate::fault::Fault;

/// The built-in words, and how they are written.
pub const FORMS: [(&str, &str); 6] = [
    ("seq", "seq"),
    ("uuid", "uuid"),
    ("int", "int(1, 1000)"),
    ("zipf", "zipf(10000, 1.1)"),
    ("hex", "hex(16)"),
    ("now", "now"),
];

const OPENING: &str = "{{";
const CLOSING: &str = "}}";

/// The names that placeholders may have, besides the built-in words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    pub feeds: &'a [Feed],
    /// What the requests of a session capture, in the order of the requests.
    pub captured: &'a [String],
    /// How many of these are captured before the request in question.
    pub known: usize,
}

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Path and query: everything is percent-encoded as needed, and a fragment is left out.
    Path,
    /// The value of a header, or a body: nothing is encoded.
    Text,
}

/// Whether a text has a placeholder.
pub fn has_places(text: &str) -> bool {
    text.contains(OPENING)
}

/// Whether a text may be the name of a feed or of something captured.
pub fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_alphabetic() || c == '_';
    let is_next = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.starts_with(is_first) && text.chars().all(is_next) && !is_built_in(text)
}

/// Whether it is one of the built-in words.
pub fn is_built_in(text: &str) -> bool {
    FORMS.iter().any(|(word, _)| *word == text)
}

/// The template that a text describes.
///
/// # Errors
/// Every wrong placeholder.
pub fn parse(text: &str, names: Names<'_>, part: Part) -> Result<Template, Vec<Fault>> {
    let mut pieces = Pieces {
        part,
        ..Pieces::default()
    };
    let mut faults = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(OPENING) {
        let start = at + found;
        pieces.text(&text[at..start]);
        let inner = start + OPENING.len();
        let Some(length) = length_of_place(&text[inner..]) else {
            let label = "no `}}` follows";
            faults.push(
                Fault::new(start..inner, "a placeholder is not closed", label)
                    .help("close it, as in {{ seq }}; {{ \"{{\" }} writes two braces"),
            );
            at = inner;
            continue;
        };
        match place(&text[inner..inner + length], inner, names) {
            Ok(Found::Text(text)) => pieces.text(text),
            Ok(Found::Fill(fill)) => pieces.place(fill),
            Err(fault) => faults.push(fault),
        }
        at = inner + length + CLOSING.len();
    }
    pieces.text(&text[at..]);
    match faults.is_empty() {
        true => Ok(pieces.finish()),
        false => Err(faults),
    }
}

/// The bytes between a placeholder's braces; `None` if it is not closed.
fn length_of_place(text: &str) -> Option<usize> {
    let blanks = text.len() - text.trim_start().len();
    let quoted = match text[blanks..].strip_prefix('"') {
        Some(rest) => blanks + 2 + rest.find('"')?,
        None => 0,
    };
    let end = quoted + text[quoted..].find(CLOSING)?;
    // The next placeholder's braces close this one no more.
    (!text[quoted..end].contains(OPENING)).then_some(end)
}

/// What a placeholder stands for.
enum Found<'t> {
    Text(&'t str),
    Fill(Fill),
}

/// Reads what stands between braces; `offset` is its place in the whole text.
fn place<'t>(inner: &'t str, offset: usize, names: Names<'_>) -> Result<Found<'t>, Fault> {
    let word = inner.trim();
    let start = offset + inner.len() - inner.trim_start().len();
    let at = start..start + word.len();
    if let Some(rest) = word.strip_prefix('"') {
        return match rest.strip_suffix('"').filter(|text| !text.contains('"')) {
            Some(text) => Ok(Found::Text(text)),
            None => Err(Fault::new(
                at,
                "a text in a placeholder is not closed, or something follows it",
                "expected one text in quotes",
            )
            .help("{{ \"{{\" }} writes two braces")),
        };
    }
    if word.is_empty() {
        let around = offset - OPENING.len()..offset + inner.len() + CLOSING.len();
        return Err(
            Fault::new(around, "an empty placeholder", "expected a name").help(known(names)),
        );
    }
    if word.contains('(') || is_built_in(word) {
        return call::read(word, at).map(Found::Fill);
    }
    if let Some((feed, column)) = word.split_once('.') {
        return column_of(feed.trim_end(), column.trim_start(), at, names).map(Found::Fill);
    }
    captured(word, at, names).map(Found::Fill)
}

fn column_of(
    feed: &str,
    column: &str,
    at: std::ops::Range<usize>,
    names: Names<'_>,
) -> Result<Fill, Fault> {
    let Some(number) = names.feeds.iter().position(|one| one.name == feed) else {
        let at = at.start..at.start + feed.len();
        let feeds = names.feeds.iter().map(|one| one.name.as_str());
        let message = format!("there is no feed `{}`", shown(feed));
        let help = match names.feeds.is_empty() {
            true => "--feed FILE, [feeds] in a file of requests, or `feeds` in [load] names one"
                .to_owned(),
            false => suggestion(feed, "feeds", feeds),
        };
        return Err(Fault::new(at, message, "no such feed").help(help));
    };
    let columns = &names.feeds[number].columns;
    match columns.iter().position(|one| one == column) {
        Some(column) => Ok(Fill::Column {
            feed: number,
            column,
        }),
        None => {
            let message = format!("feed `{feed}` has no column `{}`", shown(column));
            let all = columns.iter().map(String::as_str);
            let at = at.end - column.len()..at.end;
            Err(Fault::new(at, message, "no such column").help(suggestion(column, "columns", all)))
        }
    }
}

fn captured(word: &str, at: std::ops::Range<usize>, names: Names<'_>) -> Result<Fill, Fault> {
    match names.captured.iter().position(|one| one == word) {
        Some(name) if name < names.known => return Ok(Fill::Captured { name }),
        Some(_) => {
            let message = format!("`{word}` is used before it is captured");
            return Err(Fault::new(at, message, "no earlier answer gives it")
                .help("requests are made in the order of the file: capture it in one before"));
        }
        None => {}
    }
    if let Some(feed) = names.feeds.iter().find(|one| one.name == word) {
        let message = format!("`{word}` is a feed; a placeholder names one of its columns");
        let first = feed.columns.first().map_or("column", String::as_str);
        return Err(Fault::new(at, message, "expected a column too")
            .help(format!("such as {{{{ {word}.{first} }}}}")));
    }
    let message = format!("unknown name `{}` in a placeholder", shown(word));
    Err(Fault::new(at, message, "no such name").help(suggestion_of(word, names)))
}

/// The names that may stand in a placeholder, each as it is written.
fn all_names(names: Names<'_>) -> Vec<String> {
    let columns = names.feeds.iter().flat_map(|feed| {
        let columns = feed.columns.iter();
        columns.map(move |column| format!("{}.{column}", feed.name))
    });
    let captured = names.captured.iter().take(names.known).cloned();
    let built_in = FORMS.iter().map(|(_, form)| (*form).to_owned());
    columns.chain(captured).chain(built_in).collect()
}

fn suggestion_of(word: &str, names: Names<'_>) -> String {
    // A word is nearer to `uuid` than a form with its arguments would be.
    if let Some((_, form)) = FORMS
        .iter()
        .find(|(built_in, _)| config::nearest::nearest(word, [*built_in]).is_some())
    {
        return format!("did you mean `{form}`?");
    }
    let all = all_names(names);
    suggestion(word, "names", all.iter().map(String::as_str))
}

fn known(names: Names<'_>) -> String {
    let all = all_names(names);
    suggestion("", "names", all.iter().map(String::as_str))
}

/// Pieces of a template as they are found.
struct Pieces {
    part: Part,
    pieces: Vec<Piece>,
    text: String,
    /// In a path: whether the query has begun, and whether the fragment has.
    in_query: bool,
    in_fragment: bool,
}

impl Default for Pieces {
    fn default() -> Self {
        Self {
            part: Part::Text,
            pieces: Vec::new(),
            text: String::new(),
            in_query: false,
            in_fragment: false,
        }
    }
}

impl Pieces {
    fn text(&mut self, text: &str) {
        if self.part == Part::Text {
            self.text.push_str(text);
            return;
        }
        if self.in_fragment {
            return;
        }
        let text = match text.split_once('#') {
            Some((before, _)) => {
                self.in_fragment = true;
                before
            }
            None => text,
        };
        // Some characters may stand in a query and not in a path.
        let encoded = match self.in_query {
            true => encoded_path(&format!("?{text}")).split_off(1),
            false => encoded_path(text),
        };
        self.in_query |= text.contains('?');
        self.text.push_str(&encoded);
    }

    fn place(&mut self, fill: Fill) {
        if self.in_fragment {
            return;
        }
        self.end_text();
        self.pieces.push(Piece::Place {
            fill,
            is_encoded: self.part == Part::Path,
        });
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.pieces.push(Piece::Text(text.into_bytes()));
        }
    }

    fn finish(mut self) -> Template {
        self.end_text();
        Template(self.pieces)
    }
}
