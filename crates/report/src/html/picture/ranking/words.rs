//! What the picture of a ranking says.

use readings::text::{condition, counted, fraction, rate};
use readings::{Condition, text::compact::utc};
use verdict::words::{metric_words, shown_change, value};
use verdict::{Bound, Metric, Ranked, Ranking};

use crate::section::run::capitalised;

/// `Median latency at 2,000/s`.
pub(super) fn heading(ranking: &Ranking) -> String {
    let metric = ranking.metric;
    let words = match metric {
        Metric::LatencyUsP99 => "p99 latency",
        Metric::ServerCpuUsPerRequest => "CPU time per request (closed loop)",
        Metric::ServerCpuUsPerRequestAtRate => "CPU time per request",
        metric => metric_words(metric, &ranking.condition, ranking.rate_per_s),
    };
    let at = ranking.rate_per_s.filter(|_| metric.is_of_open_loop());
    let at = at.map_or_else(String::new, |per_s| format!(" at {}/s", rate(per_s)));
    match metric {
        Metric::LatencyUsP99 => format!("{words}{at}"),
        _ => format!("{}{at}", capitalised(words)),
    }
}

pub(super) fn better(metric: Metric) -> &'static str {
    match metric.higher_is_better() {
        true => "more is better",
        false => "less is better",
    }
}

/// `20,000/s`, `at least 20,000/s`.
pub(super) fn figure(metric: Metric, row: &Ranked, at_least: bool) -> String {
    let text = value(metric, row.value);
    match (at_least, row.bound, row.ratio) {
        (true, ..) => format!("at least {text}"),
        // Too few answers stand behind a quantile.
        (false, Some(Bound::AtMost), None) => format!("at most {text}"),
        (false, Some(Bound::AtLeast), None) if metric.quantile().is_some() => {
            format!("at least {text}")
        }
        _ => text,
    }
}

/// `-31% [-33%, -29%]`, or which row is the baseline.
pub(super) fn change(row: &Ranked) -> Option<String> {
    if row.is_baseline {
        return Some("baseline".to_owned());
    }
    let at = |end: Option<f64>| row.ratio_at(end?);
    let interval = at(row.low).zip(at(row.high));
    match row.bound {
        None => Some(shown_change(row.ratio?, interval)),
        Some(_) => None,
    }
}

/// `2-3` where the evidence leaves several places open.
pub(super) fn places((best, worst): (usize, usize)) -> String {
    match best == worst {
        true => best.to_string(),
        false => format!("{best}-{worst}"),
    }
}

/// What holds of the whole picture, besides its metric.
#[derive(Debug, Default)]
pub(super) struct Notes<'a> {
    /// The levels that all panels share.
    pub shared: Condition,
    pub blocks: u32,
    pub baseline: &'a str,
    /// Absent where nothing has an interval.
    pub confidence: Option<f64>,
    /// A place that several subjects may have.
    pub open_places: Option<(usize, usize)>,
    /// An interval is longer than what is drawn of it.
    pub is_cut: bool,
    /// The client was the bottleneck for a figure.
    pub is_bound: bool,
    pub own_scales: bool,
    pub is_logarithmic: bool,
    /// Subjects and conditions that are not drawn.
    pub subjects_left_out: usize,
    pub conditions_left_out: usize,
}

impl Notes<'_> {
    pub(super) fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.shared.is_empty() {
            parts.push(condition(&self.shared));
        }
        parts.push(counted(self.blocks as usize, "block"));
        if let Some(confidence) = self.confidence {
            parts.push(format!(
                "lines: {} intervals of the ratio to {}",
                fraction(confidence),
                self.baseline
            ));
        }
        if let Some(open) = self.open_places {
            parts.push(format!("{}: places not told apart", places(open)));
        }
        if self.is_cut {
            parts.push("arrow: the interval goes on".to_owned());
        }
        if self.is_logarithmic {
            parts.push("logarithmic scale".to_owned());
        }
        if self.own_scales {
            parts.push("each panel has its own scale".to_owned());
        }
        let mut text = parts.join("; ") + ".";
        if self.is_bound {
            text.push_str(" At least: the client was the limit.");
        }
        let left_out = [
            (self.subjects_left_out, "more subject"),
            (self.conditions_left_out, "more condition"),
        ];
        for (count, noun) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!(" Not drawn: {}.", counted(count, noun)));
        }
        text
    }
}

pub(super) fn row(place: &str, subject: &str, figure: &str, change: Option<&str>) -> String {
    let change = change.map_or_else(String::new, |change| format!(" ({change})"));
    format!("{place}. {subject} {figure}{change}")
}

/// `Measured 14 November 2023 with weigh 0.1.0`.
pub(super) fn source(started_unix_s: u64, version: &str) -> String {
    match started_unix_s {
        0 => format!("weigh {version}"),
        from => {
            let time = utc(from);
            let day = time.split(',').next().unwrap_or(&time);
            format!("Measured {day} with weigh {version}")
        }
    }
}
