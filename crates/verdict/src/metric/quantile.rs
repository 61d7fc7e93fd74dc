//! A quantile of latency over the blocks of one subject, of which each alone may have too few answers.
//!
//! Where each block resolves the quantile, each has its own. Otherwise all answers together may
//! resolve it: then the figure is the quantile of the merged histogram, and what a block contributes
//! is its jackknife pseudo-value: by how much the logarithm of the figure changes without it. These
//! take the place of the blocks' own figures in every interval and test, so the block stays the unit
//! of evidence. They are centred on the figure. The usual correction of the bias is left out: a
//! quantile has next to none, and with it intervals of 95% held the truth in 83% of simulated runs.
//!
//! Where all answers do not resolve it either, order statistics bound it, from three
//! blocks on. Answers that one pause delays are not independent, nor are those of a block, so their
//! number is divided by the design effect; that of blocks is known from a few of them only, so it
//! grows by the square of Student's quantile over the normal one.
//!
//! Sources: J. Shao, C. F. J. Wu, A general theory for jackknife variance estimation, Annals of
//! Statistics 17 (1989), on leaving out many values at once, which a quantile needs; H. A. David,
//! H. N. Nagaraja, Order Statistics, 3rd edition (2003), section 7.1; L. Kish, Survey Sampling
//! (1965), section 8.2, on the design effect.

use readings::{Histogram, LoadReading};
use serde::Serialize;
use statrs::function::beta::beta_reg;

use crate::metric::of_trial::{OCCASIONS_MIN, enough, resolves};
use crate::{FEWEST_BLOCKS, t_quantile};

/// The error rate of a bound.
const ALPHA: f64 = 0.05;
/// Answers beyond a quantile that resolve it.
const BEYOND_MIN: f64 = 100.0;
/// Windows are advised so much longer than the present answers ask for.
const ROOM: f64 = 1.05;
/// The ratio of neighbouring steps in which the occasions of latencies are recorded.
const STEP: f64 = 1.045;

/// What is known of a quantile that too few answers stand behind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantileBound {
    /// It is at most this, with a confidence of 95%, in microseconds; absent where even the largest
    /// latency does not bound it, and with fewer than three blocks.
    pub at_most_us: Option<f64>,
    /// It is at least this, likewise; absent where too few answers bound it, and with fewer than three
    /// blocks.
    pub at_least_us: Option<f64>,
    /// The largest latency, in microseconds.
    pub highest_us: f64,
    #[serde(flatten)]
    pub resolved_by: ResolvedBy,
}

/// What would resolve a quantile: longer windows, or more blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResolvedBy {
    /// The length of window in as many blocks, s.
    pub window_s: f64,
    /// The blocks of the present window.
    pub blocks: usize,
}

impl ResolvedBy {
    /// What resolves the quantiles of both sides; nothing where both are resolved.
    pub(crate) fn of(figures: &(QuantileFigure, QuantileFigure)) -> Option<Self> {
        let bounds = [figures.0, figures.1].into_iter().filter_map(Result::err);
        let each = bounds.map(|bound| bound.resolved_by);
        each.reduce(|a, b| Self {
            window_s: a.window_s.max(b.window_s),
            blocks: a.blocks.max(b.blocks),
        })
    }
}

/// A quantile in microseconds, or what is known of it.
pub type QuantileFigure = Result<f64, QuantileBound>;

/// The answers of one subject that stand behind a quantile.
#[derive(Clone, Debug)]
pub(crate) struct QuantileEvidence<'a> {
    quantile: f64,
    loads: Vec<&'a LoadReading>,
    all: Histogram,
}

impl<'a> QuantileEvidence<'a> {
    pub fn of(quantile: f64, loads: Vec<&'a LoadReading>) -> Self {
        let all = merged(loads.iter().map(|load| &load.response));
        Self {
            quantile,
            loads,
            all,
        }
    }

    pub fn blocks(&self) -> usize {
        self.loads.len()
    }

    fn each_resolves(&self) -> bool {
        let mut loads = self.loads.iter();
        loads.all(|load| resolves(load, self.quantile))
    }

