//! The rows as a page of the documentation.

use std::fmt::Write as _;

use super::{Fate, closings, differences, requests, responses, streams, unasked};

const BEGINNING: &str = "\
# Odd messages

What do `weigh balance` and `weigh load` do with ambiguous and unusual HTTP messages, and which \
section of an RFC says so? Tests send every row, and pairs of rows, over both event loops, over \
HTTP/1.1 and HTTP/2, and hold the outcomes against this page.

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
    closings_of_clients(out);
    answers_over_h1(out);
    answers_over_h2(out);
    differences(out);
    unasked_statuses(out);
    cases(out);
    page
}

fn closings_of_clients(out: &mut String) {
    let _ = writeln!(
        out,
        "\nA request that is not whole when its client ends reaches no back end as a whole. The client \
         gets 4xx or the end of the connection (RFC 9112, 8), over HTTP/2 nothing.\n\n| moment of \
         closing | HTTP/1.1 | HTTP/2 | |\n|---|---|---|---|"
    );
    for row in &closings::CLOSINGS {
        let cell = |has: bool| if has { "not passed" } else { "–" };
        let (h1, h2) = (cell(row.h1.is_some()), cell(row.h2.is_some()));
        let _ = writeln!(out, "| {} | {h1} | {h2} | {} |", row.what, row.section);
    }
}

/// A table of answers.
fn answers(
    out: &mut String,
    name: &str,
    rows: impl Iterator<Item = (&'static str, Fate, Fate, &'static str)>,
) {
    let _ = writeln!(out, "\n| {name} | balancer | load | |\n|---|---|---|---|");
    for (what, balancer, load, section) in rows {
        let (balancer, load) = (fate(balancer), of_load(load));
        let _ = writeln!(out, "| {what} | {balancer} | {load} | {section} |");
    }
}

fn answers_over_h1(out: &mut String) {
    let _ = writeln!(out, "\n## Answers of servers over HTTP/1.1");
    let rows = |rows: &'static [responses::Row]| {
        rows.iter()
            .map(|row| (row.what, row.balancer, row.load, row.section))
    };
    answers(out, "status line", rows(&responses::LINES));
    answers(out, "fields", rows(&responses::FIELDS));
    let framings = responses::FRAMINGS
        .iter()
        .map(|row| (row.what, row.balancer, row.load, row.section));
    answers(out, "content, and moment of closing", framings);
    let _ = writeln!(
        out,
        "\nAnswers to HEAD, and 204 and 304, end with their head, whatever their framing fields say \
         (RFC 9112, 6.3); a load counts bytes behind them as `read`. The balancer drops framing fields \
         that are malformed or contradict each other, and all of them from 1xx and 204. A chunked \
         HTTP/1.0 answer is 502 in the balancer, and good in a load, which closes the connection (RFC \
         9112, 6.1). A plain answer is cut at every byte, too."
    );
}

fn answers_over_h2(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Answers of servers over HTTP/2\n\nA fault of an answer ends its stream, one of its \
         frames the connection (RFC 9113, 5.4 and 8.1.1). What a server \
         has not processed is sent again, by the balancer twice, by a load 5 times."
    );
    let heads = streams::HEADS.iter();
    let heads = heads.map(|row| (row.what, row.balancer, row.load, row.section));
    answers(out, "status, and interim answers", heads);
    let fields = streams::FIELDS.iter();
    let fields = fields.map(|row| (row.what, row.balancer, row.load, row.section));
    answers(out, "fields", fields);
    for (name, rows) in [
        ("length", &streams::LENGTHS[..]),
        ("frames", &streams::FRAMES),
        ("moment of closing", &streams::CLOSINGS),
    ] {
        let rows = rows
            .iter()
            .map(|row| (row.what, row.balancer, row.load, row.section));
        answers(out, name, rows);
    }
    let _ = writeln!(
        out,
        "\nAnswers to HEAD, and 204 and 304, may have any length (RFC 9113, 8.1.1); the balancer refuses \
         one that is malformed. A plain answer is cut at every byte, too."
    );
}

fn names(rows: &[&str]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| cell(row)).collect();
    rows.join("; ")
}

fn differences(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Differences\n\nThe two event loops do not differ: each case has one outcome for both. \
         Versions of HTTP differ for these reasons, and no row without one:\n\n| requests | reason \
         |\n|---|---|"
    );
    for one in differences::of_protocols() {
        let _ = writeln!(out, "| {} | {} |", names(&one.rows), one.reason);
    }
    let _ = writeln!(
        out,
        "\n| answers over HTTP/1.1 | over HTTP/2 | reason |\n|---|---|---|"
    );
    for (reason, h1, h2) in differences::of_answers() {
        let _ = writeln!(out, "| {} | {} | {reason} |", names(h1), names(h2));
    }
    let _ = writeln!(
        out,
        "\nThe balancer and a load differ for these:\n\n| answers | reason |\n|---|---|"
    );
    for (reason, rows) in differences::of_loads() {
        let _ = writeln!(out, "| {} | {reason} |", names(rows));
    }
}

fn unasked_statuses(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Statuses that no RFC asks for\n\nAll other 4xx and 5xx on this page are asked for by the \
         section in their row, or answer a message that its grammar does not have.\n\n| message | \
         status | why |\n|---|---|---|"
    );
    for one in unasked::UNASKED {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            names(one.rows),
            one.status,
            one.why
        );
    }
    for (what, status, why) in unasked::BESIDE {
        let _ = writeln!(out, "| {what} | {status} | {why} |");
    }
}

fn cases(out: &mut String) {
    let requests = requests::all(1);
    let said = |is_h2: bool| {
        let said = requests.iter().filter(|one| one.faults(is_h2).is_some());
        said.count()
    };
    let (h1, h2) = (said(false), said(true));
    let of_h1 = responses::all(1, 1).len();
    let of_h2 = streams::all(1, 1).len();
    let _ = writeln!(
        out,
        "\n## Cases\n\nEach over both event loops: {h1} requests over HTTP/1.1 and {h2} over HTTP/2; \
         {of_h1} answers over HTTP/1.1 and {of_h2} over HTTP/2, each to clients of HTTP/1.0, HTTP/1.1 and \
         HTTP/2 of the balancer, and to a load. That is every row and every pair of rows, which \
         `WEIGH_FUZZ_S=1` sends; otherwise the tests take every row and a part of the pairs."
    );
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
