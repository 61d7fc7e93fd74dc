//! Parts of error messages that the caller cuts or replaces.

/// Separates the reason from what the server printed.
pub const LAST_OUTPUT: &str = "; its last output:";

/// How long a server was waited for, in the message about one that is not ready.
pub fn within_clause(timeout_ms: u64) -> String {
    format!(" within {timeout_ms} ms: ")
}

/// A reason without what the server printed.
pub fn without_last_output(reason: &str) -> &str {
    let parts = reason.split_once(LAST_OUTPUT);
    parts.map_or(reason, |(reason, _)| reason)
}
