use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use readings::requests::{AnswerSpec, Capture, CaptureFrom, Fill, Piece, RequestSpec, Template};
use serde_json::json;

use super::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/file/fixtures");

fn of(text: &str) -> Result<RequestSet, Mistakes> {
    read("requests.toml", text, Path::new(FOLDER), Vec::new())
}

/// Line, message and help of each mistake.
fn wrong(text: &str) -> Vec<(usize, String)> {
    let mistakes = of(text).unwrap_err();
    let said = |one: &config::Mistake| {
        let line = one.line().map_or(0, |(_, line)| line);
        let help = one.help_text().unwrap_or_default();
        (line, format!("{} {help}", one.message()))
    };
    mistakes.all().iter().map(said).collect()
}

const SESSION: &str = include_str!("fixtures/session.toml");

#[test]
fn a_session_is_read_with_its_feeds() {
    let set = of(SESSION).unwrap();
    assert_eq!(
        set.users,
        Some(Users {
            keeps_cookies: true
        })
    );
    assert_eq!(set.captured, ["token"]);
    assert_eq!(set.feeds.len(), 2);
    assert_eq!(set.feeds[0].rows.len(), 2);
    assert_eq!(set.feeds[1].order, FeedOrder::Random);
    let login = &set.requests[0];
    assert_eq!((login.name.as_str(), login.is_once), ("login", true));
    assert_eq!(
        login.expect,
        AnswerSpec {
            status: Some(201),
            contains: Some("x".into()),
            length: Some(3),
            sha256: None,
            json: vec![("/ok".into(), json!(true))],
            fields: vec![("etag".into(), "x".into())],
        }
    );
    let from = CaptureFrom::Json("/token".into());
    assert_eq!(login.captures, [Capture { name: 0, from }]);
    let second = &set.requests[1];
    assert_eq!(second.name, "GET /");
    assert_eq!(second.pause, Duration::from_millis(1500));
    assert_eq!(
        second.fields[0].1.0[1],
        Piece::Place {
            fill: Fill::Captured { name: 0 },
            is_encoded: false
        }
    );
    assert_eq!(
        second.body.as_ref().unwrap().0[1],
        Piece::Place {
            fill: Fill::Column { feed: 0, column: 0 },
            is_encoded: false
        }
    );
}

#[test]
fn a_given_feed_takes_the_place_of_the_files_own() {
    let own = Feed {
        name: "user".into(),
        columns: vec!["name".into()],
        rows: vec![vec!["X".into()]],
        order: FeedOrder::Once,
    };
    let text = "[feeds]\nuser = \"absent.csv\"\n[[request]]\npath = \"/{{ user.name }}\"\n";
    let set = read("x", text, Path::new(FOLDER), vec![own.clone()]).unwrap();
    assert_eq!(set.feeds, [own]);
}

#[test]
fn json_lines_say_the_same_as_toml() {
    let toml = "order = \"in_turn\"\n[[request]]\npath = \"/a\"\nexpect = { status = 404 }\n\
                [[request]]\npath = \"/b\"\nmethod = \"PUT\"\nbody = \"{{ seq }}\"\n";
    let lines = "{\"order\": \"in_turn\"}\n{\"path\": \"/a\", \"expect\": {\"status\": 404}}\n\n\
                 {\"path\": \"/b\", \"method\": \"PUT\", \"body\": \"{{ seq }}\", \"name\": null}\n";
    let lines = read_lines("x.jsonl", lines, Path::new(""), Vec::new()).unwrap();
    assert_eq!(lines, of(toml).unwrap());
    let wrong = "{\"path\": \"/a\"}\n{\"path\": \"/{{ sek }}\"}\n{\"paht\": 1}\n[]\n";
    let wrong = read_lines("x.jsonl", wrong, Path::new(""), Vec::new()).unwrap_err();
    assert!(wrong.to_string().contains("line"), "{wrong}");
}

