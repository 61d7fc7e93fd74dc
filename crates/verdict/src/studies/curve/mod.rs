//! Latency against offered rate, for each subject, with intervals over blocks.
//!
//! A point is an open loop with Poisson arrivals at one rate in one block. The block is the unit of
//! evidence here too: a band is the t interval of the logarithms of the blocks' quantiles. A point
//! beyond what the subject carried has no latency: it is overloaded.

pub mod words;

mod bounds;
mod contrast;
mod point;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use readings::{Condition, CurveChoice, CurvePoint, LoadReading, RunHeader};
use serde::{Serialize, Serializer};

use crate::stats::sample::Sample;
use crate::trial::cells::{Cell, Cells};

pub use bounds::{BoundRate, Passes};
pub use contrast::{Contrast, Crossing, Lower};
pub use point::PointFlaw;
use point::{QUANTILES, Seen, judge};

/// Confidence of the bands, at each rate on its own.
const CONFIDENCE: f64 = 0.95;
/// Fewer blocks give no interval.
const BLOCKS_MIN: usize = 3;
/// Half of a histogram's step, as a fraction: no interval is narrower.
const HALF_STEP: f64 = 0.0005;
/// A slice is long enough for a queue to settle from so many of its relaxation times on ...
const SETTLINGS: f64 = 5.0;
/// ... and the window of a point if it holds so many such slices: quantiles of few relaxation times are
/// too low even in equilibrium. Both come from simulation: of M/M/1, in slices that begin empty, the bands
/// of p99 hold the truth from there on.
const SLICES_MIN: f64 = 10.0;
/// Bounds of the 99th percentile where the journal names none, us.
const BOUNDS_US: [f64; 4] = [1e3, 5e3, 10e3, 50e3];

/// Latency against offered rate under one condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyCurves {
    pub condition: Condition,
    pub baseline: String,
    pub blocks: usize,
    /// Confidence of the bands, at each rate on its own.
    pub confidence: f64,
    /// The highest rate that the client was held to be able to offer.
    pub client_per_s: Option<f64>,
    /// The subjects, as declared.
    pub subjects: Vec<SubjectCurve>,
    /// Every two subjects at every quantile: which of them is lower, and where they cross.
    pub contrasts: Vec<Contrast>,
}

/// Requests of a slice, its ramp-up left out, after which the queue of a server that is offered this
/// share of what it carries has settled; infinite from all of it on.
///
/// The relaxation time of M/M/1 is 1 / (capacity (1 - sqrt(share))^2); near the capacity other queues
/// with one service time's variance take as many requests.
///
/// Source: J. W. Cohen, The Single Server Queue (1982), II.2.
pub fn settling_requests(share: f64) -> f64 {
    match share < 1.0 {
        true => SETTLINGS * share / (1.0 - share.max(0.0).sqrt()).powi(2),
        false => f64::INFINITY,
    }
}

/// One subject's curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubjectCurve {
    pub subject: String,
    /// What it carried in the closed loop of the first block.
    pub capacity_per_s: Option<f64>,
    /// At the rates that all subjects are offered, ascending.
    pub rates: Vec<CurveRow>,
    /// At shares of its own capacity, ascending.
    pub shares: Vec<CurveRow>,
    /// The rate at which the 99th percentile passes each bound.
    pub bounds: Vec<BoundRate>,
    /// The points of each block, from which the bounds follow.
    #[serde(skip)]
    levels: Vec<Vec<Level>>,
}

/// The 99th percentile at one rate in one block; overloaded without it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    rate_per_s: f64,
    us: Option<f64>,
    carried_per_s: Option<f64>,
    settled: bool,
}

