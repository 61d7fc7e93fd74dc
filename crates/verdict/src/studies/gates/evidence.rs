//! The evidence for a gate, and what withholds its outcome.

use readings::{Condition, Gate, GateBound, GateMetric};

use super::failures;
use super::outcome::{GateOutcome, GateReason};
use super::tests_of_bound::{BoundSpread, BoundTest, MarginOverBound, Withheld};
use crate::comparison::draft::Run;
use crate::comparison::pairs::pooling::{Pool, is_declared, pool_of};
use crate::comparison::pairs::{Alone, Pairs};
use crate::comparison::withhold::slices::SliceBias;
use crate::metric::quantile::{QuantileEvidence, ResolvedBy};
use crate::stats::sample::Sample;
use crate::trial::overload::overloaded_blocks;
use crate::{FEWEST_BLOCKS, Metric, NoiseFloor, Reason};

/// What all gates of a run are judged with.
pub(super) struct GateData<'r, 'c> {
    pub run: &'r Run<'r, 'c>,
    /// The error rate of one look, one-sided.
    pub alpha: f64,
}

/// Under which condition a gate was judged, and from which blocks.
pub(super) struct Place {
    pub condition: Condition,
    pub blocks: usize,
    pub rate_per_s: Option<f64>,
}

/// The outcome of a gate without a test, and why there is none.
pub(super) type Untested = Box<(GateOutcome, GateReason)>;

type Found = (Place, Result<BoundTest, Untested>);

/// The compared metric that a gate bounds; `None` for failures, which are counted, and capacity.
fn metric_of(gate: &Gate) -> Option<Metric> {
    let mut all = Metric::ALL.into_iter();
    all.find(|metric| metric.gate() == Some(gate.metric))
}

fn not_judged<T>(reason: GateReason) -> Result<T, Untested> {
    Err(Box::new((GateOutcome::NotJudged, reason)))
}

fn unsettled(reason: GateReason) -> (GateOutcome, GateReason) {
    (GateOutcome::Unsettled, reason)
}

impl GateData<'_, '_> {
    /// The tests of a subject under a condition; nothing where the metric was not measured, or where
    /// another condition stands for this one.
    pub fn evidence(&self, gate: &Gate, condition: &Condition, subject: &str) -> Option<Found> {
        match (gate.metric, metric_of(gate), gate.bound) {
            (GateMetric::Failed, _, GateBound::Absolute(bound)) => {
                self.of_failures(condition, subject, bound)
            }
            (_, Some(metric), bound) => {
                let pool = pool_of(self.run.cells, condition, metric)?;
                if !is_declared(self.run.cells, &pool, metric, &self.run.rules.baseline) {
                    return None;
                }
                match bound {
                    GateBound::Relative(share) => self.relative(&pool, metric, subject, share),
                    GateBound::Absolute(value) => self.absolute(&pool, metric, subject, value),
                }
            }
            _ => None,
        }
    }

    fn of_failures(&self, condition: &Condition, subject: &str, bound: f64) -> Option<Found> {
        let blocks = failures::by_block(self.run.cells, condition, subject);
        if self
            .run
            .cells
            .of_subject(condition, subject, false)
            .is_empty()
        {
            return None;
        }
        let place = Place {
            condition: condition.clone(),
            blocks: blocks.len(),
            rate_per_s: None,
        };
        let test = match failures::test(&blocks, bound, self.alpha) {
            Some(test) => Ok(test),
            None if blocks.is_empty() => not_judged(GateReason::NotMeasured),
            None => Err(Box::new(unsettled(GateReason::TooFewBlocks {
                usable: blocks.len(),
                needed: 2,
            }))),
        };
        Some((place, test))
    }

