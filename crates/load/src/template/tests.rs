use std::fmt::Write;

use proptest::prelude::*;
use readings::requests::{Feed, FeedOrder};

use super::*;

fn feeds() -> Vec<FeedRows> {
    let rows = |name: &str, order, count: usize| {
        let row = |at: usize| {
            vec![
                format!("{name}{at}"),
                format!("a b/{at}"),
                "x".repeat(at % 40),
            ]
        };
        FeedRows::of(&Feed {
            name: name.to_owned(),
            columns: vec!["id".into(), "text".into(), "long".into()],
            rows: (0..count).map(row).collect(),
            order,
        })
    };
    vec![
        rows("turn", FeedOrder::InTurn, 7),
        rows("random", FeedOrder::Random, 100),
        rows("once", FeedOrder::Once, 1 << 12),
    ]
}

fn captured() -> Vec<Vec<u8>> {
    vec![b"token=1".to_vec()]
}

fn place(fill: Fill, is_encoded: bool) -> Piece {
    Piece::Place { fill, is_encoded }
}

fn filled(pieces: &[Piece], seed: u64, number: u64) -> Vec<u8> {
    let (feeds, captured) = (feeds(), captured());
    let values = Values {
        number,
        row: number,
        seed,
        first: 0,
        feeds: &feeds,
        captured: &captured,
        now_ms: 1_700_000_000_123,
    };
    let mut out = Vec::new();
    Filler::new(&Template(pieces.to_vec()), 0)
        .0
        .append(&values, &mut out);
    out
}

/// The same, step by step and with the formatting of the standard library.
fn naive(pieces: &[Piece], seed: u64, number: u64) -> Vec<u8> {
    let feeds = feeds();
    let draws = Draws::of(seed, number);
    let mut out = Vec::new();
    let mut places = 0;
    for piece in pieces {
        let (fill, is_encoded) = match piece {
            Piece::Text(text) => {
                out.extend_from_slice(text);
                continue;
            }
            Piece::Place { fill, is_encoded } => (fill, is_encoded),
        };
        let mut stream = draws.place(Place::new(places));
        places += 1;
        let text: String = match *fill {
            Fill::Column { feed, column } => {
                let rows = &feeds[feed];
                let row = match rows.order {
                    FeedOrder::Random => draws.row(feed).below(rows.rows()),
                    _ => number % rows.rows(),
                };
                String::from_utf8(rows.value(row, column).to_vec()).unwrap()
            }
            Fill::Seq => (number + 1).to_string(),
            Fill::Uuid => {
                let bits = u128::from(stream.next()) << 64 | u128::from(stream.next());
                let bits = bits & !(0xf << 76) | 4 << 76;
                let bits = bits & !(3 << 62) | 2 << 62;
                let digits = format!("{bits:032x}");
                let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
                parts.map(|part| digits[part].to_owned()).join("-")
            }
            Fill::Int { from, to } => {
                let span = i128::from(to) - i128::from(from) + 1;
                let above = (u128::from(stream.next()) * span as u128) >> 64;
                (i128::from(from) + above as i128).to_string()
            }
            Fill::Zipf { keys, exponent } => Zipf::new(keys, exponent).key(&mut stream).to_string(),
            Fill::Hex { digits } => {
                let words = (0..digits.div_ceil(16)).map(|_| format!("{:016x}", stream.next()));
                words.collect::<String>()[..digits as usize].to_owned()
            }
            Fill::Now => "1700000000123".to_owned(),
            Fill::Captured { name } => {
                let value = captured().get(name).cloned().unwrap_or_default();
                String::from_utf8(value).unwrap()
            }
        };
        for byte in text.bytes() {
            let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            match *is_encoded
                && !is_plain
                && matches!(fill, Fill::Column { .. } | Fill::Captured { .. })
            {
                true => {
                    let mut text = String::new();
                    write!(text, "%{byte:02X}").unwrap();
                    out.extend_from_slice(text.as_bytes());
                }
                false => out.push(byte),
            }
        }
    }
    out
}

