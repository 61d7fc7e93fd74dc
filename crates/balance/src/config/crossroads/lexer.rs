//! The lexer: text to tokens and directives.
//!
//! A comment begins only where a word could begin, so `http://…` and `/tmp/*` are words. A
//! directive begins in the first column.

use ::config::reader::{Problem, Reader};
use ::config::tree::Place;

/// The kind of a [`Token`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Anything without whitespace, quotes, braces and semicolons.
    Word(String),
    Quoted(String),
    Open,
    Close,
    Semicolon,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub place: Place,
    /// First on its line.
    pub first: bool,
    /// After whitespace or a comment.
    pub spaced: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Item {
    Token(Token),
    /// `#include "name"`
    Include {
        name: String,
        place: Place,
    },
    /// `#define symbol tokens`
    Define {
        symbol: String,
        place: Place,
        tokens: Vec<Token>,
    },
}

pub(super) struct Lexer<'t> {
    text: &'t str,
    source: usize,
    /// Offset of the first character.
    begin: usize,
    at: usize,
    /// Current end: of the line of a directive, or of the text.
    end: usize,
    first: bool,
    spaced: bool,
}

impl<'t> Lexer<'t> {
    pub fn new(source: usize, text: &'t str) -> Self {
        // A byte order mark.
        let begin = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self {
            text,
            source,
            begin,
            at: begin,
            end: text.len(),
            first: true,
            spaced: true,
        }
    }

    /// The next token or directive.
    pub fn next(&mut self, reader: &mut Reader) -> Option<Item> {
        loop {
            self.skip_space(reader);
            let start = self.at;
            let byte = *self.rest().as_bytes().first()?;
            if byte == b'#' && self.in_first_column() {
                let directive = self.directive(reader);
                if directive.is_some() {
                    return directive;
                }
                continue;
            }
            let kind = match byte {
                b'{' => self.punctuation(TokenKind::Open),
                b'}' => self.punctuation(TokenKind::Close),
                b';' => self.punctuation(TokenKind::Semicolon),
                b'"' => TokenKind::Quoted(self.quoted(reader)),
                _ => TokenKind::Word(self.word()),
            };
            return Some(Item::Token(Token {
                kind,
                place: self.place(start),
                first: std::mem::take(&mut self.first),
                spaced: std::mem::take(&mut self.spaced),
            }));
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..self.end]
    }

    fn place(&self, start: usize) -> Place {
        Place {
            source: self.source,
            start,
            end: self.at,
        }
    }

    fn in_first_column(&self) -> bool {
        // Not within a `#define`.
        self.end == self.text.len()
            && (self.at == self.begin || self.text.as_bytes().get(self.at - 1) == Some(&b'\n'))
    }

    fn punctuation(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let length = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';' | '"'))
            .unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_owned()
    }

    /// A quoted string, within one line; `\"` escapes a quote.
    fn quoted(&mut self, reader: &mut Reader) -> String {
        let start = self.at;
        self.at += 1;
        let mut inner = String::new();
        let mut chars = self.rest().char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += offset + 1;
                    return inner;
                }
                '\n' => break,
                '\\' if chars.next_if(|(_, next)| *next == '"').is_some() => inner.push('"'),
                c => inner.push(c),
            }
        }
        let line = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at += line;
        reader.report(Problem::at(
            self.place(start),
            "a string has no end",
            "expected a closing quote in this line",
        ));
        inner.trim_end().to_owned()
    }

    fn skip_space(&mut self, reader: &mut Reader) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            let space = rest.len() - trimmed.len();
            if space > 0 {
                self.first |= rest[..space].contains('\n');
                self.spaced = true;
                self.at += space;
            }
            // Only where a word could begin, not directly after one.
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.comment(reader, trimmed);
            } else {
                return;
            }
            self.spaced = true;
        }
    }

    fn comment(&mut self, reader: &mut Reader, rest: &str) {
        let Some(length) = rest[2..].find("*/") else {
            let start = self.at;
            self.at += 2;
            reader.report(Problem::at(
                self.place(start),
                "a comment has no end",
                "expected */ after this",
            ));
            self.at = self.end;
            return;
        };
        let length = 2 + length + 2;
        self.first |= rest[..length].contains('\n');
        self.at += length;
    }

    /// A line that begins with `#`; `None` after reporting an error.
    fn directive(&mut self, reader: &mut Reader) -> Option<Item> {
        let start = self.at;
        let line = self.rest().find('\n').unwrap_or(self.rest().len());
        let line_end = self.at + line;
        self.at += 1;
        let name = self.word();
        let place = self.place(start);
        let item = match name.as_str() {
            "include" => self.include(reader, line_end, place),
            "define" => self.define(reader, line_end, place),
            _ => {
                reader.report(
                    Problem::at(
                        place,
                        format!(
                            "no directive is called `#{}`",
                            ::config::units::shown(&name)
                        ),
                        "expected #include or #define",
                    )
                    .help(
                        match ::config::nearest::nearest(&name, ["include", "define"]) {
                            Some(near) => format!("did you mean `#{near}`?"),
                            None => {
                                "a comment begins with // or stands between /* and */".to_owned()
                            }
                        },
                    ),
                );
                None
            }
        };
        self.at = self.at.max(line_end);
        self.end = self.text.len();
        self.first = true;
        self.spaced = true;
        item
    }

    /// The rest of a directive's line.
    fn line(&mut self, reader: &mut Reader, line_end: usize) -> Vec<Token> {
        self.end = line_end;
        let mut tokens = Vec::new();
        // It contains no directives, as they begin in the first column.
        while let Some(Item::Token(token)) = self.next(reader) {
            tokens.push(token);
        }
        self.end = self.text.len();
        tokens
    }

    fn include(&mut self, reader: &mut Reader, line_end: usize, place: Place) -> Option<Item> {
        let tokens = self.line(reader, line_end);
        match tokens.as_slice() {
            [
                Token {
                    kind: TokenKind::Quoted(name),
                    place,
                    ..
                },
            ] if !name.is_empty() => Some(Item::Include {
                name: name.clone(),
                place: *place,
            }),
            other => {
                let place = other.first().map_or(place, |token| token.place);
                reader.report(Problem::at(
                    place,
                    "#include takes the name of a file in quotes",
                    "expected #include \"name\" and nothing else in the line",
                ));
                None
            }
        }
    }

    fn define(&mut self, reader: &mut Reader, line_end: usize, place: Place) -> Option<Item> {
        let mut tokens = self.line(reader, line_end);
        let symbol = match tokens.first() {
            Some(Token {
                kind: TokenKind::Word(word),
                place,
                ..
            }) if is_identifier(word) => (word.clone(), *place),
            other => {
                let place = other.map_or(place, |token| token.place);
                reader.report(Problem::at(
                    place,
                    "#define takes a symbol and what it stands for",
                    "expected a letter or an underscore, then letters, digits and underscores",
                ));
                return None;
            }
        };
        tokens.remove(0);
        let (symbol, place) = symbol;
        Some(Item::Define {
            symbol,
            place,
            tokens,
        })
    }
}

/// `[A-Za-z_]` and then `[A-Za-z0-9_]`.
pub(super) fn is_identifier(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
