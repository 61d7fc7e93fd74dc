//! gRPC calls: what makes one good, and servers that break the rules.

mod both_ways;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{
    BodyRule, CallError, CallKind, Expect, Grpc, Http2, Job, JobError, Segment, StatusRule, Stop,
    Target, Traffic, call, prepare,
};
use net::IoKind;
use net::grpc::{echo, prefix};
use net::h2::frame;
use readings::{LoadReading, TrafficKind};
use testing::http2::back_end::{BackEnd, Got, Link, value};

use crate::support::{BOTH, in_time, one};

const PATH: &str = "/weigh.v1.Echo/Unary";
const HEAD: [(&str, &str); 2] = [(":status", "200"), ("content-type", "application/grpc")];
const OK: [(&str, &str); 1] = [("grpc-status", "0")];

/// A call as the server got it.
struct Asked {
    stream: u32,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A server that does as told with each complete call, until it says that the connection ends.
fn server(each: impl Fn(&mut Link, Asked) -> bool + Send + Sync + 'static) -> SocketAddr {
    BackEnd::new(&[], move |link, _| {
        let mut open: HashMap<u32, Asked> = HashMap::new();
        while let Some(got) = link.receive() {
            let ended = got.ended();
            match got {
                Got::Head { stream, fields, .. } => {
                    let body = Vec::new();
                    open.insert(
                        stream,
                        Asked {
                            stream,
                            fields,
                            body,
                        },
                    );
                }
                Got::Data { stream, bytes, .. } => {
                    if let Some(asked) = open.get_mut(&stream) {
                        asked.body.extend(bytes);
                    }
                }
                _ => {}
            }
            if let Some(asked) = ended.and_then(|stream| open.remove(&stream))
                && !each(link, asked)
            {
                return;
            }
        }
    })
    .address
}

fn message(content: &[u8]) -> Vec<u8> {
    [&prefix(content.len() as u32)[..], content].concat()
}

/// Answers with these bytes as content, and with trailers.
fn answer(link: &mut Link, stream: u32, content: &[u8], trailers: &[(&str, &str)]) {
    link.head(stream, &HEAD, false);
    link.data(stream, content, false);
    link.head(stream, trailers, true);
}

fn target(address: SocketAddr, grpc: Grpc, message: &[u8]) -> Target {
    let mut bytes = net::fetch::request("POST", "test", PATH, &[]);
    bytes.extend_from_slice(message);
    let expect = Expect {
        status: StatusRule::Exactly(200),
        body: BodyRule::Any,
    };
    let mut target = Target::new(address, bytes, expect);
    target.http2 = Some(Http2 { streams: 3 });
    target.traffic = Traffic::Grpc(grpc);
    target
}

fn job(io: IoKind, target: Target, stop: Stop) -> Job {
    let mut job = Job::to(target.with_connections(2)).segment(Segment::closed(stop));
    job.io = Some(io);
    (job.connect_timeout, job.timeout) = (Duration::from_secs(20), Duration::from_secs(20));
    job
}

/// What a load of unary calls says of a server.
fn load(io: IoKind, address: SocketAddr, calls: u64) -> LoadReading {
    one(&job(
        io,
        target(address, Grpc::default(), b"hi"),
        Stop::Requests(calls),
    ))
}

fn ends(reading: &LoadReading) -> Vec<(&str, u64)> {
    let lasting = reading.lasting.as_ref().unwrap();
    assert_eq!(lasting.traffic, TrafficKind::Grpc);
    let ends = lasting.ends.iter();
    ends.map(|one| (one.how.as_str(), one.count)).collect()
}

/// The server's answers are wrong, each in the same way.
fn is_wrong(
    name: &str,
    found: &str,
    each: impl Fn(&mut Link, u32) + Send + Sync + Clone + 'static,
) {
    for io in BOTH {
        let each = each.clone();
        let address = server(move |link, asked| {
            each(link, asked.stream);
            true
        });
        let reading = in_time(name, move || load(io, address, 12));
        let shown = format!("{name}: {:?} {:?}", reading.errors_all, reading.wrong);
        assert_eq!(reading.requests_all, 0, "{shown}");
        assert_eq!(reading.errors_all.total(), 12, "{shown}");
        let wrong = &reading.wrong[0];
        let said = format!("expected {}, found {}", wrong.expected, wrong.found);
        assert!(said.contains(found), "{name}: {said}");
    }
}

#[test]
fn a_call_has_its_fields_and_its_message_and_is_answered_by_trailers() {
    for io in BOTH {
        let address = server(|link, asked| {
            let of = |name: &str| value(&asked.fields, name);
            assert_eq!(of(":method"), "POST");
            assert_eq!(of(":path"), PATH);
            assert_eq!(of("te"), "trailers");
            assert_eq!(of("content-type"), "application/grpc");
            assert_eq!(of("content-length"), "");
            assert_eq!(asked.body, message(b"hi"));
            answer(link, asked.stream, &asked.body, &OK);
            true
        });
        let reading = load(io, address, 200);
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!((reading.requests, reading.connects), (200, 2));
        assert_eq!(ends(&reading), [("grpc-status 0", 200)]);
        assert_eq!(reading.streams, Some(3));
    }
}

#[test]
fn other_statuses_are_counted_by_code_wherever_they_stand() {
    for io in BOTH {
        let count = AtomicU64::new(0);
        let address = server(move |link, asked| {
            match count.fetch_add(1, Ordering::Relaxed) % 4 {
                0 => {
                    let trailers = [("grpc-status", "14"), ("grpc-message", "no%20back end")];
                    answer(link, asked.stream, b"", &trailers);
                }
                1 => {
                    let only = [HEAD[0], HEAD[1], ("grpc-status", "8")];
                    link.head(asked.stream, &only, true);
                }
                _ => answer(link, asked.stream, &asked.body, &OK),
            }
            true
        });
        let reading = load(io, address, 40);
        assert_eq!((reading.requests_all, reading.errors_all.status), (20, 20));
        let ends = ends(&reading);
        assert_eq!(ends[0], ("grpc-status 0", 20));
        assert!(ends.contains(&("grpc-status 14", 10)), "{ends:?}");
        assert!(ends.contains(&("grpc-status 8", 10)), "{ends:?}");
        let found: Vec<&str> = reading.wrong.iter().map(|one| one.found.as_str()).collect();
        assert!(
            found.contains(&"grpc-status 14 (UNAVAILABLE): no back end"),
            "{found:?}"
        );
        assert!(found.contains(&"grpc-status 8 (RESOURCE_EXHAUSTED)"));
    }
}

#[test]
fn an_answer_of_http_alone_is_none_of_grpc() {
    is_wrong("502", "status 502 without a grpc-status", |link, stream| {
        link.head(stream, &[(":status", "502")], true);
    });
    is_wrong("a page", "another content-type", |link, stream| {
        link.head(stream, &[(":status", "200"), ("grpc-status", "0")], true);
    });
    is_wrong(
        "no trailers",
        "trailers with a grpc-status, found none",
        |link, stream| {
            link.head(stream, &HEAD, false);
            link.data(stream, &message(b"hi"), true);
        },
    );
    is_wrong(
        "no number",
        "a grpc-status, found one that is not a number",
        |link, stream| {
            answer(link, stream, &message(b"hi"), &[("grpc-status", "OK")]);
        },
    );
}

#[test]
fn messages_that_are_none_are_named() {
    let huge = [0, 255, 255, 255, 255];
    is_wrong(
        "4 GB",
        "a message of 4294967295 bytes",
        move |link, stream| {
            answer(link, stream, &huge, &OK);
        },
    );
    is_wrong(
        "cut",
        "the end of the stream 3 bytes before",
        |link, stream| {
            answer(link, stream, &message(b"hello")[..7], &OK);
        },
    );
    is_wrong(
        "compressed",
        "no compression was agreed on",
        |link, stream| {
            answer(link, stream, &[1, 0, 0, 0, 1, 7], &OK);
        },
    );
    is_wrong("none", "one message, found 0 messages", |link, stream| {
        answer(link, stream, b"", &OK);
    });
    is_wrong("two", "one message, found 2 messages", |link, stream| {
        answer(link, stream, &[message(b"a"), message(b"b")].concat(), &OK);
    });
}

#[test]
fn nothing_follows_the_trailers() {
    let what = "fields behind its head that do not end it";
    is_wrong("more content", what, |link, stream| {
        link.head(stream, &HEAD, false);
        link.head(stream, &OK, false);
        link.data(stream, &message(b"late"), true);
    });
    is_wrong("many heads", what, |link, stream| {
        link.head(stream, &HEAD, false);
        for _ in 0..1000 {
            link.head(stream, &OK, false);
        }
    });
    is_wrong(
        "a status in the head",
        "nothing behind the status",
        |link, stream| {
            link.head(stream, &[HEAD[0], HEAD[1], OK[0]], false);
            link.data(stream, &message(b"hi"), true);
        },
    );
}

#[test]
fn a_flood_of_heads_ends_the_connection() {
    for io in BOTH {
        let address = server(|link, asked| {
            let mut interim = Vec::new();
            let block = net::h2::hpack::block(&[(":status", "103")]);
            for _ in 0..1000 {
                frame::headers(&mut interim, asked.stream, &block, false, 16_384);
            }
            // Until the client has had enough.
            for _ in 0..100_000 {
                use std::io::Write as _;
                if link.stream.write_all(&interim).is_err() {
                    return false;
                }
            }
            false
        });
        let reading = in_time("flood", move || load(io, address, 4));
        assert_eq!(reading.requests_all, 0);
        let found = &reading.wrong[0].found;
        assert!(found.contains("too many frames"), "{found}");
    }
}

#[test]
fn trailers_that_never_come_end_with_the_deadline() {
    for io in BOTH {
        let sent = Arc::new(Mutex::new(String::new()));
        let seen = sent.clone();
        let address = server(move |link, asked| {
            *seen.lock().unwrap() = value(&asked.fields, "grpc-timeout").to_owned();
            link.head(asked.stream, &HEAD, false);
            link.data(asked.stream, &message(b"hi"), false);
            true
        });
        let grpc = Grpc {
            deadline: Some(Duration::from_millis(80)),
            ..Grpc::default()
        };
        let job = job(io, target(address, grpc, b"hi"), Stop::Requests(6));
        let reading = in_time("deadline", move || one(&job));
        assert_eq!(reading.errors_all.timeout, 6, "{:?}", reading.errors_all);
        assert!(reading.wrong[0].expected.contains("within 80ms"));
        assert_eq!(*sent.lock().unwrap(), "80000000n");
    }
}

#[test]
fn an_answer_after_the_deadline_is_late() {
    for io in BOTH {
        let address = server(|link, asked| {
            std::thread::sleep(Duration::from_millis(20));
            answer(link, asked.stream, &asked.body, &OK);
            true
        });
        let grpc = Grpc {
            deadline: Some(Duration::from_millis(5)),
            ..Grpc::default()
        };
        let reading = one(&job(io, target(address, grpc, b"hi"), Stop::Requests(5)));
        // Those that the check of the time limits saw first have timed out.
        let errors = reading.errors_all;
        assert_eq!(reading.requests_all, 0);
        assert_eq!(errors.status + errors.timeout, 5, "{errors:?}");
    }
}

#[test]
fn a_stream_of_the_client_is_one_call() {
    for io in BOTH {
        let address = server(|link, asked| {
            assert_eq!(asked.body, message(b"\x0a\x02hi").repeat(100));
            let mut collected = Vec::new();
            let (messages, bytes) = (100, 200);
            echo::Collected { messages, bytes }.encode(&mut collected);
            answer(link, asked.stream, &message(&collected), &OK);
            true
        });
        let grpc = Grpc {
            call: CallKind::ClientStream,
            messages: 100,
            ..Grpc::default()
        };
        let target = target(address, grpc, b"\x0a\x02hi");
        let reading = one(&job(io, target, Stop::Requests(30)));
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 30);
    }
}

