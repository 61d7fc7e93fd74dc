//! Back ends that answer at any byte of a request, and then close, reset or stay. Whatever arrived
//! before the end reaches the client, which may still be sending.

use net::simulated::try_random;
use proptest::collection::vec;
use proptest::prelude::*;

use super::steps::{Answer, Ask, Step};
use super::{CASES, ask, broken_and_received, connect, turn};

/// No head of these requests is longer, bytes.
const HEAD_MAX: u16 = 80;

/// What the back end does behind its answer.
#[derive(Clone, Copy, Debug)]
enum End {
    Stays,
    Closes,
    Resets,
}

/// A request, and how it is answered.
#[derive(Clone, Debug)]
struct Case {
    what: Ask,
    /// How many bytes arrive at once, with a turn in between, beginning with the head; the rest
    /// follows the answer. They leave one of the loop's six buffers of 128 bytes to the answer.
    pieces: Vec<u16>,
    answer: Answer,
    end: End,
    /// How much of the request the back end takes before it answers.
    room: Option<u16>,
    /// Whether a turn passes between the answer and the end.
    is_slow: bool,
    is_late: bool,
    is_reversed: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let what = prop_oneof![
        (1..600u16).prop_map(|bytes| Ask::Post { bytes }),
        (1..600u16).prop_map(|bytes| Ask::PostChunked { bytes }),
    ];
    let answer = prop_oneof![
        3 => (0..600u16).prop_map(|bytes| Answer::Length { bytes }),
        1 => (1..600u16).prop_map(|bytes| Answer::Chunked { bytes }),
    ];
    let end = prop_oneof![Just(End::Stays), Just(End::Closes), Just(End::Resets)];
    (
        what,
        (HEAD_MAX..256u16, vec(1..=128u16, 0..3)),
        answer,
        end,
        proptest::option::of(0..500u16),
        any::<[bool; 3]>(),
    )
        .prop_map(|(what, (first, more), answer, end, room, flags)| {
            let [is_slow, is_late, is_reversed] = flags;
            Case {
                what,
                pieces: [vec![first], more].concat(),
                answer,
                end,
                room,
                is_slow,
                is_late,
                is_reversed,
            }
        })
}

fn steps(case: &Case) -> Vec<Step> {
    let turn = Step::Turn {
        ms: 1,
        is_late: case.is_late,
        is_reversed: case.is_reversed,
    };
    let (client, back) = (0, 0);
    let mut steps = vec![connect(1), turn.clone()];
    for (number, &bytes) in case.pieces.iter().enumerate() {
        steps.push(match number {
            0 => Step::Ask {
                client,
                what: case.what,
                bytes,
            },
            _ => Step::Send { client, bytes },
        });
        steps.extend([turn.clone(), turn.clone()]);
        if number == 0
            && let Some(bytes) = case.room
        {
            // The client is the first peer, the back end the second.
            steps.push(Step::Room { peer: 1, bytes });
        }
    }
    // Either the whole request has come, or a part of it.
    let (what, bytes) = (case.answer, u16::MAX);
    steps.push(Step::AnswerEarly { back, what, bytes });
    steps.push(Step::Answer { back, what, bytes });
    if case.is_slow {
        steps.push(turn.clone());
    }
    match case.end {
        End::Stays => {}
        End::Closes | End::Resets => steps.push(Step::EndBack {
            back,
            is_reset: matches!(case.end, End::Resets),
        }),
    }
    // In the same turn as the end: the balancer sends to a connection that was reset.
    steps.push(Step::Send { client, bytes: 50 });
    steps.extend([turn.clone(), turn.clone()]);
    steps.push(Step::Send { client, bytes });
    steps.extend(vec![turn; 4]);
    steps
}

/// What is wrong with what the client got.
fn go_through(case: &Case) -> Vec<String> {
    let (mut found, received) = broken_and_received(steps(case));
    let text = String::from_utf8_lossy(&received[0]);
    let (is_whole, body) = match case.answer {
        Answer::Length { bytes } => (text.starts_with("HTTP/1.1 200 "), usize::from(bytes)),
        _ => (
            text.starts_with("HTTP/1.1 200 ") && text.ends_with("0\r\n\r\n"),
            0,
        ),
    };
    let content = text
        .split_once("\r\n\r\n")
        .map_or(0, |(_, body)| body.len());
    if !is_whole || content < body {
        found.push(format!("the client got {text:?}"));
    }
    found
}

#[test]
fn an_early_answer_reaches_the_client_however_the_back_end_ends() {
    try_random(CASES, file!(), &cases(), |case| go_through(&case));
}

/// The order of a real fault: the rest of a request is sent into a connection that was reset behind
/// the answer, and the failure of that send is not what counts.
#[test]
fn an_answer_is_read_before_a_failed_send_counts() {
    for is_late in [false, true] {
        let case = Case {
            what: Ask::Post { bytes: 400 },
            pieces: vec![200],
            answer: Answer::Length { bytes: 20 },
            end: End::Resets,
            room: None,
            is_slow: false,
            is_late,
            is_reversed: false,
        };
        let (found, received) = broken_and_received(steps(&case));
        assert!(found.is_empty(), "{found:#?}");
        let text = String::from_utf8_lossy(&received[0]);
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    }
}

/// A client that gets an early answer sends the rest, which is dropped; then its connection is not
/// used for another request.
#[test]
fn what_follows_an_early_answer_is_no_request() {
    let what = Answer::Length { bytes: 20 };
    let (back, bytes) = (0, u16::MAX);
    let mut steps = vec![
        connect(1),
        Step::Ask {
            client: 0,
            what: Ask::Post { bytes: 400 },
            bytes: 200,
        },
    ];
    steps.extend(vec![turn(1); 4]);
    steps.push(Step::AnswerEarly { back, what, bytes });
    steps.extend(vec![turn(1); 2]);
    steps.push(Step::Send { client: 0, bytes });
    steps.push(ask(Ask::Get));
    steps.extend(vec![turn(1); 4]);
    let (found, received) = broken_and_received(steps);
    assert!(found.is_empty(), "{found:#?}");
    let text = String::from_utf8_lossy(&received[0]);
    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
}
