//! The interval of a capacity from its trials.

use super::RateTrials;

/// What the interval leaves out at either end.
const TAIL: f64 = 0.025;
/// Spreads of the capacity from trial to trial that are thought possible, each power of ten as
/// likely as any other: standard deviations of its logarithm.
const SPREADS: (f64, f64) = (0.003, 0.2);
const SPREAD_STEPS: u32 = 20;
/// How finely capacities are tried, on the logarithmic scale.
const STEP: f64 = 0.002;
/// How far beyond the rates at which outcomes change capacities are looked for.
const BEYOND: f64 = 0.7;

/// The 95% interval of the capacity: the rate at which half of the trials hold.
///
/// The chance that a trial holds is taken to fall from 1 to 0 with the logarithm of its rate along
/// a logistic curve, whose place is the capacity and whose slope is the noise between trials. The
/// interval holds 95% of the likelihood of the place, summed over slopes: few trials tell little of
/// the noise, so none of its sizes may be taken for granted. That the rates were chosen by what
/// came before does not matter to a likelihood. An end is absent where no trial bounds it.
pub(super) fn interval(trials: &[RateTrials]) -> (Option<f64>, Option<f64>) {
    let held = trials.iter().filter(|t| t.held > 0);
    let missed = trials.iter().filter(|t| t.missed > 0);
    let (held, missed): (Vec<f64>, Vec<f64>) = (
        held.map(|t| t.rate_per_s.ln()).collect(),
        missed.map(|t| t.rate_per_s.ln()).collect(),
    );
    let (Some(highest), Some(lowest)) = (held.last(), missed.first()) else {
        return (None, None);
    };
    let (from, to) = (highest.min(*lowest) - BEYOND, highest.max(*lowest) + BEYOND);
    let steps = ((to - from) / STEP).ceil() as u32;
    let places: Vec<f64> = (0..=steps).map(|i| from + f64::from(i) * STEP).collect();
    let weights = weights(trials, &places);
    let whole: f64 = weights.iter().sum();
    let mut below = 0.0;
    let (mut low, mut high) = (from, to);
    for (place, weight) in places.iter().zip(weights) {
        let before = below / whole;
        below += weight;
        let after = below / whole;
        if before <= TAIL && TAIL < after {
            low = *place;
        }
        if before < 1.0 - TAIL && 1.0 - TAIL <= after {
            high = *place;
        }
    }
    (Some(low.exp()), Some(high.exp()))
}

/// The likelihood of each capacity, summed over spreads.
fn weights(trials: &[RateTrials], places: &[f64]) -> Vec<f64> {
    let ratio = SPREADS.1 / SPREADS.0;
    let mut weights = vec![0.0; places.len()];
    for i in 0..=SPREAD_STEPS {
        let spread = SPREADS.0 * ratio.powf(f64::from(i) / f64::from(SPREAD_STEPS));
        // A logistic curve's standard deviation is pi / sqrt(3) times its scale.
        let scale = spread * 3f64.sqrt() / std::f64::consts::PI;
        for (weight, place) in weights.iter_mut().zip(places) {
            let mut likelihood = 1.0;
            for t in trials {
                let holds = 1.0 / (1.0 + ((t.rate_per_s.ln() - place) / scale).exp());
                likelihood *= holds.powi(t.held as i32) * (1.0 - holds).powi(t.missed as i32);
            }
            *weight += likelihood;
        }
    }
    weights
}
