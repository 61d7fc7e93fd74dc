//! Withholds verdicts that the interval over blocks alone would allow.
//!
//! No rule adds a verdict: each turns a verdict into `inconclusive` and says why, or adds what
//! qualifies it. [`RULES`] has all of them in their order.

pub(crate) mod credible;
pub(crate) mod slices;

use crate::comparison::decide::{Decision, decide};
use crate::comparison::draft::{Case, Draft, Run};
use crate::comparison::events;
use crate::comparison::pairs::Pairs;
use crate::comparison::withhold::slices::SliceBias;
use crate::stats::sample::Sample;
use crate::{Bound, LagRemedy, Metric, NoiseFloor, Note, Rules, Starts, Verdict};

/// The rules, in the order in which they apply; each sees what the ones before it left.
const RULES: [fn(&Case<'_>, &mut Decision); 7] = [
    client_limits,
    client_lag,
    failed_starts,
    circumstances,
    slice_bias,
    credible::forecasts,
    within_floor,
];

/// The decision that the rules leave of one that the blocks alone allow.
pub(crate) fn revised(case: &Case<'_>, mut decision: Decision) -> Decision {
    for rule in RULES {
        rule(case, &mut decision);
    }
    decision
}

/// Whether a difference surely exceeds the margin: seen from the margin, it passes all that it passed
/// seen from zero. A gate at the margin then agrees.
pub(crate) fn is_surely(case: &Case<'_>) -> bool {
    let (draft, rules) = (case.draft, case.rules);
    let (Some(sample), Some(log_ratio)) = (&draft.sample, case.log_ratio()) else {
        return false;
    };
    let (sign, alpha) = (log_ratio.signum(), rules.look_alpha());
    let is_beyond = |sample: &Sample| {
        let excess = sample.seen_from(sign * rules.delta(), sign);
        let (_, robust) = excess.robust(1.0 - alpha);
        excess.p_above_zero().is_some_and(|p| p < alpha / 2.0)
            && robust.is_none_or(|(low, _)| low > 0.0)
            && excess.differs_in_spite_of_skewness(alpha)
    };
    let excess = log_ratio.abs() - rules.delta();
    let is_noise = |floor: &NoiseFloor| floor.is_biased(rules.matters) && excess <= floor.size();
    let is_biased = |bias: SliceBias| {
        bias.matters(rules) && sign * (log_ratio - bias.log_bias) <= rules.delta()
    };
    let lags = draft.metric.quantile().is_some() && draft.pairs.lag_share > rules.matters;
    let service = || case.run.spreads.service_sample(draft.metric, &draft.pairs);
    let slices = || {
        let subject = draft.subject;
        let pair = (subject, rules.baseline.as_str());
        SliceBias::of(case.run.cells, &draft.condition, pair, 1)
    };
    is_beyond(sample)
        && !case.floor().is_some_and(is_noise)
        && (!lags || service().is_some_and(|service| is_beyond(&service)))
        && (draft.metric != Metric::RequestsPerS || !slices().is_some_and(is_biased))
}

fn is_decided(decision: &Decision) -> bool {
    matches!(
        decision.verdict,
        Verdict::Same | Verdict::Faster | Verdict::Slower
    )
}

fn withhold(decision: &mut Decision, note: Note) {
    decision.verdict = Verdict::Inconclusive;
    let is_qualified = |note: &Note| {
        !matches!(
            note,
            Note::SmallerThanMatters
                | Note::MayMatter
                | Note::MoreBlocks { .. }
                | Note::AsLargeAsMatters
                | Note::TooNoisy
        )
    };
    decision.notes.retain(is_qualified);
    decision.notes.push(note);
}

/// Which end of the ratio alone is known: a throughput that the client limited is a lower bound. With
/// the baseline limited in any block the ratio is at most the measured one, with the subject limited
/// at least.
pub(crate) fn bound(draft: &Draft<'_>) -> Option<Bound> {
    match limited_blocks(draft.metric, &draft.pairs) {
        (0, 0) => None,
        (0, _) => Some(Bound::AtMost),
        (_, 0) => Some(Bound::AtLeast),
        (_, _) => None,
    }
}

/// Whether the client was the bottleneck for both sides, so that not even a bound is known.
pub(crate) fn is_unbounded(metric: Metric, pairs: &Pairs) -> bool {
    let (ours, theirs) = limited_blocks(metric, pairs);
    ours > 0 && theirs > 0
}

/// The blocks in which the client limited the subject's figure, and the baseline's. What load drivers
/// reach is what is compared where they differ.
fn limited_blocks(metric: Metric, pairs: &Pairs) -> (usize, usize) {
    match metric == Metric::RequestsPerS && !pairs.drivers_differ() {
        true => pairs.client_limited,
        false => (0, 0),
    }
}

/// Of a ratio that is at most the measured one only `slower` may stand, of one that is at least the
/// measured one only `faster`. Where the client limited both sides nothing follows.
fn client_limits(case: &Case<'_>, decision: &mut Decision) {
    let draft = case.draft;
    let (stands, whom) = match bound(draft) {
        Some(Bound::AtMost) => (Some(Verdict::Slower), Some(case.rules.baseline.clone())),
        Some(Bound::AtLeast) => (Some(Verdict::Faster), Some(draft.subject.to_owned())),
        None if is_unbounded(draft.metric, &draft.pairs) => (None, None),
        None => return,
    };
    let note = Note::ClientLimits(whom);
    match decision.verdict {
        Verdict::Invalid => {}
        verdict if Some(verdict) == stands => decision.notes.push(note),
        _ => withhold(decision, note),
    }
}

/// Whether a verdict also follows from the service times, which do not contain the client's lag: always
/// where there is no latency, or the lag is within the margin. `family` has the p value after the
/// correction and the number of comparisons.
pub(crate) fn holds_without_lag(
    run: &Run<'_, '_>,
    rules: &Rules,
    (metric, pairs): (Metric, &Pairs),
    family: (f64, usize),
    verdict: Verdict,
) -> bool {
    if metric.quantile().is_none() || pairs.lag_share <= rules.matters {
        return true;
    }
    let service = run.spreads.service_sample(metric, pairs);
    service.is_some_and(|service| {
        decide(&service, rules, family.0, family.1, false).verdict == verdict
    })
}

/// If the client's lag exceeds the margin, a verdict on latency stands only if the service times,
/// which do not contain the lag, lead to the same verdict.
fn client_lag(case: &Case<'_>, decision: &mut Decision) {
    let (pairs, rules) = (&case.draft.pairs, case.rules);
    let Some(p_adjusted) = case.p_adjusted else {
        return;
    };
    let family = (p_adjusted, case.comparisons);
    let (metric, verdict) = (case.draft.metric, decision.verdict);
    if !is_decided(decision) {
        return;
    }
    if !holds_without_lag(case.run, rules, (metric, pairs), family, verdict) {
        let service = case.run.spreads.service_sample(metric, pairs);
        let service_ratio = service.map(|service| service.mean.exp());
        let note = Note::ClientLag {
            share: pairs.lag_share,
            remedy: pairs.lag_remedy.clone().unwrap_or(LagRemedy::OwnCpu),
            service_ratio,
        };
        withhold(decision, note);
    }
}

/// If one side's starts fail more often than the other's, the starts that went well do not show
/// that this side is the same or better.
fn failed_starts(case: &Case<'_>, decision: &mut Decision) {
    let (ours, theirs) = (&case.draft.subject_starts, &case.draft.baseline_starts);
    let sides = [(case.draft.subject, ours), (&case.rules.baseline, theirs)];
    let sides = sides.into_iter().filter(|(_, starts)| starts.failed > 0);
    let sides: Vec<_> = sides
        .map(|(name, starts)| (name.to_owned(), starts.clone()))
        .collect();
    if sides.is_empty() || decision.verdict == Verdict::Invalid {
        return;
    }
    let note = Note::FailedStarts(sides);
    match do_starts_contradict(decision.verdict, ours, theirs) {
        true => withhold(decision, note),
        false => decision.notes.push(note),
    }
}

/// Whether the side that a verdict calls the same or better fails to start more often.
pub(crate) fn do_starts_contradict(verdict: Verdict, ours: &Starts, theirs: &Starts) -> bool {
    match verdict {
        Verdict::Same => ours.exceed(theirs) || theirs.exceed(ours),
        Verdict::Faster => ours.exceed(theirs),
        Verdict::Slower => theirs.exceed(ours),
        Verdict::Inconclusive | Verdict::Invalid => false,
    }
}

/// Whose clock took the latency, and what the counts of events were.
fn circumstances(case: &Case<'_>, decision: &mut Decision) {
    if decision.verdict == Verdict::Invalid {
        return;
    }
    let (metric, pairs) = (case.draft.metric, &case.draft.pairs);
    let notes = [
        metric.quantile().and_then(|_| whose_clock(pairs)),
        events::note(
            metric,
            &pairs.noticed,
            case.draft.subject,
            &case.rules.baseline,
        ),
    ];
    decision.notes.extend(notes.into_iter().flatten());
}

/// Whose clock a latency was taken with, where it was not the engine's own.
fn whose_clock(pairs: &Pairs) -> Option<Note> {
    let (subject, baseline) = pairs.drivers.clone()?;
    Some(Note::Clock {
        subject,
        baseline,
        closed_loop: pairs.rate_per_s.is_none(),
    })
}

/// Where the length of slices biases a ratio of throughput by more than the margin, no verdict rests
/// on it, except a difference that the bias leaves beyond the margin on the same side.
fn slice_bias(case: &Case<'_>, decision: &mut Decision) {
    let (draft, run) = (case.draft, case.run);
    let (Some(log_ratio), Metric::RequestsPerS) = (case.log_ratio(), draft.metric) else {
        return;
    };
    if !is_decided(decision) {
        return;
    }
    let pair = (draft.subject, run.rules.baseline.as_str());
    let bias = SliceBias::of(run.cells, &draft.condition, pair, case.comparisons);
    let Some(bias) = bias.filter(|bias| bias.matters(run.rules)) else {
        return;
    };
    if !bias.leaves(run.rules, decision.verdict, log_ratio) {
        withhold(decision, Note::SliceBias(bias.log_bias.exp()));
    }
}

/// Where the baseline differs from itself by more than the margin, neither `same` nor a difference of
/// that size or less means anything.
fn within_floor(case: &Case<'_>, decision: &mut Decision) {
    let (Some(floor), Some(log_ratio)) = (case.floor(), case.log_ratio()) else {
        return;
    };
    let is_within = log_ratio.abs() <= floor.size();
    if is_decided(decision) && floor.is_biased(case.run.rules.matters) && is_within {
        withhold(decision, Note::WithinFloor(Box::new(floor.clone())));
    }
}
