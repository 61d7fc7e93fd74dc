//! Simulated loads, whose truth no finding may deny.
use readings::{Tool, ToolReading};
use verdict::diagnose::{Diagnosis, Fact, Finding, FindingKind, diagnose};

use crate::run::{Can, Random, Run, run};
use crate::{named, printed};

const RUNS: u64 = 1000;

type Print = fn(&Run, bool) -> String;

/// What tools can that time failures from before a connection is opened.
const NAMED: &str = "wrong late times_opening";

/// The tools, what they can do, and how they print, in two forms each.
const TOOLS: [(Tool, &[&str], Print); 18] = [
    (
        Tool::Wrk,
        &["depth pauses late wrong failed_connects late_answers"],
        printed::wrk,
    ),
    (
        Tool::Wrk2,
        &["late wrong pauses late_answers"],
        printed::wrk2,
    ),
    (Tool::Ab, &["wrong times_opening reopens"], printed::ab),
    (Tool::Httperf, &["wrong late pauses"], printed::httperf),
    (Tool::H2load, &["depth wrong late"], printed::h2load),
    (Tool::Hey, &[NAMED], printed::hey),
    (Tool::Oha, &[NAMED], printed::oha),
    (Tool::K6, &["wrong late pauses"], printed::k6),
    (Tool::RedisBenchmark, &["depth"], printed::redis_benchmark),
    (Tool::Siege, &["pauses", NAMED], printed::siege),
    (Tool::Autocannon, &["depth", NAMED], named::autocannon),
    (Tool::Vegeta, &[NAMED], named::vegeta),
    (Tool::Bombardier, &[NAMED], named::bombardier),
    (Tool::Locust, &["pauses", NAMED], named::locust),
    (Tool::Gatling, &["pauses", NAMED], named::gatling),
    (Tool::Jmeter, &["pauses", NAMED], named::jmeter),
    (Tool::Artillery, &["pauses wrong late"], named::artillery),
    (Tool::Ghz, &["wrong late"], named::ghz),
];

fn can(words: &[&str]) -> Can {
    let words = words.join(" ");
    let has = |word: &str| words.split(' ').any(|one| one == word);
    Can {
        depth: has("depth"),
        pauses: has("pauses"),
        late: has("late"),
        wrong: has("wrong"),
        failed_connects: has("failed_connects"),
        late_answers: has("late_answers"),
        times_opening: has("times_opening"),
        reopens: has("reopens"),
    }
}

/// Simulated runs of a tool with their texts; the flag is the form.
fn runs_of(at: usize) -> impl Iterator<Item = (Run, bool, String)> {
    let (tool, words, print) = TOOLS[at];
    let can = can(words);
    let mut random = Random(at as u64);
    let loses = can.times_opening || tool == Tool::H2load;
    let runs = std::iter::repeat_with(move || {
        let done = run(&mut random, can, loses);
        (done, random.below(2) == 0)
    });
    runs.filter(|(run, _)| run.latencies_us.len() > 20)
        .map(move |(run, form)| (run.clone(), form, print(&run, form)))
        .take(RUNS as usize)
}

/// What a text says of failures.
struct Told {
    /// The requests that the reading has to have.
    requests: u64,
    /// Failures that it does not explain.
    unexplained: u64,
    /// Wrong answers that it tells as such.
    wrong: u64,
}

fn told(tool: Tool, form: bool, run: &Run) -> Told {
    let explained = Told {
        requests: run.requests,
        unexplained: 0,
        wrong: run.wrong,
    };
    match (tool, form) {
        (Tool::K6 | Tool::Jmeter, _) | (Tool::Locust, true) => Told {
            requests: run.all(),
            unexplained: run.late + run.wrong,
            wrong: 0,
        },
        (Tool::Siege, _) => Told {
            unexplained: run.late,
            ..explained
        },
        _ => explained,
    }
}

