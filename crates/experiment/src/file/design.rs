//! `[design]` and `[quick]`: how the experiment is measured.

use std::time::Duration;

use super::factors::written::level_text;
use super::names::QUICK_KEYS;
use crate::spec::{Apart, Design, Experiment, Rate, SliceLength};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Tree};
use config::units::{self, shown};
use readings::GateMetric;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// `[design]`; without a baseline the first subject is it.
pub(super) fn design(reader: &mut Reader, top: &Section<'_>, first_subject: &str) -> Design {
    let mut design = Design::with_baseline(first_subject);
    let Some(section) = top.section(reader, "design") else {
        return design;
    };
    let mut known = QUICK_KEYS.to_vec();
    known.extend(["baseline", "primary", "reference", "growth", "alternate"]);
    section.only(reader, &known);
    if let Some(baseline) = section.text(reader, "baseline") {
        design.baseline = baseline;
    }
    for (word, place) in section.texts(reader, "primary").unwrap_or_default() {
        let mut metrics = GateMetric::of_runs();
        match metrics.find(|metric| metric.name() == word) {
            Some(metric) => design.primary.push(metric),
            None => {
                let words: Vec<&str> = GateMetric::of_runs().map(GateMetric::name).collect();
                reader.report(Problem::at(
                    place,
                    format!("`{word}` is no metric"),
                    format!("expected one of {}", words.join(", ")),
                ));
            }
        }
    }
    if let Some(reference) = section.section(reader, "reference") {
        let entries = reference.table.entries.iter();
        let level = |entry: &Entry| (entry.name.clone(), level_text(&entry.node));
        design.reference = entries.map(level).collect();
    }
    let growth = section.texts(reader, "growth").unwrap_or_default();
    design.growth = growth.into_iter().map(|(name, _)| name).collect();
    if let Some(alternate) = section.boolean(reader, "alternate") {
        design.alternate = alternate;
    }
    let events = top.table.get("events").is_some();
    design_values(reader, &section, &mut design, events);
    design
}

/// Checks that `reference` names levels of factors.
pub(super) fn check_reference(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    for (name, level) in &experiment.design.reference {
        let place = top
            .place_of(&["design", "reference", name])
            .unwrap_or_default();
        let mut factors = experiment.factors.iter();
        let Some(factor) = factors.find(|factor| factor.name == *name) else {
            let names = experiment.factors.iter().map(|factor| factor.name.as_str());
            reader.advise(
                place,
                format!(
                    "`design.reference` names an unknown factor: `{}`",
                    shown(name)
                ),
                "not in [factors]",
                suggestion(name, "factors", names),
            );
            continue;
        };
        if !factor.levels.iter().any(|one| one.text == *level) {
            let levels = factor
                .levels
                .iter()
                .map(|one| format!("`{}`", shown(&one.text)));
            reader.advise(
                place,
                format!(
                    "`{}` is no level of the factor `{}`",
                    shown(level),
                    shown(name)
                ),
                "expected one of its levels",
                format!("its levels are {}", levels.collect::<Vec<_>>().join(", ")),
            );
        }
    }
}

/// Checks that `growth` names factors with at least three levels that are numbers.
pub(super) fn check_growth(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    const FEWEST: usize = 3;
    let place = top.place_of(&["design", "growth"]).unwrap_or_default();
    for name in &experiment.design.growth {
        let mut factors = experiment.factors.iter();
        let Some(factor) = factors.find(|factor| factor.name == *name) else {
            let names = experiment.factors.iter().map(|factor| factor.name.as_str());
            let message = format!("`design.growth` names an unknown factor: `{}`", shown(name));
            let problem = Problem::at(place, message, "not in [factors]");
            reader.report(problem.help(suggestion(name, "factors", names)));
            continue;
        };
        let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
        let is_there = factor.levels.len() >= FEWEST;
        if !is_there || !factor.levels.iter().all(|one| is_number(&one.text)) {
            let message = format!(
                "`design.growth`: the factor `{}` has {} levels",
                shown(name),
                factor.levels.len()
            );
            let expected = format!("expected {FEWEST} or more, all of them numbers");
            let problem = Problem::at(place, message, expected);
            reader
                .report(problem.help("two points always lie on a line: add a level between them"));
        }
    }
}

