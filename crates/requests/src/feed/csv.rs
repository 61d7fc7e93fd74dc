//! Values separated by commas or tabs.

use std::ops::Range;

use csv::{ByteRecord, ReaderBuilder};

use super::{FAULTS_MAX, Rows};
use crate::fault::Fault;

/// Reads a text whose first line names the columns.
pub(super) fn parse(text: &str, by: u8) -> Result<Rows, Vec<Fault>> {
    const BOM: &str = "\u{feff}";
    let skipped = match text.starts_with(BOM) {
        true => BOM.len(),
        false => 0,
    };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(by)
        .from_reader(&text.as_bytes()[skipped..]);
    let mut rows = Rows::default();
    let mut faults = Vec::new();
    let mut record = ByteRecord::new();
    let mut header = 0..0;
    while faults.len() < FAULTS_MAX {
        let begin = start_of_record(text, skipped + reader.position().byte() as usize);
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            // Reading from memory fails in no other way than by its content.
            Err(error) => {
                faults.push(Fault::new(begin..begin, error.to_string(), "here"));
                break;
            }
        }
        let end = (skipped + reader.position().byte() as usize).min(text.len());
        let whole = &text[begin..end];
        let at = begin..begin + whole.trim_end_matches(['\r', '\n']).len();
        // The text is UTF-8, and separators are ASCII.
        let values: Vec<String> = record
            .iter()
            .map(|value| String::from_utf8_lossy(value).into_owned())
            .collect();
        if rows.columns.is_empty() {
            faults.extend(wrong_names(&values, whole, &at, by));
            rows.columns = values.iter().map(|name| name.trim().to_owned()).collect();
            header = at;
        } else if values.len() == rows.columns.len() {
            rows.rows.push(values);
        } else {
            faults.push(wrong_count(text, at, values.len(), &rows.columns, by));
        }
    }
    if rows.columns.is_empty() {
        faults.push(
            Fault::new(
                0..0,
                "the file is empty",
                "expected a line with names of columns",
            )
            .help("the first line names the columns, such as: id,name"),
        );
    } else if rows.rows.is_empty() && faults.is_empty() {
        faults.push(
            Fault::new(header, "there are no rows", "only this line was found")
                .help("the first line names the columns; rows follow it"),
        );
    }
    match faults.is_empty() {
        true => Ok(rows),
        false => Err(faults),
    }
}

/// Where the record that is read from `at` on begins: empty lines are none.
fn start_of_record(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.len() - rest.trim_start_matches(['\r', '\n']).len()
}

fn wrong_names(values: &[String], line: &str, whole: &Range<usize>, by: u8) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, value) in values.iter().enumerate() {
        let name = value.trim();
        let column = number + 1;
        let from = match number {
            0 => 0,
            _ => nth_separator(line, by, number).map_or(0, |at| at + 1),
        };
        let at = whole.start + from..whole.end;
        if name.is_empty() {
            let message = format!("column {column} has no name");
            faults.push(Fault::new(at, message, "expected a name"));
        } else if values[..number].iter().any(|one| one.trim() == name) {
            let message = format!("column {column} repeats the name `{name}`");
            let fault = Fault::new(at, message, "each name once");
            faults.push(fault.help("rename one of the two columns"));
        } else if name.contains(['{', '}']) {
            let message = format!("column {column} has braces in its name: `{name}`");
            faults.push(Fault::new(at, message, "no placeholder can name it"));
        }
    }
    faults
}

fn wrong_count(text: &str, at: Range<usize>, found: usize, columns: &[String], by: u8) -> Fault {
    let expected = columns.len();
    let values = if found == 1 { "value" } else { "values" };
    let message = format!("{found} {values}; the first line names {expected} columns");
    if found < expected {
        let missing = &columns[found];
        return Fault::new(at, message, format!("no value for `{missing}`"))
            .help("a quote that is not closed takes the next lines into its value");
    }
    let from = nth_separator(&text[at.clone()], by, expected).unwrap_or_default();
    Fault::new(at.start + from..at.end, message, "one value too many")
        .help("a value with the separator in it goes in quotes: \"a, b\"")
}

/// The place of a record's separator of that number, from 1, outside of quotes.
fn nth_separator(record: &str, by: u8, number: usize) -> Option<usize> {
    let mut is_quoted = false;
    let mut seen = 0;
    record.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        seen += usize::from(byte == by && !is_quoted);
        seen == number
    })
}