/// Why a finding is false of a run, if it is.
fn denied(finding: &Finding, run: &Run, tool: Tool, told: &Told) -> Option<&'static str> {
    if let Diagnosis::SynRetransmission(late) = &finding.diagnosis {
        // It is a possibility, and none where the times to connect are known to be shorter, or where
        // nothing made a step.
        let latest_s = run.lost_s.iter().max().unwrap_or(&0);
        let is_known = late.in_connecting || matches!(tool, Tool::Ab | Tool::Hey | Tool::Oha);
        let is_real = late.steps_s.iter().all(|step| run.lost_s.contains(step));
        let is_longer = late.steps_s.iter().any(|step| step > latest_s);
        let may_be = run.bimodal && !late.in_connecting && !(is_known && is_longer);
        return (!is_real && !may_be).then_some("no SYN was lost");
    }
    if !finding.unknown.is_empty() {
        return None;
    }
    let busy = run.busy(tool.times_failures());
    let wrong = match &finding.diagnosis {
        // Only wrk 4 changes what it has measured.
        Diagnosis::ImpossibleMean(_) => tool != Tool::Wrk,
        Diagnosis::StoodStill(_) => busy > 0.85,
        Diagnosis::AllBusy { shown_by, .. } => busy < 0.9 || shown_by.is_some(),
        Diagnosis::Timeouts { requests, share } => {
            let share = share.unwrap_or(1.0);
            let all = run.requests + if tool == Tool::Wrk { 0 } else { run.late };
            *requests != run.late
                || (share - run.late as f64 / all as f64).abs() > 1e-6 && tool != Tool::Wrk2
        }
        Diagnosis::ErrorsLeftOut {
            errors,
            opened,
            answered,
        } => {
            let failed = errors.connect + errors.read + errors.write;
            let opened = opened.map(|c| c.slots as u64);
            failed > run.failed_connects
                || answered.is_some_and(|n| n != run.requests)
                || opened.is_some_and(|n| n != run.connections - run.failed_connects)
        }
        Diagnosis::Failures {
            errors,
            answered,
            in_latency,
            counted,
        } => {
            let explained = match told.unexplained {
                0 => run.late,
                _ => 0,
            };
            let kinds = [errors.timeout, errors.unexplained, errors.total()];
            let all = explained + told.unexplained;
            kinds != [explained, told.unexplained, all]
                || *answered != Some(told.requests)
                || *in_latency != tool.times_failures()
                || counted.is_some_and(|among| among.requests != run.all())
                || counted.is_some() != (told.requests != run.requests || told.wrong != run.wrong)
        }
        Diagnosis::WrongAnswersAsSpeed {
            wrong, requests, ..
        } => *wrong != run.wrong || *requests != run.requests,
        _ => true,
    };
    wrong.then_some("it is false")
}

/// Whether lost SYNs of a run can be seen in a text: in latencies that are short and even, of which it
/// has the median, or in the times to connect.
fn shows_lost_syns(tool: Tool, form: bool, can: Can, run: &Run) -> bool {
    let has_median = match tool {
        Tool::Siege => false,
        Tool::Jmeter => form,
        _ => can.times_opening,
    };
    let few = 2 * run.lost_s.len() < run.opened_us.len();
    !run.lost_s.is_empty() && ((has_median && run.steady) || (tool == Tool::H2load && !form && few))
}

