//! A design that fits into a given time.

use std::time::Duration;

use crate::spec::{Design, Experiment, SliceLength};

/// The fewest blocks that are planned where the time allows them.
const BLOCKS_WANTED: u32 = 5;
/// The fewest blocks that a verdict is made from.
const BLOCKS_FEWEST: u32 = 3;
/// Three slices of the shortest length.
const WINDOW_SHORTEST: Duration = Duration::from_millis(300);
/// Outside drivers run for whole seconds.
const WINDOW_OF_DRIVERS: Duration = Duration::from_secs(1);
/// Windows are whole multiples of this.
const STEP: Duration = Duration::from_millis(100);
/// The next longer window that is tried.
const LONGER: f64 = 1.2;
/// A warm-up of the default length is shortened to this where fewer than five blocks fit: the
/// experiment does not say that it needs it.
const WARMUP_SHORTEST: Duration = Duration::from_millis(500);
/// Of designs that decide about as much, within this factor, the one with the longest windows is
/// taken: it resolves more quantiles.
const ABOUT_AS_MUCH: f64 = 1.05;
/// Opening hosts, closing them, and the result.
const AROUND: Duration = Duration::from_secs(1);
/// Share of the time that is left for trials that have to be repeated.
const RESERVE: f64 = 0.05;

/// The smallest difference that so many blocks with such a window decide; smaller is better.
pub type Decides<'d> = dyn Fn(u32, Duration) -> f64 + 'd;

/// The measured times of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Of the closed loop.
    pub closed: Duration,
    /// Of the open loop.
    pub open: Duration,
    pub slice: SliceLength,
}

impl Windows {
    /// Those of a design.
    pub fn of(design: &Design) -> Self {
        Self {
            closed: design.window,
            open: design.latency_window,
            slice: design.slice,
        }
    }

    /// The one by which a plan is judged.
    pub fn main(self) -> Duration {
        match self.closed.is_zero() {
            true => self.open,
            false => self.closed,
        }
    }
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    pub within: Duration,
    pub blocks: u32,
    pub window: Duration,
    pub latency_window: Duration,
    /// The warm-up, where it was shortened.
    pub warmup: Option<Duration>,
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
    /// Chooses blocks and windows so that the run fits into `within` and decides the smallest
    /// differences, and remembers that time. What the experiment says is the most: neither blocks nor
    /// windows grow.
    ///
    /// At least five blocks are planned where they fit. The search for bottlenecks keeps its place only
    /// if it is `kept`, or if there is time for it.
    ///
    /// # Errors
    /// When even three blocks with the shortest windows take longer.
    pub fn fit(
        &mut self,
        within: Duration,
        kept_search: bool,
        decides: &Decides<'_>,
    ) -> Result<Fit, TooShort> {
        let declared = self.design.clone();
        let search = self.searches_time();
        let must = AROUND + self.looks_time() + if kept_search { search } else { Duration::ZERO };
        let time = within.mul_f64(1.0 - RESERVE).saturating_sub(must);
        let fits = |one: &Self, windows: Windows| {
            let count = time.as_secs_f64() / one.block_time_with(windows).as_secs_f64().max(1e-3);
            count.min(f64::from(declared.blocks)) as u32
        };
        let mut chosen = self.clone();
        let all = self.shorter_windows(Windows::of(&declared));
        // Not empty: the declared windows are among them.
        let shortest = all.first().copied().unwrap_or(Windows::of(&declared));
        let wanted = BLOCKS_WANTED.min(declared.blocks);
        let may_warm_less = declared.warmup == Design::WARMUP;
        if may_warm_less && fits(&chosen, shortest) < wanted {
            chosen.design.warmup = WARMUP_SHORTEST;
        }
        let designs: Vec<(u32, Windows)> = all
            .into_iter()
            .map(|windows| (fits(&chosen, windows), windows))
            .collect();
        let fewest = BLOCKS_FEWEST.min(declared.blocks);
        let best = most_deciding(&designs, declared.blocks, decides);
        let Some((blocks, windows)) = best.filter(|(blocks, _)| *blocks >= fewest) else {
            let least = chosen.block_time_with(shortest).saturating_mul(fewest) + must;
            return Err(TooShort {
                within,
                shortest: least.div_f64(1.0 - RESERVE),
            });
        };
        chosen.design.blocks = blocks;
        chosen.design.set_windows(windows);
        let blocks_time = chosen.block_time().saturating_mul(blocks);
        let looks = self.looks_time();
        let has_time = blocks_time + looks + search + AROUND <= within.mul_f64(1.0 - RESERVE);
        let without_bottlenecks = declared.bottleneck && !kept_search && !has_time;
        if without_bottlenecks {
            chosen.design.bottleneck = false;
        }
        chosen.design.declared_windows = Some(Windows::of(&declared));
        chosen.design.within = Some(within);
        self.design = chosen.design;
        Ok(Fit {
            within,
            blocks,
            window: self.design.window,
            latency_window: self.design.latency_window,
            warmup: (self.design.warmup < declared.warmup).then_some(self.design.warmup),
            estimated: blocks_time + looks + self.searches_time() + AROUND,
            without_bottlenecks,
        })
    }

