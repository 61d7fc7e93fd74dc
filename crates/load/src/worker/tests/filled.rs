//! The loop of a worker in simulated time: requests that differ from one to the next.

use readings::requests::{Feed, FeedOrder, Fill, Piece, Replay, RequestSet, RequestSpec, Template};
use testing::Text as _;

use super::*;
use crate::template::request::Rendered;

fn template(parts: &[&str]) -> Template {
    let piece = |part: &&str| {
        let fill = match *part {
            "{seq}" => Fill::Seq,
            "{uuid}" => Fill::Uuid,
            "{id}" => Fill::Column { feed: 0, column: 0 },
            "{now}" => Fill::Now,
            "{zipf}" => Fill::Zipf {
                keys: 1_000,
                exponent: 1.1,
            },
            text => return Piece::Text(text.into()),
        };
        Piece::Place {
            fill,
            is_encoded: true,
        }
    };
    Template(parts.iter().map(piece).collect())
}

fn get(name: &str, path: &[&str], weight: u32) -> RequestSpec {
    RequestSpec {
        name: name.to_owned(),
        path: template(path),
        weight,
        ..RequestSpec::default()
    }
}

fn feed(order: FeedOrder, rows: usize) -> Feed {
    Feed {
        name: "users".to_owned(),
        columns: vec!["id".to_owned()],
        rows: (0..rows).map(|row| vec![format!("row{row}")]).collect(),
        order,
    }
}

fn set(requests: Vec<RequestSpec>) -> RequestSet {
    RequestSet {
        requests,
        ..RequestSet::default()
    }
}

fn filled(set: &RequestSet, connections: u32, segment: Segment) -> Job {
    let mut job = job(connections, segment);
    job.targets[0] = job.targets[0].clone().with_requests(set, "x", &[]);
    assert_eq!(job.validate(), Ok(()));
    job
}

/// The paths of the requests.
fn paths(done: &Done) -> Vec<String> {
    let path = |text: &String| text.split(' ').nth(1).unwrap().to_owned();
    done.texts.iter().map(path).collect()
}

/// Both paces, for so many ms.
fn paces(window_ms: u64) -> [Segment; 2] {
    let stop = Stop::After(ms(window_ms));
    [Segment::closed(stop), Segment::open(1_000.0, stop)]
}

#[test]
fn threads_send_each_their_own_numbers() {
    for segment in paces(100) {
        // Two of the five threads have no connection, and two hosts have three threads each.
        for (connections, threads) in [(4, 4), (3, 5), (6, 6)] {
            let set = RequestSet {
                feeds: vec![feed(FeedOrder::InTurn, 10)],
                ..set(vec![get("a", &["/", "{seq}", "/", "{id}"], 1)])
            };
            let mut job = filled(&set, connections, segment.clone());
            job.threads = threads;
            let mut all = Vec::new();
            let senders = threads.min(connections as usize);
            for thread in 0..threads {
                let own = paths(&run_thread(&job, thread, |_| {}));
                assert_eq!(own.is_empty(), thread >= senders);
                for (at, path) in own.iter().enumerate() {
                    let number = thread + at * senders;
                    assert_eq!(*path, format!("/{}/row{}", number + 1, number % 10));
                }
                all.extend(own);
            }
            assert!(all.len() > 90);
        }
    }
}

#[test]
fn the_seed_alone_decides_what_is_filled_in_and_chosen() {
    let requests = vec![
        get("a", &["/a/", "{uuid}"], 3),
        get("b", &["/b/", "{zipf}"], 1),
    ];
    let mut all = Vec::new();
    for segment in paces(100) {
        let mut job = filled(&set(requests.clone()), 4, segment);
        let one = paths(&run(&job));
        // A slower server gets the same in the same order, if not as much.
        let other = paths(&run_thread(&job, 0, |io| io.service_ns = 2 * MS));
        let both = one.len().min(other.len());
        assert_eq!(one[..both], other[..both]);
        let a = one.iter().filter(|path| path.starts_with("/a/")).count() as f64;
        let share = a / one.len() as f64;
        assert!((0.6..0.9).contains(&share), "{share}");
        job.seed = 2;
        assert_ne!(paths(&run(&job))[..both], one[..both]);
        all.push(one);
    }
    let both = all[0].len().min(all[1].len());
    assert_eq!(all[0][..both], all[1][..both], "whatever the pace");
}

