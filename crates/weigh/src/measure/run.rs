//! `weigh run`.

use std::path::{Path, PathBuf};

use experiment::{Experiment, Recipes, catalogue};
use readings::Journal;
use run::{CallGraph, MayStop, RunError, RunOptions, default_folder};
use verdict::plan::Noise;
use verdict::{Analysis, Metric, Verdict};

use crate::cli::{Format, GateArgs, RunArgs};
use crate::failure::Failure;
use crate::measure::before::Before;
use crate::measure::builds::prepare;
use crate::measure::dry_run::dry_run;
use crate::measure::revision::revision;
use crate::recipes::{own_program, recipes};
use crate::show::gates;
use crate::show::run_facts::run_facts;
use crate::signals::Signals;
use crate::terminal::output::{colour, json_text, print_coloured, print_json, width};
use crate::terminal::progress::Progress;

/// Exit status when nothing could be measured.
const FAILED: u8 = 1;
/// Exit status when it was measured, but is invalid.
const INVALID: u8 = 4;

/// Runs an experiment, or resumes a run.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let recipes = recipes(&args.own)?;
    if let Some(folder) = &args.resume {
        let mut experiment =
            Experiment::read(&folder.join("experiment.toml"), &[], false, &recipes)
                .map_err(Failure::file)?;
        note_counters(&mut experiment);
        return measure(&Wanted {
            experiment: &experiment,
            recipes: &recipes,
            noise: Noise::assumed(),
            seed: 0,
            folder: folder.clone(),
            resume: true,
            format: args.format,
            verbose: args.verbose,
            cache: args.cache.as_deref(),
            profile: args.profile.map(Into::into),
            gates: &args.gates,
            label: None,
        });
    }
    let name = args.experiment.as_deref().unwrap_or_default();
    let open = |sets: &[(String, String)]| {
        catalogue::open_experiment(name, sets, args.quick, &recipes).map_err(Failure::file)
    };
    let mut experiment = open(&args.set)?;
    if args.curve && !experiment.loads.is_empty() {
        return Err(Failure::words(
            "--curve needs one [load], and this experiment has several loads at the same time",
        ));
    }
    if args.curve && experiment.load.curve.is_none() {
        let curve = ("load.curve".to_owned(), "true".to_owned());
        experiment = open(&[args.set.as_slice(), &[curve]].concat())?;
    }
    if let Some(bottleneck) = args.bottleneck {
        find_bottlenecks(&mut experiment, bottleneck)?;
    }
    gates::add(&mut experiment, &args.gates, args.format)?;
    note_counters(&mut experiment);
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&experiment.name));
    let within = args.within.or(experiment.design.within);
    let before = Before::of(&mut experiment, within, args.bottleneck, &folder)?;
    if args.dry_run {
        return dry_run(&experiment, &recipes, seed, &before, args.format);
    }
    before.say()?;
    measure(&Wanted {
        experiment: &experiment,
        recipes: &recipes,
        noise: before.noise,
        seed,
        folder,
        resume: false,
        format: args.format,
        verbose: args.verbose,
        cache: args.cache.as_deref(),
        profile: args.profile.map(Into::into),
        gates: &args.gates,
        label: args.label.as_deref(),
    })
}

/// Carries `--bottleneck` out.
///
/// # Errors
/// When it asks for a search that the experiment's loads or events rule out.
fn find_bottlenecks(experiment: &mut Experiment, wanted: bool) -> Result<(), Failure> {
    let ruled_out_by = match (experiment.loads.is_empty(), experiment.events.is_empty()) {
        (false, _) => Some("several loads at the same time"),
        (true, false) => Some("events"),
        (true, true) => None,
    };
    if let (true, Some(what)) = (wanted, ruled_out_by) {
        return Err(Failure::words(format!(
            "--bottleneck is not possible here: the experiment has {what}"
        )));
    }
    experiment.find_bottlenecks(wanted);
    Ok(())
}

/// Notes whether instructions are counted here, so that the estimate of a run's time has that time.
/// Of other machines that is known only in the run.
pub fn note_counters(experiment: &mut Experiment) {
    experiment.counts_instructions = agent::instructions::scope().is_ok();
}

/// What to run, and how to show its result.
pub struct Wanted<'a> {
    pub experiment: &'a Experiment,
    /// The recipes that it may use.
    pub recipes: &'a Recipes,
    /// How much blocks vary here, by what is known.
    pub noise: Noise,
    /// The seed; ignored by a resumed run, which has its own.
    pub seed: u64,
    /// The run's folder.
    pub folder: PathBuf,
    /// Whether to resume the run in the folder.
    pub resume: bool,
    /// How the result is printed.
    pub format: Format,
    /// Whether the text has everything.
    pub verbose: bool,
    /// The cache of revisions, where the user says so.
    pub cache: Option<&'a Path>,
    /// Whether servers are profiled after the last block, and how.
    pub profile: Option<CallGraph>,
    /// What is written beside it, and what unsettled gates come to.
    pub gates: &'a GateArgs,
    /// What the user calls a new run.
    pub label: Option<&'a str>,
}

/// Measures, decides and shows.
pub fn measure(wanted: &Wanted<'_>) -> Result<u8, Failure> {
    if wanted.profile.is_some() && cfg!(not(feature = "full")) {
        let why = "--profile: this build makes no profiles: build it with --features full";
        return Err(Failure::words(why));
    }
    let before = journal_bytes(&wanted.folder);
    let stopped = carry_out(wanted).inspect_err(|_| say_what_is_kept(&wanted.folder, before))?;
    let status = show(wanted)?;
    if let Some(status) = stopped {
        eprintln!(
            "weigh: stopped; what was measured is kept; continue with: weigh run --resume {}",
            wanted.folder.display()
        );
        return Ok(status);
    }
    Ok(status)
}

