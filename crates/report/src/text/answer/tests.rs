use super::*;
use testing::Text as _;
use testing::journals::{curve_journal, journal};
use testing::made_up::MadeUp;
use verdict::{Growing, Growth, GrowthLevel, Metric, Shape, Slope, analyse};

fn shown(journal: &Journal) -> String {
    terminal(journal, &analyse(journal), 100, false, Some("weigh-runs/7"))
}

#[test]
fn question_ranking_sentence_caveats_and_the_rest_follow_each_other() {
    let text = shown(&journal());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "What a <balancer> costs");
    assert_eq!(lines[1], "6 of 6 blocks");
    assert_eq!(
        lines[3],
        "Throughput at connections=96; latency at 2,000/s; CPU in the closed loop"
    );
    const WORDS: [&str; 9] = [
        "value", "95%", "interval", "against", "direct", "p50", "p99", "CPU", "us/req",
    ];
    let words =
        |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    assert!(
        lines[4].starts_with("  #  subject  ")
            && words(lines[4]).ends_with(&WORDS.map(str::to_owned))
    );
    assert!(lines[5].starts_with("  1  direct   ████████"), "{text}");
    assert!(
        words(lines[5])
            .ends_with(&["20,000/s", "-", "baseline", "404us", "800us", "10.0"].map(str::to_owned)),
        "{text}"
    );
    assert!(lines[6].starts_with("  2  balance  ██████████  "), "{text}");
    lines[6].has("13,800/s  [13,");
    lines[6].has("-31.0%");
    assert_eq!(lines[7], "");
    lines[8].begins("balance costs 31.0% of the throughput [");
    assert!(lines[8].contains("surely slower. p50: "), "{text}");
    let below = lines[9..].join(" ");
    let in_order = [
        "Not ranked: lighttpd at connections=96: 6 of 6 blocks cannot be used; ",
        "1 trial failed (lighttpd: did not become ready within 10 s); 5 trials are invalid (throughput:",
        "Full report: weigh report weigh-runs/7 --verbose; pictures: report.html there.",
    ];
    let mut from = 0;
    for part in in_order {
        let at = below[from..]
            .find(part)
            .unwrap_or_else(|| panic!("no {part:?} in\n{text}"));
        from += at;
    }
    assert!(lines.len() <= 15, "{} lines\n{text}", lines.len());
}

#[test]
fn several_conditions_are_a_grid_with_places() {
    let made = MadeUp {
        conditions: 4,
        ..MadeUp::of(5 * 4 * 5)
    };
    let text = shown(&made.journal());
    let grid = text.find("Throughput, by connections\n").unwrap();
    let head = text[grid..].lines().nth(1).unwrap();
    let heads: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(
        heads,
        ["subject", "8", "#", "16", "#", "32", "#", "64", "#"]
    );
    let first = text[grid..].lines().nth(2).unwrap();
    first.begins("  direct");
    first.ends("  1");
    text.has("\nMedian latency at 5,000/s, by connections\n");
    text.has("In throughput, direct is first under ");
    text.has("\nCPU time per request of all servers in us, by connections\n");
}

#[test]
fn names_of_others_make_no_lines_and_colours_go_without_a_terminal() {
    let mut journal = journal();
    journal.header.title = "a\x1b[31m\nb".into();
    let text = shown(&journal);
    text.begins("a\u{241b}[31m\u{240a}b\n");
    assert!(!text.contains('\x1b'));
    let coloured = terminal(&journal, &analyse(&journal), 100, true, None);
    assert!(coloured.starts_with("\x1b[1ma\u{241b}[31m"), "{coloured:?}");
}

#[test]
fn gates_have_a_line_each_and_curves_their_sentences() {
    let (journal, analysis) = crate::study::gates::tests::gated();
    let text = terminal(&journal, &analysis, 100, false, None);
    let lines: Vec<&str> = text.lines().skip(2).take(5).collect();
    lines[0]
        .begins("breached   speed: balance: throughput > -3% at connections=96: balance -31.0% [");
    lines[2].begins("not judged lighttpd: throughput > -3% at connections=96: lighttpd; 6 of 6");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let text = shown(&curve_journal());
    text.has("passes 1 ms at");
    text.lacks("offered/s");
}

#[test]
fn times_are_as_long_as_they_are_said() {
    let said: Vec<String> = [48.2, 89.0, 95.0, 7_500.0].map(long_time).to_vec();
    assert_eq!(said, ["48 s", "89 s", "2 min", "2 h 5 min"]);
}