#[test]
fn requests_in_order_go_round() {
    let set = RequestSet {
        in_order: true,
        ..set(vec![get("a", &["/a/", "{seq}"], 1), get("b", &["/b"], 5)])
    };
    for segment in paces(50) {
        let done = run(&filled(&set, 1, segment));
        let count = done.sent.len();
        let expected = (0..count)
            .step_by(2)
            .map(|number| format!("/a/{}", number + 1));
        assert_eq!(paths(&done), expected.collect::<Vec<_>>());
        let of: Vec<u64> = done
            .reading
            .per_request
            .iter()
            .map(|one| one.requests)
            .collect();
        assert!(
            of[0] + of[1] == done.reading.requests && of[0].abs_diff(of[1]) <= 1,
            "{of:?}"
        );
    }
}

#[test]
fn requests_in_order_are_all_sent_by_each_thread() {
    let both = [
        vec![
            get("a", &["/a/", "{seq}"], 1),
            get("b", &["/b/", "{seq}"], 1),
        ],
        vec![get("a", &["/a"], 1), get("b", &["/b"], 1)],
    ];
    for requests in both {
        let set = RequestSet {
            in_order: true,
            ..set(requests)
        };
        for (connections, threads) in [(2, 2), (4, 2), (4, 4)] {
            let mut job = filled(&set, connections, Segment::closed(Stop::Requests(40)));
            job.threads = threads;
            for thread in 0..threads {
                let done = run_thread(&job, thread, |_| {});
                let of = done.reading.per_request.iter().map(|one| one.requests);
                let own = done.reading.requests / 2;
                assert_eq!(of.collect::<Vec<_>>(), [own, own], "thread {thread}");
            }
        }
    }
}

#[test]
fn threads_use_up_a_feed_at_the_same_time() {
    // Thread 0 has two of three connections, and so two thirds of the due requests.
    let set = RequestSet {
        feeds: vec![feed(FeedOrder::Once, 300)],
        ..set(vec![get("a", &["/", "{id}"], 1)])
    };
    let mut job = filled(&set, 3, Segment::open(1_000.0, Stop::After(ms(1_000))));
    job.threads = 2;
    for (thread, expected) in [(0, 200), (1, 100)] {
        let done = run_thread(&job, thread, |_| {});
        assert_eq!(done.reading.requests, expected);
        let last = done.sent.last().unwrap();
        assert!((295 * MS..300 * MS).contains(last), "{last}");
    }
}

#[test]
fn another_first_number_fills_in_something_else() {
    let of = |order, first_number| {
        let set = RequestSet {
            feeds: vec![feed(order, 10)],
            ..set(vec![get(
                "a",
                &["/", "{seq}", "/", "{id}", "/", "{uuid}"],
                1,
            )])
        };
        let mut job = filled(&set, 1, Segment::closed(Stop::Requests(3)));
        job.first_number = first_number;
        paths(&run(&job))
    };
    let part = |paths: &[String], at: usize| -> Vec<String> {
        let part = |path: &String| path.split('/').nth(at).unwrap().to_owned();
        paths.iter().map(part).collect()
    };
    let (zero, four) = (of(FeedOrder::InTurn, 0), of(FeedOrder::InTurn, 4));
    assert_eq!(part(&zero, 1), ["1", "2", "3"]);
    assert_eq!(part(&four, 1), ["5", "6", "7"]);
    assert_eq!(part(&four, 2), ["row4", "row5", "row6"]);
    let (before, after) = (part(&zero, 3), part(&four, 3));
    assert!(before.iter().all(|uuid| !after.contains(uuid)));
    // Rows that are used once begin with the first.
    assert_eq!(part(&of(FeedOrder::Once, 4), 2), ["row0", "row1", "row2"]);
}

