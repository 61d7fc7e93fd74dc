//! Exchanges: what pacing, stop rules, recording and merging work on, whatever is said in them.
//!
//! An exchange opens on a place ([`conn::Conn`]), is due at a time, has a first sign, zero or more
//! messages, an end and a judgement. What the bytes of a place mean is its [`Kind`], a parameter of
//! the worker: no kind pays for another. All else is common to the kinds.

use std::fmt::Display;

use readings::{HttpVersion, Wrong};

use crate::job::target::Request;

pub(crate) mod conn;

/// When a message was due, ns of the worker's clock; `None` if its time of arrival is all that is
/// known.
pub(crate) type Due = Option<u64>;

/// A kind of exchange, and the state of one on a place.
///
/// A new kind implements it and is named where a job's worker is made, in `run`.
pub(crate) trait Kind: Sized {
    /// Why bytes are not what they should be.
    type Error: Display;

    /// Whether exchanges have messages that are counted one by one.
    const HAS_MESSAGES: bool;

    /// The state of a place that has no exchange yet.
    fn new() -> Self;

    /// What is expected where other bytes came.
    fn expected(http: HttpVersion) -> String;

    /// Whether a request can be sent again without knowing whether the server has processed it.
    fn is_repeatable(request: &Request) -> bool;

    /// The place's next exchange begins.
    fn begin(&mut self, request: &Request);

    /// The place's connection is over, or a new one begins.
    fn reset(&mut self);

    /// Takes bytes that arrived on a connection which carries one exchange at a time. Returns
    /// whether the exchange is complete. `intended` is when it was due: the due times of its
    /// messages count from there, whatever delayed it.
    ///
    /// # Errors
    /// When they are not what the kind says, or more than the exchange.
    fn take(
        &mut self,
        request: &Request,
        intended: u64,
        bytes: &[u8],
        message: impl FnMut(Due),
    ) -> Result<bool, Self::Error>;

    /// Whether an interim answer, which is no sign of the answer itself, ended in the bytes taken
    /// last; and if so, whether more has come behind it.
    fn interim_ended(&mut self) -> Option<bool> {
        None
    }

    /// The connection ended without an error. Returns whether that completes the exchange.
    fn end(&mut self) -> bool;

    /// Takes the head of an answer on a stream of a connection that carries several.
    fn take_head(&mut self, status: u16);

    /// Takes a piece of the content on such a stream. What is wrong with it is for the judgement at
    /// its end.
    fn take_content(
        &mut self,
        request: &Request,
        intended: u64,
        bytes: &[u8],
        message: impl FnMut(Due),
    );

    /// The status of a complete exchange, if the kind has statuses.
    fn status(&self) -> Option<u16>;

    /// What is wrong with a complete exchange; `None` if it is good.
    fn judge(&self, request: &Request) -> Option<Wrong>;

    /// Whether the connection can carry another exchange after a complete one.
    fn keeps_connection(&self) -> bool;
}
