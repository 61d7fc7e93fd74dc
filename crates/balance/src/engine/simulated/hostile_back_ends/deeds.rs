//! What hostile back ends do.

use net::h2::{ErrorCode, frame, hpack, settings};
use proptest::collection::vec;
use proptest::prelude::*;
use testing::odd::streams::all;

/// Frames of a flood in a turn.
const FLOOD: u32 = 300;

/// What content beyond a window is made of, and how much of it there is.
pub const BEYOND: u8 = b'~';
pub const BEYOND_BYTES: usize = 1_600_000;

/// How a back end opens a connection.
#[derive(Clone, Copy, Debug)]
pub enum Opening {
    /// With a window and a number of streams.
    Settings {
        window: u32,
        streams: u32,
    },
    /// It never sends SETTINGS.
    Silent,
    /// It speaks HTTP/1.1.
    Text,
    Refused,
    Hanging,
}

/// What a back end does with a request.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    Good,
    /// As one of the odd answers.
    Odd(usize),
    Nothing,
    /// A head, and a part of the content.
    Part,
    /// More content than the stream's window has room for, without a wait for more.
    Beyond,
    Refuse,
    /// GOAWAY that does not serve it.
    GoAway,
    ResetConnection,
    /// These frames for ever.
    Flood(Flood),
}

#[derive(Clone, Copy, Debug)]
pub enum Flood {
    Ping,
    Settings,
    EmptyData,
    WindowUpdates,
    Resets,
    Interim,
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Case {
    /// For each: streams of HTTP/2, or one request of HTTP/1.1; and how much content they have.
    pub clients: Vec<(Option<u8>, u16)>,
    /// In the order in which connections are opened and requests come, again and again.
    pub openings: Vec<Opening>,
    pub deeds: Vec<Deed>,
    pub is_late: bool,
    pub is_reversed: bool,
}

fn openings() -> impl Strategy<Value = Opening> {
    let window = prop_oneof![2 => Just(65_535_u32), 1 => Just(0), 1 => 1..3_000_u32];
    let streams = prop_oneof![3 => Just(100_u32), 1 => 0..3_u32];
    prop_oneof![
        8 => (window, streams).prop_map(|(window, streams)| Opening::Settings { window, streams }),
        1 => Just(Opening::Silent),
        1 => Just(Opening::Text),
        1 => Just(Opening::Refused),
        1 => Just(Opening::Hanging),
    ]
}

fn deeds(odd: usize) -> impl Strategy<Value = Deed> {
    let flood = prop_oneof![
        Just(Flood::Ping),
        Just(Flood::Settings),
        Just(Flood::EmptyData),
        Just(Flood::WindowUpdates),
        Just(Flood::Resets),
        Just(Flood::Interim),
        Just(Flood::Unknown),
    ];
    prop_oneof![
        2 => Just(Deed::Good),
        6 => (0..odd).prop_map(Deed::Odd),
        1 => Just(Deed::Nothing),
        1 => Just(Deed::Part),
        1 => Just(Deed::Beyond),
        2 => Just(Deed::Refuse),
        1 => Just(Deed::GoAway),
        1 => Just(Deed::ResetConnection),
        3 => flood.prop_map(Deed::Flood),
    ]
}

pub fn cases() -> impl Strategy<Value = Case> {
    let content = prop_oneof![4 => Just(0_u16), 1 => 1..8_000_u16, 1 => 8_000..65_000_u16];
    let client = (proptest::option::weighted(0.6, 1..8_u8), content);
    let clients = vec(client, 1..5);
    let openings = vec(openings(), 1..5);
    let deeds = vec(deeds(all(9, 9).len()), 1..8);
    (clients, openings, deeds, any::<[bool; 2]>()).prop_map(
        |(clients, openings, deeds, [is_late, is_reversed])| Case {
            clients,
            openings,
            deeds,
            is_late,
            is_reversed,
        },
    )
}

/// Frames of a flood on a stream.
pub fn flood_of(flood: Flood, stream: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..FLOOD {
        match flood {
            Flood::Ping => frame::ping(&mut out, [0; 8]),
            Flood::Settings => frame::settings(&mut out, &[(settings::INITIAL_WINDOW_SIZE, 1_000)]),
            Flood::EmptyData => frame::data(&mut out, stream, b"", false),
            Flood::WindowUpdates => frame::window_update(&mut out, stream, 1),
            Flood::Resets => frame::reset(&mut out, stream, ErrorCode::Cancel),
            Flood::Interim => {
                let early = hpack::block(&[(":status", "103")]);
                frame::headers(&mut out, stream, &early, false, 16_384);
            }
            // A frame of one byte, of a type that nobody has.
            Flood::Unknown => out.extend([0, 0, 1, 0x42, 0, 0, 0, 0, 0, 0]),
        }
    }
    out
}
