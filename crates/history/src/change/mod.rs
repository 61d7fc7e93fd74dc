//! Change points of a series of log ratios whose standard errors are known.
//!
//! E-divisive (Matteson and James, 2014) finds where to split a stretch of runs so that the two
//! parts differ most. A t test, in place of permutations, decides whether they differ, so that the
//! same data give the same answer (Fleming and others, Hunter, arXiv 2301.03034). Each run is
//! weighted by the inverse of its variance. The formulas are in `docs/src/method/history.md`.

mod energy;
mod scale;

use verdict::{t_quantile, t_two_sided_p};

use energy::Energy;
pub use scale::{CONFIRMED_BY, Point};
use scale::{Level, Noise, inflation};

/// Runs in one window of the search.
const WINDOW: usize = 50;
/// By how many runs the window moves.
const STEP: usize = WINDOW / 2;
/// The p value below which a single series has a change, corrected for the number of places.
pub const LEVEL: f64 = 0.005;
/// By what factor the p value of a candidate in the first pass may be larger, as its neighbours are
/// not known yet.
const CANDIDATES: f64 = 10.0;
/// Each run after an unconfirmed change lies at least this many standard deviations beyond the
/// level before.
const EACH_BEYOND: f64 = 2.0;

/// A change of level within a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first run of the new level, counted from 0.
    pub at: usize,
    /// The log of the new level over the old.
    pub log_ratio: f64,
    /// The ends of its 95% interval.
    pub low: f64,
    pub high: f64,
    /// Two-sided p value of 'no change here', multiplied by the number of places at which the
    /// change could have been found.
    pub p_value: f64,
    /// Whether enough runs lie at the new level.
    pub confirmed: bool,
}

/// Finds the changes of a series without breaks.
///
/// `level` is the p value below which a change is reported. With `open_end`, more runs may follow,
/// so the last one or two runs may be an unconfirmed change.
pub fn changes(points: &[Point], level: f64, open_end: bool) -> Vec<Change> {
    let Some(noise) = Noise::of(points) else {
        return Vec::new();
    };
    let search = Search {
        points,
        noise,
        open_end,
    };
    let mut at = search.candidates(CANDIDATES * level);
    search.move_to_best(&mut at);
    loop {
        let tests: Vec<Option<Test>> = (0..at.len()).map(|i| search.test(&at, i)).collect();
        let p = |test: &Option<Test>| test.as_ref().map_or(1.0, |t| t.p_value);
        let weakest = (0..at.len()).max_by(|&a, &b| p(&tests[a]).total_cmp(&p(&tests[b])));
        match weakest {
            Some(i) if p(&tests[i]) > level => {
                at.remove(i);
            }
            _ => {
                return at
                    .iter()
                    .zip(tests)
                    .filter_map(|(&at, test)| Some(test?.change(at)))
                    .collect();
            }
        }
    }
}

/// The level of runs without a change between them; `None` without runs.
pub fn level(points: &[Point]) -> Option<f64> {
    if points.is_empty() {
        return None;
    }
    let noise = Noise::of_level(points);
    Some(Level::of(&noise, 0, points.len()).mean)
}

struct Search<'a> {
    points: &'a [Point],
    noise: Noise,
    open_end: bool,
}

/// The t test of the runs before and after a place.
struct Test {
    difference: f64,
    standard_error: f64,
    degrees: f64,
    p_value: f64,
    confirmed: bool,
}

impl Test {
    fn change(&self, at: usize) -> Change {
        let half = t_quantile(0.975, self.degrees) * self.standard_error;
        Change {
            at,
            log_ratio: self.difference,
            low: self.difference - half,
            high: self.difference + half,
            p_value: self.p_value,
            confirmed: self.confirmed,
        }
    }
}

