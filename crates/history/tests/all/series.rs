//! Series: breaks, families, filters and forms.

use history::change::LEVEL;
use history::{Filters, RunEntry, csv, history, json, openmetrics, terminal};
use testing::Text as _;

use crate::made::{entry, figure};
use crate::simulate::{Random, run};

/// Sixty runs; `level` gives the log ratio of each.
fn runs(seed: u64, se: f64, level: impl Fn(u64) -> f64) -> Vec<RunEntry> {
    let random = &mut Random::with_seed(seed);
    (0..60)
        .map(|number| {
            let point = run(random, level(number), se, 0.0);
            entry(number, point.value, point.standard_error.max(1e-4))
        })
        .collect()
}

fn confirmed(entries: &[RunEntry]) -> Vec<usize> {
    let history = history(entries, &Filters::default());
    let changes = history.series[0].changes.iter();
    changes
        .filter(|c| c.change.confirmed)
        .map(|c| c.at)
        .collect()
}

#[test]
fn planted_changes_are_found_and_nothing_else() {
    let cost = |number| match number {
        0..20 => -0.50,
        20..40 => -0.50 - 0.05,
        _ => -0.50 - 0.05 + 0.10,
    };
    for seed in 0..20 {
        let found = confirmed(&runs(seed, 0.01, cost));
        assert_eq!(found.len(), 2, "{seed}: {found:?}");
        let near = |at: usize, place: usize| at.abs_diff(place) <= 1;
        assert!(
            near(found[0], 20) && near(found[1], 40),
            "{seed}: {found:?}"
        );
    }
}

#[test]
fn drift_of_the_machine_is_no_change_of_the_ratio() {
    // Both subjects lose half of their speed over the sixty runs.
    for seed in 0..20 {
        let mut entries = runs(seed, 0.01, |_| -0.5);
        for (at, entry) in entries.iter_mut().enumerate() {
            let speed = 1.0 - 0.5 * at as f64 / 60.0;
            let figure = &mut entry.figures[0];
            figure.baseline_value = Some(1000.0 * speed);
            figure.subject_value = Some(1000.0 * speed * figure.log_ratio.exp());
        }
        assert!(confirmed(&entries).is_empty(), "{seed}");
    }
}

#[test]
fn a_line_breaks_where_the_machine_is_replaced_and_no_change_is_said_across() {
    // The new machine has another ratio, by 20%.
    let mut entries = runs(3, 0.01, |number| if number < 30 { -0.5 } else { -0.3 });
    for entry in &mut entries[30..] {
        entry.comparable.machine = "new".into();
        entry.machine_facts.insert("kernel".into(), "6.18".into());
    }
    assert!(confirmed(&entries).is_empty());
    let history = history(&entries, &Filters::default());
    let breaks = &history.series[0].breaks;
    assert_eq!((breaks.len(), breaks[0].at), (1, 30));
    assert_eq!(breaks[0].what, ["the machine: kernel 6.1 -> 6.18"]);
    let text = terminal(&history, 100);
    text.has("¦ the line breaks before run 31: the machine: kernel 6.1 -> 6.18");
    text.has("no change found");
    // Two levels, one on each side.
    assert_eq!(history.series[0].levels.len(), 2);
}

#[test]
fn versions_settings_and_method_break_the_line_too() {
    type Edit = fn(&mut RunEntry);
    let edits: [(Edit, &str); 4] = [
        (|e| e.comparable.experiment = "x".into(), "the experiment"),
        (
            |e| e.comparable.settings = "x".into(),
            "the servers' settings",
        ),
        (
            |e| e.comparable.method = "0.2.0".into(),
            "weigh 0.1.0 -> 0.2.0",
        ),
        (
            |e| {
                e.comparable.versions.insert("nginx".into(), "1.27".into());
            },
            "version of nginx 1.22 -> 1.27",
        ),
    ];
    for (edit, words) in edits {
        let mut entries = runs(4, 0.01, |number| if number < 30 { -0.5 } else { -0.3 });
        entries[30..].iter_mut().for_each(edit);
        assert!(confirmed(&entries).is_empty());
        let history = history(&entries, &Filters::default());
        assert_eq!(history.series[0].breaks[0].what, [words]);
    }
}

#[test]
fn two_machines_in_turn_are_two_lines_with_changes_of_their_own() {
    let mut entries = runs(5, 0.01, |number| if number < 30 { 0.0 } else { -0.1 });
    for entry in entries.iter_mut().step_by(2) {
        entry.comparable.machine = "other".into();
        entry.figures[0].log_ratio += 0.5;
    }
    assert_eq!(confirmed(&entries), [30, 31]);
}

#[test]
fn runs_whose_baseline_differs_from_itself_are_believed_less() {
    let mut entries = runs(6, 0.005, |number| if number < 50 { 0.0 } else { 0.06 });
    assert_eq!(confirmed(&entries), [50]);
    for entry in &mut entries[50..] {
        let floor = entry.figures[0].noise_floor.as_mut().unwrap();
        (floor.log_ratio, floor.standard_error) = (0.2, 0.005);
    }
    assert!(confirmed(&entries).is_empty());
}