    /// Windows from the shortest to these, which are the last. Around events and with a log there are no
    /// others, since these have fixed times.
    pub fn shorter_windows(&self, longest: Windows) -> Vec<Windows> {
        let mut all = vec![longest];
        if !self.events.is_empty() || self.load.replay.is_some() {
            return all;
        }
        let engine_only = self.drivers().iter().all(crate::spec::Choice::is_engine);
        let (step, shortest) = match engine_only {
            true => (STEP, WINDOW_SHORTEST),
            false => (WINDOW_OF_DRIVERS, WINDOW_OF_DRIVERS),
        };
        let mut scale = 1.0;
        loop {
            scale /= LONGER;
            let scaled = |window: Duration| {
                let steps = (window.as_secs_f64() * scale / step.as_secs_f64() + 1e-9).floor();
                step.mul_f64(steps).max(shortest).min(window)
            };
            let (closed, open) = (scaled(longest.closed), scaled(longest.open));
            let slice = match longest.slice {
                SliceLength::Fixed(slice) if slice > closed => SliceLength::Auto,
                slice => slice,
            };
            let windows = Windows {
                closed,
                open,
                slice,
            };
            if all.last() != Some(&windows) {
                all.push(windows);
            }
            if closed <= shortest && open <= shortest {
                break;
            }
        }
        all.reverse();
        all
    }

    /// About how long a block takes with other windows.
    pub fn block_time_with(&self, windows: Windows) -> Duration {
        let mut one = self.clone();
        one.design.set_windows(windows);
        one.block_time()
    }
}

