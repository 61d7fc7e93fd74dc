//! Whole runs on a fake agent.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use experiment::{Experiment, Recipes};
use hosts::{Hosts, HostsSpec, Links, MachineLinks};
use readings::{EventReading, FailureCause, Journal, JournalRow, Outcome, Reading, Trial};

use crate::tests::fake::{FakeHost, FakeLinks, Script, SharedScript};
use crate::{RunEvent, RunOptions, journal, run_on};

mod answers;
mod bottlenecks;
mod damage;
mod events;
pub(crate) mod fake;
mod instructions;
mod machines;
mod outside;
mod several;
mod several_hosts;
mod time_budget;
mod unusable;
mod warm_up;

/// Two servers side by side; two blocks of three trials, as the baseline `a` is measured twice.
const TWO: &str = include_str!("fake/two.toml");

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!(
            "weigh-run-test-{}-{}",
            std::process::id(),
            fastrand::u64(..)
        );
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Finished {
    journal: Journal,
    events: Vec<RunEvent>,
    opened: usize,
    complete: bool,
}

impl Finished {
    fn trials(&self) -> Vec<Trial> {
        self.journal.trials().cloned().collect()
    }

    /// The trials that were measured, with their readings.
    fn done(&self) -> Vec<(&Trial, &Reading)> {
        let trials = self.journal.trials();
        let done = trials.filter_map(|trial| match &trial.outcome {
            Outcome::Done(reading) => Some((trial, &**reading)),
            Outcome::Failed { .. } => None,
        });
        done.collect()
    }

    /// The events of the first trial that was measured.
    fn events_made(&self) -> &[EventReading] {
        let all = self.done();
        let found = all.iter().find_map(|(_, reading)| reading.events.as_ref());
        &found
            .unwrap_or_else(|| panic!("{:?}", self.failures()))
            .events
    }

    fn failures(&self) -> Vec<String> {
        let reason = |trial: Trial| match trial.outcome {
            Outcome::Failed { reason, .. } => Some(reason),
            Outcome::Done(_) => None,
        };
        self.trials().into_iter().filter_map(reason).collect()
    }

    /// How many warnings have these words.
    fn warnings(&self, words: &str) -> usize {
        let has = |event: &&RunEvent| match event {
            RunEvent::Warning { text } => text.contains(words),
            _ => false,
        };
        self.events.iter().filter(has).count()
    }

    fn retries(&self) -> usize {
        let is_retry = |event: &&RunEvent| matches!(event, RunEvent::Retry { .. });
        self.events.iter().filter(is_retry).count()
    }
}

fn run_in(folder: &Path, text: &str, script: &SharedScript, resume: bool) -> Finished {
    static RECIPES: LazyLock<Recipes> = LazyLock::new(|| Recipes::embedded().unwrap());
    let experiment = Experiment::parse("test.toml", text, &[], false, &RECIPES).unwrap();
    let opened = Cell::new(0);
    let open = |before: Option<Hosts>, _: HostsSpec| {
        drop(before);
        opened.set(opened.get() + 1);
        if !experiment.hosts_are_machines() {
            let links = text.contains("link = ").then(|| FakeLinks::of(script));
            return Ok(Hosts::of(vec![FakeHost::open(script)], links));
        }
        let hosts = experiment.hosts.iter();
        let links = MachineLinks::of(hosts.clone().map(|one| (one, one.address)));
        Ok(Hosts::of(
            hosts.map(|one| FakeHost::machine(script, one)).collect(),
            links.map(|links| Box::new(links) as Box<dyn Links>),
        ))
    };
    let options = RunOptions {
        experiment: &experiment,
        recipes: &RECIPES,
        seed: 7,
        folder,
        resume,
        builds: &builds::Builds::default(),
        weigh: Path::new("/fake/weigh"),
        may_stop: &|_, _| false,
        profile: None,
        noise: verdict::plan::Noise::assumed(),
        label: None,
        revision: None,
    };
    let mut events = Vec::new();
    let stop = AtomicBool::new(false);
    let mut take = |event| {
        if let RunEvent::GroupBegins { block, .. } = event {
            script.borrow_mut().block = block;
        }
        events.push(event);
    };
    let complete = run_on(&open, &options, &stop, &mut take).unwrap();
    Finished {
        journal: journal::read(folder).unwrap(),
        events,
        opened: opened.get(),
        complete,
    }
}

