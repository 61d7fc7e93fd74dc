//! Profiles of servers, taken after all measurements: stacks, flame graphs, and the differences
//! between each subject and the baseline.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use readings::Condition;

use crate::context::Context;
use crate::group::alone::Alone;
use crate::measure::schedule;
use agent::AgentError;
use agent::wire::{CallGraph, ProfileOrder, ServerProfile};
use experiment::Experiment;

/// The folder of profiles within a run's folder.
pub(crate) const FOLDER: &str = "profile";
/// Roughly how long one profile takes: start, warm-up, load, reading the stacks.
pub(crate) const TIME: Duration = Duration::from_secs(8);
/// Samples per second; not a divisor of usual timer frequencies, so that samples are not in step
/// with timers.
const FREQUENCY_HZ: u32 = 499;
const LOAD: Duration = Duration::from_secs(3);
const WARM_UP_MAX: Duration = Duration::from_secs(1);
/// Frames narrower than this share of the picture, in percent, are left out.
#[cfg(feature = "full")]
const NARROWEST: f64 = 0.05;
#[cfg(not(feature = "full"))]
const LACKING: &str = "this build draws no graphs: build it with --features full";

/// Starts the servers of a subject, and samples their stacks while it is under load in a closed
/// loop.
pub(crate) fn measure(
    cx: &mut Context<'_>,
    condition: &Condition,
    subject: &str,
    call_graph: CallGraph,
) -> Result<Vec<ServerProfile>, AgentError> {
    let alone = Alone::new(cx, condition, subject);
    let resolved = &alone.resolved;
    cx.phase(&format!("profiling the servers of {subject}"));
    alone.with_servers(
        cx,
        |cx, ready, _| {
            let warmup = cx.warmup_alone(condition, WARM_UP_MAX);
            cx.load(resolved, ready, schedule::warm_up(1, warmup))?;
            let mut order = cx.order(resolved, ready, schedule::warm_up(1, LOAD));
            order.profile = Some(ProfileOrder {
                servers: ready[0].subject.through.clone(),
                frequency_hz: FREQUENCY_HZ,
                call_graph,
            });
            Ok(cx.load_order(order, ready)?.profiles)
        },
        |_| {},
    )
}

/// The profiles of a run.
pub(crate) struct Profiles<'a> {
    experiment: &'a Experiment,
    taken: Vec<(Condition, String, Vec<ServerProfile>)>,
    /// Why profiles are missing, with the servers that each reason is about.
    failed: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Profiles<'a> {
    pub(crate) fn new(experiment: &'a Experiment) -> Self {
        Self {
            experiment,
            taken: Vec::new(),
            failed: BTreeMap::new(),
        }
    }

    /// The profiles of a subject's servers.
    pub(crate) fn add(&mut self, condition: &Condition, subject: &str, found: Vec<ServerProfile>) {
        let mut good = Vec::new();
        for one in found {
            match one.failed {
                Some(why) => self.fail(&one.server, why),
                None => good.push(one),
            }
        }
        if !good.is_empty() {
            self.taken
                .push((condition.clone(), subject.to_owned(), good));
        }
    }

    pub(crate) fn fail(&mut self, what: &str, why: String) {
        self.failed.entry(why).or_default().insert(what.to_owned());
    }

    /// Writes stacks and graphs. Returns what could not be done, one sentence for each reason.
    pub(crate) fn write(mut self, folder: &Path) -> Vec<String> {
        if !self.taken.is_empty()
            && let Err(e) = self.write_all(folder)
        {
            self.fail(&folder.display().to_string(), e.to_string());
        }
        let sentence = |(why, of): (&String, &BTreeSet<String>)| {
            let of: Vec<&str> = of.iter().map(String::as_str).collect();
            format!("no profile of {}: {why}", of.join(", "))
        };
        self.failed.iter().map(sentence).collect()
    }

    fn write_all(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let baseline = &self.experiment.design.baseline;
        for (condition, subject, servers) in &self.taken {
            let prefix = prefix(condition);
            for one in servers {
                let name = file_name(&format!("{prefix}{subject}-{}", one.server));
                fs::write(folder.join(format!("{name}.folded")), &one.folded)?;
                let title = format!("{}: CPU time in {subject}", one.server);
                let graph = flame_graph(&title, "", &one.folded, &one.unit)?;
                fs::write(folder.join(format!("{name}.svg")), graph)?;
            }
            let is_base = |(of, name, _): &&(Condition, String, Vec<ServerProfile>)| {
                of == condition && name == baseline
            };
            let base = self.taken.iter().find(is_base);
            let Some((_, _, before)) = base.filter(|_| subject != baseline) else {
                continue;
            };
            let title = format!("{subject} against {baseline}: CPU time of all servers");
            let note = format!(
                "red: a larger share of the CPU time in {subject}; blue: a smaller one. Width: {subject}"
            );
            let lines = difference(&all(before), &all(servers))?;
            let unit = servers.first().map_or("", |one| one.unit.as_str());
            let graph = flame_graph(&title, &note, &lines, unit)?;
            let name = file_name(&format!("{prefix}{subject}-difference"));
            fs::write(folder.join(format!("{name}.svg")), graph)?;
        }
        Ok(())
    }
}

