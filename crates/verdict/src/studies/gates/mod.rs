//! Gates: is a subject surely worse than a bound, or is it not inferior?
//!
//! A gate makes two one-sided tests over blocks, on the logarithm of the figure. It is *breached*
//! if the figure is surely beyond the bound, and *passed* if it is surely within (a test of
//! non-inferiority). Otherwise it is unsettled.
//!
//! Breaches are corrected by Holm's procedure over all gates of the run: if all figures lie exactly
//! at their bounds, the probability of any breach is at most the run's error rate. Passing needs no
//! correction: a run passes only if every gate does, and such an intersection-union test has the
//! error rate of a single gate (Berger: Multiparameter hypothesis testing and acceptance sampling,
//! Technometrics 24, 1982).
//!
//! What withholds a verdict also withholds the outcome of a gate.

pub mod words;

mod capacity;
mod evidence;
mod failures;
mod outcome;
mod tests_of_bound;

use readings::{Condition, Gate, GateBound, RunHeader, Trial};

use crate::stats::family::{Test, Undecidable, family};
use crate::studies::plan::{self, Needed};
use crate::trial::cells::Cells;
use crate::{NoiseFloor, Rules};
pub use capacity::judge_capacity_gates;
use evidence::{GateData, Place, Untested};
pub use outcome::{GateOutcome, GateReason, GateResult};
use tests_of_bound::BoundTest;

/// A gate for one subject and condition, before the correction over all gates.
struct Draft<'g> {
    gate: &'g Gate,
    condition: Condition,
    subject: String,
    blocks: usize,
    rate_per_s: Option<f64>,
    test: Result<BoundTest, Untested>,
}

/// Judges the gates of trials by the given rules.
pub fn judge_gates<'a>(
    rules: &Rules,
    header: &RunHeader,
    gates: &[Gate],
    trials: impl IntoIterator<Item = &'a Trial>,
) -> Vec<GateResult> {
    let cells = Cells::of(header, trials);
    let floors = crate::comparison::floor::noise_floor(rules, &cells);
    judge(rules, &cells, gates, &floors)
}

pub(crate) fn judge(
    rules: &Rules,
    cells: &Cells<'_>,
    gates: &[Gate],
    floors: &[NoiseFloor],
) -> Vec<GateResult> {
    if gates.is_empty() {
        return Vec::new();
    }
    let data = GateData {
        rules,
        cells,
        floors,
        alpha: rules.look_alpha(),
    };
    let drafts: Vec<Draft<'_>> = gates.iter().flat_map(|gate| drafts(&data, gate)).collect();
    let trials: Vec<&Trial> = cells.counted().map(|cell| cell.trial).collect();
    decide(rules, drafts, plan::block_s(&trials))
}

/// Decides all gates of a run together.
fn decide(rules: &Rules, drafts: Vec<Draft<'_>>, block_s: Option<f64>) -> Vec<GateResult> {
    let p_breach = |draft: &Draft<'_>| Some(draft.test.as_ref().ok()?.p_breach);
    let tests = family(drafts, p_breach, Undecidable::IsLeftOut);
    let finish = |test: Test<Draft<'_>>| {
        let (p_adjusted, of) = (test.p_adjusted, test.of);
        test.draft.finish(rules, p_adjusted, of, block_s)
    };
    tests.into_iter().map(finish).collect()
}

