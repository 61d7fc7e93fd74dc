//! Tiers: which subjects can be told apart, all pairs considered.
//!
//! All pairs of a question, one metric under one condition, are a family. They are corrected jointly:
//! pairs share their subjects. Tiers are
//! the largest sets of subjects of which no two are told apart, found by insert and absorb (Piepho
//! 2004, the compact letter display): all subjects start in one set, each pair that is told apart
//! splits the sets that hold both, and a set inside another is dropped. Sets may overlap. A subject
//! in two of them is told apart from neither, so there is no total order.

pub(crate) mod words;

use readings::Condition;
use serde::Serialize;

use crate::comparison::decide::decide;
use crate::comparison::draft::{Run, p_value};
use crate::comparison::pairs::Pairs;
use crate::comparison::pairs::pooling::{Pool, is_declared, pools};
use crate::comparison::withhold::slices::SliceBias;
use crate::comparison::withhold::{do_starts_contradict, holds_without_lag};
use crate::stats::family::{Together, family};
use crate::stats::sample::Sample;
use crate::trial::cells::Cell;
use crate::{Comparison, Metric, Note, Rules, Starts, Verdict};

const SUBJECTS_MIN: usize = 3;
/// Sets are bits of a word.
const SUBJECTS_MAX: usize = 64;
/// More sets than this tell a reader nothing.
const TIERS_MAX: usize = 128;

/// The subjects of a condition in tiers, on one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tiers {
    pub condition: Condition,
    pub metric: Metric,
    /// The tiers, the best first; a subject may be in several. No two subjects of a tier are told
    /// apart.
    pub tiers: Vec<Vec<String>>,
    /// The subjects by their estimates, the best first, each with its tiers. Their order inside of a
    /// tier means nothing.
    pub subjects: Vec<TierMember>,
    /// Subjects that could not be compared.
    pub left_out: Vec<String>,
    pub pairs: Vec<SubjectPair>,
}

impl Tiers {
    /// The subjects by their estimates, the best first, each with the best and the worst place that
    /// the pairs leave open, from 1.
    pub fn places(&self) -> Vec<(&str, (usize, usize))> {
        let told = || self.pairs.iter().filter(|pair| pair.told_apart);
        let of = |name: &str| {
            let better = told().filter(|pair| pair.second == name).count();
            let worse = told().filter(|pair| pair.first == name).count();
            (1 + better, self.subjects.len() - worse)
        };
        let names = self.subjects.iter().map(|one| one.subject.as_str());
        names.map(|name| (name, of(name))).collect()
    }
}

/// A subject and its tiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TierMember {
    pub subject: String,
    /// Numbers of its tiers, from 1.
    pub tiers: Vec<usize>,
}

/// Two subjects against each other; ratios are first over second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubjectPair {
    /// The one with the better estimate.
    pub first: String,
    pub second: String,
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio.
    pub low: Option<f64>,
    /// Upper end of the interval of the ratio.
    pub high: Option<f64>,
    pub blocks: usize,
    pub p_value: Option<f64>,
    /// The p value after the correction over all pairs of the question.
    pub p_adjusted: Option<f64>,
    /// Whether they differ by more than the margin, beyond chance.
    pub told_apart: bool,
    /// Why they are not told apart, where the interval alone would tell them apart.
    pub withheld: Option<PairWithheld>,
}

/// Why two subjects are not told apart although the interval of their ratio excludes one and the
/// ratio is beyond the margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairWithheld {
    Correction,
    /// The robust companion disagrees, or the blocks are too skewed.
    Blocks,
    /// The client limited the one that seems slower.
    ClientLimit,
    /// Their comparison, as one of them is the baseline, came to no difference.
    Comparison,
    /// The latency is that of the client's own lag: service times do not tell them apart.
    ClientLag,
    /// The one that seems better fails to start more often.
    FailedStarts,
    /// The length of the slices biases their ratio.
    SliceBias,
    /// The baseline differs from itself by as much.
    NoiseFloor,
}

/// Two subjects of a draft, by their places in it.
struct Pair {
    first: usize,
    second: usize,
    pairs: Pairs,
    /// Only where the two may be told apart at all.
    sample: Option<Sample>,
    p: Option<f64>,
}

struct Draft<'a> {
    condition: Condition,
    metric: Metric,
    subjects: Vec<&'a str>,
    /// Of each of `subjects`.
    starts: Vec<Starts>,
    left_out: Vec<String>,
    pairs: Vec<Pair>,
}

