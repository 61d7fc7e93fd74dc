//! Subjects by place, in a sentence.

use crate::{PairWithheld, SubjectPair, Tiers};
use readings::text::counted;

use crate::metric::words::metric_words;
use crate::metric::words::shown_change;
use readings::at_condition as at;
use readings::text::joined;

/// A place that the evidence leaves open: `2`, `2-3`.
pub fn place((best, worst): (usize, usize)) -> String {
    match best == worst {
        true => best.to_string(),
        false => format!("{best}-{worst}"),
    }
}

/// The most pairs that are given with their figures for one reason.
const PAIRS_SHOWN: usize = 3;

/// `throughput, by place: 1 nginx, 2-3 HAProxy, 2-3 balance, 4 Apache.`
pub fn tiers(found: &Tiers) -> String {
    let mut text = format!(
        "{}{}",
        metric_words(found.metric, &found.condition, None),
        at(&found.condition)
    );
    let places: Vec<(usize, usize)> = found.places().into_iter().map(|(_, at)| at).collect();
    let all = (1, found.subjects.len());
    if !places.is_empty() && places.iter().all(|one| *one == all) {
        let names = found.subjects.iter().map(|one| one.subject.clone());
        let names: Vec<String> = names.collect();
        text.push_str(&format!(
            ": no subject is told apart from another ({})",
            names.join(", ")
        ));
    } else {
        let each = found.places().into_iter();
        let each = each.map(|(subject, at)| format!("{} {subject}", place(at)));
        text.push_str(&format!(
            ", by place: {}",
            each.collect::<Vec<_>>().join(", ")
        ));
    }
    for reason in [
        PairWithheld::Correction,
        PairWithheld::Blocks,
        PairWithheld::ClientLimit,
        PairWithheld::Comparison,
        PairWithheld::ClientLag,
        PairWithheld::FailedStarts,
        PairWithheld::SliceBias,
        PairWithheld::NoiseFloor,
    ] {
        text.push_str(&withheld(found, reason));
    }
    if !found.left_out.is_empty() {
        text.push_str(&format!("; not placed: {}", found.left_out.join(", ")));
    }
    text.push_str(&format!(" (all {})", counted(found.pairs.len(), "pair")));
    text + "."
}

/// `; significant alone, but not after the correction for 4 pairs: haproxy against
/// nginx (4 times [3, 6])`; nothing without such pairs.
fn withheld(found: &Tiers, reason: PairWithheld) -> String {
    let pairs = found.pairs.iter();
    let pairs: Vec<&SubjectPair> = pairs.filter(|one| one.withheld == Some(reason)).collect();
    if pairs.is_empty() {
        return String::new();
    }
    let why = match reason {
        PairWithheld::Correction => format!(
            "significant alone, but not after the correction for {}",
            counted(found.pairs.len(), "pair")
        ),
        PairWithheld::Blocks => {
            "significant, but withheld because blocks are skewed or a few of them decide".to_owned()
        }
        PairWithheld::ClientLimit => {
            "withheld because the client limited the one that seems slower".to_owned()
        }
        PairWithheld::Comparison => {
            "withheld because the comparison with the baseline came to no difference".to_owned()
        }
        PairWithheld::ClientLag => {
            "withheld because the client's own lag is part of the latency, and without it they are not \
             told apart"
                .to_owned()
        }
        PairWithheld::FailedStarts => {
            "withheld because the one that seems better failed to start more often".to_owned()
        }
        PairWithheld::SliceBias => {
            "withheld because the length of the slices biases the ratio".to_owned()
        }
        PairWithheld::NoiseFloor => {
            "withheld because the baseline differs from itself by as much".to_owned()
        }
    };
    let (shown, more) = pairs.split_at(pairs.len().min(PAIRS_SHOWN));
    let shown = joined(shown, |one| {
        let interval = one.low.zip(one.high);
        let change = one.ratio.map(|ratio| shown_change(ratio, interval));
        let change = change.map_or_else(String::new, |change| format!(" ({change})"));
        format!("{} against {}{change}", one.first, one.second)
    });
    let more = match more.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!("; {why}: {shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, SubjectPair, TierMember};
    use readings::Condition;
    use testing::Text as _;

    /// Subjects, the best first, of which these pairs are told apart.
    fn found(subjects: &[&str], apart: &[(&str, &str)], left_out: &[&str]) -> Tiers {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let mut pairs = Vec::new();
        for (at, first) in subjects.iter().enumerate() {
            pairs.extend(subjects[at + 1..].iter().map(|second| SubjectPair {
                first: (*first).to_owned(),
                second: (*second).to_owned(),
                ratio: None,
                low: None,
                high: None,
                blocks: 0,
                p_value: None,
                p_adjusted: None,
                told_apart: apart.contains(&(first, second)),
                withheld: None,
            }));
        }
        let member = |name: &&str| TierMember {
            subject: (*name).to_owned(),
            tiers: Vec::new(),
        };
        Tiers {
            condition: Condition::from([("connections".to_owned(), "96".to_owned())]),
            metric: Metric::RequestsPerS,
            tiers: Vec::new(),
            subjects: subjects.iter().map(member).collect(),
            left_out: owned(left_out),
            pairs,
        }
    }

    #[test]
    fn a_place_is_as_wide_as_the_evidence_leaves_it() {
        let apart = [
            ("nginx", "HAProxy"),
            ("nginx", "balance"),
            ("nginx", "Apache"),
            ("HAProxy", "Apache"),
        ];
        assert_eq!(
            tiers(&found(
                &["nginx", "HAProxy", "balance", "Apache"],
                &apart,
                &[]
            )),
            "throughput at connections=96, by place: 1 nginx, 2-3 HAProxy, 2-4 balance, 3-4 Apache \
             (all 6 pairs)."
        );
        assert_eq!(
            tiers(&found(&["nginx", "HAProxy"], &[], &["lighttpd"])),
            "throughput at connections=96: no subject is told apart from another (nginx, HAProxy); \
             not placed: lighttpd (all 1 pair)."
        );
    }

    #[test]
    fn a_large_difference_that_is_not_told_apart_has_its_reason() {
        let mut one = found(&["nginx", "Apache", "HAProxy", "squid"], &[], &[]);
        one.pairs.truncate(4);
        for pair in &mut one.pairs {
            (pair.ratio, pair.low, pair.high) = (Some(3.974), Some(2.618), Some(6.034));
            pair.withheld = Some(PairWithheld::Correction);
        }
        one.pairs[3].withheld = Some(PairWithheld::ClientLimit);
        let text = tiers(&one);
        let of = "(4 times [3, 6])";
        let expected = format!(
            "; significant alone, but not after the correction for 4 pairs: \
             nginx against Apache {of}, nginx against HAProxy {of}, nginx against squid {of}; \
             withheld because the client limited the one that seems slower: Apache against HAProxy \
             {of} (all 4 pairs)."
        );
        assert!(text.ends_with(&expected), "{text}");
        for pair in &mut one.pairs {
            pair.withheld = Some(PairWithheld::Correction);
        }
        tiers(&one).has("6]) and 1 more (all");
    }
}
