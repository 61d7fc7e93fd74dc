//! Files of requests: TOML, or JSON lines with the same keys.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use config::Mistakes;
use config::nearest::suggestion;
use config::open;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Node, Place, Table, Tree};
use config::units::shown;
use readings::requests::{Feed, FeedOrder, RequestSet, Users};

use crate::error::RequestsError;
use crate::feed::{self, FeedForm, read_text};
use crate::placeholder::is_name;

mod answer;
mod json;
mod request;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use request::{is_method, is_token};

pub use write::{Unwritable, write};

/// Most bytes of a file of JSON lines.
const LINES_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Keys of a file besides `request`.
const TOP: [&str; 3] = ["feeds", "users", "order"];

/// Words for the order in which requests are sent.
const ORDERS: [&str; 2] = ["random", "in_turn"];
/// Words for the order of a feed's rows.
pub const FEED_ORDERS: [&str; 3] = ["in_turn", "random", "once"];

/// The word for the order of a feed's rows.
pub fn feed_order_word(order: FeedOrder) -> &'static str {
    match order {
        FeedOrder::InTurn => "in_turn",
        FeedOrder::Random => "random",
        FeedOrder::Once => "once",
    }
}

/// The order of a feed's rows that a word names.
pub fn feed_order(word: &str) -> Option<FeedOrder> {
    match word {
        "in_turn" => Some(FeedOrder::InTurn),
        "random" => Some(FeedOrder::Random),
        "once" => Some(FeedOrder::Once),
        _ => None,
    }
}

/// Reads a file of requests and its feeds; `given` are feeds that take the place of its own of the
/// same name.
///
/// # Errors
/// When it cannot be read, or it or a feed has mistakes.
pub fn open(path: &Path, given: Vec<Feed>) -> Result<RequestSet, RequestsError> {
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new(""));
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    Ok(match extension.to_str() {
        Some("jsonl" | "ndjson" | "json") => {
            let text = read_text(path, LINES_BYTES_MAX)?;
            read_lines(&name, &text, folder, given)?
        }
        _ => {
            let text = open::open(path)?;
            read(&name, &text, folder, given)?
        }
    })
}

/// Reads the text of a file in TOML; paths in it are relative to `folder`.
///
/// # Errors
/// All mistakes.
pub fn read(
    name: &str,
    text: &str,
    folder: &Path,
    given: Vec<Feed>,
) -> Result<RequestSet, Mistakes> {
    let build = |reader: &mut Reader, table: Table| build(reader, &table, folder, given);
    open::read(name, text, build)
}

/// Reads the text of a file in JSON lines: a request per line, and what is said of all of them in
/// lines of their own.
///
/// # Errors
/// All mistakes.
pub fn read_lines(
    name: &str,
    text: &str,
    folder: &Path,
    given: Vec<Feed>,
) -> Result<RequestSet, Mistakes> {
    let mut reader = Reader::new(name, text);
    let table = json::table(&mut reader, text);
    let set = match reader.is_clean() {
        true => build(&mut reader, &table, folder, given),
        false => RequestSet::default(),
    };
    match reader.finish() {
        None => Ok(set),
        Some(mistakes) => Err(mistakes),
    }
}

/// Reads the tree of a file.
fn build(reader: &mut Reader, table: &Table, folder: &Path, given: Vec<Feed>) -> RequestSet {
    let top = Section::whole(table);
    let known: Vec<&str> = TOP.into_iter().chain(["request"]).collect();
    top.only(reader, &known);
    let feeds = feeds(reader, &top, folder, given);
    let users = users(reader, &top);
    let order = top.word(reader, "order", &ORDERS);
    let is_in_turn = order.as_deref() == Some("in_turn");
    if let (Some(word), Some(_)) = (&order, users) {
        let place = top.value_place("order");
        let problem = Problem::at(
            place,
            format!("`order = \"{word}\"` with `[users]`"),
            "a user makes the requests in the order of the file",
        );
        reader.report(problem.help("leave one of the two out"));
    }
    let mut set = RequestSet {
        requests: Vec::new(),
        feeds,
        captured: Vec::new(),
        in_order: is_in_turn || users.is_some(),
        users,
        replay: None,
    };
    let Some((entry, path)) = top.entry("request") else {
        let problem = Problem::of_the_file("there is no request");
        reader.report(problem.help("add one: [[request]] and a line such as path = \"/\""));
        return set;
    };
    let Tree::Array(nodes) = &entry.node.tree else {
        reader.expected(&entry.node, &path, "a list: write [[request]] for each");
        return set;
    };
    let sections = sections(reader, nodes);
    set.captured = captured(reader, &sections);
    let mut known = 0;
    let mut names: HashMap<String, usize> = HashMap::new();
    for (number, section) in sections.iter().enumerate() {
        let request = request::read(reader, section, &set, known, folder);
        let captures = request.captures.iter();
        known = captures.map(|one| one.name + 1).fold(known, usize::max);
        if let Some(&other) = names.get(&request.name) {
            let place = match section.table.get("name") {
                Some(entry) => entry.node.place,
                None => section.value_place("path"),
            };
            let message = format!("two requests are called `{}`", shown(&request.name));
            let problem = Problem::at(place, message, "the second one");
            let first = sections[other].value_place("path");
            let problem = problem.and(first, "the first one");
            reader.report(problem.help("results are by name: give each a `name` of its own"));
        }
        names.entry(request.name.clone()).or_insert(number);
        set.requests.push(request);
    }
    if sections.is_empty() && reader.is_clean() {
        reader.report(Problem::at(
            entry.place,
            "there is no request",
            "an empty list",
        ));
    }
    set
}

