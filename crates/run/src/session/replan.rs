//! The plan of a run with a time budget is made again after each block, from the durations of blocks.

use std::time::Duration;

use verdict::plan::{Decides, Noise, PlannedRun};

use super::agenda::{Agenda, warning};
use crate::{RunEvent, StartsTake};
use experiment::Experiment;
use experiment::within::{Windows, most_deciding};

/// After so many blocks a run says what it can decide, if it did not know before.
const PILOT_BLOCKS: u32 = 2;
/// The fewest blocks that a verdict is made from.
const VERDICT_BLOCKS: u32 = verdict::FEWEST_BLOCKS as u32;
/// A longer warm-up leaves room for so many.
const BLOCKS_WANTED: u32 = 5;
/// Windows become longer only if the blocks then take at most this share of the time that is left, as
/// the durations of blocks vary and windows should not change with each of them.
const LONGER_FITS_IN: f64 = 0.85;
/// Starts that take so much longer than planned are told.
const STARTS_MORE: Duration = Duration::from_secs(2);

impl Agenda<'_> {
    /// What the run decides, once that is known from its own blocks; before, it was assumed.
    pub(super) fn pilot(&self, block: u32) -> Option<RunEvent> {
        let options = self.options;
        if block != PILOT_BLOCKS || options.noise.degrees.is_some() || options.resume {
            return None;
        }
        let blocks = self.queue.back().map_or(block, |(last, _)| *last);
        let run = planned_run(options.experiment, blocks, self.windows.main())?;
        Some(RunEvent::Decides(run.decides(&self.retries.noise()?)))
    }

    /// Where the blocks that are left do not fit into the time, drops some or changes the windows, so
    /// that the run decides most; takes dropped ones back where they fit after all. Windows become longer
    /// again, up to the declared ones, where fewer blocks leave time for that. Returns what to say of
    /// it. `starting` is the part of the block's time in which servers were started.
    pub(super) fn replan(&mut self, done: u32, starting: Duration) -> Vec<RunEvent> {
        let Some((within, left)) = self.deadline.within().zip(self.deadline.left()) else {
            return Vec::new();
        };
        let before = self.queue.back().map_or(done, |(last, _)| *last);
        let dropped = std::mem::take(&mut self.dropped);
        let had_dropped = !dropped.is_empty();
        self.queue.extend(dropped);
        let Some((&(next, _), &(planned, _))) = self.queue.front().zip(self.queue.back()) else {
            return Vec::new();
        };
        let experiment = self.options.experiment;
        let of_next = self.queue.iter().filter(|(block, _)| *block == next);
        let groups = of_next.clone().count();
        let block_time = self.deadline.time_of(of_next.map(|(_, group)| group));
        let rest = planned - done;
        if !had_dropped && block_time.saturating_mul(rest) <= left {
            return Vec::new();
        }
        let noise = self.retries.noise().unwrap_or(self.options.noise);
        let best = best_design(
            experiment,
            &noise,
            (left, block_time),
            self.windows,
            (done, planned),
        );
        let (blocks, windows) = best.unwrap_or((before, self.windows));
        let later = self.queue.partition_point(|(block, _)| *block <= blocks);
        self.dropped = self.queue.split_off(later).into();
        if (blocks, windows) == (before, self.windows) {
            return Vec::new();
        }
        let said = changed(
            within,
            (block_time, starting),
            (before, blocks),
            (self.windows, windows),
        );
        let share = groups.max(1) as u32;
        let [from, to] = [self.windows, windows].map(|one| experiment.block_time_with(one) / share);
        self.deadline.changed(from, to);
        self.windows = windows;
        let run = planned_run(experiment, blocks, windows.main());
        let decides = run.map(|run| RunEvent::Decides(run.decides(&noise)));
        [warning(said)].into_iter().chain(decides).collect()
    }

    /// What starting servers takes, once the first block has shown that it is more than planned.
    pub(super) fn starts_take(&self, done: u32, starting: Duration) -> Option<RunEvent> {
        let experiment = self.options.experiment;
        let planned = experiment.starts_time();
        if done > 1 || starting < planned + STARTS_MORE || starting < planned.mul_f64(2.0) {
            return None;
        }
        let left = self
            .deadline
            .time_of(self.queue.iter().map(|(_, group)| group));
        let run = self.deadline.spent() + left;
        Some(RunEvent::StartsTake(StartsTake {
            starts_s: starting.as_secs_f64(),
            planned_s: planned.as_secs_f64(),
            run_s: run.as_secs_f64(),
            blocks: self.queue.back().map_or(done, |(last, _)| *last),
        }))
    }

    /// The most that the warm-up may become by itself: so much that the blocks which are wanted still
    /// have a place in the time, with the shortest windows.
    pub(super) fn warmup_max(&self) -> Duration {
        let experiment = self.options.experiment;
        let design = &experiment.design;
        let Some(left) = self.deadline.left() else {
            return design.warmup_max;
        };
        let windows = experiment.shorter_windows(self.windows);
        let shortest = windows.first().copied().unwrap_or(self.windows);
        let blocks = design.blocks.clamp(1, BLOCKS_WANTED);
        let block_time = experiment.block_time_with(shortest);
        let spare = left.saturating_sub(block_time.saturating_mul(blocks));
        let trials = (experiment.subjects.len() + 1) * experiment.conditions().len();
        let room = spare / blocks / u32::try_from(trials).unwrap_or(u32::MAX);
        design.warmup_max.min(design.warmup + room)
    }
}

