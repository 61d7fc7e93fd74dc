//! Warnings about the network, from closed loops.

use readings::{Histogram, LoadReading};

use crate::context::Context;
use crate::measure::Findings;
use crate::testbed::ReadySubject;
use agent::wire::Loaded;
use experiment::{Experiment, HttpVersion, ResolvedCondition, SubjectSpec};

/// Share of the throughput that round trips allow above which they are the limit: three quarters or
/// more of a response time are then network.
const BOUND_SHARE: f64 = 0.75;
/// A lost SYN is retransmitted after 1 s, 3 s, 7 s (RFC 6298), so the connection takes that much
/// longer than the fastest, within a kernel tick.
const SYN_RETRANSMIT_US: f64 = 0.98e6;
/// Share of connections below which retransmissions are ignored.
const RETRANSMIT_SHARE_MIN: f64 = 0.001;

/// Warns, in the first block, of closed loops that their round trips limited, and of retransmitted
/// SYNs.
pub(crate) fn of_closed_loop(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    ready: &[ReadySubject],
    closed: &Loaded,
    found: &mut Findings,
) {
    let first = ready.iter().zip(&closed.readings);
    let first = first.filter(|(one, _)| cx.block == 1 && !one.planned.baseline_copy);
    for (one, load) in first {
        let subject = &one.subject.name;
        let bound = limited_by_rtt(cx.options.experiment, resolved, subject, load);
        found.warnings.extend(bound);
        let syns = retransmitted_syns(resolved, subject, &load.connect);
        found.warnings.extend(syns);
    }
}

/// Warns of a throughput near the number of requests under way divided by the round-trip time, which
/// no server can exceed.
fn limited_by_rtt(
    experiment: &Experiment,
    resolved: &ResolvedCondition,
    subject: &str,
    reading: &LoadReading,
) -> Option<String> {
    let subject_of = resolved.subjects.iter().find(|one| one.name == subject)?;
    let server = subject_of.through.first()?;
    let server = resolved.servers.iter().find(|one| one.name == *server)?;
    let (from, to) = (resolved.load.host.as_ref()?, server.host.as_ref()?);
    if from == to {
        return None;
    }
    let rtt_ns: u64 = experiment
        .hosts
        .iter()
        .filter(|host| host.name == *from || host.name == *to)
        .filter_map(|host| host.link)
        .map(|link| link.rtt_ns)
        .sum();
    let rtt_s = rtt_ns as f64 / 1e9 * trips(resolved, subject_of);
    if rtt_s <= 0.0 {
        return None;
    }
    let connections = subject_of.connections;
    let (noun, allow) = match connections {
        1 => ("connection", "allows"),
        _ => ("connections", "allow"),
    };
    let (at_once, under_way) = match reading.streams {
        Some(streams) => (connections * streams, format!(" of {streams} streams")),
        None => (connections, String::new()),
    };
    let bound = f64::from(at_once) / rtt_s;
    let measured = reading.requests_per_s();
    (measured > BOUND_SHARE * bound).then(|| {
        format!(
            "from host `{from}`, `{subject}` answered {measured:.0} requests/s in block 1, {:.0}% \
             of the {bound:.0} that {connections} {noun}{under_way} {allow} at {:.0} ms per \
             request: the network's delay limits this, not the servers",
            measured / bound * 1e2,
            rtt_s * 1e3
        )
    })
}

/// The round trips that a request takes at least: its own, and its share of those that open its
/// connection. The shortest handshake is assumed: one trip for TCP or QUIC, one more for TLS 1.3
/// over TCP.
fn trips(resolved: &ResolvedCondition, subject: &SubjectSpec) -> f64 {
    let load = &resolved.load;
    let per_connection = match load.keepalive {
        false => Some(1),
        true => subject
            .requests_per_connection
            .or(load.requests_per_connection),
    };
    let Some(requests) = per_connection else {
        return 1.0;
    };
    let opening = match (subject.http, subject.scheme.as_str()) {
        (HttpVersion::Http3, _) => 1.0,
        (_, "https") => 2.0,
        _ => 1.0,
    };
    let streams = match subject.http {
        HttpVersion::Http1 => 1,
        _ => subject.streams.unwrap_or(load.streams),
    };
    // Streams carry requests at the same time: of 40 requests over 40 streams, each stream has one.
    let in_a_row = (requests as f64 / f64::from(streams.max(1))).max(1.0);
    1.0 + opening / in_a_row
}

/// Warns of lost SYNs, as from a full accept queue.
fn retransmitted_syns(
    resolved: &ResolvedCondition,
    subject: &str,
    connect: &Histogram,
) -> Option<String> {
    let opened = connect.count();
    let buckets = connect.buckets_us();
    let quickest = buckets.first().map_or(0.0, |(us, _)| *us);
    let late = buckets.iter();
    let late = late.filter(|(us, _)| *us - quickest >= SYN_RETRANSMIT_US);
    let late: u64 = late.map(|(_, count)| count).sum();
    (late > 0 && late as f64 > RETRANSMIT_SHARE_MIN * opened as f64).then(|| {
        let condition = match &resolved.load.host {
            Some(host) => format!("from host `{host}`, "),
            None => String::new(),
        };
        format!(
            "{condition}{late} of {opened} connections to `{subject}` took a second longer to \
             open: their SYNs were dropped by a full accept queue or lost on a link, and sent again"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Recipes;

    fn resolved() -> ResolvedCondition {
        let text = "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n";
        let recipes = Recipes::embedded().unwrap();
        let experiment = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        experiment.under(&Default::default())
    }

    #[test]
    fn the_bound_of_a_round_trip_counts_streams_and_handshakes() {
        let text = include_str!("network_warnings/streams.toml");
        let recipes = Recipes::embedded().unwrap();
        let experiment = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        let resolved = experiment.under(&Default::default());
        let bound = |subject: &str, streams| {
            let reading = LoadReading {
                requests: 100_000,
                duration_s: 1.0,
                streams,
                ..LoadReading::empty(readings::Pacing::Closed)
            };
            let text = limited_by_rtt(&experiment, &resolved, subject, &reading).unwrap();
            text.split_once("% of the ").unwrap().1.to_owned()
        };
        let begins = |subject, streams, with: &str| {
            let text = bound(subject, streams);
            assert!(text.starts_with(with), "{subject}: {text}");
        };
        begins("one", None, "120 that 6 connections allow at 50 ms per");
        // Nine round trips for seven requests.
        begins("pages", None, "93 that 6 connections allow at 64 ms per");
        begins(
            "two",
            Some(40),
            "800 that 1 connection of 40 streams allows at 50 ms",
        );
        begins(
            "two-pages",
            Some(40),
            "267 that 1 connection of 40 streams allows at 150 ms",
        );
        begins(
            "three",
            Some(40),
            "400 that 1 connection of 40 streams allows at 100 ms",
        );
    }

    fn opened(fast: u64, late: u64) -> Histogram {
        let mut connect = Histogram::new();
        connect.record_many_ns(20_000_000, fast);
        connect.record_many_ns(1_030_000_000, late);
        connect
    }

    #[test]
    fn connections_a_second_slower_than_the_fastest_had_lost_syns() {
        let warning = |fast, late| retransmitted_syns(&resolved(), "a", &opened(fast, late));
        let text = warning(990, 10).unwrap();
        assert!(text.starts_with("10 of 1000 connections to `a`"), "{text}");
        assert_eq!(warning(1000, 0), None);
        assert_eq!(warning(10_000, 1), None);
        assert_eq!(warning(0, 0), None);
    }
}
