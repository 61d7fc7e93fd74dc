//! Plans are complete, balanced, in random order, and the same for the same seed.

use std::collections::BTreeSet;
use testing::Text as _;

use crate::support::{GOOD, assert_shown, good, parse, parse_set, recipes, rendered};
use experiment::plan::Plan;
use experiment::{Experiment, catalogue};

fn orders(plan: &Plan) -> BTreeSet<Vec<(String, bool)>> {
    plan.groups()
        .map(|(_, group)| {
            group
                .trials
                .iter()
                .map(|planned| (planned.subject.clone(), planned.baseline_copy))
                .collect()
        })
        .collect()
}

#[test]
fn every_block_holds_every_condition_and_every_subject_once() {
    let experiment = good(parse(GOOD));
    let plan = Plan::new(&experiment, 7);
    assert_eq!(plan.blocks.len(), 10);
    assert_eq!(plan.trials(), 10 * 2 * 3);
    let mut trial = 0;
    for (at, block) in plan.blocks.iter().enumerate() {
        assert_eq!(block.number as usize, at + 1);
        let mut conditions: Vec<_> = block.groups.iter().map(|g| &g.condition).collect();
        conditions.sort();
        let mut declared: Vec<_> = plan.conditions.iter().collect();
        declared.sort();
        assert_eq!(conditions, declared);
        for group in &block.groups {
            let mut trials: Vec<_> = group
                .trials
                .iter()
                .map(|planned| (planned.subject.as_str(), planned.baseline_copy))
                .collect();
            trials.sort_unstable();
            assert_eq!(
                trials,
                [("direct", false), ("direct", true), ("lighttpd", false)]
            );
            for planned in &group.trials {
                trial += 1;
                assert_eq!(planned.trial, trial);
            }
        }
    }
}

#[test]
fn the_seed_alone_makes_the_order() {
    let experiment = good(parse(GOOD));
    assert_eq!(Plan::new(&experiment, 1), Plan::new(&experiment, 1));
    assert_ne!(Plan::new(&experiment, 1), Plan::new(&experiment, 2));
}

#[test]
fn no_order_is_preferred() {
    let experiment = good(parse_set(GOOD, &[("design.blocks", "300")]));
    let plan = Plan::new(&experiment, 11);
    assert_eq!(orders(&plan).len(), 6, "all orders of three trials occur");
    let groups = plan.groups().count() as f64;
    for (subject, again) in [("direct", false), ("direct", true), ("lighttpd", false)] {
        let first = plan
            .groups()
            .filter(|(_, g)| g.trials[0].subject == subject && g.trials[0].baseline_copy == again)
            .count() as f64;
        // 600 groups: a third comes first, give or take four standard errors.
        let share = first / groups;
        assert!(
            (share - 1.0 / 3.0).abs() < 0.08,
            "{subject} {again}: {share}"
        );
    }
    let first = plan
        .blocks
        .iter()
        .filter(|block| block.groups[0].condition["connections"] == "96")
        .count();
    assert!(
        (100..=200).contains(&first),
        "96 comes first in {first} of 300 blocks"
    );
}

/// A run that goes on with `--resume` makes its plan again: another order for the same seed would
/// spoil it. This fails when a change, or another version of the random generator, does that.
#[test]
fn an_order_stays_what_it_was() {
    let plan = Plan::new(&good(parse(GOOD)), 42);
    assert_shown("plan", &plan.describe(&[]));
}

#[test]
fn servers_start_after_their_upstreams_and_only_when_needed() {
    let text = include_str!("plan/servers.toml");
    let experiment = good(parse(text));
    let plan = Plan::new(&experiment, 1);
    assert_eq!(plan.servers, ["origin", "middle", "front"]);
    assert_eq!(plan.unused_servers, ["idle"]);
    let setting = experiment.under(&plan.conditions[0]);
    assert_eq!(setting.subjects[0].through, ["front", "middle", "origin"]);
    assert_eq!(setting.subjects[1].through, ["origin"]);
}

