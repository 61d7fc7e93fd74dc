//! How a diagnosis names tools, lines and lists.

use readings::{Tool, ToolReading};

pub(super) use crate::text::listed;
use crate::text::{grouped, number, percent};

/// A reading's name in a sentence: `wrk with 96 connections (lines 180 to 186)`.
pub(super) fn name(reading: &ToolReading) -> String {
    let mut name = reading.tool.name().to_owned();
    if let Some(operation) = &reading.operation {
        name.push_str(&format!(", {operation}"));
    }
    if let Some(connections) = reading.connections {
        let plural = if connections == 1 { "" } else { "s" };
        name.push_str(&format!(
            " with {} connection{plural}",
            grouped(connections)
        ));
    }
    if let Some(lines) = lines(&[reading]) {
        name.push_str(&format!(" ({lines})"));
    }
    name
}

/// So many places are listed one by one.
const PLACES: usize = 4;

/// `lines 12 to 20 and 31 to 39`, or `within lines 12 to 90` for many; nothing where no reading has
/// lines. Where there are several texts, each is named: `a.txt lines 1 to 5 and b.txt line 3`.
pub(super) fn lines(readings: &[&ToolReading]) -> Option<String> {
    let mut sources: Vec<&Option<String>> = readings.iter().map(|r| &r.source).collect();
    sources.dedup();
    if sources.iter().all(|source| source.is_none()) {
        return lines_of_one(readings);
    }
    let of_source = |source: &Option<String>| {
        let rows: Vec<&ToolReading> = readings
            .iter()
            .copied()
            .filter(|r| r.source == *source)
            .collect();
        let name = source.as_deref().unwrap_or("");
        Some(format!("{name} {}", lines_of_one(&rows)?).trim().to_owned())
    };
    let mut each: Vec<String> = Vec::new();
    for text in sources.into_iter().filter_map(of_source) {
        if !each.contains(&text) {
            each.push(text);
        }
    }
    (!each.is_empty()).then(|| listed(&each))
}

/// The lines of readings of one text.
fn lines_of_one(readings: &[&ToolReading]) -> Option<String> {
    let mut ranges: Vec<String> = readings
        .iter()
        .filter(|r| r.lines.0 > 0)
        .map(|r| match r.lines {
            (from, to) if from == to => from.to_string(),
            (from, to) => format!("{from} to {to}"),
        })
        .collect();
    ranges.dedup();
    if ranges.len() > PLACES {
        let first = readings
            .iter()
            .map(|r| r.lines.0)
            .filter(|l| *l > 0)
            .min()?;
        let last = readings.iter().map(|r| r.lines.1).max()?;
        return Some(format!("within lines {first} to {last}"));
    }
    (!ranges.is_empty()).then(|| {
        let single = ranges.len() == 1 && !ranges[0].contains(' ');
        format!("line{} {}", if single { "" } else { "s" }, listed(&ranges))
    })
}

/// A time as people write it: microseconds below 1 ms, seconds from 1 s, no needless zeros.
pub(super) fn time(us: f64) -> String {
    let (value, unit) = match us {
        _ if us >= 1e6 => (us / 1e6, "s"),
        _ if us >= 1e3 => (us / 1e3, "ms"),
        _ => (us, "us"),
    };
    let decimals = if us >= 1e6 { 3 } else { 2 };
    let text = number(value, decimals, false);
    format!("{} {unit}", trimmed(&text))
}

/// A throughput with the digits that tools print, grouped.
pub(super) fn per_s(value: f64) -> String {
    let whole = grouped(value.trunc() as u64);
    let rest = format!("{:.2}", value.fract());
    if let Some(next) = rest.strip_prefix('1') {
        // The fraction was rounded up.
        return format!("{}{}", grouped(value.trunc() as u64 + 1), trimmed(next));
    }
    trimmed(&format!("{whole}{}", &rest[1..])).to_owned()
}

/// A number without needless zeros after its point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// A share of a count, which is never shown as nothing.
pub(super) fn part(value: f64) -> String {
    match value {
        _ if value < 0.0005 => "less than 0.1%".to_owned(),
        _ if value >= 0.9995 => "100%".to_owned(),
        _ => percent(value * 100.0, 1, false),
    }
}

/// A share as a whole percentage.
pub(super) fn share(value: f64) -> String {
    format!("{:.0}%", value * 100.0)
}

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
        // Streams per connection, which the output does not tell.
        Tool::H2load => {
            reading.command.as_ref()?;
            option(reading, "-m").unwrap_or(1.0)
        }
        Tool::RedisBenchmark => option(reading, "-P").unwrap_or(1.0),
        Tool::Oha if words(reading).any(|w| w.starts_with("--http2") || w == "-p") => return None,
        // Without this option its users may pause.
        Tool::Siege if !words(reading).any(|w| w == "-b" || w == "--benchmark") => return None,
        Tool::Wrk | Tool::Ab | Tool::Hey | Tool::Oha | Tool::Siege | Tool::Weigh => 1.0,
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
    fn figures_are_written_as_tools_write_them() {
        assert_eq!(per_s(2302.67), "2,302.67");
        assert_eq!(per_s(1999.999), "2,000");
        assert_eq!(per_s(56.5), "56.5");
        assert_eq!(per_s(561.0), "561");
        assert_eq!(time(168_580.0), "168.58 ms");
        assert_eq!(time(1_980_000.0), "1.98 s");
        assert_eq!(time(1_095_000.0), "1.095 s");
        assert_eq!(time(98_000.0), "98 ms");
        assert_eq!(time(850.0), "850 us");
        assert_eq!(time(100.0), "100 us");
    }

    #[test]
    fn places_are_named_in_the_right_number() {
        let mut a = reading(Tool::Ab, "", "");
        assert_eq!(name(&a), "ab with 50 connections");
        a.lines = (7, 7);
        assert_eq!(name(&a), "ab with 50 connections (line 7)");
        let mut b = a.clone();
        b.lines = (9, 12);
        assert_eq!(lines(&[&a, &b]).unwrap(), "lines 7 and 9 to 12");
        a.source = Some("a.txt".into());
        assert_eq!(lines(&[&a]).unwrap(), "a.txt line 7");
        b.source = Some("b.txt".into());
        assert_eq!(
            lines(&[&a, &b]).unwrap(),
            "a.txt line 7 and b.txt lines 9 to 12"
        );
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
