//! Gates: is a subject surely worse than a bound, or is it not inferior?
//!
//! A gate makes two one-sided tests over blocks, on the logarithm of the figure. It is *breached*
//! if the figure is surely beyond the bound, and *passed* if it is surely within (a test of
//! non-inferiority). Otherwise it is unsettled.
//!
//! Each gate is a question of its own and is judged alone: a figure exactly at its bound breaches it at
//! most at the run's error rate, and where nothing has changed it lies a whole bound away. A run passes
//! only if every gate does, and such an intersection-union test has the error rate of a single gate
//! (Berger: Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 1982).
//!
//! Gate and verdict of a figure rest on the same sample, and what withholds the one withholds the
//! other. A latency at a rate that the subject cannot carry breaches its gate.

pub mod words;

mod capacity;
mod evidence;
mod failures;
mod outcome;
mod tests_of_bound;

use readings::{Condition, Gate, GateBound, RunHeader, Trial};

use crate::Rules;
use crate::comparison::draft::{Run, in_run};
use crate::studies::plan::{self, Needed};
use crate::trial::cells::Cells;
pub use capacity::judge_capacity_gates;
use evidence::{GateData, Place, Untested};
pub use outcome::{GateOutcome, GateReason, GateResult};
use tests_of_bound::BoundTest;

/// A gate for one subject and condition, before it is judged.
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
    in_run(rules, &cells, |run| judge(run, gates))
}

pub(crate) fn judge(run: &Run<'_, '_>, gates: &[Gate]) -> Vec<GateResult> {
    if gates.is_empty() {
        return Vec::new();
    }
    let (rules, cells) = (run.rules, run.cells);
    let data = GateData {
        run,
        alpha: rules.look_alpha(),
    };
    let drafts: Vec<Draft<'_>> = gates.iter().flat_map(|gate| drafts(&data, gate)).collect();
    let trials: Vec<&Trial> = cells.counted().map(|cell| cell.trial).collect();
    decide(rules, drafts, plan::block_s(&trials))
}

fn decide(rules: &Rules, drafts: Vec<Draft<'_>>, block_s: Option<f64>) -> Vec<GateResult> {
    let finish = |draft: Draft<'_>| draft.finish(rules, block_s);
    drafts.into_iter().map(finish).collect()
}

/// One for each subject and condition that the gate holds for.
fn drafts<'g>(data: &GateData<'_, '_>, gate: &'g Gate) -> Vec<Draft<'g>> {
    let cells = data.run.cells;
    let is_relative = matches!(gate.bound, GateBound::Relative(_));
    let is_alone = cells.subjects.len() == 1 && !is_relative;
    let is_meant = |name: &&String| match &gate.subject {
        Some(subject) => *subject == **name,
        None => **name != data.run.rules.baseline || is_alone,
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
    fn finish(self, rules: &Rules, block_s: Option<f64>) -> GateResult {
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
            p_pass: None,
            needed: None,
            rate_per_s: self.rate_per_s,
        };
        let test = match self.test {
            Ok(test) => test,
            Err(untested) => {
                let (outcome, reason) = *untested;
                let needed = match &reason {
                    GateReason::TooFewBlocks { needed, .. } => Some(*needed),
                    GateReason::TooFewRequests(by) => by.map(|by| by.blocks),
                    _ => None,
                };
                result.needed = needed
                    .map(|needed| at_least(u32::try_from(needed).unwrap_or(u32::MAX), block_s));
                (result.outcome, result.reason) = (outcome, Some(reason));
                return result;
            }
        };
        (result.value, result.low, result.high) = (Some(test.value), test.low, test.high);
        (result.p_breach, result.p_pass) = (Some(test.p_breach), Some(test.p_pass));
        let (outcome, withheld) = if test.p_breach < alpha {
            (GateOutcome::Breached, test.not_breached)
        } else if test.p_pass < alpha {
            (GateOutcome::Passed, test.not_passed)
        } else {
            result.needed = test.spread.needed(alpha, block_s);
            (GateOutcome::Unsettled, None)
        };
        result.outcome = outcome;
        if let Some((outcome, reason)) = withheld {
            (result.outcome, result.reason) = (outcome, Some(reason));
        }
        result
    }
}

/// The forecast for a gate that is judged only with this many blocks.
fn at_least(blocks: u32, block_s: Option<f64>) -> Needed {
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
mod agreement_tests;
#[cfg(test)]
mod simulated_tests;
#[cfg(test)]
mod tests;
