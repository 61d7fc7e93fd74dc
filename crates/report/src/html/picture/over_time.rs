//! Throughput and CPU time over the time of the run, with the pauses of the client.

use std::collections::BTreeMap;

use readings::text::{condition, counted, number, rate, time};
use readings::{Journal, LOAD_KEY, LoadReading, Reading, Slice, Trial};
use verdict::{Analysis, judged_trials};

use crate::html::picture::axis::{Scale, rate_ticks};
use crate::html::picture::svg::{Anchor, Picture, figure, legend};

const WIDTH: f64 = 880.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 860.0;
/// Top and bottom of the areas for throughput and for CPU time.
const RATE: (f64, f64) = (26.0, 220.0);
const CPU: (f64, f64) = (252.0, 352.0);
const PAUSE_SHAPE: usize = 2;
/// With more slices than this, each trial is one mark.
const SLICES_MAX: usize = 2_500;
/// The most marks of CPU time; in a longer run, only every Nth trial has one.
const MARKS_MAX: usize = 600;

struct Placed<'a> {
    trial: &'a Trial,
    reading: &'a Reading,
    load: &'a LoadReading,
    /// Its slices, each after the one before it.
    slices: Vec<Slice>,
    colour: usize,
    /// What is added to the start times of its slices, s; the run's first slice begins at 0.
    base_s: f64,
}

/// The picture; empty without slices.
pub(crate) fn over_time(journal: &Journal, analysis: &Analysis, subjects: &[String]) -> String {
    let placed = placed(journal, analysis, subjects);
    let ends = placed.iter().flat_map(|one| {
        let slices = one.slices.iter();
        slices.map(move |slice| one.base_s + slice.start_s + slice.duration_s)
    });
    let last_s = ends.fold(0.0, f64::max);
    let rates = placed.iter().flat_map(|one| &one.slices);
    let most = rates
        .map(|slice| slice.requests_per_s())
        .filter(|per_s| per_s.is_finite())
        .fold(0.0, f64::max);
    if last_s <= 0.0 || most <= 0.0 {
        return String::new();
    }
    let x = Scale::new(0.0, last_s, LEFT, RIGHT);
    let title = "Throughput and CPU time over the time of the run";
    let described = format!(
        "closed loops of {} over {}",
        counted(placed.len(), "trial"),
        time(last_s * 1e6)
    );
    let mut picture = Picture::new("over-time", WIDTH, title, &described);
    blocks(&mut picture, &placed, &x);
    throughput(&mut picture, &placed, &x, most * 1.05);
    cpu(&mut picture, &placed, &x);
    let paused = pauses(&mut picture, &placed, &x);
    let unit = time_axis(&mut picture, last_s, &x);
    let height = CPU.1 + 40.0;
    let used = (0..subjects.len()).filter(|colour| placed.iter().any(|p| p.colour == *colour));
    let names = used.map(|colour| (subjects[colour].as_str(), Some(colour)));
    let client = [("the client's CPU time", None)];
    let caption = format!(
        "Closed loops over time ({unit}): above, the requests per second of each {}; below, the cores \
         that the servers of a path and the client had{}. Vertical lines: blocks",
        match is_fine(&placed) {
            true => "slice",
            false => "trial, with its slowest and fastest slice",
        },
        match paused {
            0 => "",
            _ => "; triangles on the axis: trials in whose open loop the client paused",
        }
    );
    figure(
        &caption,
        &(picture.finish(height) + &legend(names.chain(client))),
    )
}

/// The trials whose closed loops figures rest on, placed in time: those of the groups one after
/// another, without the time between them.
fn placed<'a>(
    journal: &'a Journal,
    analysis: &'a Analysis,
    subjects: &[String],
) -> Vec<Placed<'a>> {
    let mut found = Vec::new();
    let main = journal.header.main_load();
    let is_main = |trial: &Trial| {
        main.is_none_or(|main| {
            let load = trial.condition.get(LOAD_KEY);
            load.is_some_and(|name| name == main)
        })
    };
    // Of several loads the first compared one is drawn.
    for judged in judged_trials(journal, &analysis.judgements) {
        let trial = judged.trial;
        let (Some(reading), Some(load)) = (trial.reading(), judged.closed()) else {
            continue;
        };
        if !is_main(trial) {
            continue;
        }
        let colour = subjects.iter().position(|name| *name == trial.subject);
        if let (Some(colour), false) = (colour, load.slices.is_empty()) {
            found.push(Placed {
                trial,
                reading,
                load,
                slices: Slice::one_after_another(&load.slices),
                colour,
                base_s: f64::NAN,
            });
        }
    }
    let mut groups: BTreeMap<(u32, String), f64> = BTreeMap::new();
    let mut free = 0.0;
    found.sort_by_key(|one| one.trial.trial);
    for one in &mut found {
        let key = (one.trial.block, condition(&one.trial.condition));
        one.base_s = *groups.entry(key).or_insert(free);
        let ends = one.slices.iter().map(|s| s.start_s + s.duration_s);
        free = free.max(one.base_s + ends.fold(0.0, f64::max));
    }
    let first = |one: &Placed<'_>| one.base_s + one.slices[0].start_s;
    let begin = found.iter().map(first).fold(f64::INFINITY, f64::min);
    for one in &mut found {
        one.base_s -= begin;
    }
    found
}

