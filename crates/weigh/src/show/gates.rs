//! Gates of the command line: reads them, judges them, and writes them for continuous integration.

use std::path::Path;

use experiment::{Experiment, check_gate, parse_capacity_gate, parse_gate};
use readings::{Gate, RunHeader};
use report::PullRequest;
use serde_json::Value;
use verdict::{Analysis, GateOutcome, GateResult};

use crate::cli::{Format, GateArgs, is_output};
use crate::failure::Failure;
use crate::terminal::output::print_text;

/// Exit status when a gate was breached.
const BREACHED: u8 = 3;
/// Exit status when a gate could not be judged.
const NOT_JUDGED: u8 = 4;

/// Adds the gates of the options to those of the experiment.
///
/// # Errors
/// When a text is not a gate, or contradicts the experiment or another option.
pub fn add(experiment: &mut Experiment, args: &GateArgs, format: Format) -> Result<(), Failure> {
    one_output(args, (format == Format::Json).then_some("json"))?;
    experiment.add_gates(&args.gates).map_err(Failure::words)
}

/// Checks that at most one text is for standard output.
///
/// # Errors
/// When two are, the result among them if it was asked for in a `format`.
pub fn one_output(args: &GateArgs, format: Option<&str>) -> Result<(), Failure> {
    let mut wanting: Vec<String> = args.printed().iter().map(|o| format!("{o} -")).collect();
    wanting.extend(format.map(|format| format!("--format {format}")));
    match &wanting[..] {
        [first, second, ..] => Err(Failure::words(format!(
            "{first} and {second} both want standard output: write one of them to a file"
        ))),
        _ => Ok(()),
    }
}

/// The gates of the options, for a finished run.
///
/// # Errors
/// When a text is not a gate, or its subject does not exist.
pub fn for_run(args: &GateArgs, header: &RunHeader) -> Result<Vec<Gate>, Failure> {
    let mut gates: Vec<Gate> = Vec::new();
    for text in &args.gates {
        let wrong = |e: String| Failure::words(format!("--gate '{text}': {e}"));
        let gate = parse_gate(text).map_err(|e| wrong(e.to_string()))?;
        let subjects = header.subjects.iter().map(String::as_str);
        check_gate(&gate, &subjects.collect::<Vec<_>>(), &header.baseline).map_err(wrong)?;
        if gates.iter().any(|other| other.name == gate.name) {
            return Err(wrong("this gate is there twice".to_owned()));
        }
        gates.push(gate);
    }
    Ok(gates)
}

/// The gates of the options of a capacity search.
///
/// # Errors
/// When a text is not such a gate.
pub fn for_capacity(texts: &[String]) -> Result<Vec<Gate>, Failure> {
    let read = |text: &String| {
        parse_capacity_gate(text).map_err(|e| Failure::words(format!("--gate '{text}': {e}")))
    };
    texts.iter().map(read).collect()
}

/// The exit status that gates give a run. A breach takes precedence over gates that could not be
/// judged.
pub fn status(analysis: &Analysis, unsettled_fails: bool) -> u8 {
    status_of(&analysis.gates, unsettled_fails)
}

/// The same of judged gates.
pub fn status_of(gates: &[GateResult], unsettled_fails: bool) -> u8 {
    let any = |outcome| gates.iter().any(|gate| gate.outcome == outcome);
    if any(GateOutcome::Breached) || (unsettled_fails && any(GateOutcome::Unsettled)) {
        BREACHED
    } else if any(GateOutcome::NotJudged) {
        NOT_JUDGED
    } else {
        0
    }
}

/// Writes the comment and the JUnit file that the options ask for.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    args: &GateArgs,
    header: &RunHeader,
    analysis: &Analysis,
    folder: &Path,
) -> Result<(), Failure> {
    let unsettled_fails = args.unsettled_fails();
    if let Some(path) = &args.markdown {
        let machine = machine(folder);
        let text = report::pull_request(&PullRequest {
            header,
            analysis,
            unsettled_fails,
            machine: machine.as_deref(),
            folder: &folder.display().to_string(),
        });
        write_file(path, &text)?;
    }
    if let Some(path) = &args.junit {
        write_file(path, &report::junit(header, analysis, unsettled_fails))?;
    }
    Ok(())
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    if is_output(path) {
        print_text(text);
        return Ok(());
    }
    std::fs::write(path, report::visible(text).as_bytes())
        .map_err(|e| Failure::words(format!("cannot write {}: {e}", path.display())))
}

/// The machine in one line, from `hosts.json`.
fn machine(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("hosts.json")).ok()?;
    let hosts: Value = serde_json::from_str(&text).ok()?;
    let local = &hosts["local"];
    let cpus = local["cpus"].as_array()?.len();
    let cpu = local["cpu"].as_str().unwrap_or("unknown CPU");
    let kernel = local["kernel"].as_str().unwrap_or("unknown");
    let noun = if cpus == 1 { "CPU" } else { "CPUs" };
    Some(format!("{cpus} {noun}, {cpu}, Linux {kernel}"))
}
