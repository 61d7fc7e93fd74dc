//! What the reader of a result should know about its trials.

use std::collections::BTreeSet;

use readings::{Condition, LoadReading};

use crate::comparison::compare::Unresolved;
use crate::comparison::pairs::others::cpus_of_others;
use crate::comparison::withhold::slices::SliceBias;
use crate::stats::sample::FEWEST_BLOCKS;
use crate::stats::steady::memory;
use crate::summary::warnings::upstreams;
use crate::trial::cells::{Cell, Cells};
use crate::trial::drift::{self, Drift, drift};
use crate::trial::pauses;
use crate::{Comparison, Metric, NoiseFloor, Place, Rules, Warning};

/// Below this share of the offered rate the servers did not keep up.
const KEPT_SHARE: f64 = 0.95;

/// What the reader of the result should know before trusting it.
pub(crate) fn warnings(
    rules: &Rules,
    cells: &Cells<'_>,
    comparisons: &[Comparison],
    floors: &[NoiseFloor],
    unresolved: &[Unresolved],
) -> Vec<Warning> {
    let mut found = Vec::new();
    for floor in floors.iter().filter(|f| f.is_biased(rules.matters)) {
        found.push(Warning::BiasedBaseline {
            floor: floor.clone(),
            matters: rules.matters,
        });
    }
    for floor in floors.iter().filter(|f| is_too_wide(rules, f)) {
        found.push(Warning::WideFloor {
            floor: floor.clone(),
            matters: rules.matters,
        });
    }
    found.extend(comparisons.iter().filter_map(unsettled));
    found.extend(other_programs(cells, comparisons));
    found.extend(steady_state_unchecked(cells));
    found.extend(
        comparisons
            .iter()
            .filter_map(|c| dependent_blocks(c, comparisons.len())),
    );
    for condition in &cells.conditions {
        found.extend(drifts(rules, cells, condition));
        // Where load generators are compared, each is to do as much as it can.
        let of_drivers = cells.drivers_differ(condition);
        for subject in &cells.subjects {
            let trials = cells.of_subject(condition, subject, false);
            let trials: Vec<&Cell<'_>> = trials.into_values().collect();
            let at = Place {
                subject: subject.clone(),
                condition: condition.clone(),
            };
            if *subject != rules.baseline {
                let all = comparisons.len();
                found.extend(depends_on_length(rules, cells, condition, subject, all));
            }
            found.extend(at_least(&at, &trials).filter(|_| !of_drivers));
            let had_events = |cell: &&Cell<'_>| cell.reading().is_some_and(|r| r.events.is_some());
            if trials.iter().any(had_events) {
                // What failed or came late then is the result, and no latency is compared.
                continue;
            }
            found.extend(rate_not_kept(&at, &trials));
            found.extend(client_pauses(&at, &trials));
            found.extend(errors(&at, &trials));
            found.extend(handshakes(&at, &trials));
            found.extend(idle_connections(&at, &trials));
            found.extend(lost_syns(&at, &trials));
        }
    }
    found.extend(unresolved.iter().map(|one| Warning::Unresolved {
        at: Place {
            subject: one.subject.clone(),
            condition: one.condition.clone(),
        },
        metric: one.metric,
        known: one.quantiles.map(|(ours, _)| ours),
        resolved_by: one.resolved_by(),
    }));
    found.extend(uncounted(cells));
    found.extend(upstreams::warnings(rules, cells, comparisons));
    let recorded = cells.trial_warnings().into_iter();
    found.extend(recorded.map(|(text, trials)| Warning::Recorded { text, trials }));
    found
}