impl Search<'_> {
    /// The first pass: splits each window recursively where its parts differ most.
    fn candidates(&self, level: f64) -> Vec<usize> {
        let runs = self.points.len();
        let mut found = Vec::new();
        let mut from = 0;
        loop {
            let to = (from + WINDOW).min(runs);
            let energy = Energy::of(&self.noise, from, to);
            self.split(&energy, from, to, level, &mut found);
            if to == runs {
                break;
            }
            from = (from + STEP).min(runs - WINDOW);
        }
        found.sort_unstable();
        found.dedup();
        // Windows overlap, and may place the same change one or two runs apart.
        let mut apart: Vec<usize> = Vec::new();
        for at in found {
            if apart.last().is_none_or(|last| at - last >= CONFIRMED_BY) {
                apart.push(at);
            }
        }
        apart
    }

    fn split(&self, energy: &Energy, from: usize, to: usize, level: f64, found: &mut Vec<usize>) {
        let Some(at) = energy.best(from, to, self.places(from, to)) else {
            return;
        };
        let before = Level::of(&self.noise, from, at);
        let after = Level::of(&self.noise, at, to);
        let error = (before.variance() + after.variance()).sqrt();
        let t = (after.mean - before.mean) / error;
        let p = t_two_sided_p(t, (to - from) as f64 - 2.0);
        if p > level {
            return;
        }
        found.push(at);
        self.split(energy, from, at, level, found);
        self.split(energy, at, to, level, found);
    }

    /// Where a change may lie between two ends: with enough runs on both sides, or with one or two
    /// after it at the open end of the series.
    fn places(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + use<> {
        let is_end = self.open_end && to == self.points.len();
        let least_after = if is_end { 1 } else { CONFIRMED_BY };
        (from + CONFIRMED_BY)..(to + 1).saturating_sub(least_after)
    }

    /// Moves each candidate to the best split between its neighbours.
    fn move_to_best(&self, at: &mut [usize]) {
        for i in 0..at.len() {
            let (from, to) = neighbours(at, i, self.points.len());
            let energy = Energy::of(&self.noise, from, to);
            if let Some(best) = energy.best(from, to, self.places(from, to)) {
                at[i] = best;
            }
        }
    }

    /// The t test of one change between its neighbours; `None` if no change can lie there.
    fn test(&self, at: &[usize], i: usize) -> Option<Test> {
        let (from, to) = neighbours(at, i, self.points.len());
        let place = at[i];
        let mut places = self.places(from, to);
        if !places.any(|one| one == place) {
            return None;
        }
        let places = self.places(from, to).count();
        let before = Level::of(&self.noise, from, place);
        let after = Level::of(&self.noise, place, to);
        let difference = after.mean - before.mean;
        let middle = 0.5 * (before.mean + after.mean);
        let is_nearer_to_new = |run: usize| {
            let value = self.noise.values[run];
            (value - middle) * difference.signum() > 0.0
        };
        let new = (place..to).filter(|run| is_nearer_to_new(*run)).count();
        let old = (from..place).filter(|run| !is_nearer_to_new(*run)).count();
        let confirmed = new >= CONFIRMED_BY;
        let is_end = self.open_end && to == self.points.len();
        if old < CONFIRMED_BY || !(confirmed || is_end) {
            return None;
        }
        if to - place < CONFIRMED_BY {
            let beyond = |run: usize| {
                let z = (self.noise.values[run] - before.mean) / self.noise.variances[run].sqrt();
                z * difference.signum() >= EACH_BEYOND
            };
            if !(place..to).all(beyond) {
                return None;
            }
        }
        let factor = inflation(&self.noise, &before, &after);
        let standard_error = (factor * (before.variance() + after.variance())).sqrt();
        let degrees = (to - from) as f64 - 2.0;
        let p = t_two_sided_p(difference / standard_error, degrees);
        Some(Test {
            difference,
            standard_error,
            degrees,
            p_value: (p * places as f64).min(1.0),
            confirmed,
        })
    }
}

/// The places of the changes before and after one, or the ends of the series.
fn neighbours(at: &[usize], i: usize, runs: usize) -> (usize, usize) {
    let from = if i == 0 { 0 } else { at[i - 1] };
    (from, at.get(i + 1).copied().unwrap_or(runs))
}

#[cfg(test)]
mod tests;
