//! Whether an open loop offered more than was carried: one rule for loads, stages and points of curves.

use readings::{
    Answered, CurvePoint, Histogram, LoadReading, Offered, Pacing, Quantiles, StageReading,
};

use crate::stats::sample::Sample;

/// A backlog that grows by less than this share of the requests is no overload.
const GROWTH_SHARE: f64 = 0.02;
/// And by less than so many standard deviations of a Poisson count of the requests.
const SIGMAS: f64 = 3.0;
/// The share of the growth over the second half that each of its quarters has at least: a pause at
/// the end fills the last quarter only, answers that take long the first.
const QUARTER_SHARE: f64 = 0.2;
/// Where half of the answers take longer than the load lasted, the window is too short to show a
/// latency that stays. If nearly all take the same time within this factor, the server is slow.
const SLOW_SPREAD: f64 = 1.5;
/// Longer than any load, s: a stage before has gone on for so long.
const LONG_S: f64 = 1e6;
/// Answers may come in bursts of one per connection, and a burst near an edge of the window may fall
/// on either side of it. With fewer answers than this for each answer of such a burst, their count
/// does not tell the rate.
const ANSWERS_PER_BURST: f64 = 5.0;
/// Below this share of answers an overload is taken for granted where requests wait for a
/// connection: time limits keep such a backlog from growing.
const KEPT_SHARE: f64 = 0.95;

/// More requests became due than were answered, and the difference waits: latency then depends on
/// the length of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// Good answers per second while requests waited; `None` where it is not known. What a closed
    /// loop carries may be another rate.
    pub carried_per_s: Option<f64>,
    pub offered_per_s: f64,
    /// Requests that waited for their answers at the end; the sum over all slices.
    pub backlog_end: u64,
    /// The stage, from 0, where the load has several.
    pub stage: Option<usize>,
}

impl Overload {
    /// The share of the offered rate that was carried, as far as it is known.
    pub fn share(&self) -> Option<f64> {
        Some(self.carried_per_s? / self.offered_per_s)
    }
}

/// How often the open loop of one subject was overloaded at a rate, over blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverloadedBlocks {
    pub overloaded: usize,
    pub blocks: usize,
    /// Requests offered per second, in the first of them.
    pub offered_per_s: f64,
    /// Good answers per second while requests waited, where that is known: geometric mean over the
    /// overloaded blocks.
    pub carried_per_s: Option<f64>,
}

/// From the open loops of the blocks; nothing if none was overloaded.
pub fn overloaded_blocks<'a>(
    loads: impl IntoIterator<Item = &'a LoadReading>,
) -> Option<OverloadedBlocks> {
    let each: Vec<Option<Overload>> = loads.into_iter().map(overload).collect();
    let found: Vec<Overload> = each.iter().copied().flatten().collect();
    let carried = found.iter().filter_map(|one| one.carried_per_s);
    let logs: Vec<f64> = carried.map(f64::ln).collect();
    Some(OverloadedBlocks {
        overloaded: found.len(),
        blocks: each.len(),
        offered_per_s: found.first()?.offered_per_s,
        carried_per_s: Sample::of(&logs).map(|logs| logs.mean.exp()),
    })
}

/// What a span of an open loop is judged by: a stage, or the slices of a load laid over each other.
struct Span {
    offered: Offered,
    /// Requests that were due and failed.
    failed: u64,
    rate: Rate,
    responses: Responses,
}

/// Requests due per second over a span.
struct Rate {
    from_per_s: f64,
    to_per_s: f64,
    /// Length of the span, or of one slice.
    length_s: f64,
    /// The rate before, and for how long it had lasted when the span began.
    before_per_s: f64,
    before_s: f64,
}

impl Rate {
    fn mean_per_s(&self) -> f64 {
        (self.from_per_s + self.to_per_s) / 2.0
    }

    /// Requests due until a time, since the span began; negative before.
    fn due(&self, at_s: f64) -> f64 {
        match at_s < 0.0 {
            true => self.before_per_s * at_s.max(-self.before_s),
            false => {
                let rise = (self.to_per_s - self.from_per_s) / self.length_s / 2.0;
                at_s * (self.from_per_s + rise * at_s)
            }
        }
    }
}

/// Response times, s, ascending, with their shares of all answers.
struct Responses(Vec<(f64, f64)>);

impl Responses {
    fn of(histogram: &Histogram) -> Self {
        let all = histogram.count().max(1) as f64;
        let each = histogram.buckets_us().into_iter();
        Self(
            each.map(|(us, count)| (us / 1e6, count as f64 / all))
                .collect(),
        )
    }