/// The subjects whose rate changed while it was measured. Where all of them became slower, the machine
/// did; where all became faster, none was warm.
fn drifts(rules: &Rules, cells: &Cells<'_>, condition: &Condition) -> Vec<Warning> {
    let looked_at = cells.conditions.len() * cells.subjects.len();
    let of_subject = |subject: &String| {
        let trials = cells.of_subject(condition, subject, false);
        let trials: Vec<&Cell<'_>> = trials.into_values().collect();
        let at = Place {
            subject: subject.clone(),
            condition: condition.clone(),
        };
        Some((at, drift(&trials, rules.delta(), looked_at)?))
    };
    let found: Vec<(Place, Drift)> = cells.subjects.iter().filter_map(of_subject).collect();
    let is_slower = |(_, found): &(Place, Drift)| found.late_over_early < 1.0;
    let subjects = cells.subjects.len();
    if subjects > 1 && found.iter().filter(|one| is_slower(one)).count() == subjects {
        return Vec::new();
    }
    let found = found.into_iter();
    found
        .map(|(at, found)| Warning::Drifts { at, found })
        .collect()
}

/// Fewer blocks than this say nothing on how they follow each other.
const FEWEST_IN_A_ROW: usize = 8;

/// Floors of throughput and median latency that are wider than the margin: more precise verdicts
/// than that are not to be had here in as many blocks.
fn is_too_wide(rules: &Rules, floor: &NoiseFloor) -> bool {
    matches!(floor.metric, Metric::RequestsPerS | Metric::LatencyUsP50)
        && !floor.is_biased(rules.matters)
        && floor.is_wide(rules.matters)
}

/// Said where no subject has slices and blocks enough to see it change.
fn steady_state_unchecked(cells: &Cells<'_>) -> Option<Warning> {
    let loads = || cells.counted().filter(|cell| cell.throughput().is_some());
    let slices = loads().filter_map(Cell::throughput);
    let slices = slices.map(|load| load.slices.len()).max()?;
    let blocks = loads().map(|cell| cell.trial.block);
    let blocks = blocks.collect::<BTreeSet<u32>>().len();
    (slices > 1 && !drift::is_checked(slices, blocks)).then_some(Warning::SteadyStateUnchecked {
        slices: [slices, drift::SLICES_MIN],
        blocks: [blocks, FEWEST_BLOCKS],
    })
}

fn place(c: &Comparison) -> Place {
    Place {
        subject: c.subject.clone(),
        condition: c.condition.clone(),
    }
}

/// Blocks that are like the ones before them are less evidence than their number says.
fn dependent_blocks(c: &Comparison, comparisons: usize) -> Option<Warning> {
    if c.by_block.len() < FEWEST_IN_A_ROW {
        return None;
    }
    let logs: Vec<f64> = c.by_block.iter().map(|b| b.ratio.ln()).collect();
    Some(Warning::DependentBlocks {
        at: place(c),
        baseline: c.baseline.clone(),
        metric: c.metric,
        lag1: memory(&logs, comparisons)?,
        blocks: logs.len(),
    })
}

/// The subject itself, not the machine, still changed while it was measured.
fn unsettled(c: &Comparison) -> Option<Warning> {
    (c.unsettled_blocks * 2 > c.by_block.len()).then(|| Warning::Unsettled {
        at: place(c),
        baseline: c.baseline.clone(),
        unsettled: c.unsettled_blocks,
        blocks: c.by_block.len(),
    })
}

