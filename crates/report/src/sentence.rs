//! What was found, in sentences: comparisons, the noise floor, warnings, bottlenecks.

use readings::{Condition, RateChoice};
use verdict::text::{
    change, condition, counted, decimals_for_width, decimals_of_interval, fraction, grouped,
    number, percent, rate,
};
use verdict::{
    Bottleneck, Comparison, FEWEST_BLOCKS, Finding, MOST_BLOCKS_ADVISED, Metric, NoiseFloor, Note,
    ProbesCost, SettingDifference, Stage, Standing, Verdict, Warning,
};

use crate::settings;

/// The verdict as a performance engineer would write it.
pub(crate) fn comparison(c: &Comparison) -> String {
    let note = notes(&c.notes);
    let noted = |text: String| match &note {
        Some(note) => format!("{text}; {note}."),
        None => format!("{text}."),
    };
    let over = format!("over {}", counted(c.blocks, "block"));
    let place = place_and_rate(c);
    let about = format!(
        "{} against {}, {}{place}",
        c.subject,
        c.baseline,
        c.metric.words()
    );
    let changed = change(c.ratio.unwrap_or(1.0), c.interval());
    match c.verdict {
        Verdict::Faster | Verdict::Slower => noted(format!("{}{place}, {over}", difference(c))),
        Verdict::Same => noted(format!(
            "{about}: no difference that matters (within {}): {changed}, {over}",
            fraction(c.matters)
        )),
        Verdict::Inconclusive if c.ratio.is_some() => {
            noted(format!("inconclusive: {about}: {changed}, {over}"))
        }
        Verdict::Inconclusive | Verdict::Invalid => format!(
            "{}: {about}: {}.",
            c.verdict.word(),
            note.as_deref().unwrap_or("no figures")
        ),
    }
}

