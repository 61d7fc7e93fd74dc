//! The journal rows of the servers' settings.

use std::collections::BTreeMap;

use readings::{Condition, Journal, JournalRow, ServerSettings, SettingsReading, SubjectSettings};
use serde_json::Value;

use experiment::{Recipes, ResolvedCondition};

/// The conditions whose settings were reported.
#[derive(Default)]
pub(crate) struct ReportedSettings {
    conditions: Vec<Condition>,
}

impl ReportedSettings {
    /// The rows of an earlier part of the run.
    pub(crate) fn of(journal: Option<&Journal>) -> Self {
        let rows = journal.map(Journal::settings).unwrap_or_default();
        Self {
            conditions: rows.iter().map(|row| row.condition.clone()).collect(),
        }
    }

    /// The row for a condition; `None` if it is already reported, a server is missing, or there are
    /// no servers.
    pub(crate) fn row(
        &mut self,
        condition: &Condition,
        resolved: &ResolvedCondition,
        configurations: &BTreeMap<String, Value>,
        recipes: &Recipes,
    ) -> Option<JournalRow> {
        if resolved.servers.is_empty() || self.conditions.contains(condition) {
            return None;
        }
        let of_server = |server: &String| {
            let configuration = configurations.get(server)?;
            let recipe = recipes.get(configuration.get("recipe")?.as_str()?)?;
            let told = || configuration["version"].as_str().map(str::to_owned);
            let version = version_of_own(configuration).or_else(told);
            Some(ServerSettings {
                server: server.clone(),
                recipe: recipe.name.clone(),
                version,
                settings: serde_json::from_value(configuration.get("settings")?.clone()).ok()?,
            })
        };
        let mut subjects = Vec::new();
        for subject in &resolved.subjects {
            let servers: Option<Vec<_>> = subject.through.iter().map(of_server).collect();
            subjects.push(SubjectSettings {
                subject: subject.name.clone(),
                servers: servers?,
            });
        }
        self.conditions.push(condition.clone());
        Some(JournalRow::Settings(SettingsReading {
            condition: condition.clone(),
            subjects,
        }))
    }
}

/// The commit or the digest of a server that was given as a revision or an image.
fn version_of_own(configuration: &Value) -> Option<String> {
    let text = |path: &str| configuration.pointer(path)?.as_str();
    if let (Some(name), Some(commit)) = (text("/revision/name"), text("/revision/commit")) {
        return Some(format!("{name} ({})", commit.get(..12).unwrap_or(commit)));
    }
    let (name, digest) = (text("/image/name")?, text("/image/digest")?);
    let digest = digest.trim_start_matches("sha256:");
    Some(format!("{name} ({})", digest.get(..12).unwrap_or(digest)))
}
