//! The parser: tokens to blocks of statements.

use ::config::nearest::suggestion;
use ::config::reader::{Problem, Reader};
use ::config::tree::Place;
use ::config::units::shown;

use super::ast::{Block, File, Statement};
use super::keywords::{Scope, is_keyword};
use super::lexer::{Token, TokenKind, is_identifier};

/// Names appear in tables, on command lines and in cookies.
const NAME_BYTES_MAX: usize = 64;

/// Parses a whole file.
pub(super) fn file(reader: &mut Reader, tokens: &[Token]) -> File {
    let mut parser = Parser {
        reader,
        tokens,
        at: 0,
    };
    let mut file = File::default();
    while let Some(token) = parser.peek() {
        let place = token.place;
        match &token.kind {
            TokenKind::Word(word) if word == "service" => {
                parser.at += 1;
                file.services.extend(parser.block(Scope::Service));
            }
            // Harmless after a brace.
            TokenKind::Semicolon => parser.at += 1,
            TokenKind::Word(word) => {
                let word = word.clone();
                parser.unexpected_word(&word, place, &mut file);
            }
            other => {
                let found = spelled(other);
                parser.at += 1;
                parser.reader.report(Problem::at(
                    place,
                    format!("expected `service`, found `{}`", shown(&found)),
                    "not expected here",
                ));
            }
        }
    }
    file
}

struct Parser<'r, 't> {
    reader: &'r mut Reader,
    tokens: &'t [Token],
    at: usize,
}