/// One for each subject and condition that the gate holds for.
fn drafts<'g>(data: &GateData<'_, '_>, gate: &'g Gate) -> Vec<Draft<'g>> {
    let cells = data.cells;
    let is_relative = matches!(gate.bound, GateBound::Relative(_));
    let is_alone = cells.subjects.len() == 1 && !is_relative;
    let is_meant = |name: &&String| match &gate.subject {
        Some(subject) => *subject == **name,
        None => **name != data.rules.baseline || is_alone,
    };
    let subjects: Vec<&String> = cells.subjects.iter().filter(is_meant).collect();
    let mut all = Vec::new();
    for condition in &cells.conditions {
        for subject in &subjects {
            let found = data.evidence(gate, condition, subject);
            let Some((place, test)) = found else {
                continue;
            };
            let Place {
                condition,
                blocks,
                rate_per_s,
            } = place;
            all.push(Draft {
                gate,
                condition,
                subject: (*subject).clone(),
                blocks,
                rate_per_s,
                test,
            });
        }
    }
    if all.is_empty() {
        let subject = gate.subject.as_ref().or(subjects.first().copied());
        all.push(Draft {
            gate,
            condition: Condition::new(),
            subject: subject.cloned().unwrap_or_default(),
            blocks: 0,
            rate_per_s: None,
            test: Err(Box::new((GateOutcome::NotJudged, GateReason::NotMeasured))),
        });
    }
    all
}

impl Draft<'_> {
    fn finish(
        self,
        rules: &Rules,
        p_adjusted: Option<f64>,
        tests: usize,
        block_s: Option<f64>,
    ) -> GateResult {
        let alpha = rules.look_alpha();
        let (bound, is_relative) = match self.gate.bound {
            GateBound::Relative(share) => (share, true),
            GateBound::Absolute(value) => (value, false),
        };
        let mut result = GateResult {
            name: self.gate.name.clone(),
            gate: self.gate.full_text(),
            metric: self.gate.metric,
            condition: self.condition,
            subject: self.subject,
            baseline: is_relative.then(|| rules.baseline.clone()),
            bound,
            outcome: GateOutcome::Unsettled,
            reason: None,
            value: None,
            low: None,
            high: None,
            confidence: 1.0 - 2.0 * alpha,
            blocks: self.blocks,
            p_breach: None,
            p_breach_adjusted: p_adjusted,
            p_pass: None,
            needed: None,
            rate_per_s: self.rate_per_s,
        };
        let test = match self.test {
            Ok(test) => test,
            Err(untested) => {
                let (outcome, reason) = *untested;
                if let GateReason::TooFewBlocks { needed, .. }
                | GateReason::OtherPrograms { needed, .. } = reason
                {
                    result.needed = Some(at_least(needed, block_s));
                }
                (result.outcome, result.reason) = (outcome, Some(reason));
                return result;
            }
        };
        (result.value, result.low, result.high) = (Some(test.value), test.low, test.high);
        (result.p_breach, result.p_pass) = (Some(test.p_breach), Some(test.p_pass));
        let is_breached = p_adjusted.is_some_and(|p| p < alpha);
        let (outcome, withheld) = if is_breached {
            (GateOutcome::Breached, test.not_breached)
        } else if test.p_pass < alpha {
            (GateOutcome::Passed, test.not_passed)
        } else {
            let alone = test.p_breach < alpha;
            let reason = alone.then_some((GateOutcome::Unsettled, GateReason::NotAmong(tests)));
            result.needed = test.spread.needed(alpha, tests, block_s);
            (GateOutcome::Unsettled, reason)
        };
        result.outcome = outcome;
        if let Some((outcome, reason)) = withheld {
            (result.outcome, result.reason) = (outcome, Some(reason));
        }
        result
    }
}

/// The forecast for a gate that is judged only with this many blocks.
fn at_least(blocks: usize, block_s: Option<f64>) -> Needed {
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    Needed {
        blocks,
        low: blocks,
        high: None,
        time_s: block_s.map(|block_s| block_s * f64::from(blocks)),
    }
}

/// Whether more blocks would change no outcome: each gate is passed, breached, or cannot be judged
/// because it has no usable block at all.
pub(crate) fn are_settled(gates: &[GateResult]) -> bool {
    gates.iter().all(|gate| match gate.outcome {
        GateOutcome::Passed | GateOutcome::Breached => true,
        GateOutcome::Unsettled => false,
        GateOutcome::NotJudged => gate.blocks == 0,
    })
}

#[cfg(test)]
mod simulated_tests;
#[cfg(test)]
mod tests;