/// One subject at one rate, over the blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveRow {
    /// Requests offered per second.
    pub rate_per_s: f64,
    /// The share of the subject's own capacity, where the point was asked for so.
    pub share: Option<f64>,
    /// Blocks that can be used, the overloaded ones included.
    pub blocks: usize,
    /// Blocks in which more was offered than was carried.
    pub overloaded: usize,
    /// Blocks that cannot be used.
    pub unusable: usize,
    /// The flaw of the first of them. In JSON `report` replaces it by a sentence.
    #[serde(serialize_with = "without_words")]
    pub reason: Option<PointFlaw>,
    /// What was carried in the overloaded blocks: geometric mean, requests per second.
    pub carried_per_s: Option<f64>,
    /// Whether slices were long enough for the subject's queue to settle, by the share of its closed
    /// loop's throughput that the rate is; otherwise the latency is too low.
    pub settled: bool,
    /// The window of a point that would be long enough, s; absent where it settled.
    pub settles_in_s: Option<f64>,
    /// The response latency by quantile, in microseconds; none with an overloaded block.
    pub latency_us: Vec<Estimate>,
    /// Its ratio to the baseline's at the same rate; none for the baseline and at shares.
    pub ratio: Vec<Estimate>,
}

fn without_words<S: Serializer>(_: &Option<PointFlaw>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_none()
}

impl SubjectCurve {
    /// The 99th percentile at each rate, us, block by block; absent where the subject was overloaded.
    pub fn p99_by_block(&self) -> impl Iterator<Item = Vec<(f64, Option<f64>)>> {
        let of = |levels: &Vec<Level>| levels.iter().map(|one| (one.rate_per_s, one.us)).collect();
        self.levels.iter().map(of)
    }
}

impl CurveRow {
    /// The estimate of a quantile's latency.
    pub fn latency(&self, quantile: f64) -> Option<&Estimate> {
        self.latency_us.iter().find(|one| one.quantile == quantile)
    }
}

/// A geometric mean over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub quantile: f64,
    pub value: f64,
    /// The lower end of the interval; absent with fewer than three blocks.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    pub blocks: usize,
}

/// One subject's points by block, judged; in the order of their rates.
struct Observed {
    subject: String,
    rates: Vec<Column>,
    shares: Vec<Column>,
}

/// A rate with what was seen in each block.
struct Column {
    rate_per_s: f64,
    share: Option<f64>,
    by_block: BTreeMap<u32, Seen>,
    /// The requests of a slice in the last block.
    requests_per_slice: f64,
    slices: u32,
    /// How many it takes for the queue to settle; absent where no closed loop says what the subject carries.
    settling_requests: Option<f64>,
}

/// The curves of every condition that has any.
pub(crate) fn curves(header: &RunHeader, cells: &Cells<'_>) -> Vec<LatencyCurves> {
    let all = cells.conditions.iter();
    all.filter_map(|condition| under(header, cells, condition))
        .collect()
}

fn under(header: &RunHeader, cells: &Cells<'_>, condition: &Condition) -> Option<LatencyCurves> {
    let observed: Vec<Observed> = cells
        .subjects
        .iter()
        .map(|subject| {
            let trials = cells.of_subject(condition, subject, false);
            Observed::of(subject, &trials, header.max_error)
        })
        .filter(|one| !one.rates.is_empty() || !one.shares.is_empty())
        .collect();
    let blocks = observed.iter().map(Observed::blocks).max()?;
    let baseline = observed.iter().find(|one| one.subject == header.baseline);
    Some(LatencyCurves {
        condition: condition.clone(),
        baseline: header.baseline.clone(),
        blocks,
        confidence: CONFIDENCE,
        client_per_s: None,
        subjects: observed
            .iter()
            .map(|one| one.curve(baseline.filter(|base| base.subject != one.subject)))
            .collect(),
        contrasts: contrast::contrasts(&observed),
    })
}

impl LatencyCurves {
    /// Adds what the journal says about the choice of the rates.
    pub(crate) fn take_choice(&mut self, choices: &[&CurveChoice]) {
        let own = choices.iter().find(|one| one.condition == self.condition);
        let Some(choice) = own else { return };
        self.client_per_s = choice.client_per_s;
        for subject in &mut self.subjects {
            let capacity = choice.capacities_per_s.get(&subject.subject);
            subject.capacity_per_s = capacity.copied();
            subject.bounds = bounds::bounds(&subject.levels, &choice.bounds_us);
        }
    }
}

