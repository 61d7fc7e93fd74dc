//! Users in simulated time, and a shop that they visit.

use net::simulated::{Driver, Network, SimIo};
use readings::requests::{
    Capture, CaptureFrom, Feed, FeedOrder, Fill, Piece, RequestSet, RequestSpec, Template,
};
use readings::{AgeReading, UsersReading};

use super::*;
use crate::exchange::Lasting;
use crate::job::traffic::{Step, Traffic, Users};
use crate::record::Recorder;

/// What opening a connection takes.
const OPENING_NS: u64 = 1_000;
const SERVICE_NS: u64 = 2 * MS;

/// A server that answers each request after [`SERVICE_NS`], as a function of its text says; a
/// connection ends after an answer with `Connection: close`.
struct Shop {
    answer: Box<dyn FnMut(&str) -> String>,
    coming: Vec<(u64, ConnId, String)>,
    asked: Vec<Asked>,
}

/// A request that arrived.
#[derive(Clone, Debug)]
struct Asked {
    at: u64,
    conn: ConnId,
    text: String,
}

impl Asked {
    fn path(&self) -> &str {
        self.text.split(' ').nth(1).unwrap()
    }
}

impl Driver for Shop {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()> {
        let opening = network.opening();
        if !opening.is_empty() {
            opening
                .into_iter()
                .for_each(|conn| network.decide(conn, None));
            network.advance(OPENING_NS);
            return Ok(());
        }
        let now = network.now_ns();
        for conn in network.open() {
            let text = String::from_utf8(network.take_sent(conn)).unwrap();
            if !text.is_empty() {
                let answer = (self.answer)(&text);
                self.coming.push((now + SERVICE_NS, conn, answer));
                self.asked.push(Asked {
                    at: now,
                    conn,
                    text,
                });
            }
        }
        self.coming.sort_by_key(|(at, ..)| *at);
        let until = now + wait_ns.unwrap_or(0).max(1_000);
        let next = self.coming.first().map_or(until, |(at, ..)| *at);
        network.advance(next.min(until).saturating_sub(now).max(1));
        let due = self
            .coming
            .partition_point(|(at, ..)| *at <= network.now_ns());
        for (_, conn, answer) in self.coming.drain(..due) {
            network.arrive(conn, answer.as_bytes());
            if answer.contains("Connection: close") {
                network.end(conn);
            }
        }
        Ok(())
    }
}

