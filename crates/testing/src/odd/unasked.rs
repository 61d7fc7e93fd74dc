//! Statuses that the balancer answers although no RFC asks for them: it leaves a choice, or says
//! nothing.

use super::{Fate, requests};

pub(super) struct Unasked {
    pub rows: &'static [&'static str],
    pub status: u16,
    pub why: &'static str,
}

#[rustfmt::skip]
pub(super) const UNASKED: [Unasked; 14] = [
    Unasked { rows: &["Content_Length", "Transfer.Encoding"], status: 400, why: "a back end that turns names into variables takes them for the fields that frame a request (RFC 3875, 4.1.18)" },
    Unasked { rows: &["list of lengths", "same length twice"], status: 400, why: "RFC 9110, 8.6, allows to make one length of them; a back end that reads another one would see two requests" },
    Unasked { rows: &["length, then chunks", "chunks, then length"], status: 400, why: "RFC 9112, 6.1, allows it; two framings are how requests are smuggled" },
    Unasked { rows: &["chunked twice", "chunked in two fields"], status: 400, why: "RFC 9112, 6.1, forbids to send it, and says nothing of who receives it" },
    Unasked { rows: &["line that ends with LF alone"], status: 400, why: "RFC 9112, 2.2, allows to accept it; readers differ in where such a line ends" },
    Unasked { rows: &["CR in a line", "NUL in a value", "control character in a value", "DEL in a value"], status: 400, why: "RFC 9110, 5.5, and RFC 9112, 2.2, allow blanks in their place, which would change the message" },
    Unasked { rows: &["folded line", "folded trailer", "blank before the first field"], status: 400, why: "RFC 9112, 2.2 and 5.2, allow to join or drop such lines; readers differ in what they mean" },
    Unasked { rows: &["Connection that names Host", "Connection that is no list of tokens"], status: 400, why: "taking off what is named would take off the host, or cannot be done (RFC 9110, 7.6.1)" },
    Unasked { rows: &["trailer that frames", "trailer that routes"], status: 400, why: "RFC 9110, 6.5.1, forbids to send them; a back end may merge them into the head" },
    Unasked { rows: &["absolute form of another scheme"], status: 400, why: "the balancer is a gateway for HTTP" },
    Unasked { rows: &["length of 2^63 bytes"], status: 413, why: "RFC 9110, 15.5.14, allows it; no number of 63 bits holds it" },
    Unasked { rows: &["another expectation"], status: 417, why: "RFC 9110, 10.1.1, allows it; the back end would not get the answer that it expects" },
    Unasked { rows: &["CONNECT"], status: 501, why: "RFC 9110, 9.1, asks for it for methods that are not implemented; the balancer opens no tunnels" },
    Unasked { rows: &["HTTP/2.0", "HTTP/0.9"], status: 505, why: "RFC 9110, 15.6.6, allows it; such a request line has another meaning" },
];

/// Those that no single row has, which the rules for whole requests and answers have: what, status, why.
#[rustfmt::skip]
pub(super) const BESIDE: [(&str, u16, &str); 3] = [
    ("POST or PUT without a length in HTTP/1.0", 411, "RFC 1945, 8.3, asks for 400; 411 says what is missing (RFC 9110, 15.5.12)"),
    ("TRACE with `Max-Forwards: 0`", 501, "RFC 9110, 9.3.8, asks to send the request back; its fields may hold secrets of proxies before"),
    ("a request that the back end did not process, three times", 503, "RFC 9113, 8.7, says that it may be sent again, and nothing of when to end"),
];

/// Sections that ask for the status, with MUST or SHOULD, or whose grammar has no such message.
const ASKING: [&str; 17] = [
    "RFC 9112, 2.3",
    "RFC 9112, 3",
    "RFC 9112, 3.2",
    "RFC 9112, 3.2.3",
    "RFC 9112, 3.2.4",
    "RFC 9112, 5",
    "RFC 9112, 5.1",
    "RFC 9112, 6.1",
    "RFC 9112, 6.3",
    "RFC 9112, 7.1",
    "RFC 9112, 7.1.1",
    "RFC 9110, 4.2.1",
    "RFC 9110, 4.2.4",
    "RFC 9110, 5.1",
    "RFC 9113, 8.1.1",
    "RFC 9113, 8.2.1",
    "RFC 9113, 8.3.1",
];

/// Rows with a status that no section asks for and that are not listed, and listed ones that are none.
pub fn unlisted() -> Vec<String> {
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
    let all: Vec<_> = rows
        .into_iter()
        .flatten()
        .map(|row| (row.what, row.h1, row.h2, row.section))
        .chain(framings)
        .collect();
    let statuses = |fate: Fate| match fate {
        Fate::Refused(statuses) => statuses,
        _ => &[],
    };
    let mut wrong = Vec::new();
    for (what, h1, h2, section) in &all {
        let is_refused = !statuses(*h1).is_empty() || !statuses(*h2).is_empty();
        let is_asked = section.split("; ").any(|one| ASKING.contains(&one));
        let is_listed = UNASKED.iter().any(|one| one.rows.contains(what));
        if is_refused && !is_asked && !is_listed {
            wrong.push(format!("{what} is not listed"));
        }
    }
    for one in UNASKED {
        for name in one.rows {
            let has = |row: &&(&str, Fate, Fate, &str)| {
                row.0 == *name && statuses(row.1).contains(&one.status)
            };
            if !all.iter().any(|row| has(&row)) {
                wrong.push(format!("{name} has no {}", one.status));
            }
        }
    }
    wrong
}
