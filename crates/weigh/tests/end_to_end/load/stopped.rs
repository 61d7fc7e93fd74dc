//! `weigh load` and `weigh capacity`, stopped before anything is measured: while the target is asked
//! what it answers, or in the warm-up.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::common::{INT, Place, Running, TERM, serve_tcp};

/// Much less than what the target is given to answer.
const SOON: Duration = Duration::from_secs(5);

#[track_caller]
fn ends_at_once(running: Running<'_>, signal: i32) {
    let sent = Instant::now();
    running.signal(signal);
    let done = running.end_within(SOON).expect(128 + signal);
    assert!(sent.elapsed() < SOON);
    done.says(&["stopped before anything was measured"]);
    assert_eq!(done.out, "");
}

#[test]
fn a_target_that_says_nothing_is_not_awaited_after_a_signal() {
    let place = Place::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let load = ["load", &url, "--timeout", "60s"];
    let capacity = ["capacity", &url, "--timeout", "60s", "--slo", "p99<1s"];
    for (words, signal) in [(&load[..], INT), (&load[..], TERM), (&capacity[..], INT)] {
        let running = place.start(words);
        // Open until it has ended.
        let _client: (TcpStream, _) = silent.accept().unwrap();
        ends_at_once(running, signal);
    }
}

#[test]
fn a_load_that_was_stopped_in_its_warm_up_has_measured_nothing() {
    let place = Place::new();
    let (address, talk) = serve_tcp(|_| (200, String::new()));
    let url = format!("http://{address}/");
    let mut running = place.start(&format!("load {url} --warmup 60s -d 60s"));
    running.until("it has begun", || talk.heads().len() > 50);
    ends_at_once(running, INT);
}

#[test]
fn no_further_line_of_requests_is_asked_for_after_a_signal() {
    let place = Place::new();
    let (address, talk) = serve_tcp(|_| {
        std::thread::sleep(Duration::from_millis(50));
        (200, String::new())
    });
    let lines: String = (0..500).map(|n| format!("/{n}\n")).collect();
    place.write("urls", &lines);
    let url = format!("http://{address}/");
    let mut running = place.start(&format!("load {url} --urls urls"));
    running.until("it has asked", || talk.heads().len() > 3);
    ends_at_once(running, INT);
    assert!(talk.heads().len() < 400, "{}", talk.heads().len());
}
