//! The preprocessor: `#include` and `#define`.

use std::collections::HashMap;
use std::path::Path;

use ::config::open;
use ::config::reader::{Problem, Reader};
use ::config::tree::Place;
use ::config::units::shown;

use super::lexer::{Item, Lexer, Token, TokenKind};

/// Resolves `#include`.
pub trait Includes {
    /// Reads the file `name`, included by `from`. Returns its name for messages, and its text of at
    /// most 1 MiB.
    ///
    /// # Errors
    /// Why it cannot be read, as a fragment.
    fn read(&mut self, from: &str, name: &str) -> Result<(String, String), String>;
}

/// Reads files; relative paths start at the including file.
pub(in crate::config) struct FromDisk;

impl Includes for FromDisk {
    fn read(&mut self, from: &str, name: &str) -> Result<(String, String), String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = open::open(&path).map_err(|error| error.to_string())?;
        Ok((path.display().to_string(), text))
    }
}

pub(in crate::config) struct NoIncludes;

impl Includes for NoIncludes {
    fn read(&mut self, _: &str, name: &str) -> Result<(String, String), String> {
        Err(format!(
            "{name} cannot be included: there are no files here"
        ))
    }
}

/// Depth of includes and of definitions.
const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 64;
/// Size of all files, bytes.
const TOTAL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Words from definitions, over all expansions.
const REPLACEMENTS_MAX: usize = 100_000;

struct Definition {
    place: Place,
    tokens: Vec<Token>,
}

struct Preprocessor<'i> {
    includes: &'i mut dyn Includes,
    definitions: HashMap<String, Definition>,
    /// The files being read, innermost last.
    files: Vec<String>,
    files_read: usize,
    bytes_read: usize,
    replacements: usize,
    too_many: bool,
    out: Vec<Token>,
}

/// The tokens of the first source and its includes.
pub(super) fn tokens(reader: &mut Reader, includes: &mut dyn Includes) -> Vec<Token> {
    let (name, text) = match reader.source(0) {
        Some((name, text)) => (name.to_owned(), text.to_owned()),
        None => return Vec::new(),
    };
    if text.len() > ::config::open::LARGEST_BYTES as usize {
        reader.report(Problem::of_the_file(format!(
            "{} bytes of text; a file of this kind has at most {}",
            text.len(),
            ::config::open::LARGEST_BYTES
        )));
        return Vec::new();
    }
    let mut preprocessor = Preprocessor {
        includes,
        definitions: HashMap::new(),
        files: vec![name],
        files_read: 1,
        bytes_read: text.len(),
        replacements: 0,
        too_many: false,
        out: Vec::new(),
    };
    preprocessor.file(reader, 0, &text);
    preprocessor.out
}

impl Preprocessor<'_> {
    fn file(&mut self, reader: &mut Reader, source: usize, text: &str) {
        let mut lexer = Lexer::new(source, text);
        while let Some(item) = lexer.next(reader) {
            match item {
                Item::Token(token) => self.token(reader, token),
                Item::Include { name, place } => self.include(reader, &name, place),
                Item::Define {
                    symbol,
                    place,
                    tokens,
                } => self.define(reader, symbol, place, tokens),
            }
        }
    }

    fn include(&mut self, reader: &mut Reader, name: &str, place: Place) {
        let mut refuse = |message: String, label: &str| {
            reader.report(Problem::at(place, message, label));
        };
        if self.files.len() >= DEPTH_MAX {
            return refuse(
                format!("files include each other more than {DEPTH_MAX} deep"),
                "not included",
            );
        }
        if self.files_read >= FILES_MAX {
            return refuse(
                format!("more than {FILES_MAX} files are included"),
                "not included",
            );
        }
        let from = self.files.last().cloned().unwrap_or_default();
        let (name, text) = match self.includes.read(&from, name) {
            Ok(found) => found,
            Err(why) => return refuse(shown_line(&why), "this file is included"),
        };
        if self.files.contains(&name) {
            return refuse(
                format!("`{}` includes itself", shown(&name)),
                "it is being read already",
            );
        }
        self.files_read += 1;
        self.bytes_read += text.len();
        if self.bytes_read > TOTAL_BYTES_MAX || text.len() > ::config::open::LARGEST_BYTES as usize
        {
            return refuse(
                format!("`{}` makes the configuration too large", shown(&name)),
                "a configuration has a few kilobytes; is it the right file?",
            );
        }
        let source = reader.add_source(&name, text.clone());
        self.files.push(name);
        self.file(reader, source, &text);
        self.files.pop();
    }

    fn define(&mut self, reader: &mut Reader, symbol: String, place: Place, tokens: Vec<Token>) {
        if let Some(first) = self.definitions.get(&symbol) {
            reader.report(
                Problem::at(
                    place,
                    format!("`{}` is defined twice", shown(&symbol)),
                    "the second time",
                )
                .and(first.place, "the first time"),
            );
            return;
        }
        self.definitions
            .insert(symbol, Definition { place, tokens });
    }

    fn token(&mut self, reader: &mut Reader, token: Token) {
        if let TokenKind::Word(word) = &token.kind
            && self.definitions.contains_key(word)
        {
            let word = word.clone();
            self.replace(reader, &word, &token, &mut Vec::new());
        } else {
            self.out.push(token);
        }
    }

    /// Whether the limit of replacements is reached, which is reported once.
    fn exhausted(&mut self, reader: &mut Reader, at: &Token) -> bool {
        let exhausted = self.replacements > REPLACEMENTS_MAX;
        if exhausted && !std::mem::replace(&mut self.too_many, exhausted) {
            reader.report(Problem::at(
                at.place,
                format!("more than {REPLACEMENTS_MAX} words come from #define"),
                "not replaced any more",
            ));
        }
        exhausted
    }

    /// Expands a symbol. Its tokens get the location of the symbol, where a reader looks first.
    fn replace(&mut self, reader: &mut Reader, symbol: &str, at: &Token, active: &mut Vec<String>) {
        if self.exhausted(reader, at) {
            return;
        }
        self.replacements += 1;
        let Some(definition) = self.definitions.get(symbol) else {
            return;
        };
        // Bounds the recursion: a chain of definitions may be as long as a file.
        if active.iter().any(|one| one == symbol) || active.len() >= DEPTH_MAX {
            reader.report(
                Problem::at(
                    at.place,
                    format!("`{}` is defined by itself, or too deep", shown(symbol)),
                    "replaced without end",
                )
                .and(definition.place, "defined here"),
            );
            return;
        }
        let tokens = definition.tokens.clone();
        active.push(symbol.to_owned());
        for (number, token) in tokens.into_iter().enumerate() {
            if self.exhausted(reader, at) {
                break;
            }
            let (first, spaced) = match number {
                0 => (at.first, at.spaced),
                _ => (false, token.spaced),
            };
            let token = Token {
                kind: token.kind,
                place: at.place,
                first,
                spaced,
            };
            match &token.kind {
                TokenKind::Word(word) if self.definitions.contains_key(word) => {
                    let word = word.clone();
                    self.replace(reader, &word, &token, active);
                }
                _ => {
                    self.replacements += 1;
                    self.out.push(token);
                }
            }
        }
        active.pop();
    }
}

/// Error messages of the system may contain a path with anything in it.
fn shown_line(why: &str) -> String {
    why.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .take(300)
        .collect()
}
