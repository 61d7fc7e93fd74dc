//! Tiers, in a sentence.

use crate::{PairWithheld, SubjectPair, Tiers};
use readings::text::{counted, listed};

use crate::metric::words::metric_words;
use crate::metric::words::shown_change;
use readings::at_condition as at;
use readings::text::joined;

/// The most pairs that are given with their figures for one reason.
const PAIRS_SHOWN: usize = 3;

/// `throughput, in tiers: 1. nginx; 2. HAProxy, balance (not told apart); 3. Apache.`
pub fn tiers(found: &Tiers) -> String {
    let mut text = format!(
        "{}{}",
        metric_words(found.metric, &found.condition, None),
        at(&found.condition)
    );
    match found.tiers.as_slice() {
        [one] => text.push_str(&format!(
            ": no subject is told apart from another ({})",
            one.join(", ")
        )),
        several => {
            let tier = |(number, subjects): (usize, &Vec<String>)| match subjects.len() {
                1 => format!("{number}. {}", subjects[0]),
                _ => format!("{number}. {} (not told apart)", subjects.join(", ")),
            };
            let all: Vec<String> = (1..).zip(several).map(tier).collect();
            text.push_str(&format!(", in tiers: {}", all.join("; ")));
        }
    }
    let overlapping = found.subjects.iter().filter(|one| one.tiers.len() > 1);
    for one in overlapping {
        let numbers: Vec<String> = one.tiers.iter().map(usize::to_string).collect();
        text.push_str(&format!(
            "; {} is in tiers {}: different from no subject there",
            one.subject,
            listed(&numbers)
        ));
    }
    for reason in [
        PairWithheld::Correction,
        PairWithheld::Blocks,
        PairWithheld::ClientLimit,
        PairWithheld::Comparison,
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

    fn found(tiers: &[&[&str]], left_out: &[&str]) -> Tiers {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let mut subjects: Vec<TierMember> = Vec::new();
        for (number, names) in (1..).zip(tiers) {
            for name in *names {
                match subjects.iter_mut().find(|one| one.subject == *name) {
                    Some(one) => one.tiers.push(number),
                    None => subjects.push(TierMember {
                        subject: (*name).to_owned(),
                        tiers: vec![number],
                    }),
                }
            }
        }
        let pair = SubjectPair {
            first: "nginx".into(),
            second: "Apache".into(),
            ratio: None,
            low: None,
            high: None,
            blocks: 0,
            p_value: None,
            p_adjusted: None,
            told_apart: true,
            withheld: None,
        };
        Tiers {
            condition: Condition::from([("connections".to_owned(), "96".to_owned())]),
            metric: Metric::RequestsPerS,
            tiers: tiers.iter().map(|names| owned(names)).collect(),
            subjects,
            left_out: owned(left_out),
            pairs: vec![pair; 6],
        }
    }

    #[test]
    fn a_tier_says_that_its_subjects_are_not_told_apart() {
        assert_eq!(
            tiers(&found(
                &[&["nginx"], &["HAProxy", "balance"], &["Apache"]],
                &[]
            )),
            "throughput at connections=96, in tiers: 1. nginx; 2. HAProxy, balance (not told \
             apart); 3. Apache (all 6 pairs)."
        );
        assert_eq!(
            tiers(&found(&[&["nginx", "HAProxy"]], &["lighttpd"])),
            "throughput at connections=96: no subject is told apart from another (nginx, HAProxy); \
             not placed: lighttpd (all 6 pairs)."
        );
        let overlapping = tiers(&found(
            &[&["nginx", "HAProxy"], &["HAProxy", "Apache"]],
            &[],
        ));
        let expected = "; HAProxy is in tiers 1 and 2: different from no subject there (all";
        assert!(overlapping.contains(expected), "{overlapping}");
    }
    #[test]
    fn a_large_difference_that_is_not_told_apart_has_its_reason() {
        let mut one = found(&[&["nginx", "Apache"], &["Apache", "HAProxy"]], &[]);
        one.pairs.truncate(4);
        for pair in &mut one.pairs {
            (pair.ratio, pair.low, pair.high) = (Some(3.974), Some(2.618), Some(6.034));
            (pair.told_apart, pair.withheld) = (false, Some(PairWithheld::Correction));
        }
        one.pairs[3].withheld = Some(PairWithheld::ClientLimit);
        let text = tiers(&one);
        let pair = "nginx against Apache (4 times [3, 6])";
        let expected = format!(
            "; significant alone, but not after the correction for 4 pairs: \
             {pair}, {pair}, {pair}; withheld because the client limited the one that seems \
             slower: {pair} (all 4 pairs)."
        );
        assert!(text.ends_with(&expected), "{text}");
        for pair in &mut one.pairs {
            pair.withheld = Some(PairWithheld::Correction);
        }
        assert!(
            tiers(&one).contains("6]) and 1 more (all"),
            "{}",
            tiers(&one)
        );
    }
}
