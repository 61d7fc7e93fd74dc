//! Whether a series, such as a load's throughput second by second, has settled.
//!
//! MSER-5 is White's marginal standard error rule on means of five values: it cuts off as much
//! of the beginning as makes the standard error of the mean of the rest smallest. Where it would
//! cut off more than half there is no steady state in the series. The rule has that result by
//! chance, too: of series of pure noise in 6 to 13 cases of a hundred (60 to 200 values, by
//! simulation). [`steady_state`] therefore also asks that what was cut off differs from the rest
//! by more than noise, which leaves at most 5 in a thousand.
//!
//! Sources: K. P. White, An effective truncation heuristic for bias reduction in simulation
//! output, Simulation 69 (1997); K. P. White, M. J. Cobb, S. C. Spratt, A comparison of five
//! steady-state truncation heuristics for simulation, WSC 2000. That the last batches do not count
//! as a place to cut: K. Hoad, S. Robinson, R. Davies, Automating warm-up length estimation,
//! Journal of the Operational Research Society 61 (2010). Difference between neighbours as a
//! measure of noise that no trend disturbs: J. von Neumann and others, The mean square successive
//! difference, Annals of Mathematical Statistics 12 (1941).

use crate::stats::student::t_quantile;

const BATCH: usize = 5;
/// Batches at the end that are never cut off: few are alike by chance too easily.
const BATCHES_KEPT: usize = 5;
/// With fewer batches than this, more than half can hardly be cut off at all.
const FEWEST_BATCHES: usize = 12;
/// Standard errors by which the part that was cut off has to differ from the rest.
const DIFFERS: f64 = 3.5;
/// And by which share of the rest, as a fraction: less than this seldom matters.
const DIFFERS_SHARE: f64 = 0.03;
/// How often a series without any memory may be said to have one.
const CHANCE: f64 = 0.01;

/// Whether and where a series settles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyState {
    /// Fewer than 60 values: nothing can be said.
    TooShort,
    /// From the value with this index on.
    From(usize),
    /// Not within the series.
    Never {
        /// The mean of what would have to be cut off.
        before: f64,
        /// The mean of the rest.
        after: f64,
    },
}

/// Whether and where a series settles: MSER-5, and a check that 'never' is not chance.
pub fn steady_state(series: &[f64]) -> SteadyState {
    let Some(batches) = batch_means(series) else {
        return SteadyState::TooShort;
    };
    let cut = truncation(&batches);
    if cut * 2 <= batches.len() {
        return SteadyState::From(cut * BATCH);
    }
    let (before, after) = (mean(&batches[..cut]), mean(&batches[cut..]));
    let (n, m) = (cut as f64, (batches.len() - cut) as f64);
    let error = noise(&batches) * (1.0 / n + 1.0 / m).sqrt();
    let difference = (before - after).abs();
    if difference > DIFFERS * error && difference > DIFFERS_SHARE * after.abs() {
        SteadyState::Never { before, after }
    } else {
        SteadyState::From(0)
    }
}

/// What the values of a series are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    Throughput,
    MedianLatency,
}

/// A series that cannot stand for a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsteady {
    pub series: Series,
    pub values: usize,
    /// The mean of what would have to be cut off.
    pub before: f64,
    /// The mean of the rest.
    pub after: f64,
}

/// Whether a series cannot stand for a steady state; nothing where it can, or where it is too short
/// to tell.
pub fn unsteady(series: Series, values: &[f64]) -> Option<Unsteady> {
    let SteadyState::Never { before, after } = steady_state(values) else {
        return None;
    };
    Some(Unsteady {
        series,
        values: values.len(),
        before,
        after,
    })
}

/// The correlation of each value with the next, -1 to 1; nothing for fewer than four values or for
/// values that are all alike.
pub fn lag1(series: &[f64]) -> Option<f64> {
    if series.len() < 4 {
        return None;
    }
    let mean = mean(series);
    let squares: f64 = series.iter().map(|x| (x - mean).powi(2)).sum();
    let products: f64 = series
        .windows(2)
        .map(|w| (w[0] - mean) * (w[1] - mean))
        .sum();
    (squares > 0.0).then(|| products / squares)
}

/// [`lag1`], where it is positive beyond what one of a hundred series without memory shows.
/// `series_looked_at` is how many were searched for one.
///
/// Mean and variance for independent values: P. A. P. Moran, Some theorems on time series,
/// Biometrika 35 (1948).
pub fn memory(series: &[f64], series_looked_at: usize) -> Option<f64> {
    let n = series.len() as f64;
    let r = lag1(series)?;
    let chance = CHANCE / series_looked_at.max(1) as f64;
    let normal = t_quantile(1.0 - chance, 1e6);
    let limit = -1.0 / n + normal * (n - 2.0) / (n * (n - 1.0).sqrt());
    (r > limit).then_some(r)
}

