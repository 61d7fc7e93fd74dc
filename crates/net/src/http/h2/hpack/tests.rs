//! The examples of RFC 7541 appendix C, the rules of the format, and a model of the table.

use proptest::prelude::*;

use super::{Decoder, encode, huffman, integer, static_table};
use crate::http::h2::{ErrorCode, H2Error};

type Field = (Vec<u8>, Vec<u8>);

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, H2Error> {
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        Ok(())
    })?;
    Ok(fields)
}

/// Decodes with one decoder; each block's fields are lines, and then the table has this size.
fn check(table_max: usize, blocks: &[(&str, &str, usize)]) {
    let mut decoder = Decoder::new(table_max, 4096);
    for (hex, wanted, size) in blocks {
        let fields = decoded(&mut decoder, &bytes(hex)).unwrap();
        let lines = fields.iter().map(|(name, value)| {
            let text = [&name[..], b"=", value].concat();
            String::from_utf8(text).unwrap()
        });
        let wanted: Vec<&str> = wanted.split('|').collect();
        assert_eq!(lines.collect::<Vec<_>>(), wanted, "{hex}");
        assert_eq!(decoder.table.size(), *size, "{hex}");
    }
}

#[test]
fn literals() {
    let custom = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    check(4096, &[(custom, "custom-key=custom-header", 55)]);
    let path = "040c 2f73 616d 706c 652f 7061 7468";
    check(4096, &[(path, ":path=/sample/path", 0)]);
    let never = "1008 7061 7373 776f 7264 0673 6563 7265 74";
    check(4096, &[(never, "password=secret", 0)]);
    check(4096, &[("82", ":method=GET", 0)]);

    let mut out = Vec::new();
    encode(&mut out, b":path", b"/sample/path");
    encode(&mut out, b":method", b"GET");
    assert_eq!(out, bytes(&format!("{path} 82")));
}

const FIRST: &str = ":method=GET|:scheme=http|:path=/|:authority=www.example.com";
const SECOND: &str =
    ":method=GET|:scheme=http|:path=/|:authority=www.example.com|cache-control=no-cache";
const THIRD: &str = ":method=GET|:scheme=https|:path=/index.html|:authority=www.example.com\
    |custom-key=custom-value";

#[test]
fn requests() {
    check(
        4096,
        &[
            (
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                FIRST,
                57,
            ),
            ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND, 110),
            (
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                THIRD,
                164,
            ),
        ],
    );
}

#[test]
fn requests_in_huffman_code() {
    check(
        4096,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST, 57),
            ("8286 84be 5886 a8eb 1064 9cbf", SECOND, 110),
            (
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                THIRD,
                164,
            ),
        ],
    );
}

const FOUND: &str = ":status=302|cache-control=private|date=Mon, 21 Oct 2013 20:13:21 GMT\
    |location=https://www.example.com";
const MOVED: &str = ":status=307|cache-control=private|date=Mon, 21 Oct 2013 20:13:21 GMT\
    |location=https://www.example.com";
const OK: &str = ":status=200|cache-control=private|date=Mon, 21 Oct 2013 20:13:22 GMT\
    |location=https://www.example.com|content-encoding=gzip\
    |set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

#[test]
fn responses_with_eviction() {
    check(
        256,
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
                 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
                 6c65 2e63 6f6d",
                FOUND,
                222,
            ),
            ("4803 3330 37c1 c0bf", MOVED, 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
                 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
                 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
                 3d31",
                OK,
                215,
            ),
        ],
    );
}

#[test]
fn responses_with_eviction_in_huffman_code() {
    check(
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
                 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                FOUND,
                222,
            ),
            ("4883 640e ffc1 c0bf", MOVED, 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
                 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
                 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                OK,
                215,
            ),
        ],
    );
}

#[test]
fn every_static_entry() {
    for (place, (name, value)) in static_table::ENTRIES.iter().enumerate() {
        let index = place as u8 + 1;
        let mut decoder = Decoder::new(0, 4096);
        let field = (name.to_vec(), value.to_vec());
        assert_eq!(decoded(&mut decoder, &[0x80 | index]), Ok(vec![field]));
        let mut out = Vec::new();
        encode(&mut out, name, value);
        assert_eq!(out, [0x80 | index]);
        // Its name for another value.
        let mut out = Vec::new();
        integer::write(&mut out, 0x40, 6, usize::from(index));
        out.extend_from_slice(b"\x01x");
        let field = (name.to_vec(), b"x".to_vec());
        assert_eq!(decoded(&mut decoder, &out), Ok(vec![field]));
    }
}

