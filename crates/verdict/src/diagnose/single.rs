//! What one reading leaves out, and who made the load.

use readings::{Tool, ToolReading};

use super::name::{is_loopback, lines, name, part, per_s, share, time};
use super::{Finding, FindingKind};
use crate::text::{counted, grouped};

/// A client that uses this share of its threads' cores may be the limit.
const BUSY: f64 = 0.8;

pub(super) fn findings(readings: &[ToolReading], i: usize) -> Vec<Finding> {
    let r = &readings[i];
    [
        timeouts(r).map(|s| (FindingKind::Timeouts, s)),
        errors(r).map(|s| (FindingKind::ErrorsLeftOut, s)),
        wrong_answers(r).map(|s| (FindingKind::WrongAnswersAsSpeed, s)),
        client_busy(r).map(|s| (FindingKind::ClientBusy, s)),
    ]
    .into_iter()
    .flatten()
    .map(|(kind, sentence)| Finding {
        readings: vec![i],
        kind,
        sentence,
    })
    .collect()
}

fn timeouts(r: &ToolReading) -> Option<String> {
    let timeouts = r.errors.timeout;
    if timeouts == 0 {
        return None;
    }
    let mut text = format!(
        "{}: {} ran into the time limit",
        name(r),
        counted(timeouts as usize, "request")
    );
    if let Some(requests) = r.requests.filter(|n| *n > 0) {
        let of = timeouts as f64 / (requests + timeouts) as f64;
        text.push_str(&format!(" ({} of all)", part(of)));
    }
    text.push_str(match (r.latency.mean_us, r.latency.max_us) {
        (None, None) => "",
        _ => ", the slowest of all, and the latency leaves them out",
    });
    if let Some(mean_us) = r.latency.mean_us {
        text.push_str(&format!(": its mean of {} is too small", time(mean_us)));
    }
    Some(text + ".")
}

fn errors(r: &ToolReading) -> Option<String> {
    let e = &r.errors;
    let kinds: Vec<String> = [(e.connect, "connect"), (e.read, "read"), (e.write, "write")]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", grouped(*count)))
        .collect();
    if kinds.is_empty() {
        return None;
    }
    let failed = e.connect + e.read + e.write;
    let of = r.requests.map_or(String::new(), |n| {
        format!(" beside {} that were answered", grouped(n))
    });
    Some(format!(
        "{}: {} failed on the way ({}){of}; the latency leaves them out.",
        name(r),
        counted(failed as usize, "request"),
        super::name::listed(&kinds)
    ))
}

fn wrong_answers(r: &ToolReading) -> Option<String> {
    let wrong = r.errors.wrong_answers();
    if wrong == 0 {
        return None;
    }
    let requests = r.requests.filter(|n| *n >= wrong)?;
    let of = wrong as f64 / requests as f64;
    let good = r.requests_per_s.map_or(String::new(), |rate| {
        format!(
            ": {} requests/s are {} good ones",
            per_s(rate),
            per_s(rate * (1.0 - of))
        )
    });
    Some(format!(
        "{}: {} of {} answers ({}) were not the expected ones, and count as throughput{good}.",
        name(r),
        grouped(wrong),
        grouped(requests),
        part(of)
    ))
}

/// CPU time of the client over the length of the run: 1 is one core.
fn client_cores(r: &ToolReading) -> Option<f64> {
    let duration_s = r.duration_s.filter(|d| *d > 0.0)?;
    Some(r.client_cpu_s? / duration_s)
}

/// One finding for each target on the client's own machine.
pub(super) fn same_machine(readings: &[ToolReading]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut done = vec![false; readings.len()];
    for i in 0..readings.len() {
        let r = &readings[i];
        if done[i] || !is_loopback(r) {
            continue;
        }
        let like = |j: &usize| {
            let o = &readings[*j];
            is_loopback(o) && o.tool == r.tool && o.url == r.url
        };
        let all: Vec<usize> = (i..readings.len()).filter(like).collect();
        for j in &all {
            done[*j] = true;
        }
        let rows: Vec<&ToolReading> = all.iter().map(|j| &readings[*j]).collect();
        let named = match (all.len(), lines(&rows)) {
            (1, _) => name(r),
            (n, Some(at)) => format!("{}, {} ({at})", r.tool, counted(n, "reading")),
            (n, None) => format!("{}, {}", r.tool, counted(n, "reading")),
        };
        let target = r.url.as_deref().unwrap_or("127.0.0.1, its default");
        let most = rows.iter().filter_map(|r| client_cores(r)).reduce(f64::max);
        let cpu = most.map_or(String::new(), |cores| {
            format!(" ({} took {} of a core itself)", r.tool, share(cores))
        });
        found.push(Finding {
            sentence: format!(
                "{named}: the target is {target}, so client and server took CPU time from each \
                 other{cpu}: the throughput is that of the two together."
            ),
            readings: all,
            kind: FindingKind::SameMachine,
        });
    }
    found
}

fn client_busy(r: &ToolReading) -> Option<String> {
    // httperf waits by asking again and again: it is always busy. What `time` timed may be anything.
    if matches!(r.tool, Tool::Httperf | Tool::Time) {
        return None;
    }
    let (cores, threads) = (client_cores(r)?, r.threads.unwrap_or(1).max(1));
    let busy = cores / threads as f64;
    (busy >= BUSY).then(|| {
        format!(
            "{}: {} used {} of a core in {}: the client may be what set the throughput, so the \
             figure is a lower bound.",
            name(r),
            r.tool,
            share(cores),
            counted(threads as usize, "thread")
        )
    })
}

/// One finding for all readings of wrk whose latencies it has changed: for each latency above the
/// mean time between two requests of a connection it adds those that it thinks are missing.
pub(super) fn corrected(readings: &[ToolReading]) -> Option<Finding> {
    let limit_us = |r: &ToolReading| {
        let rate = r.requests_per_s.filter(|rate| *rate > 0.0)?;
        (r.tool == Tool::Wrk).then_some(r.connections? as f64 * 1e6 / rate)
    };
    let changed: Vec<usize> = (0..readings.len())
        .filter(|i| {
            let r = &readings[*i];
            // It adds values at whole distances below: from twice the distance on there are some.
            let most = r.latency.max_us;
            limit_us(r)
                .zip(most)
                .is_some_and(|(limit, most)| most > 2.0 * limit)
        })
        .collect();
    let first = &readings[*changed.first()?];
    let (limit, most) = (limit_us(first)?, first.latency.max_us?);
    let all: Vec<&ToolReading> = changed.iter().map(|i| &readings[*i]).collect();
    let at = lines(&all).map_or(String::new(), |l| format!(" ({l})"));
    Some(Finding {
        sentence: format!(
            "wrk 4 corrects latencies after the fact: for each that is longer than connections / \
             requests/s it adds shorter ones that were not measured. In {}{at} the longest is more \
             than twice that, as {} over {} in the first of them; mean and quantiles there are \
             partly made up.",
            counted(changed.len(), "reading"),
            time(most),
            time(limit)
        ),
        readings: changed,
        kind: FindingKind::CorrectedAfterwards,
    })
}