/// Checks that an experiment without a closed loop, but for one with events, has all that is
/// otherwise taken from it. There is no search for bottlenecks then.
pub(super) fn check_open_only(reader: &mut Reader, top: &Section<'_>, experiment: &mut Experiment) {
    if !experiment.design.window.is_zero() || !experiment.events.is_empty() {
        return;
    }
    experiment.design.bottleneck = false;
    let conditions = experiment.conditions();
    let mut all = conditions.iter().map(|one| experiment.under(one));
    let lacks_rate = all.clone().any(|one| one.load.rate == Rate::Auto);
    let has_driver = all.any(|one| one.subjects.iter().any(|one| !one.driver.is_engine()));
    let (label, help) = if experiment.design.latency_window.is_zero() {
        (
            "nothing would be measured: there is no open loop either",
            "write latency_window = \"5s\" for the open loop, or leave `window` out",
        )
    } else if lacks_rate {
        (
            "the rate of the open loop is chosen by what the closed loop carries",
            "add rate = \"1000/s\" to [load], or write window = \"300ms\"",
        )
    } else if experiment.load.curve.is_some() {
        (
            "the rates of a curve are chosen by what the closed loop carries",
            "write window = \"300ms\", or remove `load.curve`",
        )
    } else if has_driver {
        (
            "outside drivers make a closed loop first",
            "write window = \"10s\", or remove the driver",
        )
    } else {
        return;
    };
    let place = top.place_of(&["design", "window"]).unwrap_or_default();
    let message = "`design.window` is zero: there is no closed loop";
    reader.advise(place, message, label, help);
}

/// Checks an experiment whose loads are not cut into slices: it has one open loop of one load.
pub(super) fn check_in_one_piece(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    if experiment.design.alternate {
        return;
    }
    let key: &[&str] = if !experiment.design.window.is_zero() {
        &["design", "window"][..]
    } else if !experiment.loads.is_empty() {
        &["loads"][..]
    } else if !experiment.load.more_hosts.is_empty() {
        &["load", "hosts"]
    } else if experiment.load.curve.is_some() {
        &["load", "curve"]
    } else if experiment.load.replay.is_some() {
        &["load", "replay"]
    } else {
        return;
    };
    let place = top.place_of(key).unwrap_or_default();
    let message = format!(
        "`{}` cannot be combined with design.alternate = false",
        key.join(".")
    );
    let label = "each subject has one open loop of one load, at a given rate";
    let help = "remove this key, or `design.alternate`";
    reader.advise(place, message, label, help);
}

