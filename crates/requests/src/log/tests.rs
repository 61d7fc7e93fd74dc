use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use readings::requests::Replay;

use super::*;

const MS: u64 = 1_000_000;

fn fixture(name: &str, options: &LogOptions) -> RequestSet {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/log/fixtures");
    open(&Path::new(folder).join(name), options).unwrap()
}

fn replay(set: &RequestSet) -> &Replay {
    set.replay.as_ref().unwrap()
}

/// Due time in ms, and method with path of each request that is sent.
fn sent(set: &RequestSet) -> Vec<(u64, String)> {
    let replay = replay(set);
    let both = replay.due_ns.iter().zip(&replay.requests);
    both.map(|(due, request)| {
        let request = &set.requests[*request as usize];
        let path = request.path.as_fixed().unwrap_or_default();
        let path = String::from_utf8_lossy(path);
        (due / MS, format!("{} {path}", request.method))
    })
    .collect()
}

fn left_out(set: &RequestSet) -> Vec<(&str, u64)> {
    let all = replay(set).left_out.iter();
    all.map(|(why, count)| (why.as_str(), *count)).collect()
}

fn text(lines: &str, options: &LogOptions) -> Result<RequestSet, String> {
    read(lines.as_bytes(), options).map_err(|fault| fault.to_string())
}

fn strings(sent: &[(u64, &str)]) -> Vec<(u64, String)> {
    sent.iter()
        .map(|(due, text)| (*due, (*text).to_owned()))
        .collect()
}

#[test]
fn lines_of_the_combined_format_are_spread_in_their_second() {
    let options = LogOptions {
        host: Some("shop.test".into()),
        ..LogOptions::default()
    };
    let set = fixture("combined.log", &options);
    assert_eq!(
        sent(&set),
        strings(&[
            (0, "GET /shop?id=1"),
            (250, "GET /caf%C3%A9"),
            (500, "HEAD /"),
            (750, "GET /shop?id=1"),
            (3000, "GET /x"),
        ])
    );
    assert_eq!(
        left_out(&set),
        [
            ("an absolute URL of another host", 1),
            ("cut off before its end", 1),
            (
                "method POST: --replay-methods POST sends it, without its body, which no log has",
                1
            ),
            ("no HTTP request in it", 2),
        ]
    );
    let expected: Vec<Option<u16>> = set.requests.iter().map(|one| one.expect.status).collect();
    assert_eq!(expected, [None, None, None, Some(403)]);
}

#[test]
fn speed_methods_and_a_part_of_the_log_are_options() {
    let options = LogOptions {
        speed: 2.0,
        methods: vec!["POST".into()],
        from: Some(Moment::After(Duration::from_secs(1))),
        to: Some("10:00:03".parse().unwrap()),
        host: None,
    };
    let set = fixture("combined.log", &options);
    assert_eq!(sent(&set), strings(&[(0, "POST /login"), (500, "GET /x")]));
}

#[test]
fn the_common_format_is_read() {
    let set = fixture("common.log", &LogOptions::default());
    assert_eq!(sent(&set), strings(&[(0, "GET /a"), (2000, "GET /b")]));
}

#[test]
fn json_lines_begin_before_they_are_written() {
    let set = fixture("nginx.jsonl", &LogOptions::default());
    assert_eq!(
        sent(&set),
        strings(&[(0, "GET /slow"), (750, "GET /fast?a=1")])
    );
    assert_eq!(
        left_out(&set),
        [("cut off before its end", 1), ("no HTTP request in it", 1)]
    );
    let options = LogOptions {
        methods: vec!["DELETE".into()],
        ..LogOptions::default()
    };
    let set = fixture("caddy.jsonl", &options);
    assert_eq!(
        sent(&set),
        strings(&[(0, "GET /a?b=c"), (1500, "DELETE /a")])
    );
}

#[test]
fn haproxys_log_is_sorted_by_the_start_of_requests() {
    let set = fixture("haproxy.log", &LogOptions::default());
    assert_eq!(
        sent(&set),
        strings(&[(0, "GET /early"), (250, "GET /index.html")])
    );
    assert_eq!(
        left_out(&set),
        [("cut off before its end", 1), ("no HTTP request in it", 1)]
    );
}

#[test]
fn a_log_that_cannot_be_replayed_says_why() {
    let options = LogOptions::default();
    let of = |lines: &str| text(lines, &options).unwrap_err();
    assert_eq!(of("\n"), "the log is empty");
    assert!(of("hello\n").contains("no format of an access log fits line 1, `hello`"));
    let posts = "a - - [27/Nov/2026:10:00:00 +0000] \"POST / HTTP/1.1\" 200 5\n";
    assert!(of(posts).contains("no line can be replayed (1: method POST"));
    let gzip = read(&[0x1f, 0x8b, 8, 0][..], &options)
        .unwrap_err()
        .to_string();
    assert!(gzip.contains("zcat"), "{gzip}");
}

#[test]
fn a_long_line_is_cut_and_braces_are_no_placeholders() {
    let line =
        |path: &str| format!("a - - [27/Nov/2026:10:00:00 +0000] \"GET /{path} HTTP/1.1\" 200 5\n");
    let lines = line("{{ seq }}".replace(' ', "%20").as_str())
        + &line(&"x".repeat(100_000))
        + &line("last");
    let set = text(&lines, &LogOptions::default()).unwrap();
    assert_eq!(
        sent(&set),
        strings(&[(0, "GET /%7B%7B%20seq%20%7D%7D"), (500, "GET /last")])
    );
    assert_eq!(left_out(&set), [("cut off before its end", 1)]);
}