    /// Evenly between the quantiles.
    fn of_quantiles(us: &Quantiles) -> Self {
        const STEPS: u32 = 10;
        let knots = [us.min, us.p50, us.p75, us.p90, us.p99, us.max];
        let shares = [0.5, 0.25, 0.15, 0.09, 0.01];
        let mut all = Vec::new();
        let mut low = knots[0];
        for (high, share) in knots[1..].iter().zip(shares) {
            let high = high.max(low);
            let steps = (0..STEPS).map(|step| (f64::from(step) + 0.5) / f64::from(STEPS));
            all.extend(steps.map(|at| {
                let us = low + at * (high - low);
                (us / 1e6, share / f64::from(STEPS))
            }));
            low = high;
        }
        Self(all)
    }

    fn at(&self, quantile: f64) -> f64 {
        let mut below = 0.0;
        let reached = self.0.iter().find(|(_, share)| {
            below += share;
            below >= quantile
        });
        reached.or(self.0.last()).map_or(0.0, |(s, _)| *s)
    }

    /// By how much the backlog grows between two times of a span if answers take as long as these,
    /// whenever their requests are due.
    fn growth(&self, rate: &Rate, from_s: f64, to_s: f64) -> f64 {
        let due = |later_s: f64| rate.due(to_s - later_s) - rate.due(from_s - later_s);
        let answered = self.0.iter().map(|(s, share)| share * due(*s));
        due(0.0) - answered.sum::<f64>()
    }
}

/// Whether an open loop offered more than was carried; of several stages the first in which it
/// did. Nothing for loads of which that was not recorded.
///
/// What was answered *within* the windows counts, not what was answered in the end, and the backlog
/// has to grow until the end, by more than it would if each answer took its time whenever its request
/// was due: a slow server has a backlog too, of its latency times the rate (Little's law), but one
/// that stays.
pub fn overload(load: &LoadReading) -> Option<Overload> {
    let Pacing::Open { rate_per_s } = load.pacing else {
        return None;
    };
    // What is open at the end of a window is no backlog if it lasts.
    if load.lasting.as_ref().is_some_and(|one| one.has_messages()) {
        return None;
    }
    let each = load.requests_per_arrival();
    let rate_per_s = rate_per_s * each;
    let ramp_up_s = load.slices.first().map_or(0.0, |slice| slice.start_s);
    if load.stages.is_empty() {
        let slices = load.slices.len().max(1) as u64;
        let span = Span {
            offered: load.offered?,
            failed: load.errors.total(),
            rate: steady(rate_per_s, load.duration_s / slices as f64, ramp_up_s),
            responses: Responses::of(&load.response),
        };
        let bursts = load.connections * slices;
        let until_last = || until_the_last_answer(load.answered()?, load.duration_s, bursts);
        return of_span(&span, bursts, until_last);
    }
    let mut before = None;
    for (number, stage) in load.stages.iter().enumerate() {
        let (from_per_s, to_per_s) = (stage.from_per_s * each, stage.to_per_s * each);
        let (before_per_s, before_s) = before.unwrap_or((from_per_s, ramp_up_s));
        before = Some((to_per_s, LONG_S));
        let Some(offered) = stage.offered else {
            continue;
        };
        let span = Span {
            offered,
            failed: stage.errors,
            rate: Rate {
                from_per_s,
                to_per_s,
                length_s: stage.duration_s,
                before_per_s,
                before_s,
            },
            responses: Responses::of_quantiles(&stage.latency_us),
        };
        let until_last = || until_the_last_answer_of(stage, offered, load.connections);
        if let Some(found) = of_span(&span, load.connections, until_last) {
            let stage = Some(number);
            return Some(Overload { stage, ..found });
        }
    }
    None
}

pub(crate) fn overload_of_point(point: &CurvePoint) -> Option<Overload> {
    let slices = u64::from(point.slices.max(1));
    let of_slice = |s: f64| s / slices as f64;
    let span = Span {
        offered: point.offered?,
        failed: point.failed,
        rate: steady(
            point.rate_per_s,
            of_slice(point.duration_s),
            of_slice(point.ramp_up_s),
        ),
        responses: Responses::of(&point.response),
    };
    let bursts = point.connections * slices;
    let until_last = || until_the_last_answer(point.arrived?, point.duration_s, bursts);
    of_span(&span, bursts, until_last)
}

