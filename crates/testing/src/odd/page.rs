//! The rows as a page of the documentation.

use std::fmt::Write as _;

use super::{Fate, requests, responses};

const BEGINNING: &str = "\
# Odd messages

What do `weigh balance` and `weigh load` do with ambiguous and unusual HTTP messages, and which \
section of an RFC says so? A test sends every row, and pairs of rows, over both event loops, over \
HTTP/1.1 and HTTP/2, and holds the outcomes against this page.

- **passes**: forwarded with the same meaning; a load counts a good answer.
- **400** and the like: the balancer's answer. No back end gets the request as a whole.
- **reset**: the stream is reset with `PROTOCOL_ERROR` (RFC 9113, 8.1.1).
- **502**: the client of the balancer gets 502 (RFC 9110, 15.6.3), the load counts `read`.
- **cut**: the client gets 502, or what has come so far and then a reset (RFC 9112, 8). A load counts \
`read`.

Where the balancer and a load differ, the RFC leaves the choice, or asks proxies and clients for \
different things.
";

fn fate(fate: Fate) -> String {
    match fate {
        Fate::Passes => "passes".into(),
        Fate::Refused(statuses) => {
            let words: Vec<String> = statuses.iter().map(u16::to_string).collect();
            words.join(" or ")
        }
        Fate::Reset => "reset".into(),
        Fate::Bad => "502".into(),
        Fate::Broken => "cut".into(),
        Fate::Status => "`status`".into(),
        Fate::Unsaid => "–".into(),
    }
}

fn of_load(one: Fate) -> String {
    match one {
        Fate::Bad | Fate::Broken => "`read`".into(),
        other => fate(other),
    }
}

/// The whole page.
pub fn page() -> String {
    let mut page = BEGINNING.to_owned();
    // Writing to a string cannot fail.
    let out = &mut page;
    let _ = writeln!(out, "\n## Requests to the balancer");
    let _ = writeln!(
        out,
        "\n`–` means that this version of HTTP has no such message."
    );
    let parts = [
        ("method", &requests::METHODS[..]),
        ("target", &requests::TARGETS),
        ("version", &requests::VERSIONS),
        ("Host (HTTP/2: `:authority`)", &requests::HOSTS),
        ("fields", &requests::FIELDS),
    ];
    for (name, rows) in parts {
        let _ = writeln!(out, "\n| {name} | HTTP/1.1 | HTTP/2 | |\n|---|---|---|---|");
        for row in rows {
            let (h1, h2) = (fate(row.h1), fate(row.h2));
            let what = cell(row.what);
            let _ = writeln!(out, "| {what} | {h1} | {h2} | {} |", row.section);
        }
    }
    let _ = writeln!(
        out,
        "\n| content | HTTP/1.1 | HTTP/2 | |\n|---|---|---|---|"
    );
    for row in requests::FRAMINGS.iter().chain(&requests::STREAM_FRAMINGS) {
        let (h1, h2) = (fate(row.h1), fate(row.h2));
        let what = cell(row.what);
        let _ = writeln!(out, "| {what} | {h1} | {h2} | {} |", row.section);
    }
    let _ = writeln!(
        out,
        "\nIn HTTP/1.0, `Host` may be missing (RFC 9112, 3.2), any transfer coding is 400 (RFC 9112, \
         6.1), and POST and PUT without a length are 411 (RFC 1945, 8.3). `*` is good for OPTIONS (RFC \
         9112, 3.2.4). OPTIONS and TRACE with `Max-Forwards: 0` are answered by the balancer, with 200 \
         and 501; a larger number is decremented (RFC 9110, 7.6.2)."
    );
    let _ = writeln!(out, "\n## Answers of servers");
    for (name, rows) in [
        ("status line", &responses::LINES[..]),
        ("fields", &responses::FIELDS),
    ] {
        let _ = writeln!(out, "\n| {name} | balancer | load | |\n|---|---|---|---|");
        for row in rows {
            let (balancer, load) = (fate(row.balancer), of_load(row.load));
            let _ = writeln!(
                out,
                "| {} | {balancer} | {load} | {} |",
                row.what, row.section
            );
        }
    }
    let _ = writeln!(out, "\n| content | balancer | load | |\n|---|---|---|---|");
    for row in &responses::FRAMINGS {
        let (balancer, load) = (fate(row.balancer), of_load(row.load));
        let _ = writeln!(
            out,
            "| {} | {balancer} | {load} | {} |",
            row.what, row.section
        );
    }
    let _ = writeln!(
        out,
        "\nAnswers to HEAD, and 204 and 304, end with their head, whatever their framing fields say \
         (RFC 9112, 6.3); a load counts bytes behind them as `read`. The balancer drops framing fields \
         that are malformed or contradict each other, and all of them from 1xx and 204. A chunked \
         HTTP/1.0 answer is 502 in the balancer, and good in a load, which closes the connection (RFC \
         9112, 6.1)."
    );
    page
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
