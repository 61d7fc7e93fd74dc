//! Comparisons and the noise floor, in sentences.

use verdict::text::{change, counted, decimals_of_interval, fraction, percent, rate};
use verdict::text::{condition, number};
use verdict::{Bound, Comparison, Metric, NoiseFloor, Note, Verdict};

use super::amount::{
    Absolute, NOT_MEASURABLE, absolute, change_of, is_measurable, names_rate, shown_change,
    size_of_end, times,
};
use super::{at, events, notes};

/// Ratios from this one on are worded as `3 times`.
const TIMES_FROM: f64 = 2.0;

/// The verdict as a performance engineer would write it.
pub(crate) fn comparison(c: &Comparison) -> String {
    comparison_placed(c, None)
}

/// The same with where servers and client ran, such as `proxy and back end on CPU 1, client on CPU
/// 0`.
pub(crate) fn comparison_placed(c: &Comparison, placement: Option<&str>) -> String {
    let measurable = c.interval().is_none_or(is_measurable);
    let worth_saying = |note: &&Note| {
        // A forecast is useless for what cannot be measured.
        measurable || !matches!(note, Note::MoreBlocks { .. } | Note::TooNoisy)
    };
    let kept: Vec<Note> = c.notes.iter().filter(worth_saying).cloned().collect();
    let note = notes(&kept);
    let noted = |text: String| {
        let parts = [Some(text), how_sure(c), companion(c), note.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}.", parts.join("; "))
    };
    let over = format!("over {}", counted(c.blocks, "block"));
    let place = format!("{}{}", place_and_rate(c), placement_clause(placement));
    if let Some(text) = events::comparison(c, &place) {
        return noted(text);
    }
    let about = format!(
        "{} against {}, {}{place}",
        c.subject,
        c.baseline,
        c.metric.words()
    );
    match c.verdict {
        Verdict::Faster | Verdict::Slower => noted(format!("{}{place}, {over}", difference(c))),
        Verdict::Same => noted(format!(
            "{about}: no difference that matters (within {}): {}{}, {over}",
            fraction(c.matters),
            both_values(c),
            change_of(c)
        )),
        Verdict::Inconclusive if !measurable => noted(format!(
            "inconclusive: {about}: {NOT_MEASURABLE} ({}the interval spans more than a factor of \
             ten), {over}",
            both_values(c)
        )),
        Verdict::Inconclusive if c.ratio.is_some() => noted(format!(
            "inconclusive: {about}: {}{}, {over}",
            both_values(c),
            change_of(c)
        )),
        Verdict::Inconclusive | Verdict::Invalid => format!(
            "{}: {about}: {}.",
            c.verdict.word(),
            note.as_deref().unwrap_or("no figures")
        ),
    }
}

/// Where servers and client ran, as part of a sentence; empty where that is not known.
pub(crate) fn placement_clause(placement: Option<&str>) -> String {
    placement.map_or_else(String::new, |text| format!(" ({text})"))
}
/// Whether a difference surely matters, or how probably.
fn how_sure(c: &Comparison) -> Option<String> {
    let differs = matches!(c.verdict, Verdict::Faster | Verdict::Slower);
    if c.surely {
        return Some(format!("surely {}", direction(c)));
    }
    if !differs && !c.notes.contains(&Note::MayMatter) {
        return None;
    }
    let probability = match c.p_beyond_matters? {
        p if p > 0.99 => "more than 99%".to_owned(),
        p => percent(p * 100.0, 0, false),
    };
    let matters = fraction(c.matters);
    Some(format!(
        "by more than {matters} with a probability of {probability}"
    ))
}

/// The direction of a difference. CPU time and memory are not faster or slower: there is more or
/// less of them.
fn direction(c: &Comparison) -> &'static str {
    let is_amount = c.metric.is_cost() || c.metric.is_of_driver();
    match c.verdict {
        Verdict::Faster if is_amount => "less",
        Verdict::Slower if is_amount => "more",
        verdict => verdict.word(),
    }
}

/// The robust estimate, if it differs from the mean and no note has said so.
fn companion(c: &Comparison) -> Option<String> {
    let told = |note: &Note| matches!(note, Note::CompanionDiffers { .. });
    let (robust, ratio, (low, high)) = (c.robust?, c.ratio?, c.interval()?);
    let half_width = (high / low).ln() / 2.0;
    let apart = (robust.ratio / ratio).ln().abs() > half_width / 2.0;
    (apart && !c.notes.iter().any(told)).then(|| {
        let figure = change(robust.ratio, robust.interval());
        format!("the Hodges-Lehmann estimate is {figure}")
    })
}

