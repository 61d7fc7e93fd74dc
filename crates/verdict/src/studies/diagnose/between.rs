//! What readings say side by side.

use readings::once;
use readings::{Tool, ToolReading};

use super::target::{authority, path};
use super::{Diagnosis, Figure, Finding, LevelFigures};

/// More throughput than this is a gain.
const GAIN: f64 = 0.1;
/// Latency that grows by at least this share of what the connections grow by is a queue's.
const QUEUE: f64 = 0.5;
/// Connections that grow by less say nothing.
const MORE_CONNECTIONS: f64 = 1.5;
/// Readings of the same load that differ by more are worth a word.
const DIFFERS: f64 = 1.1;

#[derive(Clone, Debug, PartialEq)]
struct Load {
    tool: Tool,
    operation: Option<String>,
    keepalive: Option<bool>,
    depth: Option<u64>,
    offered_per_s: Option<f64>,
    /// Which of the series of its target a reading belongs to.
    series: usize,
}

pub(super) fn findings(readings: &[ToolReading]) -> Vec<Finding> {
    let loads = loads(readings);
    let mut found = saturated(readings, &loads);
    found.extend(single_measurements(readings, &loads));
    found.extend(timed_twice(readings));
    found.extend(same_load_differs(readings, &loads));
    found
}

/// The loads of all readings. A series of a target ends where a number of connections comes back
/// after another one: then somebody began anew, often from another place.
fn loads(readings: &[ToolReading]) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for (i, r) in readings.iter().enumerate() {
        let of_target: Vec<usize> = (0..i)
            .filter(|j| readings[*j].url == r.url && readings[*j].tool == r.tool)
            .collect();
        let last = of_target.last().map_or(0, |j| loads[*j].series);
        let in_last = |j: &&usize| loads[**j].series == last;
        let seen = of_target
            .iter()
            .filter(in_last)
            .map(|j| readings[*j].connections);
        let seen: Vec<Option<u64>> = seen.collect();
        let comes_back = seen.contains(&r.connections) && seen.last() != Some(&r.connections);
        loads.push(Load {
            tool: r.tool,
            operation: r.operation.clone(),
            keepalive: r.keepalive,
            depth: r.depth,
            offered_per_s: r.offered_per_s,
            series: last + usize::from(comes_back),
        });
    }
    loads
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Pairs of neighbouring numbers of connections to one target where the larger brings nothing.
fn saturated(readings: &[ToolReading], loads: &[Load]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut done = vec![false; readings.len()];
    for i in 0..readings.len() {
        if done[i] || readings[i].url.is_none() {
            continue;
        }
        let group: Vec<usize> = (i..readings.len())
            .filter(|j| readings[*j].url == readings[i].url && loads[*j] == loads[i])
            .collect();
        for j in &group {
            done[*j] = true;
        }
        let usable = |j: &usize| {
            let r = &readings[*j];
            let positive = |v: Option<f64>| v.is_some_and(|v| v > 0.0);
            positive(r.requests_per_s)
                && positive(r.latency.mean_us)
                && r.offered_per_s.is_none()
                && r.connections.is_some_and(|c| c > 0)
        };
        let mut levels: Vec<u64> = group
            .iter()
            .filter(|j| usable(j))
            .filter_map(|j| readings[*j].connections)
            .collect();
        levels.sort_unstable();
        levels.dedup();
        let of_level = |level: u64| -> Vec<usize> {
            let at = |j: &usize| usable(j) && readings[*j].connections == Some(level);
            group.iter().copied().filter(at).collect()
        };
        for pair in levels.windows(2) {
            let [few, many] = [pair[0], pair[1]].map(of_level);
            found.extend(saturated_pair(readings, (pair[0], &few), (pair[1], &many)));
        }
    }
    found
}

fn saturated_pair(
    readings: &[ToolReading],
    (few, of_few): (u64, &[usize]),
    (many, of_many): (u64, &[usize]),
) -> Option<Finding> {
    let mean = |at: &[usize], figure: fn(&ToolReading) -> Option<f64>| {
        let values: Vec<f64> = at.iter().filter_map(|j| figure(&readings[*j])).collect();
        geometric_mean(&values)
    };
    let figures = |connections, at| LevelFigures {
        connections,
        requests_per_s: mean(at, |r| r.requests_per_s),
        mean_us: mean(at, |r| r.latency.mean_us),
    };
    let mut all: Vec<usize> = of_few.iter().chain(of_many).copied().collect();
    all.sort_unstable();
    let (few, many) = (figures(few, of_few), figures(many, of_many));
    let connections = many.connections as f64 / few.connections as f64;
    let is = connections >= MORE_CONNECTIONS
        && many.requests_per_s / few.requests_per_s < 1.0 + GAIN
        && many.mean_us / few.mean_us >= QUEUE * connections;
    is.then(|| Finding::new(all, Diagnosis::Saturated { few, many }))
}

