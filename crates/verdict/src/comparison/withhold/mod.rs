//! Withholds verdicts that the interval over blocks alone would allow.
//!
//! No rule adds a verdict: each turns a verdict into `inconclusive` and says why.

pub(crate) mod words;

pub(crate) mod credible;
pub(crate) mod outlook;
pub(crate) mod slices;

use crate::comparison::Comparison;
use crate::comparison::decide::{Decision, decide};
use crate::comparison::pairs::Pairs;
use crate::comparison::withhold::slices::SliceBias;
use crate::{Bound, LagRemedy, Metric, NoiseFloor, Note, Rules, Starts, Verdict};

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

/// A throughput that the client limited is a lower bound. With the baseline limited in any block
/// the ratio is at most the measured one, and only `slower` may stand. With the subject limited it
/// is at least the measured one, and only `faster` may stand. With both limited nothing follows.
pub(crate) fn censored(
    decision: &mut Decision,
    metric: Metric,
    pairs: &Pairs,
    subject: &str,
    baseline: &str,
) -> Option<Bound> {
    if metric != Metric::RequestsPerS || pairs.drivers_differ() {
        return None;
    }
    let (bound, stands, whom) = match pairs.client_limited {
        (0, 0) => return None,
        (0, _) => (Some(Bound::AtMost), Some(Verdict::Slower), Some(baseline)),
        (_, 0) => (Some(Bound::AtLeast), Some(Verdict::Faster), Some(subject)),
        (_, _) => (None, None, None),
    };
    let note = Note::ClientLimits(whom.map(str::to_owned));
    match decision.verdict {
        Verdict::Invalid => return None,
        verdict if Some(verdict) == stands => decision.notes.push(note),
        _ => withhold(decision, note),
    }
    bound
}

/// Whether the client was the bottleneck for both sides, so that not even a bound is known.
pub(crate) fn is_unbounded(metric: Metric, pairs: &Pairs) -> bool {
    let (ours, theirs) = pairs.client_limited;
    metric == Metric::RequestsPerS && !pairs.drivers_differ() && ours > 0 && theirs > 0
}

/// If one side's starts fail more often than the other's, the starts that went well do not show
/// that this side is the same or better.
pub(crate) fn failed_starts(
    decision: &mut Decision,
    (subject, ours): (&str, &Starts),
    (baseline, theirs): (&str, &Starts),
) {
    let sides = [(subject, ours), (baseline, theirs)].into_iter();
    let sides = sides.filter(|(_, starts)| starts.failed > 0);
    let sides: Vec<(String, Starts)> = sides
        .map(|(name, starts)| (name.to_owned(), starts.clone()))
        .collect();
    if sides.is_empty() || decision.verdict == Verdict::Invalid {
        return;
    }
    let note = Note::FailedStarts(sides);
    let contradicted = match decision.verdict {
        Verdict::Same => ours.exceed(theirs) || theirs.exceed(ours),
        Verdict::Faster => ours.exceed(theirs),
        Verdict::Slower => theirs.exceed(ours),
        Verdict::Inconclusive | Verdict::Invalid => false,
    };
    match contradicted {
        true => withhold(decision, note),
        false => decision.notes.push(note),
    }
}

/// If the client's lag exceeds what matters, a verdict on latency stands only if the service times,
/// which do not contain the lag, lead to the same verdict.
pub(crate) fn client_lag(
    decision: &mut Decision,
    pairs: &Pairs,
    rules: &Rules,
    p_adjusted: f64,
    comparisons: usize,
) {
    let decided = matches!(
        decision.verdict,
        Verdict::Same | Verdict::Faster | Verdict::Slower
    );
    if !decided || pairs.lag_share <= rules.matters {
        return;
    }
    let service = pairs.service_sample();
    let same = service.as_ref().is_some_and(|service| {
        decide(service, rules, p_adjusted, comparisons, false).verdict == decision.verdict
    });
    if !same {
        let service_ratio = service.map(|service| service.mean.exp());
        let note = Note::ClientLag {
            share: pairs.lag_share,
            remedy: pairs.lag_remedy.clone().unwrap_or(LagRemedy::OwnCpu),
            service_ratio,
        };
        withhold(decision, note);
    }
}

/// Applies a rule of a whole run to a comparison.
fn revise(c: &mut Comparison, note: Note) {
    let mut decision = Decision {
        verdict: c.verdict,
        notes: std::mem::take(&mut c.notes),
    };
    withhold(&mut decision, note);
    (c.verdict, c.notes) = (decision.verdict, decision.notes);
}

/// Where the baseline differs from itself by more than what matters, neither `same` nor a
/// difference of that size or less means anything.
pub(crate) fn by_floor(rules: &Rules, comparisons: &mut [Comparison], floors: &[NoiseFloor]) {
    for c in comparisons {
        let of_same =
            |floor: &&NoiseFloor| floor.condition == c.condition && floor.metric == c.metric;
        let (Some(floor), Some(ratio)) = (floors.iter().find(of_same), c.ratio) else {
            continue;
        };
        let size = floor.size();
        let decided = matches!(c.verdict, Verdict::Same | Verdict::Faster | Verdict::Slower);
        if decided && floor.is_biased(rules.matters) && ratio.ln().abs() <= size {
            let note = Note::WithinFloor(Box::new(floor.clone()));
            revise(c, note);
        }
    }
}

/// Where the length of slices biases a ratio by more than what matters, no verdict rests on it.
pub(crate) fn by_slices(rules: &Rules, c: &mut Comparison, bias: &SliceBias) {
    let decided = matches!(c.verdict, Verdict::Same | Verdict::Faster | Verdict::Slower);
    if !decided || !bias.matters(rules) {
        return;
    }
    // A difference that the bias leaves beyond what matters on the same side stands.
    let corrected = c.ratio.map(|ratio| ratio.ln() - bias.log_bias);
    let stands = match (c.verdict, corrected) {
        (Verdict::Same, _) | (_, None) => false,
        (_, Some(corrected)) => {
            corrected.abs() > rules.delta() && c.ratio.is_some_and(|r| r.ln() * corrected > 0.0)
        }
    };
    if !stands {
        revise(c, Note::SliceBias(bias.log_bias.exp()));
    }
}