fn journal_bytes(folder: &Path) -> u64 {
    let file = std::fs::metadata(folder.join(run::journal::FILE_NAME));
    file.map_or(0, |about| about.len())
}

/// Says what was kept, after a failure in the middle of a run, such as a full disk.
fn say_what_is_kept(folder: &Path, bytes_before: u64) {
    let journal = run::journal::read(folder);
    let trials = journal.map_or(0, |journal| journal.trials().count());
    if trials > 0 && journal_bytes(folder) > bytes_before {
        eprintln!(
            "weigh: the run ended early; {trials} trials are kept in {0}: show them with `weigh report \
             {0}`, and continue with `weigh run --resume {0}`",
            folder.display()
        );
    }
}

/// Measures; returns the exit status where a signal stopped it.
pub fn carry_out(wanted: &Wanted<'_>) -> Result<Option<u8>, Failure> {
    carry_out_until(wanted, &verdict::may_stop)
}

/// [`carry_out`] until the run may stop by this rule.
pub fn carry_out_until(wanted: &Wanted<'_>, may_stop: &MayStop<'_>) -> Result<Option<u8>, Failure> {
    crate::tls::check_authorities(wanted.experiment)?;
    let signals = Signals::listen()?;
    signals.before_the_end(agent::end_all)?;
    let weigh = own_program()?;
    let resumed = wanted.resume.then_some(wanted.folder.as_path());
    let builds = prepare(wanted.experiment, wanted.cache, resumed, &signals.stop);
    let builds = builds.map_err(|failure| match signals.status() {
        Some(status) => Failure::Stopped(status),
        None => failure,
    })?;
    let revision = if wanted.resume { None } else { revision() };
    let options = RunOptions {
        experiment: wanted.experiment,
        recipes: wanted.recipes,
        seed: wanted.seed,
        folder: &wanted.folder,
        resume: wanted.resume,
        builds: &builds,
        weigh: &weigh,
        may_stop,
        profile: wanted.profile,
        noise: wanted.noise,
        label: wanted.label,
        revision: revision.as_deref(),
    };
    let mut progress = Progress::new();
    let result = run::run(&options, &signals.stop, |event| progress.event(&event));
    progress.end();
    if let Err(RunError::Host { .. }) = &result {
        // A signal ends the wait for hosts, which is no error then.
        signals.go_on()?;
    }
    result.map_err(|e| {
        if e.is_callers() {
            Failure::words(e)
        } else {
            Failure::failed(e)
        }
    })?;
    Ok(signals.status())
}

/// Writes the summaries and prints the result; returns the exit status.
fn show(wanted: &Wanted<'_>) -> Result<u8, Failure> {
    let (folder, gate_args) = (wanted.folder.as_path(), wanted.gates);
    let journal = run::journal::read(folder).map_err(Failure::words)?;
    let (header, analysis) = (&journal.header, &verdict::analyse(&journal));
    let unwritten = write_summaries(folder, wanted.recipes, &journal, analysis);
    match wanted.format {
        _ if !gate_args.printed().is_empty() => {}
        Format::Json => print_json(&report::json(header, analysis)),
        Format::Text if wanted.verbose => {
            let page = folder.join("report.html").display().to_string();
            let page = unwritten.is_none().then_some(page.as_str());
            let text = report::verbose(header, analysis, width(), colour(), page);
            print_coloured(&text);
        }
        Format::Text => {
            let name = folder.display().to_string();
            let text = report::terminal(&journal, analysis, width(), colour(), Some(&name));
            print_coloured(&text);
        }
    }
    gates::write(gate_args, header, analysis, folder)?;
    match unwritten {
        Some((file, why)) => Err(Failure::failed(format!(
            "{file}: {why}; the journal is complete: `weigh report {0} --format html --output FILE` \
             writes the report elsewhere",
            folder.display()
        ))),
        None => Ok(status(analysis, gate_args.unsettled_fails())),
    }
}

/// Writes the summaries into a run's folder. The result is to be shown even if the disk is full:
/// the first file that could not be written is returned, and what stood there before stays.
pub fn write_summaries(
    folder: &Path,
    recipes: &Recipes,
    journal: &Journal,
    analysis: &Analysis,
) -> Option<(String, std::io::Error)> {
    let header = &journal.header;
    let document = report::json(header, analysis);
    let files = [
        ("summary.md", report::markdown(header, analysis)),
        ("summary.json", json_text(&document) + "\n"),
        (
            "report.html",
            report::html(journal, analysis, &run_facts(folder, recipes)),
        ),
    ];
    let mut unwritten = None;
    for (name, text) in files {
        if let Err(e) = run::replace_file(&folder.join(name), &text) {
            unwritten.get_or_insert_with(|| (folder.join(name).display().to_string(), e));
        }
    }
    unwritten
}

/// A run with gates was made for them: then what they rest on has to be valid, and nothing else.
fn status(analysis: &Analysis, unsettled_fails: bool) -> u8 {
    // A single stall of the machine spoils only the far tail.
    let invalid = analysis.comparisons.iter().any(|comparison| {
        comparison.verdict == Verdict::Invalid && comparison.metric != Metric::LatencyUsP99
    });
    let nothing = analysis.trials_done == 0 && analysis.trials_failed > 0;
    match (nothing, invalid) {
        (true, _) => FAILED,
        _ if !analysis.gates.is_empty() => gates::status(analysis, unsettled_fails),
        (false, true) => INVALID,
        (false, false) => 0,
    }
}
