//! Probes: revival, active checks, commands that are told of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::control::{BackEnd, start, until, who};
use net::IoKind;

fn dead() -> BackEnd {
    BackEnd::start("dead")
}

#[test]
fn a_back_end_that_comes_back_is_revived() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let (one, two) = (dead(), BackEnd::start("two"));
        let address = one.address;
        drop(one);
        let running = start(
            &format!(
                "[services.web]\nlisten = \"127.0.0.1:0\"\nreviving_interval = \"50ms\"\n\
                 dispatch = \"by-order\"\n[services.web.backends]\none = \"{address}\"\n\
                 two = \"{}\"\n",
                two.address
            ),
            io,
        );
        assert_eq!(
            who(running.address()).as_deref(),
            Some("two"),
            "in the same attempt"
        );
        assert_ne!(running.state(0, 0), "available");
        assert_eq!(running.backend(0, 0)["failed"], 1);
        let _one = BackEnd::at(address, "one");
        until("it was revived", || running.state(0, 0) == "available");
        assert_eq!(who(running.address()).as_deref(), Some("one"));
        let mut notices = String::new();
        until("both changes were told", || {
            notices.push_str(&running.supervisor.notices().join("\n"));
            notices.contains(
                "back end one is not used any more: a connection to it failed: Connection refused",
            ) && notices.contains("back end one is used again")
        });
    }
}

#[test]
fn without_an_interval_nothing_is_revived_and_down_never_is() {
    let (one, two) = (dead(), dead());
    let addresses = [one.address, two.address];
    drop((one, two));
    let running = start(
        &format!(
            "[services.still]\nlisten = \"127.0.0.1:0\"\nreviving_interval = \"0s\"\n\
             backends.one = \"{}\"\n[services.often]\nlisten = \"127.0.0.1:0\"\n\
             reviving_interval = \"10ms\"\nbackends.two = \"{}\"\n",
            addresses[0], addresses[1]
        ),
        IoKind::Epoll,
    );
    assert_eq!(who(running.address()), None);
    running.done("tell often two state down");
    let back = [
        BackEnd::at(addresses[0], "one"),
        BackEnd::at(addresses[1], "two"),
    ];
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(running.state(0, 0), "unavailable");
    assert_eq!(running.state(1, 0), "down");
    assert_eq!(
        back.iter().map(BackEnd::accepted).sum::<u64>(),
        0,
        "nobody probed them"
    );
    running.done("tell still one state waking");
    until("it was woken", || running.state(0, 0) == "available");
}

#[test]
fn a_check_by_http_wants_its_status_several_times() {
    let status = Arc::new(AtomicU32::new(503));
    let back = BackEnd::http(status.clone());
    let running = start(
        &format!(
            "[services.web]\nlisten = \"127.0.0.1:0\"\nreviving_interval = \"20ms\"\n\
             check_interval = \"20ms\"\n\
             check = {{ kind = \"http\", path = \"/health\", status = 204, rise = 3, fall = 2 }}\n\
             backends.one = {{ address = \"{}\", on_fail = \"echo %b by %r >> FOLDER/failed\" }}\n",
            back.address
        ),
        IoKind::Epoll,
    );
    until("it was left out", || running.state(0, 0) == "unavailable");
    assert!(back.answered_with(503) >= 2, "two probes have to fail");
    until("the command ran", || {
        running.folder.read("failed") == "one by 0.0.0.0\n"
    });
    status.store(204, Ordering::Relaxed);
    until("it is used again", || running.state(0, 0) == "available");
    assert!(back.answered_with(204) >= 3, "three probes have to succeed");
}

#[test]
fn a_probe_that_nobody_answers_fails_in_time_and_holds_up_no_other() {
    // Accepts, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let status = Arc::new(AtomicU32::new(200));
    let good = BackEnd::http(status);
    let running = start(
        &format!(
            "[services.web]\nlisten = \"127.0.0.1:0\"\ncheck_interval = \"20ms\"\n\
             check = {{ kind = \"http\", timeout = \"300ms\" }}\n[services.web.backends]\n\
             silent = \"{}\"\ngood = \"{}\"\n",
            silent.local_addr().unwrap(),
            good.address
        ),
        IoKind::Epoll,
    );
    until("the silent one was left out", || {
        running.state(0, 0) != "available"
    });
    assert_eq!(running.state(0, 1), "available");
    assert!(good.accepted() > 3, "the other was probed all the while");
    let start = Instant::now();
    drop(running);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "probes hold nobody up at the end"
    );
}