impl Observed {
    fn of(subject: &str, trials: &BTreeMap<u32, &Cell<'_>>, max_error: f64) -> Self {
        let mut found = Self {
            subject: subject.to_owned(),
            rates: Vec::new(),
            shares: Vec::new(),
        };
        let mut carried: Vec<f64> = Vec::new();
        for (block, cell) in trials {
            let Some(reading) = cell.reading() else {
                continue;
            };
            let throughput = reading.throughput.as_ref().map(LoadReading::requests_per_s);
            carried.extend(throughput.filter(|per_s| *per_s > 0.0).map(f64::ln));
            // What spoils a whole trial stands at both of its loads.
            let spoilt = cell.throughput_flaws.iter();
            let mut spoilt = spoilt.filter(|flaw| cell.latency_flaws.contains(flaw));
            let spoilt = spoilt.next();
            for point in &reading.curve {
                let seen = match spoilt {
                    Some(flaw) => Seen::Unusable(PointFlaw::Trial(Box::new(flaw.clone()))),
                    None => judge(point, max_error),
                };
                let column = found.column(point);
                column.by_block.insert(*block, seen);
                column.slices = point.slices.max(1);
                column.requests_per_slice = point.due as f64 / f64::from(column.slices);
            }
        }
        let capacity_per_s = Sample::of(&carried).map(|logs| logs.mean.exp());
        for columns in [&mut found.rates, &mut found.shares] {
            columns.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
            for column in columns {
                let share = capacity_per_s.map(|capacity| column.rate_per_s / capacity);
                column.settling_requests = share.map(settling_requests);
            }
        }
        found
    }

    /// The column of a point. The rates of a run are the same in all blocks.
    fn column(&mut self, point: &CurvePoint) -> &mut Column {
        let columns = match point.share {
            None => &mut self.rates,
            Some(_) => &mut self.shares,
        };
        let (share, rate) = (point.share, point.rate_per_s);
        let is_it = |one: &Column| one.share == share && close(one.rate_per_s, rate);
        let at = columns.iter().position(is_it).unwrap_or(columns.len());
        if at == columns.len() {
            columns.push(Column {
                rate_per_s: rate,
                share,
                by_block: BTreeMap::new(),
                requests_per_slice: 0.0,
                slices: 1,
                settling_requests: None,
            });
        }
        &mut columns[at]
    }

    fn blocks(&self) -> usize {
        let columns = self.rates.iter().chain(&self.shares);
        let mut blocks: Vec<u32> = columns
            .flat_map(|one| one.by_block.keys().copied())
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    }

    /// The points of each block, those at shares included, ascending.
    fn levels(&self) -> Vec<Vec<Level>> {
        let mut blocks: BTreeMap<u32, Vec<Level>> = BTreeMap::new();
        for column in self.rates.iter().chain(&self.shares) {
            for (block, seen) in &column.by_block {
                let us = match seen {
                    Seen::Unusable(_) => continue,
                    Seen::Overloaded { .. } => None,
                    Seen::Latency(us) => match us[bounds::QUANTILE] {
                        Some(us) => Some(us),
                        None => continue,
                    },
                };
                let carried_per_s = match seen {
                    Seen::Overloaded { carried_per_s } => *carried_per_s,
                    _ => None,
                };
                blocks.entry(*block).or_default().push(Level {
                    rate_per_s: column.rate_per_s,
                    us,
                    carried_per_s,
                    settled: column.settled(),
                });
            }
        }
        let mut blocks: Vec<Vec<Level>> = blocks.into_values().collect();
        for levels in &mut blocks {
            levels.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        }
        blocks
    }

    fn curve(&self, baseline: Option<&Observed>) -> SubjectCurve {
        let levels = self.levels();
        let row = |column: &Column| {
            let base = baseline.and_then(|base| base.at(column.rate_per_s));
            column.row(base)
        };
        SubjectCurve {
            subject: self.subject.clone(),
            capacity_per_s: None,
            rates: self.rates.iter().map(row).collect(),
            shares: self.shares.iter().map(|one| one.row(None)).collect(),
            bounds: bounds::bounds(&levels, &BOUNDS_US),
            levels,
        }
    }