fn any_fill() -> impl Strategy<Value = Fill> {
    prop_oneof![
        (0usize..3, 0usize..3).prop_map(|(feed, column)| Fill::Column { feed, column }),
        Just(Fill::Seq),
        Just(Fill::Uuid),
        any::<(i64, i64)>().prop_map(|(a, b)| Fill::Int {
            from: a.min(b),
            to: a.max(b)
        }),
        (1u64..5_000, 0.0f64..3.0).prop_map(|(keys, exponent)| Fill::Zipf { keys, exponent }),
        (0u32..70).prop_map(|digits| Fill::Hex { digits }),
        Just(Fill::Now),
        (0usize..2).prop_map(|name| Fill::Captured { name }),
    ]
}

fn any_piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(Piece::Text),
        (any_fill(), any::<bool>()).prop_map(|(fill, is_encoded)| place(fill, is_encoded)),
    ]
}

proptest! {
    #[test]
    fn it_is_filled_as_step_by_step(
        pieces in proptest::collection::vec(any_piece(), 0..14),
        seed: u64,
        number in 0u64..1 << 12,
    ) {
        prop_assert_eq!(filled(&pieces, seed, number), naive(&pieces, seed, number));
    }
}

#[test]
fn what_is_filled_in_follows_from_seed_number_and_place() {
    let uuids = [
        place(Fill::Uuid, false),
        Piece::Text(b" ".into()),
        place(Fill::Uuid, false),
    ];
    let text = |seed, number| String::from_utf8(filled(&uuids, seed, number)).unwrap();
    assert_eq!(text(5, 9), text(5, 9));
    let mut seen = std::collections::HashSet::new();
    for (seed, number) in [(5, 9), (5, 10), (6, 9)] {
        seen.extend(text(seed, number).split(' ').map(str::to_owned));
    }
    assert_eq!(seen.len(), 6);
    // It stays what it is: a load is repeated by its seed, also with a later version.
    assert_eq!(text(1, 0), KNOWN_UUIDS);
}

const KNOWN_UUIDS: &str =
    "a85a2a42-e746-4040-b4d6-9b652ec315a0 cc9a4c55-1c10-4009-ab38-8a611842f376";

#[test]
fn both_ends_of_an_int_come() {
    let ints = [place(Fill::Int { from: -1, to: 1 }, false)];
    let mut counts = [0; 3];
    for number in 0..3_000 {
        let text = String::from_utf8(filled(&ints, 1, number)).unwrap();
        counts[(text.parse::<i64>().unwrap() + 1) as usize] += 1;
    }
    assert!(
        counts.iter().all(|count| (850..1_150).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn feeds_are_read_back_as_they_were() {
    for feed in feeds() {
        let text = serde_json::to_string(&feed).unwrap();
        assert_eq!(serde_json::from_str::<FeedRows>(&text).unwrap(), feed);
    }
    let text = serde_json::to_string(&feeds()[0]).unwrap();
    let fewer = text.replace("\"id\",", "");
    assert!(serde_json::from_str::<FeedRows>(&fewer).is_err());
}

#[test]
fn filling_allocates_nothing_once_the_memory_is_there() {
    let pieces = [
        Piece::Text(b"/a?".into()),
        place(Fill::Column { feed: 1, column: 1 }, true),
        place(Fill::Seq, false),
        place(Fill::Uuid, false),
        place(Fill::Int { from: -5, to: 900 }, false),
        place(
            Fill::Zipf {
                keys: 1_000,
                exponent: 1.1,
            },
            false,
        ),
        place(Fill::Hex { digits: 40 }, false),
        place(Fill::Now, false),
        place(Fill::Captured { name: 0 }, true),
    ];
    let (feeds, captured) = (feeds(), captured());
    let filler = Filler::new(&Template(pieces.to_vec()), 0).0;
    let mut out = Vec::with_capacity(1 << 10);
    let used = allocation_counter::measure(|| {
        for number in 0..1_000 {
            out.clear();
            let values = Values {
                number,
                row: number,
                seed: 1,
                first: 0,
                feeds: &feeds,
                captured: &captured,
                now_ms: 1,
            };
            filler.append(&values, &mut out);
        }
    });
    assert_eq!(used.count_total, 0);
}
