//! `replay`: a log whose requests are made at its times.

use std::sync::Arc;
use std::time::Duration;

use super::requests::{report, whole_path};
use crate::file::design::is_zero;
use crate::spec::{Experiment, Rate, ReplayFile};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units;
use readings::requests::RequestSet;
use requests::log::{self, LogOptions, Moment};

/// Keys that say how a log is replayed.
const OF_REPLAY: [&str; 4] = ["speed", "from", "to", "replay_methods"];

/// Most different requests of a log that results tell apart.
const TOLD_APART: usize = 100;

/// Reads the log that the key names.
pub(super) fn read(reader: &mut Reader, section: &Section<'_>) -> Option<ReplayFile> {
    let Some((entry, path)) = section.entry("replay") else {
        for key in OF_REPLAY {
            if let Some(entry) = section.table.get(key) {
                let message = format!("`{}` without `replay`", section.name_of(key));
                let problem = Problem::at(entry.place, message, "there is no log");
                reader.report(problem.help("add replay = \"access.log\""));
            }
        }
        return None;
    };
    let text = reader.text(&entry.node, &path)?;
    let place = entry.node.place;
    let file = whole_path(reader, place, &text);
    let speed = speed(reader, section).unwrap_or(1.0);
    let (from, from_text) = moment(reader, section, "from").unzip();
    let (to, to_text) = moment(reader, section, "to").unzip();
    let methods = section.texts(reader, "replay_methods").unwrap_or_default();
    if !reader.is_clean() {
        return None;
    }
    let options = LogOptions {
        methods: methods.into_iter().map(|(name, _)| name).collect(),
        speed,
        from,
        to,
        host: None,
    };
    match log::open(&file, &options) {
        Ok(mut set) => {
            name_few(&mut set);
            Some(ReplayFile {
                path: file.display().to_string(),
                speed,
                from: from_text,
                to: to_text,
                methods: options.methods,
                set: Arc::new(set),
            })
        }
        Err(error) => {
            report(reader, place, &error);
            None
        }
    }
}

/// Counts many requests by their methods only: each name is a figure of each trial.
fn name_few(set: &mut RequestSet) {
    if set.requests.len() <= TOLD_APART {
        return;
    }
    for request in &mut set.requests {
        request.name.clone_from(&request.method);
    }
}

fn speed(reader: &mut Reader, section: &Section<'_>) -> Option<f64> {
    let (entry, path) = section.entry("speed")?;
    let speed = match &entry.node.tree {
        Tree::Integer(number) => Some(*number as f64),
        Tree::Float(number) => Some(*number),
        _ => None,
    };
    let found = speed.filter(|speed| (0.001..=1000.0).contains(speed));
    if found.is_none() {
        reader.expected(&entry.node, &path, "a factor from 0.001 to 1000, such as 2");
    }
    found
}

/// A time in the log, and how it is written.
fn moment(reader: &mut Reader, section: &Section<'_>, key: &str) -> Option<(Moment, String)> {
    let (entry, path) = section.entry(key)?;
    let text = match &entry.node.tree {
        Tree::Date(text) => text.clone(),
        _ => reader.text(&entry.node, &path)?,
    };
    let found = match units::duration(&text) {
        Ok(after) => Ok(Moment::After(after)),
        Err(_) => text.parse(),
    };
    match found {
        Ok(moment) => Some((moment, text)),
        Err(why) => {
            let message = format!("`{path}` is no time in a log");
            reader.report(Problem::at(entry.node.place, message, why));
            None
        }
    }
}

/// Adapts an experiment to a log: this has the times and the rate, and there is no closed loop.
pub(in crate::file) fn fit(reader: &mut Reader, top: &Section<'_>, experiment: &mut Experiment) {
    let log = experiment.load.replay.as_ref().map(|file| &file.set);
    let Some(replay) = log.and_then(|set| set.replay.as_ref()) else {
        return;
    };
    let (rate_per_s, length) = (replay.rate_per_s(), replay.length());
    let mut refuse = |path: &str, place: Place, why: &str, help: &str| {
        let message = format!("`{path}` does not go with `load.replay`");
        reader.advise(place, message, why, help);
    };
    for table in ["design", "quick"] {
        let Some(Tree::Table(keys)) = top.table.get(table).map(|entry| &entry.node.tree) else {
            continue;
        };
        for entry in &keys.entries {
            let path = format!("{table}.{}", entry.name);
            let (why, help) = match (entry.name.as_str(), &entry.node.tree) {
                ("window", tree) if !is_zero(tree) => (
                    "a log has the times of an open loop; there is no closed one",
                    "remove it",
                ),
                ("latency_window", _) => (
                    "it is as long as the log, divided by `speed`",
                    "remove it; `from` and `to` in [load] take a part of the log",
                ),
                ("bottleneck", Tree::Boolean(true)) => (
                    "bottlenecks are looked for in a closed loop, and there is none",
                    "remove it",
                ),
                _ => continue,
            };
            refuse(&path, entry.place, why, help);
        }
    }
    for (path, why) in [
        (vec!["factors", "rate"], "the log has the times"),
        (vec!["events"], "events need an open loop of one rate"),
    ] {
        if let Some(place) = top.place_of(&path) {
            refuse(&path.join("."), place, why, "remove it, or `replay`");
        }
    }
    experiment.load.rate = Rate::PerSecond(rate_per_s);
    let design = &mut experiment.design;
    design.window = Duration::ZERO;
    // The run has the log's own length.
    let length_ms = length.as_nanos().div_ceil(1_000_000);
    design.latency_window = Duration::from_millis(u64::try_from(length_ms).unwrap_or(u64::MAX));
    design.bottleneck = false;
}
