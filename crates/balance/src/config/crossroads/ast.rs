//! A Crossroads file as blocks of statements, with source locations.

use ::config::tree::Place;

/// A file with everything it includes.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub services: Vec<Block>,
}

/// `service NAME { … }` or `backend NAME { … }`.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    pub statements: Vec<Statement>,
    /// Part of it could not be parsed, so nothing is reported as missing.
    pub incomplete: bool,
    /// The back ends of a service.
    pub backends: Vec<Block>,
}

/// `keyword value;`
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub keyword: String,
    /// Where the keyword stands.
    pub place: Place,
    /// Between keyword and semicolon: words separated by single spaces, or the inside of a single
    /// quoted string.
    pub value: String,
    /// The value, or the semicolon if it is empty.
    pub value_place: Place,
}
