//! Logs of each format as a server gets them: in order, at their times.

use std::collections::BTreeMap;

use crate::common::{Place, array, counts, load, no_errors, serve_tcp};

/// Requests in each second of the log.
const SECONDS: [u64; 3] = [40, 160, 40];
const POST: &str =
    "method POST: --replay-methods POST sends it, without its body, which no log has";

/// A line of a request at a time, ms since 10:00:00.
fn line(format: &str, ms: u64, request: &str) -> String {
    let clf = format!("27/Nov/2026:10:00:{:02}", ms / 1000);
    let s = |ms: u64| format!("{}.{:03}", 1_795_773_600 + ms / 1000, ms % 1000);
    let words: Vec<&str> = request.split(' ').collect();
    match format {
        "common" => format!("::1 - - [{clf} +0000] \"{request}\" 200 5"),
        "combined" => format!("::1 - - [{clf} +0000] \"{request}\" 200 5 \"-\" \"curl/8\""),
        // Written when the request ended.
        "json" => format!(
            "{{\"msec\": \"{}\", \"request\": \"{request}\", \"status\": \"200\", \
             \"request_time\": \"0.250\"}}",
            s(ms + 250)
        ),
        "caddy" => format!(
            "{{\"ts\": {}, \"request\": {{\"method\": \"{}\", \"uri\": \"{}\"}}, \"duration\": \
             0.25, \"status\": 200}}",
            s(ms + 250),
            words[0],
            words[1]
        ),
        _ => format!(
            "lb haproxy[12]: 10.0.0.1:5000 [{clf}.{:03}] web app/s1 0/0/1/2/3 200 5 - - ---- \
             1/1/1/1/0 0/0 \"{request}\"",
            ms % 1000
        ),
    }
}

#[test]
fn logs_of_each_format_are_replayed_in_order_and_what_is_left_out_is_counted() {
    let place = Place::new();
    for format in ["combined", "common", "json", "caddy", "haproxy"] {
        let (address, talk) = serve_tcp(|_| (200, "hello".to_owned()));
        let (mut log, mut expected) = (String::new(), Vec::new());
        for (second, &count) in SECONDS.iter().enumerate() {
            for at in 0..count {
                let ms = second as u64 * 1000 + at * 1000 / count;
                let path = format!("/n/{second}/{at}");
                log += &(line(format, ms, &format!("GET {path} HTTP/1.1")) + "\n");
                expected.push(format!("GET {path} HTTP/1.1"));
                // Every 20th line of the burst is followed by one that is left out.
                let bad = match at / 20 {
                    _ if second != 1 || at % 20 != 0 => continue,
                    0 | 1 => line(format, ms, "GET /cut HTTP/1.1")
                        .split_once("cut")
                        .map(|(before, _)| before.to_owned()),
                    2 | 3 => Some(line(format, ms, "POST /n HTTP/1.1")),
                    4 => Some(line(format, ms, "GET http://other.test/ HTTP/1.1")),
                    5 => Some(line(format, ms, "CONNECT other.test:443 HTTP/1.1")),
                    _ => Some("kernel: something else".to_owned()),
                };
                log += &(bad.unwrap() + "\n");
            }
        }
        place.write("access.log", &log);
        let url = format!("http://{address}/");
        let more = "--replay access.log --speed 2 -c 1 --interval 500ms";
        let (done, document) = load(&place, &url, more);
        no_errors(&document);
        assert_eq!(document["requests"], 240, "{format}");
        // Each distinct request is checked before the load.
        let lines = talk.lines();
        assert!(lines.len() >= expected.len(), "{format}: {}", lines.len());
        assert_eq!(lines[lines.len() - expected.len()..], expected, "{format}");
        // A request that a busy client sends late falls into the next row.
        let mut rows = array(&document["rows"]).clone();
        rows.retain(|row| row["duration_s"] == 0.5);
        for (due, expected) in counts(&rows, "due").iter().zip(SECONDS) {
            assert!(due.abs_diff(expected) <= 10, "{format}: {due}, {expected}");
        }
        let left_out: BTreeMap<String, u64> =
            serde_json::from_value(document["log_lines_left_out"].clone())
                .map(|pairs: Vec<(String, u64)>| pairs.into_iter().collect())
                .unwrap();
        let wanted = [
            ("cut off before its end", 2),
            (POST, 2),
            ("an absolute URL of another host", 1),
            ("method CONNECT, which opens a tunnel", 1),
            ("not in the log's format", 2),
        ];
        let wanted = wanted.map(|(why, count)| (why.to_owned(), count));
        assert_eq!(left_out, BTreeMap::from(wanted), "{format}");
        done.says(&["2 lines are left out: cut off before its end"]);
    }
}
