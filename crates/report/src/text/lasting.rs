//! The part of a load's text that is about exchanges with messages.

use readings::text::compact::{bytes, time};
use readings::text::{counted, grouped, rate};
use readings::{Histogram, LagBase, LastingReading, LoadReading, TrafficKind};

/// What an exchange and a message are called.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) exchange: &'static str,
    message: &'static str,
    /// At the start of rows.
    first: &'static str,
    pub(crate) whole: &'static str,
}

impl Names {
    fn of(traffic: TrafficKind) -> Self {
        match traffic {
            TrafficKind::Answers | TrafficKind::Events => Names {
                exchange: "stream",
                message: "event",
                first: "First event",
                whole: "Whole stream",
            },
            TrafficKind::WebSocket => Names {
                exchange: "WebSocket",
                message: "message",
                first: "First message",
                whole: "Whole WebSocket",
            },
            TrafficKind::Grpc => Names {
                exchange: "call",
                message: "message",
                first: "First message",
                whole: "Whole call",
            },
        }
    }
}

/// What a load measured of exchanges with several messages for a request, and what those are called;
/// `None` without. Where a message is a request, as of echoes, the figures of requests tell of it.
pub(crate) fn of(reading: &LoadReading) -> Option<(&LastingReading, Names)> {
    let lasting = reading.lasting.as_deref()?;
    let is_told = lasting.has_messages() || lasting.traffic == TrafficKind::Events;
    is_told.then(|| (lasting, Names::of(lasting.traffic)))
}

pub(crate) fn rows(reading: &LoadReading) -> Vec<(&'static str, &Histogram)> {
    let Some((lasting, names)) = of(reading) else {
        return Vec::new();
    };
    let gap = match lasting.traffic {
        TrafficKind::Answers | TrafficKind::Events => "Gap between events",
        TrafficKind::WebSocket | TrafficKind::Grpc => "Gap between messages",
    };
    let lag = match lasting.lag_base {
        _ if lasting.expected > 0 => "Delivery (from due)",
        Some(LagBase::SenderOfOtherClock) => "Lag, above the least",
        _ => "Lag (from due)",
    };
    let rows = [
        (names.first, &lasting.first_message),
        ("Answer to a message", &lasting.answer),
        (gap, &lasting.gap),
        (lag, &lasting.lag),
    ];
    rows.into_iter()
        .filter(|(_, times)| times.count() > 0)
        .collect()
}

/// Its counts, a line for each thing that was.
pub(crate) fn counts(reading: &LoadReading) -> String {
    let Some((lasting, names)) = of(reading) else {
        // Of WebSockets more is told.
        let lasting = reading.lasting.as_deref();
        let calls = lasting.filter(|one| one.traffic != TrafficKind::WebSocket);
        return calls.map_or(String::new(), ends);
    };
    let (one, all) = (names.message, grouped(lasting.messages));
    let mut out = format!(
        "  {} opened, {} open at the end; {all} {one}s, {}\n",
        counted(lasting.opened as usize, names.exchange),
        grouped(lasting.open_min),
        bytes(lasting.message_bytes as f64)
    );
    if let Some(reach) = lasting.reach() {
        let (reached, all) = (
            lasting.expected - lasting.lost.min(lasting.expected),
            lasting.expected,
        );
        out.push_str(&format!(
            "  Reach: {} of {} deliveries, {}\n",
            grouped(reached),
            grouped(all),
            reached_share(reach)
        ));
    }
    let wrong = [
        (lasting.lost, "lost"),
        (lasting.overdue, "overdue when the load ended"),
        (lasting.repeated, "repeated"),
        (lasting.reordered, "out of order"),
        (lasting.merged, "held back and merged with the one before"),
    ];
    let wrong: Vec<String> = wrong
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", grouped(count)))
        .collect();
    if !wrong.is_empty() {
        out.push_str(&format!("  Of the {one}s: {}\n", wrong.join(", ")));
    }
    if lasting.without_message > 0 {
        out.push_str(&format!(
            "  {} without any {one}\n",
            counted(lasting.without_message as usize, names.exchange)
        ));
    }
    if lasting.stalls > 0 {
        out.push_str(&format!(
            "  {}, the longest of {}\n",
            counted(lasting.stalls as usize, "stall"),
            time(lasting.stall_longest_s * 1e6)
        ));
    }
    out + &ends(lasting)
}

