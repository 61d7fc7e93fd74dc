//! One subject under two settings: every form has what the levels come to.

use jsonschema::Validator;
use readings::{Condition, Journal, RunHeader, Trial};
use report::{PullRequest, RunFacts};
use testing::journals;
use verdict::{Verdict, analyse};

/// One subject, which carries as much as `direct` of the other tests at the first level of a setting,
/// and as much as `balance` at the second.
fn journal() -> Journal {
    let at = |level: &str| Condition::from([("nginx.upstream_keepalive".into(), level.into())]);
    let header = RunHeader {
        baseline: "nginx".into(),
        subjects: vec!["nginx".into()],
        conditions: vec![at("32"), at("0")],
        ..journals::header()
    };
    let of_level = |trial: Trial| {
        let level = match trial.subject.as_str() {
            "direct" => "32",
            "balance" => "0",
            _ => return None,
        };
        Some(Trial {
            condition: at(level),
            subject: "nginx".into(),
            ..trial
        })
    };
    Journal::of_trials(header, journals::trials().into_iter().filter_map(of_level))
}

#[test]
fn levels_stand_in_every_form() {
    let journal = journal();
    let header = &journal.header;
    let analysis = analyse(&journal);
    assert_eq!(analysis.levels[0].comparison.verdict, Verdict::Slower);
    let costs = "nginx.upstream_keepalive=0 costs 31";
    let comment = report::pull_request(&PullRequest {
        header,
        analysis: &analysis,
        unsettled_fails: false,
        machine: None,
        folder: "runs/7",
    });
    let plain = |text: String| text.replace('\\', "");
    for text in [
        report::verbose(header, &analysis, 200, false, None),
        plain(report::markdown(header, &analysis)),
        report::html(&journal, &analysis, &RunFacts::default()),
        plain(comment),
    ] {
        assert!(text.contains(costs), "no {costs:?} in\n{text}");
        assert!(!text.contains("nothing to compare"), "{text}");
    }
    let page = report::html(&journal, &analysis, &RunFacts::default());
    assert!(
        page.contains("<details id=\"proof-0\""),
        "its blocks are there"
    );
    let closing = "nginx.upstream_keepalive=0 costs ";
    assert!(page.contains(closing));
    let document = report::json(header, &analysis);
    let level = &document["levels"][0];
    assert_eq!(level["reference"], "32");
    assert_eq!(level["comparison"]["metric"], "requests_per_s");
    assert_eq!(level["comparison"]["by_block"].as_array().unwrap().len(), 6);
    let said = level["comparison"]["sentence"].as_str().unwrap();
    assert!(said.starts_with(costs), "{said}");
    let root = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/src/reference/schemas"
    );
    let schema = std::fs::read(format!("{root}/result.schema.json")).unwrap();
    let schema = serde_json::from_slice(&schema).unwrap();
    let schema: Validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<_> = schema
        .iter_errors(&document)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}
