//! The rate that holds in nine of ten trials, from the outcomes of trials.

use super::trials::RateTrials;

/// The share of trials that has to hold at a capacity.
pub const HOLDS: f64 = 0.9;
/// What the interval leaves out at either end.
const TAIL: f64 = 0.025;
/// Spreads of the capacity from trial to trial that are thought possible, each power of ten as
/// likely as any other: standard deviations of its logarithm.
const SPREADS: (f64, f64) = (0.003, 0.25);
const SPREAD_STEPS: u32 = 12;
/// Shares of trials that miss whatever the rate, since the machine disturbed them, and how likely
/// each is thought to be.
const LAPSES: [(f64, f64); 3] = [(0.0, 0.6), (0.02, 0.25), (0.05, 0.15)];
/// Capacities are tried at this distance, in spreads.
const STEP: f64 = 0.35;
/// How far beyond the rates at which outcomes change capacities are looked for, in spreads.
const BEYOND: f64 = 8.0;
/// The chance that a trial at the answer must have, over all curves. A little more than [`HOLDS`]:
/// with spreads of 1% simulated searches fall short by two points.
const SURE: f64 = 0.92;
/// Curves that are less likely than the likeliest by this much (a logarithm) are left out.
const NEGLIGIBLE: f64 = 14.0;
/// Correlations above this count as this.
const MOST_CORRELATION: f64 = 0.6;
/// A trial whose chance to hold is nearer to 0 or 1 tells nothing of correlation.
const OPEN: f64 = 0.02;

/// One possible curve: the chance that a trial holds falls along a logistic curve of the
/// logarithm of its rate.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// The logarithm of the rate at which half of the undisturbed trials hold.
    place: f64,
    scale: f64,
    lapse: f64,
}

impl Curve {
    fn holds(&self, log_rate: f64) -> f64 {
        (1.0 - self.lapse) / (1.0 + ((log_rate - self.place) / self.scale).exp())
    }

    /// The logarithm of the rate at which [`HOLDS`] of the trials hold.
    fn capacity(&self) -> f64 {
        let share = HOLDS / (1.0 - self.lapse);
        self.place - self.scale * (share / (1.0 - share)).ln()
    }
}

/// What trials say of the capacity.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    /// Curves with their weights, which sum to 1.
    curves: Vec<(Curve, f64)>,
    /// The correlation of the outcomes of successive trials that it allows for.
    pub(super) correlation: f64,
}

impl Estimate {
    /// From all trials by rate, and from those that were judged in the order in which they were
    /// made, as (rate, held). Nothing where no trial held or none missed.
    ///
    /// That the rates were chosen by what came before does not matter to a likelihood. Correlated
    /// trials tell less: the likelihood is raised to the power by which their number counts.
    pub(super) fn of(trials: &[RateTrials], order: &[(f64, bool)]) -> Option<Self> {
        let independent = Self::with_power(trials, 1.0, 0.0)?;
        let correlation = independent.correlation_of(order);
        if correlation <= 0.0 {
            return Some(independent);
        }
        let power = (1.0 - correlation) / (1.0 + correlation);
        Self::with_power(trials, power, correlation)
    }