/// Of these designs, blocks and windows, the one that decides the smallest differences; of those with
/// at least five blocks if there are any, else with at least three, else with most. Nothing of none, or
/// if no block fits.
///
/// `most` is the number of blocks beyond which none is wanted.
pub fn most_deciding(
    designs: &[(u32, Windows)],
    most: u32,
    decides: &Decides<'_>,
) -> Option<(u32, Windows)> {
    let largest = designs.iter().map(|(blocks, _)| *blocks).max()?;
    let wanted = [BLOCKS_WANTED.min(most), BLOCKS_FEWEST.min(most)];
    let least = wanted.into_iter().find(|wanted| largest >= *wanted);
    let least = least.unwrap_or(largest).max(1);
    let allowed = designs.iter().filter(|(blocks, _)| *blocks >= least);
    let judged: Vec<(f64, (u32, Windows))> = allowed
        .map(|one| (decides(one.0, one.1.main()), *one))
        .collect();
    let best = judged
        .iter()
        .map(|(decided, _)| *decided)
        .reduce(f64::min)?;
    let good = judged
        .iter()
        .filter(|(decided, _)| *decided <= best * ABOUT_AS_MUCH);
    let longest = good.max_by_key(|(_, (blocks, windows))| (windows.main(), *blocks));
    longest.map(|(_, one)| *one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::recipes::Recipes;
    use testing::Text as _;

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

    /// As if a block's log ratio varied by 3% from start to start and 4% from second to second, and the
    /// t quantile alone made few blocks worse.
    fn decides(blocks: u32, window: Duration) -> f64 {
        let variance = 0.03_f64.powi(2) + 0.04_f64.powi(2) / window.as_secs_f64();
        let blocks = f64::from(blocks);
        (2.0 + 3.0 / (blocks - 2.0).max(0.1)) * (variance / blocks).sqrt()
    }

    #[test]
    fn what_is_chosen_fits_and_has_five_blocks() {
        for within_s in [25, 30, 45, 60, 90, 240, 600, 3600] {
            let mut one = experiment(COMPARE);
            let fit = one.fit(secs(within_s), false, &decides).unwrap();
            assert!(fit.estimated <= fit.within, "{fit:?}");
            assert!(Plan::new(&one, 1).estimated < secs(within_s), "{fit:?}");
            assert!(fit.blocks >= 5 && fit.blocks <= 30, "{fit:?}");
            assert!(fit.window <= secs(2) && fit.window >= WINDOW_SHORTEST);
            assert_eq!(one.design.within, Some(secs(within_s)));
            assert_eq!(
                (one.design.blocks, one.design.window),
                (fit.blocks, fit.window)
            );
            // The time is used: another block would not fit, or no more are wanted.
            let spare = fit.within.saturating_sub(fit.estimated);
            let another = one.block_time() + fit.within.mul_f64(RESERVE);
            assert!(fit.blocks == 30 || spare < another + secs(1), "{fit:?}");
        }
    }

    #[test]
    fn what_decides_most_is_chosen_whatever_varies() {
        let of =
            |s, decides: &Decides<'_>| experiment(COMPARE).fit(secs(s), false, decides).unwrap();
        // Only starts vary: as many blocks as fit, with the shortest windows.
        let starts = |blocks: u32, _: Duration| 1.0 / f64::from(blocks).sqrt();
        let fit = of(60, &starts);
        assert!(fit.window <= Duration::from_millis(400), "{fit:?}");
        // Only slices vary: the measured time counts, and long windows waste least.
        let slices =
            |blocks: u32, window: Duration| 1.0 / (f64::from(blocks) * window.as_secs_f64());
        let fit = of(60, &slices);
        assert!(fit.blocks == 5 && fit.window > secs(1), "{fit:?}");
        // Where it makes no difference, windows are long.
        assert_eq!(of(600, &|_, _| 1.0).window, secs(2));
    }

    #[test]
    fn the_design_that_decides_most_is_found_among_a_few() {
        let windows = |ms| Windows {
            closed: Duration::from_millis(ms),
            open: Duration::ZERO,
            slice: SliceLength::Auto,
        };
        let best = |designs: &[(u32, u64)], most| {
            let designs: Vec<_> = designs.iter().map(|(n, ms)| (*n, windows(*ms))).collect();
            let best = most_deciding(&designs, most, &decides);
            best.map(|(blocks, windows)| (blocks, windows.closed.as_millis() as u64))
        };
        assert_eq!(best(&[(3, 300)], 30), Some((3, 300)));
        // Five blocks come first, then three.
        assert_eq!(best(&[(5, 300), (4, 2000)], 30), Some((5, 300)));
        assert_eq!(best(&[(3, 300), (2, 2000)], 30), Some((3, 300)));
        assert_eq!(best(&[(4, 300), (4, 2000)], 4), Some((4, 2000)));
        assert_eq!(best(&[(1, 300), (0, 2000)], 30), Some((1, 300)));
        assert_eq!(best(&[(0, 300)], 30), None);
        assert_eq!(best(&[], 30), None);
    }

    #[test]
    fn a_warm_up_of_the_default_length_is_shortened_for_five_blocks() {
        let many = |warmup: &str| {
            let mut one = experiment(&format!(
                "{warmup}\nwindow = \"2s\"\nlatency_window = \"0s\""
            ));
            let fit = one.fit(secs(25), false, &decides).unwrap();
            (fit.blocks, fit.warmup, one.design.warmup)
        };
        let short = Duration::from_millis(500);
        let (blocks, said, warmup) = many("");
        assert!(blocks >= 5 && said == Some(short) && warmup == short);
        let (blocks, said, warmup) = many("warmup = \"1900ms\"");
        assert!((3..5).contains(&blocks) && said.is_none());
        assert_eq!(warmup, Duration::from_millis(1900));
    }

    #[test]
    fn too_short_a_time_is_refused_with_the_shortest_possible_and_that_is_accepted() {
        let refused = experiment(COMPARE)
            .fit(secs(5), false, &decides)
            .unwrap_err();
        assert!(refused.shortest > secs(5));
        let words = refused.to_string();
        words.has("into 5s");
        words.has("3 blocks");
        let shortest = secs(refused.shortest.as_secs_f64().ceil() as u64);
        let fit = experiment(COMPARE).fit(shortest, false, &decides).unwrap();
        assert_eq!((fit.blocks, fit.window), (3, WINDOW_SHORTEST));
    }

    #[test]
    fn the_search_for_bottlenecks_is_left_out_unless_there_is_time_or_it_was_asked_for() {
        let mut short = experiment(COMPARE);
        assert!(
            short
                .fit(secs(60), false, &decides)
                .unwrap()
                .without_bottlenecks
        );
        assert!(!short.design.bottleneck);
        let mut kept = experiment(COMPARE);
        let fit = kept.fit(secs(60), true, &decides).unwrap();
        assert!(kept.design.bottleneck && !fit.without_bottlenecks);
        assert!(fit.estimated <= secs(60) && fit.blocks < 10, "{fit:?}");
        let mut long = experiment(COMPARE);
        assert!(
            !long
                .fit(secs(3600), false, &decides)
                .unwrap()
                .without_bottlenecks
        );
        assert!(long.design.bottleneck);
    }

    #[test]
    fn a_slice_stays_as_it_was_declared_where_the_window_holds_it() {
        let of = |s| {
            let mut one = experiment(&format!("{COMPARE}\nslice = \"1s\""));
            one.fit(secs(s), false, &decides).unwrap();
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