    /// Whether all answers together resolve it.
    pub fn resolves(&self) -> bool {
        enough(self.all.count(), self.quantile)
            && self
                .occasions()
                .is_none_or(|occasions| occasions >= OCCASIONS_MIN)
    }

    /// The quantile of all answers, in microseconds.
    pub fn value_us(&self) -> f64 {
        self.all.quantile_us(self.quantile)
    }

    /// The figure: the geometric mean of the blocks' quantiles where each resolves it, else the
    /// quantile of all answers where these do.
    pub fn figure(&self) -> QuantileFigure {
        if self.each_resolves() && self.blocks() > 0 {
            let logs = logs(self.quantile, &self.loads);
            return Ok((logs.iter().sum::<f64>() / logs.len() as f64).exp());
        }
        match self.resolves() {
            true => Ok(self.value_us()),
            false => Err(self.bound()),
        }
    }

    /// What each block contributes to the logarithm of the quantile of all answers; their mean is
    /// that logarithm.
    pub fn contributions(&self) -> Vec<f64> {
        let each: Vec<&Histogram> = self.loads.iter().map(|load| &load.response).collect();
        contributions(self.quantile, &each)
    }

    /// The same of service times.
    pub fn service_contributions(&self) -> Vec<f64> {
        let each: Vec<&Histogram> = self.loads.iter().map(|load| &load.service).collect();
        contributions(self.quantile, &each)
    }

    /// What is known of a quantile that is not resolved.
    pub fn bound(&self) -> QuantileBound {
        QuantileBound {
            at_most_us: self.at_most_us(ALPHA),
            at_least_us: self.at_least_us(ALPHA),
            highest_us: self.all.quantile_us(1.0),
            resolved_by: self.resolved_by(),
        }
    }

    /// The smallest latency that the quantile lies above with a chance of at most `alpha`.
    pub fn at_most_us(&self, alpha: f64) -> Option<f64> {
        if self.blocks() < FEWEST_BLOCKS {
            return None;
        }
        let (effect, mut beyond, mut found) = (self.design_effect(alpha), 0, None);
        for (us, count) in self.all.buckets_us().into_iter().rev() {
            if self.chance(beyond, effect) > alpha {
                break;
            }
            found = Some(us);
            beyond += count;
        }
        found
    }

    /// The largest latency that the quantile lies below with a chance of at most `alpha`.
    pub fn at_least_us(&self, alpha: f64) -> Option<f64> {
        if self.blocks() < FEWEST_BLOCKS {
            return None;
        }
        let (effect, mut from_here) = (self.design_effect(alpha), 0);
        for (us, count) in self.all.buckets_us().into_iter().rev() {
            from_here += count;
            if self.chance_below(from_here, effect) <= alpha {
                return Some(us);
            }
        }
        None
    }

    /// The chance that at least so many answers lie above the quantile.
    fn chance_below(&self, beyond: u64, effect: f64) -> f64 {
        let answers = self.all.count() as f64 / effect;
        let beyond = (beyond as f64 / effect).floor();
        match beyond >= 1.0 && answers > beyond {
            true => beta_reg(beyond, answers - beyond + 1.0, 1.0 - self.quantile),
            false => 1.0,
        }
    }

    /// The one-sided p value of 'the quantile lies above this latency', for a test at the level
    /// `alpha`.
    pub fn p_above(&self, us: f64, alpha: f64) -> f64 {
        self.chance(self.all.count_above_us(us), self.design_effect(alpha))
    }

    /// The chance that at most so many answers lie above the quantile: of a binomial count of the
    /// answers over their design effect.
    fn chance(&self, beyond: u64, effect: f64) -> f64 {
        let answers = self.all.count() as f64 / effect;
        let beyond = (beyond as f64 / effect).ceil();
        match answers > beyond {
            true => beta_reg(answers - beyond, beyond + 1.0, self.quantile),
            false => 1.0,
        }
    }