proptest! {
    #[test]
    fn no_log_makes_the_reader_panic(lines in "([a-z0-9\"\\[\\]:/ +{}.\\\\\n]|27/Nov/2026:10:00:00|GET / HTTP/1\\.1|\\{\"ts\": ?|\"request\":){0,60}") {
        let _ = text(&lines, &LogOptions::default());
        for format in LogFormat::ALL {
            let _ = format.read(&lines);
        }
    }

    #[test]
    fn due_times_ascend_and_begin_at_zero(seconds in prop::collection::vec(0u64..5, 1..40)) {
        let line = |second: &u64| {
            format!("a - - [27/Nov/2026:10:00:0{second} +0000] \"GET / HTTP/1.1\" 200 5\n")
        };
        let set = text(&seconds.iter().map(line).collect::<String>(), &LogOptions::default()).unwrap();
        let replay = replay(&set);
        prop_assert_eq!(replay.due_ns.len(), seconds.len());
        prop_assert_eq!(replay.due_ns[0], 0);
        prop_assert!(replay.due_ns.is_sorted());
        prop_assert!(replay.due_ns.windows(2).all(|two| two[0] < two[1]));
    }
}

/// A line of the combined format at this time with this request line.
fn combined(time: &str, request: &str) -> String {
    format!("1.2.3.4 - - [{time}] \"{request}\" 200 5 \"-\" \"-\"\n")
}

#[test]
fn bytes_of_a_target_are_sent_as_they_came() {
    let time = "27/Nov/2026:10:00:00 +0000";
    let lines: String = [
        "GET /a#b?c=1 HTTP/1.1",
        r"GET /\xff\x20/\xC3\xA9 HTTP/1.1",
        r"GET /\x22 HTTP/1.1",
    ]
    .map(|request| combined(time, request))
    .concat();
    let mut bytes = lines.into_bytes();
    bytes.extend_from_slice(combined(time, "GET /raw/@ HTTP/1.1").as_bytes());
    let at = bytes.iter().rposition(|byte| *byte == b'@').unwrap();
    bytes[at] = 0xfe;
    let set = read(&bytes[..], &LogOptions::default()).unwrap();
    let paths: Vec<String> = sent(&set).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        paths,
        [
            "GET /a%23b?c=1",
            "GET /%FF%20/%C3%A9",
            "GET /%22",
            "GET /raw/%FE"
        ]
    );
    let line = r#"haproxy[1]: 1.2.3.4:5 [27/Nov/2026:10:00:00.123] in out/a 0/0/0/1/1 200 5 - - ---- 1/1/0/0/0 0/0 "GET /a#23b/#FF HTTP/1.1""#;
    let set = text(line, &LogOptions::default()).unwrap();
    assert_eq!(sent(&set)[0].1, "GET /a%23b/%FF");
}

#[test]
fn methods_that_are_none_are_counted_together() {
    let time = "27/Nov/2026:10:00:00 +0000";
    let mut lines = combined(time, "GET / HTTP/1.1");
    for number in 0..26 * 26 {
        let letter = |number: u8| char::from(b'A' + number);
        let method: String = [letter((number / 26) as u8), letter((number % 26) as u8)]
            .iter()
            .collect();
        lines += &combined(time, &format!("{method} / HTTP/1.1"));
    }
    let set = text(&lines, &LogOptions::default()).unwrap();
    let left_out = left_out(&set);
    assert_eq!((left_out.len(), left_out[0].1), (1, 26 * 26));
    assert!(left_out[0].0.starts_with("another method"));
}

#[test]
fn absurd_times_are_refused() {
    let get = "GET / HTTP/1.1";
    let far =
        combined("27/Nov/2026:10:00:00 +0000", get) + &combined("27/Nov/2036:10:00:00 +0000", get);
    let said = text(&far, &LogOptions::default()).unwrap_err();
    assert!(
        said.contains("lines 1 and 2 are more than 31 days apart"),
        "{said}"
    );
    // Beyond what the clock can say.
    let never = combined("27/Nov/9999:10:00:00 +0000", get);
    assert!(text(&never, &LogOptions::default()).is_err());
    let never = r#"{"ts": 99999999999, "request_method": "GET", "uri": "/"}"#;
    assert!(text(never, &LogOptions::default()).is_err());
    let day: Moment = "23:59".parse().unwrap();
    let options = LogOptions {
        to: Some(day),
        ..LogOptions::default()
    };
    let last = combined("11/Apr/2262:23:47:16 +0000", get);
    assert!(text(&last, &options).is_ok());
}

#[test]
fn a_clock_without_a_zone_may_be_set_back() {
    let line = |time: &str| {
        format!(
            "1.2.3.4:5 [25/Oct/2026:{time}.000] in out/a 0/0/0/1/1 200 5 - - ---- 1/1/0/0/0 0/0 \
             \"GET / HTTP/1.1\"\n"
        )
    };
    let times = ["02:59:58", "02:00:01", "02:00:00", "03:00:01"];
    let log: String = times.map(line).concat();
    let due: Vec<u64> = sent(&text(&log, &LogOptions::default()).unwrap())
        .iter()
        .map(|(due, _)| *due)
        .collect();
    assert_eq!(due, [0, 2_000, 3_000, 3_603_000]);
    let of = |from: &str| LogOptions {
        from: Some(from.parse().unwrap()),
        ..LogOptions::default()
    };
    let said = text(&log, &of("2026-10-25T00:00:00Z")).unwrap_err();
    assert!(said.contains("have no zone"), "{said}");
    assert!(text(&log, &of("2026-10-25T00:00:00")).is_ok());
}
