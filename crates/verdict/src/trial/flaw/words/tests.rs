//! The words for made-up flaws.

use super::*;
use testing::Text as _;

fn wrong(kind: WrongKind, expected: &str, found: &str) -> Option<Wrong> {
    Some(Wrong {
        kind,
        expected: expected.into(),
        found: found.into(),
    })
}

fn failed_requests(queues: Vec<FullQueue>) -> Flaw {
    Flaw::FailedRequests {
        errors: ErrorCounts {
            connect: 40,
            timeout: 61,
            ..ErrorCounts::default()
        },
        requests: 10_001,
        first: None,
        no_port: false,
        queues,
    }
}

#[test]
fn each_flaw_has_its_words() {
    let unasked = Flaw::Unasked {
        front: "caddy".into(),
        behind: vec!["one".into(), "two".into()],
        requests: 24_977,
    };
    let refused = Wrong {
        kind: WrongKind::Connection,
        expected: "an open connection".into(),
        found: "Connection refused".into(),
    };
    for (of, words) in [
        (Flaw::NoAnswer { queues: vec![] }, "no good answer came"),
        (
            Flaw::MissingConnections {
                open: 31,
                asked: 32,
                first: None,
                queues: vec![],
            },
            "only 31 of 32 connections were open at the end of a window",
        ),
        (
            Flaw::MissingConnections {
                open: 0,
                asked: 10,
                first: Some(refused),
                queues: vec![],
            },
            "only 0 of 10 connections were open at the end of a window: expected an open connection, \
             found Connection refused",
        ),
        (
            Flaw::ClientBusy {
                rate_per_s: 20_000.0,
            },
            "the client was too busy to offer 20,000 requests/s on time",
        ),
        (
            Flaw::UsedUp {
                feed: "account".into(),
            },
            "all rows of the feed `account` were used before the end: give it more rows, or order = \
             \"in_turn\", which begins again",
        ),
        (
            Flaw::ClientStalled {
                share: 0.05,
                lag_us: 1.24e6,
            },
            "the client stalled: 5% of its requests were sent late by 1.2 s and more",
        ),
        (
            Flaw::LateEvent {
                what: "stop".into(),
                target: "web".into(),
                late_s: 1.88,
            },
            "the event `stop` on `web` was begun or undone 1.9 s late",
        ),
        (
            Flaw::Host(HostFault::Lost {
                host: "b".into(),
                why: "its pipe ended".into(),
            }),
            "host `b` was lost, and its part of the load is missing: its pipe ended",
        ),
        (
            Flaw::Host(HostFault::Late {
                host: "b".into(),
                late_us: 12_300.0,
            }),
            "host `b` began its part of the load 12.3 ms late, so the hosts did not measure at the \
             same time",
        ),
        (
            Flaw::ServerEnded {
                server: "nginx".into(),
            },
            "server `nginx` ended while it was measured",
        ),
        (
            Flaw::ServerRestarted {
                server: "nginx".into(),
                failed: 1,
            },
            "server `nginx` was started again while it was measured, and 1 request failed",
        ),
        (
            Flaw::Stolen {
                host: None,
                share: 0.06,
            },
            "the machine was given less than its CPU time: 6.0% of it was stolen",
        ),
        (
            Flaw::Throttled {
                host: None,
                times: 12,
                throttled_s: 0.5,
                looked_s: 10.0,
            },
            "a limit of CPU time throttled the machine 12 times, for 0.50 s in 10.00 s",
        ),
        (
            Flaw::Swapped {
                host: Some("vm".into()),
                written_pages: 0,
                read_pages: 1_256,
            },
            "the machine of host `vm` swapped: 0 pages written, 1,256 read",
        ),
        (
            unasked,
            "server `caddy` answered 24,977 requests without `one` or `two`, which took no CPU \
             time: if it should answer by itself, set expect.every_server = false",
        ),
        (
            Flaw::Unsteady(Unsteady {
                series: Series::Throughput,
                values: 90,
                before: 1_000.0,
                after: 800.0,
            }),
            "no steady state was reached: throughput still changed in the second half of 90 \
             values: it moved by -20.0%",
        ),
    ] {
        assert_eq!(flaw(&of), words);
    }
}

