//! Idle connections that a load held, as terminal text and as JSON.

use readings::text::compact::{bytes, three_digits};
use readings::text::{counted, grouped, number};
use readings::{IdleEnd, IdleHeld};
use serde_json::{Value, json as object};

use crate::text::visible::one_line;
use verdict::words::flaw;

/// Idle connections as text for a terminal.
pub fn idle_terminal(held: &IdleHeld, url: &str) -> String {
    let reading = &held.reading;
    let before = match reading.is_silent {
        true => "without a request",
        false => "after one request on each",
    };
    let mut out = format!(
        "{} @ {url}, {before}\n  opened in {:.2}s, held for {:.2}s\n",
        counted(reading.connections as usize, "idle connection"),
        reading.opening_s,
        held.held_s
    );
    out.push_str(&stages(held));
    if let Some(each) = verdict::slope(&held.memory()) {
        let back = held.given_back().map(|share| {
            format!(
                "; {}% of it was freed after they closed",
                number(share * 100.0, 0, false)
            )
        });
        let sign = if each < 0.0 { "-" } else { "" };
        out.push_str(&format!(
            "  Server memory: {sign}{} per connection{}\n",
            bytes(each.abs()),
            back.unwrap_or_default()
        ));
    }
    out.push_str(&format!(
        "  Client memory: {} per connection\n",
        bytes(held.own_bytes_per_connection)
    ));
    if reading.pings > 0 {
        out.push_str(&format!(
            "  {}, {} answered before the end\n",
            counted(reading.pings as usize, "ping"),
            grouped(reading.pongs)
        ));
    }
    for closed in &reading.closed {
        let how = match closed.how {
            IdleEnd::Closed => "closed",
            IdleEnd::Reset => "reset",
            IdleEnd::Failed => "broken off",
        };
        out.push_str(&format!(
            "  {} {how} by the server, after {:.1} to {:.1} s\n",
            grouped(closed.count),
            closed.first_after_s,
            closed.last_after_s
        ));
    }
    if reading.failed > 0 {
        out.push_str(&format!(
            "  {} to open one failed, and others took their place\n",
            counted(reading.failed as usize, "attempt")
        ));
    }
    if let Some(found) = verdict::idle_flaw(reading) {
        out.push_str(&format!("  Invalid: {}\n", one_line(&flaw(&found))));
    }
    out
}

fn stages(held: &IdleHeld) -> String {
    let Some(server) = &held.server else {
        return "  Server: not on this machine, so its memory is not known\n".to_owned();
    };
    let has_group = held
        .stages
        .iter()
        .any(|one| one.server.group_bytes.is_some());
    let group = |text: &str| {
        if has_group {
            format!(" {text:>10}")
        } else {
            String::new()
        }
    };
    let mut out = format!(
        "  {:<22} {:>10}{} {:>8} {:>8}\n",
        format!("Server {}", one_line(server)),
        "memory",
        group("cgroup"),
        "files",
        "CPU"
    );
    for one in &held.stages {
        let name = match one.is_after {
            true => "after they closed".to_owned(),
            false => grouped(one.connections),
        };
        let of_group = one
            .server
            .group_bytes
            .map_or(String::new(), |of| bytes(of as f64));
        out.push_str(&format!(
            "  {name:>22} {:>10}{} {:>8} {:>7}%\n",
            bytes(one.server.memory_bytes as f64),
            group(&of_group),
            grouped(one.server.files),
            three_digits(one.cpu_share * 100.0)
        ));
    }
    out
}

/// Idle connections as a part of the JSON document of `weigh load --format json`.
pub fn idle_json(held: &IdleHeld) -> Value {
    let mut document = object!(held);
    let found = verdict::idle_flaw(&held.reading);
    if let Some(fields) = document.as_object_mut() {
        let slope = verdict::slope(&held.memory());
        fields.insert("server_bytes_per_connection".into(), object!(slope));
        fields.insert("server_given_back".into(), object!(held.given_back()));
        fields.insert(
            "problems".into(),
            object!(found.iter().map(flaw).collect::<Vec<_>>()),
        );
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::{IdleReading, IdleStage, ServerState};
    use testing::Text as _;

    fn held() -> IdleHeld {
        let stage = |connections: u64, is_after| IdleStage {
            connections,
            is_after,
            server: ServerState {
                memory_bytes: 5_000_000 + 600 * connections,
                files: 10 + connections,
                processes: 2,
                ..ServerState::default()
            },
            cpu_share: 0.001,
        };
        IdleHeld {
            reading: IdleReading {
                connections: 10_000,
                opened: 10_000,
                open_at_end: 10_000,
                ..IdleReading::default()
            },
            server: Some("nginx:80".into()),
            stages: vec![
                stage(0, false),
                stage(5_000, false),
                stage(10_000, false),
                stage(0, true),
            ],
            own_bytes_per_connection: 300.0,
            ..IdleHeld::default()
        }
    }

    #[test]
    fn the_cost_of_a_connection_and_what_comes_back_are_said() {
        let text = idle_terminal(&held(), "http://x/");
        text.has_all([
            "10,000 idle connections @ http://x/, after one request on each",
            "Server memory: 600B per connection; 100% of it was freed after they closed",
            "Client memory: 300B per connection",
            "10,010",
        ]);
        text.lacks("cgroup");
        text.lacks("Invalid");
        let document = idle_json(&held());
        assert_eq!(document["server_bytes_per_connection"], 600.0);
        assert_eq!(document["opened"], 10_000);
    }

    #[test]
    fn pings_are_told_with_their_answers() {
        let mut pinged = held();
        idle_terminal(&pinged, "http://x/").lacks("ping");
        (pinged.reading.pings, pinged.reading.pongs) = (20_000, 19_999);
        let text = idle_terminal(&pinged, "http://x/");
        text.has("20,000 pings, 19,999 answered before the end");
        assert_eq!(idle_json(&pinged)["pongs"], 19_999);
    }

    #[test]
    fn connections_that_the_server_ended_make_it_invalid() {
        let mut ended = held();
        (0..200).for_each(|_| ended.reading.close(IdleEnd::Closed, 5.0));
        let text = idle_terminal(&ended, "http://x/");
        text.has("200 closed by the server, after 5.0 to 5.0 s");
        text.has("Invalid: the server ended 200 of 10,000");
        let problems = idle_json(&ended)["problems"].as_array().unwrap().len();
        assert_eq!(problems, 1);
    }
}