fn steady(rate_per_s: f64, length_s: f64, ramp_up_s: f64) -> Rate {
    Rate {
        from_per_s: rate_per_s,
        to_per_s: rate_per_s,
        length_s,
        before_per_s: rate_per_s,
        before_s: ramp_up_s,
    }
}

/// The rate from the start of each window until the last answer of its segment: throughout that time
/// an overloaded server has requests waiting.
fn until_the_last_answer(answered: Answered, duration_s: f64, bursts: u64) -> Option<f64> {
    let count = answered.within + answered.after;
    let is_known = count as f64 >= ANSWERS_PER_BURST * bursts as f64;
    is_known.then(|| count as f64 / (duration_s + answered.after_s))
}

/// The same from the start of a stage until the last answer to a request that was due in it. While the
/// backlog grows, the last request due also waits longest, so the longest latency of the stage marks its
/// last answer. Requests that waited when the stage began are answered first, and are counted too.
fn until_the_last_answer_of(
    stage: &StageReading,
    offered: Offered,
    connections: u64,
) -> Option<f64> {
    let count = (offered.backlog_start() + stage.requests) as f64;
    let is_known = count >= ANSWERS_PER_BURST * connections as f64;
    is_known.then(|| count / (stage.duration_s + stage.latency_us.max / 1e6))
}

/// `bursts`: one answer for each connection and slice.
fn of_span(span: &Span, bursts: u64, until_last: impl FnOnce() -> Option<f64>) -> Option<Overload> {
    let Offered {
        due,
        answered_within,
        backlog,
    } = span.offered;
    let is_over = || grows(span) && !is_slow(span) || is_capped(span, bursts);
    if due == 0 || !is_over() {
        return None;
    }
    // A burst at each edge.
    let is_known = answered_within as f64 >= 2.0 * ANSWERS_PER_BURST * bursts as f64;
    let offered_per_s = span.rate.mean_per_s();
    let within_per_s = offered_per_s * answered_within as f64 / due as f64;
    Some(Overload {
        carried_per_s: is_known.then_some(within_per_s).or_else(until_last),
        offered_per_s,
        backlog_end: backlog[4],
        stage: None,
    })
}

/// The least share of the requests due that has to wait in a growing backlog before that counts as an
/// overload.
pub(crate) fn least_share(due: f64) -> f64 {
    GROWTH_SHARE.max(SIGMAS * (2.0 / due).sqrt())
}

/// The least growth over half of the span that counts.
fn least_growth(span: &Span) -> f64 {
    let due = span.offered.due as f64;
    least_share(due) * due / 2.0
}

/// Whether the backlog grew until the end.
fn grows(span: &Span) -> bool {
    let backlog = span.offered.backlog.map(|count| count as f64);
    let (third, fourth) = (backlog[3] - backlog[2], backlog[4] - backlog[3]);
    let growth = third + fourth;
    growth > least_growth(span)
        && span.offered.answered_within < span.offered.due
        && third.min(fourth) >= QUARTER_SHARE * growth
}

/// Whether the backlog grew as it does where answers take their time whenever their requests are due. In
/// an overload those that are due later take longer: fewer answers come than the latencies of the whole
/// span promise, or, where most of them are longer than the span, more.
fn is_slow(span: &Span) -> bool {
    let (rate, responses) = (&span.rate, &span.responses);
    let backlog = span.offered.backlog.map(|count| count as f64);
    let of_one = span.offered.due as f64 / (rate.mean_per_s() * rate.length_s);
    let half_s = rate.length_s / 2.0;
    let beyond_expected = |half: usize| {
        let from_s = half as f64 * half_s;
        let expected = of_one * responses.growth(rate, from_s, from_s + half_s);
        backlog[2 * half + 2] - backlog[2 * half] - expected
    };
    let (first, second) = (beyond_expected(0), beyond_expected(1));
    let off = [first, second, second - first].map(f64::abs);
    let is_as_expected = off.iter().all(|off| *off <= least_growth(span));
    let is_seen = responses.at(0.5) < rate.before_s + rate.length_s;
    let is_narrow = responses.at(0.95) < SLOW_SPREAD * responses.at(0.05);
    is_as_expected && (is_seen || is_narrow)
}

/// Whether time limits end the requests that wait: from the middle on every connection was busy
/// and further requests waited.
fn is_capped(span: &Span, bursts: u64) -> bool {
    let Offered {
        due,
        answered_within,
        backlog,
    } = span.offered;
    let wait = backlog[2..].iter().all(|&waiting| waiting > bursts);
    wait && span.failed > 0 && (answered_within as f64) < KEPT_SHARE * due as f64
}

#[cfg(test)]
mod tests;