/// What is wrong with the reading of a run and with what follows from it.
fn faults(tool: Tool, can: Can, (run, form, text): &(Run, bool, String)) -> Vec<String> {
    let told = told(tool, *form, run);
    let found = tools::read_text(text);
    let [reading] = &found.readings[..] else {
        return vec![format!("{} readings", found.readings.len())];
    };
    let mut faults = Vec::new();
    let mut check = |is_so: bool, fault: String| faults.extend((!is_so).then_some(fault));
    check(found.problems.is_empty(), format!("{:?}", found.problems));
    check(reading.tool == tool, format!("read as {}", reading.tool));
    let counts = (reading.requests, reading.errors.unexplained);
    let expected = (Some(told.requests), told.unexplained);
    check(counts == expected, format!("{counts:?}, not {expected:?}"));
    let findings = diagnose(&found.readings);
    for finding in &findings {
        let why = denied(finding, run, tool, &told);
        check(why.is_none(), format!("{why:?}: {finding:?}"));
        // A good run of any tool has nothing to say, but for what wrk 4 does to all.
        let of_any = tool == Tool::Wrk
            && matches!(
                finding.kind(),
                FindingKind::ImpossibleMean | FindingKind::CorrectedAfterwards
            );
        // Several at once are possible where nothing tells how many.
        let several = run.depth > 1 && finding.unknown.contains(&Fact::Depth);
        // Answers of two kinds look like connections of two kinds.
        let steps = run.bimodal && finding.kind() == FindingKind::SynRetransmission;
        let excused = of_any || several || steps || !run.is_plain();
        check(excused, format!("of a good run: {finding:?}"));
    }
    // What failed is told.
    let is_told = |kind| findings.iter().any(|f| f.kind() == kind);
    let wrong = is_told(FindingKind::WrongAnswersAsSpeed);
    check(wrong == (told.wrong > 0), "wrong answers".to_owned());
    let kinds = [
        FindingKind::Timeouts,
        FindingKind::ErrorsLeftOut,
        FindingKind::Failures,
    ];
    let failed = run.late + run.failed_connects + told.unexplained;
    let failures = kinds.into_iter().any(is_told);
    check(failures == (failed > 0), "failures".to_owned());
    let is_seen = is_told(FindingKind::SynRetransmission);
    let shows = shows_lost_syns(tool, *form, can, run);
    check(is_seen || !shows, format!("lost SYNs: {:?}", run.lost_s));
    faults
}

#[test]
fn no_finding_is_false_of_a_simulated_run() {
    let mut all = Vec::new();
    for (at, (tool, words, _)) in TOOLS.into_iter().enumerate() {
        let can = can(words);
        let mut lost = 0;
        let before = all.len();
        for of_run in runs_of(at) {
            lost += u64::from(shows_lost_syns(tool, of_run.1, can, &of_run.0));
            let found = faults(tool, can, &of_run);
            if all.len() < before + 2 {
                all.extend(
                    found
                        .iter()
                        .map(|one| format!("{tool}: {one}\n{}", of_run.2)),
                );
            }
        }
        let can_lose = (can.times_opening && tool != Tool::Siege) || tool == Tool::H2load;
        if (lost >= 10) != can_lose {
            all.push(format!("{tool}: {lost} runs show lost SYNs"));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// Readings but for their lines.
fn figures(readings: &[ToolReading]) -> Vec<ToolReading> {
    let bare = |reading: &ToolReading| ToolReading {
        lines: (0, 0),
        ..reading.clone()
    };
    readings.iter().map(bare).collect()
}

#[test]
fn no_output_that_is_cut_off_passes_as_whole() {
    let mut random = Random(7);
    let mut all = Vec::new();
    for (at, (tool, ..)) in TOOLS.into_iter().enumerate() {
        for (run, _, text) in runs_of(at).take(RUNS as usize / 5) {
            // A document stands in one line.
            let end = match text.trim_end().rfind('\n') {
                Some(_) => {
                    let ends: Vec<usize> =
                        text.trim_end().match_indices('\n').map(|m| m.0).collect();
                    ends[random.below(ends.len() as u64) as usize]
                }
                None => 1 + random.below(text.len() as u64 - 1) as usize,
            };
            let cut = &text[..end];
            let (found, whole) = (tools::read_text(cut), tools::read_text(&text));
            let is_same = figures(&found.readings) == figures(&whole.readings);
            let only_progress = tool == Tool::K6
                && found.readings.first().map(|r| r.requests) == Some(whole.readings[0].requests);
            // It rounds what it sent, and as many may be under way.
            let too_few = tool == Tool::Autocannon && run.late <= run.connections * run.depth + 500;
            let said = !found.problems.is_empty() || found.readings.is_empty();
            if !(said || is_same || only_progress || too_few) {
                all.push(format!("{tool}: {cut}"));
            }
        }
    }
    all.truncate(5);
    assert!(all.is_empty(), "{}", all.join("\n"));
}
