//! Pictures, tables and CSV rest on the same trials.

use readings::{
    Condition, Histogram, Journal, JournalRow, MachineMetrics, Outcome, Reading, RunHeader, Slice,
    SystemMetrics, Trial,
};
use report::RunFacts;
use testing::Text as _;
use testing::journals;
use verdict::{Analysis, analyse};

fn journal(blocks: u32, max_error: f64, reading: impl Fn(u32) -> Reading) -> Journal {
    let header = RunHeader {
        subjects: vec!["direct".into(), "nginx".into()],
        conditions: vec![Condition::new()],
        blocks,
        max_error,
        ..journals::header()
    };
    let of_block = |block: u32| {
        ["direct", "nginx"].map(|subject| {
            JournalRow::Trial(Box::new(Trial {
                trial: 2 * block + u32::from(subject == "nginx"),
                block,
                condition: Condition::new(),
                subject: subject.into(),
                baseline_copy: false,
                attempt: 1,
                outcome: Outcome::Done(Box::new(reading(block))),
            }))
        })
    };
    let rows = (1..=blocks).flat_map(of_block).collect();
    Journal::new(header, rows)
}

/// Answers that all take about so long.
fn answers(median_us: f64) -> Histogram {
    let mut response = Histogram::new();
    for i in 0..20_000 {
        response.record_ns((median_us * (990.0 + f64::from(i) / 1_000.0)) as u64);
    }
    response
}

/// The curve of the page that begins with a text, up to its end.
fn summary<'p>(page: &'p str, begin: &str) -> &'p str {
    let from = page.find(begin).unwrap_or_else(|| panic!("no {begin}"));
    page[from..].split(['"', '<', ';']).next().unwrap()
}

fn page(journal: &Journal, analysis: &Analysis) -> String {
    report::html(journal, analysis, &RunFacts::default())
}

/// The middle of the table's figure is the middle of the curve.
fn same_median(journal: &Journal) -> Analysis {
    let analysis = analyse(journal);
    let row = &analysis.table[0];
    let drawn = analysis.distributions[0].response.quantile_us(0.5);
    let shown = row.latency_us_p50.unwrap();
    assert!((drawn / shown).ln().abs() < 0.1, "{drawn} and {shown}");
    analysis
}

#[test]
fn allowed_errors_spoil_no_trial_of_the_picture() {
    // 3% time out in four of six blocks, in which answers take four times as long.
    let journal = journal(6, 0.1, |block| {
        let mut load = journals::load(2_000.0, 100.0, Some(2_000.0));
        load.response = answers(100.0);
        if block <= 4 {
            load.response = answers(400.0);
            load.errors.timeout = 600;
            load.errors_all.timeout = 600;
        }
        Reading {
            latency: Some(load),
            ..Reading::default()
        }
    });
    let analysis = analyse(&journal);
    assert_eq!(analysis.invalid, []);
    let shown = analysis.table[0].latency_us_p50.unwrap();
    assert!(
        (240.0..270.0).contains(&shown),
        "the geometric mean of all six: {shown}"
    );
    let response = &analysis.distributions[0].response;
    assert_eq!(response.count(), 6 * 20_000, "all six are in the picture");
    let csv = report::csv(&journal, &analysis);
    let problems = csv.lines().skip(1).filter(|line| !line.ends_with(','));
    assert_eq!(problems.count(), 0, "{csv}");
}

#[test]
fn trials_that_the_machine_spoilt_are_in_no_picture() {
    // The hypervisor takes a third of the machine in three of eight blocks.
    let journal = journal(8, 0.0, |block| {
        let mut load = journals::load(2_000.0, 100.0, Some(2_000.0));
        load.response = answers(if block <= 3 { 2_000.0 } else { 100.0 });
        let stolen_s = if block <= 3 { 6.6 } else { 0.0 };
        let machine = MachineMetrics {
            cpus: 2,
            busy_s: Some(4.0 + stolen_s),
            steal_s: stolen_s,
            ..MachineMetrics::default()
        };
        Reading {
            latency: Some(load),
            latency_probed: Some(SystemMetrics {
                looked_s: 10.0,
                machine,
                ..SystemMetrics::default()
            }),
            ..Reading::default()
        }
    });
    let analysis = same_median(&journal);
    assert_eq!(analysis.invalid.len(), 6, "{analysis:?}");
    let page = page(&journal, &analysis);
    summary(&page, "nginx: median").has("p99 10");
    page.lacks("p99 2.00ms");
}

#[test]
fn wrong_answers_set_no_axis() {
    // Two blocks of errors, which are answered five times as fast.
    let journal = journal(6, 0.0, |block| {
        let per_s = if block <= 2 { 500_000.0 } else { 100_000.0 };
        let mut load = journals::load(per_s, 100.0, None);
        load.slices = vec![Slice {
            duration_s: 10.0,
            requests: (per_s * 10.0) as u64,
            ..Slice::default()
        }];
        if block <= 2 {
            load.errors_all.status = load.requests;
            load.errors.status = load.requests;
        }
        Reading {
            throughput: Some(load),
            ..Reading::default()
        }
    });
    let analysis = analyse(&journal);
    let shown = analysis.table[0].requests_per_s.unwrap();
    assert!((shown / 100_000.0).ln().abs() < 0.01, "{shown}");
    let page = page(&journal, &analysis);
    let from = page.find("<section id=\"time\">").unwrap();
    let picture = page[from..].split("</section>").next().unwrap();
    picture.has("closed loops of 8 trials");
    picture.lacks(">200,000");
    let csv = report::csv(&journal, &analysis);
    let problems = csv.lines().filter(|line| line.contains("wrong"));
    assert_eq!(problems.count(), 4, "{csv}");
}