#[test]
fn wrong_blocks() {
    for (wrong, why) in [
        ("80", "index 0"),
        ("be", "index behind the tables"),
        ("ff80 01", "index far behind the tables"),
        ("7f80 0101 61", "name index behind the tables"),
        ("0f80 0101 61", "name index behind the tables"),
        ("ff", "cut integer"),
        ("ffff ffff ffff", "integer overflow"),
        ("3fe2 1f", "table of 4097"),
        ("8220", "size update behind a field"),
        ("40", "without name"),
        ("4001", "name that is cut"),
        ("4001 61", "without value"),
        ("4001 6102 62", "value that is cut"),
        ("007f ffff ff7f", "length behind the block"),
        ("0081 0001 61", "Huffman padding"),
        ("0084 ffff ffff 0161", "end-of-string"),
    ] {
        let mut decoder = Decoder::new(4096, 4096);
        let error = decoded(&mut decoder, &bytes(wrong)).unwrap_err();
        assert_eq!(error.code, ErrorCode::CompressionError, "{wrong} {why}");
    }
}

#[test]
fn size_updates() {
    let mut decoder = Decoder::new(4096, 4096);
    let insert = bytes("4001 6101 62");
    decoded(&mut decoder, &insert).unwrap();
    assert_eq!(decoder.table.size(), 34);
    // To 0 and to 4096 again: the table is empty.
    let fields = decoded(&mut decoder, &bytes("203f e11f 82")).unwrap();
    assert_eq!(fields.len(), 1);
    assert_eq!(decoder.table.len(), 0);
    assert!(decoded(&mut decoder, &bytes("be")).is_err());

    // Without a table: an insertion gives its field and nothing more, only 0 is a size.
    let mut decoder = Decoder::new(0, 4096);
    assert_eq!(decoded(&mut decoder, &insert).unwrap().len(), 1);
    assert_eq!(decoder.table.len(), 0);
    assert_eq!(decoded(&mut decoder, &bytes("20")), Ok(vec![]));
    assert!(decoded(&mut decoder, &bytes("21")).is_err());

    // An encoder begins with 4096, and may use more after an update.
    let mut decoder = Decoder::new(8192, 1 << 20);
    let mut large = bytes("4001 61");
    integer::write(&mut large, 0, 7, 5000);
    large.resize(large.len() + 5000, b'x');
    decoded(&mut decoder, &large).unwrap();
    assert_eq!(decoder.table.len(), 0);
    let mut update = Vec::new();
    integer::write(&mut update, 0x20, 5, 8192);
    decoded(&mut decoder, &[update, large].concat()).unwrap();
    assert_eq!(decoder.table.size(), 5033);
}

#[test]
fn a_list_that_is_too_long() {
    // ":method: GET" counts 42.
    let mut decoder = Decoder::new(4096, 84);
    assert_eq!(decoded(&mut decoder, &[0x82, 0x82]).unwrap().len(), 2);
    let error = decoded(&mut decoder, &[0x82, 0x82, 0x82]).unwrap_err();
    assert_eq!(error.code, ErrorCode::EnhanceYourCalm);
    let mut long = bytes("0001 61");
    integer::write(&mut long, 0, 7, 52);
    long.resize(long.len() + 52, b'x');
    let error = decoded(&mut decoder, &long).unwrap_err();
    assert_eq!(error.code, ErrorCode::EnhanceYourCalm);
}

#[test]
fn an_error_of_the_receiver_ends_the_block() {
    let mut calls = 0;
    let refused = H2Error::protocol("refused");
    let result = Decoder::new(0, 4096).decode(&[0x82, 0x82], |_, _| {
        calls += 1;
        Err(refused)
    });
    assert_eq!((result, calls), (Err(refused), 1));
}

#[test]
fn memory_is_bounded() {
    let mut decoder = Decoder::new(1024, 1 << 20);
    for round in 0..20_000usize {
        let mut block = vec![0x40];
        integer::write(&mut block, 0, 7, 10);
        block.extend_from_slice(format!("name{round:06}").as_bytes());
        let length = round % 700;
        integer::write(&mut block, 0, 7, length);
        block.resize(block.len() + length, b'v');
        decoded(&mut decoder, &block).unwrap();
        assert!(decoder.table.size() <= 1024);
        let held = decoder.table.bytes_held();
        assert!(held <= 8 * 1024, "{held}");
    }
}

