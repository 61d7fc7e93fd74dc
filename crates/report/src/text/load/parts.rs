//! The parts of a load's text that only some loads have.

use readings::text::{counted, grouped, rate};
use readings::{Fairness, LoadReading, LoadRow, Quantiles, is_same_congestion};

use crate::text::visible::one_line;
use readings::text::compact::{bytes, time};

/// Below this Jain index, the text says that the connections were served unevenly.
const UNEVEN: f64 = 0.9;

/// One row of a running load as a line. A row without length has the answers that came after the
/// load's end.
pub fn load_row(row: &LoadRow) -> String {
    let speed = if row.duration_s > 0.0 {
        let due = match row.due {
            0 => String::new(),
            due => format!(" of {:>7} due", rate(due as f64 / row.duration_s)),
        };
        format!("{:>9} requests/s{due}", rate(row.requests_per_s()))
    } else {
        format!("{:>9} after the end", grouped(row.requests))
    };
    let errors = if row.errors > 0 {
        format!("  {} errors", grouped(row.errors))
    } else {
        String::new()
    };
    format!(
        "{:>8.1}s {speed}  p50 {:>8}  p99 {:>8}  max {:>8}{errors}\n",
        row.start_s + row.duration_s,
        time(row.latency_us.p50),
        time(row.latency_us.p99),
        time(row.latency_us.max),
    )
}

/// The passes over a site's pages as text: a line each, then the middle one.
///
/// `problems` are the reasons for which they cannot be used.
pub fn crawl_terminal(
    passes: &[LoadReading],
    url: &str,
    pages: usize,
    page_bytes: usize,
    problems: &[String],
) -> String {
    let mut out = format!(
        "{} below {url}, {} in all, fetched in order on one connection\n",
        match pages {
            1 => "1 page".to_owned(),
            n => format!("{} pages", grouped(n as u64)),
        },
        bytes(page_bytes as f64)
    );
    if passes.is_empty() {
        out.push_str("  no pass was complete\n");
    } else {
        out.push_str("  pass      time  requests/s       p50       max    client CPU  errors\n");
    }
    for (number, pass) in passes.iter().enumerate() {
        let q = pass.response.quantiles();
        out.push_str(&format!(
            "  {:>4} {:>9} {:>11} {:>9} {:>9} {:>13} {:>7}\n",
            number + 1,
            time(pass.duration_s * 1e6),
            rate(pass.requests_per_s()),
            time(q.p50),
            time(q.max),
            time(pass.client.cpu_s * 1e6),
            grouped(pass.errors.total())
        ));
    }
    let mut times: Vec<f64> = passes.iter().map(|pass| pass.duration_s).collect();
    times.sort_by(f64::total_cmp);
    if let (Some(first), Some(last)) = (times.first(), times.last()) {
        let middle = (times[(times.len() - 1) / 2] + times[times.len() / 2]) / 2.0;
        out.push_str(&format!(
            "  median {}, from {} to {}\n",
            time(middle * 1e6),
            time(first * 1e6),
            time(last * 1e6)
        ));
    }
    for problem in problems {
        out.push_str(&format!("  Invalid: {}\n", one_line(problem)));
    }
    out
}

/// The stages of an open loop, a line each.
pub(crate) fn stages(reading: &LoadReading) -> String {
    if reading.stages.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "  Stage                       due/s  answered/s       p50       p99    errors\n",
    );
    for stage in &reading.stages {
        let per_s = |count: u64| rate(count as f64 / stage.duration_s.max(1e-9));
        let rate_at = |per_s: f64| match per_s {
            0.0 => "0".to_owned(),
            per_s => rate(per_s),
        };
        let rates = if stage.from_per_s == stage.to_per_s {
            rate_at(stage.from_per_s)
        } else {
            format!(
                "{} to {}",
                rate_at(stage.from_per_s),
                rate_at(stage.to_per_s)
            )
        };
        out.push_str(&format!(
            "    {:<22} {:>8} {:>11} {:>9} {:>9} {:>9}\n",
            format!("{} at {rates}", time(stage.duration_s * 1e6)),
            per_s(stage.due),
            per_s(stage.requests),
            doubtful(&stage.latency_us, 0.5, stage.latency_us.p50),
            doubtful(&stage.latency_us, 0.99, stage.latency_us.p99),
            grouped(stage.errors)
        ));
    }
    out
}