/// The blocks and windows that decide most in the time that is `left`, where a block takes so long with
/// the current windows; nothing where no block fits. Of the `planned` blocks so many are done.
fn best_design(
    experiment: &Experiment,
    noise: &Noise,
    (left, block_time): (Duration, Duration),
    current: Windows,
    (done, planned): (u32, u32),
) -> Option<(u32, Windows)> {
    let now = experiment.block_time_with(current);
    let time_with =
        |windows: Windows| (block_time + experiment.block_time_with(windows)).saturating_sub(now);
    let fits = |windows: Windows| {
        let share = match windows.main() > current.main() {
            true => LONGER_FITS_IN,
            false => 1.0,
        };
        let count = share * left.as_secs_f64() / time_with(windows).as_secs_f64().max(1e-3);
        done + count.min(f64::from(planned - done)) as u32
    };
    let all = experiment.shorter_windows(experiment.design.longest());
    let designs = all.iter().enumerate().map(|(at, windows)| {
        // With fewer there is no verdict, and later blocks may be quicker.
        let least = if at == 0 {
            planned.min(VERDICT_BLOCKS)
        } else {
            0
        };
        (fits(*windows).max(least), *windows)
    });
    let designs: Vec<(u32, Windows)> = designs.filter(|(blocks, _)| *blocks > done).collect();
    let decides =
        |blocks: u32, window: Duration| smallest_decided(experiment, noise, blocks, window);
    most_deciding(&designs, planned, &decides)
}

/// A run of an experiment, as far as it matters to what it decides. Compared are subjects, or of a
/// single one the conditions.
fn planned_run(experiment: &Experiment, blocks: u32, window: Duration) -> Option<PlannedRun> {
    let conditions = experiment.conditions().len();
    let (all, conditions) = match experiment.subjects.len() {
        1 => (conditions, 1),
        subjects => (subjects, conditions),
    };
    let compared = all.saturating_sub(1);
    (compared > 0 && !experiment.is_in_one_piece()).then(|| PlannedRun {
        blocks,
        window_s: window.as_secs_f64(),
        has_closed_loop: !experiment.design.window.is_zero(),
        compared,
        conditions,
        matters: experiment.design.matters,
    })
}

/// The smallest difference that so many blocks with such a window decide: infinite where none is.
pub fn smallest_decided(
    experiment: &Experiment,
    noise: &Noise,
    blocks: u32,
    window: Duration,
) -> f64 {
    let run = planned_run(experiment, blocks, window);
    let difference = run.and_then(|run| run.decides(noise).difference);
    difference.unwrap_or(f64::INFINITY)
}

/// What an experiment decides as it is designed; nothing where events are compared, or there is only
/// one subject under one condition.
pub fn decides(experiment: &Experiment, noise: &Noise) -> Option<Decides> {
    let design = &experiment.design;
    let run = planned_run(experiment, design.blocks, Windows::of(design).main());
    run.map(|run| run.decides(noise))
}

fn changed(
    within: Duration,
    (block_time, starting): (Duration, Duration),
    (planned, blocks): (u32, u32),
    (before, windows): (Windows, Windows),
) -> String {
    let s = |time: Duration| time.as_secs_f64();
    let mut changes = Vec::new();
    if blocks != planned {
        changes.push(format!("{blocks} blocks instead of {planned}"));
    }
    if windows != before {
        changes.push(format!(
            "windows of {:.1} s instead of {:.1} s",
            s(windows.main()),
            s(before.main())
        ));
    }
    let starts = match starting.mul_f64(2.0) > block_time {
        true => format!(", {:.0} s of that to start servers", s(starting)),
        false => String::new(),
    };
    format!(
        "a block takes about {:.0} s{starts}, so within the time budget of {} s there is room for {}",
        s(block_time).max(1.0),
        s(within),
        changes.join(", with ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Recipes;

    #[test]
    fn windows_grow_where_starts_leave_room_for_few_blocks() {
        let text = "title = \"t\"\n[subjects]\na = \"http://h:1/\"\nb = \"http://h:2/\"\n[design]\n\
                    warmup = \"500ms\"\nwindow = \"400ms\"\nlatency_window = \"400ms\"\n";
        let recipes = Recipes::embedded().unwrap();
        let mut one = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        let current = Windows::of(&one.design);
        let best = |one: &Experiment, left_s: u64| {
            let times = (Duration::from_secs(left_s), Duration::from_secs(22));
            best_design(one, &Noise::assumed(), times, current, (1, 10))
        };
        // Two more blocks of 22 s fit into 60 s, and leave 16 s.
        assert_eq!(best(&one, 60), Some((3, current)), "the declared ones");
        let two_s = Duration::from_secs(2);
        one.design.declared_windows = Some(Windows {
            closed: two_s,
            open: two_s,
            ..current
        });
        let (blocks, windows) = best(&one, 60).unwrap();
        assert_eq!(blocks, 3);
        assert!(
            windows.closed > current.closed && windows.closed < two_s,
            "{windows:?}"
        );
        // Hardly more than the two blocks take.
        assert_eq!(
            best(&one, 46).map(|(_, windows)| windows.closed <= current.closed),
            Some(true)
        );
    }
}