/// The baseline against itself.
pub(crate) fn noise_floor(floor: &NoiseFloor) -> String {
    let interval = floor.low.zip(floor.high);
    let about = format!(
        "noise floor, {}{}: {} against itself",
        floor.metric.words(),
        at(&floor.condition),
        floor.baseline
    );
    let blocks = counted(floor.blocks, "block");
    let difference = events::floor_difference(floor);
    if difference.is_none() && interval.is_some_and(|interval| !is_measurable(interval)) {
        return format!(
            "{about}: {NOT_MEASURABLE}, over {blocks}: too few blocks, or they differ too much."
        );
    }
    let copies = match (floor.separate, floor.client_limited) {
        (_, true) => "; the client was the bottleneck, so this floor is the client's",
        (true, _) => "",
        (false, _) => {
            "; both copies were the same processes, so this floor lacks the variance of starts"
        }
    };
    format!(
        "{about} shows {}, over {blocks}{copies}.",
        difference.unwrap_or_else(|| shown_change(floor.ratio, interval))
    )
}

/// ` at connections=96 and 20,000 requests/s`; empty without either. A rate that a factor names is
/// not said again.
fn place_and_rate(c: &Comparison) -> String {
    let mut parts = Vec::new();
    if !c.condition.is_empty() {
        parts.push(condition(&c.condition));
    }
    if let Some(per_s) = c.rate_per_s.filter(|_| !names_rate(&c.condition)) {
        parts.push(format!("{} requests/s", rate(per_s)));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!(" at {}", parts.join(" and "))
    }
}

fn values(c: &Comparison) -> Option<Absolute> {
    let (baseline, subject) = c.baseline_value.zip(c.subject_value)?;
    absolute(c.metric, baseline, subject)
}

/// `direct 0.400, balance 0.402 ms: ` for a time or a size; otherwise empty.
fn both_values(c: &Comparison) -> String {
    values(c).map_or_else(String::new, |both| {
        format!(
            "{} {}, {} {} {}: ",
            c.baseline, both.baseline, c.subject, both.subject, both.unit
        )
    })
}