/// Several requests, a line each.
pub(crate) fn requests(reading: &LoadReading) -> String {
    if reading.per_request.is_empty() {
        return String::new();
    }
    let wide = reading
        .per_request
        .iter()
        .map(|one| one.name.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(7, 40);
    let mut out = format!(
        "  {:<wide$}   answers       p50       p99    errors\n",
        "Request"
    );
    for one in &reading.per_request {
        let name: String = one.name.chars().take(wide).collect();
        out.push_str(&format!(
            "  {name:<wide$} {:>9} {:>9} {:>9} {:>9}\n",
            grouped(one.requests),
            doubtful(&one.latency_us, 0.5, one.latency_us.p50),
            doubtful(&one.latency_us, 0.99, one.latency_us.p99),
            grouped(one.errors)
        ));
    }
    out
}

fn doubtful(q: &Quantiles, quantile: f64, value: f64) -> String {
    if q.count == 0 {
        return "-".to_owned();
    }
    let doubt = if q.resolves(quantile) { "" } else { "?" };
    format!("{}{doubt}", time(value))
}

/// What the TLS sessions negotiated, and what passed over the network.
pub(crate) fn tls(reading: &LoadReading) -> String {
    let Some(tls) = &reading.tls else {
        return String::new();
    };
    let mut out = String::new();
    for one in &tls.negotiated {
        out.push_str(&format!(
            "  {}: {}\n",
            counted(one.sessions as usize, "session"),
            one.words()
        ));
    }
    if tls.handshakes == 0 {
        return out;
    }
    out.push_str(&format!(
        "  {} of {} resumed; {} read and {} sent over the network, TLS included\n",
        grouped(tls.resumed),
        counted(tls.handshakes as usize, "handshake"),
        bytes(tls.wire_bytes_read as f64),
        bytes(tls.wire_bytes_sent as f64)
    ));
    out
}

/// The packets of a load over HTTP/3.
pub(crate) fn quic(reading: &LoadReading) -> String {
    let Some(quic) = &reading.quic else {
        return String::new();
    };
    let batch = quic.gso_batch().unwrap_or(0.0);
    let offload = match (quic.gso, quic.gso_failed) {
        (_, true) => "; the network refused GSO, so datagrams were sent one by one",
        (false, false) => "; this kernel has no GSO",
        (true, false) => "",
    };
    let mut out = format!(
        "  QUIC: {} packets sent, {} of them lost; {batch:.1} datagrams per send{offload}\n",
        grouped(quic.packets_sent),
        grouped(quic.packets_lost),
    );
    if let Some(own) = &quic.congestion {
        let tcp = match &reading.tcp_congestion {
            Some(tcp) if is_same_congestion(own, tcp) => ", as TCP has here".to_owned(),
            Some(tcp) => format!("; TCP has {tcp} here"),
            None => String::new(),
        };
        out.push_str(&format!(
            "  QUIC: the client's congestion control is {own}{tcp}\n"
        ));
    }
    out
}

/// How evenly the connections were served, when they were not.
pub(crate) fn fairness(reading: &LoadReading) -> String {
    match reading.fairness {
        Some(Fairness {
            min,
            mean,
            max,
            jain,
            ..
        }) if jain < UNEVEN => format!(
            "  Connections were served unevenly: {} to {} answers each, {} on average (Jain's \
             index {jain:.2})\n",
            grouped(min),
            grouped(max),
            rate(mean)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::{Histogram, RequestReading, StageReading};
    use testing::Text as _;
    use testing::journals::load;

    #[test]
    fn a_row_is_a_line() {
        let row = LoadRow {
            start_s: 1.0,
            duration_s: 1.0,
            due: 1_000,
            requests: 990,
            errors: 10,
            latency_us: Quantiles {
                count: 990,
                p50: 1_200.0,
                p99: 4_000.0,
                max: 9_000.0,
                ..Quantiles::default()
            },
            ..LoadRow::default()
        };
        assert_eq!(
            load_row(&row),
            "     2.0s       990 requests/s of   1,000 due  p50   1.20ms  p99   4.00ms  max   \
             9.00ms  10 errors\n"
        );
    }

    #[test]
    fn answers_after_the_end_have_no_rate() {
        let row = LoadRow {
            start_s: 3.0,
            due: 2,
            requests: 2,
            ..LoadRow::default()
        };
        let line = load_row(&row);
        line.begins("     3.0s         2 after the end  p50");
    }

    #[test]
    fn passes_have_a_line_each_and_a_middle() {
        let mut passes = vec![load(100.0, 400.0, None); 3];
        for (pass, seconds) in passes.iter_mut().zip([3.0, 1.0, 2.0]) {
            pass.duration_s = seconds;
        }
        let text = crawl_terminal(&passes, "http://h/", 12, 2_048, &["it broke".to_owned()]);
        text.begins("12 pages below http://h/, 2.05kB in all");
        text.has("  median 2.00s, from 1.00s to 3.00s\n");
        text.ends("  Invalid: it broke\n");
    }

    #[test]
    fn stages_requests_and_unfairness_are_shown_where_they_are() {
        let mut reading = load(1_200.0, 400.0, Some(2_000.0));
        assert_eq!(
            stages(&reading) + &requests(&reading) + &fairness(&reading),
            ""
        );
        let latency_us = reading.response.quantiles();
        reading.stages = vec![StageReading {
            duration_s: 10.0,
            from_per_s: 0.0,
            to_per_s: 500.0,
            due: 2_500,
            requests: 2_400,
            errors: 100,
            latency_us,
            offered: None,
            response: Histogram::empty(),
        }];
        reading.per_request = vec![RequestReading {
            name: "GET /a".to_owned(),
            requests: 7,
            errors: 0,
            latency_us: Quantiles::default(),
            response: Histogram::empty(),
        }];
        reading.fairness = Fairness::of(&[100, 1]);
        stages(&reading).has("10.0s at 0 to 500");
        assert!(stages(&reading).contains("250"));
        assert!(requests(&reading).contains("GET /a"));
        assert!(fairness(&reading).contains("1 to 100 answers each"));
    }
}
