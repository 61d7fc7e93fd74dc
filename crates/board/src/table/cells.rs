//! The figures of the table, each with its interval, its places, or the reason why there is none.

use readings::text::compact::time;
use readings::text::{counted, rate};
use readings::{Condition, Journal};
use verdict::{
    Analysis, BlockFigures, Bound, Comparison, Metric, Passes, Ranked, SubjectRow, block_figures,
    words,
};

use super::columns::{Column, Figure, What, slope};
use super::{Block, Cell, holds_under, ranked, ranking, rows};

/// Where figures come from.
pub(super) struct Cells<'a> {
    analysis: &'a Analysis,
    blocks: Vec<BlockFigures>,
}

impl<'a> Cells<'a> {
    pub fn of(journal: &Journal, analysis: &'a Analysis) -> Self {
        Self {
            analysis,
            blocks: block_figures(journal),
        }
    }

    /// A subject under a condition.
    pub fn at<'c>(&'c self, condition: &'c Condition, subject: &'c str) -> Place<'c> {
        Place {
            row: rows(self.analysis, condition).find(|row| row.subject == subject),
            analysis: self.analysis,
            blocks: &self.blocks,
            condition,
            subject,
        }
    }
}

/// The figures of a subject under a condition.
pub(super) struct Place<'a> {
    analysis: &'a Analysis,
    blocks: &'a [BlockFigures],
    condition: &'a Condition,
    subject: &'a str,
    row: Option<&'a SubjectRow>,
}

