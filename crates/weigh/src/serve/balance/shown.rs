//! A balancer's state as text.

use report::{bytes, time};
use serde_json::Value;

const HEAD: [&str; 10] = [
    "back end",
    "address",
    "state",
    "active",
    "total",
    "failed",
    "sent",
    "received",
    "connect p50 p99",
    "session p50 p99",
];
/// Left-aligned columns.
const WORDS: usize = 3;

/// Renders a status document.
pub fn status(status: &Value) -> String {
    let mut out = format!(
        "balancer {}, {}, up {}, {}, threads: {}, reloads: {}\n",
        status["pid"],
        text(&status["file"]),
        time(number(&status["uptime_s"]) * 1e6),
        text(&status["io"]),
        status["threads"],
        status["reloads"],
    );
    if number(&status["earlier_configurations"]) > 0.0 {
        let earlier = &status["earlier_configurations"];
        out.push_str(&format!("earlier configurations with clients: {earlier}\n"));
    }
    for (key, what) in [
        ("events_lost", "events without room for logs and commands"),
        ("log_failures", "lines that could not be written to logs"),
        ("command_failures", "commands that failed"),
        ("accept_failures", "failures to accept a client"),
        (
            "worker_restarts",
            "workers that failed and were started again",
        ),
    ] {
        if number(&status[key]) > 0.0 {
            out.push_str(&format!("{what}: {}\n", status[key]));
        }
    }
    for service in all(&status["services"]) {
        one_service(service, &mut out);
    }
    out
}

fn one_service(service: &Value, out: &mut String) {
    let listen: Vec<String> = all(&service["listen"]).map(text).collect();
    out.push_str(&format!(
        "\nservice {} on {}, {}, {}\n",
        text(&service["name"]),
        listen.join(", "),
        text(&service["kind"]),
        text(&service["dispatch"])
    ));
    let mut counts = format!(
        "clients: {} now, {} in all",
        service["active"], service["clients"]
    );
    for (key, what) in [
        ("queued", "waiting"),
        ("denied", "denied"),
        ("overflowed", "over the limit"),
        ("evicted", "idle clients closed to make room"),
        ("refused", "refused by all back ends"),
        ("bad_requests", "bad requests"),
        ("timeouts", "timeouts"),
    ] {
        if number(&service[key]) > 0.0 {
            counts.push_str(&format!(", {what}: {}", service[key]));
        }
    }
    out.push_str(&format!("  {counts}\n"));
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(all(&service["backends"]).map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEAD.len()).filter_map(width).collect();
    for row in &rows {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match column < WORDS {
                true => line.push_str(&format!(" {cell:width$} ")),
                false => line.push_str(&format!(" {cell:>width$} ")),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn row(backend: &Value) -> [String; HEAD.len()] {
    let state = text(&backend["state"]);
    let state = match backend["draining"].as_bool() {
        Some(true) => format!("{state}, draining"),
        _ => state,
    };
    [
        text(&backend["name"]),
        text(&backend["address"]),
        state,
        backend["active"].to_string(),
        backend["total"].to_string(),
        backend["failed"].to_string(),
        bytes(number(&backend["bytes_to"])),
        bytes(number(&backend["bytes_from"])),
        quantiles(&backend["connect_us"]),
        quantiles(&backend["session_us"]),
    ]
}

fn quantiles(times: &Value) -> String {
    match (times["p50"].as_f64(), times["p99"].as_f64()) {
        (Some(p50), Some(p99)) => format!("{} {}", time(p50), time(p99)),
        _ => "-".to_owned(),
    }
}

/// Untrusted text without control characters.
fn text(value: &Value) -> String {
    let text = value.as_str().unwrap_or("?");
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn all(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_for_each_back_end_in_columns() {
        let backend = |name: &str, draining: bool, p50: Value| {
            json!({
                "name": name, "address": "127.0.0.1:80", "state": "down", "draining": draining,
                "active": 1, "total": 20, "failed": 3, "bytes_to": 2048, "bytes_from": 5,
                "connect_us": { "p50": p50, "p99": p50 }, "session_us": { "p50": null, "p99": null },
            })
        };
        let shown = status(&json!({
            "pid": 7, "file": "/b.toml", "uptime_s": 2.5, "io": "epoll", "threads": 2, "reloads": 1,
            "earlier_configurations": 1, "events_lost": 0,
            "services": [{
                "name": "web", "kind": "tcp", "dispatch": "random", "listen": ["127.0.0.1:8080"],
                "active": 1, "clients": 40, "refused": 4,
                "backends": [backend("one", true, json!(412.0)), backend("second", false, json!(null))],
            }],
        }));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "balancer 7, /b.toml, up 2.50s, epoll, threads: 2, reloads: 1"
        );
        assert_eq!(lines[1], "earlier configurations with clients: 1");
        assert_eq!(lines[3], "service web on 127.0.0.1:8080, tcp, random");
        assert_eq!(
            lines[4],
            "  clients: 1 now, 40 in all, refused by all back ends: 4"
        );
        let words: Vec<&str> = lines[6].split_whitespace().collect();
        let expected = "one 127.0.0.1:80 down, draining 1 20 3 2.05kB 5B 412us 412us -";
        assert_eq!(words.join(" "), expected);
        assert_eq!(lines[6].find("127"), lines[7].find("127"));
    }
}