#[test]
fn many_growths_are_a_table_and_few_of_one_metric_sentences() {
    let mut analysis = analyse(&journal());
    let growth = |metric, subject: &str, shape, last| Growth {
        condition: readings::Condition::new(),
        metric,
        subject: subject.to_owned(),
        factor: "routes".to_owned(),
        levels: [(10.0, 5e6), (10_000.0, last)]
            .map(|(level, value)| GrowthLevel { level, value })
            .into(),
        slope: Slope {
            value: 1_200.0,
            low: Some(1_100.0),
            high: Some(1_300.0),
            blocks: 5,
        },
        confidence: 0.95,
        bend: None,
        exponent: None,
        shape,
        over_baseline: None,
        growing: Growing::Rises,
    };
    let (start, rest) = (Metric::FirstServerStartUs, Metric::FirstServerRestBytes);
    analysis.growth = vec![
        growth(start, "nginx", Shape::Linear, 17e6),
        growth(start, "caddy", Shape::Superlinear, 90e6),
        growth(rest, "nginx", Shape::Linear, 17e6),
    ];
    let text = studies::growth(&analysis, 110);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    lines[0].has("over routes");
    lines[0].has("at 10,000");
    assert!(lines[1].trim_start().starts_with("start "), "{text}");
    lines[2].trim_start().begins("caddy    superlinear");
    lines[3].has("memory at rest  nginx");
    lines[3].has("17.0MB");
    assert!(lines[3].ends_with("1.20MB [1.10MB, 1.30MB]"), "{text}");
    let five = ["a", "b", "c", "d", "e"];
    analysis.growth = five
        .map(|subject| growth(start, subject, Shape::Linear, 17e6))
        .into();
    assert_eq!(studies::growth(&analysis, 110).lines().count(), 6);
    analysis.growth.truncate(2);
    let text = studies::growth(&analysis, 110);
    text.begins("a: start time of the first server rises by ");
}

#[test]
fn a_median_that_ranks_nobody_is_rough() {
    let journal = journal();
    let mut analysis = analyse(&journal);
    let of = |analysis: &verdict::Analysis| terminal(&journal, analysis, 100, false, None);
    of(&analysis).has("  404us");
    for one in &mut analysis.rankings {
        if one.metric == Metric::LatencyUsP50 {
            one.open = vec![("direct".into(), "balance".into())];
        }
    }
    let text = of(&analysis);
    text.has("  ~400us");
    text.lacks("404us");
}

#[test]
fn what_is_left_out_of_the_warnings_is_counted() {
    let journal = journal();
    let mut analysis = analyse(&journal);
    let of = |analysis: &verdict::Analysis| terminal(&journal, analysis, 100, false, None);
    of(&analysis).has("\nFull report: --verbose.");
    for number in 0..9 {
        analysis.warnings.push(verdict::Warning::Recorded {
            text: format!("warning {number}"),
            trials: 1,
        });
    }
    let text = of(&analysis);
    let shown = text.lines().filter(|line| line.starts_with("! ")).count();
    assert_eq!(shown, 5, "{text}");
    // One says which trials are missing.
    text.has("\nFull report, with 5 more warnings: --verbose.");
}

#[test]
fn conditions_whose_names_do_not_fit_are_numbered() {
    let made = MadeUp {
        conditions: 4,
        ..MadeUp::of(3 * 4 * 5)
    };
    let journal = made.journal();
    let mut analysis = analyse(&journal);
    let shown = |analysis: &verdict::Analysis| terminal(&journal, analysis, 100, false, None);
    shown(&analysis).lacks("(1)");
    for one in &mut analysis.rankings {
        for level in one.condition.values_mut() {
            level.push_str(", streams 1, keepalive true");
        }
    }
    let text = shown(&analysis);
    text.has("\n(1) ");
    text.has(", streams 1, keepalive true\n(2) ");
    let heads = text.lines().filter(|line| line.starts_with("  subject"));
    let heads: Vec<Vec<&str>> = heads
        .map(|line| line.split_whitespace().collect())
        .collect();
    let numbered = "subject (1) # (2) # (3) # (4) #";
    assert!(
        heads.iter().all(|head| head.join(" ") == numbered),
        "{text}"
    );
}

#[test]
fn tables_of_two_conditions_have_the_same_columns() {
    let made = MadeUp {
        conditions: 2,
        ..MadeUp::of(3 * 2 * 5)
    };
    let journal = made.journal();
    let mut analysis = analyse(&journal);
    // A figure that is wider under the second condition only.
    let second = analysis
        .rankings
        .iter_mut()
        .rfind(|one| one.metric == Metric::RequestsPerS);
    for row in &mut second.unwrap().rows {
        row.value *= 1e7;
        (row.low, row.high) = (
            row.low.map(|low| low * 1e7),
            row.high.map(|high| high * 1e7),
        );
    }
    for width in 60..120 {
        let text = terminal(&journal, &analysis, width, false, None);
        // Other metrics give way to the interval.
        let others = text.lines().filter(|line| line.ends_with(" p99"));
        assert!(
            others.clone().all(|line| line.contains("95% interval")),
            "{text}"
        );
        let heads: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.trim_start().starts_with("#  subject"))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(heads.len(), 2, "{text}");
        assert_eq!(heads[0], heads[1], "{text}");
    }
}

#[test]
fn failures_around_events_are_said_where_their_table_is_too_long() {
    let journal = journal();
    let mut analysis = analyse(&journal);
    analysis.rankings.clear();
    for c in &mut analysis.comparisons {
        c.metric = Metric::FailedShare;
        c.verdict = verdict::Verdict::Inconclusive;
    }
    analysis.table[1].events = Some(verdict::EventsRow {
        requests: 4_500,
        failed: 54,
        failed_share: 0.012,
        events: 1,
        full_rate_after_s: Some(0.5),
        ..verdict::EventsRow::default()
    });
    let text = terminal(&journal, &analysis, 100, false, None);
    text.has(
        "\nAround events at connections=96\n  subject                  failed  full rate after\n",
    );
    text.lacks("requests/s");
    let row = analysis.table[0].clone();
    analysis.table.extend(vec![row; 12]);
    let text = terminal(&journal, &analysis, 100, false, None);
    text.has("Around events: balance at connections=96 failed 54 of 4,500 requests (1.20%).");
}
