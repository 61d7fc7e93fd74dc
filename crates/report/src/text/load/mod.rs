//! One load as terminal text.

pub(crate) mod hosts;
pub(crate) mod parts;
mod users;

use readings::text::{counted, grouped, percent, rate};
use readings::{LoadReading, Pacing, TrafficKind};

use crate::section::columns::errors;
use crate::text::visible::one_line;
use crate::text::{connections, idle_streams, lasting};
use readings::text::compact::{bytes, time};
use verdict::JudgedLoad;
use verdict::words::{flaws, full_queue, late_client, without_pauses};

const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
];

/// A share of waiting for a CPU that is told.
const WAITED: f64 = 0.01;

/// One load for a terminal, laid out as users of wrk know it.
///
/// It ends with the lines `Requests/sec:` and `Transfer/sec:`. Quantiles that too few answers stand
/// behind carry a `?`. What makes the figures less than they seem is said below them: a busy
/// client, errors, and in a closed loop that latency under saturation is queueing. `more` are notes of
/// the caller.
pub fn load_terminal(load: &JudgedLoad<'_>, url: &str, more: &[String]) -> String {
    let reading = load.reading;
    let reasons = flaws(&load.flaws);
    let mut out = format!("{} measured @ {url}\n", seconds(reading.duration_s));
    out.push_str(&format!("  {}\n", how(reading)));
    out.push_str(&latencies(load));
    out.push_str(&format!(
        "  {} in {}, {} read\n",
        requests(reading),
        seconds(reading.duration_s),
        bytes(reading.bytes_read as f64)
    ));
    out.push_str(&lasting::counts(reading));
    out.push_str(&users::lines(reading));
    out.push_str(&failures(reading));
    out.push_str(&parts::tls(reading));
    out.push_str(&parts::quic(reading));
    if reading.resent > 0 {
        out.push_str(&format!(
            "  {} sent again: the server had not processed them, or was closing the idle connection\n",
            counted(reading.resent as usize, "request")
        ));
    }
    if let Some(feed) = &reading.used_up {
        out.push_str(&format!(
            "  the load ended when all rows of the feed `{feed}` had been used\n"
        ));
    }
    out.push_str(&unusual_statuses(reading));
    out.push_str(&parts::stages(reading));
    out.push_str(&parts::requests(reading));
    out.push_str(&parts::fairness(reading));
    out.push_str(&connections::lines(reading));
    out.push_str(&hosts::table(reading));
    out.push_str(&client(reading));
    for note in more.iter().chain(&notes(load, &reasons)) {
        out.push_str(&format!("  Note: {}\n", one_line(note)));
    }
    if let Some(late) = &load.late_tail {
        out.push_str(&format!(
            "  Note: {}; do not read the tail as the server's\n",
            late_client(late)
        ));
    }
    for reason in &reasons {
        out.push_str(&format!("  Invalid: {}\n", one_line(reason)));
    }
    let per_s = match said(reading) {
        "messages" => "Messages/sec:",
        "streams" => "Streams/sec:",
        "calls" => "Calls/sec:",
        _ => "Requests/sec:",
    };
    let messages = lasting::per_s(reading);
    // Of sessions whose messages are no answers the messages alone have a rate.
    if messages.is_empty() || per_s != "Messages/sec:" {
        out.push_str(&format!("{per_s:<13} {:>10.2}\n", reading.requests_per_s()));
    }
    out.push_str(&messages);
    out.push_str(&format!(
        "Transfer/sec: {:>10}\n",
        bytes(reading.bytes_per_s())
    ));
    out
}

/// The failures of the whole load, which the reasons against it count, and how many of them fell into
/// the measured time.
fn failures(reading: &LoadReading) -> String {
    let (all, inside) = (reading.errors_all.total(), reading.errors.total());
    if all == 0 {
        return String::new();
    }
    let inside = match inside {
        _ if inside == all => String::new(),
        0 => "; all of them before or after the measured time".to_owned(),
        _ => format!("; {} of them in the measured time", grouped(inside)),
    };
    format!("  Errors: {}{inside}\n", errors(&reading.errors_all))
}

fn seconds(s: f64) -> String {
    format!("{s:.2}s")
}

