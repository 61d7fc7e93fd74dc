//! The warnings that change the reading, each kind once and in a line.

use std::mem::discriminant;

use readings::text::{fraction, grouped, listed, percent, rate};

use super::places::places;
use super::{kept_by_other, new_connections, setting_words};
use crate::metric::words::shown_change;
use crate::summary::ranking::words::short;
use crate::trial::lag::words::others as others_took;
use crate::trial::pauses::words::lower;
use crate::{
    NoiseFloor, Place, SettingDifference, SettingValue, SubjectRow, Warning, WarningEffect,
    with_effect,
};
use readings::text::joined;

/// The most subjects that are named with a value of a setting.
const NAMED_MAX: usize = 3;

/// What changes the answer: a line for each kind, the gravest first, each for all subjects that it is
/// true of. What is said of a figure that the `table` does not have is left out.
pub fn caveats(all: &[Warning], table: &[SubjectRow]) -> Vec<String> {
    let mut kinds: Vec<Vec<&Warning>> = Vec::new();
    let shown = |one: &&Warning| is_of_table(one, table);
    for one in with_effect(all, WarningEffect::ChangesAnswer)
        .into_iter()
        .filter(shown)
    {
        let is_its = |kind: &&mut Vec<&Warning>| {
            let is_recorded = matches!(one, Warning::Recorded { .. });
            !is_recorded && discriminant(kind[0]) == discriminant(one)
        };
        match kinds.iter_mut().find(is_its) {
            Some(kind) => kind.push(one),
            None => kinds.push(vec![one]),
        }
    }
    for kind in &mut kinds {
        kind.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    kinds.iter().filter_map(|kind| caveat(kind)).collect()
}

/// Whether it is about a figure in the table, if it is about one.
fn is_of_table(warning: &Warning, table: &[SubjectRow]) -> bool {
    let Warning::ClientPauses { at, .. } = warning else {
        return true;
    };
    let own = |row: &&SubjectRow| row.condition == at.condition && row.subject == at.subject;
    let row = table.iter().find(own);
    row.is_none_or(|row| row.latency_us_p99.is_some())
}

/// How grave it is among others of its kind.
fn size(warning: &Warning) -> f64 {
    match warning {
        Warning::RateNotKept {
            answered_per_s,
            offered_per_s,
            ..
        } => -answered_per_s / offered_per_s,
        Warning::Errors {
            failed, requests, ..
        } => *failed as f64 / *requests as f64,
        Warning::LostSyns {
            late, connections, ..
        } => *late as f64 / *connections as f64,
        Warning::SliceLength { ratio, .. } => ratio.ln().abs(),
        Warning::Drifts { found, .. } => found.late_over_early.ln().abs(),
        Warning::IdleConnections {
            busy, connections, ..
        } => -busy / *connections as f64,
        Warning::BiasedBaseline { floor, .. } => floor.ratio.ln().abs(),
        Warning::ClientPauses { found, .. } => found.p99_us,
        Warning::ConnectionsDiffer { per_request, .. } => per_request[0],
        _ => 0.0,
    }
}

/// What widens intervals, in one line; `None` where nothing does.
pub fn widening(all: &[Warning]) -> Option<String> {
    let mut causes: Vec<String> = Vec::new();
    for one in with_effect(all, WarningEffect::WidensInterval) {
        let cause = match one {
            Warning::OtherPrograms { others, .. } => others_took(others),
            Warning::WideFloor { floor, .. } => {
                format!("the baseline against itself is {}", floor_words(floor))
            }
            Warning::DependentBlocks { .. } => "blocks depend on the blocks before".to_owned(),
            Warning::Unresolved { metric, .. } => {
                format!("too few answers for {}", short(*metric))
            }
            _ => continue,
        };
        // The widest floor is enough.
        let is_floor = matches!(one, Warning::WideFloor { .. });
        let has_floor = causes.iter().any(|cause| cause.starts_with("the baseline"));
        if !(causes.contains(&cause) || is_floor && has_floor) {
            causes.push(cause);
        }
    }
    (!causes.is_empty()).then(|| {
        format!(
            "Intervals are wider than they could be: {}.",
            listed(&causes)
        )
    })
}

fn floor_words(floor: &NoiseFloor) -> String {
    let change = shown_change(floor.ratio, floor.low.zip(floor.high));
    format!("{change} in {}", short(floor.metric))
}

/// The subjects that became faster while they were measured, then those that became slower.
fn drifts(kind: &[&Warning]) -> String {
    let of = |is_faster: bool| {
        let own = kind.iter().filter_map(|one| match one {
            Warning::Drifts { at, found } if (found.late_over_early > 1.0) == is_faster => {
                Some((at, found.late_over_early))
            }
            _ => None,
        });
        let (at, ratios): (Vec<&Place>, Vec<f64>) = own.unzip();
        let first = ratios.first()?;
        let change = percent((first - 1.0).abs() * 100.0, 0, false);
        let (at, up_to) = (places(&at), if at.len() > 1 { "up to " } else { "" });
        Some(match is_faster {
            true => format!(
                "{at} still became faster while measured, by {up_to}{change} within a block: not \
                 warm; a longer warm-up helps."
            ),
            false => {
                format!("{at} became slower while measured, by {up_to}{change} within a block.")
            }
        })
    };
    let both = [true, false].into_iter().filter_map(of);
    both.collect::<Vec<_>>().join(" ")
}

/// ` (TLS_AES_128_GCM_SHA256 and TLS_AES_256_GCM_SHA384)`: what only one of two lists has.
fn different_parts(one: &str, other: &str) -> String {
    let only = |of: &str, against: &str| {
        let against: Vec<&str> = against.split(", ").collect();
        let parts = of.split(", ").filter(|part| !against.contains(part));
        parts.collect::<Vec<_>>().join(", ")
    };
    let parts = [only(one, other), only(other, one)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => String::new(),
        [part] => format!(" ({part} or none)"),
        both => format!(" ({})", both.join(" and ")),
    }
}

/// A kind of warning in a line, by its first.
fn caveat(kind: &[&Warning]) -> Option<String> {
    let at: Vec<&Place> = kind.iter().filter_map(|one| one.place()).collect();
    let at = places(&at);
    let up_to = |several: &str| match kind.len() {
        1 => String::new(),
        _ => several.to_owned(),
    };
    Some(match kind.first()? {
        Warning::Recorded { .. } => capitalised(&super::warning(kind[0])),
        Warning::BiasedBaseline { floor, matters } => format!(
            "{} differs from itself by {}, more than the margin ({}): so may everything else.",
            floor.baseline,
            floor_words(floor),
            fraction(*matters)
        ),
        Warning::RateNotKept {
            answered_per_s,
            offered_per_s,
            ..
        } => format!(
            "{at} answered {}{} of {} requests/s: the latency is that of an overload.",
            up_to("as few as "),
            rate(*answered_per_s),
            rate(*offered_per_s)
        ),
        Warning::TlsDiffers { at, other, agreed } => {
            let [one, another] = agreed.each_ref().map(|agreed| agreed.words());
            format!(
                "{} and {other} do not use the same TLS{}, which is a part of the difference.",
                at.subject,
                different_parts(&one, &another)
            )
        }
        Warning::ConnectionsDiffer {
            other, per_request, ..
        } => format!(
            "{at} needed {}{}, {other} {}: opening them is a part of the difference.",
            up_to("up to "),
            new_connections(per_request[0]),
            kept_by_other(per_request[1])
        ),
        Warning::CongestionDiffers { sides, .. } => format!(
            "{} and {} do not use the same congestion control, which may be a part of the difference.",
            sides[0].at.subject, sides[1].at.subject
        ),
        Warning::Settings { .. } => {
            let each = kind.iter().filter_map(|one| match one {
                Warning::Settings { difference, .. } => Some(format!(
                    "{} ({})",
                    setting_words(&difference.setting),
                    of_minority(difference)
                )),
                _ => None,
            });
            format!(
                "The servers differ in settings that change results a lot: {}.",
                listed(&each.collect::<Vec<_>>())
            )
        }
        Warning::AtLeast { .. } => {
            format!("The client was the bottleneck for {at}: at least that throughput.")
        }
        Warning::Errors {
            failed, requests, ..
        } => format!(
            "{}{} of {} requests to {at} failed; the latency leaves them out.",
            up_to("Up to "),
            grouped(*failed),
            grouped(*requests)
        ),
        Warning::Drifts { .. } => drifts(kind),
        Warning::Unsettled { .. } => {
            format!("{at} had no steady state: a longer warm-up or window is needed.")
        }
        Warning::SliceLength { ratio, .. } => format!(
            "The length of slices changes the throughput of {at} by {}{}: lengthen design.slice.",
            up_to("up to "),
            percent((1.0 / ratio - 1.0) * 100.0, 1, true)
        ),
        Warning::Handshakes { .. } => {
            format!("The answers of {at} were upgrades: these are handshakes, not messages.")
        }
        Warning::IdleConnections {
            busy, connections, ..
        } => format!(
            "The connections of {at} stood still for {}{} of the time.",
            up_to("up to "),
            percent((1.0 - busy / *connections as f64) * 100.0, 0, false)
        ),
        Warning::LostSyns {
            late, connections, ..
        } => format!(
            "{}{} of {} connections to {at} lost their first SYN.",
            up_to("Up to "),
            grouped(*late),
            grouped(*connections)
        ),
        Warning::ClientPauses { found, .. } => match found.p99_us_without {
            Some(without) => format!(
                "The client's CPU paused: without that p99 of {at} is {}.",
                lower(found.p99_us, without)
            ),
            None => format!(
                "The client's CPU paused so often that p99 of {at} shows the client, not the server."
            ),
        },
        Warning::UncountedCpu(servers) => format!(
            "CPU time of {} may be incomplete (root, or a control group, has all of it).",
            joined(servers, |name| format!("`{name}`"))
        ),
        Warning::DependentBlocks { .. }
        | Warning::WideFloor { .. }
        | Warning::OtherPrograms { .. }
        | Warning::SteadyStateUnchecked { .. }
        | Warning::Unresolved { .. }
        | Warning::UncountedUpstreams { .. } => return None,
    })
}

/// The values that most subjects do not have, those of the fewest subjects first: `256 of apache`. All of
/// them where no value is that of most.
fn of_minority(difference: &SettingDifference) -> String {
    let mut values: Vec<&SettingValue> = difference.values.iter().collect();
    values.sort_by_key(|one| one.subjects.len());
    let count: usize = values.iter().map(|one| one.subjects.len()).sum();
    if values
        .last()
        .is_some_and(|most| 2 * most.subjects.len() > count)
    {
        values.pop();
    }
    let named = |one: &&SettingValue| match one.subjects.as_slice() {
        some if some.len() <= NAMED_MAX => format!("{} of {}", one.value, some.join(", ")),
        all => {
            let named = all[..NAMED_MAX - 1].join(", ");
            let more = all.len() + 1 - NAMED_MAX;
            format!("{} of {named} and {more} more", one.value)
        }
    };
    joined(&values, named)
}

/// Capitalises what the run recorded. Other caveats may begin with the name of a subject, which stays
/// as it is.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::warnings::words::warnings;
    use crate::{CpusOfOthers, Metric, ResolvedBy};
    use readings::Condition;
    use testing::Text as _;

    fn place(subject: &str, level: &str) -> Place {
        Place {
            subject: subject.into(),
            condition: Condition::from([("connections".to_owned(), level.to_owned())]),
        }
    }

    fn unresolved(subject: &str, level: &str, blocks: usize) -> Warning {
        Warning::Unresolved {
            at: place(subject, level),
            metric: Metric::LatencyUsP99,
            known: None,
            resolved_by: Some(ResolvedBy {
                window_s: 12.0,
                blocks,
            }),
        }
    }

    #[test]
    fn what_differs_of_tls_is_named_once_for_all_conditions() {
        let agreed = |suite: &str| readings::Negotiated {
            version: "1.3".into(),
            suite: suite.into(),
            group: None,
            alpn: None,
            key: None,
            sessions: 3,
        };
        let of = |level: &str| Warning::TlsDiffers {
            at: place("a", level),
            other: "b".into(),
            agreed: [agreed("X"), agreed("Y")],
        };
        let (one, other) = (of("8"), of("32"));
        assert_eq!(
            caveat(&[&one, &other]).as_deref(),
            Some("a and b do not use the same TLS (X and Y), which is a part of the difference.")
        );
    }

    #[test]
    fn what_is_true_of_several_is_said_once() {
        let all = [
            unresolved("a", "8", 3),
            unresolved("b", "8", 3),
            unresolved("b", "16", 3),
            unresolved("a", "16", 3),
            unresolved("c", "16", 2),
        ];
        let said = warnings(&all);
        assert_eq!(said.len(), 2, "{said:?}");
        said[0].begins(
            "the 99th percentile of latency of a and b at connections=16; connections=8 is \
                 not compared",
        );
        said[1].has(" of c at connections=16 is not compared");
        assert_eq!(
            widening(&all).unwrap(),
            "Intervals are wider than they could be: too few answers for p99."
        );
        assert!(caveats(&all, &[]).is_empty());
    }

    #[test]
    fn a_subject_keeps_its_name_at_the_beginning_of_a_caveat() {
        let closes = Warning::ConnectionsDiffer {
            at: Place {
                subject: "off".into(),
                condition: Condition::new(),
            },
            other: "on".into(),
            per_request: [0.954, 0.0],
        };
        let recorded = Warning::Recorded {
            text: "a block takes long".into(),
            trials: 1,
        };
        assert_eq!(
            caveats(&[recorded, closes], &[]),
            [
                "off needed a new connection for each request, on kept its connections: opening them \
                 is a part of the difference.",
                "A block takes long"
            ]
        );
    }

    #[test]
    fn nothing_is_said_of_a_p99_that_the_table_does_not_have() {
        use crate::WithoutPauses;
        use crate::fixtures::{closed, header, in_closed};
        let only_closed = in_closed(1, "a", closed(1_000.0));
        let table = crate::analyse(&readings::Journal::new(
            header(1),
            vec![readings::JournalRow::Trial(Box::new(only_closed))],
        ))
        .table;
        assert_eq!(table[0].latency_us_p99, None);
        let paused = Warning::ClientPauses {
            at: Place {
                subject: table[0].subject.clone(),
                condition: table[0].condition.clone(),
            },
            found: WithoutPauses {
                pauses: 160,
                longest_ms: 8.2,
                share_left_out: 0.23,
                section_s: 0.1,
                p99_us: 9_410.0,
                p99_us_without: Some(1_200.0),
            },
        };
        let all = [paused];
        assert_eq!(caveats(&all, &[]).len(), 1);
        assert!(caveats(&all, &table).is_empty());
    }

    #[test]
    fn of_settings_the_odd_ones_are_named() {
        let differ = |setting: &str, values: &[(&str, &[&str])]| Warning::Settings {
            difference: SettingDifference {
                setting: setting.to_owned(),
                values: values
                    .iter()
                    .map(|(value, subjects)| SettingValue {
                        value: (*value).to_owned(),
                        subjects: subjects.iter().map(|one| (*one).to_owned()).collect(),
                    })
                    .collect(),
            },
            conditions: Vec::new(),
        };
        let all = [
            differ(
                "workers",
                &[("1", &["nginx", "caddy", "envoy"]), ("256", &["apache"])],
            ),
            differ(
                "keepalive_client",
                &[("on", &["nginx"]), ("off", &["lighttpd"])],
            ),
            differ(
                "access_log",
                &[
                    ("on", &["a", "b", "c", "d", "e"]),
                    ("off", &["f", "g", "h", "i", "j"]),
                ],
            ),
        ];
        assert_eq!(
            caveats(&all, &[]),
            [
                "The servers differ in settings that change results a lot: workers (256 of apache), \
                 keep-alive to clients (on of nginx, off of lighttpd) and access log (on of a, b and 3 \
                 more, off of f, g and 3 more)."
            ]
        );
    }

    #[test]
    fn sixty_of_a_kind_are_one_line() {
        let many = |number: usize| Warning::RateNotKept {
            at: place(&format!("s{number}"), "8"),
            answered_per_s: 3_000.0 + number as f64,
            offered_per_s: 5_000.0,
        };
        let all: Vec<Warning> = (0..60).map(many).collect();
        assert_eq!(
            caveats(&all, &[]),
            [
                "60 subjects at connections=8 answered as few as 3,000 of 5,000 requests/s: the \
                 latency is that of an overload."
            ]
        );
        assert_eq!(widening(&all), None);
        let others = CpusOfOthers {
            cpus: 0.5,
            of_cpus: 2,
        };
        let busy = [Warning::OtherPrograms {
            others,
            least_difference: None,
        }];
        assert_eq!(
            widening(&busy).unwrap(),
            "Intervals are wider than they could be: other programs and the hypervisor took 0.5 of \
             the machine's 2 CPUs."
        );
    }
}
