//! `weigh report`.

use crate::cli::{ReportArgs, ReportFormat};
use crate::failure::Failure;
use crate::output::{colour, print_text, width};

/// Shows a run's folder again.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let journal = run::journal::read(&args.folder).map_err(Failure::words)?;
    let (header, analysis) = (&journal.header, &verdict::analyse(&journal));
    let text = match args.format {
        ReportFormat::Text => {
            let coloured = colour() && args.output.is_none();
            report::terminal(header, analysis, width(), coloured, None)
        }
        ReportFormat::Html => report::html(&journal, analysis),
        ReportFormat::Md => report::markdown(header, analysis),
        ReportFormat::Csv => report::csv(&journal),
        ReportFormat::Json => {
            serde_json::to_string_pretty(&report::json(header, analysis)).unwrap_or_default() + "\n"
        }
        ReportFormat::Svg => report::curve_svg(header, analysis).ok_or_else(|| {
            Failure::words(
                "this run has no curve: expected one that was measured with `--curve`, or with \
                 `curve` in `[load]`",
            )
        })?,
    };
    match &args.output {
        None => print_text(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|e| Failure::words(format!("cannot write {}: {e}", path.display())))?,
    }
    Ok(0)
}