fn at_least(at: &Place, trials: &[&Cell<'_>]) -> Option<Warning> {
    let loads: Vec<&LoadReading> = trials.iter().filter_map(|c| c.throughput()).collect();
    let limited = loads.iter().filter(|l| l.client.saturated).count();
    (limited > 0).then(|| Warning::AtLeast {
        at: at.clone(),
        limited,
        trials: loads.len(),
    })
}

/// Shorter pauses, by the share of time that is left out with them, are not told.
const LEFT_OUT_SHARE: f64 = 0.005;

fn client_pauses(at: &Place, trials: &[&Cell<'_>]) -> Option<Warning> {
    let usable = trials.iter().filter(|cell| cell.latency_flaws.is_empty());
    let found = pauses::of_loads(usable.filter_map(|cell| cell.latency()))?;
    (found.share_left_out >= LEFT_OUT_SHARE).then(|| Warning::ClientPauses {
        at: at.clone(),
        found,
    })
}

/// The trial that kept the smallest share of its rate, if any kept too little.
fn rate_not_kept(at: &Place, trials: &[&Cell<'_>]) -> Option<Warning> {
    let kept = trials
        .iter()
        .filter_map(|c| c.latency())
        .filter_map(|load| Some((load.answered_per_s(), load.offered_requests_per_s()?)));
    let (answered_per_s, offered_per_s) = kept
        .filter(|(got, offered)| *got < KEPT_SHARE * offered)
        .reduce(|a, b| if b.0 / b.1 < a.0 / a.1 { b } else { a })?;
    Some(Warning::RateNotKept {
        at: at.clone(),
        answered_per_s,
        offered_per_s,
    })
}

/// The status of an upgrade to another protocol (RFC 9110, 15.2.2).
const UPGRADED: u16 = 101;

/// Whether the answers of a load were upgrades to another protocol. The load measures their handshakes
/// and none of what may follow on the connections. A load of messages measures those.
pub fn is_of_handshakes(load: &LoadReading) -> bool {
    let answers: u64 = load.statuses.iter().map(|one| one.count).sum();
    let upgrades = load.statuses.iter().filter(|one| one.status == UPGRADED);
    let upgrades: u64 = upgrades.map(|one| one.count).sum();
    load.lasting.is_none() && 2 * upgrades > answers
}

fn handshakes(at: &Place, trials: &[&Cell<'_>]) -> Option<Warning> {
    let loads = trials.iter().flat_map(|c| [c.throughput(), c.latency()]);
    let mut loads = loads.flatten();
    loads
        .any(is_of_handshakes)
        .then(|| Warning::Handshakes { at: at.clone() })
}

/// Connections that are busy for less than this share of the time stood still.
const BUSY_SHARE: f64 = 0.8;

/// By Little's law a closed loop has requests/s times mean latency of its connections busy; the
/// others wait for something that no answer's latency shows.
fn idle_connections(at: &Place, trials: &[&Cell<'_>]) -> Option<Warning> {
    let busy: Vec<(f64, u64)> = trials
        .iter()
        .filter_map(|c| c.throughput())
        .filter(|load| !load.client.saturated && load.response.count() > 0)
        .filter_map(|load| {
            let opened = load.connects as f64 / load.requests_all.max(1) as f64;
            let response_s = load.response.quantiles().mean / 1e6;
            let connect_s = load.connect.quantiles().mean / 1e6;
            let slice_s = load.slices.iter().map(|s| s.duration_s);
            // Requests that a slice's edge cut off are not in the count.
            let shortest_s = slice_s.fold(load.duration_s, f64::min);
            (response_s < shortest_s / 10.0).then(|| {
                let busy = load.requests_per_s() * (response_s + opened * connect_s);
                (busy, load.connections)
            })
        })
        .collect();
    let still = |(busy, all): &&(f64, u64)| *busy < BUSY_SHARE * *all as f64;
    let idle: Vec<&(f64, u64)> = busy.iter().filter(still).collect();
    if idle.len() * 2 <= busy.len() {
        return None;
    }
    let (busy, connections) = *idle.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Warning::IdleConnections {
        at: at.clone(),
        busy,
        connections,
    })
}

/// A SYN that gets no answer is sent again after a second (RFC 6298).
const SYN_AGAIN_US: f64 = 0.95e6;

fn lost_syns(at: &Place, trials: &[&Cell<'_>]) -> Option<Warning> {
    let (mut late, mut all, mut median_us) = (0, 0, f64::INFINITY);
    let loads = trials
        .iter()
        .flat_map(|c| [c.throughput(), c.latency()])
        .flatten();
    for load in loads.filter(|l| l.connect.count() > 0) {
        all += load.connect.count();
        median_us = median_us.min(load.connect.quantile_us(0.5));
        if load.connect.quantile_us(1.0) >= SYN_AGAIN_US {
            let slow = load.connect.buckets_us().into_iter();
            late += slow
                .filter(|(us, _)| *us >= SYN_AGAIN_US)
                .map(|(_, n)| n)
                .sum::<u64>();
        }
    }
    (late > 0 && median_us < SYN_AGAIN_US / 2.0).then(|| Warning::LostSyns {
        at: at.clone(),
        late,
        connections: all,
        median_us,
    })
}

/// Errors that are too few to make a load invalid, but missing from its latency.
fn errors(at: &Place, trials: &[&Cell<'_>]) -> Option<Warning> {
    let loads = trials
        .iter()
        .flat_map(|c| [c.throughput(), c.latency()])
        .flatten();
    let (mut failed, mut all) = (0, 0);
    for load in loads {
        failed += load.errors_all.total();
        all += load.errors_all.total() + load.requests_all;
    }
    (failed > 0).then(|| Warning::Errors {
        at: at.clone(),
        failed,
        requests: all,
    })
}

/// What other programs took, and the smallest difference that can still be told: half of the widest
/// interval of throughput.
fn other_programs(cells: &Cells<'_>, comparisons: &[Comparison]) -> Option<Warning> {
    let others = cpus_of_others(cells, &cells.conditions)?;
    let of_throughput = comparisons
        .iter()
        .filter(|c| c.metric == Metric::RequestsPerS);
    let half = of_throughput
        .filter_map(|c| c.interval())
        .map(|(low, high)| (high / low).sqrt() - 1.0)
        .reduce(f64::max);
    Some(Warning::OtherPrograms {
        others,
        least_difference: half,
    })
}

/// The warning where the slices shift the throughput ratio by more than the margin.
fn depends_on_length(
    rules: &Rules,
    cells: &Cells<'_>,
    place: &Condition,
    subject: &str,
    comparisons: usize,
) -> Option<Warning> {
    let bias = SliceBias::of(cells, place, (subject, &rules.baseline), comparisons)?;
    bias.matters(rules).then(|| Warning::SliceLength {
        at: Place {
            subject: subject.to_owned(),
            condition: place.clone(),
        },
        baseline: rules.baseline.clone(),
        ratio: bias.log_bias.exp(),
        blocks: bias.blocks,
    })
}

/// The servers of which CPU time may be missing.
fn uncounted(cells: &Cells<'_>) -> Option<Warning> {
    let readings = cells.counted().filter_map(|cell| cell.reading());
    let looks = readings.flat_map(|one| [&one.probed, &one.latency_probed]);
    let servers = looks.flatten().flat_map(|seen| &seen.servers);
    let names: BTreeSet<&String> = servers
        .filter(|(_, server)| server.children_uncounted)
        .map(|(name, _)| name)
        .collect();
    let names: Vec<String> = names.into_iter().cloned().collect();
    (!names.is_empty()).then_some(Warning::UncountedCpu(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, in_closed, measured, trial};
    use readings::{ServerMetrics, StatusCount, SystemMetrics};

    #[test]
    fn a_load_of_upgrades_is_known() {
        let of = |statuses: &[(u16, u64)]| {
            let mut load = closed(1000.0);
            let statuses = statuses.iter();
            load.statuses = statuses
                .map(|(status, count)| StatusCount {
                    status: *status,
                    count: *count,
                })
                .collect();
            let trials = [in_closed(1, "direct", load)];
            let analysis = crate::fixtures::analyse(&header(1), &trials);
            let is_it = |one: &Warning| matches!(one, Warning::Handshakes { .. });
            analysis.warnings.iter().any(is_it)
        };
        assert!(of(&[(101, 900), (503, 100)]));
        assert!(!of(&[(200, 900), (101, 100)]) && !of(&[]));
    }

    #[test]
    fn a_server_of_which_cpu_time_may_be_missing_is_named() {
        let uncounted_of = |children_uncounted| {
            let mut outcome = done(Some(closed(1000.0)), None);
            let reading = measured(&mut outcome);
            let nginx = ServerMetrics {
                children_uncounted,
                ..ServerMetrics::default()
            };
            reading.probed = Some(SystemMetrics {
                servers: [("nginx".to_owned(), nginx)].into(),
                ..SystemMetrics::default()
            });
            let trials = [trial(1, "direct", false, outcome)];
            let header = header(1);
            uncounted(&Cells::of(&header, &trials))
        };
        assert_eq!(uncounted_of(false), None);
        let expected = Warning::UncountedCpu(vec!["nginx".to_owned()]);
        assert_eq!(uncounted_of(true), Some(expected));
    }
}