fn how(reading: &LoadReading) -> String {
    let threads = counted(reading.client.threads.len(), "thread");
    let mut connections = counted(reading.connections as usize, "connection");
    if let Some(streams) = reading.streams {
        let version = if reading.quic.is_some() { 3 } else { 2 };
        let streams = counted(streams as usize, &format!("HTTP/{version} stream"));
        connections.push_str(&format!(" of {streams}"));
    }
    let arriving = match reading.users {
        Some(_) => "users",
        None => said(reading),
    };
    let pacing = match reading.pacing {
        Pacing::Closed => "closed loop".to_owned(),
        Pacing::Open { rate_per_s } if reading.stages.is_empty() => {
            format!("open loop at {} {arriving}/s", rate(rate_per_s))
        }
        Pacing::Open { rate_per_s } => format!(
            "open loop in {} stages, {} {arriving}/s on average",
            reading.stages.len(),
            rate(rate_per_s)
        ),
    };
    let io = match reading.client.io.as_str() {
        "" => String::new(),
        io => format!(" ({io})"),
    };
    let hosts = reading.hosts.iter().filter(|one| one.lost.is_none());
    let hosts = match hosts.count() {
        0 => String::new(),
        count => format!(" on {}", counted(count, "host")),
    };
    format!("{threads} and {connections}{hosts}, {pacing}{io}")
}

fn latencies(load: &JudgedLoad<'_>) -> String {
    let reading = load.reading;
    let mut rows = lasting::rows(reading);
    let lasting = lasting::of(reading);
    match (lasting, reading.pacing) {
        (Some((_, names)), _) => {
            rows.push((names.whole, &reading.response));
            rows.push(("Client's lag, to send", &reading.schedule_lag));
        }
        (None, Pacing::Closed) => rows.push(("Latency", &reading.response)),
        (None, Pacing::Open { .. }) => {
            rows.push((rows_first(load), &reading.response));
            rows.push(("Service (from sent)", &reading.service));
            rows.push(("Client's lag, to send", &reading.schedule_lag));
        }
    }
    rows.extend(users::row(reading));
    rows.push(("Client's lag, to read", &reading.receive_lag));
    rows.push(("First byte", &reading.first_byte));
    rows.push(("Connect", &reading.connect));
    if let Some(tls) = &reading.tls {
        rows.push(("TLS handshake", &tls.handshake));
        rows.push(("TLS handshake, resumed", &tls.resumed_handshake));
    }
    rows.retain(|(name, h)| h.count() > 0 || lasting.is_none() && *name == rows_first(load));
    let wide = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = format!("  {:wide$}", "");
    let quantiles = QUANTILES.iter().map(|q| q.0);
    for name in ["mean", "stdev"]
        .into_iter()
        .chain(quantiles)
        .chain(["max"])
    {
        out.push_str(&format!(" {name:>9}"));
    }
    out.push('\n');
    let mut doubtful = false;
    for (name, histogram) in rows {
        let q = histogram.quantiles();
        if q.count == 0 {
            out.push_str(&format!(
                "  {name:wide$}{}\n",
                format!("{:>10}", "-").repeat(8)
            ));
            continue;
        }
        out.push_str(&format!(
            "  {name:wide$} {:>9} {:>9}",
            time(q.mean),
            time(q.stdev)
        ));
        for (_, quantile) in QUANTILES {
            let doubt = if q.resolves(quantile) { "" } else { "?" };
            doubtful |= !doubt.is_empty();
            let text = format!("{}{doubt}", time(histogram.quantile_us(quantile)));
            out.push_str(&format!(" {text:>9}"));
        }
        out.push_str(&format!(" {:>9}\n", time(q.max)));
    }
    if doubtful {
        out.push_str("  ? fewer than 100 answers lie beyond it\n");
    }
    out
}

/// What is counted as a request.
fn said(reading: &LoadReading) -> &'static str {
    match reading.lasting.as_ref().map(|lasting| lasting.traffic) {
        Some(TrafficKind::WebSocket) => "messages",
        Some(TrafficKind::Events) => "streams",
        Some(TrafficKind::Grpc) => "calls",
        Some(TrafficKind::Answers) | None => "requests",
    }
}

/// Of an open loop the requests that became due, with the good answers to them where some failed.
fn requests(reading: &LoadReading) -> String {
    let (answered, what) = (grouped(reading.requests), said(reading));
    if let Some((_, names)) = lasting::of(reading) {
        return format!("{answered} complete {}s", names.exchange);
    }
    match (reading.pacing, reading.offered) {
        (Pacing::Closed, _) => format!("{answered} {what}"),
        (Pacing::Open { .. }, Some(offered)) if offered.due != reading.requests => {
            format!("{answered} answers to {} {what} due", grouped(offered.due))
        }
        (Pacing::Open { .. }, _) => format!("{answered} {what} due"),
    }
}

