//! Two runs beside each other.

mod shown;

pub use shown::{pair_html, pair_json, pair_terminal};

use std::collections::BTreeSet;

use readings::{Condition, Journal};
use serde::Serialize;
use verdict::{Comparison, FEWEST_BLOCKS, t_quantile, t_two_sided_p};

use crate::commits::revisions;
use crate::entry::{Figure, JournalStamp, RunEntry, metric};
use crate::facts::{Difference, Facts, differences, experiment_facts};
use crate::store::Loaded;

/// Two runs, their differences, and their figures.
#[derive(Clone, Debug)]
pub struct Pair {
    pub runs: [RunEntry; 2],
    pub differs: Differs,
    /// Why they cannot be compared.
    pub refused: Option<String>,
    /// Whether both ran on one machine, so that absolute figures can be compared.
    pub same_machine: bool,
    pub rows: Vec<PairRow>,
}

/// What differs between two runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Differs {
    pub machine: Vec<Difference>,
    pub versions: Vec<Difference>,
    /// Settings of servers, and the length and number of measurements.
    pub settings: Vec<Difference>,
    /// The experiment: subjects, factors, load, expectations, hosts.
    pub experiment: Vec<Difference>,
}

/// One figure of both runs.
#[derive(Clone, Debug)]
pub struct PairRow {
    pub condition: Condition,
    pub metric: String,
    pub subject: String,
    /// The figure of each run; absent if the run has none.
    pub figures: [Option<Figure>; 2],
    pub second_over_first: Option<Relation>,
    /// Why there is no relation.
    pub unrelated: Option<String>,
}

/// The second run's ratio over the first run's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Relation {
    pub ratio: f64,
    /// The ends of the 95% interval.
    pub low: f64,
    pub high: f64,
    /// Two-sided p value of 'no difference'.
    pub p_value: f64,
    /// The p value corrected for the number of rows.
    pub p_adjusted: f64,
}

impl Relation {
    /// Whether they differ after that correction.
    pub fn differs(&self) -> bool {
        self.p_adjusted < 0.05
    }
}

/// The difference of two log ratios, with the combined standard error and the degrees of freedom of
/// Welch and Satterthwaite.
fn relation(a: &Figure, b: &Figure) -> (f64, f64, f64) {
    let (va, vb) = (a.standard_error.powi(2), b.standard_error.powi(2));
    let degrees = (va + vb).powi(2) / (va * va / a.degrees + vb * vb / b.degrees);
    (b.log_ratio - a.log_ratio, (va + vb).sqrt(), degrees)
}

/// Puts two runs beside each other. Each comes with the name of its folder.
pub fn pair(first: (&str, &Loaded), second: (&str, &Loaded)) -> Pair {
    let runs = [first, second].map(|(folder, run)| {
        let stamp = JournalStamp {
            bytes: 0,
            modified_unix_ns: 0,
        };
        let (experiment, hosts) = (run.experiment.as_deref(), run.hosts.as_ref());
        RunEntry::of(folder, stamp, &run.journal, experiment, hosts)
    });
    let [a, b] = &runs;
    let facts = |run: &Loaded| run.experiment.as_deref().map(experiment_facts);
    let (mut settings, mut experiment) = (Vec::new(), Vec::new());
    let (fa, fb) = (
        facts(first.1).unwrap_or_default(),
        facts(second.1).unwrap_or_default(),
    );
    for difference in differences(&fa, &fb) {
        let name = &difference.name;
        let is_setting = name.starts_with("servers.")
            || (name.starts_with("design.") && name != "design.baseline");
        match is_setting {
            true => settings.push(difference),
            false => experiment.push(difference),
        }
    }
    let method = |run: &RunEntry, loaded: &Loaded| {
        let mut facts = run.comparable.versions.clone();
        facts.extend(revisions(&loaded.journal, loaded.hosts.as_ref()));
        facts.insert("weigh".into(), run.comparable.method.clone());
        facts
    };
    let machine = |run: &RunEntry| -> Facts {
        let mut facts = run.machine_facts.clone();
        let name = run.host.split_once('/').map_or("", |(_, name)| name);
        facts.insert("name".into(), name.to_owned());
        facts
    };
    let differs = Differs {
        machine: differences(&machine(a), &machine(b)),
        versions: differences(&method(a, first.1), &method(b, second.1)),
        settings,
        experiment,
    };
    let refused = refusal(a, b, &differs).or_else(|| nothing_shared(a, b, [first.1, second.1]));
    let known = !a.machine_facts.is_empty();
    let mut pair = Pair {
        same_machine: known && a.host == b.host,
        rows: rows(a, b),
        differs,
        refused,
        runs,
    };
    if pair.refused.is_none() {
        relate(&mut pair.rows);
    }
    pair
}

