//! Sentences on servers that hold messages back.

use readings::text::compact::three_digits;
use readings::text::{condition, time};

use super::HeldBack;

/// ``nginx` holds events back: the first comes after 1.28 s (streams of 64 events, one every 20.0 ms),
/// for `direct` after 21.0 ms; `nginx` has `proxy_buffering on``.
pub fn held_back(one: &HeldBack) -> String {
    let mut text = format!("`{}`", one.subject);
    if !one.condition.is_empty() {
        text += &format!(" ({})", condition(&one.condition));
    }
    let (first, direct) = (time(one.first_us), time(one.baseline_first_us));
    text += &match (one.is_whole_stream, one.messages) {
        (true, Some(messages)) => format!(
            " holds events back: the first comes after {first} (streams of {messages} events, one \
             every {}), for `{}` after {direct}",
            time(one.pace_us),
            one.baseline
        ),
        _ => format!(
            " holds events back: {}% come together with the one before, for `{}` {}%",
            three_digits(one.merged_share * 100.0),
            one.baseline,
            three_digits(one.baseline_merged_share * 100.0)
        ),
    };
    if let Some(cause) = &one.cause {
        text += &format!("; `{}` has `{}`", cause.server, cause.setting);
    }
    text
}
