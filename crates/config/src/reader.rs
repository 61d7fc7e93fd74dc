//! Collects mistakes while a tree is turned into domain types.

use std::sync::Arc;

use miette::{LabeledSpan, NamedSource};

use super::mistake::{Mistake, Mistakes};
use super::tree::Place;

/// Most mistakes that are kept; a binary file would give thousands.
const KEPT: usize = 20;
/// Longer messages, in bytes, are shortened.
const LONGEST_MESSAGE: usize = 600;
/// Longer labels, in bytes, are shortened.
const LONGEST_LABEL: usize = 300;
/// Lines longer than this, in bytes, are not shown.
const LONGEST_LINE: usize = 400;

/// A mistake before it becomes a diagnostic.
#[derive(Debug)]
pub struct Problem {
    message: String,
    labels: Vec<(Place, String)>,
    help: Option<String>,
}

impl Problem {
    /// A mistake at a place, with a label that says what was expected there.
    pub fn at(place: Place, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            labels: vec![(place, label.into())],
            help: None,
        }
    }

    /// A mistake of the whole file.
    pub fn of_the_file(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// Points at a second place.
    pub fn and(mut self, place: Place, label: impl Into<String>) -> Self {
        self.labels.push((place, label.into()));
        self
    }

    /// What to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The sources that are read together, and the mistakes found in them so far.
#[derive(Debug)]
pub struct Reader {
    sources: Vec<(String, String)>,
    problems: Vec<Problem>,
    left_out: usize,
}

impl Reader {
    /// A reader of one file; overrides are added with [`Reader::add_source`].
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            sources: vec![(name.to_owned(), text.to_owned())],
            problems: Vec::new(),
            left_out: 0,
        }
    }

    /// The source of that number: its name and text.
    pub fn source(&self, number: usize) -> Option<(&str, &str)> {
        self.sources
            .get(number)
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Adds a source and returns its number.
    pub fn add_source(&mut self, name: &str, text: String) -> usize {
        self.sources.push((name.to_owned(), text));
        self.sources.len() - 1
    }

    /// Adds a mistake.
    pub fn report(&mut self, problem: Problem) {
        if self.is_full() {
            self.pass_over(1);
        } else {
            self.problems.push(problem);
        }
    }

    /// Adds a mistake at a place, with a label there and with what to do about it.
    pub fn advise(
        &mut self,
        place: Place,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(Problem::at(place, message, label).help(help));
    }

    /// Whether further mistakes are only counted.
    pub fn is_full(&self) -> bool {
        self.problems.len() >= KEPT
    }

    /// Counts mistakes that are not described.
    pub fn pass_over(&mut self, count: usize) {
        self.left_out += count;
    }

    /// Whether no mistake was found so far.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// The mistakes as diagnostics; `None` when there are none.
    pub fn finish(self) -> Option<Mistakes> {
        (!self.is_clean()).then(|| self.into_mistakes())
    }

    /// The mistakes of a reader that is not clean, as diagnostics.
    pub fn into_mistakes(mut self) -> Mistakes {
        self.problems.sort_by_key(|problem| {
            problem
                .labels
                .first()
                .map(|(place, _)| (place.source, place.start))
        });
        // The name in an `include` may have any characters.
        for (name, _) in &mut self.sources {
            *name = printable_name(name);
        }
        let name = self.sources[0].0.clone();
        let shown: Vec<Arc<NamedSource<String>>> = self
            .sources
            .iter()
            .map(|(name, text)| Arc::new(NamedSource::new(name, printable(text))))
            .collect();
        let mistakes = self
            .problems
            .into_iter()
            .map(|problem| mistake(problem, &self.sources, &shown))
            .collect();
        Mistakes {
            name,
            mistakes,
            left_out: self.left_out,
        }
    }
}

fn mistake(
    mut problem: Problem,
    sources: &[(String, String)],
    shown: &[Arc<NamedSource<String>>],
) -> Mistake {
    // They may quote names from the file, which may be long and contain any character.
    problem.message = shortened(&problem.message, LONGEST_MESSAGE);
    let help = problem.help.as_deref();
    problem.help = help.map(|help| shortened(help, LONGEST_MESSAGE));
    for (_, label) in &mut problem.labels {
        *label = shortened(label, LONGEST_LABEL);
    }
    let Some(number) = problem.labels.first().map(|(place, _)| place.source) else {
        return Mistake {
            origin: sources[0].0.clone(),
            message: problem.message,
            labels: Vec::new(),
            help: problem.help,
            source: None,
        };
    };
    let (origin, text) = &sources[number];
    let mut message = problem.message;
    let mut labels = Vec::new();
    let mut bearable = true;
    for (place, label) in problem.labels {
        if place.source != number {
            // A diagnostic has one source; the message names the other place.
            let (name, other) = &sources[place.source];
            let (line, _) = line_and_column(other, place.start);
            message.push_str(&format!(" ({label}: line {line} of {name})"));
            continue;
        }
        bearable &= surroundings_are_short(text, place);
        let start = place.start.min(text.len());
        let end = place.end.clamp(start, text.len());
        labels.push(LabeledSpan::new(Some(label), start, end - start));
    }
    if bearable {
        return Mistake {
            origin: origin.clone(),
            message,
            labels,
            help: problem.help,
            source: Some(Arc::clone(&shown[number])),
        };
    }
    let first = labels.first().map_or(0, LabeledSpan::offset);
    let (line, column) = line_and_column(text, first);
    let label = labels
        .first()
        .and_then(|label| label.label())
        .map(|label| format!(": {label}"))
        .unwrap_or_default();
    Mistake {
        origin: origin.clone(),
        message: format!("{message} (line {line}, column {column}{label})"),
        labels: Vec::new(),
        help: problem.help,
        source: None,
    }
}

