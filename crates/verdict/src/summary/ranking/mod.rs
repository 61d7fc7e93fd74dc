//! The ranking: what most readers came for.
//!
//! Subjects by their figures, the best first, each with the places that the evidence leaves it: those
//! told apart from it bound its place from above and from below.

pub(crate) mod words;

use readings::once;
use readings::{Condition, GateMetric};
use serde::Serialize;

use crate::comparison::tiers::Tiers;
use crate::{Analysis, Bound, Comparison, Metric, QuantileFigure, SubjectRow, Unresolved, Verdict};

/// The subjects of a condition by one metric, or the levels of a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    /// The factor whose levels are ranked; absent where subjects are.
    pub factor: Option<String>,
    pub condition: Condition,
    pub metric: Metric,
    /// The open loop's rate, where it was the same in all blocks.
    pub rate_per_s: Option<f64>,
    /// The best first. Those without a figure are not in it.
    pub rows: Vec<Ranked>,
    /// The pairs of them that are not told apart, the one with the better figure first.
    #[serde(skip)]
    pub open: Vec<(String, String)>,
}

/// A subject in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    pub subject: String,
    pub is_baseline: bool,
    /// The subject's own figure, as the table has it, in the metric's unit.
    pub value: f64,
    /// The interval of the ratio to the baseline, scaled so that the ratio stands at the figure; absent
    /// for the baseline and where there is no interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Which end alone is known. `AtLeast`: the client was the bottleneck for this subject, whose figure
    /// is a lower bound. `AtMost`: it was for the baseline, so that the ratio is an upper bound. Or too
    /// few answers stand behind a quantile, and `value` is its bound.
    pub bound: Option<Bound>,
    /// The best place that the evidence leaves open, from 1, and the worst.
    pub places: (usize, usize),
    /// Subject over baseline; absent for the baseline.
    pub ratio: Option<f64>,
    /// Against the baseline; absent for the baseline.
    pub verdict: Option<Verdict>,
    pub surely: bool,
}

impl Ranked {
    /// A value on the scale of the figure as a ratio to the baseline; `None` without a ratio.
    pub fn ratio_at(&self, value: f64) -> Option<f64> {
        Some(value * self.ratio? / self.value)
    }
}

impl Ranking {
    /// Whether any two are told apart.
    pub fn has_order(&self) -> bool {
        let n = self.rows.len();
        self.open.len() < n * n.saturating_sub(1) / 2
    }
}

/// The rankings that are the answer: of subjects, or else of the levels of the first factor.
pub fn of_answer(analysis: &Analysis) -> Vec<&Ranking> {
    let all = &analysis.rankings;
    let factor = match all.iter().any(|one| one.factor.is_none()) {
        true => None,
        false => all.first().and_then(|one| one.factor.as_deref()),
    };
    let is_its = |one: &&Ranking| one.factor.as_deref() == factor;
    all.iter().filter(is_its).collect()
}

/// The metric that the answer is about: the first that the run declared primary and that was ranked,
/// or else throughput where it was ranked, or else the first that was.
pub fn primary(analysis: &Analysis) -> Option<Metric> {
    let all = of_answer(analysis);
    let first = all.first()?.metric;
    let is_declared =
        |metric: &Metric| metric.gate().is_some_and(|m| analysis.primary.contains(&m));
    let least = all.iter().map(|one| one.metric).min();
    Some(first).filter(is_declared).or(least)
}

/// The rankings of all conditions and metrics with two figures or more: those of `primary` metrics
/// first, and each in the order of the comparisons. A subject's figure is that of the `table`, of which
/// there is one whatever blocks a comparison rests on.
pub(crate) fn rankings(
    table: &[SubjectRow],
    comparisons: &[Comparison],
    unresolved: &[Unresolved],
    tiers: &[Tiers],
    primary: &[GateMetric],
) -> Vec<Ranking> {
    let compared = comparisons.iter().filter(|c| !c.metric.is_of_events());
    let mut questions = once(compared.map(|c| (&c.condition, c.metric)));
    for one in unresolved {
        let question = (&one.condition, one.metric);
        if !questions.contains(&question) {
            let is_before = |(condition, metric): &(&Condition, Metric)| {
                **condition == one.condition && *metric < one.metric
            };
            let before = questions.iter().rposition(is_before);
            let at = before.map_or(questions.len(), |at| at + 1);
            questions.insert(at, question);
        }
    }
    let of_question = |(condition, metric): (&Condition, Metric)| {
        let is_its = |c: &&Comparison| (&c.condition, c.metric) == (condition, metric);
        let its: Vec<&Comparison> = comparisons.iter().filter(is_its).collect();
        let mut tiers = tiers.iter();
        let tiers = tiers.find(|t| (&t.condition, t.metric) == (condition, metric));
        let is_its = |one: &&Unresolved| (&one.condition, one.metric) == (condition, metric);
        let left_out: Vec<&Unresolved> = unresolved.iter().filter(is_its).collect();
        ranking(table, (condition, metric), &its, &left_out, tiers)
    };
    let is_of = |metric: Metric| primary.iter().position(|one| metric.gate() == Some(*one));
    questions.sort_by_key(|(_, metric)| is_of(*metric).unwrap_or(primary.len()));
    questions.into_iter().filter_map(of_question).collect()
}

