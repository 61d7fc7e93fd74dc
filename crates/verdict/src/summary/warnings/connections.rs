//! Subjects that close connections more often than others.

use crate::{Place, SubjectRow, Warning};

/// Fewer new connections per request say nothing: servers close idle or old ones now and then.
const FEW: f64 = 0.01;
/// Subjects differ where one opens so many times as many as another.
const TIMES: f64 = 2.0;

/// For each condition the subjects with the fewest and the most new connections per request, where
/// they differ: what opening them costs is part of all figures.
pub(crate) fn warnings(table: &[SubjectRow]) -> Vec<Warning> {
    let conditions = table.chunk_by(|a, b| a.condition == b.condition);
    let differing = conditions.filter_map(|rows| {
        let known = rows
            .iter()
            .filter_map(|row| Some((row, row.reconnects_per_request?)));
        let least = known.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let most = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most.1 > FEW && most.1 > TIMES * least.1).then(|| Warning::ConnectionsDiffer {
            at: Place {
                subject: most.0.subject.clone(),
                condition: most.0.condition.clone(),
            },
            other: least.0.subject.clone(),
            per_request: [most.1, least.1],
        })
    });
    differing.collect()
}

#[cfg(test)]
mod tests {
    use crate::Warning;
    use crate::fixtures::{analyse, closed, done, header, in_closed, open, trial};

    fn found(connects: [u64; 2]) -> Vec<String> {
        let subjects = ["direct", "balance"];
        let of_subject = |(subject, connects): (&&str, u64)| {
            let mut load = closed(100.0);
            load.connects = connects;
            in_closed(1, subject, load)
        };
        let trials: Vec<_> = subjects.iter().zip(connects).map(of_subject).collect();
        let warnings = analyse(&header(1), &trials).warnings;
        let is_it = |one: &&Warning| matches!(one, Warning::ConnectionsDiffer { .. });
        let found = warnings.iter().filter(is_it);
        found.map(crate::words::warning).collect()
    }

    #[test]
    fn connections_are_told_of_trials_that_cannot_be_used_and_of_open_loops_alone() {
        let of = |(subject, connects): (&str, u64), broken: bool, is_open: bool| {
            let mut load = match is_open {
                true => open(100.0, 400.0),
                false => closed(100.0),
            };
            load.connections = 32;
            load.requests_all = 1_000;
            load.connects = connects;
            if broken {
                // The connections that it closes fail now and then.
                load.errors.read = 100;
                load.errors_all.read = 100;
            }
            let loads = match is_open {
                true => done(None, Some(load)),
                false => done(Some(load), None),
            };
            trial(1, subject, false, loads)
        };
        for (broken, is_open) in [(true, false), (false, true), (true, true)] {
            let trials = [
                of(("direct", 32), false, is_open),
                of(("balance", 1_000), broken, is_open),
            ];
            let analysis = analyse(&header(1), &trials);
            let is_it = |one: &&Warning| matches!(one, Warning::ConnectionsDiffer { .. });
            assert_eq!(
                analysis.warnings.iter().filter(is_it).count(),
                1,
                "{broken} {is_open}"
            );
            let rows = analysis.table.iter();
            let told: Vec<bool> = rows.map(crate::words::closes_connections).collect();
            assert_eq!(told, [false, true]);
            let each = analysis.table[1].requests_per_connection.unwrap();
            assert!((each - 1.0).abs() < 0.11, "{each}");
        }
    }

    #[test]
    fn a_subject_that_closes_its_connections_is_told_from_one_that_keeps_them() {
        // 1,000 requests over 32 connections.
        assert_eq!(
            found([32, 1_000]),
            [
                "balance at connections=96 needed a new connection for each request, direct kept its \
                 connections; what opening them costs is part of its figures"
            ]
        );
        assert_eq!(
            found([132, 532]),
            [
                "balance at connections=96 needed a new connection for every 2.00 requests, direct \
                 one for every 10.0 requests; what opening them costs is part of its figures"
            ]
        );
        assert!(found([32, 32]).is_empty());
        assert!(found([32, 40]).is_empty(), "too few to matter");
        assert!(found([1_000, 1_000]).is_empty(), "all alike");
    }
}