/// Whether two readings are of the same load, whatever they were aimed at.
fn same_load(readings: &[ToolReading], loads: &[Load], i: usize, j: usize) -> bool {
    let (a, b) = (&readings[i], &readings[j]);
    loads[i] == loads[j]
        && a.connections == b.connections
        // A duration means something for the same work only, and how much work is as good as how
        // many connections to tell loads apart.
        && (a.requests == b.requests || (a.requests_per_s.is_some() && a.connections.is_some()))
}

/// Two targets whose comparison rests on one measurement of at least one of them.
fn single_measurements(readings: &[ToolReading], loads: &[Load]) -> Vec<Finding> {
    let targets = once(readings.iter().filter_map(authority));
    let mut found = Vec::new();
    for (n, first) in targets.iter().enumerate() {
        for second in &targets[n + 1..] {
            found.extend(single_pair(readings, loads, first, second));
        }
    }
    found
}

fn single_pair(
    readings: &[ToolReading],
    loads: &[Load],
    first: &str,
    second: &str,
) -> Option<Finding> {
    let of = |target: &str, i: usize| authority(&readings[i]) == Some(target);
    // What is alike to a reading: the same load on the same path of the given target.
    let alike = |target: &str, i: usize| -> Vec<usize> {
        (0..readings.len())
            .filter(|j| of(target, *j) && same_load(readings, loads, i, *j))
            .filter(|j| path(&readings[*j]) == path(&readings[i]))
            .collect()
    };
    let mut pairs: Vec<(usize, usize, f64)> = Vec::new();
    let mut once_each = true;
    for i in (0..readings.len()).filter(|i| of(first, *i)) {
        let (ours, theirs) = (alike(first, i), alike(second, i));
        let (Some(a), Some(b)) = (ours.first(), theirs.first()) else {
            continue;
        };
        // Once for each load, and only where one of the two stands alone.
        if *a != i || (ours.len() > 1 && theirs.len() > 1) {
            continue;
        }
        let figures = Figure::of(&readings[*a]).zip(Figure::of(&readings[*b]));
        if let Some(ratio) = figures.and_then(|(a, b)| b.ratio_to(a)) {
            pairs.push((*a, *b, ratio));
            once_each &= ours.len() == 1 && theirs.len() == 1;
        }
    }
    let (a, b, _) = *pairs.first()?;
    let mut involved: Vec<usize> = pairs.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
    involved.sort_unstable();
    let diagnosis = Diagnosis::TargetsOnce {
        first: first.to_owned(),
        second: second.to_owned(),
        once_each,
        figures: (Figure::of(&readings[a])?, Figure::of(&readings[b])?),
        ratios: pairs.iter().map(|(_, _, ratio)| *ratio).collect(),
    };
    Some(Finding::new(involved, diagnosis))
}

/// Two commands that `time` timed and nothing tells what they were: what a text with two of them
/// compares.
fn timed_twice(readings: &[ToolReading]) -> Option<Finding> {
    let unnamed = |r: &ToolReading| r.url.is_none() && r.command.is_none();
    let timed: Vec<usize> = (0..readings.len())
        .filter(|i| readings[*i].tool == Tool::Time && unnamed(&readings[*i]))
        .collect();
    let [first, second] = timed[..] else {
        return None;
    };
    let (a, b) = (
        Figure::of(&readings[first])?,
        Figure::of(&readings[second])?,
    );
    let diagnosis = Diagnosis::TimedOnce {
        first: a,
        second: b,
        ratio: b.ratio_to(a)?,
    };
    Some(Finding::new(timed, diagnosis))
}

/// Readings of one target under one load that lie far apart: either two set-ups that nothing in
/// the text tells apart, or noise.
fn same_load_differs(readings: &[ToolReading], loads: &[Load]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut done = vec![false; readings.len()];
    for i in 0..readings.len() {
        if done[i] {
            continue;
        }
        let group: Vec<usize> = (i..readings.len())
            .filter(|j| readings[*j].url == readings[i].url && same_load(readings, loads, i, *j))
            .collect();
        for j in &group {
            done[*j] = true;
        }
        let mut figures: Vec<(Figure, f64)> = group
            .iter()
            .filter_map(|j| {
                let (first, here) = (Figure::of(&readings[i])?, Figure::of(&readings[*j])?);
                Some((here, here.ratio_to(first)?))
            })
            .collect();
        figures.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (Some((low, a)), Some((high, b))) = (figures.first(), figures.last()) else {
            continue;
        };
        let ratio = b / a;
        // What `timed_twice` has told.
        let told = readings[i].tool == Tool::Time
            && figures.len() == 2
            && group.iter().all(|j| readings[*j].command.is_none());
        if figures.len() < 2 || ratio <= DIFFERS || told {
            continue;
        }
        let (count, low, high) = (figures.len(), *low, *high);
        let diagnosis = Diagnosis::SameLoadDiffers {
            count,
            low,
            high,
            ratio,
        };
        found.push(Finding::new(group, diagnosis));
    }
    found
}