/// One instruction of an encoder.
#[derive(Clone, Debug)]
enum Step {
    Indexed(usize),
    Literal {
        named_by: Option<usize>,
        name: Vec<u8>,
        value: Vec<u8>,
        pattern: u8,
        huffman: bool,
    },
    Resize(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = || prop::collection::vec(any::<u8>(), 0..40);
    let literal = (
        prop::option::of(any::<usize>()),
        text(),
        text(),
        prop::sample::select(vec![0x40u8, 0x40, 0x40, 0x00, 0x10]),
        any::<bool>(),
    );
    let literal = literal.prop_map(|(named_by, name, value, pattern, huffman)| Step::Literal {
        named_by,
        name,
        value,
        pattern,
        huffman,
    });
    let step = prop_oneof![
        3 => any::<usize>().prop_map(Step::Indexed),
        5 => literal,
        1 => (0usize..300).prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 0..60)
}

fn write_text(out: &mut Vec<u8>, text: &[u8], in_huffman: bool) {
    match in_huffman {
        true => {
            let coded = huffman::encode(text);
            integer::write(out, 0x80, 7, coded.len());
            out.extend_from_slice(&coded);
        }
        false => {
            integer::write(out, 0, 7, text.len());
            out.extend_from_slice(text);
        }
    }
}

proptest! {
    /// A table that is a plain list of owned fields gives the same as the decoder's.
    #[test]
    fn as_a_simple_table(steps in steps()) {
        let mut decoder = Decoder::new(300, 1 << 20);
        let mut table: Vec<Field> = Vec::new();
        let mut size_max = 300;
        let size = |table: &[Field]| -> usize {
            table.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
        };
        for step in steps {
            let entry = |index: usize, table: &[Field]| -> Field {
                match index.checked_sub(62) {
                    Some(nth) => table[nth].clone(),
                    None => {
                        let (name, value) = static_table::ENTRIES[index - 1];
                        (name.to_vec(), value.to_vec())
                    }
                }
            };
            // Mostly of the dynamic table.
            let index_of = |any: usize, table: &[Field]| match table.len() {
                0 => any % 61 + 1,
                len => (any % (len + 3)) + 59,
            };
            let mut block = Vec::new();
            let mut wanted = Vec::new();
            match step {
                Step::Indexed(any) => {
                    let index = index_of(any, &table);
                    integer::write(&mut block, 0x80, 7, index);
                    wanted.push(entry(index, &table));
                }
                Step::Literal { named_by, mut name, value, pattern, huffman } => {
                    let prefix = if pattern == 0x40 { 6 } else { 4 };
                    let index = named_by.map_or(0, |any| index_of(any, &table));
                    integer::write(&mut block, pattern, prefix, index);
                    match index {
                        0 => write_text(&mut block, &name, huffman),
                        _ => name = entry(index, &table).0,
                    }
                    write_text(&mut block, &value, !huffman);
                    wanted.push((name.clone(), value.clone()));
                    if pattern == 0x40 {
                        table.insert(0, (name, value));
                    }
                }
                Step::Resize(to) => {
                    size_max = to;
                    integer::write(&mut block, 0x20, 5, to);
                }
            }
            while size(&table) > size_max {
                table.pop();
            }
            prop_assert_eq!(decoded(&mut decoder, &block), Ok(wanted));
            prop_assert_eq!(decoder.table.len(), table.len());
            prop_assert_eq!(decoder.table.size(), size(&table));
        }
    }

    #[test]
    fn encode_then_decode(fields in prop::collection::vec(
        (prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 0..300)),
        0..20,
    )) {
        let mut block = Vec::new();
        for (name, value) in &fields {
            encode(&mut block, name, value);
        }
        prop_assert_eq!(decoded(&mut Decoder::new(0, 1 << 20), &block), Ok(fields));
    }

    #[test]
    fn any_bytes(blocks in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..100), 1..10,
    )) {
        let mut decoder = Decoder::new(200, 1000);
        for block in blocks {
            let mut sum = 0;
            let result = decoder.decode(&block, |name, value| {
                sum += name.len() + value.len() + 32;
                Ok(())
            });
            assert!(sum <= 1000);
            assert!(decoder.table.size() <= 200);
            if result.is_err() {
                break;
            }
        }
    }
}