impl<'t> Parser<'_, 't> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    /// The position after the last token, for what is missing.
    fn after_last(&self) -> Place {
        match self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) {
            Some(last) => Place {
                start: last.place.end,
                ..last.place
            },
            None => Place::default(),
        }
    }

    /// Whether a name and an opening brace follow.
    fn is_block(&self) -> bool {
        let next = self.tokens.get(self.at..self.at + 2);
        matches!(next, Some([name, brace])
            if matches!(name.kind, TokenKind::Word(_)) && matches!(brace.kind, TokenKind::Open))
    }

    /// A word other than `service` at the top. A block is parsed as a service all the same, to
    /// report its errors too.
    fn unexpected_word(&mut self, word: &str, place: Place, file: &mut File) {
        self.reader.report(
            Problem::at(
                place,
                format!("expected `service`, found `{}`", shown(word)),
                "not expected here",
            )
            .help(if is_keyword(word) {
                format!("`{word}` stands between the braces of a service")
            } else if word.starts_with('#') {
                "a directive begins in the first column; a comment begins with //".to_owned()
            } else {
                suggestion(word, "keywords", ["service"])
            }),
        );
        self.at += 1;
        if self.is_block() && word != "backend" {
            file.services.extend(self.block(Scope::Service));
            return;
        }
        // Skip to the next service.
        while let Some(token) = self.peek() {
            if matches!(&token.kind, TokenKind::Word(word) if word == "service") {
                return;
            }
            self.at += 1;
        }
    }

    /// A block, from its name on. `None` without an opening brace.
    fn block(&mut self, scope: Scope) -> Option<Block> {
        let (name, place) = self.name(scope);
        let Some(Token {
            kind: TokenKind::Open,
            place: opened,
            ..
        }) = self.peek()
        else {
            let place = self.after_last();
            self.reader.report(Problem::at(
                place,
                format!("expected `{{` after the name of {}", scope.noun()),
                "expected `{` here",
            ));
            return None;
        };
        self.at += 1;
        let mut block = Block {
            name,
            place,
            statements: Vec::new(),
            incomplete: false,
            backends: Vec::new(),
        };
        loop {
            let Some(token) = self.peek() else {
                self.unclosed(scope, *opened);
                return Some(block);
            };
            match &token.kind {
                TokenKind::Close => {
                    self.at += 1;
                    return Some(block);
                }
                TokenKind::Semicolon => self.at += 1,
                TokenKind::Open => {
                    self.reader.report(Problem::at(
                        token.place,
                        "expected a keyword, found `{`",
                        "not expected here",
                    ));
                    self.skip_braces();
                }
                TokenKind::Quoted(text) => {
                    self.reader.report(Problem::at(
                        token.place,
                        format!("expected a keyword, found \"{}\"", shown(text)),
                        "not expected here",
                    ));
                    self.at += 1;
                    self.skip_statement();
                }
                TokenKind::Word(word) if word == "service" => {
                    self.unclosed(scope, *opened);
                    return Some(block);
                }
                TokenKind::Word(word) if word == "backend" && scope == Scope::Backend => {
                    self.unclosed(scope, *opened);
                    return Some(block);
                }
                TokenKind::Word(word) if word == "backend" => {
                    self.at += 1;
                    block.backends.extend(self.block(Scope::Backend));
                }
                TokenKind::Word(word) => {
                    self.at += 1;
                    self.statement(scope, word, token.place, &mut block);
                }
            }
        }
    }

    fn unclosed(&mut self, scope: Scope, opened: Place) {
        let place = self.after_last();
        self.reader.report(
            Problem::at(
                place,
                format!("{} is not closed", scope.noun()),
                "expected `}` here",
            )
            .and(opened, "opened here"),
        );
    }

    fn name(&mut self, scope: Scope) -> (String, Place) {
        let (found, place) = match self.peek() {
            Some(Token {
                kind: TokenKind::Word(word),
                place,
                ..
            }) => {
                self.at += 1;
                if is_identifier(word) && word.len() <= NAME_BYTES_MAX {
                    return (word.clone(), *place);
                }
                (word.clone(), *place)
            }
            Some(Token {
                kind: kind @ TokenKind::Quoted(_),
                place,
                ..
            }) => {
                self.at += 1;
                (spelled(kind), *place)
            }
            _ => (String::new(), self.after_last()),
        };
        self.reader.report(Problem::at(
            place,
            if found.is_empty() {
                format!("{} has no name", scope.noun())
            } else {
                format!("{} cannot be called `{}`", scope.noun(), shown(&found))
            },
            format!(
                "expected a letter or an underscore, then letters, digits and underscores, at \
                 most {NAME_BYTES_MAX}"
            ),
        ));
        (found, place)
    }

    /// A statement, from its value on.
    fn statement(&mut self, scope: Scope, keyword: &str, place: Place, block: &mut Block) {
        let known = scope.knows(keyword);
        if !known {
            block.incomplete = true;
            self.unknown(scope, keyword, place);
            // Parse what looks like a block as the kind that is allowed here.
            if self.is_block() && scope == Scope::Service {
                block.backends.extend(self.block(Scope::Backend));
            } else {
                self.skip_statement();
            }
            return;
        }
        let start = self.at;
        let ended = self.skip_statement();
        let value = &self.tokens[start..self.at - usize::from(ended)];
        if !ended {
            block.incomplete = true;
            let at = self.after_last();
            self.reader.report(Problem::at(
                at,
                format!("`{keyword}` has no end"),
                "expected `;` here",
            ));
        }
        let value_place = match (value.first(), value.last()) {
            (Some(first), Some(last)) if first.place.source == last.place.source => Place {
                end: last.place.end.max(first.place.end),
                ..first.place
            },
            (Some(first), _) => first.place,
            _ => Place {
                start: place.end,
                end: place.end,
                ..place
            },
        };
        block.statements.push(Statement {
            keyword: keyword.to_owned(),
            place,
            value: joined(value),
            value_place,
        });
    }

    fn unknown(&mut self, scope: Scope, keyword: &str, place: Place) {
        if self.reader.is_full() {
            return self.reader.pass_over(1);
        }
        let other = match scope {
            Scope::Service => Scope::Backend,
            Scope::Backend => Scope::Service,
        };
        let help = if other.knows(keyword) {
            format!("`{keyword}` belongs into {}", other.noun())
        } else if keyword.starts_with('#') {
            "a directive begins in the first column; a comment begins with //".to_owned()
        } else {
            let mut known: Vec<&str> = scope.keywords().collect();
            if scope == Scope::Service {
                known.push("backend");
            }
            suggestion(keyword, "keywords", known)
        };
        self.reader.report(
            Problem::at(
                place,
                format!("{} does not know `{}`", scope.noun(), shown(keyword)),
                "no such keyword",
            )
            .help(help),
        );
    }

    /// Skips to the end of a statement and says whether it has a semicolon: the block may end
    /// first, or a line begin with a keyword.
    fn skip_statement(&mut self) -> bool {
        let mut open = 0usize;
        while let Some(token) = self.peek() {
            match &token.kind {
                TokenKind::Semicolon => {
                    self.at += 1;
                    return true;
                }
                TokenKind::Open | TokenKind::Close if token.first => return false,
                // Ends the block, unless it was opened in the value.
                TokenKind::Close if open == 0 => return false,
                TokenKind::Word(word) if token.first && is_keyword(word) => return false,
                TokenKind::Open => open += 1,
                TokenKind::Close => open -= 1,
                _ => {}
            }
            self.at += 1;
        }
        false
    }

    fn skip_braces(&mut self) {
        let mut open = 0usize;
        while let Some(token) = self.peek() {
            match token.kind {
                TokenKind::Open => open += 1,
                TokenKind::Close => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }
}

/// The text of a value: without quotes if it is a single quoted string.
fn joined(tokens: &[Token]) -> String {
    if let [
        Token {
            kind: TokenKind::Quoted(text),
            ..
        },
    ] = tokens
    {
        return text.clone();
    }
    let mut out = String::new();
    for (number, token) in tokens.iter().enumerate() {
        if number > 0 && token.spaced {
            out.push(' ');
        }
        out.push_str(&spelled(&token.kind));
    }
    out
}

fn spelled(kind: &TokenKind) -> String {
    match kind {
        TokenKind::Word(word) => word.clone(),
        TokenKind::Quoted(text) => format!("\"{}\"", text.replace('"', "\\\"")),
        TokenKind::Open => "{".to_owned(),
        TokenKind::Close => "}".to_owned(),
        TokenKind::Semicolon => ";".to_owned(),
    }
}