fn run(text: &str, script: &SharedScript) -> Finished {
    run_in(&Folder::new().0, text, script, false)
}

fn script() -> SharedScript {
    SharedScript::default()
}

/// A script with a change.
fn script_with<R>(change: impl FnOnce(&mut Script) -> R) -> SharedScript {
    let script = script();
    change(&mut script.borrow_mut());
    script
}

/// The lines of the log that begin with one of these words.
fn log_of(script: &SharedScript, words: &[&str]) -> Vec<String> {
    let log = script.borrow().log.clone();
    let is_one = |line: &String| words.contains(&line.split(' ').next().unwrap());
    log.into_iter().filter(is_one).collect()
}

#[test]
fn every_planned_trial_is_measured_once() {
    let script = script();
    let ran = run(TWO, &script);
    assert!(ran.complete);
    let numbers: Vec<u32> = ran.trials().iter().map(|trial| trial.trial).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!((ran.failures().len(), ran.retries(), ran.opened), (0, 0, 1));
    let log = &script.borrow().log;
    // A warm-up and slices per block, with both servers up.
    assert_eq!(
        log.iter().filter(|it| *it == "load on a+a.copy+b").count(),
        4
    );
}

#[test]
fn a_flawed_trial_is_measured_again_with_its_group() {
    let script = script();
    // The closed loop of the first attempt.
    script.borrow_mut().answers_wrongly = |_, load| load == 2;
    let ran = run(TWO, &script);
    assert_eq!(ran.retries(), 1);
    let of_block = |block: u32| ran.trials().iter().filter(|it| it.block == block).count();
    assert_eq!((of_block(1), of_block(2)), (6, 3));
}

#[test]
fn an_overload_by_the_subject_is_kept_and_not_repeated() {
    let script = script_with(|it| it.is_overloaded = true);
    let text = TWO.replace("latency_window = \"0s\"", "latency_window = \"200ms\"");
    // More than the closed loop carries.
    let text = text.replace("[design]", "[load]\nrate = 20000\n[design]");
    let ran = run(&text, &script);
    assert_eq!((ran.retries(), ran.trials().len()), (0, 6));
    assert!(ran.complete);
}

#[test]
fn a_subject_that_fails_all_retries_is_given_up() {
    let script = script_with(|it| it.not_ready.insert("subject b".into(), usize::MAX));
    let ran = run(TWO, &script);
    // One retry in the first block; only the baseline is left for the second.
    let of_block = |block: u32| ran.trials().iter().filter(|it| it.block == block).count();
    assert_eq!((of_block(1), of_block(2), ran.retries()), (6, 0, 1));
    assert_eq!(ran.failures().len(), 2);
    assert!(ran.failures().iter().all(|it| it.contains("subject `b`")));
    assert!(!ran.complete);
    assert_eq!(
        ran.warnings("nothing is left to compare: `b` failed in every attempt: subject `b`"),
        1
    );
}

/// [`TWO`] with a third server and subject.
fn three() -> String {
    TWO.replace(
        "[subjects]\n",
        "[servers.c]\nrecipe = \"origin\"\n[subjects]\nc = \"http://c/\"\n",
    )
    .replace("[design]\n", "[design]\nbaseline = \"a\"\n")
}

#[test]
fn a_subject_that_never_worked_is_left_out_of_later_blocks() {
    let script = script_with(|it| it.not_ready.insert("subject b".into(), usize::MAX));
    let ran = run(&three(), &script);
    assert!(ran.complete);
    let later = ran.trials().into_iter().filter(|it| it.block == 2);
    let mut later: Vec<String> = later.map(|it| it.subject).collect();
    later.sort_unstable();
    assert_eq!(later, ["a", "a", "c"]);
    let told = "subject `b` is left out of the blocks that follow, since it failed in every attempt in block 1: ";
    assert_eq!(ran.warnings(told), 1);
}

