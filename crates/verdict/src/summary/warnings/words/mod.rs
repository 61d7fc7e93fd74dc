//! What a reader should know before trusting a result, in sentences.

pub(crate) mod caveats;
pub(crate) mod places;

use crate::{Place, SettingDifference, Warning};
use readings::Condition;
use readings::text::{condition, counted, fraction, grouped, number, percent, rate};

use crate::comparison::words::noise_floor;
use crate::metric::words::{bounded, metric_words, resolved_by};
use crate::summary::congestion::words::words;
use crate::summary::place::words::place;
use crate::summary::settings::words::setting as setting_words;
use crate::trial::drift::words::drift;
use crate::trial::lag::words::{END_OTHERS, others};
use crate::trial::pauses::words::without_pauses_in_blocks;
use readings::text::compact::three_digits;
use readings::text::joined;

/// What a reader should know before trusting a result.
pub fn warning(warning: &Warning) -> String {
    worded(warning, &place)
}

/// The same of all, each sentence once for all places that it is true of.
pub fn warnings<'w>(all: impl IntoIterator<Item = &'w Warning>) -> Vec<String> {
    // Where the places of a sentence stand.
    const HERE: &str = "\u{1}";
    let mut found: Vec<(String, &Warning, Vec<&Place>)> = Vec::new();
    for one in all {
        let text = worded(one, &|_| HERE.to_owned());
        let at = one.place();
        match found.iter_mut().find(|(known, ..)| *known == text) {
            Some((.., places)) => places.extend(at),
            None => found.push((text, one, at.into_iter().collect())),
        }
    }
    let said = found.into_iter().map(|(text, one, all)| match all.len() {
        0 | 1 => warning(one),
        _ => text.replace(HERE, &places::places(&all)),
    });
    said.collect()
}

