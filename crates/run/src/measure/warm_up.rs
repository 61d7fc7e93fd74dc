//! The warm-up of a group's servers: how long it is, and whether it was long enough.
//!
//! A server with a just-in-time compiler answers its first requests slowly. In the first block of a
//! condition the warm-up is therefore checked: the load goes on, in short slices on all subjects in
//! turns. As long as one of them becomes faster within a check, another of twice the length follows. The
//! sum becomes the warm-up of the blocks that follow.

use std::time::{Duration, Instant};

use load::Segment;
use readings::{Condition, LoadReading, WarmUpChoice};

use super::{Findings, GroupSetup, schedule};
use crate::context::Context;
use agent::AgentError;
use agent::wire::Loaded;

/// The most further warm-ups of a subject that seems too slow for the slices of the others.
const WARM_UPS_MORE: usize = 3;
/// It gets another if its median is less than this share of the last one.
const QUICKER: f64 = 0.8;

impl Context<'_> {
    /// The load before measuring, per subject and block.
    pub(crate) fn warmup(&self, condition: &Condition) -> Duration {
        let design = &self.options.experiment.design;
        let learned = self.learned.warm_ups.get(condition);
        learned.map_or(design.warmup, |one| one.length)
    }

    /// The same of one subject alone, which gets `most` where the declared warm-up is long enough.
    pub(crate) fn warmup_alone(&self, condition: &Condition, most: Duration) -> Duration {
        let declared = self.options.experiment.design.warmup;
        match self.warmup(condition) {
            longer if longer > declared => longer,
            _ => declared.min(most),
        }
    }
}

/// Goes on loading the subjects until none becomes faster, unless that is known of all of them.
/// `medians_ms` are their median response times.
pub(super) fn until_warm(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    medians_ms: &[f64],
    random: &mut fastrand::Rng,
    found: &mut Findings,
) -> Result<(), AgentError> {
    if setup.resolved.load.traffic.is_paced_by_sender() {
        // How many streams end in a second says nothing of the server.
        return Ok(());
    }
    let condition = &setup.group.condition;
    let (warmup, most) = (cx.warmup(condition), cx.warmup_max);
    let learned = cx.learned.warm_ups.entry(condition.clone()).or_default();
    learned.length = learned.length.max(warmup);
    let subjects = setup.ready.iter().enumerate();
    let subjects = subjects.filter(|(_, one)| !one.planned.baseline_copy);
    let new: Vec<usize> = subjects
        .filter(|(_, one)| !learned.checked.contains(&one.planned.subject))
        .map(|(at, _)| at)
        .collect();
    if new.is_empty() || warmup.is_zero() || warmup >= most {
        return Ok(());
    }
    let median_ms = medians_ms.iter().copied().fold(0.0, f64::max);
    let mut spent = warmup;
    let mut cold: Option<(String, f64)> = None;
    while let Some(check) = schedule::warmth_check(
        setup.ready.len(),
        spent.min(most - spent),
        median_ms,
        random,
    ) {
        cx.phase("checking whether the servers are warm");
        let began = Instant::now();
        let length = length_of(&check, setup.ready.len());
        let measured = cx.load(setup.resolved, setup.ready, check)?;
        if cx.stopped() {
            return Ok(());
        }
        let faster =
            |&at: &usize| verdict::still_warming(&measured.readings.get(at)?.slices, new.len());
        let warming = new.iter().filter_map(|at| Some((*at, faster(at)?)));
        let Some((at, by)) = warming.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            // The blocks that follow do without it.
            cx.once += began.elapsed();
            break;
        };
        spent += length;
        cold.get_or_insert_with(|| (setup.ready[at].planned.subject.clone(), by));
        if spent >= most {
            break;
        }
    }
    if let Some(learned) = cx.learned.warm_ups.get_mut(condition) {
        let subjects = new
            .iter()
            .map(|at| setup.ready[*at].planned.subject.clone());
        learned.checked.extend(subjects);
        learned.length = spent;
    }
    if let Some((subject, faster)) = cold {
        found.warm_up = Some(WarmUpChoice {
            condition: condition.clone(),
            warmup_s: spent.as_secs_f64(),
            declared_s: cx.options.experiment.design.warmup.as_secs_f64(),
            subject,
            faster,
            at_most: spent >= most,
        });
    }
    Ok(())
}

/// How long such a load lasts, for each of so many targets.
fn length_of(segments: &[Segment], targets: usize) -> Duration {
    let all = segments.iter();
    let all: Duration = all
        .map(|one| one.ramp_up + crate::fleet::timing::planned_window(one))
        .sum();
    all / targets.max(1) as u32
}

/// Warms subjects up again that seem too slow for the slices of the others, as long as that makes
/// them quicker. `medians_ms` are the subjects' median response times.
pub(super) fn warm_up_slow(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    warm: &Loaded,
    warmup: Duration,
    medians_ms: &mut [f64],
) -> Result<(), AgentError> {
    let windows = cx.windows;
    let mut slow = schedule::apart(medians_ms, windows.closed, windows.slice);
    // Without answers there is nothing that becomes quicker.
    let has_answers = |reading: &LoadReading| reading.response.count() > 0;
    slow.retain(|&target| warm.readings.get(target).is_some_and(has_answers));
    for _ in 0..WARM_UPS_MORE {
        if slow.is_empty() || cx.stopped() {
            break;
        }
        let segments = schedule::warm_up_of(&slow, warmup);
        let again = cx.load(setup.resolved, setup.ready, segments)?;
        let again_ms = schedule::medians_ms(&again.readings, warmup);
        slow.retain(|&target| {
            let median_ms = again_ms.get(target).copied().unwrap_or(0.0);
            median_ms > 0.0 && median_ms < QUICKER * medians_ms[target]
        });
        for &target in &slow {
            medians_ms[target] = again_ms[target];
        }
        let apart = schedule::apart(medians_ms, windows.closed, windows.slice);
        slow.retain(|target| apart.contains(target));
    }
    Ok(())
}