#[test]
fn a_server_that_does_not_become_ready_is_waited_for_once_beside_the_others_and_once_alone() {
    let script = script();
    let mut not_ready = script.borrow_mut();
    not_ready.not_ready.insert("b".into(), usize::MAX);
    drop(not_ready);
    let auto = TWO.replace("latency_window = \"0s\"", "latency_window = \"200ms\"");
    let auto = auto.replace("blocks = 2", "blocks = 1");
    let ran = run(&auto.replace("retries = 1", "retries = 0"), &script);
    let script = script.borrow();
    let starts = script.log.iter().filter(|line| *line == "start b");
    assert_eq!(starts.count(), 2, "{:?}", script.log);
    let is_told = |event: &RunEvent| {
        matches!(event, RunEvent::Note { text }
            if text.starts_with("the servers of each subject are started alone now: "))
    };
    assert_eq!(ran.events.iter().filter(|event| is_told(event)).count(), 1);
}

#[test]
fn a_server_that_does_not_start_is_told_of_once_and_fails_its_subject_only() {
    let script = script_with(|it| it.broken.insert("b".into()));
    let ran = run(&three(), &script);
    assert!(ran.complete);
    assert_eq!(ran.warnings("no such directive"), 1, "{:?}", ran.events);
    assert_eq!(ran.warnings("its command: /fake/weigh origin"), 1);
    let failed = ran.trials().into_iter().filter_map(|it| match it.outcome {
        Outcome::Failed { reason, cause } => Some((it.subject, reason, cause)),
        Outcome::Done(_) => None,
    });
    let failed: Vec<_> = failed.collect();
    let reason = "it ended by itself".to_owned();
    let expected = ("b".to_owned(), reason, FailureCause::Subject);
    assert_eq!(failed, [expected.clone(), expected]);
    // In the second block the others are side by side.
    let log = &script.borrow().log;
    assert_eq!(log.iter().filter(|it| *it == "start b").count(), 4);
}

#[test]
fn a_server_that_ends_in_the_measurement_fails_its_own_subject_only() {
    let script = script_with(|it| it.ends_in_loads.insert("b".into()));
    let ran = run(TWO, &script);
    let mut outcomes: Vec<(u32, String, bool)> = Vec::new();
    for trial in ran.trials() {
        match &trial.outcome {
            Outcome::Done(_) => outcomes.push((trial.block, trial.subject, true)),
            Outcome::Failed { reason, cause } => {
                assert_eq!(*cause, FailureCause::Subject, "{reason}");
                assert!(
                    reason.starts_with("during the measurement `b` ended"),
                    "{reason}"
                );
                outcomes.push((trial.block, trial.subject, false));
            }
        }
    }
    outcomes.sort();
    let of = |subject: &str, is_done| (1, subject.to_owned(), is_done);
    let expected = [
        of("a", true),
        of("a", true),
        of("a", true),
        of("a", true),
        of("b", false),
        of("b", false),
    ];
    assert_eq!(outcomes, expected, "{:?}", ran.failures());
    let told = "`b` failed in every attempt: during the measurement `b` ended";
    assert_eq!(ran.warnings(told), 1);
}

#[test]
fn without_measuring_apart_a_broken_server_is_the_cause_of_its_own_subjects_only() {
    let script = script_with(|it| it.broken.insert("b".into()));
    let text = three().replace("[design]\n", "[design]\napart = \"never\"\n");
    let ran = run(&text, &script);
    let of_block = |block: u32| ran.trials().into_iter().filter(move |it| it.block == block);
    assert!(of_block(2).all(|it| matches!(it.outcome, Outcome::Done(_))));
    for trial in of_block(1) {
        let Outcome::Failed { cause, .. } = trial.outcome else {
            panic!("{trial:?}");
        };
        let expected = match trial.subject.as_str() {
            "b" => FailureCause::Subject,
            _ => FailureCause::Other,
        };
        assert_eq!(cause, expected);
    }
}

/// The baseline copy's readings.
fn copies(ran: &Finished) -> Vec<&Reading> {
    let copies = ran.done().into_iter().filter(|(it, _)| it.baseline_copy);
    copies.map(|(_, reading)| reading).collect()
}

#[test]
fn the_baselines_copy_has_servers_of_its_own() {
    let script = script();
    let ran = run(TWO, &script);
    assert!(copies(&ran).iter().all(|it| it.separate_copy));
    let named = |it: &&Reading| it.servers.iter().all(|s| s.server == "a");
    assert!(copies(&ran).iter().all(named));
    let log = &script.borrow().log;
    assert_eq!(log.iter().filter(|it| *it == "start a.copy").count(), 2);
    assert_eq!(log.iter().filter(|it| *it == "stop a.copy").count(), 2);
}

