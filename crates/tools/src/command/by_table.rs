//! Commands of which a table says what their options mean.

use super::{Asked, Command};
use crate::Tool;
use crate::text::units;

/// The names of a tool's options, without dashes, and its defaults.
struct Options {
    /// What has to stand first, of these words.
    verb: &'static [&'static str],
    /// Whether its own words name a target.
    has_target: bool,
    connections: &'static [&'static str],
    connections_default: Option<u64>,
    threads: &'static [&'static str],
    threads_default: Option<u64>,
    requests: &'static [&'static str],
    duration: &'static [&'static str],
    rate: &'static [&'static str],
    /// Whether it is a closed loop without a rate.
    closed_loop: bool,
    /// With one of these connections are closed after each request.
    closes: &'static [&'static str],
    /// Whether connections are kept without them.
    keeps: bool,
}

const NONE: Options = Options {
    verb: &[],
    has_target: false,
    connections: &[],
    connections_default: None,
    threads: &[],
    threads_default: None,
    requests: &[],
    duration: &[],
    rate: &[],
    closed_loop: false,
    closes: &[],
    keeps: false,
};

fn options(tool: Tool) -> Options {
    match tool {
        Tool::Autocannon => Options {
            has_target: true,
            connections: &["c", "connections"],
            connections_default: Some(10),
            threads: &["w", "workers"],
            threads_default: Some(1),
            requests: &["a", "amount"],
            duration: &["d", "duration"],
            rate: &["R", "overallRate", "r", "connectionRate"],
            closed_loop: true,
            keeps: true,
            ..NONE
        },
        Tool::Bombardier => Options {
            has_target: true,
            connections: &["c", "connections"],
            connections_default: Some(125),
            requests: &["n", "requests"],
            duration: &["d", "duration"],
            rate: &["r", "rate"],
            closed_loop: true,
            closes: &["a", "disableKeepAlives"],
            keeps: true,
            ..NONE
        },
        // Its targets stand in a file or before the bar.
        Tool::Vegeta => Options {
            verb: &["attack"],
            rate: &["rate"],
            keeps: true,
            ..NONE
        },
        Tool::Ghz => Options {
            has_target: true,
            connections: &["connections"],
            connections_default: Some(1),
            requests: &["n", "total"],
            duration: &["z", "duration"],
            rate: &["r", "rps"],
            closed_loop: true,
            keeps: true,
            ..NONE
        },
        Tool::Locust => Options {
            connections: &["u", "users"],
            duration: &["t", "run-time"],
            ..NONE
        },
        Tool::Artillery => Options {
            verb: &["run", "quick"],
            ..NONE
        },
        _ => NONE,
    }
}

/// Fills in what a command line says; nothing where it is none.
pub(super) fn complete<'a>(
    command: &mut Command,
    value: &dyn Fn(&[&str]) -> Option<&'a str>,
    flag: &dyn Fn(&[&str]) -> bool,
    others: &[&str],
    closes: bool,
) -> Option<()> {
    let names = options(command.tool);
    if !names.verb.is_empty() {
        others.first().filter(|word| names.verb.contains(word))?;
    }
    match command.tool {
        Tool::Locust => {
            // Without the host it is an option's value or a file that looks like one.
            value(&["f", "locustfile", "u", "users", "H", "host"])?;
            command.url = value(&["H", "host"]).map(str::to_owned);
        }
        Tool::Gatling | Tool::Jmeter => {
            flag(&["n", "t", "s", "simulation"]).then_some(())?;
            command.url = None;
        }
        Tool::Vegeta | Tool::Artillery => command.url = None,
        _ => {}
    }
    if names.has_target {
        command.url.as_ref()?;
    }
    let count = |names: &[&str]| {
        let number = value(names).and_then(units::metric).map(|n| n as u64);
        number.filter(|n| *n > 0)
    };
    command.connections = Asked::new(count(names.connections), names.connections_default);
    command.threads = Asked::new(count(names.threads), names.threads_default);
    command.requests = count(names.requests).filter(|_| value(names.duration).is_none());
    command.duration_s = value(names.duration)
        .filter(|_| command.requests.is_none())
        .and_then(units::duration_s);
    command.rate_per_s = value(names.rate).and_then(rate).filter(|rate| *rate > 0.0);
    command.closed_loop = match command.tool {
        // A rate of 0 is as fast as its workers can.
        Tool::Vegeta => Some(command.rate_per_s.is_none() && value(names.rate).is_some()),
        _ => names.closed_loop.then_some(command.rate_per_s.is_none()),
    };
    if value(&["r", "connectionRate"]).is_some() && command.tool == Tool::Autocannon {
        // It is that of each connection.
        let each = value(&["r", "connectionRate"]).and_then(rate);
        let all = each.zip(command.connections.value);
        command.rate_per_s = all.map(|(each, connections)| each * connections as f64);
    }
    command.keepalive = names
        .keeps
        .then(|| !closes && !flag(names.closes) && value(&["keepalive"]) != Some("false"));
    Some(())
}

/// Requests per second of `500`, `500/s`, `30/1m`.
fn rate(text: &str) -> Option<f64> {
    let Some((count, per)) = text.split_once('/') else {
        return units::metric(text);
    };
    let per_s = match per.starts_with(|c: char| c.is_ascii_digit()) {
        true => units::duration_s(per),
        false => units::duration_s(&format!("1{per}")),
    };
    let per_s = per_s.filter(|s| *s > 0.0)?;
    units::number(count).map(|count| count / per_s)
}

#[cfg(test)]
mod tests {
    use crate::command::parse;

    #[test]
    fn commands_say_target_connections_rate_and_loop() {
        for row in include_str!("by_table/commands.txt").lines() {
            let (line, said) = row.split_once(" => ").unwrap();
            let command = parse(line).unwrap_or_else(|| panic!("no command: {line}"));
            let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let found = [
                text(command.url.clone()),
                text(command.connections.value.map(|n| n.to_string())),
                text(command.rate_per_s.map(|n| n.to_string())),
                command.requests.is_some().to_string(),
                text(command.closed_loop.map(|closed| closed.to_string())),
            ];
            assert_eq!(found.join(" "), said, "{line}");
        }
        for prose in [
            "locust is a tool",
            "gatling, a gun",
            "vegeta report",
            "ghz is for gRPC",
        ] {
            assert!(parse(prose).is_none(), "{prose}");
        }
    }
}