/// What qualifies a verdict, as part of a sentence; nothing without notes.
pub(crate) fn notes(notes: &[Note]) -> Option<String> {
    let all: Vec<String> = notes.iter().map(note).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn note(note: &Note) -> String {
    match note {
        Note::SmallerThanMatters => "measurable, but smaller than what matters".to_owned(),
        Note::NotAmong { comparisons } => {
            format!("a difference on its own, but not among {comparisons} comparisons")
        }
        Note::MayMatter => "measurable, but perhaps more than what matters".to_owned(),
        Note::MoreBlocks(more) => format!(
            "about {more} more {} would likely settle it",
            if *more == 1 { "block" } else { "blocks" }
        ),
        Note::AsLargeAsMatters => format!(
            "even {MOST_BLOCKS_ADVISED} more blocks would probably not settle it: the difference is \
             about as large as what matters"
        ),
        Note::TooNoisy => format!(
            "even {MOST_BLOCKS_ADVISED} more blocks would probably not settle it: the noise between \
             blocks is too large"
        ),
        Note::Unusable {
            blocks,
            tried,
            subject,
            reason,
        } => format!(
            "{blocks} of {} cannot be used; {subject}: {}",
            counted(*tried, "block"),
            reason.as_deref().unwrap_or("no reason was recorded")
        ),
        Note::NothingMeasured => "no block was measured".to_owned(),
        Note::TooFewBlocks { usable, reason } => {
            let usable = match usable {
                0 => "no block".to_owned(),
                usable => format!("only {}", counted(*usable, "block")),
            };
            let reason = reason.as_ref().map(|reason| format!("; {reason}"));
            format!(
                "{usable} can be used, and a decision needs at least {FEWEST_BLOCKS}{}",
                reason.unwrap_or_default()
            )
        }
        Note::ClientLimits(None) => {
            "the client was the bottleneck for both, so this says little about the servers"
                .to_owned()
        }
        Note::ClientLimits(Some(subject)) => {
            format!("the client was the bottleneck for {subject}, whose figure is 'at least'")
        }
        Note::Clock {
            subject,
            baseline,
            closed_loop,
        } => {
            let against = match subject == baseline {
                true => String::new(),
                false => format!(" against that of {baseline}"),
            };
            let queueing = match closed_loop {
                true => ", in a closed loop, where latency is mostly queueing",
                false => "",
            };
            format!("by the clock of {subject}{against}{queueing}")
        }
        Note::Failures(sides) => joined(sides, |side| match side.failed {
            0 => format!(
                "{}: 0 of {}, so at most {}%",
                side.subject,
                grouped(side.requests),
                number(side.share_at_most * 100.0, 4, false)
            ),
            failed => {
                let (failed, all) = (grouped(failed), grouped(side.requests));
                format!("{}: {failed} of {all}", side.subject)
            }
        }),
        Note::FullRate(sides) => joined(sides, |side| {
            let always = format!("full all the time in {}", counted(side.always, "block"));
            let never = counted(side.never, "block");
            let never = format!("not back at the window's end in {never}");
            match (side.always, side.never) {
                (0, _) => format!("{} was {never}", side.subject),
                (_, 0) => format!("{} was {always}", side.subject),
                _ => format!("{} was {always} and {never}", side.subject),
            }
        }),
    }
}

fn joined<T>(items: &[T], words: impl Fn(&T) -> String) -> String {
    items.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// ` at connections=96`; empty without factors.
fn at(place: &Condition) -> String {
    match condition(place) {
        text if text.is_empty() => text,
        text => format!(" at {text}"),
    }
}

/// The largest ratio that an interval may reach to be printed.
const HIGH_MAX: f64 = 10.0;

/// The baseline against itself.
pub(crate) fn noise_floor(floor: &NoiseFloor) -> String {
    let interval = floor.low.zip(floor.high);
    // From -100% to more than tenfold: such an interval is no figure for a reader.
    let shown = interval.filter(|(_, high)| *high <= HIGH_MAX);
    let unlike = match (interval, shown) {
        (Some(_), None) => ": too few, or too different from each other, for an interval",
        _ => "",
    };
    format!(
        "noise floor, {}{}: {} against itself shows {}, over {}{unlike}.",
        floor.metric.words(),
        at(&floor.condition),
        floor.baseline,
        change(floor.ratio, shown),
        counted(floor.blocks, "block")
    )
}

/// Where in its looks a run stands.
pub(crate) fn stage(stage: &Stage) -> String {
    let planned = stage.looks.planned();
    let blocks = counted(planned as usize, "block");
    let (count, budget) = (stage.looks.blocks().len(), fraction(stage.alpha));
    let done = stage.blocks_done;
    let each = match count {
        3 => "a third".to_owned(),
        n => format!("1/{n}"),
    };
    match (stage.looks.is_fixed(), stage.look) {
        (true, Some(_)) => format!(
            "fixed design: one look, after all {blocks}, with the whole error budget of {budget}"
        ),
        (true, None) => {
            format!("fixed design: {done} of {blocks} done, judged as if no more had been planned")
        }
        (false, Some(look)) => format!(
            "look {look} of {count}, after {done} of at most {planned} blocks; each look has \
             {each} of the error budget of {budget}"
        ),
        (false, None) => format!(
            "{done} of at most {planned} blocks done, between the looks; judged like a look, with \
             {each} of the error budget of {budget}"
        ),
    }
}

/// What sampling servers and machine cost.
pub(crate) fn probes(cost: &ProbesCost) -> String {
    format!(
        "servers and machine were sampled {} times a second of measured time, which took {} of a \
         core",
        number(cost.looks_per_s, 1, false),
        percent(cost.share_of_core * 100.0, 2, false)
    )
}

/// At which rate latency is compared.
pub(crate) fn rate_choice(choice: &RateChoice) -> String {
    let from = match choice.slowest_per_s {
        Some(slowest) => format!(
            "{} of the {} requests/s that the slowest subject carried in the first block",
            fraction(((choice.rate_per_s / slowest) * 100.0).round() / 100.0),
            rate(slowest)
        ),
        None => "as the experiment says".to_owned(),
    };
    format!(
        "latency{} is compared in an open loop at {} requests/s for every subject, {from}",
        at(&choice.condition),
        rate(choice.rate_per_s)
    )
}

/// What limits a subject.
pub(crate) fn finding(finding: &Finding) -> String {
    let at = at(&finding.condition);
    let who = &finding.subject;
    let what = match &finding.server {
        Some(server) if finding.bottleneck == Bottleneck::Server => {
            format!("the server `{server}`")
        }
        _ => finding.bottleneck.words().to_owned(),
    };
    let found = match finding.standing {
        Standing::Confirmed => format!("{who}{at} is limited by {what}, confirmed"),
        Standing::Suspected => format!("{who}{at} is limited by {what}, suspected"),
        Standing::Unknown => format!("what limits {who}{at} is unknown"),
    };
    let at_least = match finding.at_least {
        true => format!(
            "; its throughput is at least the measured one ({} requests/s here)",
            rate(finding.unchanged_per_s)
        ),
        false => String::new(),
    };
    format!("{found}: {}{at_least}.", finding.evidence)
}

/// What a reader should know before trusting a result.
pub(crate) fn warning(warning: &Warning) -> String {
    let name = |one: &verdict::Place| format!("{}{}", one.subject, at(&one.condition));
    match warning {
        Warning::Recorded { text, trials: 1 } => text.clone(),
        Warning::Recorded { text, trials } => format!("{text} (in {trials} trials)"),
        Warning::BiasedBaseline { floor, matters } => format!(
            "{}: more than what matters ({}), so differences of this size mean nothing here",
            noise_floor(floor).trim_end_matches('.'),
            fraction(*matters)
        ),
        Warning::Unsettled {
            at,
            baseline,
            unsettled,
            blocks,
        } => format!(
            "no steady state: the throughput of {} over that of {baseline} still changed in the \
             second half of the slices in {unsettled} of {}; a longer warm-up or window is needed",
            name(at),
            counted(*blocks, "block")
        ),
        Warning::DependentBlocks {
            at: place,
            baseline,
            metric,
            lag1,
            blocks,
        } => format!(
            "the blocks' ratios of {} to {baseline}, {}{}, correlate with those of the blocks before \
             (lag-1 autocorrelation {} over {}): they are not independent, and the interval is too \
             narrow",
            place.subject,
            metric.words(),
            at(&place.condition),
            number(*lag1, 2, false),
            counted(*blocks, "block")
        ),
        Warning::SliceLength {
            at,
            baseline,
            ratio,
            blocks,
        } => format!(
            "the throughput of {} over that of {baseline} depends on the length of the slices: slices \
             of twice the length make it {}, over {}; lengthen design.slice until that no longer \
             changes the result",
            name(at),
            percent((ratio - 1.0) * 100.0, 1, true),
            counted(*blocks, "block")
        ),
        Warning::AtLeast {
            at,
            limited,
            trials,
        } => format!(
            "the throughput of {} is 'at least': the client was the bottleneck in {limited} of {}",
            name(at),
            counted(*trials, "trial")
        ),
        Warning::RateNotKept {
            at,
            answered_per_s,
            offered_per_s,
        } => format!(
            "{} answered {} of {} requests/s that were offered: its latency is that of an \
             overload, and grows with the length of the window",
            name(at),
            rate(*answered_per_s),
            rate(*offered_per_s)
        ),
        Warning::Errors {
            at,
            failed,
            requests,
        } => format!(
            "{} of {} requests to {} failed: the latency figures leave them out",
            grouped(*failed),
            grouped(*requests),
            name(at)
        ),
        Warning::IdleConnections {
            at,
            busy,
            connections,
        } => format!(
            "the connections of {} stood still for {:.0}% of the time: requests/s times mean \
             latency is {} of {} connections",
            name(at),
            (1.0 - busy / *connections as f64) * 100.0,
            rate(*busy),
            grouped(*connections)
        ),
        Warning::LostSyns {
            at,
            late,
            connections,
            median_us,
        } => format!(
            "{} of {} connections to {} took a second or more to open, where the median took {:.1} \
             ms: their first SYN was lost, as by a full accept queue or a link that loses packets",
            grouped(*late),
            grouped(*connections),
            name(at),
            median_us / 1e3
        ),
        Warning::Unresolved { at, metric, blocks } => format!(
            "the {} of {} is unresolved: too few answers lie beyond it in {}; a longer window \
             would resolve it",
            metric.words(),
            name(at),
            counted(*blocks, "block")
        ),
        Warning::UncountedCpu(servers) => format!(
            "CPU time of {} may be incomplete: processes that ignore SIGCHLD are not charged \
             with the CPU time of their children, and there is no control group. Root has one; an \
             ordinary user has one under `systemd-run --user --scope -p Delegate=yes weigh run …`",
            joined(servers, |name| format!("`{name}`"))
        ),
        Warning::Settings {
            difference,
            conditions,
        } => setting(difference, conditions),
    }
}

fn setting(difference: &SettingDifference, conditions: &[Condition]) -> String {
    let at: Vec<String> = conditions.iter().map(condition).collect();
    let at = match at.is_empty() {
        true => String::new(),
        false => format!(" at {}", at.join("; ")),
    };
    format!(
        "the compared servers differ in a setting that changes results a lot, {}{at}: {}; unless \
         that is the question, set it the same",
        settings::words(&difference.setting),
        joined(&difference.values, |one| format!(
            "{} ({})",
            one.value,
            one.subjects.join(", ")
        ))
    )
}

/// ` at connections=96 and 20,000 requests/s`; empty without either.
fn place_and_rate(c: &Comparison) -> String {
    let mut parts = Vec::new();
    if !c.condition.is_empty() {
        parts.push(condition(&c.condition));
    }
    if let Some(per_s) = c.rate_per_s {
        parts.push(format!("{} requests/s", rate(per_s)));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!(" at {}", parts.join(" and "))
    }
}

/// The difference in the words that its direction wants, the interval in the same sense.
fn difference(c: &Comparison) -> String {
    let (what, subject) = (c.metric.words(), &c.subject);
    let ratio = c.ratio.unwrap_or(1.0);
    let more = ratio > 1.0;
    if ratio >= 2.0 {
        let (times, interval) = times(c);
        return match c.metric {
            Metric::RequestsPerS => {
                format!("{subject} brings {times} times the {what} {interval}")
            }
            _ => format!("{subject} multiplies the {what} by {times} {interval}"),
        };
    }
    let (size, interval) = size(c);
    match (c.metric, more) {
        (Metric::RequestsPerS, false) => {
            format!("{subject} costs {size} of the {what} {interval}")
        }
        (Metric::RequestsPerS, true) => format!("{subject} brings {size} more {what} {interval}"),
        (_, true) => format!("{subject} adds {size} to the {what} {interval}"),
        (_, false) => format!("{subject} takes {size} off the {what} {interval}"),
    }
}

/// The size of the difference as an unsigned percentage, and its interval in ascending order.
fn size(c: &Comparison) -> (String, String) {
    let ratio = c.ratio.unwrap_or(1.0);
    let sign = if ratio < 1.0 { -100.0 } else { 100.0 };
    let estimate = sign * (ratio - 1.0);
    let Some((low, high)) = c.interval() else {
        return (percent(estimate, 1, false), String::new());
    };
    let (a, b) = (sign * (low - 1.0), sign * (high - 1.0));
    let (low, high) = (a.min(b), a.max(b));
    let decimals = decimals_of_interval(low, high);
    (
        percent(estimate, decimals, false),
        format!(
            "[{}, {}]",
            percent(low, decimals, false),
            percent(high, decimals, false)
        ),
    )
}

/// The ratio itself, with its interval.
fn times(c: &Comparison) -> (String, String) {
    let ratio = c.ratio.unwrap_or(1.0);
    let Some((low, high)) = c.interval() else {
        return (number(ratio, 1, false), String::new());
    };
    let decimals = decimals_for_width(high - low);
    (
        number(ratio, decimals, false),
        format!(
            "[{}, {}]",
            number(low, decimals, false),
            number(high, decimals, false)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(metric: Metric, verdict: Verdict, figures: [f64; 3]) -> Comparison {
        let [ratio, low, high] = figures;
        Comparison {
            condition: Condition::new(),
            metric,
            subject: "balance".into(),
            baseline: "direct".into(),
            ratio: Some(ratio),
            low: Some(low),
            high: Some(high),
            confidence: 0.95,
            blocks: 10,
            matters: 0.03,
            verdict,
            notes: Vec::new(),
            baseline_value: None,
            subject_value: None,
            p_value: None,
            p_adjusted: None,
            rate_per_s: None,
            by_block: vec![],
            unsettled_blocks: 0,
        }
    }

    fn said(c: &Comparison) -> String {
        super::comparison(c)
    }

    #[test]
    fn a_cost_in_throughput() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
        c.subject = "lighttpd".into();
        c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
        assert_eq!(
            said(&c),
            "lighttpd costs 31% of the throughput [29%, 33%] at connections=96, over 10 blocks."
        );
    }

    #[test]
    fn a_cost_in_latency_names_its_rate() {
        let mut c = comparison(Metric::LatencyUsP50, Verdict::Slower, [1.091, 1.080, 1.102]);
        c.rate_per_s = Some(20_000.0);
        assert_eq!(
            said(&c),
            "balance adds 9.1% to the median latency [8.0%, 10.2%] at 20,000 requests/s, \
             over 10 blocks."
        );
        c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
        assert!(said(&c).contains(" at connections=96 and 20,000 requests/s,"));
    }

    #[test]
    fn gains_and_multiples() {
        for (metric, figures, expected) in [
            (
                Metric::RequestsPerS,
                [1.12, 1.10, 1.14],
                "balance brings 12% more throughput [10%, 14%], over 10 blocks.",
            ),
            (
                Metric::RequestsPerS,
                [3.1, 2.9, 3.3],
                "balance brings 3.1 times the throughput [2.9, 3.3], over 10 blocks.",
            ),
            (
                Metric::LatencyUsP50,
                [0.9, 0.88, 0.92],
                "balance takes 10% off the median latency [8%, 12%], over 10 blocks.",
            ),
            (
                Metric::LatencyUsP99,
                [3.6, 3.1, 4.2],
                "balance multiplies the 99th percentile of latency by 3.6 [3.1, 4.2], \
                 over 10 blocks.",
            ),
        ] {
            let better = (figures[0] > 1.0) == metric.higher_is_better();
            let verdict = if better {
                Verdict::Faster
            } else {
                Verdict::Slower
            };
            assert_eq!(said(&comparison(metric, verdict, figures)), expected);
        }
    }

    #[test]
    fn no_difference_that_matters() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Same, [1.004, 0.991, 1.017]);
        assert_eq!(
            said(&c),
            "balance against direct, throughput: no difference that matters (within 3%): \
             +0.4% [-0.9%, +1.7%], over 10 blocks."
        );
        c.notes = vec![Note::SmallerThanMatters];
        assert!(said(&c).ends_with("blocks; measurable, but smaller than what matters."));
    }

    #[test]
    fn what_is_not_settled_says_what_would_settle_it() {
        let mut c = comparison(
            Metric::RequestsPerS,
            Verdict::Inconclusive,
            [1.02, 0.969, 1.074],
        );
        c.notes = vec![Note::MoreBlocks(12)];
        assert_eq!(
            said(&c),
            "inconclusive: balance against direct, throughput: +2% [-3%, +7%], over 10 blocks; \
             about 12 more blocks would likely settle it."
        );
    }
}
