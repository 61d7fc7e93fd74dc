//! Rows whose outcomes differ between versions of HTTP, or between balancer and load, each with the
//! reason.

use super::Fate::{self, Passes, Refused, Reset, Unsaid};
use super::{requests, responses, streams};

/// Rows that differ for one reason.
pub(super) struct Difference {
    pub reason: &'static str,
    pub rows: Vec<&'static str>,
}

/// A row of requests: its name, its outcomes, its section.
type Request = (&'static str, Fate, Fate, &'static str);

fn of_requests() -> impl Iterator<Item = Request> {
    let rows = [
        &requests::METHODS[..],
        &requests::TARGETS,
        &requests::VERSIONS,
        &requests::HOSTS,
        &requests::FIELDS,
    ];
    let framings = requests::FRAMINGS
        .iter()
        .map(|row| (row.what, row.h1, row.h2, row.section));
    rows.into_iter()
        .flatten()
        .map(|row| (row.what, row.h1, row.h2, row.section))
        .chain(framings)
}

fn reason((what, h1, h2, section): Request) -> Option<&'static str> {
    match (h1, h2) {
        (Refused([400]), Reset) => Some(
            "A malformed request is 400 over HTTP/1.1, and a reset of its stream over HTTP/2 (RFC \
             9113, 8.1.1)",
        ),
        (Refused([413]), Reset) => Some(
            "A length that no content can have is too large over HTTP/1.1, and malformed over HTTP/2, \
             where the frames give the length (RFC 9113, 8.1.1)",
        ),
        (Passes, Reset) if what.starts_with("absolute form") => {
            Some("`:path` is no URL (RFC 9113, 8.3.1)")
        }
        (Passes, Reset) if what == "chunks" => {
            Some("HTTP/2 has no transfer coding (RFC 9113, 8.1)")
        }
        (Passes, Reset) if section.contains("8.2.1") => {
            Some("Blanks around a value belong to HTTP/1.1's lines (RFC 9113, 8.2.1)")
        }
        (Passes, Reset) if section.contains("8.2.2") => Some(
            "Fields about a connection do not exist in HTTP/2; HTTP/1.1 takes them off (RFC 9113, 8.2.2)",
        ),
        _ => None,
    }
}

/// Where an answer over HTTP/1.1 and one over HTTP/2 with the same fault have other outcomes: the rows
/// of both.
const OF_ANSWERS: [(&str, &[&str], &[&str]); 5] = [
    (
        "The length is not what ends an answer over HTTP/2, so that two equal ones are refused where \
         they are read, which RFC 9110, 8.6, leaves open",
        &["same length twice"],
        &["same length twice"],
    ),
    (
        "Bytes behind the length are no part of an answer over HTTP/1.1, and make it malformed over \
         HTTP/2 (RFC 9113, 8.1.1)",
        &["more than the length"],
        &["more content than its length"],
    ),
    (
        "Fields about a connection do not exist in HTTP/2; HTTP/1.1 takes them off (RFC 9113, 8.2.2)",
        &[
            "Connection: close",
            "Connection: keep-alive",
            "Keep-Alive",
            "Upgrade",
            "chunks",
        ],
        &["connection", "keep-alive", "upgrade", "transfer-encoding"],
    ),
    (
        "HTTP/2 has no 101 (RFC 9113, 8.6); a load over HTTP/1.1 counts it as a wrong status",
        &["101 that was not asked for"],
        &["101", "101 first"],
    ),
    (
        "The balancer takes the blank off, as RFC 9112, 5.1, asks of proxies; over HTTP/2 the field is \
         malformed (RFC 9113, 8.2.1)",
        &["blank before the colon"],
        &["blank behind a name"],
    ),
];

/// Where the balancer takes an answer that a load refuses, or the reverse.
const OF_LOADS: [(&str, &[&str]); 7] = [
    (
        "A load may accept what it does not pass on (RFC 9112, 2.2 and 5.2)",
        &["line that ends with LF alone", "folded line"],
    ),
    (
        "A proxy takes the blank off (RFC 9112, 5.1); for a client the field has no valid name",
        &["blank before the colon"],
    ),
    (
        "The balancer closes the connection behind what it passes on; a load shows that the server is \
         wrong",
        &[
            "more than the length",
            "second answer",
            "more than the chunks",
            "more than length 0",
        ],
    ),
    (
        "A load counts it as a status that was not expected",
        &["101 that was not asked for"],
    ),
    (
        "RFC 9110, 8.6, leaves it open over HTTP/2; the balancer takes no doubled length into a request \
         or an answer",
        &["same length twice"],
    ),
    (
        "The balancer has passed on all of the length when the connection ends; a load waits for \
         END_STREAM",
        &["end of the connection before the last frame"],
    ),
    (
        "The client of the balancer may try again, which 503 says; a load has tried again 5 times",
        &[
            "reset before the head: REFUSED_STREAM",
            "GOAWAY that does not serve it",
        ],
    ),
];

