//! `weigh bisect`: a step of `git bisect run`.

use std::io;
use std::path::{Path, PathBuf};

use builds::BuildError;
use experiment::{Experiment, ExperimentBuilder, Recipes};
use readings::{Outcome, RunHeader, Trial};
use run::default_folder;
use verdict::{Analysis, Comparison, Metric, Verdict};

use crate::cli::{BisectArgs, BisectMetric, Format, GateArgs, OwnFolders};
use crate::failure::Failure;
use crate::measure::before::Before;
use crate::measure::compare::{WARMUP, WARMUP_MAX};
use crate::measure::own_servers::{OwnServers, SubjectValue};
use crate::measure::revision;
use crate::measure::run::{Wanted, carry_out_until, note_counters, write_summaries};
use crate::recipes::recipes;
use crate::terminal::output::print_text;

/// The exit statuses that `git bisect run` understands.
const NOT_SLOWER: u8 = 0;
const SLOWER: u8 = 1;
const CANNOT_SAY: u8 = 125;
/// Ends the bisection: any status below would say something about the commit.
pub const ABORT: u8 = 128;

const GOOD: &str = "good";
const THIS: &str = "this";
const WORKING_TREE: &str = ".";

/// Measures the working tree against a good revision.
pub fn bisect(args: &BisectArgs) -> Result<u8, Failure> {
    match measured(args) {
        Ok(status) => Ok(status),
        Err(Failure::Stopped(status)) => Err(Failure::Stopped(status)),
        Err(failure) => {
            failure.print();
            Ok(match &failure {
                Failure::Build(error) if is_of_this(error) => CANNOT_SAY,
                _ => ABORT,
            })
        }
    }
}

fn is_of_this(error: &BuildError) -> bool {
    matches!(error, BuildError::Failed(failed) if failed.revision == WORKING_TREE)
}

fn measured(args: &BisectArgs) -> Result<u8, Failure> {
    let recipes = recipes(&OwnFolders::default())?;
    let mut experiment = experiment(args, &recipes)?;
    note_counters(&mut experiment);
    let folder = match &args.out {
        Some(out) => step_folder(out, revision::short_commit("").as_deref()),
        None => default_folder("bisect"),
    };
    let before = Before::of(&mut experiment, args.within, None, &folder)?;
    before.say()?;
    let rule = Decision {
        metrics: args
            .metric
            .iter()
            .map(|metric| metric_of(*metric))
            .collect(),
    };
    let stopped = carry_out_until(
        &Wanted {
            experiment: &experiment,
            recipes: &recipes,
            noise: before.noise,
            seed: args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
            folder: folder.clone(),
            resume: false,
            format: Format::Text,
            verbose: false,
            cache: args.own.cache.as_deref(),
            profile: None,
            gates: &GateArgs::default(),
            label: None,
        },
        &|header, trials| rule.may_stop(header, trials),
    )?;
    let journal = run::journal::read(&folder).map_err(Failure::words)?;
    let analysis = verdict::analyse(&journal);
    let unwritten: Option<(String, io::Error)> =
        write_summaries(&folder, &recipes, &journal, &analysis);
    if let Some((file, why)) = unwritten {
        eprintln!("weigh: {file}: {why}");
    }
    if let Some(status) = stopped {
        return Ok(status);
    }
    let document = report::json(&journal.header, &analysis);
    let mut text = String::new();
    for (comparison, shown) in analysis
        .comparisons
        .iter()
        .zip(document["comparisons"].as_array().into_iter().flatten())
        .filter(|(comparison, _)| rule.decides(comparison))
    {
        let sentence = shown["sentence"].as_str().unwrap_or_default();
        let word = comparison.verdict.word();
        match sentence.starts_with(word) {
            true => text.push_str(&format!("{sentence}\n")),
            false => text.push_str(&format!("{word}: {sentence}\n")),
        }
    }
    for failure in &analysis.failures {
        eprintln!("weigh: {}", failure.reason);
    }
    if !is_measured(journal.trials(), GOOD) {
        return Err(Failure::failed(format!(
            "the good revision `{}` was never measured, so no commit can be compared with it; all of \
             it: weigh report {}",
            args.good,
            folder.display()
        )));
    }
    let status = rule.status(&analysis);
    let words = match status {
        NOT_SLOWER => "not slower",
        SLOWER => "slower",
        _ => "cannot say whether it is slower",
    };
    text.push_str(&format!(
        "{words} than {}; all of it: weigh report {}\n",
        args.good,
        folder.display()
    ));
    print_text(&text);
    Ok(status)
}

/// The folder of a step inside the one that the caller names: a bisection makes a run in each step.
fn step_folder(out: &Path, commit: Option<&str>) -> PathBuf {
    let step = commit.unwrap_or("step");
    let later = (2_u64..).map(|number| format!("{step}-{number}"));
    let names = std::iter::once(step.to_owned()).chain(later);
    let mut folders = names.map(|name| out.join(name));
    let free = folders.find(|folder| !folder.exists());
    free.unwrap_or_else(|| out.join(step))
}

/// Whether a subject was measured in any trial.
fn is_measured<'t>(trials: impl IntoIterator<Item = &'t Trial>, subject: &str) -> bool {
    let mut of_subject = trials.into_iter().filter(|trial| trial.subject == subject);
    of_subject.any(|trial| matches!(trial.outcome, Outcome::Done(_)))
}