/// The means of batches of five; nothing where they are too few.
fn batch_means(series: &[f64]) -> Option<Vec<f64>> {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    (batches.len() >= FEWEST_BATCHES).then_some(batches)
}

/// How many batches MSER cuts off.
fn truncation(batches: &[f64]) -> usize {
    let statistic = |cut: usize| {
        let rest = &batches[cut..];
        let mean = mean(rest);
        let squares: f64 = rest.iter().map(|x| (x - mean).powi(2)).sum();
        squares / (rest.len() as f64).powi(2)
    };
    let last = batches.len().saturating_sub(BATCHES_KEPT);
    let mut best = (0, statistic(0));
    for cut in 1..=last {
        let here = statistic(cut);
        if here < best.1 {
            best = (cut, here);
        }
    }
    best.0
}

/// The standard deviation of single values, from how neighbours differ.
fn noise(values: &[f64]) -> f64 {
    let squares: f64 = values.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    (squares / (2.0 * (values.len() as f64 - 1.0))).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Normal;

    /// How often of 1,000 series there is no steady state.
    fn never(values: usize, mut value: impl FnMut(f64, &mut Normal) -> f64) -> f64 {
        let mut normal = Normal::with_seed(5);
        let runs = 1000;
        let found = (0..runs)
            .filter(|_| {
                let series: Vec<f64> = (0..values)
                    .map(|i| value(i as f64 / values as f64, &mut normal))
                    .collect();
                matches!(steady_state(&series), SteadyState::Never { .. })
            })
            .count();
        found as f64 / f64::from(runs)
    }

    #[test]
    fn noise_is_a_steady_state() {
        for values in [60, 100, 300] {
            let share = never(values, |_, n| 100.0 + 10.0 * n.next());
            assert!(share <= 0.015, "{share} of {values}");
        }
    }

    #[test]
    fn a_warm_up_is_cut_off_and_the_rest_is_steady() {
        let share = never(200, |t, n| {
            100.0 - 50.0 * (-t / 0.05).exp() + 10.0 * n.next()
        });
        assert!(share <= 0.02, "{share}");
        let series: Vec<f64> = (0..200)
            .map(|i| if i < 40 { 50.0 } else { 100.0 } + f64::from(i % 5))
            .collect();
        assert_eq!(steady_state(&series), SteadyState::From(40));
    }

    #[test]
    fn what_never_ends_to_change_has_no_steady_state() {
        let ramp = never(200, |t, n| 100.0 + 60.0 * t + 10.0 * n.next());
        assert!(ramp > 0.85, "{ramp}");
        let late_step = never(100, |t, n| {
            100.0 + if t > 0.7 { 30.0 } else { 0.0 } + 10.0 * n.next()
        });
        assert!(late_step > 0.9, "{late_step}");
    }

    #[test]
    fn a_change_too_small_to_matter_is_let_pass() {
        let step = |size: f64| never(100, move |t, _| if t > 0.7 { 100.0 + size } else { 100.0 });
        assert_eq!(step(2.0), 0.0);
        assert_eq!(step(5.0), 1.0);
    }

    #[test]
    fn a_series_that_moves_late_is_unsteady() {
        let series: Vec<f64> = (0..100)
            .map(|i| if i < 70 { 1000.0 } else { 800.0 })
            .collect();
        let expected = Unsteady {
            series: Series::Throughput,
            values: 100,
            before: 1000.0,
            after: 800.0,
        };
        let found = |values: &[f64]| unsteady(Series::Throughput, values);
        assert_eq!(found(&series), Some(expected));
        assert_eq!(found(&series[..70]), None);
        assert_eq!(steady_state(&series[..59]), SteadyState::TooShort);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn memory_is_told_from_chance() {
        let mut normal = Normal::with_seed(9);
        let mut with = |carried: f64, values: usize| {
            let found = (0..1000)
                .filter(|_| {
                    let mut last = normal.next();
                    let series: Vec<f64> = (0..values)
                        .map(|_| {
                            last = carried * last + normal.next();
                            last
                        })
                        .collect();
                    memory(&series, 1).is_some()
                })
                .count();
            found as f64 / 1000.0
        };
        for values in [10, 30, 100] {
            let chance = with(0.0, values);
            assert!(chance <= 0.022, "{chance} of {values}");
        }
        assert!(with(0.7, 30) > 0.8);
    }

    #[test]
    fn lag1_of_a_worked_example() {
        // Mean 2.5; deviations -1.5, -0.5, 0.5, 1.5: products 0.75 - 0.25 + 0.75, squares 5.
        assert!((lag1(&[1.0, 2.0, 3.0, 4.0]).unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(lag1(&[1.0, 1.0, 1.0, 1.0]), None);
        assert_eq!(lag1(&[1.0, 2.0, 3.0]), None);
    }
}
