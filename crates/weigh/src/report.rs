//! `weigh report`.

use readings::Journal;
use run::journal::{self, JournalError};

use crate::cli::{ReportArgs, ReportFormat};
use crate::failure::Failure;
use crate::output::{colour, json_text, print_text, width};

/// Shows a run's folder again.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let journal = read(args)?;
    let (header, analysis) = (&journal.header, &verdict::analyse(&journal));
    let text = match args.format {
        ReportFormat::Text => {
            let coloured = colour() && args.output.is_none();
            report::terminal(header, analysis, width(), coloured, None)
        }
        ReportFormat::Html => report::html(&journal, analysis),
        ReportFormat::Md => report::markdown(header, analysis),
        ReportFormat::Csv => report::csv(&journal),
        ReportFormat::Json => json_text(&report::json(header, analysis)) + "\n",
        ReportFormat::Svg => report::curve_svg(header, analysis).ok_or_else(|| {
            Failure::words(
                "this run has no curve: expected one that was measured with `--curve`, or with \
                 `curve` in `[load]`",
            )
        })?,
    };
    match &args.output {
        None => print_text(&text),
        Some(path) => std::fs::write(path, report::visible(&text).as_bytes())
            .map_err(|e| Failure::words(format!("cannot write {}: {e}", path.display())))?,
    }
    Ok(0)
}

/// Reads the journal of the folder; with `--salvage`, its intact rows.
fn read(args: &ReportArgs) -> Result<Journal, Failure> {
    if !args.salvage {
        return journal::read(&args.folder).map_err(|e| match e {
            JournalError::Text { .. } => Failure::words(format!(
                "{e}; `weigh report --salvage {}` uses the intact rows",
                args.folder.display()
            )),
            other => Failure::words(other),
        });
    }
    let salvaged = journal::salvage(&args.folder).map_err(Failure::words)?;
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
