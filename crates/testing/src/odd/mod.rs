//! Ambiguous and odd messages of HTTP, each with what has to become of it and the section of the RFC
//! that says so. `docs/src/reference/odd-messages.md` shows the rows; a test keeps it true.
//!
//! A message is made of one row of each dimension: request line, fields, framing, moment of closing.
//! Where several rows are faults, any of their outcomes may come first.

pub mod closings;
mod differences;
mod page;
pub mod requests;
pub mod responses;
pub mod streams;
mod unasked;

pub use differences::unexplained;
pub use page::page;
pub use readings::url::encoded_path;
pub use unasked::unlisted;

/// What has to become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on with the same meaning. Over a load: a good answer.
    Passes,
    /// A request gets an answer with one of these statuses, and does not reach a back end as a whole.
    Refused(&'static [u16]),
    /// A stream is reset with PROTOCOL_ERROR.
    Reset,
    /// A client gets 502. Over a load: counted in `read`.
    Bad,
    /// The part that was sent before it was found out may go on, and never as a whole: 502, a reset
    /// connection, a reset stream. Over a load: counted in `read`.
    Broken,
    /// Over a load: counted in `status`.
    Status,
    /// It cannot be said in this version of HTTP.
    Unsaid,
}

/// 400 (Bad Request).
pub const BAD: Fate = Fate::Refused(&[400]);

/// Fails with the first 40 of them, if there are any.
pub fn none_is_wrong(wrong: &[String]) {
    let first = wrong[..wrong.len().min(40)].join("\n");
    assert!(wrong.is_empty(), "{} are wrong:\n{first}", wrong.len());
}
