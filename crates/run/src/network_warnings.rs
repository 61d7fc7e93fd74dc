//! What a closed loop tells about the network that it went over.

use readings::{Histogram, LoadReading};

use crate::context::Context;
use crate::group::{GroupResult, Ready};
use agent::wire::Loaded;
use experiment::{Experiment, ResolvedCondition};

/// A load that makes so much of what its round trips allow is bound by them: three quarters of an
/// answer's time, or more, are the way.
const BOUND_SHARE: f64 = 0.75;
/// A SYN that is not answered is sent again after 1 s (RFC 6298), 3 s, 7 s: a connection then takes
/// that much longer than the quickest, give or take a tick of the kernel.
const SYN_AGAIN_US: f64 = 0.98e6;
/// Fewer connections than this share of all are no matter.
const AGAIN_SHARE: f64 = 0.001;

/// Warns, once, of closed loops that went as fast as their round trips allow, and of
/// connections that had to be asked for again.
pub(crate) fn of_closed_loop(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    ready: &[Ready],
    closed: &Loaded,
    result: &mut GroupResult,
) {
    let first = ready.iter().zip(&closed.readings);
    let first = first.filter(|(one, _)| cx.block == 1 && !one.planned.baseline_copy);
    for (one, load) in first {
        let subject = &one.subject.name;
        let bound = bound_by_distance(cx.options.experiment, resolved, subject, load);
        result.warnings.extend(bound);
        result
            .warnings
            .extend(asked_again(resolved, subject, &load.connect));
    }
}

/// The sentence for a closed loop that went as fast as its round trips allow: connections over
/// round trip, whatever the servers could do.
fn bound_by_distance(
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
    // A new connection takes a round trip of its own.
    let trips = if resolved.load.keepalive { 1.0 } else { 2.0 };
    let rtt_s = rtt_ns as f64 / 1e9 * trips;
    if rtt_s <= 0.0 {
        return None;
    }
    let connections = resolved.load.connections;
    let bound = f64::from(connections) / rtt_s;
    let measured = reading.requests_per_s();
    (measured > BOUND_SHARE * bound).then(|| {
        format!(
            "from host `{from}`, `{subject}` answered {measured:.0} requests/s in block 1, {:.0}% \
             of the {bound:.0} that {connections} connections can have in round trips of {:.0} ms: this \
             is the distance, not what the servers can do",
            measured / bound * 1e2,
            rtt_s * 1e3
        )
    })
}

/// The sentence for connections whose first SYN was dropped: by a full queue of connections that
/// the server has not accepted, or on the way.
fn asked_again(resolved: &ResolvedCondition, subject: &str, connect: &Histogram) -> Option<String> {
    let opened = connect.count();
    let buckets = connect.buckets_us();
    let quickest = buckets.first().map_or(0.0, |(us, _)| *us);
    let late = buckets.iter();
    let late = late.filter(|(us, _)| *us - quickest >= SYN_AGAIN_US);
    let late: u64 = late.map(|(_, count)| count).sum();
    (late > 0 && late as f64 > AGAIN_SHARE * opened as f64).then(|| {
        let condition = match &resolved.load.host {
            Some(host) => format!("from host `{host}`, "),
            None => String::new(),
        };
        format!(
            "{condition}{late} of {opened} connections to `{subject}` took a second longer to \
             open: their SYNs were dropped and sent again, as where the queue of connections to \
             accept is full"
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

    fn opened(fast: u64, late: u64) -> Histogram {
        let mut connect = Histogram::new();
        connect.record_many_ns(20_000_000, fast);
        connect.record_many_ns(1_030_000_000, late);
        connect
    }

    #[test]
    fn connections_that_took_a_second_were_asked_for_again() {
        let told = |fast, late| asked_again(&resolved(), "a", &opened(fast, late));
        let text = told(990, 10).unwrap();
        assert!(text.starts_with("10 of 1000 connections to `a`"), "{text}");
        assert_eq!(told(1000, 0), None);
        assert_eq!(told(10_000, 1), None);
        assert_eq!(told(0, 0), None);
    }
}