    /// How many answers from about the quantile on are worth one that is independent: those of an
    /// occasion, or by how much more than by chance their numbers differ between blocks.
    fn design_effect(&self, alpha: f64) -> f64 {
        let from_us = self.value_us() / STEP;
        let beyond: Vec<f64> = self
            .loads
            .iter()
            .map(|load| load.response.count_above_us(from_us) as f64)
            .collect();
        let sum: f64 = beyond.iter().sum();
        let of_occasions = self.occasions().map_or(1.0, |occasions| sum / occasions);
        let share = sum / self.all.count().max(1) as f64;
        let squares: f64 = beyond
            .iter()
            .zip(&self.loads)
            .map(|(beyond, load)| (load.response.count() as f64 * share, beyond))
            .filter(|(expected, _)| *expected > 0.0)
            .map(|(expected, beyond)| (beyond - expected).powi(2) / expected)
            .sum();
        let degrees = (self.blocks().max(2) - 1) as f64;
        let wider = t_quantile(1.0 - alpha, degrees) / t_quantile(1.0 - alpha, 1e6);
        let of_blocks = squares / degrees * wider * wider;
        of_occasions.max(of_blocks).max(1.0)
    }

    /// The occasions of the latencies from the quantile on; `None` where they were not recorded.
    fn occasions(&self) -> Option<f64> {
        let from_us = self.value_us();
        let each = self.loads.iter().map(|load| load.exceedances(from_us));
        let all: usize = each.sum::<Option<usize>>()?;
        Some(all.max(1) as f64)
    }

    pub fn resolved_by(&self) -> ResolvedBy {
        let beyond = self.all.count().max(1) as f64 * (1.0 - self.quantile);
        let of_occasions = self
            .occasions()
            .map_or(0.0, |occasions| OCCASIONS_MIN / occasions);
        let times = (BEYOND_MIN / beyond).max(of_occasions);
        let blocks = self.blocks().max(1) as f64;
        let all_s: f64 = self.loads.iter().map(|load| load.duration_s).sum();
        ResolvedBy {
            window_s: rounded_up(ROOM * times * all_s / blocks),
            blocks: ((times * blocks).ceil() as usize).max(FEWEST_BLOCKS),
        }
    }
}

/// The log ratio of the quantile of two sides for each block that both have: of the blocks' own where
/// each resolves it, else what they contribute to that of all answers; nothing where these do not
/// resolve it either.
pub(crate) fn log_ratios(
    quantile: f64,
    ours: Vec<&LoadReading>,
    theirs: Vec<&LoadReading>,
) -> Option<Vec<f64>> {
    let less = |ours: Vec<f64>, theirs: Vec<f64>| {
        let both = ours.into_iter().zip(theirs);
        both.map(|(a, b)| a - b).collect()
    };
    if ours
        .iter()
        .chain(&theirs)
        .all(|load| resolves(load, quantile))
    {
        return Some(less(logs(quantile, &ours), logs(quantile, &theirs)));
    }
    let ours = QuantileEvidence::of(quantile, ours);
    let theirs = QuantileEvidence::of(quantile, theirs);
    (ours.resolves() && theirs.resolves())
        .then(|| less(ours.contributions(), theirs.contributions()))
}

fn logs(quantile: f64, loads: &[&LoadReading]) -> Vec<f64> {
    let each = loads.iter();
    each.map(|load| load.response.quantile_us(quantile).ln())
        .collect()
}

fn merged<'h>(each: impl Iterator<Item = &'h Histogram>) -> Histogram {
    let mut all = Histogram::empty();
    each.for_each(|one| all.merge(one));
    all
}

/// Jackknife pseudo-values of the logarithm of a quantile, centred on it; without a number where a
/// histogram is all there is.
fn contributions(quantile: f64, each: &[&Histogram]) -> Vec<f64> {
    let all = merged(each.iter().copied());
    let log = all.quantile_us(quantile).ln();
    if each.len() < 2 {
        return vec![log; each.len()];
    }
    let without: Vec<f64> = each
        .iter()
        .map(|one| all.since(one).quantile_us(quantile).ln())
        .collect();
    let mean = without.iter().sum::<f64>() / without.len() as f64;
    let others = without.len() as f64 - 1.0;
    without
        .into_iter()
        .map(|one| log + others * (mean - one))
        .collect()
}

/// To two digits.
fn rounded_up(value: f64) -> f64 {
    let step = 10f64.powf(value.max(1e-3).log10().floor() - 1.0);
    (value / step - 1e-9).ceil() * step
}

#[cfg(test)]
mod tests;