fn rows_first(load: &JudgedLoad<'_>) -> &'static str {
    match load.reading.pacing {
        Pacing::Closed => "Latency",
        Pacing::Open { .. } if load.overload.is_some() => "Response, of a backlog",
        Pacing::Open { .. } => "Response (from due)",
    }
}

/// Status codes, where there is more than one or an error among them.
fn unusual_statuses(reading: &LoadReading) -> String {
    if reading.statuses.len() < 2 && reading.errors_all.status == 0 {
        return String::new();
    }
    let each: Vec<String> = reading
        .statuses
        .iter()
        .map(|s| format!("{} x {}", s.status, grouped(s.count)))
        .collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("  Statuses: {}\n", each.join(", ")),
    }
}

fn client(reading: &LoadReading) -> String {
    let share = |of: f64| percent(of * 100.0, 0, false);
    let threads = reading.client.threads.iter().map(|t| match t.waited {
        waited if waited < WAITED => share(t.cpu),
        waited => format!("{} (and {} waiting for a CPU)", share(t.cpu), share(waited)),
    });
    let shares: Vec<String> = threads.collect();
    if shares.is_empty() {
        return String::new();
    }
    format!(
        "  Client: {:.2}s of CPU, its threads busy {}\n",
        reading.client.cpu_s,
        shares.join(", ")
    )
}

fn notes(load: &JudgedLoad<'_>, reasons: &[String]) -> Vec<String> {
    let reading = load.reading;
    let mut notes = Vec::new();
    // What lasts is not in a loop: its requests tell nothing of a saturation.
    let closed = reading.pacing == Pacing::Closed && lasting::of(reading).is_none();
    if closed && reading.client.saturated {
        notes.push(
            "the client was the bottleneck: this throughput is a lower bound, and the latency is \
             partly the client's own; more threads (-t) or another machine would tell"
                .to_owned(),
        );
    }
    let asked = reading.connections * u64::from(reading.streams.unwrap_or(1));
    let busy = idle_streams::busy(reading);
    let at_a_time = busy.map_or(asked, |busy| busy.round() as u64);
    if closed && at_a_time > 1 && reading.requests > 0 {
        let places = match reading.streams {
            Some(_) => "streams",
            None => "connections",
        };
        notes.push(format!(
            "this is a closed loop: once a server is saturated its latency is queueing, {}{} \
             {places} over the throughput ({}); --rate measures latency below saturation",
            if busy.is_some() { "some " } else { "" },
            grouped(at_a_time),
            time(at_a_time as f64 / reading.requests_per_s() * 1e6)
        ));
    }
    if let Some(offered_per_s) = reading.offered_requests_per_s()
        && lasting::of(reading).is_none()
        && load.overload.is_none()
        && reading.answered_per_s() < 0.95 * offered_per_s
    {
        notes.push(format!(
            "only {} of {} {}/s were answered: the latency is that of an overload, and \
             grows with the length of the load",
            rate(reading.answered_per_s()),
            rate(offered_per_s),
            said(reading)
        ));
    }
    if let Some(found) = &load.without_pauses {
        notes.push(without_pauses(found));
    }
    if reading.errors.total() > 0 {
        notes.push(format!(
            "the latency figures leave out {} that failed",
            said(reading)
        ));
    }
    notes.extend(full_queues(reading, reasons));
    notes
}

