//! Parts of messages that a caller cuts off or replaces.

/// Separates the reason from what a program printed.
pub const LAST_OUTPUT: &str = "; its last output:";

/// The time limit in the message about a server that is not ready: ` within 30 ms: `.
pub fn time_limit_phrase(timeout_ms: u64) -> String {
    format!(" within {timeout_ms} ms: ")
}

/// A reason without what the program printed.
pub fn without_last_output(reason: &str) -> &str {
    let parts = reason.split_once(LAST_OUTPUT);
    parts.map_or(reason, |(reason, _)| reason)
}
