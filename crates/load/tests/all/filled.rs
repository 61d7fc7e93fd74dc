//! Requests that differ from one to the next, as servers get them.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::protocols::{http2, http3};
use crate::support::{BOTH, GOOD, LONG, Server, job, one, origin, target};
use load::{
    CallKind, EventFormat, Events, Grpc, Http2, JobError, Part, Segment, Stop, Target, Traffic,
};
use net::os;
use readings::Pacing;
use readings::requests::{
    AnswerSpec, Feed, FeedOrder, Fill, Piece, RequestSet, RequestSpec, Template,
};

/// A request line and a body.
type Got = (String, String);

/// A server that keeps what it is asked for, in the order in which it comes on each connection.
fn collecting() -> (Server, Arc<Mutex<Vec<Got>>>) {
    let all: Arc<Mutex<Vec<Got>>> = Arc::default();
    let kept = all.clone();
    let server = Server::start(move |peer| {
        let mut input = BufReader::new(peer.stream.try_clone().unwrap());
        loop {
            let (mut first, mut length) = (String::new(), 0);
            let mut line = String::new();
            while input.read_line(&mut line).is_ok_and(|read| read > 0) && line != "\r\n" {
                if first.is_empty() {
                    first = line.trim_end().to_owned();
                }
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim_end().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if line != "\r\n" || input.read_exact(&mut body).is_err() {
                return;
            }
            let body = String::from_utf8(body).unwrap();
            kept.lock().unwrap().push((first, body));
            if peer.stream.write_all(GOOD).is_err() {
                return;
            }
        }
    });
    (server, all)
}

fn column(column: usize, is_encoded: bool) -> Piece {
    let fill = Fill::Column { feed: 0, column };
    Piece::Place { fill, is_encoded }
}

fn request(method: &str, path: Vec<Piece>, body: Option<Vec<Piece>>) -> RequestSpec {
    RequestSpec {
        name: method.to_owned(),
        method: method.to_owned(),
        path: Template(path),
        fields: vec![("X-Test".to_owned(), Template::fixed("yes"))],
        body: body.map(Template),
        expect: AnswerSpec {
            status: Some(200),
            ..AnswerSpec::default()
        },
        ..RequestSpec::default()
    }
}

/// Posts each row of a feed once: its name in the path, its text as the body.
fn posts(rows: usize) -> RequestSet {
    let row = |at: usize| {
        vec![
            format!("name {at}/ü"),
            "text ".repeat(at % 50) + &at.to_string(),
        ]
    };
    RequestSet {
        requests: vec![request(
            "POST",
            vec![Piece::Text(b"/users/".into()), column(0, true)],
            Some(vec![column(1, false)]),
        )],
        feeds: vec![Feed {
            name: "users".to_owned(),
            columns: vec!["name".to_owned(), "text".to_owned()],
            rows: (0..rows).map(row).collect(),
            order: FeedOrder::Once,
        }],
        ..RequestSet::default()
    }
}

/// What a server gets of them, sorted.
fn expected(set: &RequestSet) -> Vec<Got> {
    let rows = set.feeds[0].rows.iter();
    let got = rows.map(|row| {
        let name = row[0]
            .replace(' ', "%20")
            .replace('/', "%2F")
            .replace('ü', "%C3%BC");
        (format!("POST /users/{name} HTTP/1.1"), row[1].clone())
    });
    let mut all: Vec<Got> = got.collect();
    all.sort();
    all
}

fn sorted(all: &Mutex<Vec<Got>>) -> Vec<Got> {
    let mut all = all.lock().unwrap().clone();
    all.sort();
    all
}

#[test]
fn threads_send_each_row_once() {
    for io in BOTH {
        for pacing in [
            Pacing::Closed,
            Pacing::Open {
                rate_per_s: 4_000.0,
            },
        ] {
            let (server, got) = collecting();
            let set = posts(1_001);
            let target = target(server.address, "/").with_requests(&set, "x", &[]);
            let mut job = job(io, target, 8, 4, Stop::After(LONG));
            job.segments[0].pacing = pacing;
            let reading = one(&job);
            assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
            assert_eq!((reading.requests, reading.connects), (1_001, 8));
            assert_eq!(reading.used_up.as_deref(), Some("users"));
            assert!(reading.duration_s < LONG.as_secs_f64() / 2.0);
            assert_eq!(sorted(&got), expected(&set));
        }
    }
}

#[test]
fn hosts_send_each_row_once() {
    let (server, got) = collecting();
    let set = posts(700);
    let target = target(server.address, "/").with_requests(&set, "x", &[]);
    let mut whole = job(BOTH[1], target, 12, 2, Stop::After(Duration::from_secs(6)));
    // What an agent gets is the same.
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(serde_json::from_str::<load::Job>(&text).unwrap(), whole);
    whole.segments[0].pacing = Pacing::Open {
        rate_per_s: 1_000.0,
    };
    let start_ns = os::now_ns() + 500_000_000;
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..3)
            .map(|host| {
                let mut job = whole.clone();
                job.part = Some(Part {
                    first_thread: 2 * host,
                    all_threads: 6,
                    start_ns,
                    gap_ns: 0,
                });
                scope.spawn(move || one(&job).requests)
            })
            .collect();
        hosts.into_iter().map(|host| host.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<u64>(), 700);
    assert!(
        counts.iter().all(|count| count.abs_diff(233) <= 2),
        "{counts:?}"
    );
    assert_eq!(sorted(&got), expected(&set));
}

