//! How the servers of the compared subjects were set, side by side, and where they differ in what
//! changes results most.

pub mod words;

use readings::{Condition, ServerSettings, SettingsReading, SubjectSettings};
use serde::Serialize;

use crate::{Analysis, Warning};

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
    /// Each value with the subjects that have it.
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

impl Analysis {
    /// Adds the settings of the subjects' servers, with a warning for each in which
    /// subjects differ. What a server of every path has is the same for all, and a subject without
    /// servers of its own has nothing to compare.
    pub(crate) fn take_settings(&mut self, rows: &[&SettingsReading]) {
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
        let mut warned: Vec<(SettingDifference, Vec<&Condition>)> = Vec::new();
        for one in &found {
            for difference in &one.differences {
                match warned.iter_mut().find(|(known, _)| known == difference) {
                    Some((_, at)) => at.extend(&one.conditions),
                    None => warned.push((difference.clone(), one.conditions.iter().collect())),
                }
            }
        }
        for (difference, at) in warned {
            let at = if at.len() == rows.len() {
                Vec::new()
            } else {
                at
            };
            let conditions = at.into_iter().cloned().collect();
            self.warnings.push(Warning::Settings {
                difference,
                conditions,
            });
        }
        self.settings = found;
    }
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
    let mut once: Vec<&str> = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    if !matches!(together, Together::Each) {
        once.sort_unstable();
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{analyse, header};
    use readings::text::condition;

    fn server(name: &str, settings: &[(&str, &str)]) -> ServerSettings {
        let settings = settings.iter();
        ServerSettings {
            server: name.to_owned(),
            recipe: name.to_owned(),
            version: None,
            settings: settings
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        }
    }

    fn row(subjects: &[(&str, &[ServerSettings])], at: Condition) -> SettingsReading {
        let subjects = subjects.iter().map(|(subject, servers)| SubjectSettings {
            subject: (*subject).to_owned(),
            servers: servers.to_vec(),
        });
        SettingsReading {
            condition: at,
            subjects: subjects.collect(),
        }
    }

    fn judged(rows: &[SettingsReading]) -> Analysis {
        let mut analysis = analyse(&header(1), &[]);
        analysis.warnings.clear();
        analysis.take_settings(&rows.iter().collect::<Vec<_>>());
        analysis
    }

    /// The differences that are warned of, as `workers: 1 (x, z), 4 (y)`.
    fn warnings(subjects: &[(&str, &[ServerSettings])]) -> Vec<String> {
        told(&judged(&[row(subjects, Condition::new())]))
    }

    fn told(analysis: &Analysis) -> Vec<String> {
        let each = analysis.warnings.iter().map(|warning| {
            let Warning::Settings {
                difference,
                conditions,
            } = warning
            else {
                panic!("{warning:?}");
            };
            let values = difference.values.iter();
            let values = values.map(|one| format!("{} ({})", one.value, one.subjects.join(", ")));
            let at: Vec<String> = conditions.iter().map(condition).collect();
            let values: Vec<String> = values.collect();
            format!(
                "{} at {}: {}",
                difference.setting,
                at.join("; "),
                values.join(", ")
            )
        });
        each.collect()
    }

    #[test]
    fn different_workers_are_warned_of_and_equal_ones_are_not() {
        let one = [server("a", &[("workers", "1"), ("access_log", "off")])];
        let four = [server("b", &[("workers", "4"), ("access_log", "off")])];
        assert_eq!(
            warnings(&[("x", &one), ("y", &four), ("z", &one)]),
            ["workers at : 1 (x, z), 4 (y)"]
        );
        let same = [server("b", &[("workers", "1")])];
        assert!(warnings(&[("x", &one), ("y", &same)]).is_empty());
        // A recipe that tells nothing.
        assert!(warnings(&[("x", &one), ("y", &[server("b", &[])])]).is_empty());
    }

    #[test]
    fn a_server_of_all_paths_is_no_difference_and_neither_is_one_in_front() {
        let origin = server("origin", &[("workers", "1"), ("keepalive_client", "on")]);
        let proxy = server("proxy", &[("workers", "4"), ("keepalive_client", "off")]);
        let proxied = [proxy, origin.clone()];
        assert!(warnings(&[("direct", &[origin]), ("proxy", &proxied)]).is_empty());
    }

    #[test]
    fn of_several_servers_each_setting_counts_where_it_is_made() {
        let front = server(
            "nginx",
            &[
                ("workers", "1"),
                ("keepalive_client", "on"),
                ("access_log", "off"),
            ],
        );
        let behind = server(
            "fpm",
            &[
                ("workers", "16"),
                ("keepalive_client", "off"),
                ("access_log", "on"),
            ],
        );
        let apache = |log| {
            [server(
                "apache",
                &[
                    ("workers", "16"),
                    ("keepalive_client", "on"),
                    ("access_log", log),
                ],
            )]
        };
        let nginx = [front, behind];
        assert!(warnings(&[("a", &nginx), ("b", &apache("on"))]).is_empty());
        let found = warnings(&[("a", &nginx), ("b", &apache("off"))]);
        assert_eq!(found, ["access_log at : on (a), off (b)"]);
    }

    #[test]
    fn each_proxy_of_a_path_tells_whether_it_keeps_connections_to_its_upstreams() {
        let proxy = |name: &str, kept| server(name, &[("keepalive_upstream", kept)]);
        let app = server("app", &[("keepalive_client", "on")]);
        let nginx = [proxy("nginx", "off"), app.clone()];
        let both = [
            proxy("haproxy", "on"),
            proxy("nginx", "off"),
            proxy("varnish", "on"),
            app.clone(),
        ];
        let haproxy = [proxy("ha1", "on"), app.clone()];
        assert_eq!(
            warnings(&[("a", &nginx), ("b", &both), ("c", &haproxy)]),
            [
                "keepalive_upstream at : off (a), on at haproxy and off at nginx and on at varnish (b), \
                 on (c)"
            ]
        );
        // Two proxies that are set as the one.
        let twice = [proxy("first", "on"), proxy("second", "on"), app];
        assert!(warnings(&[("b", &twice), ("c", &haproxy)]).is_empty());
        // The other way round is another setting.
        let turned = [proxy("x", "off"), proxy("y", "on")];
        let straight = [proxy("v", "on"), proxy("w", "off")];
        assert_eq!(
            warnings(&[("a", &turned), ("b", &straight)]),
            ["keepalive_upstream at : off at x and on at y (a), on at v and off at w (b)"]
        );
    }

    #[test]
    fn conditions_that_are_set_alike_stand_together() {
        let at = |n: &str| Condition::from([("processes".to_owned(), n.to_owned())]);
        let one = [server("a", &[("workers", "1")])];
        let four = [server("b", &[("workers", "4")])];
        let same = [server("b", &[("workers", "1")])];
        let rows = [
            row(&[("x", &one), ("y", &same)], at("1")),
            row(&[("x", &one), ("y", &four)], at("4")),
            row(&[("x", &one), ("y", &four)], at("5")),
        ];
        let analysis = judged(&rows);
        assert_eq!(analysis.settings.len(), 2);
        let expected = ["workers at processes=4; processes=5: 1 (x), 4 (y)"];
        assert_eq!(told(&analysis), expected);
    }
}