/// A vertical line where each block begins, with its number.
fn blocks(picture: &mut Picture, placed: &[Placed<'_>], x: &Scale) {
    let mut begins: BTreeMap<u32, f64> = BTreeMap::new();
    for one in placed {
        let from = one.base_s + one.slices[0].start_s;
        let begin = begins.entry(one.trial.block).or_insert(from);
        *begin = begin.min(from);
    }
    let every = begins.len().div_ceil(15).max(1);
    for (number, (block, from)) in begins.iter().enumerate() {
        if number % every == 0 {
            let at = x.place(*from);
            picture.line("grid", (at, RATE.0 - 8.0), (at, CPU.1));
            let label = match begins.len() > 6 {
                true => block.to_string(),
                false => format!("block {block}"),
            };
            let (at, anchor) = match at {
                at if at > RIGHT - 60.0 => (at - 3.0, Anchor::End),
                at => (at + 3.0, Anchor::Start),
            };
            picture.text("tick", (at, RATE.0 - 10.0), anchor, &label);
        }
    }
}

fn y_axis(picture: &mut Picture, field: (f64, f64), most: f64, what: &str) -> Scale {
    let y = Scale::new(0.0, most, field.1, field.0);
    picture.rows(&y, &rate_ticks(0.0, most), (LEFT, RIGHT));
    picture.text("tick", (4.0, field.0 - 10.0), Anchor::Start, what);
    y
}

fn is_fine(placed: &[Placed<'_>]) -> bool {
    let slices: usize = placed.iter().map(|one| one.slices.len()).sum();
    slices <= SLICES_MAX
}

fn throughput(picture: &mut Picture, placed: &[Placed<'_>], x: &Scale, most: f64) {
    let y = y_axis(picture, RATE, most, "req/s");
    let is_fine = is_fine(placed);
    let mut commands: BTreeMap<usize, String> = BTreeMap::new();
    for one in placed {
        let path = commands.entry(one.colour).or_default();
        let slices = || {
            let slices = one.slices.iter();
            slices.filter(|slice| slice.requests_per_s().is_finite())
        };
        if is_fine {
            for slice in slices() {
                let from = x.place(one.base_s + slice.start_s);
                let to = x.place(one.base_s + slice.start_s + slice.duration_s);
                let at = y.place(slice.requests_per_s());
                path.push_str(&format!("M{from:.1} {at:.1}h{:.1}", (to - from).max(1.5)));
            }
            continue;
        }
        let per_s = || slices().map(|slice| slice.requests_per_s());
        let (low, high) = (
            per_s().fold(f64::INFINITY, f64::min),
            per_s().fold(0.0, f64::max),
        );
        let middle = x.place(one.base_s + one.slices[0].start_s);
        if low.is_finite() {
            let mean = y.place(one.load.requests_per_s());
            path.push_str(&format!(
                "M{middle:.1} {:.1}V{:.1}M{:.1} {mean:.1}h4",
                y.place(low),
                y.place(high),
                middle - 2.0
            ));
        }
    }
    for (colour, path) in commands {
        picture.path(&format!("whisker c{}", colour % 8), &path);
    }
}

/// The cores that the servers of the path used in the closed loop, and those the client used.
fn cores(one: &Placed<'_>) -> (Option<f64>, Option<f64>) {
    let servers = one.reading.probed.as_ref();
    let servers = servers.filter(|seen| seen.looked_s > 0.0 && !seen.servers.is_empty());
    let servers = servers.map(|seen| {
        let each = seen.servers.values().map(|one| one.user_s + one.system_s);
        each.sum::<f64>() / seen.looked_s
    });
    let load = one.load;
    let client = (load.duration_s > 0.0 && load.client.cpu_s > 0.0)
        .then(|| load.client.cpu_s / load.duration_s);
    (servers, client)
}

fn cpu(picture: &mut Picture, placed: &[Placed<'_>], x: &Scale) {
    let all = placed.iter().map(cores).flat_map(|(a, b)| [a, b]);
    let most = all.flatten().filter(|c| c.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        let at = ((LEFT + RIGHT) / 2.0, (CPU.0 + CPU.1) / 2.0);
        picture.text("tick", at, Anchor::Middle, "CPU time was not sampled");
        return;
    }
    let y = y_axis(picture, CPU, most * 1.15, "cores");
    let every = placed.len().div_ceil(MARKS_MAX).max(1);
    for one in placed.iter().step_by(every) {
        let slices = &one.slices;
        let end = slices.last().map_or(0.0, |s| s.start_s + s.duration_s);
        let at = x.place(one.base_s + (slices[0].start_s + end) / 2.0);
        let (servers, client) = cores(one);
        let who = format!("{}, block {}", one.trial.subject, one.trial.block);
        if let Some(cores) = client.filter(|c| c.is_finite()) {
            let hint = format!("{who}: the client had {} cores", number(cores, 2, false));
            picture.mark(3, "mark v-noise", (at + 3.0, y.place(cores)), &hint);
        }
        if let Some(cores) = servers.filter(|c| c.is_finite()) {
            let hint = format!(
                "{who}: its servers had {} cores at {} requests/s",
                number(cores, 2, false),
                rate(one.load.requests_per_s())
            );
            let class = format!("mark c{}", one.colour % 8);
            picture.mark(one.colour, &class, (at - 3.0, y.place(cores)), &hint);
        }
    }
}

/// Marks the trials in which the client paused; returns how many.
fn pauses(picture: &mut Picture, placed: &[Placed<'_>], x: &Scale) -> usize {
    let mut marked = 0;
    for one in placed {
        let open = one.reading.latency.as_ref();
        let Some(paused) = open.and_then(|load| load.pauses.as_ref()) else {
            continue;
        };
        if paused.count == 0 || marked >= MARKS_MAX {
            continue;
        }
        marked += 1;
        let longest = paused.pauses.iter().map(|pause| pause.duration_s);
        let hint = format!(
            "{}, block {}: {} of the client in the open loop, {} together, the longest {}",
            one.trial.subject,
            one.trial.block,
            counted(paused.count as usize, "pause"),
            time(paused.duration_s * 1e6),
            time(longest.fold(0.0, f64::max) * 1e6)
        );
        let at = x.place(one.base_s + one.slices[0].start_s);
        picture.mark(PAUSE_SHAPE, "mark pause", (at, CPU.1 + 2.0), &hint);
    }
    marked
}

/// Draws the time axis; returns its unit.
fn time_axis(picture: &mut Picture, last_s: f64, x: &Scale) -> &'static str {
    let (unit, each_s) = match last_s {
        s if s < 180.0 => ("seconds of closed loops, end to end", 1.0),
        s if s < 10_800.0 => ("minutes of closed loops, end to end", 60.0),
        _ => ("hours of closed loops, end to end", 3_600.0),
    };
    picture.line("zero", (LEFT, CPU.1), (RIGHT, CPU.1));
    for (value, _) in rate_ticks(0.0, last_s / each_s) {
        let at = x.place(value * each_s);
        let label = format!("{}", (value * 100.0).round() / 100.0);
        picture.text("tick", (at, CPU.1 + 22.0), Anchor::Middle, &label);
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(slices: &[(f64, f64)]) -> Vec<f64> {
        let slices = slices.iter().map(|(start_s, duration_s)| Slice {
            start_s: *start_s,
            duration_s: *duration_s,
            ..Slice::default()
        });
        let placed = Slice::one_after_another(&slices.collect::<Vec<_>>());
        placed.iter().map(|one| one.start_s).collect()
    }

    #[test]
    fn slices_are_drawn_one_after_another() {
        // Of the built-in engine: each start is the ramp-up of that slice.
        assert_eq!(
            starts(&[(0.5, 1.0), (0.5, 2.0), (0.5, 1.0)]),
            [0.5, 2.0, 4.5]
        );
        // Of an outside driver: since its first run.
        assert_eq!(
            starts(&[(0.0, 1.0), (1.0, 2.0), (3.0, 1.0)]),
            [0.0, 1.0, 3.0]
        );
    }
}
