//! The formats of other programs, read by the rules of each.

use std::collections::BTreeSet;
use testing::Text as _;

use readings::{Condition, Journal, JournalRow, RunHeader};
use report::{Better, bencher, github, openmetrics, otava};
use serde_json::{Value, json as object};
use verdict::{Analysis, analyse};

fn runs() -> Vec<(RunHeader, Analysis)> {
    let stored = |name: &str| {
        let path = format!("{}/tests/journals/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        Journal::parse(&std::fs::read(path).unwrap()).unwrap()
    };
    let mut odd = testing::journals::journal();
    let name = "bal\"an,ce\\\n=1";
    odd.header.subjects[1] = name.into();
    odd.header.label = Some("=nightly, \"x\"".into());
    for condition in &mut odd.header.conditions {
        *condition = renamed(condition);
    }
    for row in &mut odd.rows {
        if let JournalRow::Trial(trial) = row {
            trial.condition = renamed(&trial.condition);
            if trial.subject == "balance" {
                trial.subject = name.into();
            }
        }
    }
    let made = testing::journals::journal();
    let all = [
        stored("loops"),
        stored("events"),
        stored("hosts"),
        made,
        odd,
    ];
    let analysed = all.into_iter().map(|journal| {
        let analysis = analyse(&journal);
        (journal.header, analysis)
    });
    analysed.collect()
}

/// The condition with a factor whose name no label can have.
fn renamed(condition: &Condition) -> Condition {
    let factors = condition.iter();
    let factors = factors.map(|(name, level)| (format!("{name} of-all"), level.clone()));
    factors.collect()
}

#[test]
fn bencher_has_measures_with_a_value_between_its_ends() {
    for (header, analysis) in runs() {
        let document = bencher(&header, &analysis);
        let benchmarks = document.as_object().unwrap();
        // A subject all of whose trials are invalid has no figure.
        assert!(!benchmarks.is_empty() && benchmarks.len() <= analysis.table.len());
        for (name, measures) in benchmarks {
            assert!(!name.is_empty() && name.len() <= 1024, "{name}");
            let measures = measures.as_object().unwrap();
            assert!(!measures.is_empty(), "{name}");
            for (slug, values) in measures {
                let is_slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                assert!(slug.len() <= 64 && slug.chars().all(is_slug), "{slug}");
                let end = |key: &str| values.get(key).map(|value| value.as_f64().unwrap());
                let value = end("value").unwrap();
                assert!(
                    end("lower_value").is_none_or(|low| low <= value),
                    "{values}"
                );
                assert!(
                    end("upper_value").is_none_or(|high| high >= value),
                    "{values}"
                );
                for key in values.as_object().unwrap().keys() {
                    assert!(["value", "lower_value", "upper_value"].contains(&key.as_str()));
                }
            }
        }
    }
}

#[test]
fn values_and_ends_are_those_of_the_ranking() {
    let journal = testing::journals::journal();
    let analysis = analyse(&journal);
    let document = bencher(&journal.header, &analysis);
    let row = &analysis.rankings[0].rows[1];
    assert_eq!(row.subject, "balance");
    let expected = object!({"value": row.value, "lower_value": row.low, "upper_value": row.high});
    let balance = &document["proxy-cost/balance/connections=96"];
    assert_eq!(balance["requests-per-s"], expected);
    assert!(row.low.is_some() && row.high.is_some());
}

#[test]
fn what_is_without_limit_is_left_out() {
    let journal = testing::journals::journal();
    let mut analysis = analyse(&journal);
    let row = &mut analysis.rankings[0].rows[1];
    (row.low, row.high) = (Some(f64::NEG_INFINITY), Some(f64::INFINITY));
    let value = row.value;
    for comparison in &mut analysis.comparisons {
        (comparison.ratio, comparison.low) = (Some(f64::INFINITY), Some(0.0));
        comparison.high = Some(f64::NAN);
    }
    let document = bencher(&journal.header, &analysis);
    let balance = &document["proxy-cost/balance/connections=96"];
    assert_eq!(balance["requests-per-s"], object!({"value": value}));
    let text = openmetrics(&journal.header, &analysis);
    text.has("weighstation_ratio_low{");
    for text in [text, otava(&journal.header, &analysis)] {
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    }
}

#[test]
fn factors_that_come_to_the_same_label_stay_apart() {
    let factors = [("a.b", "1"), ("a_b", "2"), ("a-b", "3"), ("c", "4")];
    let condition = factors.map(|(factor, level)| (factor.to_owned(), level.to_owned()));
    let labels = report::openmetrics_labels(&condition.into_iter().collect(), &[("run", "5")]);
    assert_eq!(
        labels,
        "factor_a_b=\"3\",factor_a_b_2=\"1\",factor_a_b_3=\"2\",factor_c=\"4\",run=\"5\""
    );
}

#[test]
fn github_follows_each_figure_in_one_of_two_files() {
    for (header, analysis) in runs() {
        let files = [Better::Bigger, Better::Smaller].map(|one| github(&header, &analysis, one));
        let mut names = BTreeSet::new();
        for (at, file) in files.iter().enumerate() {
            for entry in file.as_array().unwrap() {
                let text = |key: &str| entry[key].as_str().unwrap();
                assert!(names.insert(text("name").to_owned()), "{entry}");
                assert!(
                    !text("unit").is_empty() && entry["value"].is_f64(),
                    "{entry}"
                );
                assert_eq!(text("unit").ends_with("s/s"), at == 0, "{entry}");
                for (key, value) in entry.as_object().unwrap() {
                    match key.as_str() {
                        "name" | "unit" | "value" => {}
                        "range" | "extra" => assert!(value.is_string(), "{entry}"),
                        _ => panic!("{key} in {entry}"),
                    }
                }
            }
        }
        let measures = bencher(&header, &analysis);
        let measures = measures.as_object().unwrap().values();
        let of_bencher: usize = measures.map(|of| of.as_object().unwrap().len()).sum();
        assert_eq!(names.len(), of_bencher);
    }
    let (header, analysis) = &runs()[3];
    let entries = github(header, analysis, Better::Bigger);
    let is_its = |one: &&Value| one["name"] == "proxy-cost/balance/connections=96/requests_per_s";
    let entry = entries.as_array().unwrap().iter().find(is_its).unwrap();
    let sentence = verdict::words::comparison(&analysis.comparisons[0]);
    assert_eq!(entry["extra"], sentence);
    assert!(entry["range"].as_str().unwrap().contains(" to "));
}

/// The fields of a line of CSV, with `""` for a quote inside of quotes.
fn fields(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        let last = found.last_mut().unwrap();
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(String::new()),
            other => last.push(other),
        }
    }
    assert!(!quoted, "{line}");
    found
}