#[test]
fn what_is_missing_is_said() {
    let plan = Plan::new(&good(parse(GOOD)), 1);
    let text = plan.describe(&["lighttpd is not installed: `apt-get install lighttpd`".to_owned()]);
    text.has("not ready to run:\n  lighttpd is not installed");
}

/// The catalogue's quick runs keep their promise of a minute or so.
#[test]
fn the_catalogue_takes_as_long_as_it_says() {
    let estimate = |name: &str, quick| {
        let experiment: Experiment = good(catalogue::open_experiment(name, &[], quick, recipes()));
        Plan::new(&experiment, 1).estimated.as_secs()
    };
    assert!((30..90).contains(&estimate("proxy-cost", true)));
    assert!((900..1800).contains(&estimate("proxy-cost", false)));
    assert!((60..120).contains(&estimate("lighttpd-proxy", true)));
    assert!((2700..7200).contains(&estimate("lighttpd-proxy", false)));
}

/// A server behind one subject, with factors.
const ONE_SUBJECT: &str = "title = \"t\"\n[servers.front]\nrecipe = \"balance\"\nupstreams = [\"back\"]\n\
     [servers.back]\nrecipe = \"origin\"\n[load]\nrate = 50\n[subjects]\na = \"http://front/\"\n";

#[test]
fn the_plan_says_what_will_be_compared() {
    let of = |more: &str| {
        let text = format!("{ONE_SUBJECT}{more}");
        Plan::new(&good(parse(&text)), 1).describe(&[])
    };
    let nothing = "\nnothing is compared: there is one subject, and no factor with two levels\n";
    for one in ["", "[factors]\nconnections = [16]\n"] {
        assert!(of(one).contains(nothing), "{}", of(one));
    }
    let factors = "[factors]\nback.threads = [1, 2]\nconnections = [16, 64]\n";
    let first = "\ncompared: the levels of back.threads of a, against 1; the levels of connections \
                 of a, against 16\n";
    assert!(of(factors).contains(first), "{}", of(factors));
    let text = format!("{ONE_SUBJECT}{factors}").replace("rate = 50", "");
    let auto = Plan::new(&good(parse(&text)), 1).compared;
    assert!(auto[0].ends_with(
        "against 1 (not by latency: each condition has a rate of its own, unless [load] has one)"
    ));
    let named = format!("{factors}[design]\nreference = {{ back.threads = 2 }}\n");
    of(&named).has("of back.threads of a, against 2;");
    let two = format!("b = \"http://back/\"\n{named}");
    let both = "\ncompared: b, against a; the levels of back.threads of each subject, against 2\n";
    assert!(of(&two).contains(both), "{}", of(&two));
}

#[test]
fn a_reference_is_a_level_of_a_factor_and_is_written_again() {
    let text = |reference: &str| {
        format!(
            "{ONE_SUBJECT}[factors]\nback.threads = [1, 2]\n[design]\nreference = {{ {reference} }}\n"
        )
    };
    for reference in ["back.threads = 2", "\"back.threads\" = \"2\""] {
        let experiment = good(parse(&text(reference)));
        assert_eq!(experiment.design.reference["back.threads"], "2");
        let again = good(parse(&experiment.to_toml()));
        assert_eq!(again.design.reference, experiment.design.reference);
    }
    for (reference, said) in [
        (
            "back.thread = 2",
            [
                "`design.reference` names an unknown factor: `back.thread`",
                "did you mean `back.threads`?",
            ],
        ),
        (
            "back.threads = 4",
            [
                "`4` is no level of the factor `back.threads`",
                "its levels are `1`, `2`",
            ],
        ),
    ] {
        let shown = rendered(&parse(&text(reference)).unwrap_err());
        for part in said.into_iter().chain([reference]) {
            assert!(shown.contains(part), "no {part:?} in\n{shown}");
        }
    }
}