/// The keys that `[design]` and `[quick]` share. With `events` there is no closed loop, whose
/// window then is zero.
fn design_values(reader: &mut Reader, section: &Section<'_>, design: &mut Design, events: bool) {
    if let Some(blocks) = section.integer(reader, "blocks", 1..=1000) {
        // The range fits.
        design.blocks = u32::try_from(blocks).unwrap_or_default();
    }
    if let Some(warmup) = section.duration(reader, "warmup", Duration::ZERO..=HOUR) {
        // One that is declared is meant so.
        (design.warmup, design.warmup_max) = (warmup, warmup);
    }
    if let Some(most) = section.duration(reader, "warmup_max", Duration::ZERO..=HOUR) {
        design.warmup_max = most.max(design.warmup);
    }
    let shortest = match events {
        true => Duration::ZERO,
        false => Duration::from_millis(100),
    };
    match section.entry("window") {
        // Only the open loop: see `check_open_only`.
        Some((entry, _)) if is_zero(&entry.node.tree) => design.window = Duration::ZERO,
        _ => {
            if let Some(window) = section.duration(reader, "window", shortest..=DAY) {
                design.window = window;
            }
        }
    }
    if let Some(window) = section.duration(reader, "latency_window", Duration::ZERO..=DAY) {
        design.latency_window = window;
    }
    let shortest = Duration::from_millis(100);
    if let Some(window) = section.duration(reader, "curve_window", shortest..=DAY) {
        design.curve_window = window;
    }
    if let Some((entry, path)) = section.entry("slice") {
        design.slice = match &entry.node.tree {
            Tree::Text(text) if text == "auto" => SliceLength::Auto,
            _ => reader
                .duration(&entry.node, &path, Duration::from_millis(10)..=DAY)
                .map_or(design.slice, SliceLength::Fixed),
        };
    }
    for (key, design) in [
        ("matters", &mut design.matters),
        ("matters_failures", &mut design.matters_failures),
    ] {
        let Some(matters) = section.share(reader, key) else {
            continue;
        };
        *design = matters;
        if matters <= 0.0 {
            let place = section.value_place(key);
            reader.advise(
                place,
                format!("`{}` is zero", section.name_of(key)),
                "expected more than 0%",
                "without a smallest difference that matters, no two subjects can be the same",
            );
        }
    }
    if let Some(within) = section.duration(reader, "within", Duration::from_secs(1)..=DAY) {
        design.within = Some(within);
    }
    let least = Duration::from_nanos(1);
    if let Some(latency) = section.duration(reader, "matters_latency", least..=HOUR) {
        design.matters_latency = Some(latency);
    }
    if let Some(share) = section.share(reader, "max_error") {
        design.max_error = share;
    }
    if let Some(retries) = section.integer(reader, "retries", 0..=20) {
        // The range fits.
        design.retries = u32::try_from(retries).unwrap_or_default();
    }
    match section
        .word(reader, "apart", &["auto", "never", "always"])
        .as_deref()
    {
        Some("auto") => design.apart = Apart::Auto,
        Some("never") => design.apart = Apart::Never,
        Some("always") => design.apart = Apart::Always,
        _ => {}
    }
    if let Some(bottleneck) = section.boolean(reader, "bottleneck") {
        design.bottleneck = bottleneck;
    }
    let slice_place = section.table.get("slice").or(section.table.get("window"));
    if let (SliceLength::Fixed(slice), Some(entry)) = (design.slice, slice_place)
        && slice > design.window
    {
        reader.advise(
            entry.node.place,
            "a slice is longer than its window",
            format!(
                "slice {}, window {}",
                units::duration_text(slice),
                units::duration_text(design.window)
            ),
            "shorten the slice, lengthen the window, or write slice = \"auto\"",
        );
    }
}

/// Whether a duration says zero.
pub(super) fn is_zero(tree: &Tree) -> bool {
    matches!(tree, Tree::Text(text) if units::duration(text).is_ok_and(|time| time.is_zero()))
}

/// Checks `[quick]` also without `--quick`.
pub(super) fn check_quick(reader: &mut Reader, top: &Section<'_>, design: &Design) {
    let Some(quick) = top.section(reader, "quick") else {
        return;
    };
    let mut known = QUICK_KEYS.to_vec();
    known.extend(["factors", "subjects"]);
    let _ = quick.texts(reader, "subjects");
    quick.only(reader, &known);
    if let Some((entry, path)) = quick.entry("factors") {
        let _ = reader.section(entry, path);
    }
    let mut scratch = design.clone();
    let events = top.table.get("events").is_some();
    design_values(reader, &quick, &mut scratch, events);
}

/// `--quick` without `[quick]`: about half a minute. Keys set on the command line keep their
/// values.
pub(super) fn shorten(design: &mut Design, set_keys: &[String]) {
    let free = |key: &str| !set_keys.iter().any(|set| set == key);
    if free("design.blocks") {
        design.blocks = design.blocks.min(5);
    }
    if free("design.warmup") {
        design.warmup = design.warmup.min(Duration::from_millis(300));
    }
    if free("design.window") {
        design.window = design.window.min(Duration::from_millis(1500));
    }
    if free("design.latency_window") {
        design.latency_window = design.latency_window.min(Duration::from_millis(1500));
    }
    if free("design.curve_window") {
        design.curve_window = design.curve_window.min(Duration::from_millis(500));
    }
    if matches!(design.slice, SliceLength::Fixed(slice) if slice > design.window) {
        design.slice = SliceLength::Auto;
    }
}
