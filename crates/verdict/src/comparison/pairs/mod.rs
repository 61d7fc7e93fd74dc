//! Pairs of subject and baseline, block by block.

mod alone;
mod counted;
pub(crate) mod others;
mod pooled;
pub(crate) mod pooling;
pub(crate) mod spread;

pub(crate) use alone::Alone;

use readings::{EventsReading, LoadReading, Slice};

use crate::comparison::events::{self, Noticed};
use crate::comparison::record::ratio::BlockRatio;
use crate::metric::of_trial::{Datum, datum, histograms_of, label, load_of, offered};
use crate::metric::quantile::{QuantileEvidence, QuantileFigure};
use crate::stats::sample::Sample;
use crate::stats::steady::{SteadyState, steady_state};
use crate::trial::cells::{Attempts, Cell};
use crate::trial::lag::{LagRemedy, lag_share};
use crate::trial::others::of_reading;
use crate::{Metric, Reason};

/// Two subjects' trials under one condition, paired by block.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// One ratio per block that both can be used of.
    pub ratios: Vec<BlockRatio>,
    pub tried: usize,
    /// Blocks of `tried` that cannot be used.
    pub unusable: usize,
    /// The first reason why the subject cannot be used, else the baseline's, with whose it is.
    pub reason: Option<(Whose, Reason)>,
    /// Blocks whose quantile is not resolved, where all of them together do not resolve it either;
    /// `ratios` is empty then.
    pub unresolved: usize,
    /// The subject's quantile and the baseline's then; nothing of outside drivers.
    pub quantiles: Option<(QuantileFigure, QuantileFigure)>,
    /// Whether `ratios` are what blocks contribute to the ratio of all answers' quantiles.
    pub is_pooled: bool,
    /// Blocks of `ratios` in which the client was the bottleneck for the subject, the baseline.
    pub client_limited: (usize, usize),
    /// Blocks of `ratios` in which the ratio of the closed loops' slices had no steady state.
    pub unsettled: usize,
    /// The open loop's rate, where it was one for all.
    pub rate_per_s: Option<f64>,
    /// Whether users arrive at that rate.
    pub of_users: bool,
    /// Failures and recovery of the subject and of the baseline, over the blocks of `ratios`.
    pub noticed: (Noticed, Noticed),
    /// For a metric of events: what was noticed of the subject and of the baseline, for each of
    /// `ratios`.
    pub events: Vec<(EventsReading, EventsReading)>,
    /// The load drivers of the subject and of the baseline, where they are not the engine.
    pub drivers: Option<(String, String)>,
    /// For a quantile of latency: the log ratios of service times, which are without the client's
    /// lag; one for each of `ratios`, or none.
    pub service_logs: Vec<f64>,
    /// The largest share of a latency that the client's lag has on either side in a block.
    pub lag_share: f64,
    /// What helps against that lag.
    pub lag_remedy: Option<LagRemedy>,
    /// The standard deviations that the blocks' log ratios of throughput have from their slices
    /// alone, squared; and how many there are.
    slices_variance: (f64, usize),
    /// By how much the steps of the figures can shift a log ratio: the mean over blocks.
    half_steps: f64,
    counted: counted::Counted,
    subject_logs: f64,
    baseline_logs: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Subject,
    Baseline,
}