/// The text, line and part of what is said of each mistake are in `fixtures/mistakes.json`.
#[test]
fn mistakes_show_their_lines() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("fixtures/mistakes.json")).unwrap();
    let request = "[[request]]\npath = \"/\"\n";
    let users = format!("[users]\n{request}");
    for (name, before) in [("whole", ""), ("request", request), ("users", &users)] {
        for case in cases[name].as_array().unwrap() {
            let text = format!("{before}{}\n", case[0].as_str().unwrap());
            let found = wrong(&text);
            // What a label says stands in the mistake's picture, not in its message.
            let shown = format!("{:?}", of(&text).unwrap_err().all());
            let part = case[2].as_str().unwrap();
            let is_said = |said: &str| said.contains(part) || shown.contains(part);
            let at = |line: usize| case[1] == line;
            assert!(
                found.iter().any(|(line, said)| at(*line) && is_said(said)),
                "{text}: no {case} in {found:?}"
            );
        }
    }
}

#[test]
fn a_placeholder_in_an_escaped_string_is_shown_where_it_stands() {
    let text = "[[request]]\npath = \"/\"\nbody = \"\\\"{{ seq }}\\\" {{ sek }}\"\n";
    let mistakes = of(text).unwrap_err();
    let label = miette::Diagnostic::labels(&mistakes)
        .unwrap()
        .next()
        .unwrap();
    let at = label.offset()..label.offset() + label.len();
    assert_eq!(&text[at], "sek");
}

fn any_text() -> impl Strategy<Value = String> {
    "[a-c{}\"'\\\\ é\u{7f}\n\t]{0,8}"
}

fn any_request() -> impl Strategy<Value = RequestSpec> {
    let expect = (
        prop::option::of(100u16..999),
        prop::option::of(any_text()),
        prop::option::of(0u64..99),
        any_text(),
    );
    (
        any_text(),
        "/[a-z{}?é]{0,9}",
        any_text(),
        prop::option::of(any_text()),
        expect,
        0u64..3,
    )
        .prop_map(|(name, path, value, body, expect, pause)| {
            let (status, contains, length, text) = expect;
            let names = Names::default();
            let path = placeholder::braces_escaped(&path);
            RequestSpec {
                name,
                path: placeholder::parse(&path, names, placeholder::Part::Path).unwrap(),
                fields: vec![("X-A".into(), Template::fixed(value.replace('\n', "")))],
                body: body.map(Template::fixed),
                expect: AnswerSpec {
                    status,
                    contains,
                    length,
                    sha256: None,
                    json: vec![("/a/b".into(), json!({"x": [1, text, true]}))],
                    fields: Vec::new(),
                },
                pause: Duration::from_millis(pause * 700),
                is_once: pause == 1,
                ..RequestSpec::default()
            }
        })
}

use crate::placeholder::{self, Names};

/// Empty text has no pieces where it is read.
fn normal(template: &mut Template) {
    template.0.retain(|piece| *piece != Piece::Text(Vec::new()));
}

proptest! {
    #[test]
    fn a_file_that_is_written_is_read_as_the_same(requests in prop::collection::vec(any_request(), 1..4)) {
        let mut set = RequestSet {
            requests,
            in_order: true,
            users: Some(Users { keeps_cookies: true }),
            ..RequestSet::default()
        };
        for (number, request) in set.requests.iter_mut().enumerate() {
            request.name.push_str(&number.to_string());
            request.fields.iter_mut().for_each(|(_, value)| normal(value));
            request.body.iter_mut().for_each(normal);
        }
        let text = write(&set).unwrap();
        let read = of(&text);
        prop_assert!(read.is_ok(), "{text}\n{:?}", read.err());
        prop_assert_eq!(read.unwrap(), set, "{}", text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(\\[\\[request\\]\\]\n|path = |\"/\"|\n|\\{\\{|seq|\\}\\}|[a-z={}\"é ]|body = '''|expect = ){0,30}") {
        let _ = of(&text);
        let _ = read_lines("x", &text, Path::new(FOLDER), Vec::new());
    }
}