#[test]
fn otava_reads_one_line_with_a_number_in_each_column_of_a_figure() {
    for (header, analysis) in runs() {
        let text = otava(&header, &analysis);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let (head, line) = (fields(lines[0]), fields(lines[1]));
        assert_eq!(head.len(), line.len());
        assert_eq!(head[..4], ["time", "commit", "label", "version"]);
        let names: BTreeSet<&String> = head.iter().collect();
        assert_eq!(names.len(), head.len(), "a column twice: {head:?}");
        for (name, number) in head.iter().zip(&line).skip(4) {
            assert!(
                number.parse::<f64>().unwrap().is_finite(),
                "{name}: {number}"
            );
        }
    }
    let (header, analysis) = &runs()[3];
    let text = otava(header, analysis);
    text.has("\n2023-11-14 22:13:20 +0000,,,0.1.0,");
    text.has(",balance/connections=96/requests_per_s/ratio,");
}

/// A sample's name, labels and value.
fn sample(line: &str) -> (&str, Vec<(String, String)>, f64) {
    let (name, rest) = line.split_once('{').unwrap();
    let mut labels = Vec::new();
    let mut rest = rest;
    loop {
        let (label, behind) = rest.split_once("=\"").unwrap();
        let mut value = String::new();
        let mut letters = behind.char_indices();
        let end = loop {
            let (at, letter) = letters.next().unwrap();
            match letter {
                '"' => break at,
                '\\' => match letters.next().unwrap().1 {
                    'n' => value.push('\n'),
                    other @ ('\\' | '"') => value.push(other),
                    other => panic!("\\{other} in {line}"),
                },
                other => value.push(other),
            }
        };
        labels.push((label.to_owned(), value));
        rest = &behind[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    let value = rest.strip_prefix("} ").unwrap().parse().unwrap();
    (name, labels, value)
}

#[test]
fn openmetrics_has_each_family_once_and_each_sample_once() {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        let first = letters.next().unwrap();
        (first.is_ascii_alphabetic() || first == '_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    for (header, analysis) in runs() {
        let text = openmetrics(&header, &analysis);
        let body = text.strip_suffix("# EOF\n").unwrap();
        let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
        let mut family = "";
        for line in body.lines() {
            if let Some(metadata) = line.strip_prefix("# ") {
                let mut words = metadata.splitn(3, ' ');
                let (kind, name) = (words.next().unwrap(), words.next().unwrap());
                let text = words.next().unwrap();
                match kind {
                    "TYPE" => {
                        assert_eq!(text, "gauge");
                        assert!(is_name(name) && families.insert(name), "{line}");
                        family = name;
                    }
                    "UNIT" => assert!(name.ends_with(&format!("_{text}")), "{line}"),
                    "HELP" => assert!(!text.contains('\\'), "{line}"),
                    _ => panic!("{line}"),
                }
                assert_eq!(name, family, "{line}");
                continue;
            }
            let (name, labels, value) = sample(line);
            assert_eq!(name, family, "{line}");
            assert!(labels.iter().all(|(label, _)| is_name(label)), "{line}");
            assert!(value.is_finite(), "{line}");
            assert!(samples.insert((name, labels)), "{line}");
        }
        assert!(samples.len() > analysis.table.len());
    }
    let (header, analysis) = &runs()[4];
    let text = openmetrics(header, analysis);
    let line = text
        .lines()
        .find(|line| line.starts_with("weighstation_ratio{"));
    let (_, labels, ratio) = sample(line.unwrap());
    assert_eq!(Some(ratio), analysis.comparisons[0].ratio);
    let expected = [
        ("baseline", "direct"),
        ("experiment", "proxy-cost"),
        ("factor_connections_of_all", "96"),
        ("metric", "requests_per_s"),
        ("subject", "bal\"an,ce\\\n=1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(labels, expected);
}
