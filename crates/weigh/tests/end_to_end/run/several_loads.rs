//! Several loads at the same time, on real servers whose true figures are known.

use serde_json::Value;

use crate::common::{Place, array, flat, has};

/// Three loads: answers after 4, 40 and 20 ms, with 4, 4 and 2 connections.
const LOADS: &str = include_str!("several_loads/experiment.toml");

fn row<'d>(document: &'d Value, subject: &str, load: &str) -> &'d Value {
    let rows = array(&document["table"]).iter();
    let mut rows = rows.filter(|row| row["subject"] == subject && row["condition"]["load"] == load);
    rows.next()
        .unwrap_or_else(|| panic!("no {load} of {subject}: {}", document["table"]))
}

#[test]
fn each_load_has_its_own_throughput_and_latency_in_every_form_of_the_report() {
    let place = Place::new();
    place.write("x.toml", LOADS);
    let document = place.run("run x.toml --format json --out r").none_failed();
    assert_eq!(
        document["trials"]["done"], 6,
        "one for each trial, not for each load"
    );
    for subject in ["a", "b"] {
        // No answer is faster than the delay, which also bounds the throughput.
        for (load, delay_us, connections) in [
            ("quick", 4e3, 4.0),
            ("slow", 40e3, 4.0),
            ("beside", 20e3, 2.0),
        ] {
            let row = row(&document, subject, load);
            let p50 = row["latency_us_p50"].as_f64().unwrap();
            let per_s = row["requests_per_s"].as_f64().unwrap();
            let most = connections * 1e6 / delay_us;
            assert!(p50 >= delay_us * 0.99, "{load}: {p50}");
            assert!(per_s > 0.0 && per_s <= most * 1.05, "{load}: {per_s}");
        }
        let p50 = |load| {
            row(&document, subject, load)["latency_us_p50"]
                .as_f64()
                .unwrap()
        };
        assert!(p50("quick") < p50("beside") && p50("beside") < p50("slow"));
        let per_s = |load| {
            row(&document, subject, load)["requests_per_s"]
                .as_f64()
                .unwrap()
        };
        assert!(per_s("quick") > per_s("slow"));
        // Each load has its own rate; the one in the background is a closed loop throughout.
        let rate = |load| row(&document, subject, load)["rate_per_s"].as_f64();
        let rates = [rate("quick"), rate("slow"), rate("beside")];
        assert_eq!(
            rates.map(|it| it.map(f64::round)),
            [Some(100.0), Some(20.0), None]
        );
    }
    let compared: Vec<&Value> = array(&document["comparisons"])
        .iter()
        .map(|one| &one["condition"]["load"])
        .collect();
    assert!(compared.iter().any(|load| *load == "quick"), "{compared:?}");
    assert!(compared.iter().any(|load| *load == "slow"), "{compared:?}");
    assert!(
        !compared.iter().any(|load| *load == "beside"),
        "{compared:?}"
    );
    let journal = place.read("r/journal.jsonl");
    has(&journal, r#""name":"beside","background":true"#);
    let shown = |form: &str| {
        let report = place.run(&format!("report r --verbose --format {form}"));
        flat(&report.expect(0).out)
    };
    for form in ["text", "md", "html"] {
        let text = shown(form);
        for load in ["load=quick", "load=slow", "load=beside"] {
            assert!(text.contains(load), "{form} without {load}: {text}");
        }
        has(
            &text,
            "background loads, whose figures are shown but not compared",
        );
    }
    let csv = shown("csv");
    has(&csv, "load_name");
    // The experiment in the run's folder can be used again.
    let again = "run r/experiment.toml --dry-run";
    place.run(again).expect(0);
}

#[test]
fn what_a_background_load_costs_is_compared_between_subjects() {
    let place = Place::new();
    // A single thread that computes for the background load keeps the others waiting.
    place.write("x.toml", include_str!("several_loads/beside_work.toml"));
    let document = place.run("run x.toml --format json --out r").result();
    let comparisons = array(&document["comparisons"]);
    let mut of_throughput = comparisons
        .iter()
        .filter(|one| one["metric"] == "requests_per_s");
    let one = of_throughput.next().unwrap();
    assert_eq!(
        (&one["subject"], &one["verdict"]),
        (&"busy".into(), &"slower".into()),
        "{one}"
    );
    assert_eq!(one["condition"]["load"], "page");
    assert!(of_throughput.next().is_none());
    let rows = array(&document["table"]).iter();
    let mut work = rows.filter(|row| row["condition"]["load"] == "work");
    assert_eq!(work.next().unwrap()["subject"], "busy");
    assert!(work.next().is_none(), "`quiet` has no such load");
}
