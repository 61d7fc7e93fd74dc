//! Compares the first answers of a group's subjects: figures of subjects that answer differently
//! cannot be compared.

use std::time::Duration;

use agent::wire::AnswerSummary;
use experiment::plan::{Group, PlannedTrial};
use experiment::{BodyCheck, Expect, LoadSpec, ResolvedCondition, SameAnswers};

/// Time after which the baseline is asked again, to see whether its answer changes by itself:
/// content such as the time of day has seconds.
pub(crate) const ASK_AGAIN_AFTER: Duration = Duration::from_millis(1_100);

const IF_IT_CHANGES: &str = "if content may change by itself, set expect.body = \"varies\" (weigh \
     compare: --expect-body varies)";

/// How alike two answers have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alike {
    /// Every byte.
    Exactly,
    /// The shorter has at least half of the longer's length: content that changes by itself, or
    /// that servers have compressed.
    Roughly,
    /// Neither is empty unless both are.
    InBeingEmpty,
}

/// How many more answers are compared where all answers of a subject should be the same.
const SAME_MORE: usize = 2;

/// What was answered to a subject's first request.
#[derive(Clone, Debug)]
pub(crate) struct FirstAnswer {
    pub(crate) planned: PlannedTrial,
    pub(crate) answer: AnswerSummary,
    /// The answer to a later request, if the subject was asked again.
    pub(crate) later: Option<AnswerSummary>,
}

/// A trial whose answer differs from the baseline's.
#[derive(Clone, Debug)]
pub(crate) struct Differing {
    pub(crate) planned: PlannedTrial,
    pub(crate) reason: String,
    /// Whether a later answer differs too, so that repeating the trial would find it again.
    pub(crate) is_lasting: bool,
}

/// The trials whose answers differ from the baseline's. `again` is the baseline's answer to a later
/// request, if it was asked again.
pub(crate) fn differing(
    expect: &Expect,
    resolved: &ResolvedCondition,
    baseline: &str,
    seen: &[FirstAnswer],
    again: Option<&AnswerSummary>,
) -> Vec<Differing> {
    let of_baseline = || seen.iter().filter(|one| one.planned.subject == baseline);
    let first = of_baseline().find(|one| !one.planned.baseline_copy);
    let Some(reference) = first.or(of_baseline().next()) else {
        return Vec::new();
    };
    if expect.same == SameAnswers::Differ {
        return Vec::new();
    }
    let path_of = |name: &str| {
        let subject = resolved.subjects.iter().find(|one| one.name == name);
        subject.map(|one| one.path.as_str())
    };
    let same_content = |one: &AnswerSummary| content(one) == content(&reference.answer);
    let varies = expect.body == BodyCheck::Varies
        || again.is_some_and(|one| !same_content(one))
        || !of_baseline().all(|one| same_content(&one.answer));
    let mut found = Vec::new();
    for one in seen {
        let (planned, answer) = (&one.planned, &one.answer);
        let one_path = path_of(&planned.subject) == path_of(baseline);
        let is_coded = !answer.coding.is_empty() || !reference.answer.coding.is_empty();
        let wanted = match expect.same {
            SameAnswers::Auto if !one_path => Alike::InBeingEmpty,
            _ if varies || is_coded => Alike::Roughly,
            _ => Alike::Exactly,
        };
        let differs = |answer: &AnswerSummary| !alike(wanted, &reference.answer, answer);
        if differs(answer) {
            found.push(Differing {
                planned: planned.clone(),
                reason: reason(baseline, &reference.answer, one),
                is_lasting: one.later.as_ref().is_some_and(differs),
            });
        }
    }
    found
}

/// How many more answers of a subject are compared with its first one, as the experiment says that
/// they are all the same.
pub(crate) fn repeats_for_same_body(expect: &Expect) -> usize {
    match expect.body {
        BodyCheck::Same if expect.contains.is_none() => SAME_MORE,
        _ => 0,
    }
}

/// How many more answers of a group's subject are needed once it has answered. Without the baseline
/// beside it, its servers are gone when answers are compared.
pub(crate) fn repeats_needed(expect: &Expect, baseline: &str, group: &Group) -> usize {
    let has_baseline = group.trials.iter().any(|one| one.subject == baseline);
    repeats_for_same_body(expect).max(usize::from(!has_baseline))
}