fn experiment(args: &BisectArgs, recipes: &Recipes) -> Result<Experiment, Failure> {
    let mut builder = ExperimentBuilder::new("bisect", "weigh bisect");
    builder.set(
        &["title"],
        format!("the working tree against {}", args.good),
    );
    let mut own = OwnServers::new(&args.own, &[GOOD, THIS])?;
    for (name, revision) in [(GOOD, args.good.as_str()), (THIS, WORKING_TREE)] {
        let text = format!("@{revision}");
        own.add(&mut builder, name, &text, SubjectValue::Revision(revision))?;
    }
    own.finish(&mut builder);
    let written = format!("--connections {}", args.connections);
    builder.option(&written, &["load", "connections"], args.connections);
    if let Some(threads) = args.threads {
        let written = format!("--threads {threads}");
        builder.option(&written, &["load", "threads"], threads);
    }
    builder.set(&["design", "blocks"], 30_u32);
    builder.set(&["design", "warmup"], WARMUP);
    builder.set(&["design", "warmup_max"], WARMUP_MAX);
    let written = format!("--window {}", args.window);
    builder.option(&written, &["design", "window"], args.window.as_str());
    let latency = match args.metric.contains(&BisectMetric::P99) {
        true => args.window.as_str(),
        false => "0s",
    };
    builder.option(&written, &["design", "latency_window"], latency);
    let written = format!("--more-than {}", args.more_than);
    builder.option(&written, &["design", "matters"], args.more_than.as_str());
    builder.set(&["design", "bottleneck"], false);
    // A commit may change the answers; whether that is wrong is a question for tests.
    builder.set(&["expect", "same"], false);
    builder.build(recipes).map_err(Failure::file)
}

fn metric_of(metric: BisectMetric) -> Metric {
    match metric {
        BisectMetric::Throughput => Metric::RequestsPerS,
        BisectMetric::Cpu => Metric::ServerCpuUsPerRequest,
        BisectMetric::P99 => Metric::LatencyUsP99,
        BisectMetric::Memory => Metric::ServerRssBytesMax,
    }
}

/// Decides by some metrics whether a commit is slower.
struct Decision {
    metrics: Vec<Metric>,
}

impl Decision {
    fn decides(&self, comparison: &Comparison) -> bool {
        self.metrics.contains(&comparison.metric)
    }

    /// Slower in any metric means slower. Not slower needs every metric to be the same or faster.
    fn status(&self, analysis: &Analysis) -> u8 {
        let all = analysis.comparisons.iter();
        let verdicts: Vec<Verdict> = all
            .filter(|one| self.decides(one))
            .map(|one| one.verdict)
            .collect();
        status(&verdicts)
    }

    /// A run may end at the first look that decides.
    fn may_stop(&self, header: &RunHeader, trials: &[Trial]) -> bool {
        verdict::at_a_look(header, trials)
            .is_some_and(|analysis| self.status(&analysis) != CANNOT_SAY)
    }
}

fn status(verdicts: &[Verdict]) -> u8 {
    let is_fine = |verdict: &Verdict| matches!(verdict, Verdict::Same | Verdict::Faster);
    if verdicts.contains(&Verdict::Slower) {
        SLOWER
    } else if !verdicts.is_empty() && verdicts.iter().all(is_fine) {
        NOT_SLOWER
    } else {
        CANNOT_SAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_a_folder_of_its_own() {
        let out = std::env::temp_dir().join(format!("weigh-bisect-{}", std::process::id()));
        let folder = || step_folder(&out, Some("abc1234"));
        let first = folder();
        std::fs::create_dir_all(&first).unwrap();
        let second = folder();
        std::fs::remove_dir_all(&out).unwrap();
        assert_eq!(
            [first, second],
            [out.join("abc1234"), out.join("abc1234-2")]
        );
    }

    #[test]
    fn a_good_revision_that_never_runs_ends_the_bisection() {
        let trial = |subject: &str, outcome| Trial {
            trial: 1,
            block: 1,
            condition: Default::default(),
            subject: subject.to_owned(),
            baseline_copy: false,
            attempt: 1,
            outcome,
        };
        let failed = || Outcome::Failed {
            reason: "`good` did not start".into(),
            cause: Default::default(),
        };
        let done = || Outcome::Done(Default::default());
        let trials = [trial(GOOD, failed()), trial(THIS, done())];
        assert!(!is_measured(&trials, GOOD) && is_measured(&trials, THIS));
        let trials = [trial(GOOD, failed()), trial(GOOD, done())];
        assert!(is_measured(&trials, GOOD));
    }

    #[test]
    fn one_slower_metric_is_enough_and_all_have_to_be_fine() {
        use Verdict::{Faster, Inconclusive, Invalid, Same, Slower};
        for (verdicts, expected) in [
            (vec![Same, Slower], SLOWER),
            (vec![Inconclusive, Slower], SLOWER),
            (vec![Same, Faster], NOT_SLOWER),
            (vec![Same, Inconclusive], CANNOT_SAY),
            (vec![Same, Invalid], CANNOT_SAY),
            (vec![], CANNOT_SAY),
        ] {
            assert_eq!(status(&verdicts), expected, "{verdicts:?}");
        }
    }
}