#[test]
fn a_feed_that_is_used_up_ends_the_load() {
    for segment in paces(1_000) {
        let set = RequestSet {
            feeds: vec![feed(FeedOrder::Once, 30), feed(FeedOrder::Once, 3)],
            ..set(vec![get("a", &["/", "{id}"], 1)])
        };
        // Also where more are due than connections take.
        for service_ns in [MS / 3, 5 * MS] {
            let mut job = filled(&set, 2, segment.clone());
            job.segments.push(segment.clone());
            let done = run_thread(&job, 0, |io| io.service_ns = service_ns);
            let expected: Vec<String> = (0..30).map(|row| format!("/row{row}")).collect();
            assert_eq!(paths(&done), expected);
            let reading = &done.reading;
            assert_eq!(reading.used_up.as_deref(), Some("users"));
            assert_eq!((reading.requests, reading.errors_all.total()), (30, 0));
            assert!(done.end < 300 * MS, "{}", done.end);
            // Of the second segment nothing was left.
            assert!(reading.duration_s < 0.2, "{}", reading.duration_s);
            assert_eq!(reading.slices[1].requests, 0);
            if let Some(offered) = &reading.offered {
                assert_eq!(offered.due, 30);
            }
        }
        // By count it may end before, or there.
        for (count, expected) in [(20, None), (40, Some("users"))] {
            let mut job = filled(&set, 2, segment.clone());
            job.segments[0].stop = Stop::Requests(count);
            let reading = run(&job).reading;
            assert_eq!(reading.requests, count.min(30));
            assert_eq!(reading.used_up.as_deref(), expected);
        }
    }
}

#[test]
fn requests_that_find_no_connection_use_their_rows() {
    let set = RequestSet {
        feeds: vec![feed(FeedOrder::Once, 25)],
        ..set(vec![get("a", &["/", "{id}"], 1)])
    };
    let mut job = filled(&set, 1, Segment::open(1_000.0, Stop::After(ms(500))));
    job.timeout = ms(10);
    // The first is answered only after all others are given up.
    let done = run_thread(&job, 0, |io| io.slow = Some((0, 10_000 * MS)));
    assert_eq!(done.reading.used_up.as_deref(), Some("users"));
    let reading = done.reading;
    assert_eq!(reading.requests + reading.errors.total(), 25);
    assert!(reading.errors.timeout > 0);
}

#[test]
fn what_is_sent_again_is_the_same() {
    let set = set(vec![get("a", &["/", "{uuid}", "/", "{now}"], 1)]);
    let job = filled(&set, 1, Segment::open(0.5, Stop::After(ms(10_000))));
    let done = run_thread(&job, 0, |io| io.idle_limit = Some(1_500 * MS));
    assert_eq!((done.reading.requests, done.reading.resent), (5, 4));
    let paths = paths(&done);
    assert_eq!(paths.len(), 9);
    for again in paths[1..].chunks(2) {
        assert_eq!(again[0], again[1]);
    }
    let mut unique = paths;
    unique.dedup();
    assert_eq!(unique.len(), 5);
}

/// A log of so many requests, each after a time that the number gives.
fn replay(requests: usize, after_us: impl Fn(u64) -> u64) -> Replay {
    let mut at = 0;
    let due = |number: usize| {
        at += after_us(number as u64) * u64::from(number > 0) * 1_000;
        at
    };
    Replay {
        due_ns: (0..requests).map(due).collect(),
        requests: (0..requests).map(|number| number as u32 % 3).collect(),
        left_out: Vec::new(),
    }
}