/// The tables of a list.
fn sections<'t>(reader: &mut Reader, nodes: &'t [Node]) -> Vec<Section<'t>> {
    let mut sections = Vec::new();
    for node in nodes {
        match &node.tree {
            Tree::Table(table) => sections.push(Section {
                path: "request".to_owned(),
                place: node.place,
                table,
            }),
            _ => reader.expected(node, "request", "a table"),
        }
    }
    sections
}

/// The names of all that is captured, in the order of the file.
fn captured(reader: &mut Reader, sections: &[Section<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for section in sections {
        let Some(entry) = section.table.get("capture") else {
            continue;
        };
        // Anything else is reported where it is read.
        let Tree::Table(table) = &entry.node.tree else {
            continue;
        };
        for entry in &table.entries {
            if !is_name(&entry.name) {
                wrong_name(reader, entry);
            }
            if !names.contains(&entry.name) {
                names.push(entry.name.clone());
            }
        }
    }
    names
}

fn wrong_name(reader: &mut Reader, entry: &Entry) {
    let message = format!("`{}` cannot be a name in placeholders", shown(&entry.name));
    reader.report(Problem::at(entry.place, message, "not a name").help(
        "names have letters, digits, `_` and `-`, begin with a letter, and are none of the \
             built-in words seq, uuid, int, zipf, hex and now",
    ));
}

fn users(reader: &mut Reader, top: &Section<'_>) -> Option<Users> {
    let section = top.section(reader, "users")?;
    section.only(reader, &["cookies"]);
    Some(Users {
        keeps_cookies: section.boolean(reader, "cookies").unwrap_or_default(),
    })
}

fn feeds(reader: &mut Reader, top: &Section<'_>, folder: &Path, mut given: Vec<Feed>) -> Vec<Feed> {
    if let Some(section) = top.section(reader, "feeds") {
        let own = feeds_of(reader, &section, folder, &given);
        given.extend(own.into_iter().map(|(_, feed)| feed));
    }
    given
}

/// Reads the feeds that a table names, with their files: those of no name in `given`. Paths are
/// relative to `folder`.
pub fn feeds_of(
    reader: &mut Reader,
    section: &Section<'_>,
    folder: &Path,
    given: &[Feed],
) -> Vec<(PathBuf, Feed)> {
    let mut feeds = Vec::new();
    for entry in &section.table.entries {
        if !is_name(&entry.name) {
            wrong_name(reader, entry);
        } else if !given.iter().any(|one| one.name == entry.name) {
            feeds.extend(feed(reader, section, entry, folder));
        }
    }
    feeds
}

fn feed(
    reader: &mut Reader,
    section: &Section<'_>,
    entry: &Entry,
    folder: &Path,
) -> Option<(PathBuf, Feed)> {
    let path = section.name_of(&entry.name);
    let (file, order) = match &entry.node.tree {
        Tree::Text(file) => (file.clone(), FeedOrder::default()),
        Tree::Table(_) => {
            let table = reader.section(entry, path)?;
            table.only(reader, &["file", "order"]);
            let word = table.word(reader, "order", &FEED_ORDERS);
            let order = word.and_then(|word| feed_order(&word));
            let file = table.required_text(reader, "file", "\"account.csv\"")?;
            (file, order.unwrap_or_default())
        }
        _ => {
            let what = "a file, or a table with `file` and `order`";
            reader.expected(&entry.node, &path, what);
            return None;
        }
    };
    let path = folder.join(&file);
    let text = match read_text(&path, feed::LARGEST_BYTES) {
        Ok(text) => text,
        Err(error) => {
            let place = entry.node.place;
            reader.report(Problem::at(place, error.to_string(), "this file"));
            return None;
        }
    };
    match feed::parse(&text, FeedForm::of(&path, &text)) {
        Ok(rows) => {
            let feed = feed::feed(&entry.name, order, rows);
            Some((path, feed))
        }
        Err(faults) => {
            let source = reader.add_source(&path.display().to_string(), text);
            for fault in faults {
                reader.report(fault.in_source(source));
            }
            None
        }
    }
}

/// Opens a file named in another, of any bytes.
fn bytes_of(
    reader: &mut Reader,
    folder: &Path,
    file: &str,
    place: Place,
) -> Option<(String, Vec<u8>)> {
    let path = folder.join(file);
    match feed::read_bytes(&path, feed::LARGEST_BYTES) {
        Ok(bytes) => Some((path.display().to_string(), bytes)),
        Err(error) => {
            reader.report(Problem::at(place, error.to_string(), "this file"));
            None
        }
    }
}

/// What a wrong word in a table could have been.
fn one_of(reader: &mut Reader, section: &Section<'_>, words: &[&str]) {
    let found = section.table.entries.iter();
    let names: Vec<&str> = found.map(|entry| entry.name.as_str()).collect();
    let message = match names.as_slice() {
        [] => format!("`{}` is empty", section.path),
        _ => format!("`{}` has several keys", section.path),
    };
    let problem = Problem::at(section.place, message, "expected one key");
    reader.report(problem.help(suggestion("", "keys", words.iter().copied())));
}
