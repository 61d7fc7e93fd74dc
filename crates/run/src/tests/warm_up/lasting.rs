//! Traffic that lasts: what is asked for, and how long its slices are.

use std::time::Duration;

use agent::wire::LoadOrder;
use load::{SocketFlow, Stop, Traffic};
use readings::Pacing;

use super::super::{TWO, run, script_with};

/// The orders of a run with these lines in `[load]`, all of whose trials were measured.
fn orders(load: &str, answer_us: fn(usize, &load::Target) -> u64) -> Vec<LoadOrder> {
    let script = script_with(|it| it.answer_us = answer_us);
    // A subject that is asked before the load does not answer: a stream may have no end.
    for subject in ["a", "b"] {
        let name = format!("subject {subject}");
        script.borrow_mut().not_ready.insert(name, usize::MAX);
    }
    let windows = "window = \"12s\"\nlatency_window = \"2s\"";
    let text = TWO.replace("window = \"200ms\"\nlatency_window = \"0s\"", windows);
    let ran = run(&format!("{text}[load]\n{load}\n"), &script);
    assert!(
        ran.complete && ran.failures().is_empty(),
        "{:?}",
        ran.failures()
    );
    let orders = script.borrow().orders.clone();
    let mut targets = orders.iter().flat_map(|order| &order.job.targets);
    assert!(targets.all(|target| !target.traffic.is_answers()));
    orders
}

#[test]
fn streams_have_slices_in_which_several_of_them_end_and_no_open_loop() {
    let stream_us = |_: usize, _: &load::Target| 1_280_000;
    let orders = orders("events = true\nconnections = 8", stream_us);
    let job = |order: &LoadOrder| order.job.clone();
    for segment in orders.iter().flat_map(|order| job(order).segments) {
        assert_eq!(segment.pacing, Pacing::Closed);
    }
    // The warm-ups come first; then two slices for each of three trials, in each of two blocks.
    let stream = Duration::from_millis(1_280);
    let slices = orders.iter().flat_map(|order| job(order).segments);
    let long = |one: &load::Segment| matches!(one.stop, Stop::After(window) if window > 4 * stream);
    let slices: Vec<_> = slices.filter(long).collect();
    assert_eq!(slices.len(), 2 * 3 * 2);
    assert!(slices.iter().all(|one| one.ramp_up >= 2 * stream));
}

#[test]
fn topics_have_their_own_pace_and_whole_topics_a_thread() {
    let load =
        "websocket = true\nconnections = 12\nthreads = 5\nmessage_rate = \"20/s\"\nfan_out = 4";
    let orders = orders(load, |_, _| 1_280_000);
    for order in &orders {
        let flow = match &order.job.targets[0].traffic {
            Traffic::WebSocket(asked) => asked.flow,
            other => panic!("{other:?}"),
        };
        let every = Duration::from_millis(50);
        assert_eq!(flow, SocketFlow::FanOut { members: 4, every });
        assert_eq!(order.job.threads, 3);
        let mut segments = order.job.segments.iter();
        assert!(segments.all(|one| one.pacing == Pacing::Closed));
    }
}

#[test]
fn the_messages_of_websockets_are_requests_at_the_rate_of_all_connections() {
    let load = "websocket = true\nconnections = 20\nmessage_rate = \"2/s\"\nretire_after = 10";
    let orders = orders(load, |_, _| 1_000);
    let last = &orders.last().unwrap().job;
    assert_eq!(last.segments[0].pacing, Pacing::Open { rate_per_s: 40.0 });
    assert_eq!(last.requests_per_connection, Some(10));
    let Traffic::WebSocket(asked) = &last.targets[0].traffic else {
        panic!("{:?}", last.targets[0].traffic);
    };
    assert!(asked.paced_by_connection);
    assert_eq!((asked.in_flight, asked.message_bytes), (1, 32));
}
