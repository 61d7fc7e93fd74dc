use super::words;
use crate::Metric;
use crate::fixtures::{closed, condition, done, header, in_closed, trial};
use readings::{
    Histogram, Journal, JournalRow, LastingReading, LoadReading, ServerSettings, SettingsReading,
    SubjectSettings, TrafficKind, Trial,
};
use testing::Text as _;

/// Fifty streams of 64 events, one every 20 ms; through a server that holds back so many at a time.
fn streams(together: u64) -> LoadReading {
    let mut lasting = LastingReading {
        traffic: TrafficKind::Events,
        messages: 50 * 64,
        ..LastingReading::default()
    };
    let mut load = closed(1.0);
    for _ in 0..50 {
        lasting.lag.record_many_ns(together * 10_000_000, 64);
        lasting
            .first_message
            .record_ns(together * 20_000_000 + 1_000_000);
        for event in 1..64 {
            if event % together == 0 {
                lasting.gap.record_ns(together * 20_000_000);
            } else {
                lasting.gap.record_ns(10_000);
                lasting.merged += 1;
            }
        }
        load.response.record_ns(64 * 20_000_000 + 1_000_000);
    }
    load.lasting = Some(Box::new(lasting));
    load
}

/// The analysis of runs in which `balance` holds back so many events at a time, by block, and its loads
/// are changed.
fn analysed(
    by_block: &[u64],
    buffering: Option<&str>,
    change: fn(&mut LoadReading),
) -> crate::Analysis {
    let mut rows: Vec<Trial> = Vec::new();
    for (block, together) in (1..).zip(by_block) {
        rows.push(in_closed(block, "direct", streams(1)));
        let mut held = streams(*together);
        change(&mut held);
        let held = done(Some(held), None);
        rows.push(trial(block, "balance", false, held));
    }
    let mut server = ServerSettings {
        server: "front".into(),
        ..ServerSettings::default()
    };
    let name = ServerSettings::BUFFERING.to_owned();
    server.settings = buffering
        .map(|it| (name, it.to_owned()))
        .into_iter()
        .collect();
    let settings = SettingsReading {
        condition: condition(96),
        subjects: vec![SubjectSettings {
            subject: "balance".into(),
            servers: vec![server],
        }],
    };
    let mut journal = Journal::of_trials(header(by_block.len() as u32), rows);
    journal.rows.insert(0, JournalRow::Settings(settings));
    crate::analyse(&journal)
}

fn told(by_block: &[u64], buffering: Option<&str>) -> Vec<String> {
    changed(by_block, buffering, |_| {})
}

fn changed(by_block: &[u64], buffering: Option<&str>, change: fn(&mut LoadReading)) -> Vec<String> {
    let found = analysed(by_block, buffering, change).held_back;
    found.iter().map(words::held_back).collect()
}

#[test]
fn streams_are_compared_by_their_messages_and_not_by_requests() {
    let analysis = analysed(&[64, 64, 64], None, |_| {});
    let metrics: Vec<Metric> = analysis.comparisons.iter().map(|one| one.metric).collect();
    let expected = [
        Metric::FirstMessageUsP50,
        Metric::LagUsP99,
        Metric::GapUsP99,
        Metric::MessagesPerS,
    ];
    assert_eq!(metrics, expected);
    // 64 paces and a millisecond against one and that.
    let first = analysis.comparisons[0].ratio.unwrap();
    assert!((first / (1281.0 / 21.0) - 1.0).abs() < 0.01, "{first}");
}

#[test]
fn a_server_that_waits_for_the_end_is_named_with_its_setting() {
    let found = told(&[64, 64, 64], Some("proxy_buffering on"));
    let expected = "`balance` (connections=96) holds events back: the first comes after 1.28 s \
                    (streams of 64 events, one every 20.0 ms), for `direct` after 21.0 ms; `front` \
                    has `proxy_buffering on`";
    assert_eq!(found, [expected]);
    for unknown in [None, Some("off"), Some("unknown (extra lines)")] {
        let found = told(&[64], unknown);
        assert_eq!(found.len(), 1);
        assert!(!found[0].contains("has"), "{found:?}");
    }
}

#[test]
fn events_that_come_in_pairs_are_merged() {
    let found = told(&[2, 2], None);
    let expected = "`balance` (connections=96) holds events back: 50.0% come together with the one \
                    before, for `direct` 0%";
    assert_eq!(found, [expected]);
}

#[test]
fn a_setting_is_a_cause_only_where_the_first_event_waits_for_a_buffer() {
    // Pairs, of which the first waits for the second.
    let pairs = told(&[2, 2], Some("proxy_buffering on"));
    pairs[0].ends("`front` has `proxy_buffering on`");
    // As many come together where the proxy has no CPU time, but the first at once.
    let starved = |load: &mut LoadReading| {
        let lasting = load.lasting.as_mut().unwrap();
        lasting.first_message = Histogram::new();
        lasting.first_message.record_many_ns(21_000_000, 50);
    };
    let found = changed(&[2, 2], Some("proxy_buffering on"), starved);
    assert_eq!(found.len(), 1);
    assert!(!found[0].contains("proxy_buffering"), "{found:?}");
    // A client that has none finds together what came one by one.
    let saturated = |load: &mut LoadReading| load.client.saturated = true;
    assert!(changed(&[2, 2], None, saturated).is_empty());
}

#[test]
fn a_server_that_passes_events_on_at_once_is_not_named() {
    assert!(told(&[1, 1], Some("proxy_buffering on")).is_empty());
    // In one block of two it may be the machine.
    assert!(told(&[64, 1], None).is_empty());
}
