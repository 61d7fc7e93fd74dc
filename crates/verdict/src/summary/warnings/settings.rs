//! Settings in which the compared servers differ.

use readings::Condition;

use crate::{SettingDifference, SideBySide, SubjectRow, Warning};

/// A warning for each setting in which subjects differ. What is so under all conditions is said
/// without them. Whether connections are kept is not taken from what is declared where the load
/// observed it.
pub(crate) fn warnings(settings: &[SideBySide], table: &[SubjectRow]) -> Vec<Warning> {
    let mut found: Vec<(&SettingDifference, Vec<Condition>)> = Vec::new();
    for one in settings {
        let declared = one.differences.iter();
        for difference in declared.filter(|difference| !is_observed(difference, one, table)) {
            match found.iter_mut().find(|(known, _)| *known == difference) {
                Some((_, at)) => at.extend_from_slice(&one.conditions),
                None => found.push((difference, one.conditions.clone())),
            }
        }
    }
    let all: usize = settings.iter().map(|one| one.conditions.len()).sum();
    let warning = |(difference, at): (&SettingDifference, Vec<Condition>)| Warning::Settings {
        difference: difference.clone(),
        conditions: if at.len() == all { Vec::new() } else { at },
    };
    found.into_iter().map(warning).collect()
}

/// Whether the load saw what this setting of the subjects does.
fn is_observed(difference: &SettingDifference, at: &SideBySide, table: &[SubjectRow]) -> bool {
    let is_seen = |subject: &String| {
        table.iter().any(|row| {
            row.subject == *subject
                && at.conditions.contains(&row.condition)
                && row.reconnects_per_request.is_some()
        })
    };
    let mut subjects = difference.values.iter().flat_map(|value| &value.subjects);
    difference.setting == "keepalive_client" && subjects.all(is_seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analysis;
    use crate::fixtures::{closed, header, in_closed};
    use crate::summary::settings::side_by_side;
    use readings::text::condition;
    use readings::{Journal, JournalRow, ServerSettings, SettingsReading, SubjectSettings};
    use testing::Text as _;

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

    fn judged(rows: &[SettingsReading]) -> Vec<SideBySide> {
        side_by_side(&rows.iter().collect::<Vec<_>>())
    }

    /// The differences that are warned of, as `workers: 1 (x, z), 4 (y)`.
    fn warned(subjects: &[(&str, &[ServerSettings])]) -> Vec<String> {
        told(&judged(&[row(subjects, Condition::new())]))
    }

    fn told(settings: &[SideBySide]) -> Vec<String> {
        let each = warnings(settings, &[]).into_iter().map(|warning| {
            let Warning::Settings {
                difference,
                conditions,
            } = &warning
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

    /// The analysis of a trial of each of two subjects whose loads opened so many connections for 1,000
    /// requests, and whose servers declare to keep connections or not.
    fn observed(connects: [u64; 2], declared: [&str; 2]) -> Analysis {
        let subjects = ["direct", "balance"];
        let of_trial = |(name, connects): (&str, u64)| {
            let mut load = closed(100.0);
            load.connects = connects;
            JournalRow::Trial(Box::new(in_closed(1, name, load)))
        };
        let mut rows: Vec<JournalRow> = subjects.into_iter().zip(connects).map(of_trial).collect();
        let servers = [0, 1].map(|at| {
            let declared = [("keepalive_client", declared[at]), ("workers", "1")];
            [server(subjects[at], &declared)]
        });
        let of_subjects = [0, 1].map(|at| (subjects[at], servers[at].as_slice()));
        rows.push(JournalRow::Settings(row(
            &of_subjects,
            crate::fixtures::condition(96),
        )));
        crate::analyse(&Journal::new(header(1), rows))
    }

    #[test]
    fn what_the_load_observed_stands_before_what_servers_declare() {
        let told = |analysis: &Analysis| -> Vec<String> {
            let about = analysis.warnings.iter().filter(|one| {
                matches!(
                    one,
                    Warning::Settings { .. } | Warning::ConnectionsDiffer { .. }
                )
            });
            about.map(crate::words::warning).collect()
        };
        let seen = |analysis: &Analysis| -> Vec<String> {
            let subjects = analysis.settings[0].subjects.iter();
            let first = subjects.map(|one| &one.servers[0].settings);
            first
                .map(|all| all["requests_per_connection"].clone())
                .collect()
        };
        // Both say that they keep connections, and one closes each.
        let closes = observed([32, 1_000], ["on", "on"]);
        assert_eq!(seen(&closes), ["kept", "1.00"]);
        let said = told(&closes);
        assert_eq!(said.len(), 1, "{said:?}");
        said[0].has("a new connection for each request");
        // One says that it closes them, and none does.
        let keeps = observed([32, 32], ["on", "off"]);
        assert_eq!(seen(&keeps), ["kept", "kept"]);
        assert!(told(&keeps).is_empty(), "{:?}", told(&keeps));
    }

    #[test]
    fn what_lines_of_the_users_own_may_have_set_is_not_compared() {
        let unknown = ServerSettings::unknown("extra");
        let a = [server("a", &[("access_log", &unknown), ("workers", "1")])];
        let b = [server("b", &[("access_log", "off"), ("workers", "2")])];
        assert_eq!(
            warned(&[("x", &a), ("y", &b)]),
            ["workers at : 1 (x), 2 (y)"]
        );
    }

    #[test]
    fn different_workers_are_warned_of_and_equal_ones_are_not() {
        let one = [server("a", &[("workers", "1"), ("access_log", "off")])];
        let four = [server("b", &[("workers", "4"), ("access_log", "off")])];
        assert_eq!(
            warned(&[("x", &one), ("y", &four), ("z", &one)]),
            ["workers at : 1 (x, z), 4 (y)"]
        );
        let same = [server("b", &[("workers", "1")])];
        assert!(warned(&[("x", &one), ("y", &same)]).is_empty());
        // A recipe that tells nothing.
        assert!(warned(&[("x", &one), ("y", &[server("b", &[])])]).is_empty());
    }

    #[test]
    fn a_server_of_all_paths_is_no_difference_and_neither_is_one_in_front() {
        let origin = server("origin", &[("workers", "1"), ("keepalive_client", "on")]);
        let proxy = server("proxy", &[("workers", "4"), ("keepalive_client", "off")]);
        let proxied = [proxy, origin.clone()];
        assert!(warned(&[("direct", &[origin]), ("proxy", &proxied)]).is_empty());
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
        assert!(warned(&[("a", &nginx), ("b", &apache("on"))]).is_empty());
        let found = warned(&[("a", &nginx), ("b", &apache("off"))]);
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
            warned(&[("a", &nginx), ("b", &both), ("c", &haproxy)]),
            [
                "keepalive_upstream at : off (a), on at haproxy and off at nginx and on at varnish (b), \
                 on (c)"
            ]
        );
        // Two proxies that are set as the one.
        let twice = [proxy("first", "on"), proxy("second", "on"), app];
        assert!(warned(&[("b", &twice), ("c", &haproxy)]).is_empty());
        // The other way round is another setting.
        let turned = [proxy("x", "off"), proxy("y", "on")];
        let straight = [proxy("v", "on"), proxy("w", "off")];
        assert_eq!(
            warned(&[("a", &turned), ("b", &straight)]),
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
        let settings = judged(&rows);
        assert_eq!(settings.len(), 2);
        let expected = ["workers at processes=4; processes=5: 1 (x), 4 (y)"];
        assert_eq!(told(&settings), expected);
    }
}