fn worded(warning: &Warning, name: &dyn Fn(&Place) -> String) -> String {
    match warning {
        Warning::Recorded { text, trials: 1 } => text.clone(),
        Warning::Recorded { text, trials } => format!("{text} (in {trials} trials)"),
        Warning::BiasedBaseline { floor, matters } => format!(
            "{}: more than the margin ({}), so differences of this size mean nothing here",
            noise_floor(floor).trim_end_matches('.'),
            fraction(*matters)
        ),
        Warning::Drifts { at, found } => format!("{} {}", name(at), drift(found)),
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
            at,
            baseline,
            metric,
            lag1,
            blocks,
        } => format!(
            "the blocks' ratios of {} to {baseline}, {}, correlate with those of the blocks before \
             (lag-1 autocorrelation {} over {}): they are not independent, and the interval was \
             widened for it",
            name(at),
            metric_words(*metric, &at.condition, None),
            number(*lag1, 2, false),
            counted(*blocks, "block")
        ),
        Warning::SliceLength {
            at,
            baseline,
            ratio,
            blocks,
        } => format!(
            "the throughput of {} over that of {baseline} depends on the length of the slices: by \
             their two lengths, slices without end would change it by {}, over {}; lengthen \
             design.slice until that no longer changes the result",
            name(at),
            percent((1.0 / ratio - 1.0) * 100.0, 1, true),
            counted(*blocks, "block")
        ),
        Warning::WideFloor { floor, matters } => format!(
            "{}: wider than the margin ({}), so smaller differences are hard to tell here; more \
             blocks, or a quieter machine, would narrow it",
            noise_floor(floor).trim_end_matches('.'),
            fraction(*matters)
        ),
        Warning::OtherPrograms {
            others: taken,
            least_difference,
        } => {
            let told = match least_difference {
                Some(least) => format!(
                    "; no difference of throughput below {} can be detected beside them",
                    percent(least * 100.0, 0, false)
                ),
                None => String::new(),
            };
            format!(
                "{} during the closed loops, so intervals are as wide as the noise floor and the \
                 slices ask for{told}; {END_OTHERS}",
                others(taken)
            )
        }
        Warning::SteadyStateUnchecked {
            slices: [slices, slices_needed],
            blocks: [blocks, blocks_needed],
        } => format!(
            "whether subjects were warm was not checked: there are {} of {} each, and the check needs \
             {blocks_needed} of {slices_needed}",
            counted(*blocks, "block"),
            counted(*slices, "slice")
        ),
        Warning::AtLeast {
            at,
            limited,
            trials,
        } => format!(
            "the throughput of {} is a lower bound: the client was the bottleneck in {limited} of {}",
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
        Warning::ClientPauses { at, found } => {
            format!("{}: {}", name(at), without_pauses_in_blocks(found))
        }
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
        Warning::Handshakes { at } => format!(
            "the answers of {} were upgrades (status 101), after which the connection is closed: \
             throughput and latency are those of handshakes, not of messages",
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
        Warning::TlsDiffers { at, other, agreed } => format!(
            "{} and {} do not use the same TLS, so their difference is not that of the servers \
             alone: {} and {}",
            name(at),
            other,
            agreed[0].words(),
            agreed[1].words()
        ),
        Warning::CongestionDiffers {
            sides: [one, other],
            conditions,
        } => {
            let places: Vec<String> = conditions.iter().map(condition).collect();
            let at = match places.is_empty() {
                true => String::new(),
                false => format!(" at {}", places.join("; ")),
            };
            format!(
                "{} ({}) and {} ({}) do not use the same congestion control{at}: over a link that \
                 loses packets or is full, their difference is not that of protocols or servers alone",
                one.at.subject,
                words(one),
                other.at.subject,
                words(other)
            )
        }
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
        Warning::ConnectionsDiffer {
            at,
            other,
            per_request: [most, least],
        } => format!(
            "{} needed {}, {other} {}; what opening them costs is part of its figures",
            name(at),
            new_connections(*most),
            kept_by_other(*least)
        ),
        Warning::Unresolved {
            at,
            metric,
            known,
            resolved_by: by,
        } => {
            let of = format!("the {} of {}", metric.words(), name(at));
            let helps = resolved_by(by.as_ref());
            match known {
                Some(Err(bound)) => format!(
                    "{of} is not compared: too few answers lie beyond it ({}); {helps}",
                    bounded(bound)
                ),
                _ => format!(
                    "{of} is not compared: too few answers lie beyond it or the baseline's; {helps}"
                ),
            }
        }
        Warning::UncountedCpu(servers) => format!(
            "CPU time of {} may be incomplete: processes that ignore SIGCHLD are not charged \
             with the CPU time of their children, and there is no control group. Root has one; an \
             ordinary user has one under `systemd-run --user --scope -p Delegate=yes weigh run …`",
            joined(servers, |name| format!("`{name}`"))
        ),
        Warning::UncountedUpstreams {
            subject,
            baseline,
            missing,
        } => format!(
            "what the servers of {subject} cost (CPU time, memory) is not compared with {baseline}: \
             {} cannot be counted, as its process cannot be seen; it is on another machine, or \
             another user's, which root can see",
            missing
                .iter()
                .map(|(behind, at)| format!("what listens at {} behind {behind}", at.join(", ")))
                .collect::<Vec<_>>()
                .join(" and ")
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
        setting_words(&difference.setting),
        joined(&difference.values, |one| format!(
            "{} ({})",
            one.value,
            one.subjects.join(", ")
        ))
    )
}

/// `a new connection for each request`, `a new connection for every 12.5 requests`.
fn new_connections(per_request: f64) -> String {
    match per_request >= EACH {
        true => "a new connection for each request".to_owned(),
        false => format!(
            "a new connection for every {} requests",
            three_digits(1.0 / per_request)
        ),
    }
}

/// From this many new connections per request, each request counts as having its own: the first
/// connections of a load are not among them.
const EACH: f64 = 0.9;

/// What the subject with the fewest did with its connections.
fn kept_by_other(per_request: f64) -> String {
    match per_request < 0.0005 {
        true => "kept its connections".to_owned(),
        false => format!("one for every {} requests", three_digits(1.0 / per_request)),
    }
}
