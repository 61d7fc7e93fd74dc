//! What the figures of single requests are.

use crate::RequestRow;

/// What their times are; `None` without rows.
pub fn by_request(rows: &[RequestRow]) -> Option<String> {
    let loops = match (
        rows.iter().any(|row| row.in_open_loop),
        rows.iter().all(|row| row.in_open_loop),
    ) {
        _ if rows.is_empty() => return None,
        (_, true) => "from the open loops, counted from when a request was due",
        (false, _) => "from the closed loops, so they include queueing",
        (true, false) => "from the open loops, or from the closed loops of subjects without them",
    };
    Some(format!(
        "Times are {loops}: the median over the valid trials of each trial's p50 and p99. Answers and \
         errors are those of all of these trials."
    ))
}
