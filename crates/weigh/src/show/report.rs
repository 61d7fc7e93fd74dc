//! `weigh report`.

use std::ffi::OsStr;
use std::path::Path;

use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use history::store;
use readings::{Journal, RunHeader};
use report::Better;
use run::journal::{self, JournalError};
use serde_json::Value;
use verdict::Analysis;

use crate::cli::{ReportArgs, ReportFormat};
use crate::failure::Failure;
use crate::show::gates;
use crate::show::run_facts::stored_run_facts;
use crate::terminal::output::{colour, json_text, print_coloured, print_text, width};

/// Exit status when two runs cannot be compared.
const NOT_COMPARABLE: u8 = 2;

/// Shows a run's folder again, or two beside each other.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    if let Some(other) = &args.other {
        return report_pair(args, other);
    }
    if let Some(file) = &args.picture {
        return picture(args, file);
    }
    let format = args.format.to_possible_value();
    let format = format.filter(|_| args.format != ReportFormat::Text && args.output.is_none());
    gates::one_output(&args.gates, format.as_ref().map(PossibleValue::get_name))?;
    let mut journal = read(args)?;
    let given = gates::for_run(&args.gates, &journal.header)?;
    if !given.is_empty() {
        journal.header.gates = given;
    }
    let (header, analysis) = (&journal.header, &verdict::analyse(&journal));
    let text = match args.format {
        ReportFormat::Text => {
            let coloured = colour() && args.output.is_none();
            let name = args.folder.display().to_string();
            match args.verbose {
                true => report::verbose(header, analysis, width(), coloured, None),
                false => report::terminal(&journal, analysis, width(), coloured, Some(&name)),
            }
        }
        ReportFormat::Html => report::html(&journal, analysis, &stored_run_facts(&args.folder)),
        ReportFormat::Md => report::markdown(header, analysis),
        ReportFormat::Csv => report::csv(&journal, analysis),
        ReportFormat::Json => document(&report::json(header, analysis)),
        ReportFormat::Bencher => document(&report::bencher(header, analysis)),
        ReportFormat::GithubBigger => document(&report::github(header, analysis, Better::Bigger)),
        ReportFormat::GithubSmaller => document(&report::github(header, analysis, Better::Smaller)),
        ReportFormat::Openmetrics => report::openmetrics(header, analysis),
        ReportFormat::Otava => report::otava(header, analysis),
        ReportFormat::Svg => report::curve_svg(header, analysis).ok_or_else(|| {
            Failure::words(
                "this run has no curve: expected one that was measured with `--curve`, or with \
                 `curve` in `[load]`",
            )
        })?,
    };
    write(args, &text)?;
    gates::write(&args.gates, header, analysis, &args.folder)?;
    // Showing a run is no judgement, unless one was asked for.
    match args.gates.gates.is_empty() && args.gates.unsettled.is_none() {
        true => Ok(0),
        false => Ok(gates::status(analysis, args.gates.unsettled_fails())),
    }
}

fn document(value: &Value) -> String {
    json_text(value) + "\n"
}

fn write(args: &ReportArgs, text: &str) -> Result<(), Failure> {
    match &args.output {
        None if !args.gates.printed().is_empty() => {}
        None if args.format == ReportFormat::Text => print_coloured(text),
        None => print_text(text),
        Some(path) => std::fs::write(path, report::visible(text).as_bytes())
            .map_err(|e| Failure::words(format!("cannot write {}: {e}", path.display())))?,
    }
    Ok(())
}

/// Writes the ranking as a picture.
fn picture(args: &ReportArgs, file: &Path) -> Result<u8, Failure> {
    let kind = file.extension().map(|kind| kind.to_ascii_lowercase());
    let is_png = match kind.as_deref().and_then(OsStr::to_str) {
        Some("svg") => false,
        Some("png") if cfg!(feature = "full") => true,
        Some("png") => {
            return Err(Failure::words(
                "--picture: this build of weigh draws no PNG: write a file that ends in .svg, or \
                 build with `cargo build --release --features full`",
            ));
        }
        _ => {
            return Err(Failure::words(format!(
                "--picture: expected a file that ends in .svg or .png, found {}",
                file.display()
            )));
        }
    };
    let journal = read(args)?;
    let (header, analysis) = (&journal.header, &verdict::analyse(&journal));
    let bytes = match is_png {
        true => png(header, analysis),
        false => report::ranking_svg(header, analysis).map(String::into_bytes),
    };
    let bytes = bytes.ok_or_else(|| {
        Failure::words("--picture: nothing can be ranked: expected two subjects with a figure")
    })?;
    std::fs::write(file, bytes)
        .map_err(|e| Failure::words(format!("cannot write {}: {e}", file.display())))?;
    Ok(0)
}

#[cfg(feature = "full")]
fn png(header: &RunHeader, analysis: &Analysis) -> Option<Vec<u8>> {
    report::ranking_png(header, analysis)
}

#[cfg(not(feature = "full"))]
fn png(_: &RunHeader, _: &Analysis) -> Option<Vec<u8>> {
    None
}

/// Shows two runs beside each other.
fn report_pair(args: &ReportArgs, other: &Path) -> Result<u8, Failure> {
    let load = |folder: &Path| store::load(folder).map_err(Failure::words);
    let (first, second) = (load(&args.folder)?, load(other)?);
    let name = |folder: &Path| folder.display().to_string();
    let pair = history::pair((&name(&args.folder), &first), (&name(other), &second));
    let text = match args.format {
        ReportFormat::Text => history::pair_terminal(&pair),
        ReportFormat::Html => history::pair_html(&pair),
        ReportFormat::Json => document(&history::pair_json(&pair)),
        _ => {
            return Err(Failure::words(
                "two runs are shown as text, html or json: expected one of these as --format",
            ));
        }
    };
    write(args, &text)?;
    if let Some(why) = pair.refused {
        eprintln!("weigh: the two runs cannot be compared: {why}");
        return Ok(NOT_COMPARABLE);
    }
    Ok(0)
}

/// The journal's first line is damaged.
fn headless(e: &JournalError) -> Failure {
    Failure::words(format!(
        "{e}; the first line must be intact, since it says what was measured: `--salvage` cannot do \
         without it"
    ))
}

/// Reads the journal of the folder; with `--salvage`, its intact rows.
fn read(args: &ReportArgs) -> Result<Journal, Failure> {
    if !args.salvage {
        return journal::read(&args.folder).map_err(|e| match e {
            JournalError::Text { ref source, .. } if source.is_of_first_line() => headless(&e),
            JournalError::Text { .. } => Failure::words(format!(
                "{e}; `weigh report --salvage {}` uses the intact rows",
                args.folder.display()
            )),
            // It may be a folder of runs.
            JournalError::Io { .. } if args.folder.is_dir() => Failure::words(format!(
                "{e}; `weigh history {}` lists the runs below a folder",
                args.folder.display()
            )),
            other => Failure::words(other),
        });
    }
    let salvaged = journal::salvage(&args.folder).map_err(|e| match e {
        JournalError::Text { .. } => headless(&e),
        other => Failure::words(other),
    })?;
    eprintln!(
        "weigh: {} of {} lines of the journal were left out{}",
        salvaged.left_out.len(),
        salvaged.lines,
        match salvaged.left_out.is_empty() {
            true => ": it is intact",
            false => "; the warnings of the report name them",
        }
    );
    Ok(salvaged.journal)
}