/// The tiers of every condition and metric with three subjects or more. Events have none: their
/// counts have no ratio of their own.
///
/// Where a comparison with the baseline was withheld, the two are not told apart here either.
pub(crate) fn tiers(run: &Run<'_, '_>, comparisons: &[Comparison]) -> Vec<Tiers> {
    let (rules, cells) = (run.rules, run.cells);
    let metrics = Metric::ALL.into_iter().filter(|m| !m.is_of_events());
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    for metric in metrics {
        for pool in pools(cells, metric) {
            if is_declared(cells, &pool, metric, &rules.baseline) {
                drafts.extend(Draft::of(run, &pool, metric));
            }
        }
    }
    let of_draft = |draft: Draft<'_>| {
        let pair_rules = PairRules {
            run,
            comparisons,
            pairs: draft.pairs.len(),
        };
        let p_values: Vec<Option<f64>> = draft.pairs.iter().map(|pair| pair.p).collect();
        let tests = family(p_values, |p| *p, draft.together(run));
        let adjusted: Vec<Option<f64>> = tests.iter().map(|test| test.p_adjusted).collect();
        draft.finish(&pair_rules, &adjusted)
    };
    drafts.into_iter().filter_map(of_draft).collect()
}

impl<'a> Draft<'a> {
    fn of(run: &Run<'a, '_>, pool: &Pool<'_>, metric: Metric) -> Option<Self> {
        let cells = run.cells;
        let was_tried = |subject: &&String| {
            let is_its = |cell: &Cell<'_>| cell.trial.subject == **subject;
            let mut members = pool.members.iter();
            members.any(|condition| cells.of_condition(condition).any(is_its))
        };
        let subjects: Vec<&str> = cells
            .subjects
            .iter()
            .filter(was_tried)
            .map(|s| &**s)
            .collect();
        if subjects.len() < SUBJECTS_MIN || subjects.len() > SUBJECTS_MAX {
            return None;
        }
        let mut pairs = Vec::new();
        for first in 0..subjects.len() {
            for second in first + 1..subjects.len() {
                let of = |place: usize| (subjects[place], false);
                let found = pool.pairs(cells, metric, of(first), of(second));
                let sample = run.spreads.sample(metric, &pool.condition, &found);
                let sample = sample.filter(|_| found.unresolved == 0);
                let p = sample.as_ref().and_then(|sample| p_value(&found, sample));
                pairs.push(Pair {
                    first,
                    second,
                    pairs: found,
                    sample: sample.filter(|_| p.is_some()),
                    p,
                });
            }
        }
        let has_any = |place: usize| {
            let mut its = pairs
                .iter()
                .filter(|p| p.first == place || p.second == place);
            its.any(|p| p.p.is_some())
        };
        let kept: Vec<usize> = (0..subjects.len())
            .filter(|place| has_any(*place))
            .collect();
        if kept.len() < SUBJECTS_MIN {
            return None;
        }
        let left_out = (0..subjects.len()).filter(|place| !kept.contains(place));
        let left_out = left_out.map(|place| subjects[place].to_owned()).collect();
        let place_of = |old: usize| kept.iter().position(|place| *place == old);
        let pairs = pairs.into_iter().filter_map(|pair| {
            Some(Pair {
                first: place_of(pair.first)?,
                second: place_of(pair.second)?,
                ..pair
            })
        });
        Some(Draft {
            condition: pool.condition.clone(),
            metric,
            pairs: pairs.collect(),
            starts: kept
                .iter()
                .map(|place| pool.starts(cells, subjects[*place]))
                .collect(),
            subjects: kept.iter().map(|place| subjects[*place]).collect(),
            left_out,
        })
    }

    fn together(&self, run: &Run<'_, '_>) -> Together {
        let of_two = |pair: &Pair| (pair.first, pair.second);
        let blocks = self.pairs.iter().map(|pair| pair.pairs.ratios.len()).max();
        let pairs = self.pairs.iter().map(of_two).collect();
        run.spreads
            .together(self.metric, pairs, blocks.unwrap_or(0))
    }