#[test]
fn a_stream_of_the_server_has_messages_with_due_times() {
    let clock = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for io in BOTH {
        let clock = clock.trim().to_owned();
        let address = server(move |link, asked| {
            let head = [HEAD[0], HEAD[1], ("weigh-clock", clock.as_str())];
            link.head(asked.stream, &head, false);
            // The third one is left out.
            for number in [0, 1, 3, 4] {
                let now = net::os::now_ns();
                let stamp = format!("weigh {number} {now} ");
                let mut own = Vec::new();
                echo::begin_message(200, &mut own);
                own.extend(stamp.bytes());
                own.resize(own.len() + 200 - stamp.len(), b'.');
                link.data(asked.stream, &message(&own), false);
                link.flush();
                std::thread::sleep(Duration::from_millis(2));
            }
            link.head(asked.stream, &OK, true);
            true
        });
        let grpc = Grpc {
            call: CallKind::ServerStream,
            ..Grpc::default()
        };
        let reading = one(&job(io, target(address, grpc, b""), Stop::Requests(10)));
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        assert_eq!(reading.requests, 10);
        let lasting = reading.lasting.as_ref().unwrap();
        assert_eq!(
            (lasting.opened, lasting.messages, lasting.lost),
            (10, 40, 10)
        );
        assert_eq!(lasting.message_bytes, 40 * 203);
        assert_eq!(lasting.lag.count(), 40);
        assert_eq!(lasting.lag_base, Some(readings::LagBase::Sender));
        assert_eq!(ends(&reading), [("grpc-status 0", 10)]);
    }
}