/// Posts the same body to paths that differ.
fn numbered_posts(body: &[u8]) -> RequestSet {
    let seq = Piece::Place {
        fill: Fill::Seq,
        is_encoded: false,
    };
    let path = vec![Piece::Text(b"/n/".into()), seq];
    RequestSet {
        requests: vec![request("POST", path, Some(vec![Piece::Text(body.into())]))],
        ..RequestSet::default()
    }
}

/// A body that is sent behind its head does not wait until the head is acknowledged, which takes 40 ms
/// where the server has nothing to answer yet.
#[test]
fn long_bodies_do_not_wait_for_an_acknowledgement() {
    for io in BOTH {
        let typical_us = |length: usize| {
            let (server, _) = collecting();
            let set = numbered_posts(&vec![b'x'; length]);
            let target = target(server.address, "/").with_requests(&set, "x", &[]);
            let reading = one(&job(io, target, 1, 1, Stop::Requests(100)));
            assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
            reading.service.quantile_us(0.5)
        };
        let (short, long) = (typical_us(15_000), typical_us(20_000));
        assert!(long < 20.0 * short, "{io:?}: {long} us, {short} us");
    }
}

#[test]
fn bodies_that_each_connection_copies_are_counted() {
    let validate = |length: usize, connections: u32| {
        let set = numbered_posts(&vec![b'x'; length]);
        let target = target(([127, 0, 0, 1], 1).into(), "/").with_requests(&set, "x", &[]);
        let target = Target {
            connections,
            ..target
        };
        load::Job::to(target)
            .segment(Segment::closed(Stop::Requests(1)))
            .validate()
    };
    let refused = JobError::FilledMemory { gib: 5, most: 4 };
    // Each has the request and the copy that is being sent.
    assert_eq!(validate(16_000, 160_000), Err(refused));
    assert_eq!(validate(16_000, 80_000), Ok(()));
    assert_eq!(validate(16_384, 160_000), Ok(()), "one for all");
}

#[test]
fn long_bodies_are_sent_behind_heads_that_differ() {
    let body: String = (0..9_000).map(|at| format!("line {at}\n")).collect();
    let set = numbered_posts(body.as_bytes());
    for io in BOTH {
        let (server, got) = collecting();
        let target = target(server.address, "/").with_requests(&set, "x", &[]);
        let reading = one(&job(io, target, 3, 2, Stop::Requests(90)));
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!((reading.requests, reading.connects), (90, 3));
        let mut numbers: Vec<u64> = got
            .lock()
            .unwrap()
            .iter()
            .map(|(line, got)| {
                assert!(*got == body, "{io:?} {line}: {} bytes", got.len());
                let number = line.strip_prefix("POST /n/").unwrap();
                number.split(' ').next().unwrap().parse().unwrap()
            })
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=90).collect::<Vec<u64>>(), "{io:?}");
    }
}

