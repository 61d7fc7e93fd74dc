//! What may happen to a balancer, one step at a time.

use proptest::collection::vec;
use proptest::prelude::*;

/// A step. An index means one of the items that exist at that time: it is taken modulo their
/// number.
#[derive(Clone, Debug)]
pub enum Step {
    /// A client connects to a service; it may be gone before it is accepted.
    Connect { service: u8, is_gone: bool },
    /// A client has a message to send; so many bytes of it arrive at once.
    Ask { client: u8, what: Ask, bytes: u16 },
    /// More of what a client has to send arrives.
    Send { client: u8, bytes: u16 },
    /// A client shuts down its side, or resets.
    EndClient { client: u8, is_reset: bool },
    /// The next attempt to connect fails, or hangs.
    NextConnect { errno: Option<i32> },
    /// A back end answers a request; so many bytes of the answer arrive at once.
    Answer { back: u8, what: Answer, bytes: u16 },
    /// A back end answers a request of which only a part has come.
    AnswerEarly { back: u8, what: Answer, bytes: u16 },
    /// More of what a back end has to send arrives.
    SendBack { back: u8, bytes: u16 },
    /// A back end shuts down its side, or resets.
    EndBack { back: u8, is_reset: bool },
    /// A back end sends an answer without a request.
    Stray { back: u8 },
    /// A peer accepts so many more bytes, and then none.
    Room { peer: u8, bytes: u16 },
    /// A peer accepts all bytes from now on.
    AllRoom { peer: u8 },
    /// There is no descriptor for a client, or for the next connection to a back end.
    NoDescriptor { is_client: bool },
    /// The event loop begins or ceases to hold as much as it may.
    Full { is_full: bool },
    /// An operator changes a back end.
    Operate {
        service: u8,
        back: u8,
        what: Operation,
    },
    /// The balancer polls, after so much time.
    Turn {
        ms: u16,
        is_late: bool,
        is_reversed: bool,
    },
}

/// What a client sends. In a TCP service: a few bytes.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Get,
    GetAndClose,
    Old,
    Head,
    Post { bytes: u16 },
    PostChunked { bytes: u16 },
    Upgrade,
    Malformed,
}

/// What a back end answers. In a TCP service: a few bytes.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Length {
        bytes: u16,
    },
    Chunked {
        bytes: u16,
    },
    UntilClose {
        bytes: u16,
    },
    Empty,
    Interim,
    /// The upgrade that was asked for; otherwise a short answer.
    Switch,
    Error,
    Malformed,
    /// An answer with surplus bytes after it.
    Surplus,
}

#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Up,
    Down,
    Remove,
}

fn bytes() -> impl Strategy<Value = u16> {
    prop_oneof![2 => Just(u16::MAX), 1 => 0..40u16, 1 => 0..400u16]
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        6 => Just(Ask::Get),
        1 => Just(Ask::GetAndClose),
        1 => Just(Ask::Old),
        1 => Just(Ask::Head),
        2 => (0..600u16).prop_map(|bytes| Ask::Post { bytes }),
        2 => (0..600u16).prop_map(|bytes| Ask::PostChunked { bytes }),
        1 => Just(Ask::Upgrade),
        1 => Just(Ask::Malformed),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        6 => (0..600u16).prop_map(|bytes| Answer::Length { bytes }),
        3 => (0..600u16).prop_map(|bytes| Answer::Chunked { bytes }),
        1 => (0..600u16).prop_map(|bytes| Answer::UntilClose { bytes }),
        1 => Just(Answer::Empty),
        1 => Just(Answer::Switch),
        1 => Just(Answer::Interim),
        1 => Just(Answer::Error),
        1 => Just(Answer::Malformed),
        1 => Just(Answer::Surplus),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let any_u8 = any::<u8>;
    let errno = prop_oneof![
        Just(None),
        Just(Some(libc_numbers::ECONNREFUSED)),
        Just(Some(libc_numbers::EADDRNOTAVAIL)),
    ];
    let operation = prop_oneof![
        3 => Just(Operation::Up),
        1 => Just(Operation::Down),
        1 => Just(Operation::Remove),
    ];
    prop_oneof![
        6 => (any_u8(), proptest::bool::weighted(0.05))
            .prop_map(|(service, is_gone)| Step::Connect { service, is_gone }),
        10 => (any_u8(), ask(), bytes())
            .prop_map(|(client, what, bytes)| Step::Ask { client, what, bytes }),
        4 => (any_u8(), bytes()).prop_map(|(client, bytes)| Step::Send { client, bytes }),
        2 => (any_u8(), any::<bool>())
            .prop_map(|(client, is_reset)| Step::EndClient { client, is_reset }),
        1 => errno.prop_map(|errno| Step::NextConnect { errno }),
        10 => (any_u8(), answer(), bytes())
            .prop_map(|(back, what, bytes)| Step::Answer { back, what, bytes }),
        3 => (any_u8(), answer(), bytes())
            .prop_map(|(back, what, bytes)| Step::AnswerEarly { back, what, bytes }),
        4 => (any_u8(), bytes()).prop_map(|(back, bytes)| Step::SendBack { back, bytes }),
        2 => (any_u8(), any::<bool>())
            .prop_map(|(back, is_reset)| Step::EndBack { back, is_reset }),
        1 => any_u8().prop_map(|back| Step::Stray { back }),
        2 => (any_u8(), 0..200u16).prop_map(|(peer, bytes)| Step::Room { peer, bytes }),
        2 => any_u8().prop_map(|peer| Step::AllRoom { peer }),
        1 => any::<bool>().prop_map(|is_client| Step::NoDescriptor { is_client }),
        1 => any::<bool>().prop_map(|is_full| Step::Full { is_full }),
        1 => (any_u8(), any_u8(), operation)
            .prop_map(|(service, back, what)| Step::Operate { service, back, what }),
        12 => (
            prop_oneof![6 => 0..3u16, 2 => 0..150u16, 1 => 0..1500u16],
            any::<bool>(),
            any::<bool>(),
        )
            .prop_map(|(ms, is_late, is_reversed)| Step::Turn { ms, is_late, is_reversed }),
    ]
}

/// Sequences of steps.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..120)
}

/// Error numbers, which are the same on every Linux.
pub mod libc_numbers {
    pub const EMFILE: i32 = 24;
    pub const EADDRNOTAVAIL: i32 = 99;
    pub const ECONNREFUSED: i32 = 111;
}
