//! What one reading leaves out, and who made the load.

use readings::{ErrorCounts, Tool, ToolReading};

use super::target::is_loopback;
use super::{CountedFailures, Diagnosis, Finding, little};

/// A client that uses this share of its threads' cores may be the limit.
const BUSY: f64 = 0.8;

pub(super) fn findings(readings: &[ToolReading], i: usize) -> Vec<Finding> {
    let r = &readings[i];
    let said = (!r.said.is_empty()).then(|| Diagnosis::Said(r.said.clone()));
    let (late, failed) = match failures(r) {
        Some(failures) => (Some(failures), None),
        None => (timeouts(r), errors(r)),
    };
    let found = [
        late,
        failed,
        wrong_answers(r),
        other_length(r),
        said,
        client_busy(r),
    ];
    let found = found.into_iter().flatten();
    found
        .map(|diagnosis| Finding::new(vec![i], diagnosis))
        .collect()
}

/// Failures in a latency, or of an unknown kind.
fn failures(r: &ToolReading) -> Option<Diagnosis> {
    let errors = ErrorCounts {
        status: 0,
        verify: 0,
        ..r.errors
    };
    let in_latency = r.tool.times_failures() && r.requests != Some(0);
    let is_one = errors.unexplained > 0 || (in_latency && errors.total() > 0);
    is_one.then_some(Diagnosis::Failures {
        errors,
        answered: r.requests,
        in_latency,
        counted: counted(r),
    })
}

/// The failures of an unknown kind that are among a reading's requests.
fn counted(r: &ToolReading) -> Option<CountedFailures> {
    let failed = Some(r.errors.unexplained).filter(|n| *n > 0 && r.tool.counts_failures())?;
    let requests = r.requests.filter(|n| *n >= failed)?;
    let share = failed as f64 / requests as f64;
    Some(CountedFailures {
        requests,
        share,
        good_per_s: r.requests_per_s.map(|rate| rate * (1.0 - share)),
    })
}

fn timeouts(r: &ToolReading) -> Option<Diagnosis> {
    let timeouts = r.errors.timeout;
    let answered = r.requests.filter(|n| *n > 0);
    // wrk counts a late answer as an answer and as a timeout.
    let others = match r.tool {
        Tool::Wrk | Tool::Wrk2 => 0,
        _ => timeouts,
    };
    let share = answered.map(|n| timeouts as f64 / n.saturating_add(others) as f64);
    (timeouts > 0).then_some(Diagnosis::Timeouts {
        requests: timeouts,
        share: share.filter(|share| *share <= 1.0),
    })
}

fn errors(r: &ToolReading) -> Option<Diagnosis> {
    let e = r.errors;
    (e.connect + e.read + e.write > 0).then_some(Diagnosis::ErrorsLeftOut {
        errors: e,
        answered: r.requests,
        opened: little::opened(r),
    })
}

fn wrong_answers(r: &ToolReading) -> Option<Diagnosis> {
    let wrong = r.errors.status;
    if wrong == 0 {
        return None;
    }
    let requests = r.requests.filter(|n| *n >= wrong)?;
    let share = wrong as f64 / requests as f64;
    Some(Diagnosis::WrongAnswersAsSpeed {
        wrong,
        requests,
        share,
        good_per_s: r.requests_per_s.map(|rate| rate * (1.0 - share)),
    })
}

fn other_length(r: &ToolReading) -> Option<Diagnosis> {
    let answers = r.errors.verify;
    (answers > 0).then_some(Diagnosis::OtherLength {
        answers,
        requests: r.requests?,
    })
}

/// CPU time of the client over the length of the run: 1 is one core.
fn client_cores(r: &ToolReading) -> Option<f64> {
    let duration_s = r.duration_s.filter(|d| *d > 0.0)?;
    Some(r.client_cpu_s? / duration_s)
}

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
        let cores = all.iter().filter_map(|j| client_cores(&readings[*j]));
        let client_cores = cores.reduce(f64::max);
        found.push(Finding::new(all, Diagnosis::OnLoopback { client_cores }));
    }
    found
}

fn client_busy(r: &ToolReading) -> Option<Diagnosis> {
    // httperf waits by asking again and again: it is always busy. What `time` timed may be anything.
    if matches!(r.tool, Tool::Httperf | Tool::Time) {
        return None;
    }
    let (cores, threads) = (client_cores(r)?, r.threads.unwrap_or(1).max(1));
    let busy = cores / threads as f64;
    (busy >= BUSY).then_some(Diagnosis::ClientBusy { cores, threads })
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
    let diagnosis = Diagnosis::CorrectedAfterwards {
        longest_us: first.latency.max_us?,
        limit_us: limit_us(first)?,
    };
    Some(Finding::new(changed, diagnosis))
}