/// Why a subject cannot be measured whose answers should all be the same; `None` if they are.
pub(crate) fn changing_answers_reason(
    expect: &Expect,
    answers: &[AnswerSummary],
) -> Option<String> {
    if repeats_for_same_body(expect) == 0 {
        return None;
    }
    let (first, others) = answers.split_first()?;
    let other = others.iter().find(|one| content(one) != content(first))?;
    let difference = match other.body_bytes == first.body_bytes {
        true => format!(
            "the content of its answers changes from request to request, with the same length of {} \
             bytes",
            first.body_bytes
        ),
        false => format!(
            "the length of its answers changes from request to request ({} and {} bytes)",
            first.body_bytes, other.body_bytes
        ),
    };
    Some(format!(
        "{difference}, but expect.body = \"same\" says that all are the same; {IF_IT_CHANGES}"
    ))
}

/// A warning of an empty page, unless the experiment says what its content is. A server may answer
/// every request like that if it does not know the host name.
pub(crate) fn empty_page(
    expect: &Expect,
    load: &LoadSpec,
    subject: &str,
    host: &str,
    answer: &AnswerSummary,
) -> Option<String> {
    let is_expected = expect.contains.is_some() || expect.body != BodyCheck::Auto;
    if load.method != "GET" || answer.status != 200 || answer.body_bytes > 0 || is_expected {
        return None;
    }
    let mut fields = load.headers.iter();
    let given = fields.find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = given.map_or(host, |(_, value)| value);
    Some(format!(
        "`{subject}` answers with status 200 and an empty body: its server may not know the host \
         name `{host}`. `Host` in load.headers (--header of compare) sets another name, \
         expect.contains (--expect-contains) says what the page contains; if the empty page is right, \
         expect.body = \"same\" (--expect-body same) says so"
    ))
}

fn content(answer: &AnswerSummary) -> (u64, u64) {
    (answer.body_bytes, answer.body_hash)
}

fn alike(wanted: Alike, a: &AnswerSummary, b: &AnswerSummary) -> bool {
    let (short, long) = (
        a.body_bytes.min(b.body_bytes),
        a.body_bytes.max(b.body_bytes),
    );
    match wanted {
        Alike::Exactly => content(a) == content(b),
        Alike::Roughly => 2 * short >= long,
        Alike::InBeingEmpty => (short == 0) == (long == 0),
    }
}