    fn relative(
        &self,
        pool: &Pool<'_>,
        metric: Metric,
        subject: &str,
        share: f64,
    ) -> Option<Found> {
        let (cells, baseline) = (self.run.cells, self.run.rules.baseline.as_str());
        let pairs = pool.pairs(cells, metric, (subject, false), (baseline, false));
        // What is no cost counts as tried where a server did not start.
        if pairs.tried == 0 {
            return None;
        }
        let place = Place {
            condition: pool.condition.clone(),
            blocks: pairs.ratios.len(),
            rate_per_s: pairs.rate_per_s,
        };
        let tried = Tried {
            tried: pairs.tried,
            unusable: pairs.unusable,
            unresolved: pairs.unresolved > 0,
            resolved_by: pairs.quantiles.as_ref().and_then(ResolvedBy::of),
            reason: pairs.reason.as_ref().map(|(_, reason)| reason.clone()),
        };
        if let Some(overloaded) = self.overloaded(pool, metric, subject)
            && self.overloaded(pool, metric, baseline).is_none()
        {
            return Some((place, Err(Box::new((GateOutcome::Breached, overloaded)))));
        }
        let sample = self.run.spreads.sample(metric, &pool.condition, &pairs);
        let test = tried.enough(sample).and_then(|sample| {
            if share <= -1.0 || !share.is_finite() {
                return not_judged(GateReason::NotMeasured);
            }
            let margin = MarginOverBound::of(&sample, share.ln_1p(), metric.higher_is_better());
            let mut test = bound_test(&sample, &margin, self.alpha, |log| log.exp_m1())?;
            let is_worse = (share <= 0.0) == metric.higher_is_better() || share == 0.0;
            if is_worse && let Some(reason) = no_difference(&sample, self.alpha) {
                test.not_breached.get_or_insert_with(|| unsettled(reason));
            }
            self.censor(&mut test, metric, &pairs, subject)?;
            self.hold_against_run(&mut test, &margin, pool, metric, subject, &sample);
            self.client_lag(&mut test, metric, &pairs, share);
            self.failed_starts(&mut test, pool, subject, true);
            Ok(test)
        });
        Some((place, test))
    }

    fn absolute(
        &self,
        pool: &Pool<'_>,
        metric: Metric,
        subject: &str,
        value: f64,
    ) -> Option<Found> {
        let attempts = pool.members.iter();
        let attempts = attempts.map(|c| {
            self.run
                .cells
                .attempts(metric.load_loop(), c, subject, false)
        });
        let alone = Alone::of(metric, attempts);
        if alone.tried == 0 {
            return None;
        }
        let place = Place {
            condition: pool.condition.clone(),
            blocks: alone.blocks(),
            rate_per_s: alone.rate_per_s,
        };
        let tried = Tried {
            tried: alone.tried,
            unusable: alone.unusable,
            unresolved: alone.unresolved > 0,
            resolved_by: alone.quantile.as_ref().map(QuantileEvidence::resolved_by),
            reason: alone.reason.clone(),
        };
        if let Some(overloaded) = self.overloaded(pool, metric, subject) {
            return Some((place, Err(Box::new((GateOutcome::Breached, overloaded)))));
        }
        if let Some(mut test) = self.by_bound(&tried, &alone, value) {
            self.failed_starts(&mut test, pool, subject, false);
            return Some((place, Ok(test)));
        }
        let test = tried.enough(alone.sample()).and_then(|sample| {
            if value <= 0.0 || !value.is_finite() {
                return not_judged(GateReason::NotMeasured);
            }
            let margin = MarginOverBound::of(&sample, value.ln(), metric.higher_is_better());
            let mut test = bound_test(&sample, &margin, self.alpha, f64::exp)?;
            if metric == Metric::RequestsPerS && alone.client_limited > 0 {
                // The figure is a lower bound.
                let reason = GateReason::ClientLimits(Some(subject.to_owned()));
                test.not_breached = Some(unsettled(reason));
                test.high = None;
            }
            self.failed_starts(&mut test, pool, subject, false);
            Ok(test)
        });
        Some((place, test))
    }

    /// The pass of a quantile that is not resolved and still surely lies below the bound.
    fn by_bound(&self, tried: &Tried, alone: &Alone<'_>, value: f64) -> Option<BoundTest> {
        let evidence = alone.quantile.as_ref()?;
        let at_most_us = evidence.at_most_us(self.alpha)?;
        let p_pass = evidence.p_above(value, self.alpha);
        (!tried.is_unusable() && p_pass < self.alpha).then_some(BoundTest {
            value: at_most_us,
            low: None,
            high: Some(at_most_us),
            p_breach: 1.0,
            p_pass,
            not_breached: None,
            not_passed: None,
            spread: BoundSpread {
                distance: f64::NAN,
                sd: f64::NAN,
                degrees: 0.0,
                blocks: alone.blocks(),
                clean_blocks: None,
            },
        })
    }