#[test]
fn a_stream_that_outlasts_the_window_is_no_failure() {
    for io in BOTH {
        let address = server(|link, asked| {
            link.head(asked.stream, &HEAD, false);
            link.data(asked.stream, &message(b"first"), false);
            true
        });
        let grpc = Grpc {
            call: CallKind::ServerStream,
            ..Grpc::default()
        };
        let stop = Stop::After(Duration::from_millis(300));
        let reading = one(&job(io, target(address, grpc, b""), stop));
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        let lasting = reading.lasting.as_ref().unwrap();
        assert_eq!((lasting.opened, lasting.messages), (6, 6));
        assert_eq!(ends(&reading), [("window", 6)]);
    }
}

#[test]
fn a_stream_of_the_server_that_ends_with_its_head_is_silent() {
    for io in BOTH {
        let address = server(|link, asked| {
            std::thread::sleep(Duration::from_millis(100));
            link.head(asked.stream, &HEAD, false);
            true
        });
        let grpc = Grpc {
            call: CallKind::ServerStream,
            ..Grpc::default()
        };
        let mut target = target(address, grpc, b"hi");
        target.http2 = Some(Http2 { streams: 1 });
        let mut job = job(io, target, Stop::Requests(2));
        job.timeout = Duration::from_millis(200);
        let reading = in_time("silent", move || one(&job));
        let timeouts = reading.errors_all.timeout;
        assert_eq!((reading.requests, timeouts), (0, 2), "{io:?}");
        assert_eq!(ends(&reading), [("silent", 2)], "{io:?}");
    }
}

