//! Exchanges: what pacing, stop rules, recording and merging work on, whatever is said in them.
//!
//! An exchange opens on a place ([`conn::Conn`]), is due at a time, has a first sign, zero or more
//! messages, an end and a judgement. What the bytes of a place mean is its [`Kind`], a parameter of
//! the worker: no kind pays for another. All else is common to the kinds.

use std::borrow::Cow;
use std::fmt::Display;

use readings::{HttpVersion, LagBase, Wrong};

use crate::http::session::Fields;
use crate::job::target::{Request, Target};
use stamp::Stamp;

pub(crate) mod conn;
mod events;
mod lasting;
pub(crate) mod sequence;
pub(crate) mod stamp;
pub(crate) mod visit;

pub(crate) use lasting::Lasting;
pub(crate) use visit::{AnswerAge, User};

/// The times of an exchange and of bytes of it, ns of the worker's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When the exchange was due. In open loops the due times of its messages count from there,
    /// whatever delayed it.
    pub(crate) intended: u64,
    /// When its request was handed to the kernel.
    pub(crate) sent: u64,
    /// When the bytes arrived; of an end, when it was noticed.
    pub(crate) arrived: u64,
}

/// When a message was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// ns of the worker's clock.
    pub(crate) at: u64,
    pub(crate) base: LagBase,
}

/// A message that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// When, ns of the worker's clock.
    pub(crate) arrived: u64,
    /// `None` if it is not known, or not yet: then [`Note::Lag`] follows.
    pub(crate) due: Option<Due>,
    /// Since the one before in the exchange, ns; `None` for the first.
    pub(crate) gap: Option<u64>,
    /// Without framing.
    pub(crate) bytes: u64,
    /// Numbers that were left out before this one; -1 for one that had been left out.
    pub(crate) lost: i64,
    pub(crate) is_repeated: bool,
    pub(crate) is_reordered: bool,
    pub(crate) is_merged: bool,
    /// Whether the gap is a stall.
    pub(crate) is_stall: bool,
}

/// What a kind reports of an exchange, for recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// It is open: messages may follow.
    Opened,
    Message(Message),
    /// What came answers a message that was sent so long before, ns.
    Answer {
        arrived: u64,
        after: u64,
    },
    /// The due time of a message that was reported without one.
    Lag {
        due: Due,
        arrived: u64,
    },
    /// So many messages before its end never came.
    Lost(u64),
    /// Messages were due when it was cut, and had not come.
    Overdue(Overdue),
    /// It was open, and not one message came.
    Empty,
    /// When it ended, no message had come for so long, ns, which is a stall.
    Silent(u64),
}

/// Messages that are due and have not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// When the first of them was due.
    pub(crate) first: Due,
    /// From one to the next, ns; above 0.
    pub(crate) pace: u64,
}

/// How an exchange ended, in the words of its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// As in [`readings::ExchangeEnd::how`].
    pub(crate) how: Cow<'static, str>,
    /// Whether neither client nor format ended it.
    pub(crate) is_cut: bool,
}

/// A kind of exchange, and the state of one on a place.
///
/// A new kind implements it and is a variant of [`Lasting`].
pub(crate) trait Kind: Sized {
    /// Why bytes are not what they should be.
    type Error: Display;

    /// Whether exchanges have messages that are counted one by one. If so, header fields of answers
    /// on streams are kept for [`Self::take_head`] and [`Self::take_trailers`].
    const HAS_MESSAGES: bool;

    /// The state of a place of this target that has no exchange yet.
    fn new(target: &Target) -> Self;

    /// What is expected where other bytes came.
    fn expected(http: HttpVersion) -> String;

    /// Whether a request can be sent again without knowing whether the server has processed it.
    fn is_repeatable(request: &Request) -> bool;

    /// The place's next exchange is the target's request with this number; it begins next.
    fn prepare(&mut self, _: &Target, _number: usize) {}

    /// The place's next exchange begins.
    fn begin(&mut self, request: &Request);

    /// The place's connection is over, or a new one begins.
    fn reset(&mut self);

    /// Takes bytes that arrived on a connection which carries one exchange at a time. Returns
    /// whether the exchange is complete.
    ///
    /// # Errors
    /// When they are not what the kind says, or more than the exchange.
    fn take(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
        note: impl FnMut(Note),
    ) -> Result<bool, Self::Error>;

    /// Whether an interim answer, which is no sign of the answer itself, ended in the bytes taken
    /// last; and if so, whether more has come behind it.
    fn interim_ended(&mut self) -> Option<bool> {
        None
    }

    /// The connection ended without an error. Returns whether that completes the exchange.
    fn end(&mut self) -> bool;

    /// Takes the head of an answer on a stream of a connection that carries several.
    fn take_head(&mut self, status: u16, fields: &Fields, times: Times, note: impl FnMut(Note));

    /// Takes a piece of the content on such a stream. What is wrong with it is for the judgement at
    /// its end.
    fn take_content(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
        note: impl FnMut(Note),
    );

    /// The WebSocket that the exchange is has opened.
    fn socket_opened(&mut self, _is_own_clock: bool, _: Times, _: impl FnMut(Note)) {}

    /// A message of so many bytes has come on it.
    fn take_message(&mut self, _: Option<Stamp>, _bytes: u64, _: Times, _: impl FnMut(Note)) {}

    /// How many further messages of its request may be sent now, which are sent then.
    fn more_to_send(&mut self, _now: u64) -> u32 {
        0
    }

    /// Takes the fields behind the content on such a stream.
    fn take_trailers(&mut self, _: &Fields, _: Times) {}

    /// Whether it is open, and lasts: it is in time as long as it is not silent for the time limit of
    /// an answer, and the end of the window cuts it, which is no failure.
    fn is_open(&self) -> bool {
        false
    }

    /// When the last sign of it came, ns of the worker's clock; 0 if its time limit counts from its
    /// request.
    fn last_sign(&self) -> u64 {
        0
    }

    /// It is over: complete, otherwise failed or cut. Reports what has not been reported yet.
    fn over(&mut self, _: Times, _is_complete: bool, _: impl FnMut(Note)) {}

    /// It is complete, with the answer to the target's request with this number: what is to be kept of
    /// it is taken.
    fn complete(&mut self, _: &Target, _number: usize, _now: u64) {}

    /// The place's user, where exchanges are the steps of sessions.
    fn user(&mut self) -> Option<&mut User> {
        None
    }

    /// How a complete exchange ended, if that is counted; asked once it is over.
    fn ending(&self) -> Option<Ending> {
        None
    }

    /// What a complete answer says of its age, where that is read.
    fn age(&self) -> Option<AnswerAge> {
        None
    }

    /// The status of a complete exchange, if the kind has statuses.
    fn status(&self) -> Option<u16>;

    /// What is wrong with a complete exchange; `None` if it is good. Asked once it is over.
    fn judge(&self, request: &Request) -> Option<Wrong>;

    /// Whether the connection can carry another exchange after a complete one.
    fn keeps_connection(&self) -> bool;
}
