//! Growth: by how much a metric rises with each unit of a numeric factor, such as connections,
//! routes or certificates.
//!
//! Each block has a straight line through its levels, by least squares; the slope is the mean of the
//! blocks' slopes, and its interval is Student's over them. So what blocks differ in, also in their
//! slopes, is in the interval, and what they have in common, such as the memory of a server that
//! serves nobody, is not. Subjects are compared by the differences of their slopes in the same block.
//!
//! A line can be drawn through anything, so [`Bend`] tests it by what the blocks deviate from their
//! own lines in common. Where it bends, the slope still is the mean rise over the measured range.
//! [`Shape`] names the growth, by slope and exponent.
//!
//! Source: two-stage analysis of repeated measures by a summary of each unit: J. N. S. Matthews and
//! others, Analysis of serial measurements in medical research, BMJ 300 (1990) 230. The test for lack
//! of fit: D. C. Montgomery, E. A. Peck, G. G. Vining, Introduction to Linear Regression Analysis, 4.5.

pub mod words;

mod line;
mod shape;

use std::collections::BTreeMap;

use readings::{Condition, RunHeader};
use serde::Serialize;

use crate::metric::of_trial::value;
use crate::trial::cells::Cells;
use crate::{Metric, Rules, SubjectRow};

/// A slope, the mean over blocks.
pub use crate::stats::student::BlockMean as Slope;
pub use line::Bend;
pub use shape::{Exponent, Shape};

/// The fewest levels: two are always on a line.
pub const FEWEST_LEVELS: usize = 3;

/// How a metric of a subject changes with a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: String,
    pub factor: String,
    /// By level, ascending.
    pub levels: Vec<GrowthLevel>,
    /// The change of the metric, in its unit, with each 1 of the factor.
    pub slope: Slope,
    pub confidence: f64,
    /// Whether the levels lie on a line; absent with fewer than two blocks.
    pub bend: Option<Bend>,
    /// How fast it rises: 1 for a line; absent with fewer than three blocks, and where it does not rise.
    pub exponent: Option<Exponent>,
    pub shape: Shape,
    /// How the slope differs from the baseline's; absent for the baseline.
    pub over_baseline: Option<GrowthOver>,
    /// What the interval says of the slope.
    pub growing: Growing,
}

/// The metric at a level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GrowthLevel {
    pub level: f64,
    /// The subject's figure there, as the table has it, in the metric's unit.
    pub value: f64,
}

/// The difference of two slopes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthOver {
    pub baseline: String,
    /// The subject's slope less the baseline's.
    pub difference: Slope,
}

/// What an interval says of a slope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Growing {
    /// The metric rises with the factor.
    Rises,
    Falls,
    /// Neither is shown.
    NotShown,
}

impl Growing {
    fn of(slope: &Slope) -> Self {
        match slope.interval() {
            Some((low, _)) if low > 0.0 => Self::Rises,
            Some((_, high)) if high < 0.0 => Self::Falls,
            _ => Self::NotShown,
        }
    }
}

/// The slope of the line of least squares through points; `None` where all have the same x.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    line::fit(points).map(|line| line.slope)
}

/// A subject's blocks, each with its values by level, ascending.
type Blocks = BTreeMap<u32, Vec<(f64, f64)>>;

/// The growth over each factor that the run declares for that, of each of its metrics: the primary
/// ones, or what servers cost where none is declared.
pub(crate) fn growths(
    header: &RunHeader,
    rules: &Rules,
    cells: &Cells<'_>,
    table: &[SubjectRow],
) -> Vec<Growth> {
    let mut found = Vec::new();
    for factor in &header.growth {
        for metric in Metric::ALL.into_iter().filter(|one| is_asked(header, *one)) {
            let acts_elsewhere = header.open_loop_factors.contains(factor);
            if metric.is_of_closed_loop() && acts_elsewhere {
                continue;
            }
            for (others, levels) in conditions(cells, factor) {
                found.extend(of_subjects(
                    rules,
                    (cells, table),
                    (metric, factor),
                    &others,
                    &levels,
                ));
            }
        }
    }
    found
}

fn is_asked(header: &RunHeader, metric: Metric) -> bool {
    match header.primary.is_empty() {
        true => metric.is_cost(),
        false => (metric.gate()).is_some_and(|gate| header.primary.contains(&gate)),
    }
}