#[test]
fn a_back_end_that_all_share_is_copied_for_a_direct_baseline() {
    let script = script();
    let text = TWO.replace(
        "[servers.b]\nrecipe = \"origin\"",
        "[servers.b]\nrecipe = \"balance\"\nupstreams = [\"a\"]",
    );
    let ran = run(&text, &script);
    assert!(copies(&ran).iter().all(|it| it.separate_copy));
    assert!(script.borrow().log.contains(&"start a.copy".to_owned()));
    assert!(!script.borrow().log.contains(&"start b.copy".to_owned()));
    // With the proxy as the baseline only the proxy is copied.
    let proxy = text.replace("[design]\n", "[design]\nbaseline = \"b\"\n");
    let script = self::script();
    run(&proxy, &script);
    assert!(!script.borrow().log.contains(&"start a.copy".to_owned()));
    assert!(script.borrow().log.contains(&"start b.copy".to_owned()));
}

#[test]
fn a_copy_that_cannot_be_is_said_not_to_be() {
    let fixed = TWO.replacen("recipe = \"origin\"", "recipe = \"origin\"\nport = 1", 1);
    let ran = run(&fixed, &script());
    assert!(copies(&ran).iter().all(|it| !it.separate_copy));
    assert_eq!((copies(&ran).len(), ran.failures().len()), (2, 0));
    // One that does not start, and one that takes CPU time while it is idle.
    let broken = script();
    broken.borrow_mut().broken.insert("a.copy".into());
    let busy = script();
    busy.borrow_mut().idle_cpus.insert("a.copy".into(), 0.5);
    for script in [broken, busy] {
        let ran = run(TWO, &script);
        assert!(copies(&ran).iter().all(|it| !it.separate_copy));
        assert_eq!((copies(&ran).len(), ran.failures().len()), (2, 0));
    }
}

#[test]
fn an_agent_that_dies_in_a_load_fails_only_its_group() {
    let script = script_with(|it| it.dies_in_load = Some(2));
    let ran = run(TWO, &script);
    assert!(ran.complete);
    assert_eq!((ran.opened, ran.retries()), (2, 1));
    assert_eq!(ran.failures(), vec!["lost the agent: it ended"; 3]);
    assert_eq!(ran.trials().len(), 9);
}