    /// Removes what a throughput that the client limited cannot show: it is a lower bound, so a
    /// ratio with it has only one end.
    fn censor(
        &self,
        test: &mut BoundTest,
        metric: Metric,
        pairs: &Pairs,
        subject: &str,
    ) -> Result<(), Untested> {
        if metric != Metric::RequestsPerS || pairs.drivers_differ() {
            return Ok(());
        }
        let limited = |name: &str| Some(unsettled(GateReason::ClientLimits(Some(name.to_owned()))));
        match pairs.client_limited {
            (0, 0) => {}
            (0, _) => {
                test.not_passed = limited(&self.run.rules.baseline);
                test.low = None;
            }
            (_, 0) => {
                test.not_breached = limited(subject);
                test.high = None;
            }
            (_, _) => return not_judged(GateReason::ClientLimits(None)),
        }
        Ok(())
    }

    /// Withholds both outcomes if a bias of the whole run could have moved the estimate across the
    /// bound.
    fn hold_against_run(
        &self,
        test: &mut BoundTest,
        margin: &MarginOverBound,
        pool: &Pool<'_>,
        metric: Metric,
        subject: &str,
        sample: &Sample,
    ) {
        let distance = margin.sample.mean;
        let here = |f: &&NoiseFloor| f.condition == pool.condition && f.metric == metric;
        if let Some(floor) = self.run.floors.iter().find(here)
            && floor.is_biased(self.run.rules.matters)
            && distance.abs() <= floor.size()
        {
            withhold_both(test, &GateReason::WithinFloor(floor.clone()));
        }
        if metric != Metric::RequestsPerS {
            return;
        }
        let pair = (subject, self.run.rules.baseline.as_str());
        let bias = SliceBias::of(self.run.cells, &pool.condition, pair, 1);
        if let Some(bias) = bias.filter(|bias| bias.matters(self.run.rules)) {
            let corrected = sample.mean - bias.log_bias;
            let sign = if metric.higher_is_better() { 1.0 } else { -1.0 };
            let bound = sample.mean - sign * distance;
            if sign * (corrected - bound) * distance <= 0.0 {
                withhold_both(test, &GateReason::SliceBias);
            }
        }
    }

    /// If the client's lag is larger than the margin, an outcome stands only if the service
    /// times, which do not include the lag, lead to the same.
    fn client_lag(&self, test: &mut BoundTest, metric: Metric, pairs: &Pairs, share: f64) {
        if metric.quantile().is_none() || pairs.lag_share <= self.run.rules.matters {
            return;
        }
        let service = self.run.spreads.service_sample(metric, pairs);
        let service = service.map(|sample| {
            let margin = MarginOverBound::of(&sample, share.ln_1p(), metric.higher_is_better());
            (margin.p_breach(), margin.p_pass())
        });
        let (breach, pass) = service.unwrap_or_default();
        let is_sure = |p: Option<f64>| p.is_some_and(|p| p < self.alpha);
        let lag = || Some(unsettled(GateReason::ClientLag));
        if !is_sure(breach) {
            test.not_breached = test.not_breached.take().or_else(lag);
        }
        if !is_sure(pass) {
            test.not_passed = test.not_passed.take().or_else(lag);
        }
    }

    /// Whether a subject was overloaded at the rate of a latency, in more than half of at least three
    /// blocks.
    fn overloaded(&self, pool: &Pool<'_>, metric: Metric, subject: &str) -> Option<GateReason> {
        metric.quantile()?;
        let cells = self.run.cells;
        let members = pool.members.iter();
        let judged = members.flat_map(|c| cells.judged(metric.load_loop(), c, subject, false));
        let loads = judged.filter_map(|(_, cell)| cell.reading()?.latency.as_ref());
        let found = overloaded_blocks(loads)?;
        let is_most = found.overloaded >= FEWEST_BLOCKS && found.overloaded * 2 > found.blocks;
        is_most.then(|| GateReason::Overloaded {
            subject: subject.to_owned(),
            blocks: found.overloaded,
            tried: found.blocks,
            offered_per_s: found.offered_per_s,
            carried_per_s: found.carried_per_s,
        })
    }

