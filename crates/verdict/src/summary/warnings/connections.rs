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
    use crate::fixtures::{analyse, closed, done, header, trial};

    fn found(connects: [u64; 2]) -> Vec<String> {
        let subjects = ["direct", "balance"];
        let of_subject = |(subject, connects): (&&str, u64)| {
            let mut load = closed(100.0);
            load.connects = connects;
            trial(1, subject, false, done(Some(load), None))
        };
        let trials: Vec<_> = subjects.iter().zip(connects).map(of_subject).collect();
        let warnings = analyse(&header(1), &trials).warnings;
        let is_it = |one: &&Warning| matches!(one, Warning::ConnectionsDiffer { .. });
        let found = warnings.iter().filter(is_it);
        found.map(crate::words::warning).collect()
    }

    #[test]
    fn a_subject_that_closes_its_connections_is_told_from_one_that_keeps_them() {
        // 1,000 requests over 32 connections.
        assert_eq!(
            found([32, 1_000]),
            [
                "balance at connections=96 closes connections: 0.968 new ones per request, against 0 of \
              direct; what opening them costs is part of its figures"
            ]
        );
        assert!(found([32, 32]).is_empty());
        assert!(found([32, 40]).is_empty(), "too few to matter");
        assert!(found([1_000, 1_000]).is_empty(), "all alike");
    }
}