#[test]
fn what_a_method_answers_is_known_before_the_load() {
    let address = server(|link, asked| {
        match value(&asked.fields, ":path") {
            PATH => answer(link, asked.stream, &asked.body, &OK),
            _ => {
                let only = [
                    HEAD[0],
                    HEAD[1],
                    ("grpc-status", "12"),
                    ("grpc-message", "no%20such"),
                ];
                link.head(asked.stream, &only, true);
            }
        }
        true
    });
    let limit = Duration::from_secs(20);
    let own = target(address, Grpc::default(), b"hi");
    assert_eq!(call(&own, PATH, b"there", limit).unwrap(), [b"there"]);
    let refused = call(&own, "/a.B/C", b"", limit).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "grpc-status 12 (UNIMPLEMENTED): no such"
    );
    assert!(matches!(refused, CallError::Status { status: 12, .. }));

    let go = std::sync::atomic::AtomicBool::new(false);
    let mut good = Job::to(own.clone());
    good.targets[0].requests[0].expect.body = BodyRule::Same;
    prepare(&mut good, &go).unwrap();
    let rule = &good.targets[0].requests[0].expect.body;
    assert_eq!(*rule, BodyRule::Bytes(message(b"hi").into()));
    let mut bad = good.clone();
    let bytes = net::fetch::request("POST", "test", "/a.B/C", &[]);
    bad.targets[0].requests[0].bytes = bytes;
    bad.targets[0].requests[0].expect.body = BodyRule::Same;
    let said = prepare(&mut bad, &go).unwrap_err().to_string();
    assert!(said.contains("does not succeed: grpc-status 12"), "{said}");
}

