//! A design that fits into a given time.

use std::time::Duration;

use crate::spec::{Experiment, SliceLength};

/// The fewest blocks that are planned where the time allows them.
const BLOCKS_WANTED: u32 = 5;
/// With so many blocks, windows are kept as long as the experiment has them.
const BLOCKS_PLENTY: u32 = 10;
/// The fewest blocks that a verdict is made from.
const BLOCKS_FEWEST: u32 = 3;
/// Ten slices of the shortest length.
const WINDOW_WANTED: Duration = Duration::from_secs(1);
/// Three of them.
const WINDOW_SHORTEST: Duration = Duration::from_millis(300);
/// Outside drivers run for whole seconds.
const WINDOW_OF_DRIVERS: Duration = Duration::from_secs(1);
/// Windows are whole multiples of this.
const STEP: Duration = Duration::from_millis(100);
/// Opening hosts, closing them, and the result.
const AROUND: Duration = Duration::from_secs(1);
/// Share of the time that is left for trials that have to be repeated.
const RESERVE: f64 = 0.05;

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    pub within: Duration,
    pub blocks: u32,
    pub window: Duration,
    pub latency_window: Duration,
    /// About how long it takes.
    pub estimated: Duration,
    /// Whether the search for bottlenecks was left out, since it has no place.
    pub without_bottlenecks: bool,
}

/// No design fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it does not fit into {}: the shortest that gives a verdict, {BLOCKS_FEWEST} blocks with the \
     shortest windows, takes about {}; give it that time, or measure fewer subjects or conditions",
    seconds(*.within),
    seconds(*.shortest)
)]
pub struct TooShort {
    pub within: Duration,
    /// The shortest possible time.
    pub shortest: Duration,
}

/// A time in whole seconds, rounded up: `95s`.
fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs_f64().ceil())
}

impl Experiment {
    /// Chooses blocks and windows so that the run fits into `within`, and remembers that time. What
    /// the experiment says is the most: neither blocks nor windows grow.
    ///
    /// At least five blocks come first, then windows of at least ten slices, then up to ten blocks,
    /// and then longer windows. The search for bottlenecks keeps its place only if it is `kept`, or
    /// if there is time for it.
    ///
    /// # Errors
    /// When even three blocks with the shortest windows take longer.
    pub fn fit(&mut self, within: Duration, kept_search: bool) -> Result<Fit, TooShort> {
        let declared = self.design.clone();
        let search = self.searches_time();
        let must = AROUND + if kept_search { search } else { Duration::ZERO };
        let time = within.mul_f64(1.0 - RESERVE).saturating_sub(must);
        let blocks_at = |one: &Self| {
            let count = time.as_secs_f64() / one.block_time().as_secs_f64().max(1e-3);
            (count.min(f64::from(declared.blocks))) as u32
        };
        let mut chosen = self.clone();
        let mut fits = |scale: f64| {
            chosen.scale_windows(&declared, scale);
            blocks_at(&chosen)
        };
        // Windows by their length over the declared one.
        let scale_of = |window: Duration| {
            let longest = declared.window.max(declared.latency_window);
            (window.as_secs_f64() / longest.as_secs_f64().max(1e-9)).min(1.0)
        };
        let (wanted, shortest) = (scale_of(WINDOW_WANTED), scale_of(WINDOW_SHORTEST));
        let scale = largest(wanted, 1.0, |scale| {
            fits(scale) >= BLOCKS_PLENTY.min(declared.blocks)
        })
        .or_else(|| (fits(wanted) >= BLOCKS_WANTED.min(declared.blocks)).then_some(wanted))
        .or_else(|| {
            largest(shortest, wanted, |scale| {
                fits(scale) >= BLOCKS_WANTED.min(declared.blocks)
            })
        })
        .unwrap_or(shortest);
        let blocks = fits(scale);
        if blocks < BLOCKS_FEWEST.min(declared.blocks) {
            let fewest = BLOCKS_FEWEST.min(declared.blocks);
            let least = chosen.block_time().saturating_mul(fewest) + must;
            return Err(TooShort {
                within,
                shortest: least.div_f64(1.0 - RESERVE),
            });
        }
        chosen.design.blocks = blocks;
        let blocks_time = chosen.block_time().saturating_mul(blocks);
        let has_time = blocks_time + search + AROUND <= within.mul_f64(1.0 - RESERVE);
        let without_bottlenecks = declared.bottleneck && !kept_search && !has_time;
        if without_bottlenecks {
            chosen.design.bottleneck = false;
        }
        chosen.design.within = Some(within);
        self.design = chosen.design;
        Ok(Fit {
            within,
            blocks,
            window: self.design.window,
            latency_window: self.design.latency_window,
            estimated: blocks_time + self.searches_time() + AROUND,
            without_bottlenecks,
        })
    }

    /// Sets the windows to a share of the declared ones, but not below the shortest. Around events
    /// they stay as they are, since these happen at fixed times.
    fn scale_windows(&mut self, declared: &crate::spec::Design, scale: f64) {
        if !self.events.is_empty() {
            return;
        }
        let engine_only = self.drivers().iter().all(crate::spec::Choice::is_engine);
        let (step, shortest) = match engine_only {
            true => (STEP, WINDOW_SHORTEST),
            false => (WINDOW_OF_DRIVERS, WINDOW_OF_DRIVERS),
        };
        let scaled = |window: Duration| {
            let steps = (window.as_secs_f64() * scale / step.as_secs_f64() + 1e-9).floor();
            step.mul_f64(steps).max(shortest).min(window)
        };
        self.design.window = scaled(declared.window);
        self.design.latency_window = scaled(declared.latency_window);
        // Shorter windows are tried first: what they cannot hold, longer ones can.
        self.design.slice = match declared.slice {
            SliceLength::Fixed(slice) if slice > self.design.window => SliceLength::Auto,
            slice => slice,
        };
    }
}