#[test]
fn many_series_share_one_error_budget() {
    let series = 20;
    let mut families_with_an_alarm = 0;
    let families = 40;
    for family in 0..families {
        let mut entries = runs(family, 0.01, |_| 0.0);
        let random = &mut Random::with_seed(1_000 + family);
        for entry in &mut entries {
            entry.figures.clear();
            for subject in 0..series {
                let point = run(random, 0.0, 0.01, 0.0);
                let mut one = figure(
                    "requests_per_s",
                    point.value,
                    point.standard_error.max(1e-4),
                );
                one.subject = format!("s{subject}");
                entry.figures.push(one);
            }
        }
        let history = history(&entries, &Filters::default());
        assert!((history.series[0].level * series as f64 - LEVEL).abs() < 1e-12);
        let mut changes = history.series.iter().flat_map(|s| &s.changes);
        families_with_an_alarm += u32::from(changes.any(|c| c.change.confirmed));
    }
    // 800 series.
    println!("{families_with_an_alarm} of {families} families of {series} series have an alarm");
    assert!(families_with_an_alarm <= 1, "{families_with_an_alarm}");
}

#[test]
fn filters_choose_what_is_shown_and_not_what_is_found() {
    let mut entries = runs(7, 0.01, |number| if number < 30 { -0.5 } else { -0.6 });
    for entry in &mut entries {
        let mut other = figure("latency_us_p99", 0.4, 0.01);
        other.subject = "other".into();
        entry.figures.push(other);
    }
    let all = history(&entries, &Filters::default());
    assert_eq!(all.series.len(), 2);
    let only = |filters: Filters| history(&entries, &filters);
    let one = only(Filters {
        metric: Some("requests_per_s".into()),
        ..Filters::default()
    });
    assert_eq!(one.series.len(), 1);
    assert_eq!(
        one.series[0].changes[0].change,
        all.series[0].changes[0].change
    );
    let last = only(Filters {
        last: Some(40),
        subject: Some("proxy".into()),
        ..Filters::default()
    });
    assert_eq!((last.runs.len(), last.series[0].runs.len()), (40, 40));
    assert_eq!(
        last.series[0].changes[0].change,
        all.series[0].changes[0].change
    );
    assert_eq!(last.series[0].runs[last.series[0].changes[0].at].number, 31);
    let newest = only(Filters {
        last: Some(5),
        ..Filters::default()
    });
    assert!(newest.series.iter().all(|s| s.changes.is_empty()));
}

#[test]
fn runs_that_cannot_be_used_are_shown_and_counted() {
    let mut entries = runs(8, 0.01, |_| -0.5);
    for entry in &mut entries[50..53] {
        entry.figures[0].log_ratio = 2.0;
        entry.figures[0].unused = Some("invalid".into());
    }
    assert!(confirmed(&entries).is_empty());
    let history = history(&entries, &Filters::default());
    let text = terminal(&history, 100);
    text.has("3 runs take no part in the search: invalid");
    text.has("···");
}

#[test]
fn every_form_has_the_change() {
    let mut entries = runs(9, 0.01, |number| if number < 40 { -0.5 } else { -0.6 });
    entries[40].label = Some("=v2,\"<b>\"".into());
    let history = history(&entries, &Filters::default());
    let c = &history.series[0].changes[0];
    assert_eq!((c.at, c.worse), (40, true));
    let text = terminal(&history, 100);
    text.has("cost: 60 runs, 2023-11-14 to 2024-01-12");
    text.has("run 41");
    text.has("worse, confirmed");
    let document = json(&history, &["p".into()]);
    let change = &document["series"][0]["changes"][0];
    assert_eq!(change["since_run"], 41);
    assert_eq!(change["state"], "confirmed");
    assert!((change["ratio"].as_f64().unwrap() - 0.9).abs() < 0.02);
    assert_eq!(document["series"][0]["runs"][59]["run"], 60);
    assert_eq!(document["problems"][0], "p");
    let table = csv(&history);
    assert_eq!(table.lines().count(), 61);
    table.lines().nth(41).unwrap().has("\"'=v2,\"\"<b>\"\"\"");
    assert!(table.lines().nth(41).unwrap().contains(",confirmed,"));
    let metrics = openmetrics(&history);
    metrics.ends("# EOF\n");
    assert_eq!(metrics.matches("\nweighstation_ratio{").count(), 60);
    let labels =
        "{baseline=\"direct\",experiment=\"cost\",metric=\"requests_per_s\",subject=\"proxy\"}";
    let time = 1_700_000_000 + 40 * 86_400;
    let line = format!("weighstation_change_confirmed{labels} 1 {time}\n");
    assert!(metrics.contains(&line), "{line}");
    let page = history::html(&history, &[], |run| Some(format!("{run}/report.html")));
    page.has("<a href=\"run-059/report.html\">");
    page.has("worse, confirmed");
    page.lacks("<b>\"");
    assert!(!page.contains("http://") && !page.contains("https://"));
}
