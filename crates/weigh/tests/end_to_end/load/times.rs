//! `weigh load`: whose clock reading tells when an answer came.

use std::time::Duration;

use crate::common::{Origin, Place, load, measured, no_errors, number};

const STOP: i32 = 19;
const CONTINUE: i32 = 18;

/// A load that stands still for 60 ms of each 100, of answers that take 20 ms: those to a fifth of
/// its requests come while it does.
fn held_up(place: &Place, origin: &Origin, timestamps: &str) -> serde_json::Value {
    let url = format!("{}/delay/constant/20ms", origin.url);
    let mut running = place.start(&format!(
        "load {url} --rate 100/s -n 150 -c 32 --wait sleep --timestamps {timestamps} --format \
         json --quiet"
    ));
    while !running.has_ended() {
        running.signal(STOP);
        std::thread::sleep(Duration::from_millis(60));
        running.signal(CONTINUE);
        std::thread::sleep(Duration::from_millis(40));
    }
    let (_, document) = measured(running.end());
    no_errors(&document);
    assert_eq!(document["requests"], 150);
    document
}

#[test]
fn what_holds_the_load_up_is_told_apart_from_what_the_server_took() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let kernel = held_up(&place, &origin, "kernel");
    let program = held_up(&place, &origin, "userspace");
    let p90 = |document: &serde_json::Value, name: &str| number(&document[name]["p90"]);
    let (own, seen) = (p90(&kernel, "service_us"), p90(&program, "service_us"));
    assert!(own >= 20_000.0, "{own}");
    assert!(
        own + 20_000.0 < seen,
        "{own} by the kernel, {seen} by the program"
    );
    // It is not lost: it is the load's lateness.
    assert!(number(&kernel["receive_lag_us"]["p90"]) > 20_000.0);
    assert_eq!(kernel["receive_lag_us"]["count"], 150);
    assert_eq!(program["receive_lag_us"]["count"], 0);
}

#[test]
fn an_open_loop_asks_the_kernel_and_a_closed_one_does_not() {
    let place = Place::new();
    let origin = Origin::start(&place);
    for io in ["uring", "epoll"] {
        let open = format!("-n 50 -c 4 --rate 1000/s --io {io}");
        let (_, document) = load(&place, &origin.url, &open);
        assert_eq!(document["receive_lag_us"]["count"], 50, "{io}");
        let closed = format!("-n 50 -c 4 --io {io}");
        let (_, document) = load(&place, &origin.url, &closed);
        assert_eq!(document["receive_lag_us"]["count"], 0, "{io}");
    }
}