/// All of it only where nothing is lacking.
fn reached_share(share: f64) -> String {
    let percent = match share < 1.0 {
        true => (share * 100.0).min(99.999),
        false => 100.0,
    };
    format!("{percent:.3}%")
}

fn ends(lasting: &LastingReading) -> String {
    let ends: Vec<String> = lasting
        .ends
        .iter()
        .map(|end| {
            let cut = if end.is_cut { " (cut)" } else { "" };
            format!("{} {}{cut}", grouped(end.count), called(&end.how))
        })
        .collect();
    match ends.is_empty() {
        true => String::new(),
        false => format!("  Ends: {}\n", ends.join(", ")),
    }
}

/// An end in words.
fn called(how: &str) -> &str {
    match how {
        "end" => "complete",
        "window" => "closed by the client at the end of the load",
        other => other,
    }
}

/// The line of their rate at the end.
pub(crate) fn per_s(reading: &LoadReading) -> String {
    match of(reading) {
        Some((lasting, _)) if lasting.has_messages() && reading.duration_s > 0.0 => {
            let name = match lasting.traffic {
                TrafficKind::Answers | TrafficKind::Events => "Events/sec:",
                TrafficKind::WebSocket | TrafficKind::Grpc => "Messages/sec:",
            };
            let per_s = lasting.messages as f64 / reading.duration_s;
            format!("{name:<13} {:>10}\n", rate(per_s))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_terminal;
    use readings::Pacing;
    use testing::Text as _;
    use verdict::JudgedLoad;

    fn times(ms: u64, count: u64) -> Histogram {
        let mut times = Histogram::new();
        times.record_many_ns(ms * 1_000_000, count);
        times
    }

    #[test]
    fn streams_are_told_with_their_events() {
        let mut lasting = LastingReading {
            traffic: TrafficKind::Events,
            opened: 1,
            open_min: 1,
            messages: 1_000,
            message_bytes: 100_000,
            first_message: times(21, 1),
            gap: times(20, 999),
            lag: times(1, 1_000),
            lag_base: Some(LagBase::Sender),
            ..LastingReading::default()
        };
        lasting.count_end("window", false, 1);
        let mut reading = LoadReading {
            connections: 1,
            connections_open_min: 1,
            duration_s: 20.0,
            lasting: Some(Box::new(lasting)),
            ..LoadReading::empty(Pacing::Closed)
        };
        let told =
            |reading: &LoadReading| load_terminal(&JudgedLoad::of(reading), "http://a/", &[]);
        let text = told(&reading);
        text.has_all([
            "  First event           21.0ms ",
            "  Gap between events    20.0ms ",
            "  Lag (from due)        1.00ms ",
            "  1 stream opened, 1 open at the end; 1,000 events, 100kB\n",
            "  Ends: 1 closed by the client at the end of the load\n",
            "Events/sec:         50.0\n",
        ]);
        text.lacks("stall");
        text.lacks("Of the events");
        text.lacks("Invalid");
        text.lacks("Latency");
        let lasting = reading.lasting.as_mut().unwrap();
        (lasting.lost, lasting.merged, lasting.stalls) = (2, 63, 1);
        lasting.stall_longest_s = 1.5;
        lasting.count_end("reset", true, 3);
        let text = told(&reading);
        text.has_all([
            "  Of the events: 2 lost, 63 held back and merged with the one before\n",
            "  1 stall, the longest of 1.50s\n",
            "end of the load, 3 reset (cut)\n",
        ]);
    }
}
