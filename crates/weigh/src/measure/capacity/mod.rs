//! `weigh capacity`.

use std::cell::{Cell, RefCell};
use std::path::Path;

use clap::{Args, Command, FromArgMatches};
use experiment::units::duration_text;
use load::Traffic;
use readings::{Gate, LoadReading};
use report::{CapacityView, ScalingView};
use run::Fleet;
use verdict::capacity::{Judgement, Objective, Offer};

use crate::cli::{CapacityArgs, CapacityFormat, LoadArgs, Unsettled};
use crate::failure::Failure;
use crate::measure::load::{changing, fit, hosts, target};
use crate::show::gates;
use crate::signals::Signals;
use crate::terminal::output::{json_text, print_text, width};

mod concurrency;
mod lengths;
mod search;
mod steps;

use steps::Steps;

/// Exit status when it was measured, but is invalid.
const INVALID: u8 = 4;

/// Finds the highest rate that keeps an objective, or measures throughput over concurrency.
pub fn capacity(args: &CapacityArgs) -> Result<u8, Failure> {
    check_steps(args)?;
    let objective = objective(args)?;
    let gates = gates::for_capacity(&args.gates)?;
    let signals = Signals::listen()?;
    let load = load_args(args)?;
    fit::look(&load)?;
    // A search has no log: its options are those of a load alone.
    let (target, called, _) = target::target(&load)?;
    let objective = match (objective, &target.traffic) {
        (None, Traffic::Events(_)) => {
            return Err(Failure::words(
                "--concurrency measures requests with one answer; for the number of streams that a \
                 path sustains: --objective 'p99<20ms', a limit on the lag of their events",
            ));
        }
        (Some(objective), Traffic::Events(_)) => Some(objective.of_streams()),
        (Some(objective), Traffic::Users(users)) if users.in_rounds => Some(objective.of_users()),
        (objective, _) => objective,
    };
    if let Some(objective) = &objective {
        search::check(objective, args)?;
    }
    let fleet = match &args.hosts {
        None => None,
        Some(file) => Some(fleet(args, file, &target.address, &signals)?),
    };
    let mut job = crate::measure::load::job(&load, target);
    match fleet {
        // Each host asks for itself.
        Some(_) => job.wait = hosts::wait(args.wait),
        None => {
            let varying = target::prepare(&mut job, &signals)?;
            if !varying.is_empty() {
                eprintln!(
                    "weigh: the answers differ from time to time; their content is not compared"
                );
            }
        }
    }
    let steps = Steps {
        args,
        called: &called,
        job: &job,
        signals: &signals,
        fleet: fleet.map(RefCell::new),
        answers_warned_of: Cell::new(false),
    };
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let found = match &objective {
        Some(objective) => under(objective, &gates, &steps, seed),
        None => over_concurrency(&steps, seed).map(|is_valid| (is_valid, 0)),
    };
    if let Some(fleet) = steps.fleet {
        hosts::close(fleet.into_inner());
    }
    let (is_valid, of_gates) = found?;
    Ok(match signals.status() {
        Some(status) => status,
        None if is_valid => of_gates,
        None => INVALID,
    })
}

/// # Errors
/// When a step is to be longer than the longest.
fn check_steps(args: &CapacityArgs) -> Result<(), Failure> {
    match args.step_max {
        Some(longest) if args.step > longest => Err(Failure::words(format!(
            "--step {} is longer than --step-max {}, the longest time of a step; give a shorter \
             --step, or a longer --step-max",
            duration_text(args.step),
            duration_text(longest)
        ))),
        _ => Ok(()),
    }
}

/// The hosts that make the load.
fn fleet(
    args: &CapacityArgs,
    file: &Path,
    address: &net::Address,
    signals: &Signals,
) -> Result<Fleet, Failure> {
    let specs = hosts::read(file)?;
    let (option, fewest) = match args.concurrency.iter().min() {
        Some(fewest) => ("--concurrency", *fewest),
        None => ("--connections", args.connections),
    };
    hosts::threads(specs.len(), option, fewest, args.threads)?;
    hosts::open(specs, address, signals)
}

/// Searches, and shows what was found. Whether any trial says something, and the status of the gates.
fn under(
    objective: &Objective,
    gates: &[Gate],
    steps: &Steps<'_>,
    seed: u64,
) -> Result<(bool, u8), Failure> {
    let args = steps.args;
    let mut found = search::search(objective, steps, seed)?;
    note_changing(found.steps.iter().map(|step| &step.load));
    let shown = steps.called.to_string();
    let points =
        verdict::capacity::curve(&found.steps, &verdict::capacity::quantiles_of(objective));
    let view = CapacityView {
        url: &shown,
        objective,
        capacity: &found.capacity,
        steps: &found.steps,
        precision: args.precision,
        undetected: match objective.offered() {
            Offer::Users | Offer::Streams => None,
            Offer::Requests => verdict::capacity::undetected_overload(
                objective,
                &found.capacity,
                &found.steps,
                args.warmup.as_secs_f64(),
                args.precision,
            ),
        },
        points: &points,
        connections: args.connections,
        seed,
        stopped: steps.signals.stopped(),
    };
    let judged = verdict::judge_capacity_gates(gates, &args.url, &found.capacity);
    let document = || {
        let mut document = steps.document(report::capacity_json(&view));
        document["gates"] = report::gates_json(&judged);
        document
    };
    match args.format {
        CapacityFormat::Json => show(args, &(json_text(&document()) + "\n"))?,
        CapacityFormat::Text => {
            let gates = report::gates_terminal(&judged, width(), false);
            show(args, &(gates + &report::capacity_terminal(&view, width())))?;
        }
        CapacityFormat::Md => {
            let gates = report::gates_markdown(&judged);
            show(args, &(report::capacity_markdown(&view) + "\n" + &gates))?;
        }
        CapacityFormat::Html => show(args, &report::capacity_html(&view))?,
    }
    if let Some(failure) = found.failure.take() {
        return Err(failure);
    }
    let says = |j: &Judgement| !matches!(j, Judgement::Unusable(_));
    let unsettled_fails = args.unsettled == Some(Unsettled::Fail);
    Ok((
        found.steps.iter().any(|s| says(&s.judgement)),
        gates::status_of(&judged, unsettled_fails),
    ))
}