    /// Withholds a pass if too many starts failed: they do not show that a subject is within its
    /// bound. In a gate on a change it withholds a breach if the baseline's failed.
    fn failed_starts(
        &self,
        test: &mut BoundTest,
        pool: &Pool<'_>,
        subject: &str,
        is_relative: bool,
    ) {
        let ours = pool.starts(self.run.cells, subject);
        let theirs = pool.starts(self.run.cells, &self.run.rules.baseline);
        let fail = match is_relative {
            true => ours.exceed(&theirs),
            false => ours.failed * 2 > ours.all,
        };
        if is_relative && theirs.exceed(&ours) {
            let reason = GateReason::FailedStarts(self.run.rules.baseline.clone(), theirs);
            test.not_breached = Some((GateOutcome::NotJudged, reason));
        }
        if fail {
            let reason = GateReason::FailedStarts(subject.to_owned(), ours);
            test.not_passed = Some((GateOutcome::NotJudged, reason));
        }
    }
}

/// Why a sample shows no difference at all, as a verdict would say.
fn no_difference(sample: &Sample, alpha: f64) -> Option<GateReason> {
    let (_, robust) = sample.robust(1.0 - alpha);
    if sample.p_value().is_none_or(|p| p >= alpha) {
        Some(GateReason::NoChange)
    } else if robust.is_some_and(|(low, high)| low <= 0.0 && high >= 0.0) {
        Some(GateReason::FewBlocksDecide)
    } else if !sample.differs_in_spite_of_skewness(alpha) {
        Some(GateReason::Skewed)
    } else {
        None
    }
}

/// The tests of a sample; `scale` converts a log figure to the bound's scale.
pub(super) fn bound_test(
    sample: &Sample,
    margin: &MarginOverBound,
    alpha: f64,
    scale: fn(f64) -> f64,
) -> Result<BoundTest, Untested> {
    let tests = margin.p_breach().zip(margin.p_pass());
    let Some((p_breach, p_pass)) = tests else {
        return Err(Box::new(unsettled(too_few(sample.blocks))));
    };
    let interval = sample.interval(1.0 - 2.0 * alpha);
    Ok(BoundTest {
        value: scale(sample.mean),
        low: interval.map(|(low, _)| scale(low)),
        high: interval.map(|(_, high)| scale(high)),
        p_breach,
        p_pass,
        not_breached: margin.withheld(GateOutcome::Breached, alpha),
        not_passed: margin.withheld(GateOutcome::Passed, alpha),
        spread: BoundSpread {
            distance: margin.sample.mean,
            sd: sample.sd.max(crate::stats::sample::FINEST),
            degrees: sample.blocks as f64 - 1.0 + sample.shared_degrees,
            blocks: sample.blocks,
            clean_blocks: None,
        },
    })
}

fn withhold_both(test: &mut BoundTest, reason: &GateReason) {
    let put = |withheld: &mut Withheld| {
        withheld.get_or_insert_with(|| unsettled(reason.clone()));
    };
    put(&mut test.not_breached);
    put(&mut test.not_passed);
}

fn too_few(usable: usize) -> GateReason {
    GateReason::TooFewBlocks {
        usable,
        needed: FEWEST_BLOCKS,
    }
}

/// How many blocks were tried, and what became of them.
struct Tried {
    tried: usize,
    unusable: usize,
    unresolved: bool,
    resolved_by: Option<ResolvedBy>,
    reason: Option<Reason>,
}

impl Tried {
    fn is_unusable(&self) -> bool {
        self.unusable * 2 > self.tried
    }

    /// The sample, if it has enough blocks.
    fn enough(self, sample: Option<Sample>) -> Result<Sample, Untested> {
        if self.is_unusable() {
            return not_judged(GateReason::Unusable {
                blocks: self.unusable,
                tried: self.tried,
                reason: self.reason,
            });
        }
        if self.unresolved {
            let reason = GateReason::TooFewRequests(self.resolved_by);
            return Err(Box::new(unsettled(reason)));
        }
        let Some(sample) = sample else {
            return Err(Box::new(unsettled(too_few(0))));
        };
        if sample.blocks < FEWEST_BLOCKS {
            return Err(Box::new(unsettled(too_few(sample.blocks))));
        }
        Ok(sample)
    }
}