#[test]
fn a_wrong_answer_is_described() {
    for (first, described) in [
        (None, ""),
        (
            wrong(WrongKind::Status, "200", "502"),
            ": expected status 200, found 502",
        ),
        (
            wrong(WrongKind::Status, "status 200", "status 502"),
            ": expected status 200, found 502",
        ),
        (
            wrong(WrongKind::Length, "12", "a length of 13"),
            ": expected a length of 12, found a length of 13",
        ),
    ] {
        let of = Flaw::WrongAnswers {
            wrong: 31_204,
            answers: 31_204,
            first,
        };
        let start = "31,204 of 31,204 answers were wrong";
        assert_eq!(flaw(&of), format!("{start}{described}"));
    }
}

#[test]
fn a_trial_whose_answers_change_has_a_remedy() {
    let of = |expected: &str| {
        trial_flaw(&TrialFlaw::from(Flaw::WrongAnswers {
            wrong: 12,
            answers: 400,
            first: wrong(WrongKind::Length, expected, "13 bytes"),
        }))
    };
    let words = of("12 bytes, as the first answer had");
    words.ends("(weigh compare: --expect-body varies)");
    assert!(!of("12").contains("varies"));
}

#[test]
fn failed_requests_name_the_accept_queues_that_were_full() {
    let known = |server: Option<&str>, full| {
        FullQueue::Known(AcceptQueue {
            server: server.map(str::to_owned),
            backlog: server.map(|_| 5),
            full,
        })
    };
    let servers = vec!["caddy".to_owned()];
    for (queue, named) in [
        (
            known(Some("caddy"), 71),
            "the accept queue of `caddy` (backlog 5) was full 71 times",
        ),
        (
            known(None, 1),
            "the accept queue of an unknown server was full once (ListenOverflows)",
        ),
        (
            FullQueue::Overflowed {
                servers,
                times: 112,
            },
            "the accept queue of `caddy` was full 112 times",
        ),
        (
            FullQueue::Dropped {
                servers: vec![],
                dropped: 1,
            },
            "the kernel dropped 1 connection to a server while they were opened",
        ),
    ] {
        let start = "101 of 10,001 requests failed on the way (40 connect, 61 timeout)";
        let of = failed_requests(vec![queue]);
        assert_eq!(flaw(&of), format!("{start}; {named}"));
    }
}

#[test]
fn an_overload_says_what_was_carried_where_that_is_known() {
    let mut found = Overload {
        carried_per_s: Some(1_000.0),
        offered_per_s: 2_000.0,
        backlog_end: 10_000,
        stage: None,
    };
    let end = "and 10,000 requests waited at the end; the latency is that of \
               the backlog, and grows with the length of the load";
    assert_eq!(
        flaw(&Flaw::Overload(found)),
        format!("it was overloaded: of 2,000/s offered it answered about 1,000/s, {end}")
    );
    (found.carried_per_s, found.stage) = (None, Some(1));
    assert_eq!(
        flaw(&Flaw::Overload(found)),
        format!("it was overloaded in stage 2: it was offered 2,000/s, {end}")
    );
}

#[test]
fn a_flaw_of_a_trial_names_its_load_and_its_loop() {
    let of = |load: Option<&str>, load_loop| {
        trial_flaw(&TrialFlaw {
            load: load.map(str::to_owned),
            load_loop,
            flaw: Flaw::NoAnswer { queues: vec![] },
        })
    };
    assert_eq!(of(None, None), "no good answer came");
    assert_eq!(
        of(None, Some(Loop::Closed)),
        "throughput: no good answer came"
    );
    assert_eq!(
        of(Some("api"), Some(Loop::Open)),
        "load `api`: latency: no good answer came"
    );
    assert_eq!(of(Some("api"), None), "load `api`: no good answer came");
}