pub(super) fn of_protocols() -> Vec<Difference> {
    let mut all: Vec<Difference> = Vec::new();
    for row in of_requests() {
        let Some(reason) = reason(row) else { continue };
        match all.iter_mut().find(|one| one.reason == reason) {
            Some(one) => one.rows.push(row.0),
            None => all.push(Difference {
                reason,
                rows: vec![row.0],
            }),
        }
    }
    all
}

/// Reasons, with rows over HTTP/1.1 and over HTTP/2.
pub(super) fn of_answers() -> [(
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
); 5] {
    OF_ANSWERS
}

pub(super) fn of_loads() -> [(&'static str, &'static [&'static str]); 7] {
    OF_LOADS
}

/// Rows of answers: names, outcomes of the balancer and of a load.
pub(super) fn answers_over_h1() -> Vec<(&'static str, Fate, Fate)> {
    let rows = responses::LINES.iter().chain(&responses::FIELDS);
    let framings = responses::FRAMINGS
        .iter()
        .map(|row| (row.what, row.balancer, row.load));
    rows.map(|row| (row.what, row.balancer, row.load))
        .chain(framings)
        .collect()
}

pub(super) fn answers_over_h2() -> Vec<(&'static str, Fate, Fate)> {
    let heads = streams::HEADS
        .iter()
        .map(|row| (row.what, row.balancer, row.load));
    let fields = streams::FIELDS
        .iter()
        .map(|row| (row.what, row.balancer, row.load));
    let framings = streams::framings().map(|row| (row.what, row.balancer, row.load));
    heads.chain(fields).chain(framings).collect()
}

/// Differences without a reason, and reasons without a difference.
pub fn unexplained() -> Vec<String> {
    let mut all = Vec::new();
    for row in of_requests() {
        let (what, h1, h2, _) = row;
        let differs = h1 != h2 && h1 != Unsaid && h2 != Unsaid;
        if differs != reason(row).is_some() {
            all.push(format!("request, {what}: {h1:?}, {h2:?}"));
        }
    }
    let (h1, h2) = (answers_over_h1(), answers_over_h2());
    for (what, balancer, load) in &h1 {
        let other = h2.iter().find(|row| row.0.eq_ignore_ascii_case(what));
        let is_known = OF_ANSWERS.iter().any(|one| one.1.contains(what));
        if other.is_some_and(|other| (other.1, other.2) != (*balancer, *load)) && !is_known {
            all.push(format!("answer, {what}: {balancer:?}, {load:?}, {other:?}"));
        }
    }
    for (reason, over_h1, over_h2) in OF_ANSWERS {
        let has = |rows: &[(&str, Fate, Fate)], names: &[&str]| {
            names
                .iter()
                .all(|name| rows.iter().any(|row| row.0 == *name))
        };
        if !has(&h1, over_h1) || !has(&h2, over_h2) {
            all.push(format!("no such rows: {reason}"));
        }
    }
    let counts = |fate: Fate| match fate {
        Passes | Fate::Status => fate,
        _ => Fate::Bad,
    };
    for rows in [&h1, &h2] {
        for (what, balancer, load) in rows {
            let is_known = OF_LOADS.iter().any(|one| one.1.contains(what));
            let is_refused = matches!(balancer, Refused(_));
            if (counts(*balancer) != counts(*load) || is_refused) && !is_known {
                all.push(format!("load, {what}: {balancer:?}, {load:?}"));
            }
        }
    }
    for (reason, names) in OF_LOADS {
        let has = |name: &&str| {
            h1.iter()
                .chain(&h2)
                .any(|row| row.0 == *name && row.1 != row.2)
        };
        if !names.iter().all(has) {
            all.push(format!("no such rows: {reason}"));
        }
    }
    all
}
