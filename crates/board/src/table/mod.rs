//! The table of an experiment: a row for each subject under each condition, a column for each figure
//! that the run has.

mod cells;
mod columns;

use readings::text::once;
use readings::{Condition, Journal};
use serde::Serialize;
use std::collections::BTreeMap;
use verdict::{Analysis, Metric, Ranking, SubjectRow};

use cells::Cells;
pub(crate) use columns::{Column, What};

/// The figures of a run.
pub(crate) struct Table {
    pub factors: Vec<Factor>,
    pub columns: Vec<Column>,
    /// By condition as declared, and in each the best first.
    pub rows: Vec<Row>,
    /// The metric that the answer is about.
    pub primary: Option<Metric>,
}

/// What is varied, with its levels as declared.
#[derive(Serialize)]
pub(crate) struct Factor {
    pub name: String,
    pub levels: Vec<String>,
}

/// A subject under a condition.
#[derive(Serialize)]
pub(crate) struct Row {
    pub subject: String,
    pub condition: Condition,
    pub is_baseline: bool,
    /// The places that the evidence leaves it by the metric that the answer is about, from 1.
    pub places: Option<(usize, usize)>,
    pub figures: BTreeMap<String, Cell>,
}

#[derive(Default, Serialize)]
pub(crate) struct Cell {
    /// In the unit that the column's name ends in.
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Which end alone is known.
    pub bound: Option<&'static str>,
    /// Subject over baseline.
    pub ratio: Option<f64>,
    pub verdict: Option<&'static str>,
    pub places: Option<(usize, usize)>,
    /// The figure as it is read.
    pub text: String,
    pub interval: Option<String>,
    /// Why there is no figure.
    pub reason: Option<String>,
    pub blocks: Vec<Block>,
}

/// What a block says of a figure.
#[derive(Serialize)]
pub(crate) struct Block {
    /// Its number, from 1.
    pub block: u32,
    pub value: Option<f64>,
    /// Subject over baseline in the block, as the comparison takes it.
    pub ratio: Option<f64>,
    /// Too few answers of the block alone stand behind it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unresolved: bool,
    /// Why the block cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Table {
    /// The table of a run. `journal` is by load, and `analysis` of it.
    pub fn of(journal: &Journal, analysis: &Analysis) -> Self {
        let header = &journal.header;
        let primary = verdict::primary(analysis);
        let columns = columns::columns(analysis);
        let cells = Cells::of(journal, analysis);
        let mut rows = Vec::new();
        for condition in conditions(journal, analysis) {
            let primary = primary.and_then(|metric| ranking(analysis, &condition, metric));
            for subject in subjects(journal, analysis, &condition, primary) {
                let place = cells.at(&condition, &subject);
                let figures = columns
                    .iter()
                    .filter_map(|column| Some((column.name.clone(), place.cell(column)?)));
                let ranked = primary.and_then(|one| ranked(one, &subject));
                rows.push(Row {
                    is_baseline: subject == header.baseline,
                    places: ranked.map(|row| row.places),
                    figures: figures.collect(),
                    condition: condition.clone(),
                    subject,
                });
            }
        }
        Self {
            factors: factors(&rows),
            columns,
            rows,
            primary,
        }
    }

    /// The figures that are missing: each reason once, with the places where it holds.
    pub fn absences(&self) -> Vec<(String, Vec<(&Row, &Column)>)> {
        let mut found: Vec<(String, Vec<(&Row, &Column)>)> = Vec::new();
        for row in &self.rows {
            for column in &self.columns {
                let cell = row.figures.get(&column.name);
                let Some(reason) = cell.and_then(|cell| cell.reason.as_ref()) else {
                    continue;
                };
                match found.iter_mut().find(|(known, _)| known == reason) {
                    Some((_, places)) => places.push((row, column)),
                    None => found.push((reason.clone(), vec![(row, column)])),
                }
            }
        }
        found
    }
}

/// The ranking of subjects that holds under a condition; one may hold under several.
pub(crate) fn ranking<'a>(
    analysis: &'a Analysis,
    condition: &Condition,
    metric: Metric,
) -> Option<&'a Ranking> {
    let mut all = analysis.rankings.iter();
    all.find(|one| {
        one.factor.is_none() && one.metric == metric && holds_under(&one.condition, condition)
    })
}

pub(crate) fn ranked<'a>(ranking: &'a Ranking, subject: &str) -> Option<&'a verdict::Ranked> {
    ranking.rows.iter().find(|row| row.subject == subject)
}

/// Whether what was found under `general` holds under the condition.
fn holds_under(general: &Condition, condition: &Condition) -> bool {
    let mut levels = general.iter();
    levels.all(|(factor, level)| condition.get(factor) == Some(level))
}

/// The conditions as declared, then those of background loads.
fn conditions(journal: &Journal, analysis: &Analysis) -> Vec<Condition> {
    let mut all = journal.header.conditions.clone();
    let measured = analysis.table.iter().map(|row| &row.condition);
    let measured = measured.chain(analysis.comparisons.iter().map(|c| &c.condition));
    for condition in measured {
        if !all.iter().any(|known| holds_under(condition, known)) {
            all.push(condition.clone());
        }
    }
    all
}

/// The subjects under a condition: those in the ranking, the best first, then the others.
fn subjects(
    journal: &Journal,
    analysis: &Analysis,
    condition: &Condition,
    primary: Option<&Ranking>,
) -> Vec<String> {
    let header = &journal.header;
    let measured = rows(analysis, condition).map(|row| &row.subject);
    let declared = match header.is_background(condition) {
        true => [].iter(),
        false => header.subjects.iter(),
    };
    let ranked = primary.into_iter().flat_map(|one| &one.rows);
    let ranked = ranked.map(|row| &row.subject);
    once(ranked.chain(declared).chain(measured).cloned())
}

fn rows<'a>(
    analysis: &'a Analysis,
    condition: &'a Condition,
) -> impl Iterator<Item = &'a SubjectRow> {
    let all = analysis.table.iter();
    all.filter(move |row| row.condition == *condition)
}

fn factors(rows: &[Row]) -> Vec<Factor> {
    let mut found: Vec<Factor> = Vec::new();
    for (name, level) in rows.iter().flat_map(|row| &row.condition) {
        let at = found.iter().position(|one| one.name == *name);
        let at = at.unwrap_or_else(|| {
            found.push(Factor {
                name: name.clone(),
                levels: Vec::new(),
            });
            found.len() - 1
        });
        if !found[at].levels.contains(level) {
            found[at].levels.push(level.clone());
        }
    }
    found
}