fn of_log(replay: Replay) -> RequestSet {
    let requests = vec![
        get("a", &["/0"], 1),
        get("b", &["/1/", "{seq}"], 1),
        get("a", &["/2"], 1),
    ];
    RequestSet {
        replay: Some(replay),
        ..set(requests)
    }
}

#[test]
fn a_log_is_repeated_as_it_was_on_any_number_of_threads() {
    let replay = replay(200, |number| number * 7 % 11 * 400);
    let set = of_log(replay.clone());
    for threads in [1, 3] {
        let mut job = filled(&set, 6, Segment::replay(&replay));
        job.threads = threads;
        let mut requests = 0;
        for thread in 0..threads {
            let done = run_thread(&job, thread, |_| {});
            let own: Vec<usize> = (thread..200).step_by(threads).collect();
            assert_eq!(done.sent.len(), own.len());
            for (sent, entry) in done.sent.iter().zip(&own) {
                let late = sent.checked_sub(replay.due_ns[*entry]).unwrap();
                assert!(late <= 3_000, "{entry} is {late} ns late");
            }
            let ones = own.iter().filter(|entry| *entry % 3 == 1);
            let expected: Vec<String> = ones.map(|entry| format!("/1/{}", entry + 1)).collect();
            assert_eq!(paths(&done), expected);
            // Those of the same name are one.
            let names = &done.reading.per_request;
            assert_eq!(names.len(), 2);
            assert_eq!(
                (names[0].name.as_str(), names[1].requests),
                ("a", expected.len() as u64)
            );
            assert_eq!(names[0].requests + names[1].requests, own.len() as u64);
            requests += done.reading.requests;
        }
        assert_eq!(requests, 200);
    }
}

#[test]
fn segments_go_on_in_the_log_for_each_target_by_itself() {
    let replay = replay(100, |_| 1_000);
    let set = of_log(replay);
    let slice = |target, window_ms| {
        Segment::open(1_000.0, Stop::After(ms(window_ms))).on(target, Some(target))
    };
    let mut job = filled(
        &set,
        4,
        Segment::closed(Stop::EachConnection(1)).on(0, None),
    );
    job.targets.push(job.targets[0].clone());
    // Closed loops take nothing of the log, and the last segment is longer than the rest of it.
    for (target, window_ms) in [(0, 30), (1, 30), (0, 50), (1, 40), (0, 60), (1, 60)] {
        job.segments.push(slice(target, window_ms));
    }
    assert_eq!(job.validate(), Ok(()));
    let done = run(&job);
    assert_eq!(done.sent.len(), 4 + 200);
    assert_eq!(done.reading.requests, 100);
    let slices: Vec<u64> = done
        .reading
        .slices
        .iter()
        .map(|slice| slice.requests)
        .collect();
    assert_eq!(slices, [30, 50, 20]);
}

#[test]
fn a_busy_stretch_of_a_log_keeps_its_rate() {
    // A busy minute among quiet ones.
    let after = |number| {
        if (50_000..110_000).contains(&number) {
            50
        } else {
            500
        }
    };
    let replay = replay(160_000, after);
    let mut job = filled(&of_log(replay.clone()), 64, Segment::replay(&replay));
    job.threads = 4;
    let sent = run_thread(&job, 1, |_| {}).sent;
    let own: Vec<u64> = replay.due_ns.iter().skip(1).step_by(4).copied().collect();
    assert_eq!(sent.len(), own.len());
    let per_s = |times: &[u64]| {
        let mut counts = vec![0i64; 80];
        for at in times {
            counts[(at / 1_000_000_000) as usize] += 1;
        }
        counts
    };
    for (found, expected) in per_s(&sent).iter().zip(per_s(&own)) {
        assert!(
            (found - expected).abs() <= 1 + expected / 100,
            "{found} {expected}"
        );
    }
    assert!(sent.windows(2).all(|pair| pair[0] <= pair[1]));
}