/// The accept queues that were full, where no reason against the load names them.
fn full_queues(reading: &LoadReading, reasons: &[String]) -> Option<String> {
    let queues: Vec<String> = reading.accept_queues.iter().map(full_queue).collect();
    let queues = queues.join("; ");
    let is_named = |reason: &String| reason.contains(&queues);
    (!queues.is_empty() && !reasons.iter().any(is_named)).then(|| {
        format!(
            "{queues}; a SYN that finds its queue full is dropped, and sent again a second or more \
             later"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::StatusCount;
    use testing::Text as _;
    use testing::journals::{bad_gateway, load};

    fn told(reading: &LoadReading) -> String {
        load_terminal(&JudgedLoad::of(reading), "http://h/", &[])
    }

    #[test]
    fn a_closed_loop_looks_as_wrk_users_expect() {
        let text = told(&load(20_000.0, 4_800.0, None));
        let expected = "\
10.00s measured @ http://h/
  1 thread and 96 connections, closed loop (epoll)
               mean     stdev       p50       p75       p90       p99     p99.9       max
  Latency    5.66ms    4.48ms    4.85ms    5.12ms    5.27ms    9.60ms   48.0ms?    48.0ms
  ? fewer than 100 answers lie beyond it
  200,000 requests in 10.00s, 40.0MB read
  Client: 4.00s of CPU, its threads busy 40%
";
        let (figures, rest) = text.split_at(text.find("  Note").unwrap());
        assert_eq!(figures, expected);
        rest.has("queueing, 96 connections over the throughput (4.80ms)");
        text.ends("Requests/sec:   20000.00\nTransfer/sec:     4.00MB\n");
    }

    #[test]
    fn an_open_loop_shows_response_and_service() {
        let mut reading = load(1_200.0, 400.0, Some(2_000.0));
        reading.schedule_lag.record_ns(5_000);
        let text = told(&reading);
        text.has_all([
            "open loop at 2,000 requests/s",
            "  Response (from due)",
            "  Service (from sent)",
            "  Client's lag, to send",
            "only 1,200 of 2,000 requests/s were answered",
        ]);
        text.lacks("queueing");
    }

    #[test]
    fn the_latency_of_an_overload_is_labelled() {
        let mut reading = load(2_000.0, 400.0, Some(2_000.0));
        told(&reading).has("Response (from due)");
        reading.offered = Some(readings::Offered {
            due: 20_000,
            answered_within: 10_000,
            backlog: [0, 2_500, 5_000, 7_500, 10_000],
        });
        let text = told(&reading);
        text.has("  Response, of a backlog");
        text.has("of 2,000/s offered it answered about 1,000/s");
        text.has("  20,000 requests due in 10.00s, ");
        text.has("Requests/sec:    1000.00\n");
        reading.requests = 12_000;
        let text = told(&reading);
        let part = "  12,000 answers to 20,000 requests due in 10.00s, ";
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn pauses_of_the_client_and_the_p99_without_them_are_told() {
        let mut reading = load(2_000.0, 400.0, Some(2_000.0));
        reading.pauses = Some(readings::ClientPauses {
            pauses: vec![readings::Pause {
                start_s: 1.0,
                duration_s: 0.02,
            }],
            count: 2,
            sections: 100,
            sections_left_out: 12,
            latency_us_without: readings::Quantiles {
                count: 17_600,
                p99: 450.0,
                ..readings::Quantiles::default()
            },
            ..readings::ClientPauses::default()
        });
        let text = told(&reading);
        text.has_all([
            "the client's own CPU stood still 2 times, for up to 20.0ms, which delays answers",
            ", and 450us in the 88% of the time that was not affected",
        ]);
    }

    #[test]
    fn a_busy_client_is_told() {
        let mut reading = load(20_000.0, 4_800.0, None);
        told(&reading).lacks("this throughput is a lower bound");
        reading.client.saturated = true;
        told(&reading).has("this throughput is a lower bound");
    }

    #[test]
    fn streams_are_those_of_their_version_and_queue_like_connections() {
        let mut reading = load(20_000.0, 4_800.0, None);
        (reading.connections, reading.streams) = (4, Some(32));
        let text = told(&reading);
        text.has("4 connections of 32 HTTP/2 streams");
        text.has("128 streams over the throughput");
        reading.quic = Some(readings::QuicReading::default());
        let text = told(&reading);
        text.has("4 connections of 32 HTTP/3 streams");
    }

    #[test]
    fn failures_are_counted_once_and_those_in_the_measured_time_are_told_apart() {
        let mut reading = load(100.0, 400.0, None);
        let line = |reading: &LoadReading| {
            let text = told(reading);
            let mut lines = text.lines().filter(|line| line.starts_with("  Errors"));
            lines.next().map(str::to_owned)
        };
        assert_eq!(line(&reading), None);
        reading.errors_all.timeout = 94;
        assert_eq!(
            line(&reading).unwrap(),
            "  Errors: 94 timeout; all of them before or after the measured time"
        );
        reading.errors.timeout = 2;
        let text = line(&reading).unwrap();
        assert_eq!(text, "  Errors: 94 timeout; 2 of them in the measured time");
        let reason = &flaws(&JudgedLoad::of(&reading).flaws)[0];
        assert!(reason.contains("(94 timeout)"), "the same count: {reason}");
        reading.errors.timeout = 94;
        assert_eq!(line(&reading).unwrap(), "  Errors: 94 timeout");
    }

    #[test]
    fn wrong_answers_are_no_speed() {
        let mut reading = bad_gateway();
        reading.statuses = vec![StatusCount {
            status: 502,
            count: 31_204,
        }];
        let text = told(&reading);
        text.has_all([
            "  Errors: 31,204 status\n",
            "  Statuses: 502 x 31,204\n",
            "  Invalid: 31,204 of 31,204 answers were wrong: expected status 200, found 502\n",
            "Requests/sec:       0.00\n",
        ]);
    }
}
