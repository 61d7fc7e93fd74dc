//! Tiers, in a sentence.

use verdict::Tiers;
use verdict::text::{counted, listed};

use super::{at, metric_words};

/// `throughput, in tiers: 1. nginx; 2. HAProxy, balance (not told apart); 3. Apache.`
pub(crate) fn tiers(found: &Tiers) -> String {
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
    if !found.left_out.is_empty() {
        text.push_str(&format!("; not placed: {}", found.left_out.join(", ")));
    }
    text.push_str(&format!(" (all {})", counted(found.pairs.len(), "pair")));
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Condition;
    use verdict::{Metric, SubjectPair, TierMember};

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
}