impl Pairs {
    /// Pairs two subjects' trials by block. Both figures of a ratio come from one attempt at the
    /// block: the one that figures of all subjects are taken from if both can be used in it, else the
    /// last in which both can; or else the last in which both were measured, or tried.
    pub fn of<'a>(metric: Metric, subject: &Attempts<'_, 'a>, baseline: &Attempts<'_, 'a>) -> Self {
        let mut pairs = Pairs::default();
        let mut beside = Beside::default();
        for (block, ours) in subject {
            let Some(theirs) = baseline.get(block) else {
                continue;
            };
            let of_attempt = |ours: &Cell<'a>| {
                theirs
                    .iter()
                    .find(|t| t.trial.attempt == ours.trial.attempt)
            };
            let both = ours.iter().rev();
            let both = both.filter_map(|ours| Some((*ours, *of_attempt(ours)?)));
            let data = both.map(|(ours, theirs)| {
                let data = match are_comparable(metric, ours, theirs) {
                    true => (datum(ours, metric), datum(theirs, metric)),
                    false => (Datum::NotMeasured, Datum::NotMeasured),
                };
                (ours, theirs, data)
            });
            let worth = |(ours, theirs, data): &(&Cell<'a>, &Cell<'a>, (Datum, Datum))| {
                let measured = ours.reading().is_some() && theirs.reading().is_some();
                let usable = data.0.is_usable() && data.1.is_usable();
                u8::from(usable) + u8::from(measured)
            };
            // Of equals the first, which is the last attempt.
            let best = data.reduce(|best, one| match worth(&one) > worth(&best) {
                true => one,
                false => best,
            });
            if let Some(chosen) = best {
                pairs.add(metric, *block, chosen, &mut beside);
            }
        }
        pairs.pool(metric, beside.ours, beside.theirs);
        if let Some(&first) = beside.rates.first()
            && beside.rates.iter().all(|r| (r / first - 1.0).abs() < 0.005)
        {
            pairs.rate_per_s = Some(first);
        }
        let blocks = pairs.ratios.len();
        pairs.half_steps /= blocks.max(1) as f64;
        let is_told = pairs.service_logs.iter().all(|log| log.is_finite());
        if pairs.service_logs.len() != blocks || !is_told {
            pairs.service_logs.clear();
        }
        pairs
    }

    /// Takes a quantile that not all blocks resolve from all of them together.
    fn pool(&mut self, metric: Metric, ours: Vec<&LoadReading>, theirs: Vec<&LoadReading>) {
        let Some(quantile) = metric.quantile().filter(|_| self.unresolved > 0) else {
            return;
        };
        let blocks = self.ratios.len();
        let are_histograms = ours.len() == blocks && theirs.len() == blocks;
        let ours = QuantileEvidence::of(quantile, ours);
        let theirs = QuantileEvidence::of(quantile, theirs);
        if !(are_histograms && ours.resolves() && theirs.resolves()) {
            let both = || (ours.figure(), theirs.figure());
            self.quantiles = are_histograms.then(both);
            self.ratios.clear();
            self.service_logs.clear();
            return;
        }
        let less = |ours: Vec<f64>, theirs: Vec<f64>| {
            let both = ours.into_iter().zip(theirs);
            both.map(|(a, b)| a - b).collect::<Vec<f64>>()
        };
        let logs = less(ours.contributions(), theirs.contributions());
        for (one, log) in self.ratios.iter_mut().zip(logs) {
            one.ratio = log.exp();
        }
        self.service_logs = less(ours.service_contributions(), theirs.service_contributions());
        self.subject_logs = blocks as f64 * ours.value_us().ln();
        self.baseline_logs = blocks as f64 * theirs.value_us().ln();
        (self.unresolved, self.is_pooled) = (0, true);
    }

    fn add<'a>(
        &mut self,
        metric: Metric,
        block: u32,
        (ours, theirs, data): (&Cell<'a>, &Cell<'a>, (Datum, Datum)),
        beside: &mut Beside<'a>,
    ) {
        let is_unresolved = |datum: &Datum| matches!(datum, Datum::Unresolved(_));
        let unresolved = is_unresolved(&data.0) || is_unresolved(&data.1);
        let (a, b) = match data {
            (Datum::NotMeasured, _) | (_, Datum::NotMeasured) => return,
            (Datum::Unusable(reason), _) => return self.spoil(Whose::Subject, reason),
            (_, Datum::Unusable(reason)) => return self.spoil(Whose::Baseline, reason),
            (Datum::Value(a) | Datum::Unresolved(a), Datum::Value(b) | Datum::Unresolved(b)) => {
                (a, b)
            }
        };
        self.tried += 1;
        self.unresolved += usize::from(unresolved);
        let noticed = |cell: &Cell<'_>| cell.reading()?.events.clone();
        let events = noticed(ours).zip(noticed(theirs));
        let events = events.filter(|_| metric.is_of_events());
        self.ratios.push(BlockRatio {
            block,
            ratio: a.value / b.value,
            difference: events
                .as_ref()
                .and_then(|(ours, theirs)| events::difference(metric, ours, theirs)),
        });
        self.events.extend(events);
        self.subject_logs += a.value.ln();
        self.baseline_logs += b.value.ln();
        self.half_steps += a.half_log() + b.half_log();
        self.counted.add(block, [a, b]);
        if metric == Metric::RequestsPerS {
            let unsettled = is_unsettled(ours.slices_in_turns(), theirs.slices_in_turns());
            self.unsettled += usize::from(unsettled);
            if let Some(sd) = sd_of_slices(ours.slices_in_turns(), theirs.slices_in_turns()) {
                self.slices_variance.0 += sd * sd;
                self.slices_variance.1 += 1;
            }
        }
        let (our_load, their_load) = (load_of(ours, metric), load_of(theirs, metric));
        let limited =
            |load: Option<&LoadReading>| usize::from(load.is_some_and(|l| l.client.saturated));
        self.noticed.0.add(ours);
        self.noticed.1.add(theirs);
        self.client_limited.0 += limited(our_load);
        self.client_limited.1 += limited(their_load);
        if let (Some(q), Some(our_load), Some(their_load)) =
            (metric.quantile(), our_load, their_load)
        {
            beside.ours.extend(histograms_of(ours, metric));
            beside.theirs.extend(histograms_of(theirs, metric));
            for (cell, load) in [(ours, our_load), (theirs, their_load)] {
                let share = lag_share(load, q);
                if share > self.lag_share {
                    let others = cell.reading().and_then(of_reading);
                    self.lag_share = share;
                    self.lag_remedy = Some(LagRemedy::of(load, others));
                }
            }
            let service = |load: &LoadReading| load.service.quantile_us(q);
            let ratio = service(our_load) / service(their_load);
            if ratio > 0.0 && ratio.is_finite() {
                self.service_logs.push(ratio.ln());
            }
        }
        self.of_users |= our_load.is_some_and(|load| load.users.is_some());
        beside.rates.extend(our_load.and_then(offered));
        beside.rates.extend(their_load.and_then(offered));
        if let Some(drivers) = label(ours).zip(label(theirs)) {
            self.drivers = Some(drivers);
        }
    }

    fn spoil(&mut self, whose: Whose, reason: Reason) {
        self.tried += 1;
        self.unusable += 1;
        let ours_now = whose == Whose::Subject;
        let better = match &self.reason {
            None => true,
            Some((Whose::Baseline, _)) => ours_now,
            Some((Whose::Subject, _)) => false,
        };
        if better {
            self.reason = Some((whose, reason));
        }
    }

    /// Whether the load drivers differ.
    pub fn drivers_differ(&self) -> bool {
        self.drivers
            .as_ref()
            .is_some_and(|(ours, theirs)| ours != theirs)
    }

    /// The log ratios, summarised, with the steps of the figures.
    pub fn sample(&self) -> Option<Sample> {
        if let Some(sample) = self.counted.sample() {
            return Some(sample);
        }
        let logs: Vec<f64> = self.ratios.iter().map(|r| r.ratio.ln()).collect();
        Some(Sample::of(&logs)?.with_resolution(self.half_steps))
    }

    /// The standard deviation that a block's log ratio has from its slices alone, over the blocks.
    pub fn sd_of_slices(&self) -> Option<f64> {
        let (sum, blocks) = self.slices_variance;
        (blocks > 0).then(|| (sum / blocks as f64).sqrt())
    }

    /// The log ratios of service times, summarised; nothing where they were not measured.
    pub fn service_sample(&self) -> Option<Sample> {
        Some(Sample::of(&self.service_logs)?.with_resolution(self.half_steps))
    }

    /// Geometric means over the blocks used, or means where figures are counted in coarse steps:
    /// subject, baseline.
    pub fn values(&self) -> Option<(f64, f64)> {
        if let Some(means) = self.counted.means() {
            return Some(means);
        }
        let n = self.ratios.len() as f64;
        (n > 0.0).then(|| {
            (
                (self.subject_logs / n).exp(),
                (self.baseline_logs / n).exp(),
            )
        })
    }
}

