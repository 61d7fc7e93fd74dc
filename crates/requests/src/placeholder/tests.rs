use proptest::prelude::*;
use readings::requests::{Feed, FeedOrder, Fill, Piece, Template};

use super::*;

fn feeds() -> Vec<Feed> {
    vec![Feed {
        name: "user".into(),
        columns: vec!["id".into(), "first name".into()],
        rows: vec![vec!["1".into(), "A".into()]],
        order: FeedOrder::InTurn,
    }]
}

fn read(text: &str, part: Part) -> Result<Template, Vec<Fault>> {
    let feeds = feeds();
    let captured = ["token".to_owned(), "later".to_owned()];
    let names = Names {
        feeds: &feeds,
        captured: &captured,
        known: 1,
    };
    parse(text, names, part)
}

fn fills(text: &str) -> Vec<Fill> {
    let template = read(text, Part::Text).unwrap();
    let fill = |piece| match piece {
        Piece::Place { fill, .. } => Some(fill),
        Piece::Text(_) => None,
    };
    template.0.into_iter().filter_map(fill).collect()
}

fn fault(text: &str) -> (String, String) {
    let faults = read(text, Part::Text).unwrap_err();
    assert_eq!(faults.len(), 1, "{text}: {faults:?}");
    let one = &faults[0];
    let said = format!("{} {}", one.message, one.help.clone().unwrap_or_default());
    (text[one.at.clone()].to_owned(), said)
}

#[test]
fn every_kind_of_placeholder_is_read() {
    let text = "{{ user.id }}{{user.first name}}{{ seq }}{{ uuid }}{{ int(-1, 1000) }}\
                {{ zipf(10000, 1.1) }}{{ hex(16) }}{{ now }}{{ token }}";
    assert_eq!(
        fills(text),
        [
            Fill::Column { feed: 0, column: 0 },
            Fill::Column { feed: 0, column: 1 },
            Fill::Seq,
            Fill::Uuid,
            Fill::Int { from: -1, to: 1000 },
            Fill::Zipf {
                keys: 10_000,
                exponent: 1.1
            },
            Fill::Hex { digits: 16 },
            Fill::Now,
            Fill::Captured { name: 0 },
        ]
    );
}

#[test]
fn braces_are_text_where_they_open_no_placeholder() {
    for (text, read_as) in [
        (r#"{"a": {"b": 1}}"#, r#"{"a": {"b": 1}}"#),
        (r#"a{{ "{{" }}b}}"#, "a{{b}}"),
        (r#"{{ "}}" }}"#, "}}"),
        ("", ""),
    ] {
        let template = read(text, Part::Text).unwrap();
        assert_eq!(template.as_fixed(), Some(read_as.as_bytes()), "{text}");
    }
}

#[test]
fn a_path_is_encoded_and_has_no_fragment() {
    let template = read("/{é}?q={é}&id={{ user.id }}&x=\"#{{ seq }}", Part::Path).unwrap();
    assert_eq!(
        template.0,
        [
            Piece::Text(b"/%7B%C3%A9%7D?q={%C3%A9}&id=".to_vec()),
            Piece::Place {
                fill: Fill::Column { feed: 0, column: 0 },
                is_encoded: true
            },
            Piece::Text(b"&x=%22".to_vec()),
        ]
    );
}

#[test]
fn mistakes_say_where_they_are_and_what_was_meant() {
    for (text, at, parts) in [
        ("a {{ usr.id }}", "usr", vec!["no feed `usr`", "`user`"]),
        ("{{ user.ids }}", "ids", vec!["no column `ids`", "`id`"]),
        ("{{ user }}", "user", vec!["is a feed", "{{ user.id }}"]),
        ("{{ uid }}", "uid", vec!["unknown name `uid`", "`uuid`"]),
        ("{{ tokn }}", "tokn", vec!["unknown name", "`token`"]),
        (
            "{{ later }}",
            "later",
            vec!["used before it is captured", "order of the file"],
        ),
        ("x {{ seq", "{{", vec!["not closed", "close it"]),
        ("{{ }}", "{{ }}", vec!["empty placeholder", "`user.id`"]),
        ("{{ int(5, 1) }}", "int(5, 1)", vec!["from 5 to 1"]),
        ("{{ int(1) }}", "int(1)", vec!["has 1 argument"]),
        ("{{ int }}", "int", vec!["needs arguments"]),
        ("{{ int(a, b) }}", "int(a, b)", vec!["two whole numbers"]),
        ("{{ zipf(0, 1) }}", "zipf(0, 1)", vec!["number of keys"]),
        ("{{ zipf(9, nan) }}", "zipf(9, nan)", vec!["an exponent"]),
        ("{{ hex(0) }}", "hex(0)", vec!["from 1 to 65536"]),
        ("{{ seq() }}", "seq()", vec!["takes no arguments"]),
        ("{{ hexa(1) }}", "hexa", vec!["no function", "`hex(16)`"]),
        ("{{ \"a }}", "{{", vec!["not closed"]),
    ] {
        let (found, said) = fault(text);
        assert_eq!(found, at, "{text}: {said}");
        for part in parts {
            assert!(said.contains(part), "{text}: no {part:?} in {said:?}");
        }
    }
    let both = read("{{ a }} {{ seq {{ b }}", Part::Text).unwrap_err();
    assert_eq!(both.len(), 3);
}

fn any_piece() -> impl Strategy<Value = Piece> {
    let fill = prop_oneof![
        Just(Fill::Column { feed: 0, column: 1 }),
        Just(Fill::Seq),
        (-9i64..9, 9i64..20).prop_map(|(from, to)| Fill::Int { from, to }),
        (1u64..99, 0.0..9.0).prop_map(|(keys, exponent)| Fill::Zipf { keys, exponent }),
        Just(Fill::Captured { name: 0 }),
    ];
    let place = fill.prop_map(|fill| Piece::Place {
        fill,
        is_encoded: false,
    });
    prop_oneof![
        "[a{}\" é]{1,6}".prop_map(|text| Piece::Text(text.into_bytes())),
        place
    ]
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "([{}\"a.(), é]|user|\\{\\{|\\}\\}){0,20}") {
        for part in [Part::Path, Part::Text] {
            if let Err(faults) = read(&text, part) {
                for fault in faults {
                    prop_assert!(text.get(fault.at).is_some());
                }
            }
        }
    }

    #[test]
    fn a_template_that_is_written_is_read_as_the_same(pieces in prop::collection::vec(any_piece(), 0..8)) {
        let mut joined: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (joined.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(more)) => before.extend(more),
                (_, piece) => joined.push(piece),
            }
        }
        let template = Template(joined);
        let feeds = feeds();
        let captured = ["token".to_owned(), "later".to_owned()];
        let names = Names { feeds: &feeds, captured: &captured, known: 1 };
        let text = written(&template, names).unwrap();
        prop_assert_eq!(read(&text, Part::Text), Ok(template), "{}", text);
    }
}
