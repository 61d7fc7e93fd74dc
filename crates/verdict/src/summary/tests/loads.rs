//! Several loads at the same time: each has comparisons of its own.

use readings::{BesideReading, DeclaredLoad, Journal, RunHeader, Trial};

use crate::fixtures::{closed, header, reading, throughput_blocks};
use crate::{Analysis, Flaw, Loop, Metric, TrialFlaw, Verdict, analyse, at_a_look, trial_flaws};

fn several(blocks: u32) -> RunHeader {
    let load = |name: &str, background| DeclaredLoad {
        name: name.into(),
        background,
    };
    RunHeader {
        loads: vec![
            load("quick", false),
            load("slow", false),
            load("download", true),
        ],
        ..header(blocks)
    }
}

/// Blocks in which the balancer has the throughput of the baseline for the quick load, and a fifth
/// more for the slow one.
fn trials(blocks: usize) -> Vec<Trial> {
    let mut trials = throughput_blocks(&vec![(1000.0, 1000.0); blocks]);
    for one in &mut trials {
        let is_subject = one.subject == "balance";
        let slow = if is_subject { 120.0 } else { 100.0 };
        let wobble = 1.0 + 0.001 * f64::from(one.block % 3);
        for (name, per_s) in [("slow", slow * wobble), ("download", 7.0)] {
            let beside = BesideReading {
                throughput: Some(closed(per_s)),
                latency: None,
            };
            reading(one).beside.insert(name.to_owned(), beside);
        }
    }
    trials
}

fn analysed(header: RunHeader, trials: Vec<Trial>) -> Analysis {
    analyse(&Journal::of_trials(header, trials))
}

fn verdicts(analysis: &Analysis) -> Vec<(String, Verdict)> {
    let of_throughput = analysis.comparisons.iter();
    let of_throughput = of_throughput.filter(|one| one.metric == Metric::RequestsPerS);
    of_throughput
        .map(|one| (one.condition["load"].clone(), one.verdict))
        .collect()
}

#[test]
fn each_load_has_a_verdict_of_its_own_and_the_background_has_figures_only() {
    let analysis = analysed(several(6), trials(6));
    let expected = [
        ("quick".to_owned(), Verdict::Same),
        ("slow".to_owned(), Verdict::Faster),
    ];
    assert_eq!(verdicts(&analysis), expected);
    assert_eq!(analysis.trials_done, 18, "of three loads each");
    let figure = |load: &str| {
        let rows = analysis.table.iter();
        let mut rows = rows.filter(|row| row.condition["load"] == load && row.subject == "balance");
        rows.next().unwrap().requests_per_s.unwrap()
    };
    let figures = ["quick", "slow", "download"].map(figure);
    assert_eq!(figures.map(f64::round), [1000.0, 120.0, 7.0]);
    // The two loads differ in what the balancer costs, but a load is no factor.
    assert!(analysis.interactions.is_empty(), "{analysis:?}");
    // An interim analysis says the same.
    let rows = trials(6);
    let looked = at_a_look(&several(6), &rows).unwrap();
    assert_eq!(verdicts(&looked), expected);
}

#[test]
fn a_load_that_failed_makes_the_trial_invalid_for_the_others_by_its_name() {
    let mut rows = trials(6);
    for one in &mut rows {
        let reading = reading(one);
        let download = reading.beside.get_mut("download").unwrap();
        let load = download.throughput.as_mut().unwrap();
        load.errors_all.status = load.requests_all;
    }
    let flaws = trial_flaws(&several(6), &rows[0]);
    let wrong = Flaw::WrongAnswers {
        wrong: 70,
        answers: 140,
        first: None,
    };
    assert_eq!(flaws, [TrialFlaw::of_load("download", wrong)]);
    let analysis = analysed(several(6), rows);
    let all = verdicts(&analysis);
    assert!(
        all.iter().all(|(_, verdict)| *verdict == Verdict::Invalid),
        "{all:?}"
    );
}

#[test]
fn an_answer_of_the_background_may_be_longer_than_the_window() {
    let mut rows = trials(1);
    let reading = reading(&mut rows[0]);
    let download = reading.beside.get_mut("download").unwrap();
    let load = download.throughput.as_mut().unwrap();
    (load.requests, load.requests_all) = (0, 4);
    assert!(trial_flaws(&several(6), &rows[0]).is_empty());
    let slow = reading_of(&mut rows[0], "slow");
    slow.requests = 0;
    slow.requests_all = 0;
    let flaws = trial_flaws(&several(6), &rows[0]);
    let of_load = TrialFlaw::of_load("slow", Flaw::NoAnswer { queues: vec![] });
    let of_loop = TrialFlaw {
        load_loop: Some(Loop::Closed),
        ..of_load.clone()
    };
    assert_eq!(flaws, [of_load, of_loop]);
}

fn reading_of<'t>(trial: &'t mut Trial, load: &str) -> &'t mut readings::LoadReading {
    let reading = reading(trial);
    let beside = reading.beside.get_mut(load).unwrap();
    beside.throughput.as_mut().unwrap()
}