    fn with_power(trials: &[RateTrials], power: f64, correlation: f64) -> Option<Self> {
        let judged: Vec<(f64, f64, f64)> = trials
            .iter()
            .filter(|t| t.held + t.missed > 0)
            .map(|t| (t.rate_per_s.ln(), f64::from(t.held), f64::from(t.missed)))
            .collect();
        let highest = judged.iter().rev().find(|t| t.1 > 0.0)?.0;
        let lowest = judged.iter().find(|t| t.2 > 0.0)?.0;
        let ratio = SPREADS.1 / SPREADS.0;
        let mut curves: Vec<(Curve, f64)> = Vec::new();
        let mut most = f64::NEG_INFINITY;
        for i in 0..=SPREAD_STEPS {
            let spread = SPREADS.0 * ratio.powf(f64::from(i) / f64::from(SPREAD_STEPS));
            // A logistic curve's standard deviation is pi / sqrt(3) times its scale.
            let scale = spread * 3f64.sqrt() / std::f64::consts::PI;
            let step = STEP * spread;
            let from = highest.min(lowest) - BEYOND * spread;
            let to = highest.max(lowest) + BEYOND * spread;
            let steps = ((to - from) / step).ceil() as u32;
            for place in (0..=steps).map(|i| from + f64::from(i) * step) {
                let chances: Vec<f64> = judged
                    .iter()
                    .map(|(rate, _, _)| 1.0 / (1.0 + ((rate - place) / scale).exp()))
                    .collect();
                for (lapse, prior) in LAPSES {
                    let mut log = (prior * step).ln();
                    for ((_, held, missed), chance) in judged.iter().zip(&chances) {
                        let holds = (1.0 - lapse) * chance;
                        if *held > 0.0 {
                            log += power * held * holds.max(1e-300).ln();
                        }
                        if *missed > 0.0 {
                            log += power * missed * (1.0 - holds).max(1e-300).ln();
                        }
                        if log < most - NEGLIGIBLE {
                            break;
                        }
                    }
                    if log >= most - NEGLIGIBLE {
                        most = most.max(log);
                        curves.push((
                            Curve {
                                place,
                                scale,
                                lapse,
                            },
                            log,
                        ));
                    }
                }
            }
        }
        curves.retain(|(_, log)| *log >= most - NEGLIGIBLE);
        let whole: f64 = curves.iter().map(|(_, log)| (log - most).exp()).sum();
        for (_, log) in &mut curves {
            *log = (*log - most).exp() / whole;
        }
        Some(Self {
            curves,
            correlation,
        })
    }

    /// The chance that a trial holds at a rate, over all curves.
    fn holds(&self, log_rate: f64) -> f64 {
        let of = |(curve, weight): &(Curve, f64)| weight * curve.holds(log_rate);
        self.curves.iter().map(of).sum()
    }

    /// The highest rate at which the chance that the next trial holds is [`SURE`].
    pub(super) fn rate_per_s(&self) -> f64 {
        let capacities = || self.curves.iter().map(|(curve, _)| curve.capacity());
        let mut low = capacities().fold(f64::INFINITY, f64::min);
        let mut high = capacities().fold(f64::NEG_INFINITY, f64::max);
        while high - low > 1e-5 {
            let middle = 0.5 * (low + high);
            if self.holds(middle) >= SURE {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.exp()
    }

    /// The 95% interval of the rate at which [`HOLDS`] of the trials hold.
    pub(super) fn interval_per_s(&self) -> (f64, f64) {
        let mut all: Vec<(f64, f64)> = self
            .curves
            .iter()
            .map(|(curve, weight)| (curve.capacity(), *weight))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = |share: f64| {
            let mut below = 0.0;
            let found = all.iter().find(|(_, weight)| {
                below += weight;
                below >= share
            });
            found
                .or(all.last())
                .map_or(f64::NAN, |(rate, _)| rate.exp())
        };
        (at(TAIL), at(1.0 - TAIL))
    }

    /// The correlation of the deviations of successive trials whose outcome was open.
    fn correlation_of(&self, order: &[(f64, bool)]) -> f64 {
        let open: Vec<(f64, f64)> = order
            .iter()
            .filter_map(|(rate, held)| {
                let chance = self.holds(rate.ln());
                let is_open = OPEN < chance && chance < 1.0 - OPEN;
                let off = f64::from(u8::from(*held)) - chance;
                is_open.then_some((off, chance * (1.0 - chance)))
            })
            .collect();
        let (mut products, mut expected) = (0.0, 0.0);
        for pair in open.windows(2) {
            products += pair[0].0 * pair[1].0;
            expected += (pair[0].1 * pair[1].1).sqrt();
        }
        if expected <= 0.0 {
            return 0.0;
        }
        (products / expected).clamp(0.0, MOST_CORRELATION)
    }
}
