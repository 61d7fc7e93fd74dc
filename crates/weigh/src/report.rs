//! `weigh report`.

use crate::cli::{ReportArgs, ReportFormat};
use crate::failure::Failure;
use crate::output::{colour, print_text, width};
use crate::run::decide;

/// Shows a run's folder again.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let decided = decide(&args.folder)?;
    let (header, analysis) = (&decided.journal.header, &decided.analysis);
    let text = match args.format {
        ReportFormat::Text => {
            let coloured = colour() && args.output.is_none();
            report::terminal(header, analysis, width(), coloured, None)
        }
        ReportFormat::Html => report::html(header, &decided.journal.trials(), analysis),
        ReportFormat::Md => report::markdown(header, analysis),
        ReportFormat::Csv => report::csv(header, &decided.journal.trials()),
        ReportFormat::Json => {
            serde_json::to_string_pretty(&report::json(header, analysis)).unwrap_or_default() + "\n"
        }
    };
    match &args.output {
        None => print_text(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|e| Failure::words(format!("cannot write {}: {e}", path.display())))?,
    }
    Ok(0)
}