fn reason(baseline: &str, reference: &AnswerSummary, other: &FirstAnswer) -> String {
    let name = match other.planned.baseline_copy {
        true => "its second copy".to_owned(),
        false => format!("`{}`", other.planned.subject),
    };
    let difference = match other.answer.body_bytes == reference.body_bytes {
        true => format!(
            "as long as that of the baseline `{baseline}`, {} bytes, but with other content",
            reference.body_bytes
        ),
        false => format!(
            "{} bytes long, and that of the baseline `{baseline}` {} bytes",
            other.answer.body_bytes, reference.body_bytes
        ),
    };
    // Otherwise that would not be enough.
    let may_change = match alike(Alike::Roughly, reference, &other.answer) {
        true => format!("{IF_IT_CHANGES}; "),
        false => String::new(),
    };
    format!(
        "the answer of {name} to its first request is {difference}; {may_change}if they should differ, \
         set expect.same = false (weigh compare: --same=false)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Experiment, Recipes};

    fn seen(subject: &str, baseline_copy: bool, body: &str) -> FirstAnswer {
        FirstAnswer {
            planned: PlannedTrial {
                trial: 1,
                subject: subject.to_owned(),
                baseline_copy,
            },
            answer: AnswerSummary {
                status: 200,
                body_bytes: body.len() as u64,
                body_hash: body.bytes().map(u64::from).sum(),
                coding: String::new(),
            },
            later: None,
        }
    }

    /// The reasons where `b` is asked for this path, and `a` for `/`.
    fn reasons(path: &str, expect: &str, seen: &[FirstAnswer], again: Option<&str>) -> Vec<String> {
        let text = format!(
            "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n\
             b = \"http://127.0.0.1:2{path}\"\n[expect]\n{expect}\n"
        );
        let recipes = Recipes::embedded().unwrap();
        let experiment = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
        let resolved = experiment.under(&Default::default());
        let again = again.map(|body| self::seen("a", false, body).answer);
        let found = differing(&experiment.expect, &resolved, "a", seen, again.as_ref());
        found.into_iter().map(|one| one.reason).collect()
    }

    #[test]
    fn other_lengths_and_other_content_are_named_with_both_subjects() {
        let empty = [seen("b", false, ""), seen("a", false, "hello")];
        let found = reasons("/", "", &empty, None);
        assert!(found[0].contains("`b`") && found[0].contains("is 0 bytes long"));
        assert!(found[0].contains("baseline `a` 5 bytes"), "{found:?}");
        assert!(!found[0].contains("varies"), "not enough: {found:?}");
        let other = [seen("a", false, "hello"), seen("b", false, "hallo")];
        let found = reasons("/", "", &other, None);
        assert!(found[0].contains("other content"), "{found:?}");
        assert!(found[0].contains("--expect-body varies"), "{found:?}");
        let same = [seen("a", false, "hello"), seen("b", false, "hello")];
        assert!(reasons("/", "", &same, None).is_empty());
    }

    #[test]
    fn subjects_may_differ_where_the_experiment_says_so() {
        let other = [seen("a", false, "hello"), seen("b", false, "goodbye")];
        assert!(reasons("/", "same = false", &other, None).is_empty());
        assert!(reasons("/b", "", &other, None).is_empty(), "other paths");
        assert_eq!(reasons("/b", "same = true", &other, None).len(), 1);
        let empty = [seen("a", false, "hello"), seen("b", false, "")];
        assert_eq!(reasons("/b", "", &empty, None).len(), 1);
    }

    #[test]
    fn content_that_changes_by_itself_is_compared_by_its_rough_length() {
        let other = [
            seen("a", false, "at 10:00:01"),
            seen("b", false, "at 10:00:2"),
        ];
        assert_eq!(reasons("/", "", &other, None).len(), 1);
        assert!(reasons("/", "", &other, Some("at 10:00:03")).is_empty());
        assert!(reasons("/", "body = \"varies\"", &other, None).is_empty());
        let short = [seen("a", false, "at 10:00:01"), seen("b", false, "at")];
        assert_eq!(reasons("/", "", &short, Some("at 10:00:03")).len(), 1);
        // The port of a copy in its answer.
        let copy = [
            seen("a", true, "port 2"),
            seen("a", false, "port 1"),
            seen("b", false, "port 3"),
        ];
        assert!(reasons("/", "", &copy, None).is_empty());
    }

    #[test]
    fn a_page_without_content_is_doubted_unless_the_experiment_says_that_it_is_right() {
        let warning = |more: &str, answer: AnswerSummary| {
            let text = format!("title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n{more}\n");
            let recipes = Recipes::embedded().unwrap();
            let experiment = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
            let resolved = experiment.under(&Default::default());
            empty_page(
                &experiment.expect,
                &resolved.load,
                "a",
                "127.0.0.1:1",
                &answer,
            )
        };
        let empty = || seen("a", false, "").answer;
        let text = warning("", empty()).unwrap();
        assert!(
            text.contains("`a` answers with status 200 and an empty body"),
            "{text}"
        );
        assert!(text.contains("the host name `127.0.0.1:1`"), "{text}");
        let named = "[load]\nheaders = { Host = \"example.test\" }";
        assert!(warning(named, empty()).unwrap().contains("`example.test`"));
        assert_eq!(warning("", seen("a", false, "hello").answer), None);
        let other = AnswerSummary {
            status: 204,
            ..empty()
        };
        assert_eq!(warning("[expect]\nstatus = 204", other), None);
        for expected in [
            "[expect]\nbody = \"same\"",
            "[expect]\nbody = \"varies\"",
            "[load]\nmethod = \"HEAD\"",
        ] {
            assert_eq!(warning(expected, empty()), None, "{expected}");
        }
    }
}