    fn at(&self, rate_per_s: f64) -> Option<&Column> {
        let mut rates = self.rates.iter();
        rates.find(|one| close(one.rate_per_s, rate_per_s))
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
}

impl Column {
    /// The blocks' values of a quantile, where none is overloaded.
    fn values(&self, quantile: usize) -> BTreeMap<u32, f64> {
        let each = self.by_block.iter();
        let values = each.filter_map(|(block, seen)| match seen {
            Seen::Latency(us) => Some((*block, us[quantile]?)),
            _ => None,
        });
        match self.overloaded() {
            0 => values.collect(),
            _ => BTreeMap::new(),
        }
    }

    /// The logarithms of what was carried in overloaded blocks.
    fn carried(&self) -> impl Iterator<Item = f64> {
        self.by_block.values().filter_map(|seen| match seen {
            Seen::Overloaded { carried_per_s } => Some((*carried_per_s)?.ln()),
            _ => None,
        })
    }

    fn settled(&self) -> bool {
        let wanted = self.settling_requests.unwrap_or(0.0);
        let slices = f64::from(self.slices);
        self.requests_per_slice >= wanted && self.requests_per_slice * slices >= SLICES_MIN * wanted
    }

    /// The window that would be long enough; none where that is known of no length.
    fn settles_in_s(&self) -> Option<f64> {
        let wanted = self.settling_requests.filter(|wanted| wanted.is_finite())?;
        let window_s = SLICES_MIN * wanted / self.rate_per_s;
        (!self.settled() && self.overloaded() == 0).then_some(window_s)
    }

    fn overloaded(&self) -> usize {
        let each = self.by_block.values();
        each.filter(|seen| matches!(seen, Seen::Overloaded { .. }))
            .count()
    }

    fn row(&self, baseline: Option<&Column>) -> CurveRow {
        let mut reasons = self.by_block.values().filter_map(|seen| match seen {
            Seen::Unusable(reason) => Some(reason),
            _ => None,
        });
        let reason = reasons.next().cloned();
        let unusable = reason.as_ref().map_or(0, |_| 1 + reasons.count());
        let carried: Vec<f64> = self.carried().collect();
        let (mut latency_us, mut ratio) = (Vec::new(), Vec::new());
        for (number, quantile) in QUANTILES.into_iter().enumerate() {
            let own = self.values(number);
            let logs: Vec<f64> = own.values().map(|us| us.ln()).collect();
            latency_us.extend(estimate(quantile, &logs));
            if let Some(baseline) = baseline {
                let base = baseline.values(number);
                let pairs = own
                    .iter()
                    .filter_map(|(block, us)| Some(us / base.get(block)?));
                let logs: Vec<f64> = pairs.map(f64::ln).collect();
                ratio.extend(estimate(quantile, &logs));
            }
        }
        CurveRow {
            rate_per_s: self.rate_per_s,
            share: self.share,
            blocks: self.by_block.len() - unusable,
            overloaded: self.overloaded(),
            unusable,
            reason,
            carried_per_s: Sample::of(&carried).map(|logs| logs.mean.exp()),
            settled: self.settled(),
            settles_in_s: self.settles_in_s(),
            latency_us,
            ratio,
        }
    }
}

/// The interval of a mean of logarithms as values; absent with too few blocks.
fn interval(logs: &[f64], confidence: f64) -> Option<(f64, f64)> {
    if logs.len() < BLOCKS_MIN {
        return None;
    }
    let (low, high) = Sample::of(logs)?.interval(confidence)?;
    Some(((low - HALF_STEP).exp(), (high + HALF_STEP).exp()))
}

fn estimate(quantile: f64, logs: &[f64]) -> Option<Estimate> {
    let mean = Sample::of(logs)?.mean;
    let interval = interval(logs, CONFIDENCE);
    Some(Estimate {
        quantile,
        value: mean.exp(),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        blocks: logs.len(),
    })
}
