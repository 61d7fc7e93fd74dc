//! A gate on the rate that a capacity search found.

use readings::{Condition, Gate, GateBound};

use super::outcome::{GateOutcome, GateReason, GateResult};
use crate::studies::capacity::{Bound, Capacity};

/// Judges gates on the capacity by its 95% interval: passed if all of it is above the bound,
/// breached if all of it is below. If the highest rate held, the capacity is only known to be at
/// least that.
pub fn judge_capacity_gates(gates: &[Gate], target: &str, capacity: &Capacity) -> Vec<GateResult> {
    let is_open = capacity.upper_is != Bound::Missed;
    let low = match (capacity.low_per_s, is_open) {
        (Some(low), _) => Some(low),
        (None, true) => capacity.lower_per_s,
        (None, false) => None,
    };
    // If no rate held, the lowest one that was offered is above the capacity.
    let lowest = capacity
        .upper_per_s
        .filter(|_| capacity.lower_per_s.is_none());
    let high = capacity.high_per_s.or(lowest).filter(|_| !is_open);
    let judged = |gate: &Gate| {
        let bound = match gate.bound {
            GateBound::Absolute(value) => value,
            GateBound::Relative(share) => share,
        };
        let outcome = match (low, high) {
            (Some(low), _) if low >= bound => GateOutcome::Passed,
            (_, Some(high)) if high < bound => GateOutcome::Breached,
            (None, None) => GateOutcome::NotJudged,
            _ => GateOutcome::Unsettled,
        };
        let unknown = outcome == GateOutcome::NotJudged;
        GateResult {
            name: gate.name.clone(),
            gate: gate.full_text(),
            metric: gate.metric,
            condition: Condition::new(),
            subject: target.to_owned(),
            baseline: None,
            bound,
            outcome,
            reason: unknown.then_some(GateReason::NotMeasured),
            value: capacity.holds_per_s.or(low),
            low,
            high,
            confidence: 0.95,
            blocks: 0,
            p_breach: None,
            p_pass: None,
            needed: None,
            rate_per_s: None,
        }
    };
    gates.iter().map(judged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::GateMetric;

    fn outcome(low: Option<f64>, high: Option<f64>, upper_is: Bound) -> GateOutcome {
        let gate = Gate {
            name: "g".into(),
            text: "capacity > 1000/s".into(),
            subject: None,
            metric: GateMetric::Capacity,
            bound: GateBound::Absolute(1_000.0),
        };
        let capacity = Capacity {
            holds_per_s: low,
            low_per_s: low,
            high_per_s: high,
            correlation: 0.0,
            lower_per_s: low,
            upper_per_s: high,
            upper_is,
            complete: true,
            trials: Vec::new(),
        };
        judge_capacity_gates(&[gate], "http://h:1/", &capacity)[0].outcome
    }

    #[test]
    fn a_capacity_is_held_against_its_bound_by_its_interval() {
        let of = |low, high| outcome(Some(low), Some(high), Bound::Missed);
        assert_eq!(of(1_100.0, 1_300.0), GateOutcome::Passed);
        assert_eq!(of(700.0, 900.0), GateOutcome::Breached);
        assert_eq!(of(900.0, 1_100.0), GateOutcome::Unsettled);
        assert_eq!(outcome(None, None, Bound::Missed), GateOutcome::NotJudged);
        // No rate held, down to this one; and none missed, up to this one.
        assert_eq!(
            outcome(None, Some(800.0), Bound::Missed),
            GateOutcome::Breached
        );
        assert_eq!(
            outcome(Some(1_200.0), None, Bound::Range),
            GateOutcome::Passed
        );
        assert_eq!(
            outcome(Some(900.0), None, Bound::Range),
            GateOutcome::Unsettled
        );
    }
}