/// The conditions that differ in the factor alone: what they have in common, and each with its
/// level, ascending. Levels that are no numbers are left out.
fn conditions<'c>(
    cells: &'c Cells<'_>,
    factor: &str,
) -> Vec<(Condition, Vec<(f64, &'c Condition)>)> {
    let mut all: Vec<(Condition, Vec<(f64, &Condition)>)> = Vec::new();
    for condition in &cells.conditions {
        let mut others = condition.clone();
        let level = others.remove(factor).and_then(|text| text.parse().ok());
        let Some(level) = level.filter(|level: &f64| level.is_finite()) else {
            continue;
        };
        match all.iter_mut().find(|(known, _)| *known == others) {
            Some((_, levels)) => levels.push((level, condition)),
            None => all.push((others, vec![(level, condition)])),
        }
    }
    for (_, levels) in &mut all {
        levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all.retain(|(_, levels)| levels.len() >= FEWEST_LEVELS);
    all
}

fn of_subjects(
    rules: &Rules,
    (cells, table): (&Cells<'_>, &[SubjectRow]),
    (metric, factor): (Metric, &str),
    others: &Condition,
    levels: &[(f64, &Condition)],
) -> Vec<Growth> {
    let blocks = |subject: &str| blocks(cells, metric, subject, levels);
    let baseline = blocks(&rules.baseline);
    let of_subject = |subject: &String| {
        let own = blocks(subject);
        let slope = Slope::of(&slopes(&own), rules.look_confidence())?;
        let is_baseline = *subject == rules.baseline;
        let over_baseline = (!is_baseline).then(|| {
            let theirs = slopes_by_block(&baseline);
            let both = slopes_by_block(&own).into_iter();
            let paired = both.filter_map(|(block, slope)| Some(slope - theirs.get(&block)?));
            let difference = Slope::of(&paired.collect::<Vec<_>>(), rules.look_confidence())?;
            let baseline = rules.baseline.clone();
            Some(GrowthOver {
                baseline,
                difference,
            })
        });
        let means = means(&own, levels);
        let figures = levels.iter().zip(&means).map(|((level, condition), mean)| {
            let is_its =
                |row: &&SubjectRow| row.subject == *subject && row.condition == **condition;
            let own = table.iter().find(is_its).and_then(|row| row.figure(metric));
            GrowthLevel {
                level: *level,
                value: own.unwrap_or(mean.value),
            }
        });
        let own: Vec<Vec<(f64, f64)>> = own.into_values().collect();
        let growing = Growing::of(&slope);
        let exponent = Exponent::of(&own, rules.look_confidence());
        let exponent = exponent.filter(|_| growing == Growing::Rises);
        let bend = Bend::of(&own);
        let points: Vec<(f64, f64)> = means.iter().map(|one| (one.level, one.value)).collect();
        Some(Growth {
            condition: others.clone(),
            metric,
            subject: subject.clone(),
            factor: factor.to_owned(),
            shape: Shape::of(&points, &slope, bend.as_ref(), exponent, rules.matters),
            levels: figures.collect(),
            slope,
            confidence: rules.confidence,
            bend,
            exponent,
            over_baseline: over_baseline.flatten(),
            growing,
        })
    };
    cells.subjects.iter().filter_map(of_subject).collect()
}

/// The blocks in which the subject can be used at all levels: a block that lacks one would have
/// another range.
fn blocks(
    cells: &Cells<'_>,
    metric: Metric,
    subject: &str,
    levels: &[(f64, &Condition)],
) -> Blocks {
    let mut blocks = Blocks::new();
    for (level, condition) in levels {
        for (block, cell) in cells.judged(metric.load_loop(), condition, subject, false) {
            if let Some(found) = value(cell, metric) {
                blocks.entry(block).or_default().push((*level, found.value));
            }
        }
    }
    blocks.retain(|_, values| values.len() == levels.len());
    blocks
}

fn slopes_by_block(blocks: &Blocks) -> BTreeMap<u32, f64> {
    let slopes = blocks.iter();
    let slopes = slopes.filter_map(|(block, values)| Some((*block, line::fit(values)?.slope)));
    slopes.collect()
}

fn slopes(blocks: &Blocks) -> Vec<f64> {
    slopes_by_block(blocks).into_values().collect()
}

fn means(blocks: &Blocks, levels: &[(f64, &Condition)]) -> Vec<GrowthLevel> {
    let count = blocks.len() as f64;
    let mean = |at: usize| blocks.values().map(|values| values[at].1).sum::<f64>() / count;
    let levels = levels.iter().enumerate();
    let means = levels.map(|(at, (level, _))| GrowthLevel {
        level: *level,
        value: mean(at),
    });
    means.collect()
}

#[cfg(test)]
mod tests;
