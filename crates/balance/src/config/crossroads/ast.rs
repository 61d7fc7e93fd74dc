//! A Crossroads file as blocks of statements, each with its place.

use written::tree::Place;

/// A whole file, with all that it includes.
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
    /// Whether something in it could not be read, so that what is missing may be that.
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
    /// What stands between keyword and semicolon: words with one space between them, or what
    /// stands in the quotes if it is all in one pair.
    pub value: String,
    /// Where the value stands; the semicolon where there is none.
    pub value_place: Place,
}