fn answer(status: u16, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

fn good(_: &str) -> String {
    answer(200, "", "ok")
}

fn pause(pause_ms: u64) -> Step {
    Step {
        pause: ms(pause_ms),
        ..Step::default()
    }
}

/// Sessions of these steps, `/0`, `/1` and so on.
fn sessions(connections: u32, steps: Vec<Step>, segment: Segment) -> Job {
    let mut job = job(connections, segment);
    let target = &mut job.targets[0];
    target.requests = (0..steps.len())
        .map(|step| {
            let bytes = format!("GET /{step} HTTP/1.1\r\nHost: shop\r\n\r\n");
            crate::job::target::Request::new(bytes.into_bytes(), Expect::default())
        })
        .collect();
    target.traffic = Traffic::Users(Users {
        steps,
        in_rounds: true,
        captured: vec!["token".to_owned()],
        ..Users::default()
    });
    job.validate().unwrap();
    job
}

/// Carries out the job on one thread. Returns its recordings, and what arrived at the shop.
fn visited(job: Job, answer: impl FnMut(&str) -> String + 'static) -> (Recorder, Vec<Asked>) {
    let shop = Shop {
        answer: Box::new(answer),
        coming: Vec::new(),
        asked: Vec::new(),
    };
    let io = SimIo::new(io_options(&job, 0), 0, shop);
    let clock = NetworkClock(io.network.clock());
    let (events, _messages) = mpsc::channel();
    let job = Arc::new(job);
    let mut worker = Worker::<_, _, Lasting>::new(io, clock, job.clone(), 0, events);
    for number in 0..job.segments.len() {
        let start = worker.clock.now_ns();
        worker
            .segment(number, start, &AtomicBool::new(false))
            .unwrap();
    }
    let asked = std::mem::take(&mut worker.io.driver.asked);
    (worker.into_recorders().remove(0), asked)
}

fn users(recorder: &Recorder) -> &UsersReading {
    recorder.users.as_ref().unwrap()
}

fn paths(asked: &[Asked]) -> Vec<&str> {
    asked.iter().map(Asked::path).collect()
}

#[test]
fn users_of_an_open_loop_arrive_when_they_are_due_and_pause_as_long_as_they_should() {
    // Three steps, 50 ms before the second and 20 ms before the third; a user each 10 ms.
    let steps = vec![pause(0), pause(50), pause(20)];
    let (done, asked) = visited(
        sessions(64, steps, Segment::open(100.0, Stop::After(ms(1_000)))),
        good,
    );
    let of = |path: &str| -> Vec<u64> {
        let own = asked.iter().filter(|one| one.path() == path);
        own.map(|one| one.at).collect()
    };
    for (path, since_arrival) in [
        ("/0", 0),
        ("/1", SERVICE_NS + 50 * MS),
        ("/2", 2 * SERVICE_NS + 70 * MS),
    ] {
        let times = of(path);
        for (user, at) in (0..).zip(&times) {
            let due = user * 10 * MS + since_arrival;
            let late = at.checked_sub(due).unwrap();
            // Each step takes as long to be noticed, and the first also the opening.
            assert!(late < 20_000, "{path} of user {user}: {late} ns late");
        }
    }
    // Those who arrive in the last 52, and 74, ms have no second, and third, step in time.
    assert_eq!(
        (of("/0").len(), of("/1").len(), of("/2").len()),
        (100, 95, 93)
    );
    let users = users(&done);
    assert_eq!((users.arrived, users.rounds, users.under_way), (100, 93, 7));
    assert_eq!(users.all_given_up(), 0);
    let round_us = users.round.quantile_us(1.0);
    assert!((76_000.0..76_100.0).contains(&round_us), "{round_us}");
    // Each request is due, sent and answered.
    assert_eq!((done.requests, done.errors_all.total()), (288, 0));
    let offered = done.open_loop.as_ref().unwrap().offered();
    assert_eq!((offered.due, done.schedule_lag.count()), (288, 288));
    let counts: Vec<u64> = done.per_request.iter().map(|one| one.requests).collect();
    assert_eq!(counts, [100, 95, 93]);
    // Latency counts from when a request was due, whether a user arrived or went on.
    let most_us = done.response.quantile_us(1.0);
    assert!((2_000.0..2_030.0).contains(&most_us), "{most_us}");
    assert!(done.messages.is_none());
}

#[test]
fn a_user_without_a_free_place_waits_for_one() {
    // One connection; each round takes 2 + 6 + 2 ms, a user each 5 ms.
    let steps = vec![pause(0), pause(6)];
    let segment = Segment::open(200.0, Stop::After(ms(50)));
    let (done, asked) = visited(sessions(1, steps, segment), good);
    // In order of users, never two of them at once.
    let expected: Vec<&str> = ["/0", "/1"].into_iter().cycle().take(10).collect();
    assert_eq!(paths(&asked)[..8], expected[..8]);
    let users = users(&done);
    assert_eq!(users.arrived, 10);
    // Five have no second step before the end.
    assert_eq!((users.rounds, users.under_way), (5, 5));
    let longest_us = users.round.quantile_us(1.0);
    assert!(longest_us > 25_000.0, "{longest_us}");
    assert!(done.schedule_lag.quantile_us(1.0) < 10.0);
}

#[test]
fn a_step_that_fails_ends_the_round() {
    let steps = vec![pause(0), pause(1), pause(1)];
    let mut shown = 0;
    let answers = move |text: &str| {
        shown += u32::from(text.starts_with("GET /1 "));
        match text.starts_with("GET /1 ") && shown % 2 == 0 {
            true => answer(500, "", ""),
            false => answer(200, "", "ok"),
        }
    };
    for segment in [
        Segment::open(100.0, Stop::Requests(25)),
        Segment::closed(Stop::Requests(25)),
    ] {
        let (done, asked) = visited(sessions(1, steps.clone(), segment), answers);
        // Three requests of one user, two of the next: five times.
        let expected = ["/0", "/1", "/2", "/0", "/1"];
        let expected: Vec<&str> = expected.into_iter().cycle().take(25).collect();
        assert_eq!(paths(&asked), expected);
        let users = users(&done);
        let given_up: Vec<u64> = users.given_up.iter().map(|one| one.rounds).collect();
        assert_eq!((users.rounds, given_up), (5, vec![0, 5, 0]));
        assert_eq!((users.arrived, users.under_way), (10, 0));
        assert_eq!((done.requests, done.errors.status), (20, 5));
        assert_eq!(done.per_request[1].errors, 5);
    }
}

#[test]
fn the_count_of_a_load_is_one_of_requests() {
    let steps = vec![pause(0), pause(1), pause(1)];
    let open = Segment::open(1_000.0, Stop::Requests(10));
    for segment in [open, Segment::closed(Stop::Requests(10))] {
        let (done, asked) = visited(sessions(2, steps.clone(), segment), good);
        assert_eq!((asked.len(), done.requests), (10, 10));
        let users = users(&done);
        assert_eq!(users.arrived, users.rounds + users.under_way);
    }
    let each = Segment::closed(Stop::EachConnection(5));
    let (done, asked) = visited(sessions(2, steps, each), good);
    assert_eq!((asked.len(), done.by_conn.as_slice()), (10, &[5, 5][..]));
    assert_eq!((users(&done).rounds, users(&done).under_way), (2, 2));
}

#[test]
fn what_is_done_once_is_done_by_a_user_who_stays() {
    let login = Step {
        is_once: true,
        ..pause(0)
    };
    let steps = vec![login, pause(3), pause(1)];
    let segment = Segment::closed(Stop::After(ms(100)));
    let again = sessions(2, steps.clone(), segment.clone()).segment(segment.clone());
    let (done, asked) = visited(again, good);
    let logins = asked.iter().filter(|one| one.path() == "/0").count();
    // Who pauses at the end of the first segment goes on in the second.
    assert_eq!(logins, 2);
    assert_eq!(users(&done).arrived as usize, logins);
    let rounds = users(&done).rounds;
    assert!(rounds >= 2 * 2 * 11, "{rounds}");
    // Without, each round is another user's.
    let (done, _) = visited(sessions(2, vec![pause(3), pause(1)], segment.clone()), good);
    let users_of = users(&done);
    // The last answer may come after the window.
    let over = users_of.rounds + users_of.under_way;
    assert!((over..=over + 2).contains(&users_of.arrived), "{over}");
    // One of whom a step failed logs in again.
    let mut asked_once = false;
    let fails = move |text: &str| {
        let is_first = text.starts_with("GET /2") && !std::mem::replace(&mut asked_once, true);
        answer(if is_first { 401 } else { 200 }, "", "ok")
    };
    let (done, asked) = visited(sessions(1, steps, segment), fails);
    assert_eq!(paths(&asked)[..6], ["/0", "/1", "/2", "/0", "/1", "/2"]);
    assert_eq!((users(&done).arrived, users(&done).all_given_up()), (2, 1));
}

#[test]
fn pauses_of_a_closed_loop_lie_before_their_steps_and_between_rounds() {
    let segment = Segment::closed(Stop::Requests(5));
    let (done, asked) = visited(sessions(1, vec![pause(30), pause(10)], segment), good);
    let times: Vec<u64> = asked.iter().map(|one| one.at).collect();
    let gaps: Vec<u64> = times.windows(2).map(|two| (two[1] - two[0]) / MS).collect();
    assert_eq!(gaps, [12, 32, 12, 32]);
    // The pause between two rounds belongs to neither.
    let round_us = users(&done).round.quantile_us(1.0);
    assert!((14_000.0..14_050.0).contains(&round_us), "{round_us}");
    // A pause is no latency.
    assert!(done.response.quantile_us(1.0) < 2_030.0);
}

#[test]
fn a_session_outlives_its_connection() {
    let closes = |_: &str| answer(200, "Connection: close\r\n", "ok");
    let steps = vec![pause(0), pause(5), pause(0)];
    let segment = Segment::open(20.0, Stop::Requests(9));
    let (done, asked) = visited(sessions(1, steps, segment), closes);
    let expected: Vec<&str> = ["/0", "/1", "/2"].into_iter().cycle().take(9).collect();
    assert_eq!(paths(&asked), expected);
    assert_eq!((done.connects, done.requests), (9, 9));
    let conns: std::collections::HashSet<ConnId> = asked.iter().map(|one| one.conn).collect();
    assert_eq!(conns.len(), 9);
    assert_eq!(users(&done).rounds, 3);
}

#[test]
fn a_capture_that_finds_nothing_fails_and_is_named() {
    let login = Step {
        captures: vec![Capture {
            name: 0,
            from: CaptureFrom::Json("/token".to_owned()),
        }],
        ..pause(0)
    };
    let segment = Segment::closed(Stop::Requests(4));
    let bodies = |_: &str| answer(200, "", r#"{"error":"no"}"#);
    let (done, asked) = visited(sessions(1, vec![login, pause(0)], segment), bodies);
    assert_eq!(paths(&asked), ["/0"; 4]);
    assert_eq!((done.requests, done.errors.verify), (0, 4));
    let wrong = &done.wrong[0];
    assert_eq!(
        wrong.expected,
        "a value for `token` at `/token` in the JSON body"
    );
    assert_eq!(wrong.found, "nothing there");
    assert_eq!(users(&done).given_up[0].rounds, 4);
}

#[test]
fn without_rounds_answers_are_only_looked_into() {
    let step = Step {
        fields: vec![("x-cache".to_owned(), "HIT".to_owned())],
        ..Step::default()
    };
    let mut job = sessions(1, vec![step, pause(0)], Segment::closed(Stop::Requests(8)));
    if let Traffic::Users(users) = &mut job.targets[0].traffic {
        users.in_rounds = false;
    }
    let misses = |text: &str| match text.starts_with("GET /0") {
        true => answer(200, "X-Cache: MISS\r\n", "ok"),
        false => answer(200, "", "ok"),
    };
    let (done, _) = visited(job, misses);
    assert_eq!(done.requests + done.errors.verify, 8);
    assert_eq!(done.per_request[0].errors, done.errors.verify);
    assert_eq!(done.wrong[0].found, "`x-cache: MISS`");
    assert!(done.users.is_none());
}

#[test]
fn the_ages_of_good_answers_are_read_where_that_is_asked_for() {
    for asked in [true, false] {
        let mut job = sessions(1, vec![pause(0)], Segment::closed(Stop::Requests(8)));
        let mut target = job.targets.remove(0);
        target.traffic = Traffic::Answers;
        job.targets
            .push(if asked { target.with_ages() } else { target });
        let mut age = 0;
        let old = move |_: &str| {
            age += 1;
            let status = if age < 8 { 200 } else { 500 };
            answer(
                status,
                &format!("Age: {age}\r\nCache-Control: max-age=5\r\n"),
                "ok",
            )
        };
        let ages = asked.then_some(AgeReading {
            answers: 7,
            sum_s: 28,
            highest_s: 7,
            limited: 7,
            stale: 2,
        });
        assert_eq!(visited(job, old).0.ages, ages);
    }
}

#[test]
fn pauses_and_rounds_go_on_over_slices() {
    // Slices of 50 ms of two targets in turn; each user pauses 120 ms before its second step.
    for pacing in [Pacing::Closed, Pacing::Open { rate_per_s: 100.0 }] {
        let slice = |target| Segment {
            pacing,
            ..Segment::closed(Stop::After(ms(50))).on(target, Some(target))
        };
        let mut job = sessions(64, vec![pause(0), pause(120)], slice(0));
        job.targets.push(job.targets[0].clone());
        job.segments = (0..40).map(|number| slice(number % 2)).collect();
        job.validate().unwrap();
        let (done, _) = visited(job, good);
        let users = users(&done);
        assert!(users.rounds > 50, "{}", users.rounds);
        assert_eq!(users.all_given_up(), 0);
        if pacing != Pacing::Closed {
            assert_eq!(users.arrived, 100);
            assert_eq!(users.rounds + users.under_way, users.arrived);
        }
        // The slices of the other target are no part of the rounds.
        let longest_us = users.round.quantile_us(1.0);
        assert!((124_000.0..128_000.0).contains(&longest_us), "{longest_us}");
    }
}

#[test]
fn the_numbers_of_users_interleave_over_threads() {
    let mut job = job(4, Segment::closed(Stop::Requests(4)));
    job.threads = 2;
    let mut sessions = super::lasting::users::Sessions::new(&job, 0, 1);
    let three = std::array::from_fn::<u64, 3, _>(|_| sessions.next_user());
    assert_eq!(three, [1, 3, 5]);
}

/// The requests of a set whose users keep cookies.
fn set(requests: Vec<RequestSpec>) -> RequestSet {
    RequestSet {
        requests,
        captured: vec!["token".to_owned()],
        users: Some(readings::requests::Users {
            keeps_cookies: true,
        }),
        ..RequestSet::default()
    }
}

fn spec(path: Vec<Piece>) -> RequestSpec {
    RequestSpec {
        path: Template(path),
        ..RequestSpec::default()
    }
}

fn filled(fill: Fill) -> Piece {
    Piece::Place {
        fill,
        is_encoded: true,
    }
}

fn of_set(connections: u32, set: &RequestSet, segment: Segment) -> Job {
    let mut job = job(connections, segment);
    let target = job.targets.remove(0);
    job.targets.push(target.with_requests(set, "shop", &[]));
    job.validate().unwrap();
    job
}

/// The value of a field of a request.
fn field<'a>(request: &'a Asked, name: &str) -> Option<&'a str> {
    let mut lines = request.text.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn each_user_sends_its_row_and_what_it_was_given() {
    // A login says who the user is; its answer has a token and cookies, which the next requests carry.
    let text = |text: &str| Piece::Text(text.into());
    let mut login = spec(vec![
        text("/in/"),
        filled(Fill::Column { feed: 0, column: 0 }),
    ]);
    login.captures = vec![Capture {
        name: 0,
        from: CaptureFrom::Json("/token".to_owned()),
    }];
    let token = || filled(Fill::Captured { name: 0 });
    let cart = spec(vec![text("/cart?token="), token()]);
    let mut out = spec(vec![text("/out/"), token(), text("/"), filled(Fill::Seq)]);
    out.pause = ms(2);
    let mut set = set(vec![login, cart, out]);
    set.feeds = vec![Feed {
        name: "user".to_owned(),
        columns: vec!["id".to_owned()],
        rows: ["a", "b c", "d"].map(|id| vec![id.to_owned()]).to_vec(),
        order: FeedOrder::InTurn,
    }];
    let shop = |text: &str| {
        let path = text.split(' ').nth(1).unwrap();
        match path.strip_prefix("/in/") {
            Some(who) => {
                let cookies = format!("Set-Cookie: id={who}; Path=/\r\nSet-Cookie: in=1\r\n");
                answer(200, &cookies, &format!(r#"{{"token":"t {who}"}}"#))
            }
            // This one is deleted.
            None => answer(200, "Set-Cookie: id=; Path=/; Max-Age=0\r\n", "ok"),
        }
    };
    let segment = Segment::closed(Stop::Requests(12));
    let (done, asked) = visited(of_set(1, &set, segment), shop);
    let expected = [
        "/in/a",
        "/cart?token=t%20a",
        "/out/t%20a/3",
        "/in/b%20c",
        "/cart?token=t%20b%2520c",
        "/out/t%20b%2520c/6",
        "/in/d",
        "/cart?token=t%20d",
        "/out/t%20d/9",
        "/in/a",
        "/cart?token=t%20a",
        "/out/t%20a/12",
    ];
    assert_eq!(paths(&asked), expected);
    let cookies: Vec<_> = asked.iter().map(|one| field(one, "Cookie")).collect();
    // `in` belongs to `/in`; each user begins without any.
    assert_eq!(cookies[..3], [None, Some("id=a"), None]);
    assert_eq!(cookies[3..6], [None, Some("id=b%20c"), None]);
    assert_eq!((done.requests, users(&done).rounds), (12, 4));
}

#[test]
fn cookies_are_those_of_the_path_of_an_absolute_target() {
    let text = |text: &str| Piece::Text(text.into());
    let login = spec(vec![text("http://shop/in/a?b=/")]);
    let next = spec(vec![text("http://shop/in/c")]);
    let other = spec(vec![text("http://shop?q=1")]);
    let shop = |text: &str| match text.starts_with("GET http://shop/in/a") {
        true => answer(
            200,
            "Set-Cookie: a=1; Path=/in\r\nSet-Cookie: b=2; Path=/\r\n",
            "ok",
        ),
        false => good(text),
    };
    let segment = Segment::closed(Stop::Requests(3));
    let (_, asked) = visited(of_set(1, &set(vec![login, next, other]), segment), shop);
    let cookies: Vec<_> = asked.iter().map(|one| field(one, "Cookie")).collect();
    assert_eq!(cookies, [None, Some("a=1; b=2"), Some("b=2")]);
}

#[test]
fn users_whose_rows_are_used_up_make_their_rounds() {
    let set = with_rows(5, [0, 30]);
    let window = Stop::After(ms(1_000));
    for segment in [Segment::open(1_000.0, window), Segment::closed(window)] {
        let (done, asked) = visited(of_set(3, &set, segment), good);
        assert_eq!(asked.len(), 10);
        let users = users(&done);
        assert_eq!((users.arrived, users.rounds, users.under_way), (5, 5, 0));
        // Not the second that was asked for.
        assert!(
            done.slices[0].duration_s < 0.2,
            "{}",
            done.slices[0].duration_s
        );
        assert_eq!(done.used_up.as_deref(), Some("user"));
    }
}

/// Sessions of two steps whose users have each their row, of so many.
fn with_rows(rows: usize, pauses: [u64; 2]) -> RequestSet {
    let text = |text: &str| Piece::Text(text.into());
    let mut first = spec(vec![text("/"), filled(Fill::Column { feed: 0, column: 0 })]);
    let mut second = spec(vec![text("/second")]);
    (first.pause, second.pause) = (ms(pauses[0]), ms(pauses[1]));
    let mut set = set(vec![first, second]);
    set.feeds = vec![Feed {
        name: "user".to_owned(),
        columns: vec!["id".to_owned()],
        rows: (0..rows).map(|row| vec![row.to_string()]).collect(),
        order: FeedOrder::Once,
    }];
    set
}

#[test]
fn the_count_holds_after_the_rows_are_used_up() {
    // Five users have ten requests; seven are asked for.
    let segment = Segment::open(1_000.0, Stop::Requests(7));
    let (done, asked) = visited(of_set(5, &with_rows(5, [0, 30]), segment), good);
    assert_eq!((asked.len(), done.requests), (7, 7));
    let users = users(&done);
    assert_eq!((users.arrived, users.rounds, users.under_way), (5, 2, 3));
}

#[test]
fn nobody_waits_for_users_who_have_no_row() {
    // An hour between two rounds, and no third user.
    let segment = Segment::closed(Stop::After(ms(3_600_000 * 3)));
    let (done, asked) = visited(of_set(2, &with_rows(2, [3_600_000, 0]), segment), good);
    assert_eq!(asked.len(), 4);
    assert_eq!(done.used_up.as_deref(), Some("user"));
    assert!(asked.iter().all(|one| one.at < 100 * MS));
    let length_s = done.slices[0].duration_s;
    assert!(length_s < 1.0, "{length_s}");
}