/// The text with every control character replaced by one of the same length, so that places stay
/// right and no file can write to the terminal through a message.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\r' => ' ',
            c if c.is_control() && c.len_utf8() == 1 => '?',
            // The control characters beyond ASCII take two bytes, and so does this one.
            c if c.is_control() => '¿',
            c => c,
        })
        .collect()
}

/// The text with control characters escaped; if it is longer than so many bytes, shortened in the middle.
fn shortened(text: &str, longest: usize) -> String {
    let text = escape_controls(text);
    if text.len() <= longest {
        return text;
    }
    let (head_to, tail_from) = (longest - longest / 3, text.len() - longest / 3);
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let head_to = (0..=head_to).rev().find(is_boundary).unwrap_or(0);
    let tail_from = (tail_from..text.len()).find(is_boundary);
    let (head, tail) = (&text[..head_to], &text[tail_from.unwrap_or(text.len())..]);
    format!("{head}…{tail}")
}

/// The text with control characters escaped.
fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// A file's name with control characters escaped; of a long one the end.
fn printable_name(name: &str) -> String {
    const LONGEST: usize = 200;
    let printed: Vec<char> = escape_controls(name).chars().collect();
    match printed.len() > LONGEST {
        true => std::iter::once(&'…')
            .chain(&printed[printed.len() - LONGEST..])
            .collect(),
        false => printed.iter().collect(),
    }
}

/// Whether the lines that a diagnostic would show are short enough to be read.
fn surroundings_are_short(text: &str, place: Place) -> bool {
    let bytes = text.as_bytes();
    let start = place.start.min(bytes.len());
    let end = place.end.clamp(start, bytes.len());
    if end - start > 20 * LONGEST_LINE {
        return false;
    }
    // The place's own lines and one on either side are shown.
    let mut from = start;
    for _ in 0..2 {
        from = bytes[..from].iter().rposition(|b| *b == b'\n').unwrap_or(0);
    }
    let mut to = end;
    for _ in 0..2 {
        to = bytes[to..]
            .iter()
            .position(|b| *b == b'\n')
            .map_or(bytes.len(), |at| to + at + 1);
    }
    bytes[from..to]
        .split(|b| *b == b'\n')
        .all(|line| line.len() <= LONGEST_LINE)
}

/// Line and column of an offset, both from 1; columns count characters.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(1, |last| last.chars().count() + 1);
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use miette::Diagnostic as _;

    fn place(start: usize, end: usize) -> Place {
        Place {
            source: 0,
            start,
            end,
        }
    }

    #[test]
    fn a_line_too_long_to_show_is_named_instead() {
        let text = format!("a = 1\nb = \"{}\"\n", "x".repeat(5000));
        let mut reader = Reader::new("long.toml", &text);
        reader.report(Problem::at(place(6, 7), "what is `b`", "not a key"));
        let mistakes = reader.finish().unwrap();
        assert!(mistakes.source_code().is_none());
        assert_eq!(
            mistakes.to_string(),
            "long.toml: what is `b` (line 2, column 1: not a key)"
        );
    }

    #[test]
    fn messages_that_quote_a_long_name_are_shortened() {
        let mut reader = Reader::new("long.toml", "a = 1\n");
        let message = format!("`{}` is not a key of this table", "ü".repeat(2000));
        reader.advise(place(0, 1), message, "ß".repeat(1000), "é".repeat(2000));
        let mistakes = reader.finish().unwrap();
        let mistake = &mistakes.all()[0];
        let message = mistake.message();
        assert!(message.starts_with("`üü") && message.ends_with("ü` is not a key of this table"));
        assert!((500..=610).contains(&message.len()), "{}", message.len());
        assert!(mistake.help_text().unwrap().len() <= 610);
        let label = mistakes.all()[0].labels().unwrap().next().unwrap();
        assert!(label.label().unwrap().len() <= 310);
    }

    #[test]
    fn escape_sequences_never_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}c\r\n"), "a?[2Jb¿c \n");
    }

    #[test]
    fn names_with_control_characters_are_escaped_in_messages() {
        let mut reader = Reader::new("x", "abc");
        let name = "a\t\u{1b}[2J";
        let problem = Problem::at(place(0, 1), format!("`{name}.b` is missing"), name);
        reader.report(problem.help(name));
        let mistakes = reader.finish().unwrap();
        let one = &mistakes.all()[0];
        let escaped = "a\\t\\u{1b}[2J";
        assert_eq!(one.message(), format!("`{escaped}.b` is missing"));
        assert_eq!(one.labels[0].label(), Some(escaped));
        assert_eq!(one.help_text(), Some(escaped));
    }

    #[test]
    fn only_the_first_mistakes_are_kept_and_the_others_counted() {
        let mut reader = Reader::new("x", "abc");
        for _ in 0..KEPT + 5 {
            reader.report(Problem::at(place(0, 1), "m", "l"));
        }
        let mistakes = reader.finish().unwrap();
        assert_eq!(mistakes.all().len(), KEPT);
        assert_eq!(mistakes.to_string(), format!("x: {} mistakes", KEPT + 5));
    }
}