/// Why two runs cannot be compared. Levels of factors may differ as long as a condition is shared.
fn refusal(a: &RunEntry, b: &RunEntry, differs: &Differs) -> Option<String> {
    if a.baseline != b.baseline {
        return Some(format!(
            "their baselines differ: {} and {}; a ratio is to the baseline of its own run",
            a.baseline, b.baseline
        ));
    }
    let other: Vec<&Difference> = differs
        .experiment
        .iter()
        .filter(|d| !d.name.starts_with("factors."))
        .collect();
    if let Some(first) = other.first() {
        let more = match other.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        return Some(format!("their experiments differ: {}{more}", first.words()));
    }
    None
}

/// Why two runs of one experiment have no figure in common, if they have none.
fn nothing_shared(a: &RunEntry, b: &RunEntry, runs: [&Loaded; 2]) -> Option<String> {
    if a.figures.iter().any(|f| find(b, f).is_some()) {
        return None;
    }
    let [first, second] = runs.map(|run| measured(&run.journal, &a.baseline));
    let both: BTreeSet<_> = first.intersection(&second).collect();
    if both.is_empty() {
        return Some("no condition and subject was measured in both".to_owned());
    }
    let analyses = runs.map(|run| verdict::analyse(&run.journal));
    let mut all = analyses.iter().flat_map(|analysis| &analysis.comparisons);
    if all.any(|c| c.metric.is_of_events()) {
        return Some(
            "both have events, whose figures are differences from the baseline and not ratios"
                .to_owned(),
        );
    }
    let is_shared = |c: &Comparison| {
        both.iter().any(|(condition, subject)| {
            // A figure may leave a factor out that only changes the rate.
            let mut levels = c.condition.iter();
            *subject == c.subject && levels.all(|(name, level)| condition.get(name) == Some(level))
        })
    };
    let [first, second] = analyses.each_ref().map(|analysis| {
        let shared = analysis.comparisons.iter().filter(|c| is_shared(c));
        shared.map(|c| c.by_block.len()).max().unwrap_or(0)
    });
    Some(format!(
        "too few usable blocks: a figure needs {FEWEST_BLOCKS} in both runs, and the first run has \
         at most {first}, the second {second}"
    ))
}

/// The conditions and subjects of a run's trials, without the baseline's.
fn measured<'a>(journal: &'a Journal, baseline: &str) -> BTreeSet<(&'a Condition, &'a str)> {
    journal
        .trials()
        .map(|trial| (&trial.condition, trial.subject.as_str()))
        .filter(|(_, subject)| *subject != baseline)
        .collect()
}

fn find<'a>(run: &'a RunEntry, like: &Figure) -> Option<&'a Figure> {
    let is_like = |f: &&Figure| {
        f.condition == like.condition && f.metric == like.metric && f.subject == like.subject
    };
    run.figures.iter().find(is_like)
}

fn rows(a: &RunEntry, b: &RunEntry) -> Vec<PairRow> {
    let row = |like: &Figure, figures| PairRow {
        condition: like.condition.clone(),
        metric: like.metric.clone(),
        subject: like.subject.clone(),
        figures,
        second_over_first: None,
        unrelated: None,
    };
    let first = a
        .figures
        .iter()
        .map(|f| row(f, [Some(f.clone()), find(b, f).cloned()]));
    let second = b.figures.iter().filter(|f| find(a, f).is_none());
    let second = second.map(|f| row(f, [None, Some(f.clone())]));
    let mut rows: Vec<PairRow> = first.chain(second).collect();
    rows.sort_by_key(|row| (row.condition.clone(), metric(&row.metric)));
    rows
}

/// Fills in the relations.
fn relate(rows: &mut [PairRow]) {
    let usable = |row: &PairRow| match &row.figures {
        [Some(a), Some(b)] => match (&a.unused, &b.unused) {
            (None, None) if a.client_limited_baseline != b.client_limited_baseline => {
                Err("the client limited the baseline of one run only".to_owned())
            }
            (None, None) => Ok(relation(a, b)),
            (Some(why), _) => Err(format!("first run: {why}")),
            (_, Some(why)) => Err(format!("second run: {why}")),
        },
        [None, _] => Err("not in the first run".to_owned()),
        [_, None] => Err("not in the second run".to_owned()),
    };
    let related: Vec<Result<(f64, f64, f64), String>> = rows.iter().map(usable).collect();
    let count = related.iter().filter(|one| one.is_ok()).count() as f64;
    for (row, related) in rows.iter_mut().zip(related) {
        match related {
            Err(why) => row.unrelated = Some(why),
            Ok((difference, error, degrees)) => {
                let half = t_quantile(0.975, degrees) * error;
                let p_value = t_two_sided_p(difference / error, degrees);
                row.second_over_first = Some(Relation {
                    ratio: difference.exp(),
                    low: (difference - half).exp(),
                    high: (difference + half).exp(),
                    p_value,
                    // Bonferroni.
                    p_adjusted: (p_value * count).min(1.0),
                });
            }
        }
    }
}
