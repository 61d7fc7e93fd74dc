//! Names and keys that several tables of an experiment file share.

use config::reader::{Problem, Reader};
use config::tree::Place;
use config::units::shown;

/// More servers, subjects, hosts or events than this are refused.
pub(super) const MOST_NAMES: usize = 64;

/// The factor whose levels are tables of keys of `[load]`, which then vary together.
pub(super) const LOAD_FACTOR: &str = "load";

/// The factor whose levels are the host that makes the load.
pub(super) const LOAD_HOST_FACTOR: &str = "from";

/// The keys of `[load]` that a factor can vary.
pub(crate) const VARIED_LOAD_KEYS: [&str; 34] = [
    "connections",
    "idle",
    "threads",
    "keepalive",
    "requests_per_connection",
    "method",
    "body",
    "body_bytes",
    "timeout",
    "rate",
    "driver",
    "http",
    "streams",
    "quic_congestion",
    "tls_version",
    "tls_suites",
    "tls_groups",
    "tls_resumption",
    "tls_ca",
    "tls_insecure",
    "tls_client_key",
    "events",
    "pace",
    "stall",
    "websocket",
    "in_flight",
    "message_bytes",
    "message_rate",
    "receive",
    "fan_out",
    "retire_after",
    "grpc",
    "call_messages",
    "deadline",
];

/// The keys of `[design]` that `[quick]` may give.
pub(super) const QUICK_KEYS: [&str; 15] = [
    "blocks",
    "warmup",
    "warmup_max",
    "window",
    "latency_window",
    "curve_window",
    "slice",
    "within",
    "matters",
    "matters_failures",
    "matters_latency",
    "max_error",
    "retries",
    "apart",
    "bottleneck",
];

/// Names of servers and hosts are also names of folders and parts of URLs.
pub(super) fn check_name(reader: &mut Reader, what: &str, name: &str, place: Place) {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        reader.report(Problem::at(
            place,
            format!("{what} cannot be called `{}`", shown(name)),
            "expected 1 to 64 letters, digits, `-` or `_`",
        ));
    }
}

/// The path of a key of a load: in `[load]`, or in `[loads.NAME]`.
pub(super) fn path_of_load<'n>(name: Option<&'n str>, key: &'n str) -> Vec<&'n str> {
    match name {
        Some(name) => vec!["loads", name, key],
        None => vec!["load", key],
    }
}