/// About the largest number from `low` to `high` that is good, if `low` is.
fn largest(low: f64, high: f64, mut good: impl FnMut(f64) -> bool) -> Option<f64> {
    if !good(low) {
        return None;
    }
    if good(high) {
        return Some(high);
    }
    let (mut good_one, mut bad_one) = (low, high);
    for _ in 0..12 {
        let middle = f64::midpoint(good_one, bad_one);
        match good(middle) {
            true => good_one = middle,
            false => bad_one = middle,
        }
    }
    Some(good_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::recipes::Recipes;

    fn experiment(design: &str) -> Experiment {
        let text = format!(
            "title = \"t\"\n[subjects]\na = \"http://h:1/\"\nb = \"http://h:2/\"\n[design]\n{design}\n"
        );
        let recipes = Recipes::embedded().unwrap();
        Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap()
    }

    const COMPARE: &str = "warmup = \"500ms\"\nwindow = \"2s\"\nlatency_window = \"2s\"";

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn what_is_chosen_fits_and_five_blocks_come_before_long_windows() {
        for within_s in [25, 30, 45, 60, 90, 240, 600, 3600] {
            let mut one = experiment(COMPARE);
            let fit = one.fit(secs(within_s), false).unwrap();
            assert!(fit.estimated <= fit.within, "{fit:?}");
            assert!(Plan::new(&one, 1).estimated < secs(within_s), "{fit:?}");
            assert!(fit.blocks >= 5 && fit.blocks <= 30, "{fit:?}");
            assert!(fit.window <= secs(2) && fit.window >= WINDOW_SHORTEST);
            assert_eq!(one.design.within, Some(secs(within_s)));
            assert_eq!(
                (one.design.blocks, one.design.window),
                (fit.blocks, fit.window)
            );
            // The time is used: another block would not fit, or nothing is left to grow.
            let spare = fit.within.saturating_sub(fit.estimated);
            let another = one.block_time() + fit.within.mul_f64(RESERVE);
            let is_whole = fit.blocks == 30 && fit.window == secs(2);
            assert!(is_whole || spare < another + secs(1), "{fit:?}");
        }
    }

    #[test]
    fn more_time_gives_windows_of_ten_slices_then_ten_blocks_then_long_windows() {
        let of = |s| experiment(COMPARE).fit(secs(s), false).unwrap();
        assert!(of(20).window < WINDOW_WANTED);
        assert_eq!((of(60).window, of(60).blocks), (WINDOW_WANTED, 6));
        assert!(of(110).blocks == 10 && of(110).window > WINDOW_WANTED);
        assert_eq!(of(240).window, secs(2));
    }

    #[test]
    fn too_short_a_time_is_refused_with_the_shortest_possible_and_that_is_accepted() {
        let refused = experiment(COMPARE).fit(secs(5), false).unwrap_err();
        assert!(refused.shortest > secs(5));
        let words = refused.to_string();
        assert!(
            words.contains("into 5s") && words.contains("3 blocks"),
            "{words}"
        );
        let shortest = secs(refused.shortest.as_secs_f64().ceil() as u64);
        let fit = experiment(COMPARE).fit(shortest, false).unwrap();
        assert_eq!((fit.blocks, fit.window), (3, WINDOW_SHORTEST));
    }

    #[test]
    fn the_search_for_bottlenecks_is_left_out_unless_there_is_time_or_it_was_asked_for() {
        let mut short = experiment(COMPARE);
        assert!(short.fit(secs(60), false).unwrap().without_bottlenecks);
        assert!(!short.design.bottleneck);
        let mut kept = experiment(COMPARE);
        let fit = kept.fit(secs(60), true).unwrap();
        assert!(kept.design.bottleneck && !fit.without_bottlenecks);
        assert!(fit.estimated <= secs(60) && fit.blocks < 10, "{fit:?}");
        let mut long = experiment(COMPARE);
        assert!(!long.fit(secs(3600), false).unwrap().without_bottlenecks);
        assert!(long.design.bottleneck);
    }

    #[test]
    fn a_slice_stays_as_it_was_declared_where_the_window_holds_it() {
        let of = |s| {
            let mut one = experiment(&format!("{COMPARE}\nslice = \"1s\""));
            one.fit(secs(s), false).unwrap();
            one.design.slice
        };
        assert_eq!(of(600), SliceLength::Fixed(secs(1)));
        assert_eq!(of(20), SliceLength::Auto);
    }

    #[test]
    fn the_key_in_a_file_is_kept_by_the_file_that_is_written() {
        let one = experiment(&format!("{COMPARE}\nwithin = \"4m\""));
        assert_eq!(one.design.within, Some(secs(240)));
        let recipes = Recipes::embedded().unwrap();
        let again = Experiment::parse("x.toml", &one.to_toml(), &[], false, &recipes).unwrap();
        assert_eq!(again.design.within, one.design.within);
    }
}