/// What is gathered beside the ratios: the rates offered, and for a quantile the loads that its
/// histograms are of.
#[derive(Default)]
struct Beside<'a> {
    rates: Vec<f64>,
    ours: Vec<&'a LoadReading>,
    theirs: Vec<&'a LoadReading>,
}

/// Whether two subjects' slices, taken in turns, show a ratio that never settles. What the machine
/// does to both of them cancels; where their numbers of slices differ they were not taken in turns.
fn is_unsettled(ours: &[Slice], theirs: &[Slice]) -> bool {
    if ours.len() != theirs.len() {
        return false;
    }
    let ratios: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .map(|(a, b)| a.requests_per_s() / b.requests_per_s())
        .collect();
    ratios.iter().all(|r| r.is_finite())
        && matches!(steady_state(&ratios), SteadyState::Never { .. })
}

/// The standard deviation that a block's log ratio has from its slices alone; nothing where they
/// were not taken in turns.
fn sd_of_slices(ours: &[Slice], theirs: &[Slice]) -> Option<f64> {
    if ours.len() != theirs.len() || ours.len() < 4 {
        return None;
    }
    let pairs = ours.iter().zip(theirs);
    let logs: Option<Vec<f64>> = pairs
        .map(|(a, b)| {
            let log = (a.requests_per_s() / b.requests_per_s()).ln();
            log.is_finite().then_some(log)
        })
        .collect();
    let sample = Sample::of(&logs?)?;
    Some(sample.sd / (ours.len() as f64).sqrt())
}

/// Whether two trials have a figure that can be compared. The costs of servers have to be those of
/// the same part of the paths: a sum without a server of the path is no cost of what the other path
/// adds to it. What happened has to have a figure of the metric.
fn are_comparable(metric: Metric, ours: &Cell<'_>, theirs: &Cell<'_>) -> bool {
    let Some((a, b)) = ours.reading().zip(theirs.reading()) else {
        return true;
    };
    if metric.is_cost() {
        return a.uncounted_upstreams == b.uncounted_upstreams;
    }
    events::is_applicable(
        metric,
        [a, b].into_iter().filter_map(|one| one.events.as_ref()),
    )
}