/// The difference in words that fit its direction: times and sizes as values, then relative;
/// throughput with the interval in the same direction.
fn difference(c: &Comparison) -> String {
    if let Some(bound) = c.bound {
        return bounded(c, bound);
    }
    let (what, subject) = (c.metric.words(), &c.subject);
    let ratio = c.ratio.unwrap_or(1.0);
    let more = ratio > 1.0;
    if let Some(both) = values(c) {
        let relative = match c.interval() {
            Some(interval) if !is_measurable(interval) => at_least_of_wide(c),
            interval => shown_change(ratio, interval),
        };
        return format!(
            "{subject} {} the {what} from {} to {} {} ({}, {relative})",
            if more { "raises" } else { "lowers" },
            both.baseline,
            both.subject,
            both.unit,
            both.difference
        );
    }
    if c.interval()
        .is_some_and(|interval| !is_measurable(interval))
    {
        let verb = if more { "raises" } else { "lowers" };
        return format!("{subject} {verb} the {what} ({})", at_least_of_wide(c));
    }
    if ratio >= TIMES_FROM {
        let told = times(ratio, c.interval());
        let (times, interval) = told.split_once(" times").unwrap_or((&told, ""));
        return match c.metric {
            Metric::RequestsPerS => {
                format!("{subject} brings {times} times the {what}{interval}")
            }
            _ => format!("{subject} multiplies the {what} by {times}{interval}"),
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

/// A difference whose interval is too wide to be shown, by the end that is nearer to none.
fn at_least_of_wide(c: &Comparison) -> String {
    let near = if c.ratio.unwrap_or(1.0) > 1.0 {
        c.low
    } else {
        c.high
    };
    let near = match near {
        Some(near) if near >= TIMES_FROM => format!("at least {} times", number(near, 1, false)),
        Some(near) => format!("by at least {}", size_of_end(near)),
        None => return NOT_MEASURABLE.to_owned(),
    };
    format!("{near}; how much is {NOT_MEASURABLE}")
}

/// A difference of which only one end is known, since the client limited one side.
fn bounded(c: &Comparison, bound: Bound) -> String {
    let (what, subject) = (c.metric.words(), &c.subject);
    let end = match bound {
        Bound::AtLeast => c.low,
        Bound::AtMost => c.high,
    };
    let end = end.or(c.ratio).unwrap_or(1.0);
    let size = size_of_end(end);
    match (c.metric, bound) {
        (Metric::RequestsPerS, Bound::AtMost) => {
            format!("{subject} costs at least {size} of the {what}")
        }
        (Metric::RequestsPerS, Bound::AtLeast) if end >= TIMES_FROM => {
            let times = number(end, 1, false);
            format!("{subject} brings at least {times} times the {what}")
        }
        (Metric::RequestsPerS, Bound::AtLeast) => {
            format!("{subject} brings at least {size} more {what}")
        }
        (_, Bound::AtMost) => format!("{subject} takes at least {size} off the {what}"),
        (_, Bound::AtLeast) if end >= TIMES_FROM => {
            let times = number(end, 1, false);
            format!("{subject} multiplies the {what} by at least {times}")
        }
        (_, Bound::AtLeast) => format!("{subject} adds at least {size} to the {what}"),
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use readings::Condition;
    use verdict::{Robust, Starts};

    pub fn comparison(metric: Metric, verdict: Verdict, figures: [f64; 3]) -> Comparison {
        let [ratio, low, high] = figures;
        Comparison {
            condition: Condition::new(),
            metric,
            subject: "balance".into(),
            baseline: "direct".into(),
            ratio: Some(ratio),
            low: Some(low),
            high: Some(high),
            bound: None,
            confidence: 0.95,
            blocks: 10,
            matters: 0.03,
            verdict,
            notes: Vec::new(),
            baseline_value: None,
            subject_value: None,
            surely: false,
            p_beyond_matters: None,
            robust: None,
            block_correlation: None,
            p_value: None,
            p_adjusted: None,
            rate_per_s: None,
            subject_starts: Starts::default(),
            baseline_starts: Starts::default(),
            by_block: vec![],
            difference: None,
            difference_low: None,
            difference_high: None,
            difference_matters: None,
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
        c.notes = vec![Note::MoreBlocks {
            total: 22,
            low: 15,
            high: Some(46),
        }];
        assert_eq!(
            said(&c),
            "inconclusive: balance against direct, throughput: +2% [-3%, +7%], over 10 blocks; \
             a new run of about 22 blocks would likely settle it (15 to 46 with a probability of \
             80%)."
        );
    }

    #[test]
    fn surely_is_said_where_the_whole_interval_clears_what_matters() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
        c.surely = true;
        c.p_beyond_matters = Some(0.999);
        assert!(said(&c).ends_with(", over 10 blocks; surely slower."));
        let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.95, 0.92, 0.98]);
        c.p_beyond_matters = Some(0.912);
        let expected = ", over 10 blocks; by more than 3% with a probability of 91%.";
        assert!(said(&c).ends_with(expected), "{}", said(&c));
    }

    #[test]
    fn cpu_time_and_memory_are_surely_more_or_less() {
        let said = |metric, verdict, figures, values: Option<(f64, f64)>| {
            let mut c = comparison(metric, verdict, figures);
            c.surely = true;
            (c.baseline_value, c.subject_value) = values.unzip();
            said(&c)
        };
        let dearer = [1.8, 1.7, 1.9];
        let cpu = said(
            Metric::ServerCpuUsPerRequest,
            Verdict::Slower,
            dearer,
            Some((23.0, 41.0)),
        );
        assert!(cpu.contains(" from 23 to 41 us "), "{cpu}");
        assert!(cpu.ends_with("over 10 blocks; surely more."), "{cpu}");
        let cheaper = [0.87, 0.86, 0.88];
        let memory = said(Metric::ServerRssBytesMax, Verdict::Faster, cheaper, None);
        assert!(
            memory.contains(" off the servers' peak memory "),
            "{memory}"
        );
        assert!(memory.ends_with("over 10 blocks; surely less."), "{memory}");
        let driver = said(Metric::DriverMaxRssBytes, Verdict::Slower, dearer, None);
        assert!(driver.ends_with("; surely more."), "{driver}");
        let latency = said(Metric::LatencyUsP50, Verdict::Faster, cheaper, None);
        assert!(latency.ends_with("; surely faster."), "{latency}");
    }

    #[test]
    fn a_companion_that_says_something_else_is_told() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.90, 0.85, 0.95]);
        let robust = |ratio: f64| Robust {
            ratio,
            low: Some(ratio - 0.02),
            high: Some(ratio + 0.02),
        };
        c.robust = Some(robust(0.91));
        assert!(said(&c).ends_with("over 10 blocks."));
        c.robust = Some(robust(0.94));
        assert!(
            said(&c).ends_with("; the Hodges-Lehmann estimate is -6% [-8%, -4%]."),
            "{}",
            said(&c)
        );
        c.verdict = Verdict::Inconclusive;
        c.notes = vec![Note::CompanionDiffers {
            verdict: Verdict::Slower,
            ratio: 0.99,
            low: 0.97,
            high: 1.01,
        }];
        assert_eq!(
            said(&c),
            "inconclusive: balance against direct, throughput: -10% [-15%, -5%], over 10 blocks; \
             the t interval alone would say slower, and the Hodges-Lehmann estimate is -1% [-3%, \
             +1%]: a few blocks decide, so no verdict is given."
        );
    }

    #[test]
    fn latency_leads_with_its_values() {
        let mut c = comparison(Metric::LatencyUsP50, Verdict::Slower, [2.8, 2.6, 3.0]);
        (c.baseline_value, c.subject_value) = (Some(153.0), Some(428.0));
        c.rate_per_s = Some(2_000.0);
        assert_eq!(
            said(&c),
            "balance raises the median latency from 0.15 to 0.43 ms (+0.28 ms, 2.8 times [2.6, \
             3.0]) at 2,000 requests/s, over 10 blocks."
        );
        let mut c = comparison(Metric::LatencyUsP50, Verdict::Faster, [0.9, 0.88, 0.92]);
        (c.baseline_value, c.subject_value) = (Some(40_000.0), Some(36_000.0));
        assert_eq!(
            said(&c),
            "balance lowers the median latency from 40.0 to 36.0 ms (-4.0 ms, -10% [-12%, -8%]), \
             over 10 blocks."
        );
        c.verdict = Verdict::Same;
        assert!(said(&c).contains("(within 3%): direct 40.0, balance 36.0 ms: -10% [-12%, -8%]"));
    }

    #[test]
    fn a_rate_that_a_factor_names_is_said_once() {
        let mut c = comparison(Metric::LatencyUsP50, Verdict::Slower, [1.091, 1.080, 1.102]);
        c.rate_per_s = Some(2_000.0);
        c.condition = Condition::from([("rate".to_owned(), "2000/s".to_owned())]);
        assert!(said(&c).contains(" at rate=2000/s, over"), "{}", said(&c));
        c.condition = Condition::from([("rate".to_owned(), "auto".to_owned())]);
        assert!(said(&c).contains(" at rate=auto and 2,000 requests/s, over"));
    }

    #[test]
    fn what_cannot_be_measured_is_told_once_and_without_absurd_figures() {
        let wide = [203.88, 9.45, 4396.8];
        let mut c = comparison(Metric::LatencyUsP99, Verdict::Inconclusive, wide);
        (c.baseline_value, c.subject_value) = (Some(150.0), Some(30_582.0));
        c.notes = vec![Note::MoreBlocks {
            total: 693,
            low: 400,
            high: Some(1000),
        }];
        assert_eq!(
            said(&c),
            "inconclusive: balance against direct, 99th percentile of latency: not measurable here \
             (direct 0.150, balance 30.6 ms: the interval spans more than a factor of ten), over \
             10 blocks."
        );
        c.verdict = Verdict::Slower;
        let text = said(&c);
        assert!(
            text.ends_with(
                "(+30 ms, at least 9.4 times; how much is not measurable here), over 10 blocks."
            ),
            "{text}"
        );
        let floor = NoiseFloor {
            condition: Condition::new(),
            metric: Metric::LatencyUsP99,
            baseline: "direct".into(),
            ratio: 1.2,
            low: Some(0.1),
            high: Some(14.47),
            blocks: 2,
            difference: None,
            difference_low: None,
            difference_high: None,
            difference_matters: None,
            client_limited: false,
            separate: true,
            by_block: Vec::new(),
        };
        assert_eq!(
            noise_floor(&floor),
            "noise floor, 99th percentile of latency: direct against itself: not measurable here, \
             over 2 blocks: too few blocks, or they differ too much."
        );
    }

    #[test]
    fn a_bound_has_one_end() {
        let of = |metric, verdict, bound, end: f64| {
            let mut c = comparison(metric, verdict, [end, end, end]);
            match bound {
                Bound::AtLeast => c.high = None,
                Bound::AtMost => c.low = None,
            }
            c.bound = Some(bound);
            said(&c)
        };
        let rps = |verdict, bound, end| of(Metric::RequestsPerS, verdict, bound, end);
        assert_eq!(
            rps(Verdict::Slower, Bound::AtMost, 0.35),
            "balance costs at least 65% of the throughput, over 10 blocks."
        );
        assert_eq!(
            rps(Verdict::Faster, Bound::AtLeast, 2.84),
            "balance brings at least 2.8 times the throughput, over 10 blocks."
        );
        assert_eq!(
            rps(Verdict::Faster, Bound::AtLeast, 1.12),
            "balance brings at least 12% more throughput, over 10 blocks."
        );
        let text = rps(Verdict::Inconclusive, Bound::AtMost, 1.04);
        assert!(
            text.ends_with("throughput: at most +4.0%, over 10 blocks."),
            "{text}"
        );
        let text = of(Metric::LatencyUsP50, Verdict::Slower, Bound::AtLeast, 1.5);
        assert!(
            text.starts_with("balance adds at least 50% to the median latency"),
            "{text}"
        );
    }

    #[test]
    fn the_placement_stands_in_the_sentence() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
        c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
        let placed = comparison_placed(&c, Some("proxy and back end on CPU 1, client on CPU 0"));
        assert_eq!(
            placed,
            "balance costs 31% of the throughput [29%, 33%] at connections=96 (proxy and back end \
             on CPU 1, client on CPU 0), over 10 blocks."
        );
    }
}
