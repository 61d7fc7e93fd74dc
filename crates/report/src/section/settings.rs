//! The settings of the compared servers as a table.

use readings::text::condition;
use verdict::SideBySide;
use verdict::words::settings::HEADS;

use crate::section::columns::Columns;

pub(crate) const TITLE: &str = "Settings side by side";

/// Where a table holds, if that is not everywhere.
pub(crate) fn place(all: &[SideBySide], one: &SideBySide) -> Option<String> {
    let at: Vec<String> = one.conditions.iter().map(condition).collect();
    (all.len() > 1).then(|| format!("At {}:", at.join("; ")))
}

/// A row for each server of each subject; settings that no server tells are left out.
pub(crate) fn table(settings: &SideBySide) -> Columns {
    let servers = || {
        let subjects = settings.subjects.iter();
        subjects.flat_map(|one| one.servers.iter().map(move |server| (&one.subject, server)))
    };
    let told = |(name, _): &&(&str, &str)| {
        servers().any(|(_, server)| server.settings.contains_key(*name))
    };
    let shown: Vec<&(&str, &str)> = HEADS.iter().filter(told).collect();
    let mut head = ["subject", "server", "recipe", "version"]
        .map(str::to_owned)
        .to_vec();
    head.extend(shown.iter().map(|(_, words)| (*words).to_owned()));
    let none = || "-".to_owned();
    let rows = servers().map(|(subject, server)| {
        let mut row = vec![
            subject.clone(),
            server.server.clone(),
            server.recipe.clone(),
            server.version.clone().unwrap_or_else(none),
        ];
        let values = shown
            .iter()
            .map(|(name, _)| server.settings.get(*name).cloned());
        row.extend(values.map(|value| value.unwrap_or_else(none)));
        row
    });
    Columns {
        numeric: vec![false; head.len()],
        rows: rows.collect(),
        head,
    }
}