impl Place<'_> {
    /// The figure of a column, or why there is none; nothing where none is to be expected.
    pub fn cell(&self, column: &Column) -> Option<Cell> {
        match &column.what {
            What::Metric(metric) => self.metric(*metric),
            What::Bound { quantile, bound_us } => self.bound((*quantile, *bound_us)),
            What::Growth { metric, factor } => self.growth(*metric, factor),
            What::Handshake => self.handshake(),
            What::Figure(figure) => self.figure(figure),
        }
    }

    fn metric(&self, metric: Metric) -> Option<Cell> {
        let mut all = self.analysis.comparisons.iter();
        let comparison = all.find(|c| {
            let is_its = c.subject == self.subject && c.metric == metric;
            is_its && holds_under(&c.condition, self.condition)
        });
        let ranking = ranking(self.analysis, self.condition, metric);
        let ranked = ranking.and_then(|one| ranked(one, self.subject));
        let measured = self.row.and_then(|row| row.figure(metric));
        // A bound of an unresolved quantile is no value.
        let is_figure = |row: &&Ranked| row.bound != Some(Bound::AtMost) || row.ratio.is_some();
        let value = ranked.filter(is_figure).map(|row| row.value).or(measured);
        let blocks = self.blocks(metric, comparison);
        let mut cell = Cell {
            value,
            low: ranked.and_then(|row| row.low),
            high: ranked.and_then(|row| row.high),
            bound: ranked.and_then(|row| row.bound).map(end),
            ratio: comparison.and_then(|c| c.ratio),
            verdict: comparison.map(|c| c.verdict.word()),
            places: ranked.map(|row| row.places),
            blocks,
            ..Cell::default()
        };
        match value {
            Some(value) => cell.text = words::value(metric, value),
            None => {
                cell.text = self.unresolved(metric).unwrap_or_default();
                cell.reason = Some(self.reason(metric, comparison, &cell.blocks)?);
            }
        }
        let is_limited = metric == Metric::RequestsPerS && self.row.is_some_and(|row| row.at_least);
        if value.is_some() && (is_limited || cell.bound == Some(end(Bound::AtLeast))) {
            cell.bound = Some(end(Bound::AtLeast));
            cell.text = format!("\u{2265} {}", cell.text);
        }
        cell.interval = comparison.and_then(words::difference).or_else(|| {
            let (low, high) = (cell.low?, cell.high?);
            Some(interval((low, high), |end| words::value(metric, end)))
        });
        Some(cell)
    }

    /// What is known of a quantile that is not resolved.
    fn unresolved(&self, metric: Metric) -> Option<String> {
        let bound = self.row?.latency_us_p99_bound.as_ref();
        let bound = bound.filter(|_| metric == Metric::LatencyUsP99)?;
        Some(words::bounded(bound))
    }

    fn reason(
        &self,
        metric: Metric,
        comparison: Option<&Comparison>,
        blocks: &[Block],
    ) -> Option<String> {
        let bound = self.row.and_then(|row| row.latency_us_p99_bound.as_ref());
        if let (Metric::LatencyUsP99, Some(bound)) = (metric, bound) {
            let by = words::resolved_by(Some(&bound.resolved_by));
            return Some(format!("too few answers: {by}"));
        }
        if let Some(why) = comparison.and_then(|c| words::notes(&c.notes)) {
            return Some(why);
        }
        let lost = blocks.iter().filter_map(|block| block.reason.as_ref());
        let lost: Vec<&String> = lost.collect();
        if let Some(first) = lost.first() {
            let of = counted(blocks.len(), "block");
            return Some(format!("{} of {of} cannot be used: {first}", lost.len()));
        }
        let mut failures = self.analysis.failures.iter();
        let failed = failures.find(|one| one.subjects.iter().any(|name| name == self.subject));
        let why = match (failed, self.row) {
            (Some(failed), None) => failed.reason.clone(),
            (None, None) => "no trial was measured".to_owned(),
            // Others have it, as CPU time where only some servers are ours.
            (_, Some(_)) => "not measured for this subject".to_owned(),
        };
        Some(why)
    }

    fn blocks(&self, metric: Metric, comparison: Option<&Comparison>) -> Vec<Block> {
        let mut all = self.blocks.iter();
        let own = all.find(|one| {
            one.metric == metric && one.subject == self.subject && one.condition == *self.condition
        });
        let ratios = || comparison.into_iter().flat_map(|c| &c.by_block);
        let mut blocks: Vec<Block> = own
            .into_iter()
            .flat_map(|own| &own.blocks)
            .map(|block| Block {
                block: block.block,
                value: block.value,
                ratio: None,
                is_unresolved: !block.is_resolved && block.value.is_some(),
                reason: block.reason.as_ref().map(words::reason),
            })
            .collect();
        for ratio in ratios() {
            match blocks.iter_mut().find(|block| block.block == ratio.block) {
                Some(block) => block.ratio = Some(ratio.ratio),
                None => blocks.push(Block {
                    block: ratio.block,
                    value: None,
                    ratio: Some(ratio.ratio),
                    is_unresolved: false,
                    reason: None,
                }),
            }
        }
        blocks.sort_by_key(|block| block.block);
        blocks
    }

    fn bound(&self, of: (f64, f64)) -> Option<Cell> {
        let mut curves = self.analysis.curves.iter();
        let curves = curves.find(|one| holds_under(&one.condition, self.condition))?;
        let mut subjects = curves.subjects.iter();
        let subject = subjects.find(|one| one.subject == self.subject)?;
        let mut bounds = subject.bounds.iter();
        let Some(bound) = bounds.find(|one| (one.quantile, one.bound_us) == of) else {
            return Some(Cell {
                reason: Some("the rates that were offered do not show where it passes".to_owned()),
                ..Cell::default()
            });
        };
        let (sign, end) = match bound.passes {
            Passes::Within => ("", None),
            Passes::AtLeast => ("\u{2265} ", Some(end(Bound::AtLeast))),
            Passes::AtMost => ("\u{2264} ", Some(end(Bound::AtMost))),
        };
        let ends = bound.low_per_s.zip(bound.high_per_s);
        Some(Cell {
            value: Some(bound.rate_per_s),
            low: bound.low_per_s,
            high: bound.high_per_s,
            bound: end,
            text: format!("{sign}{}/s", rate(bound.rate_per_s)),
            interval: ends.map(|ends| interval(ends, |end| format!("{}/s", rate(end)))),
            ..Cell::default()
        })
    }

    fn growth(&self, metric: Metric, factor: &str) -> Option<Cell> {
        let mut all = self.analysis.growth.iter();
        let growth = all.find(|one| {
            let is_its = one.subject == self.subject && one.metric == metric;
            is_its && one.factor == factor && holds_under(&one.condition, self.condition)
        })?;
        let of = &growth.slope;
        let ends = of.low.zip(of.high);
        Some(Cell {
            value: Some(of.value),
            low: of.low,
            high: of.high,
            text: slope(metric, of.value),
            interval: ends
                .map(|(low, high)| format!("[{}, {}]", slope(metric, low), slope(metric, high))),
            ..Cell::default()
        })
    }

    fn handshake(&self) -> Option<Cell> {
        let mut all = self.analysis.tls.iter();
        let own =
            all.find(|one| one.at.subject == self.subject && one.at.condition == *self.condition)?;
        let took = &own.handshake_us;
        (took.count > 0).then(|| Cell {
            value: Some(took.p50),
            text: time(took.p50),
            ..Cell::default()
        })
    }

    fn figure(&self, figure: &Figure) -> Option<Cell> {
        let value = (figure.value)(self.row?)?;
        Some(Cell {
            value: Some(value),
            text: (figure.text)(value),
            ..Cell::default()
        })
    }
}

/// As in the journal's result.
fn end(bound: Bound) -> &'static str {
    match bound {
        Bound::AtLeast => "at_least",
        Bound::AtMost => "at_most",
    }
}

fn interval((low, high): (f64, f64), text: impl Fn(f64) -> String) -> String {
    match words::is_measurable((low, high)) {
        true => format!("[{}, {}]", text(low), text(high)),
        false => "not measurable here".to_owned(),
    }
}
