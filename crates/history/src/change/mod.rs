//! Change points of a series of log ratios whose standard errors are known.
//!
//! Each place of a line is a candidate; the one at which the likelihood of two levels exceeds that
//! of one most is tested by the t statistic of the two levels, with the variance between runs
//! estimated around them. A line is searched anew after each run, as in the change-point model of
//! Hawkins, Qiu and Kang (Journal of Quality Technology 35, 2003), and [`LEVEL`] comes from
//! simulation, as their limits do. Several changes are found by splitting windows recursively and
//! then removing the weakest, as in Hunter (arXiv 2301.03034). Each run is weighted by the inverse
//! of its variance. The formulas and the rates are in `docs/src/method/history.md`.

mod scale;
mod scan;

use verdict::{t_quantile, t_two_sided_p};

pub use scale::{CONFIRMED_BY, Point};
use scale::{Level, Noise, Split};
use scan::Scan;

/// Runs in one window of the search.
const WINDOW: usize = 50;
/// By how many runs the window moves.
const STEP: usize = WINDOW / 2;
/// The p value below which a single series has a change, corrected for `PLACES`. From simulation:
/// a history of 60 runs without a change, read after each, reports one in at most 2 of 100 series,
/// whatever the variance between runs (`examples/changes.rs`).
pub const LEVEL: f64 = 0.003;
/// By how many places a p value is corrected. It is the same after few runs and after many, so that
/// each new run adds the same chance of a false alarm.
const PLACES: f64 = WINDOW as f64;
/// By what factor the p value of a candidate in the first pass may be larger, as its neighbours are
/// not known yet.
const CANDIDATES: f64 = 10.0;
/// Each run after an unconfirmed change lies at least this many standard deviations beyond the
/// level before.
const EACH_BEYOND: f64 = 1.5;

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
    /// Two-sided p value of 'no change here', multiplied by `PLACES`.
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
        runs: points.len(),
        scan: Scan::of(&noise),
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
    Some(Level::of(&noise.values, &noise.variances).mean)
}

struct Search {
    runs: usize,
    noise: Noise,
    scan: Scan,
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

impl Search {
    /// The first pass: splits each window recursively where its parts differ most.
    fn candidates(&self, level: f64) -> Vec<usize> {
        let mut found = Vec::new();
        let mut from = 0;
        loop {
            let to = (from + WINDOW).min(self.runs);
            self.split(from, to, level, &mut found);
            if to == self.runs {
                break;
            }
            from = (from + STEP).min(self.runs - WINDOW);
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

    fn split(&self, from: usize, to: usize, level: f64, found: &mut Vec<usize>) {
        let Some(at) = self.best(from, to) else {
            return;
        };
        let split = Split::of(&self.noise, from, at, to);
        let t = (split.after - split.before) / split.standard_error;
        if t_two_sided_p(t, split.degrees) > level {
            return;
        }
        found.push(at);
        self.split(from, at, level, found);
        self.split(at, to, level, found);
    }

    fn best(&self, from: usize, to: usize) -> Option<usize> {
        let stands = |at: &usize| self.stands(from, *at, to);
        let places = self.places(from, to).filter(stands);
        self.scan.best(from, to, places)
    }

    /// Where a change may lie between two ends: with enough runs on both sides, or with one or two
    /// after it at the open end of the series.
    fn places(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + use<> {
        let is_end = self.open_end && to == self.runs;
        let least_after = if is_end { 1 } else { CONFIRMED_BY };
        (from + CONFIRMED_BY)..(to + 1).saturating_sub(least_after)
    }

    /// Whether each of one or two runs after a place lies beyond the level before, on one side, so
    /// that a spike with a run after it is no change.
    fn stands(&self, from: usize, at: usize, to: usize) -> bool {
        if to - at >= CONFIRMED_BY {
            return true;
        }
        let before = self.scan.mean(from, at);
        let side = (self.noise.values[at] - before).signum();
        (at..to).all(|run| {
            let z = (self.noise.values[run] - before) / self.noise.variances[run].sqrt();
            z * side >= EACH_BEYOND
        })
    }

    /// Moves each candidate to the best split between its neighbours.
    fn move_to_best(&self, at: &mut [usize]) {
        for i in 0..at.len() {
            let (from, to) = neighbours(at, i, self.runs);
            if let Some(best) = self.best(from, to) {
                at[i] = best;
            }
        }
    }

    /// The t test of one change between its neighbours; `None` if no change can lie there.
    fn test(&self, at: &[usize], i: usize) -> Option<Test> {
        let (from, to) = neighbours(at, i, self.runs);
        let place = at[i];
        let mut places = self.places(from, to);
        if !places.any(|one| one == place) || !self.stands(from, place, to) {
            return None;
        }
        let split = Split::of(&self.noise, from, place, to);
        let difference = split.after - split.before;
        let middle = 0.5 * (split.before + split.after);
        let is_nearer_to_new = |run: usize| {
            let value = self.noise.values[run];
            (value - middle) * difference.signum() > 0.0
        };
        let new = (place..to).filter(|run| is_nearer_to_new(*run)).count();
        let old = (from..place).filter(|run| !is_nearer_to_new(*run)).count();
        let confirmed = new >= CONFIRMED_BY;
        let is_end = self.open_end && to == self.runs;
        if old < CONFIRMED_BY || !(confirmed || is_end) {
            return None;
        }
        let p = t_two_sided_p(difference / split.standard_error, split.degrees);
        Some(Test {
            difference,
            standard_error: split.standard_error,
            degrees: split.degrees,
            p_value: (p * PLACES).min(1.0),
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