    /// The places of the subjects, the best first: by the mean of the log ratios to the others,
    /// which over complete blocks is the order of the geometric means.
    fn order(&self) -> Vec<usize> {
        let sign = if self.metric.higher_is_better() {
            1.0
        } else {
            -1.0
        };
        let mut scores = vec![(0.0, 0usize); self.subjects.len()];
        for pair in self.pairs.iter().filter(|pair| pair.p.is_some()) {
            let mean = pair
                .sample
                .as_ref()
                .map_or(0.0, |sample| sign * sample.mean);
            for (place, gain) in [(pair.first, mean), (pair.second, -mean)] {
                scores[place].0 += gain;
                scores[place].1 += 1;
            }
        }
        let score = |place: usize| scores[place].0 / (scores[place].1 + 1) as f64;
        let mut order: Vec<usize> = (0..self.subjects.len()).collect();
        order.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        order
    }

    fn finish(self, pair_rules: &PairRules<'_>, adjusted: &[Option<f64>]) -> Option<Tiers> {
        let order = self.order();
        let mut rank = vec![0; order.len()];
        for (at, place) in order.iter().enumerate() {
            rank[*place] = at;
        }
        let mut apart: Vec<(usize, usize)> = Vec::new();
        let mut found: Vec<((usize, usize), SubjectPair)> = Vec::new();
        for (pair, adjusted) in self.pairs.iter().zip(adjusted) {
            let (a, b) = (rank[pair.first], rank[pair.second]);
            let (told_apart, withheld) = pair_rules.judge(&self, pair, adjusted.unwrap_or(1.0));
            if told_apart {
                apart.push((a.min(b), a.max(b)));
            }
            let sample = pair.sample.as_ref();
            // First over second, with the better one first.
            let ratio = |log: f64| if a < b { log.exp() } else { (-log).exp() };
            let interval = sample.and_then(|s| s.interval(pair_rules.run.rules.look_confidence()));
            let interval = interval.map(|(low, high)| (ratio(low), ratio(high)));
            found.push((
                (a.min(b), a.max(b)),
                SubjectPair {
                    first: self.subjects[order[a.min(b)]].to_owned(),
                    second: self.subjects[order[a.max(b)]].to_owned(),
                    ratio: sample.map(|s| ratio(s.mean)),
                    low: interval.map(|(x, y)| x.min(y)),
                    high: interval.map(|(x, y)| x.max(y)),
                    blocks: pair.pairs.ratios.len(),
                    p_value: pair.p,
                    p_adjusted: *adjusted,
                    told_apart,
                    withheld,
                },
            ));
        }
        found.sort_by_key(|(places, _)| *places);
        let sets = sets(order.len(), &apart)?;
        let name = |rank: usize| self.subjects[order[rank]].to_owned();
        let holds = |set: &u64, rank: usize| set >> rank & 1 == 1;
        let ranks = 0..order.len();
        Some(Tiers {
            tiers: sets
                .iter()
                .map(|set| ranks.clone().filter(|r| holds(set, *r)).map(name).collect())
                .collect(),
            subjects: ranks
                .clone()
                .map(|rank| TierMember {
                    subject: name(rank),
                    tiers: (1..)
                        .zip(&sets)
                        .filter(|(_, s)| holds(s, rank))
                        .map(|(n, _)| n)
                        .collect(),
                })
                .collect(),
            pairs: found.into_iter().map(|(_, pair)| pair).collect(),
            condition: self.condition,
            metric: self.metric,
            left_out: self.left_out,
        })
    }
}

/// What decides whether two subjects are told apart.
struct PairRules<'a> {
    run: &'a Run<'a, 'a>,
    comparisons: &'a [Comparison],
    pairs: usize,
}

