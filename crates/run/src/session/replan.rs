//! The plan of a run with a time limit is made anew after each block, from how long blocks truly take.

use std::time::Duration;

use verdict::plan::{Decides, Noise, PlannedRun};

use super::agenda::{Agenda, warning};
use crate::RunEvent;
use experiment::Experiment;
use experiment::within::{Windows, most_deciding};

/// After so many blocks a run says what it can decide, if it did not know before.
const PILOT_BLOCKS: u32 = 2;
/// The fewest blocks that a verdict is made from.
const VERDICT_BLOCKS: u32 = verdict::FEWEST_BLOCKS as u32;

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

    /// Where the blocks that are left do not fit into the time, drops some or shortens the windows, so
    /// that the run decides most; takes dropped ones back where they fit after all. Returns what to say
    /// of it.
    pub(super) fn replan(&mut self, done: u32) -> Vec<RunEvent> {
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
        let now = experiment.block_time_with(self.windows);
        let time_with = |windows: Windows| {
            let saved = now.saturating_sub(experiment.block_time_with(windows));
            block_time.saturating_sub(saved)
        };
        let fits = |windows: Windows| {
            let count = left.as_secs_f64() / time_with(windows).as_secs_f64().max(1e-3);
            done + count.min(f64::from(rest)) as u32
        };
        let all = experiment.shorter_windows(self.windows);
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
        let noise = self.retries.noise().unwrap_or(self.options.noise);
        let decides =
            |blocks: u32, window: Duration| smallest_decided(experiment, &noise, blocks, window);
        let best = most_deciding(&designs, planned, &decides);
        let (blocks, windows) = best.unwrap_or((before, self.windows));
        let later = self.queue.partition_point(|(block, _)| *block <= blocks);
        self.dropped = self.queue.split_off(later).into();
        if (blocks, windows) == (before, self.windows) {
            return Vec::new();
        }
        let said = changed(
            within,
            block_time,
            (before, blocks),
            (self.windows, windows),
        );
        let saved = block_time.saturating_sub(time_with(windows));
        self.deadline.shortened(saved / groups.max(1) as u32);
        self.windows = windows;
        let run = planned_run(experiment, blocks, windows.main());
        let decides = run.map(|run| RunEvent::Decides(run.decides(&noise)));
        [warning(said)].into_iter().chain(decides).collect()
    }
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
    (compared > 0 && experiment.events.is_empty()).then(|| PlannedRun {
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
    block_time: Duration,
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
    format!(
        "a block takes about {:.0} s, so within the time limit of {} s there is room for {}",
        s(block_time).max(1.0),
        s(within),
        changes.join(", with ")
    )
}