#[test]
fn over_http_3_too_they_arrive_whole() {
    // More than the windows of a stream hold at its start.
    let body = vec![b'x'; 3 << 20];
    let set = numbered_posts(&body);
    for io in BOTH {
        let (origin, tls) = http3::origin_with(true, io);
        let target = http3::over_h3(origin.address(), "/", &tls, 2);
        let reading = one(&job(
            io,
            target.with_requests(&set, "localhost", &[]),
            2,
            1,
            Stop::Requests(12),
        ));
        // The origin has no page of these names; it reads the bodies all the same.
        assert_eq!(reading.errors_all.status, 12, "{:?}", reading.wrong);
        assert_eq!(reading.errors_all.total(), 12, "{:?}", reading.wrong);
        let got = origin.stats().received;
        let checksum = 12 * u64::from(readings::RequestBody::of(&body).unwrap().crc32);
        assert_eq!(
            (got.body_bytes, got.body_checksum),
            (12 * body.len() as u64, checksum)
        );
    }
}

/// Sizes that the origin sends.
fn sizes() -> RequestSet {
    let fill = Fill::Int { from: 100, to: 199 };
    let size = Piece::Place {
        fill,
        is_encoded: false,
    };
    let path = vec![Piece::Text(b"/bytes/".into()), size];
    let body = vec![Piece::Place {
        fill: Fill::Uuid,
        is_encoded: false,
    }];
    RequestSet {
        requests: vec![
            request("GET", path.clone(), None),
            request("POST", path, Some(body)),
        ],
        ..RequestSet::default()
    }
}

#[test]
fn every_version_of_http_sends_them() {
    for io in BOTH {
        let (secure, tls) = http3::origin_with(true, io);
        let clear = origin();
        let plain = target(clear.address(), "/");
        let over_h3 = http3::over_h3(secure.address(), "/", &tls, 4);
        let mut read = Vec::new();
        for target in [http2::over_h2(plain.clone(), 4), over_h3, plain] {
            let target: Target = target.with_requests(&sizes(), "localhost", &[]);
            let reading = one(&job(io, target, 2, 1, Stop::Requests(400)));
            assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
            let names = reading
                .per_request
                .iter()
                .map(|one| (one.name.clone(), one.requests));
            let names: Vec<_> = names.collect();
            assert_eq!(names.iter().map(|(_, requests)| requests).sum::<u64>(), 400);
            // The seed decides which they are.
            read.push(names);
        }
        assert!(read[0] == read[1] && read[0] == read[2], "{read:?}");
    }
}

#[test]
fn streams_of_events_have_places_and_calls_have_none() {
    let origin = origin();
    let count = Piece::Place {
        fill: Fill::Int { from: 3, to: 6 },
        is_encoded: true,
    };
    let path = vec![
        Piece::Text(b"/events/".into()),
        count,
        Piece::Text(b"?every=2ms".into()),
    ];
    let set = RequestSet {
        requests: vec![request("GET", path, None)],
        ..RequestSet::default()
    };
    let events = Target {
        traffic: Traffic::Events(Events {
            format: EventFormat::Sse,
            ..Events::default()
        }),
        ..target(origin.address(), "/")
    };
    let reading = one(&job(
        BOTH[0],
        events.with_requests(&set, "x", &[]),
        1,
        1,
        Stop::Requests(3),
    ));
    assert_eq!(
        (reading.requests, reading.errors_all.total()),
        (3, 0),
        "{:?}",
        reading.wrong
    );
    let calls = Target {
        http2: Some(Http2 { streams: 1 }),
        traffic: Traffic::Grpc(Grpc {
            call: CallKind::Unary,
            ..Grpc::default()
        }),
        ..target(origin.address(), "/")
    };
    let mut posts = sizes();
    posts.requests.remove(0);
    let calls = calls.with_requests(&posts, "x", &[]);
    let job = load::Job::to(calls).segment(Segment::closed(Stop::Requests(1)));
    assert_eq!(job.validate(), Err(JobError::NotFilled));
}