impl PairRules<'_> {
    /// Whether two subjects are told apart; and if their interval alone would tell them apart, why
    /// not.
    fn judge(&self, draft: &Draft<'_>, pair: &Pair, adjusted: f64) -> (bool, Option<PairWithheld>) {
        let Some(sample) = &pair.sample else {
            return (false, None);
        };
        let higher = draft.metric.higher_is_better();
        let second_value = pair.pairs.values().map(|(_, second)| second);
        let rules = self.run.rules.of_comparison(draft.metric, second_value);
        let decision = decide(sample, &rules, adjusted, self.pairs, higher);
        // A figure that the client limited is a lower bound: the other one can only be the worse.
        let limited = match draft.metric == Metric::RequestsPerS && !pair.pairs.drivers_differ() {
            true => pair.pairs.client_limited,
            false => (0, 0),
        };
        let limited = match decision.verdict {
            Verdict::Faster => limited.1 > 0,
            Verdict::Slower => limited.0 > 0,
            Verdict::Same | Verdict::Inconclusive | Verdict::Invalid => {
                return (false, decision.notes.iter().find_map(withheld_by));
            }
        };
        let withheld = if limited {
            Some(PairWithheld::ClientLimit)
        } else if self.is_withheld(draft, pair) {
            Some(PairWithheld::Comparison)
        } else {
            self.explained(
                draft,
                pair,
                &rules,
                (adjusted, decision.verdict),
                sample.mean,
            )
        };
        (withheld.is_none(), withheld)
    }

    /// What else than the two may have made their difference: the rules by which comparisons with the
    /// baseline are withheld.
    fn explained(
        &self,
        draft: &Draft<'_>,
        pair: &Pair,
        rules: &Rules,
        (adjusted, verdict): (f64, Verdict),
        mean: f64,
    ) -> Option<PairWithheld> {
        let (run, metric) = (self.run, draft.metric);
        let family = (adjusted, self.pairs);
        if !holds_without_lag(run, rules, (metric, &pair.pairs), family, verdict) {
            return Some(PairWithheld::ClientLag);
        }
        let (ours, theirs) = (&draft.starts[pair.first], &draft.starts[pair.second]);
        if do_starts_contradict(verdict, ours, theirs) {
            return Some(PairWithheld::FailedStarts);
        }
        let names = (draft.subjects[pair.first], draft.subjects[pair.second]);
        let bias = || SliceBias::of(run.cells, &draft.condition, names, self.pairs);
        let is_biased = |bias: SliceBias| bias.matters(rules) && !bias.leaves(rules, verdict, mean);
        if metric == Metric::RequestsPerS && bias().is_some_and(is_biased) {
            return Some(PairWithheld::SliceBias);
        }
        self.is_noise(draft, mean)
            .then_some(PairWithheld::NoiseFloor)
    }

    /// Whether the comparison with the baseline came to no difference.
    fn is_withheld(&self, draft: &Draft<'_>, pair: &Pair) -> bool {
        let names = [draft.subjects[pair.first], draft.subjects[pair.second]];
        let subject = match names {
            [baseline, subject] | [subject, baseline] if baseline == self.run.rules.baseline => {
                subject
            }
            _ => return false,
        };
        self.comparisons.iter().any(|c| {
            (c.metric, &c.condition) == (draft.metric, &draft.condition)
                && c.subject == subject
                && !matches!(c.verdict, Verdict::Faster | Verdict::Slower)
        })
    }

    /// Whether the baseline differs as much from itself.
    fn is_noise(&self, draft: &Draft<'_>, mean: f64) -> bool {
        self.run.floors.iter().any(|floor| {
            (floor.metric, &floor.condition) == (draft.metric, &draft.condition)
                && floor.is_biased(self.run.rules.matters)
                && mean.abs() <= floor.size()
        })
    }
}

/// Why a difference is withheld, if this note says so.
fn withheld_by(note: &Note) -> Option<PairWithheld> {
    match note {
        Note::NotAmong { .. } => Some(PairWithheld::Correction),
        Note::CompanionDiffers { verdict, .. } | Note::Skewed { verdict, .. } => {
            matches!(verdict, Verdict::Faster | Verdict::Slower).then_some(PairWithheld::Blocks)
        }
        _ => None,
    }
}

/// The largest sets of subjects without a pair that is told apart, those with the best subjects
/// first; a bit is a rank. Nothing where there are too many.
fn sets(subjects: usize, apart: &[(usize, usize)]) -> Option<Vec<u64>> {
    let mut sets: Vec<u64> = vec![u64::MAX >> (SUBJECTS_MAX - subjects)];
    for (a, b) in apart {
        let (a, b) = (1u64 << a, 1u64 << b);
        let mut split = Vec::new();
        for set in sets {
            if set & a != 0 && set & b != 0 {
                split.extend([set & !a, set & !b]);
            } else {
                split.push(set);
            }
        }
        split.sort_unstable();
        split.dedup();
        let inside = |one: &u64| {
            split
                .iter()
                .any(|other| other != one && one & other == *one)
        };
        sets = split.iter().copied().filter(|one| !inside(one)).collect();
        if sets.len() > TIERS_MAX {
            return None;
        }
    }
    // Reversed, the best rank weighs most.
    sets.sort_by_key(|set| std::cmp::Reverse(set.reverse_bits()));
    Some(sets)
}

#[cfg(test)]
mod tests;
