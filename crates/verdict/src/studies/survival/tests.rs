use super::words;
use crate::fixtures::{done, header, measured, open, trial};
use readings::{
    ConnectionsRow, EventReading, EventsReading, Journal, LastingReading, TrafficKind, Trial,
};

/// A block in which so many of 32 connections were cut by a reload after 2 s, and opened again in the
/// second after it.
fn reloaded(block: u32, cut: u64) -> Trial {
    let mut lasting = LastingReading {
        traffic: TrafficKind::WebSocket,
        ..LastingReading::default()
    };
    if cut > 0 {
        lasting.count_end("close 1001", true, cut - 1);
        lasting.count_end("reset", true, 1);
        lasting.count_end("window", false, 32);
        lasting.reconnect.record_many_ns(12_000_000, cut);
    }
    lasting.connections = (0..40)
        .map(|at| ConnectionsRow {
            start_s: f64::from(at) * 0.1,
            open: 32,
            cut: if at == 20 { cut } else { 0 },
            // Those of the start are no storm.
            opened: match at {
                0 => 32,
                20 => cut / 2,
                29 => cut - cut / 2,
                _ => 0,
            },
        })
        .collect();
    let mut load = open(2_000.0, 400.0);
    load.lasting = Some(Box::new(lasting));
    let mut outcome = done(None, Some(load));
    let reading = measured(&mut outcome);
    reading.events = Some(EventsReading {
        requests: 1_000,
        failed: cut / 2,
        observed_s: 8.0,
        events: vec![EventReading {
            server: "front".into(),
            what: "reload".into(),
            at_s: 2.0,
            ..EventReading::default()
        }],
        ..EventsReading::default()
    });
    trial(block, "balance", false, outcome)
}

fn told(trials: Vec<Trial>) -> Vec<String> {
    let analysis = crate::analyse(&Journal::of_trials(header(trials.len() as u32), trials));
    analysis.survivals.iter().map(words::survival).collect()
}

#[test]
fn connections_that_are_cut_are_told_with_their_ends_and_the_storm() {
    let expected = "`balance` (connections=96), reload of front: 40 cuts in 2 blocks of 32 \
                    connections (close 1001: 38, reset: 2); open again after 12.0 ms (p99 12.0 ms), \
                    at most 20.0 connections/s; 20 of 2,000 messages failed";
    assert_eq!(told(vec![reloaded(1, 20), reloaded(2, 20)]), [expected]);
}

#[test]
fn a_reload_that_cuts_nothing_is_told_too() {
    let expected = "`balance` (connections=96), reload of front: none of 32 connections is cut; 0 of \
                    1,000 messages failed";
    assert_eq!(told(vec![reloaded(1, 0)]), [expected]);
}
