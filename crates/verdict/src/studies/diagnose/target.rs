//! The target of a reading.

use readings::{Tool, ToolReading};

/// The words of a command line.
fn words(reading: &ToolReading) -> impl Iterator<Item = &str> {
    reading.command.as_deref().unwrap_or("").split_whitespace()
}

/// The host of the target, without its port; nothing where there is no URL.
pub(super) fn host(reading: &ToolReading) -> Option<&str> {
    let authority = authority(reading)?;
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next();
    }
    host.split(':').next()
}

pub(super) fn authority(reading: &ToolReading) -> Option<&str> {
    let url = reading.url.as_deref()?;
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next()
}

/// What follows the host and port.
pub(super) fn path(reading: &ToolReading) -> Option<&str> {
    let url = reading.url.as_deref()?;
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    Some(rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]))
}

/// Whether the target is on the client's own machine.
pub(super) fn is_loopback(reading: &ToolReading) -> bool {
    match host(reading) {
        Some(host) => host == "localhost" || host == "::1" || host.starts_with("127."),
        // redis-benchmark goes to 127.0.0.1 unless it is told another host or a socket.
        None => {
            let elsewhere = |w: &str| w.starts_with("-h") || w.starts_with("-s") || w == "-u";
            reading.tool == Tool::RedisBenchmark
                && reading.command.is_some()
                && !words(reading).skip(1).any(elsewhere)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(tool: Tool, command: &str, url: &str) -> ToolReading {
        let mut reading = ToolReading::new(tool);
        reading.connections = Some(50);
        reading.command = (!command.is_empty()).then(|| command.to_owned());
        reading.url = (!url.is_empty()).then(|| url.to_owned());
        reading
    }

    #[test]
    fn targets_are_taken_apart() {
        for (url, host_is, path_is, loopback) in [
            ("http://localhost:8080/a?b", "localhost", "/a?b", true),
            ("http://127.0.0.1/", "127.0.0.1", "/", true),
            ("http://[::1]:80/x", "::1", "/x", true),
            ("https://u@example.org", "example.org", "", false),
            (
                "http://localhost.example.org/",
                "localhost.example.org",
                "/",
                false,
            ),
        ] {
            let r = reading(Tool::Wrk, "", url);
            assert_eq!(host(&r), Some(host_is), "{url}");
            assert_eq!(path(&r), Some(path_is), "{url}");
            assert_eq!(is_loopback(&r), loopback, "{url}");
        }
        assert!(!is_loopback(&reading(Tool::Wrk, "", "")));
        assert!(is_loopback(&reading(
            Tool::RedisBenchmark,
            "redis-benchmark -q",
            ""
        )));
        assert!(!is_loopback(&reading(
            Tool::RedisBenchmark,
            "redis-benchmark -h db1 -q",
            ""
        )));
        assert!(!is_loopback(&reading(Tool::RedisBenchmark, "", "")));
    }
}