fn ranking(
    table: &[SubjectRow],
    (condition, metric): (&Condition, Metric),
    comparisons: &[&Comparison],
    unresolved: &[&Unresolved],
    tiers: Option<&Tiers>,
) -> Option<Ranking> {
    let in_table = |subject: &str| {
        let is_its = |row: &&SubjectRow| row.subject == subject && row.condition == *condition;
        let figure = table.iter().find(is_its)?.figure(metric);
        figure.filter(|value| value.is_finite() && *value > 0.0)
    };
    let of_unresolved = |one: &&Unresolved| alone(&one.baseline, true, one.quantiles?.1);
    let mut rows = match comparisons.first() {
        Some(first) => {
            let of_pairs = || comparisons.iter().find_map(|c| c.baseline_value);
            let value = in_table(&first.baseline).or_else(of_pairs)?;
            vec![alone(&first.baseline, true, Ok(value))?]
        }
        None => unresolved
            .iter()
            .find_map(of_unresolved)
            .into_iter()
            .collect(),
    };
    // The client was the bottleneck for the baseline.
    if comparisons.iter().any(|c| c.bound == Some(Bound::AtMost)) {
        rows.iter_mut()
            .for_each(|row| row.bound = Some(Bound::AtLeast));
    }
    rows.extend(unresolved.iter().filter_map(|one| {
        let (figure, _) = one.quantiles?;
        alone(&one.subject, false, figure)
    }));
    for comparison in comparisons {
        // The ratio is of the blocks that both have.
        let value = in_table(&comparison.subject).or(comparison.subject_value);
        let Some((ratio, value)) = comparison.ratio.zip(value) else {
            continue;
        };
        let scaled = |end: f64| end * value / ratio;
        rows.push(Ranked {
            subject: comparison.subject.clone(),
            is_baseline: false,
            value,
            low: comparison.low.map(scaled),
            high: comparison.high.map(scaled),
            bound: comparison.bound,
            places: (1, 1),
            ratio: Some(ratio),
            verdict: Some(comparison.verdict),
            surely: comparison.surely,
        });
    }
    let sign = if metric.higher_is_better() { -1.0 } else { 1.0 };
    rows.sort_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)));
    let names: Vec<&str> = rows.iter().map(|row| row.subject.as_str()).collect();
    let open = names.iter().enumerate();
    let open = open.flat_map(|(at, a)| names[at + 1..].iter().map(move |b| (*a, *b)));
    let is_open = |(a, b): &(&str, &str)| {
        !is_better(a, b, comparisons, tiers) && !is_better(b, a, comparisons, tiers)
    };
    let open = open
        .filter(is_open)
        .map(|(a, b)| (a.to_owned(), b.to_owned()));
    let open: Vec<(String, String)> = open.collect();
    let places: Vec<(usize, usize)> = (0..rows.len())
        .map(|at| {
            let beats = |a: usize, b: usize| is_better(names[a], names[b], comparisons, tiers);
            let better = (0..rows.len()).filter(|other| beats(*other, at)).count();
            let worse = (0..rows.len()).filter(|other| beats(at, *other)).count();
            (1 + better, rows.len() - worse)
        })
        .collect();
    for (row, places) in rows.iter_mut().zip(places) {
        row.places = places;
    }
    let rate_per_s = match comparisons.first() {
        Some(first) => first.rate_per_s,
        None => unresolved.first()?.rate_per_s,
    };
    (rows.len() > 1).then(|| Ranking {
        factor: None,
        condition: condition.clone(),
        metric,
        rate_per_s,
        rows,
        open,
    })
}

/// A subject by its own figure or bound; nothing where neither is known.
fn alone(subject: &str, is_baseline: bool, figure: QuantileFigure) -> Option<Ranked> {
    let (value, bound) = match figure {
        Ok(value) => (value, None),
        Err(found) => match (found.at_most_us, found.at_least_us) {
            (Some(most), _) => (most, Some(Bound::AtMost)),
            (None, least) => (least?, Some(Bound::AtLeast)),
        },
    };
    Some(Ranked {
        subject: subject.to_owned(),
        is_baseline,
        value,
        low: bound.filter(|one| *one == Bound::AtLeast).map(|_| value),
        high: bound.filter(|one| *one == Bound::AtMost).map(|_| value),
        bound,
        places: (1, 1),
        ratio: None,
        verdict: None,
        surely: false,
    })
}

/// Whether the first is told apart from the second and the better of both.
fn is_better(a: &str, b: &str, comparisons: &[&Comparison], tiers: Option<&Tiers>) -> bool {
    if let Some(tiers) = tiers {
        let mut pairs = tiers.pairs.iter();
        return pairs.any(|pair| pair.told_apart && pair.first == a && pair.second == b);
    }
    comparisons.iter().any(|c| match c.verdict {
        Verdict::Faster => c.subject == a && c.baseline == b,
        Verdict::Slower => c.subject == b && c.baseline == a,
        Verdict::Same | Verdict::Inconclusive | Verdict::Invalid => false,
    })
}
