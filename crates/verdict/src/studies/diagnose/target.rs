//! The target of a reading, and how many requests can be on the way to it.

use readings::{Tool, ToolReading};

/// The words of a command line.
fn words(reading: &ToolReading) -> impl Iterator<Item = &str> {
    reading.command.as_deref().unwrap_or("").split_whitespace()
}

/// The number after a short option, apart from it or not: `-m 10`, `-m10`.
fn option(reading: &ToolReading, flag: &str) -> Option<f64> {
    let mut words = words(reading);
    while let Some(word) = words.next() {
        if let Some(rest) = word.strip_prefix(flag) {
            let value = if rest.is_empty() { words.next()? } else { rest };
            return value.trim_start_matches('=').parse().ok();
        }
    }
    None
}

/// How many requests can be on the way at one moment in a closed loop; nothing for an open loop,
/// or where it cannot be known.
pub(super) fn in_flight(reading: &ToolReading) -> Option<f64> {
    let connections = reading.connections? as f64;
    let is_open = reading.offered_per_s.is_some() || option(reading, "-q").is_some();
    let each = match reading.tool {
        _ if is_open => return None,
        // Paced by a rate, or by the script, whose pauses nobody knows.
        Tool::Wrk2 | Tool::Httperf | Tool::K6 | Tool::Time => return None,
        // Streams per connection and pauses between pages, which a reading does not hold; what there
        // is to say of its own figures `weigh load` says itself.
        Tool::Weigh => return None,
        Tool::Autocannon | Tool::Bombardier | Tool::Ghz if reading.closed_loop == Some(true) => {
            reading.depth? as f64
        }
        // Of the others nobody knows the pauses, or the connections.
        Tool::Autocannon
        | Tool::Bombardier
        | Tool::Ghz
        | Tool::Vegeta
        | Tool::Locust
        | Tool::Gatling
        | Tool::Jmeter
        | Tool::Artillery => return None,
        // Streams per connection, which the output does not tell.
        Tool::H2load => {
            reading.command.as_ref()?;
            option(reading, "-m").unwrap_or(1.0)
        }
        Tool::RedisBenchmark => option(reading, "-P").unwrap_or(1.0),
        Tool::Oha if words(reading).any(|w| w.starts_with("--http2") || w == "-p") => return None,
        // Without this option its users may pause.
        Tool::Siege if !words(reading).any(|w| w == "-b" || w == "--benchmark") => return None,
        Tool::Wrk | Tool::Ab | Tool::Hey | Tool::Oha | Tool::Siege => 1.0,
    };
    Some(connections * each)
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

/// Host and port of the target.
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

    #[test]
    fn how_many_requests_are_on_the_way_is_not_guessed() {
        for (tool, command, expected) in [
            (Tool::Wrk, "", Some(50.0)),
            (Tool::H2load, "", None),
            (Tool::H2load, "h2load -c50 -m10 https://a", Some(500.0)),
            (Tool::RedisBenchmark, "redis-benchmark -P 16", Some(800.0)),
            (Tool::K6, "", None),
            (Tool::Wrk2, "", None),
            (Tool::Weigh, "", None),
            (Tool::Hey, "hey -q 10 -c 50 http://a", None),
            (Tool::Oha, "oha --http2 http://a", None),
        ] {
            assert_eq!(
                in_flight(&reading(tool, command, "")),
                expected,
                "{command}"
            );
        }
        let mut paced = reading(Tool::Oha, "", "");
        paced.offered_per_s = Some(100.0);
        assert_eq!(in_flight(&paced), None);
    }
}