/// The stacks of all servers of a path.
fn all(servers: &[ServerProfile]) -> String {
    servers.iter().map(|one| one.folded.as_str()).collect()
}

/// Stacks with two numbers: the CPU time of the baseline, scaled to the subject's total, and that
/// of the subject.
#[cfg(feature = "full")]
fn difference(before: &str, after: &str) -> io::Result<String> {
    use inferno::differential;

    let options = differential::Options {
        normalize: true,
        strip_hex: true,
    };
    let mut lines = Vec::new();
    differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut lines)?;
    Ok(String::from_utf8_lossy(&lines).into_owned())
}

#[cfg(feature = "full")]
fn flame_graph(title: &str, note: &str, lines: &str, unit: &str) -> io::Result<Vec<u8>> {
    use inferno::flamegraph;

    let mut options = flamegraph::Options::default();
    options.title = title.to_owned();
    options.subtitle = (!note.is_empty()).then(|| note.to_owned());
    options.count_name = unit.to_owned();
    options.min_width = NARROWEST;
    options.deterministic = true;
    let mut graph = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut graph)?;
    Ok(graph)
}

#[cfg(not(feature = "full"))]
fn difference(_: &str, _: &str) -> io::Result<String> {
    Err(io::Error::other(LACKING))
}

#[cfg(not(feature = "full"))]
fn flame_graph(_: &str, _: &str, _: &str, _: &str) -> io::Result<Vec<u8>> {
    Err(io::Error::other(LACKING))
}

/// The levels of a condition, before the names of its files; empty without factors.
fn prefix(condition: &Condition) -> String {
    let levels = condition
        .iter()
        .map(|(name, level)| format!("{name}={level},"));
    levels.collect()
}

/// A name as part of a file name, without what would lead to another folder.
fn file_name(name: &str) -> String {
    let good = |c: char| c.is_alphanumeric() || "-_.=,:".contains(c);
    let name: String = name
        .chars()
        .map(|c| if good(c) { c } else { '_' })
        .collect();
    let name: String = name.chars().take(120).collect();
    match name.starts_with('.') {
        true => format!("_{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "full")]
    fn profile(server: &str, folded: &str) -> ServerProfile {
        ServerProfile {
            server: server.to_owned(),
            folded: folded.to_owned(),
            unit: "ns".to_owned(),
            failed: None,
        }
    }

    #[cfg(feature = "full")]
    #[test]
    fn what_only_the_subject_does_stands_in_the_difference() {
        let text = "title = \"x\"\n[subjects]\nold = \"http://127.0.0.1:1/\"\n\
                    new = \"http://127.0.0.1:2/\"\n";
        let recipes = experiment::Recipes::embedded().unwrap();
        let experiment = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        let folder = std::env::temp_dir().join(format!("weigh-profile-{}", std::process::id()));
        let mut profiles = Profiles::new(&experiment);
        let condition = Condition::from([("size".to_owned(), "a/b".to_owned())]);
        let old = vec![profile("srv", "srv;main;parse 60\nsrv;main;send 40\n")];
        profiles.add(&condition, "old", old);
        let new = vec![profile(
            "srv",
            "srv;main;planted 50\nsrv;main;parse 25\nsrv;main;send 25\n",
        )];
        profiles.add(&condition, "new", new);
        profiles.add(
            &condition,
            "new",
            vec![ServerProfile {
                failed: Some("perf is not installed".to_owned()),
                ..profile("other", "")
            }],
        );
        let sentences = profiles.write(&folder);
        assert_eq!(sentences, ["no profile of other: perf is not installed"]);
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert!(read("size=a_b,old-srv.folded").contains("parse 60"));
        assert!(read("size=a_b,new-srv.svg").contains("planted"));
        let graph = read("size=a_b,new-difference.svg");
        assert!(graph.contains("planted (50 ns"), "{graph}");
        assert!(!folder.join("size=a_b,old-difference.svg").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_of_files_stay_in_the_folder() {
        assert_eq!(file_name("../a b-srv"), "_.._a_b-srv");
        assert_eq!(file_name("a-nginx:8080"), "a-nginx:8080");
    }
}
