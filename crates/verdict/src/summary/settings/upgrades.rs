//! What another version of a server costs: subjects that differ in the version of their first server.
//!
//! The ratios are those of the pairs in tiers, so there are none with fewer than three subjects, where
//! the comparison with the baseline says it.

use readings::{Condition, SubjectSettings, once};
use serde::Serialize;

use super::{COMPARED, SideBySide};
use crate::{Metric, SubjectPair, Tiers};

/// A newer version of a server against the next older one that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Upgrade {
    pub recipe: String,
    pub from: Version,
    pub to: Version,
    /// By condition and metric, in the order of the tiers.
    pub changes: Vec<UpgradeChange>,
}

/// A subject, and the version of its first server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Version {
    pub subject: String,
    pub version: String,
}

/// A metric of the newer version over that of the older one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpgradeChange {
    pub condition: Condition,
    pub metric: Metric,
    pub ratio: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub told_apart: bool,
}

/// The upgrades among the subjects, each version against the next older one of the same recipe.
pub(crate) fn upgrades(settings: &[SideBySide], tiers: &[Tiers]) -> Vec<Upgrade> {
    let pairs = settings.iter().flat_map(|one| versions(&one.subjects));
    let pairs = once(pairs);
    let upgrade = |(recipe, from, to): (String, Version, Version)| {
        let changes: Vec<UpgradeChange> = tiers
            .iter()
            .filter_map(|one| change(one, &from.subject, &to.subject))
            .collect();
        (!changes.is_empty()).then_some(Upgrade {
            recipe,
            from,
            to,
            changes,
        })
    };
    pairs.into_iter().filter_map(upgrade).collect()
}

fn change(tiers: &Tiers, from: &str, to: &str) -> Option<UpgradeChange> {
    let find = |first: &str, second: &str| {
        let is_it = |pair: &&SubjectPair| pair.first == first && pair.second == second;
        tiers.pairs.iter().find(is_it)
    };
    let of =
        |ratio: f64, pair: &SubjectPair, (low, high): (Option<f64>, Option<f64>)| UpgradeChange {
            condition: tiers.condition.clone(),
            metric: tiers.metric,
            ratio,
            low,
            high,
            told_apart: pair.told_apart,
        };
    if let Some(pair) = find(to, from) {
        return Some(of(pair.ratio?, pair, (pair.low, pair.high)));
    }
    let pair = find(from, to)?;
    let turned = |end: Option<f64>| end.map(|end| 1.0 / end);
    Some(of(
        1.0 / pair.ratio?,
        pair,
        (turned(pair.high), turned(pair.low)),
    ))
}

/// The versions of each recipe, each with the next newer one, where nothing else differs that is
/// compared.
fn versions(subjects: &[SubjectSettings]) -> Vec<(String, Version, Version)> {
    let mut known: Vec<(&SubjectSettings, &str)> = subjects
        .iter()
        .filter_map(|one| Some((one, one.servers.first()?.version.as_deref()?)))
        .collect();
    known.sort_by_key(|(_, version)| numbers(version));
    let mut found = Vec::new();
    for (at, (from, old)) in known.iter().enumerate() {
        let mut newer = known[at + 1..].iter();
        let next = newer.find(|(to, new)| new != old && is_upgrade(from, to));
        if let Some((to, new)) = next {
            let version = |subject: &SubjectSettings, version: &str| Version {
                subject: subject.subject.clone(),
                version: version.to_owned(),
            };
            let recipe = from.servers[0].recipe.clone();
            found.push((recipe, version(from, old), version(to, new)));
        }
    }
    found
}

/// Whether two paths are alike but for the version of the first server.
fn is_upgrade(from: &SubjectSettings, to: &SubjectSettings) -> bool {
    let (Some((old, behind)), Some((new, behind_new))) =
        (from.servers.split_first(), to.servers.split_first())
    else {
        return false;
    };
    let is_set_alike = |(name, _): &(&str, _)| old.settings.get(*name) == new.settings.get(*name);
    old.recipe == new.recipe && behind == behind_new && COMPARED.iter().all(is_set_alike)
}

/// The numbers of a version: 1.9 is older than 1.22.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;
    use readings::ServerSettings;

    fn subject(name: &str, recipe: &str, version: &str, workers: &str) -> SubjectSettings {
        let server = |recipe: &str, version: &str| ServerSettings {
            server: recipe.to_owned(),
            recipe: recipe.to_owned(),
            version: Some(version.to_owned()),
            settings: [("workers".to_owned(), workers.to_owned())].into(),
        };
        SubjectSettings {
            subject: name.to_owned(),
            servers: vec![server(recipe, version), server("origin", "1")],
        }
    }

    fn pair(first: &str, second: &str, [ratio, low, high]: [f64; 3], apart: bool) -> SubjectPair {
        SubjectPair {
            first: first.to_owned(),
            second: second.to_owned(),
            ratio: Some(ratio),
            low: Some(low),
            high: Some(high),
            blocks: 10,
            p_value: None,
            p_adjusted: None,
            told_apart: apart,
            withheld: None,
        }
    }

    fn of(subjects: Vec<SubjectSettings>) -> Vec<Upgrade> {
        let settings = SideBySide {
            conditions: vec![Condition::new()],
            subjects,
            differences: Vec::new(),
        };
        let tiers = Tiers {
            condition: Condition::from([("size".to_owned(), "100".to_owned())]),
            metric: Metric::RequestsPerS,
            tiers: Vec::new(),
            subjects: Vec::new(),
            left_out: Vec::new(),
            pairs: vec![
                pair("old", "new", [1.25, 1.2, 1.3], true),
                pair("caddy_new", "caddy_old", [1.01, 0.98, 1.04], false),
                pair("old", "caddy_new", [3.0, 2.9, 3.1], true),
            ],
        };
        upgrades(&[settings], &[tiers])
    }

    #[test]
    fn each_pair_of_versions_has_a_sentence_and_no_other_pair() {
        let found = of(vec![
            subject("new", "nginx", "1.22.1", "1"),
            subject("old", "nginx", "1.9.4", "1"),
            subject("caddy_old", "caddy", "2.6.2", "1"),
            subject("caddy_new", "caddy", "2.11.7", "1"),
        ]);
        assert_eq!(
            words::upgrades(&found),
            [
                "Upgrade of nginx from 1.9.4 to 1.22.1 (new against old): throughput -20% [-23%, -17%] at size=100.",
                "Upgrade of caddy from 2.6.2 to 2.11.7 (caddy_new against caddy_old): throughput +1% [-2%, +4%] at \
                 size=100 (not told apart)."
            ]
        );
    }

    #[test]
    fn subjects_that_differ_in_a_setting_too_are_no_upgrade() {
        let found = of(vec![
            subject("old", "nginx", "1.9.4", "1"),
            subject("new", "nginx", "1.22.1", "4"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