#[test]
fn what_cannot_be_sent_is_refused_by_name() {
    let refused = |set: &RequestSet| {
        let mut job = job(1, Segment::closed(Stop::After(ms(1))));
        job.targets[0] = job.targets[0].clone().with_requests(set, "x", &[]);
        job.validate().unwrap_err().to_string()
    };
    let raw = |text: &str| {
        let mut one = get("a", &["/"], 1);
        let fill = Fill::Column { feed: 0, column: 0 };
        let place = Piece::Place {
            fill,
            is_encoded: false,
        };
        one.fields.push(("X-Id".to_owned(), Template(vec![place])));
        let mut feed = feed(FeedOrder::Random, 3);
        feed.rows[1][0] = text.to_owned();
        RequestSet {
            feeds: vec![feed],
            ..set(vec![one])
        }
    };
    for bad in ["a\r\nB: c", "a\nb", "a\0b"] {
        let text = refused(&raw(bad));
        text.has("`users`");
        text.has("row 2, column `id`");
    }
    let job = filled(&raw("a b"), 1, Segment::closed(Stop::After(ms(1))));
    assert_eq!(job.validate(), Ok(()));
    // Encoded, it is harmless.
    let mut encoded = raw("a\r\nB: c");
    encoded.requests = vec![get("a", &["/", "{id}"], 1)];
    assert_eq!(
        filled(&encoded, 1, Segment::closed(Stop::After(ms(1)))).validate(),
        Ok(())
    );
    let text = refused(&set(vec![get("a", &["/", "{id}"], 1)]));
    assert!(text.contains("`a`") && text.contains("feed 0"), "{text}");
    let empty = RequestSet {
        feeds: vec![feed(FeedOrder::InTurn, 0)],
        ..set(vec![get("a", &["/", "{id}"], 1)])
    };
    assert!(refused(&empty).contains("`users` has no rows"));
    assert!(refused(&set(vec![get("a", &["/a b", "{seq}"], 1)])).contains("space"));
    // Each connection has its own.
    let mut long = get("a", &["/", "{seq}"], 1);
    let mut body = template(&["{seq}"]);
    body.0.push(Piece::Text(vec![b'a'; 5 << 19]));
    long.body = Some(body);
    let mut job = super::job(1_000, Segment::closed(Stop::After(ms(1))));
    job.targets[0] = job.targets[0]
        .clone()
        .with_requests(&set(vec![long]), "x", &[]);
    let text = job.validate().unwrap_err().to_string();
    text.has("5 GiB");
    text.has("fewer connections");
    let mut log = of_log(replay(3, |_| 1));
    log.requests.truncate(2);
    assert!(refused(&log).starts_with("the log"));
}

#[test]
fn requests_are_filled_in_without_new_memory() {
    let mut requests = vec![get("a", &["/", "{seq}", "{uuid}", "{zipf}", "{id}"], 1)];
    requests[0].body = Some(template(&["{", "{uuid}", "}"]));
    requests.push(get("b", &["/", "{now}"], 1));
    requests.push(get("c", &["/fixed"], 1));
    let set = RequestSet {
        feeds: vec![feed(FeedOrder::Random, 100)],
        ..set(requests)
    };
    let job = filled(&set, 1, Segment::closed(Stop::After(ms(1))));
    let mut picker = RequestPicker::new(0, &job, 0, &mut SimIo::default());
    let numbered = picker.numbered.as_mut().unwrap();
    let mut places: Vec<Rendered> = (0..4).map(|_| Rendered::default()).collect();
    let mut send = |from: usize, to: usize| {
        for number in from..to {
            assert!(numbered.claim());
            while number % 3 == 0 && numbered.render_ahead() {}
            let request = numbered.next(&mut places[number % 4]);
            assert_eq!(places[number % 4].is_empty(), request == 2);
        }
    };
    // Numbers have five digits from there on.
    send(0, 11_000);
    let used = allocation_counter::measure(|| send(11_000, 15_000));
    assert_eq!(used.count_total, 0);
}