#[test]
fn a_run_can_be_resumed_after_any_row() {
    let whole = Folder::new();
    run_in(&whole.0, TWO, &script(), false);
    let text = fs::read_to_string(whole.0.join("journal.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for kept in 1..=lines.len() {
        let part = Folder::new();
        fs::create_dir_all(part.0.join("trials")).unwrap();
        fs::copy(
            whole.0.join("experiment.toml"),
            part.0.join("experiment.toml"),
        )
        .unwrap();
        let mut journal = lines[..kept].join("\n") + "\n";
        // A truncated row is measured again.
        journal.push_str("{\"row\":\"trial\",");
        fs::write(part.0.join("journal.jsonl"), journal).unwrap();
        let ran = run_in(&part.0, TWO, &script(), true);
        let mut done: Vec<u32> = ran.trials().iter().map(|trial| trial.trial).collect();
        done.sort_unstable();
        done.dedup();
        assert_eq!(done, [1, 2, 3, 4, 5, 6], "after {kept} rows");
        let now = fs::read_to_string(part.0.join("journal.jsonl")).unwrap();
        assert!(now.starts_with(&lines[..kept].join("\n")), "{kept}");
        let end = matches!(
            ran.journal.rows.last(),
            Some(JournalRow::End { complete: true })
        );
        assert!(end, "after {kept} rows");
    }
}

/// [`TWO`] with a curve.
fn with_curve() -> String {
    TWO.replace(
        "[design]",
        "[load]\ncurve = true\n[design]\ncurve_window = \"200ms\"",
    )
}

/// The rates of the points of each trial, and which are shares.
fn curve_of(trial: &Trial) -> Vec<(f64, Option<f64>)> {
    let Outcome::Done(reading) = &trial.outcome else {
        panic!("{trial:?}")
    };
    let points = reading.curve.iter();
    points.map(|one| (one.rate_per_s, one.share)).collect()
}

#[test]
fn a_curve_has_the_rates_of_the_first_block_in_all_blocks() {
    let script = script();
    // What is carried later is more; the rates stay.
    script.borrow_mut().rate_per_s = |order| match order.job.arrivals {
        load::Arrivals::Even => 10_000.0,
        load::Arrivals::Poisson => 500.0,
    };
    let ran = run(&with_curve(), &script);
    assert_eq!(ran.failures().len(), 0, "{:?}", ran.failures());
    let [choice] = ran.journal.curves()[..] else {
        panic!("{:?}", ran.journal.rows)
    };
    let rates = [1_000.0, 3_000.0, 5_000.0, 7_000.0, 8_000.0, 9_000.0];
    assert_eq!(choice.rates_per_s, rates);
    assert_eq!(choice.capacities_per_s.len(), 2);
    let shares = [0.1, 0.3, 0.5, 0.7, 0.9].map(|share| (10_000.0 * share, Some(share)));
    let expected: Vec<_> = rates
        .map(|rate| (rate, None))
        .into_iter()
        .chain(shares)
        .collect();
    for trial in ran.trials() {
        match trial.baseline_copy {
            true => assert!(curve_of(&trial).is_empty()),
            false => {
                let found = curve_of(&trial);
                assert_eq!(found.len(), expected.len());
                for (one, other) in found.iter().zip(&expected) {
                    assert!(
                        (one.0 - other.0).abs() < 1e-6 && one.1 == other.1,
                        "{found:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_resumed_run_keeps_the_rates_of_its_curve() {
    let whole = Folder::new();
    run_in(&whole.0, &with_curve(), &script(), false);
    let file = whole.0.join("journal.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    // Cut off after the first block; what is carried then is half as much.
    let second = text.lines().position(|line| line.contains("\"block\":2"));
    let kept: Vec<&str> = text.lines().take(second.unwrap()).collect();
    fs::write(&file, kept.join("\n") + "\n").unwrap();
    let script = script_with(|it| it.rate_per_s = |_| 5_000.0);
    let ran = run_in(&whole.0, &with_curve(), &script, true);
    assert_eq!(ran.journal.curves().len(), 1);
    let trials = ran.trials();
    let of_a = |block: u32| {
        let mut own = trials.iter();
        own.find(|it| it.block == block && it.subject == "a" && !it.baseline_copy)
            .map(curve_of)
    };
    assert!(of_a(1).is_some());
    assert_eq!(of_a(1), of_a(2));
}

#[test]
fn subjects_measured_one_after_the_other_have_the_same_rates() {
    let apart = with_curve().replace("retries = 1", "retries = 1\napart = \"always\"");
    let ran = run(&apart, &script());
    assert_eq!(ran.journal.curves().len(), 1);
    let trials = ran.trials();
    let measured: Vec<_> = trials
        .iter()
        .filter(|it| !it.baseline_copy)
        .map(curve_of)
        .collect();
    assert_eq!(measured.len(), 4);
    assert!(
        measured
            .iter()
            .all(|one| *one == measured[0] && one.len() == 11),
        "{measured:?}"
    );
}

#[test]
fn subjects_that_disturb_each_other_are_measured_one_after_the_other() {
    let script = script_with(|it| it.idle_cpus.insert("b".into(), 0.5));
    let ran = run(TWO, &script);
    assert_eq!(ran.failures().len(), 0);
    let warned = ran.events.iter().any(|event| {
        matches!(event, RunEvent::Warning { text } if text.contains("one after the other")
            && text.contains("server `b` takes 50.0% of a CPU"))
    });
    assert!(warned, "{:?}", ran.events);
    let log = script.borrow().log.clone();
    // The first warm-up was side by side; then one server is up at a time.
    let together = log.iter().filter(|it| *it == "load on a+a.copy+b").count();
    let alone = |it: &&String| *it == "load on a" || *it == "load on b";
    assert_eq!((together, log.iter().filter(alone).count()), (1, 12));
}

#[test]
fn idle_servers_are_sampled_once_and_those_above_the_limit_again() {
    for (cpus, samples) in [(0.0, 1), (0.5, 2)] {
        let script = script();
        script.borrow_mut().idle_cpus.insert("b".into(), cpus);
        run(TWO, &script);
        assert_eq!(script.borrow().samples_without_load, samples, "{cpus}");
    }
}
