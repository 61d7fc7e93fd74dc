//! Configuration files.

mod corpus;
mod crossroads;
mod docs;
mod native;
mod round_trip;

use balance::ConfigError;

/// The mistakes as `line: message; help`.
fn mistakes_of(error: ConfigError, file: &str) -> Vec<String> {
    let shown = error.mistakes().iter().map(|one| {
        let line = one.line().map_or(0, |(_, line)| line);
        format!(
            "{line}: {}; {}",
            one.message(),
            one.help_text().unwrap_or("")
        )
    });
    let shown = shown.collect();
    // Showing them must work, too.
    let report = format!("{:?}", miette::Report::new(error));
    assert!(report.contains(file), "{report}");
    shown
}

fn assert_said(found: &[String], says: &str, text: &str) {
    let is_said = found.iter().any(|one| one.contains(says));
    assert!(is_said, "{text}: {says}: {found:#?}");
}

/// The rows of a table whose columns are divided by `|`; `\n` stands for a line's end.
fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [String; N]> {
    table.lines().filter(|line| !line.is_empty()).map(|line| {
        let cells: Vec<String> = line
            .split('|')
            .map(|cell| cell.trim().replace("\\n", "\n"))
            .collect();
        cells.try_into().unwrap()
    })
}