#[test]
fn calls_that_cannot_be_made_are_refused() {
    let address = "127.0.0.1:1".parse().unwrap();
    let of = |change: fn(&mut Target)| {
        let mut target = target(address, Grpc::default(), b"hi");
        change(&mut target);
        Job::to(target)
            .segment(Segment::closed(Stop::Requests(1)))
            .validate()
    };
    assert_eq!(of(|_| {}), Ok(()));
    assert_eq!(of(|one| one.http2 = None), Err(JobError::NotGrpc));
    let get = |one: &mut Target| {
        one.requests[0].bytes = net::fetch::request("GET", "test", PATH, &[]);
    };
    assert_eq!(of(get), Err(JobError::NotGrpc));
    let long = |one: &mut Target| {
        one.traffic = Traffic::Grpc(Grpc {
            call: CallKind::ClientStream,
            messages: u32::MAX,
            ..Grpc::default()
        });
    };
    assert_eq!(of(long), Err(JobError::NotGrpc));
}

/// The content of a `Message` with this payload.
fn payload(bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    echo::begin_message(bytes.len() as u32, &mut message);
    message.extend(bytes);
    message
}

#[test]
fn the_origin_answers_each_kind_of_call_in_the_clear_and_over_tls() {
    let (secure, client) = super::secure_origin(&["h2"]);
    let clear = crate::support::origin();
    let of = |path: &str, call: CallKind, message: &[u8], is_secure: bool| {
        let address = if is_secure {
            secure.address()
        } else {
            clear.address()
        };
        let grpc = Grpc {
            call,
            messages: 50,
            in_flight: 5,
            deadline: Some(Duration::from_secs(20)),
        };
        let mut target = target(address, grpc, message);
        let mut bytes = net::fetch::request("POST", "origin", path, &[]);
        bytes.extend_from_slice(message);
        target.requests[0].bytes = bytes;
        target.requests[0].expect.body = match call {
            CallKind::ServerStream => BodyRule::Any,
            _ => BodyRule::Same,
        };
        target.tls = is_secure.then(|| client.clone());
        target
    };
    let mut paced = Vec::new();
    let (messages, every_us, bytes) = (20, 1000, 100);
    echo::PacedRequest {
        messages,
        every_us,
        bytes,
    }
    .encode(&mut paced);
    for io in BOTH {
        for is_secure in [false, true] {
            let run = |target| {
                let reading = one(&job(io, target, Stop::Requests(60)));
                assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
                assert_eq!(reading.requests, 60);
                reading
            };
            let hi = payload(b"hi");
            run(of(PATH, CallKind::Unary, &hi, is_secure));
            run(of(
                "/weigh.v1.Echo/Collect",
                CallKind::ClientStream,
                &hi,
                is_secure,
            ));
            let path = "/weigh.v1.Echo/Paced";
            let reading = run(of(path, CallKind::ServerStream, &paced, is_secure));
            let lasting = reading.lasting.as_ref().unwrap();
            assert_eq!((lasting.messages, lasting.lost), (60 * 20, 0));
            assert_eq!(lasting.lag_base, Some(readings::LagBase::Sender));
        }
    }
}
