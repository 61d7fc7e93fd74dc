//! What the table says of a subject's connections.

use crate::SubjectRow;
use readings::text::compact::three_digits;

/// New connections per request below this are those that every server closes now and then.
const KEPT: f64 = 0.0005;

/// How many requests a connection carries before the subject closes it: `1.00`, or `kept` where none
/// had to be opened again.
pub fn kept(reconnects_per_request: f64, requests_per_connection: f64) -> String {
    match reconnects_per_request < KEPT {
        true => "kept".to_owned(),
        false => three_digits(requests_per_connection),
    }
}

/// Whether connections of a subject had to be opened again.
pub fn closes_connections(row: &SubjectRow) -> bool {
    row.reconnects_per_request
        .is_some_and(|share| share >= KEPT)
}