/// Measures in a closed loop, and shows it. Whether any step was valid.
fn over_concurrency(steps: &Steps<'_>, seed: u64) -> Result<bool, Failure> {
    let args = steps.args;
    let (made, failure) = concurrency::measure(steps, seed)?;
    note_changing(made.iter().map(|step| &step.load));
    let shown = steps.called.to_string();
    let scaling = verdict::usl::Scaling::of(&made, seed);
    let view = ScalingView {
        url: &shown,
        scaling: &scaling,
        steps: &made,
        seed,
        stopped: steps.signals.stopped(),
    };
    let document = || steps.document(report::scaling_json(&view));
    match args.format {
        CapacityFormat::Json => show(args, &(json_text(&document()) + "\n"))?,
        CapacityFormat::Text => show(args, &report::scaling_terminal(&view, width()))?,
        CapacityFormat::Md => show(args, &report::scaling_markdown(&view))?,
        CapacityFormat::Html => show(args, &report::scaling_html(&view))?,
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(scaling.levels.iter().any(|l| l.rounds > 0)),
    }
}

/// Says on standard error how content that may change is left uncompared.
fn note_changing<'a>(loads: impl Iterator<Item = &'a LoadReading>) {
    if let Some(note) = changing::note(loads) {
        eprintln!("weigh: {note}");
    }
}

fn show(args: &CapacityArgs, text: &str) -> Result<(), Failure> {
    match &args.output {
        None => print_text(text),
        Some(path) => std::fs::write(path, text)
            .map_err(|e| Failure::words(format!("--output {}: {e}", path.display())))?,
    }
    Ok(())
}

/// The objective, with the limits of further options.
fn objective(args: &CapacityArgs) -> Result<Option<Objective>, Failure> {
    let Some(text) = &args.objective else {
        if args.rounds == Some(0) {
            return Err(Failure::words(
                "--rounds 0: expected at least 1 with --concurrency, and 4 for intervals that \
                 include the variation between rounds",
            ));
        }
        return Ok(None);
    };
    let of_option = |option: &str, text: &str, e: verdict::capacity::ObjectiveError| {
        Failure::words(format!("{option} `{text}`: {e}"))
    };
    let mut objective: Objective = text
        .parse()
        .map_err(|e| of_option("--objective", text, e))?;
    if let Some(share) = &args.errors {
        let with = objective.with_errors(share);
        objective = with.map_err(|e| of_option("--errors", share, e))?;
    }
    if let Some(share) = &args.min_achieved {
        let with = objective.with_achieved(share);
        objective = with.map_err(|e| of_option("--min-achieved", share, e))?;
    }
    Ok(Some(objective))
}

/// The same as options of `weigh load`, which makes the job of them.
fn load_args(args: &CapacityArgs) -> Result<LoadArgs, Failure> {
    let messages = &args.traffic.websocket;
    let options = [
        ("--messages", messages.messages.is_some()),
        ("--message-rate", messages.message_rate.is_some()),
        ("--receive", messages.receive),
    ];
    if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::words(format!(
            "{option} does not go with a search, which chooses times and rates; leave it out"
        )));
    }
    let command = LoadArgs::augment_args(Command::new("load").no_binary_name(true));
    let mut load = command
        .try_get_matches_from(["--", &args.url])
        .and_then(|matches| LoadArgs::from_arg_matches(&matches))
        .map_err(Failure::words)?;
    load.connections = Some(args.connections);
    load.threads = args.threads;
    load.length.warmup = args.warmup;
    load.pacing.arrivals = args.arrivals;
    load.pacing.wait = args.wait;
    load.reuse.no_keepalive = args.no_keepalive;
    load.request = args.request.clone();
    load.limits.timeout = args.timeout;
    load.answer.expect_status = args.expect_status;
    load.answer.body_varies = args.body_varies;
    load.client.io = args.io;
    load.client.cpus = args.cpus.clone();
    load.client.hosts = args.hosts.clone();
    load.traffic = args.traffic.clone();
    load.tls = args.tls.clone();
    load.data = args.data.clone();
    load.output.quiet = args.quiet;
    Ok(load)
}
