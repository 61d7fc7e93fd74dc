//! How the servers of the compared subjects were set, side by side, and where they differ in what
//! changes results most.

pub(crate) mod upgrades;
pub mod words;

use readings::once;
use readings::{Condition, ServerSettings, SettingsReading, SubjectSettings};
use serde::Serialize;

use crate::SubjectRow;

/// The settings that are the same under some conditions, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideBySide {
    pub conditions: Vec<Condition>,
    /// Each subject with the servers of its path, the one that is asked first.
    pub subjects: Vec<SubjectSettings>,
    /// Where subjects differ.
    pub differences: Vec<SettingDifference>,
}

/// A setting in which subjects differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingDifference {
    pub setting: String,
    pub values: Vec<SettingValue>,
}

/// A value of a setting, and who has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingValue {
    /// The value; several, where servers of a subject have different ones. Where each server counts
    /// by itself, they are named: `on at a and off at b`.
    pub value: String,
    pub subjects: Vec<String>,
}

/// How the values of several servers on a path are combined.
#[derive(Clone, Copy)]
enum Together {
    /// Any equal value counts as alike: a front end with one worker before sixteen processes is
    /// comparable with sixteen processes.
    Any,
    /// A value other than off counts for all.
    NotOff,
    /// Only the first server counts.
    First,
    /// Each server counts, in the order of the path.
    Each,
}

/// What changes results most.
const COMPARED: [(&str, Together); 7] = [
    ("workers", Together::Any),
    ("keepalive_client", Together::First),
    ("keepalive_upstream", Together::Each),
    ("access_log", Together::NotOff),
    ("caching", Together::NotOff),
    ("compression", Together::First),
    ("tls", Together::First),
];

/// The setting that the load observed: the requests that a connection of the first server carried.
pub(crate) const REQUESTS_PER_CONNECTION: &str = "requests_per_connection";

/// Adds what the load observed of the first server of each subject, the fewest requests of any of the
/// conditions: what was seen stands before what was declared.
pub(crate) fn add_observed(all: &mut [SideBySide], table: &[SubjectRow]) {
    for one in all {
        let conditions = &one.conditions;
        for subject in &mut one.subjects {
            let rows = table.iter().filter(|row| {
                row.subject == subject.subject && conditions.contains(&row.condition)
            });
            let seen = rows.filter_map(|row| {
                Some((row.reconnects_per_request?, row.requests_per_connection?))
            });
            let most = seen.max_by(|a, b| a.0.total_cmp(&b.0));
            if let (Some((again, each)), Some(first)) = (most, subject.servers.first_mut()) {
                let value = super::table::words::kept(again, each);
                first
                    .settings
                    .insert(REQUESTS_PER_CONNECTION.to_owned(), value);
            }
        }
    }
}

/// How the servers of the subjects were set. What is not known is not compared. What a server of every
/// path has is the same for all, and a subject without servers of its own has nothing to compare.
pub(crate) fn side_by_side(rows: &[&SettingsReading]) -> Vec<SideBySide> {
    let mut found: Vec<SideBySide> = Vec::new();
    for row in rows {
        match found.iter_mut().find(|one| one.subjects == row.subjects) {
            Some(one) => one.conditions.push(row.condition.clone()),
            None => found.push(SideBySide {
                conditions: vec![row.condition.clone()],
                subjects: row.subjects.clone(),
                differences: differences(&row.subjects),
            }),
        }
    }
    found
}

fn differences(subjects: &[SubjectSettings]) -> Vec<SettingDifference> {
    let started: Vec<&SubjectSettings> = subjects
        .iter()
        .filter(|one| !one.servers.is_empty())
        .collect();
    let of_all = |server: &ServerSettings| {
        let has = |one: &&SubjectSettings| one.servers.iter().any(|s| s.server == server.server);
        started.iter().all(has)
    };
    let own: Vec<(&str, Vec<&ServerSettings>)> = started
        .iter()
        .map(|one| {
            let servers = one.servers.iter().filter(|server| !of_all(server));
            (one.subject.as_str(), servers.collect())
        })
        .collect();
    let mut found = Vec::new();
    for (setting, together) in COMPARED {
        let values: Vec<(&str, Vec<&str>, String)> = own
            .iter()
            .map(|(subject, servers)| {
                let values = values(setting, together, servers);
                let words = words(setting, together, servers, &values);
                (*subject, values, words)
            })
            .filter(|(_, values, _)| !values.is_empty())
            .filter(|(_, values, _)| !values.iter().any(|value| ServerSettings::is_unknown(value)))
            .collect();
        let alike = |a: &[&str], b: &[&str]| match together {
            Together::Any => a.iter().any(|value| b.contains(value)),
            Together::NotOff | Together::First | Together::Each => a == b,
        };
        let differ = values
            .iter()
            .any(|(_, a, _)| values.iter().any(|(_, b, _)| !alike(a, b)));
        if differ {
            let mut by_value: Vec<SettingValue> = Vec::new();
            for (subject, _, value) in values {
                match by_value.iter_mut().find(|one| one.value == value) {
                    Some(one) => one.subjects.push(subject.to_owned()),
                    None => by_value.push(SettingValue {
                        value,
                        subjects: vec![subject.to_owned()],
                    }),
                }
            }
            found.push(SettingDifference {
                setting: setting.to_owned(),
                values: by_value,
            });
        }
    }
    found
}

/// The values of a subject in words. Those that count for each server by itself have its name.
fn words(
    setting: &str,
    together: Together,
    servers: &[&ServerSettings],
    values: &[&str],
) -> String {
    if !matches!(together, Together::Each) || values.len() < 2 {
        return values.join(" and ");
    }
    let named = servers.iter().filter_map(|server| {
        let value = server.settings.get(setting)?;
        Some(format!("{value} at {}", server.server))
    });
    named.collect::<Vec<_>>().join(" and ")
}

/// The values that a subject's servers tell, each once.
fn values<'s>(setting: &str, together: Together, servers: &[&'s ServerSettings]) -> Vec<&'s str> {
    let told = |server: &&'s ServerSettings| server.settings.get(setting).map(String::as_str);
    let mut values: Vec<&str> = match together {
        Together::First => servers.first().and_then(told).into_iter().collect(),
        Together::Any | Together::NotOff | Together::Each => {
            servers.iter().filter_map(told).collect()
        }
    };
    if matches!(together, Together::NotOff) && values.iter().any(|value| *value != "off") {
        values.retain(|value| *value != "off");
    }
    let mut once = once(values);
    if !matches!(together, Together::Each) {
        once.sort_unstable();
    }
    once
}
