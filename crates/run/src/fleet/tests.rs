//! Loads of several fake hosts.

use readings::{Histogram, Pacing};

use super::*;
use crate::tests::fake::{FakeHost, SharedScript};

fn fleet(script: &SharedScript, names: &[&str]) -> Fleet {
    let spec = |name: &&str| HostSpec {
        name: (*name).to_owned(),
        ..HostSpec::default()
    };
    let specs: Vec<HostSpec> = names.iter().map(spec).collect();
    let hosts = specs.iter().map(|spec| FakeHost::machine(script, spec));
    Fleet::of(Hosts::of(hosts.collect(), None), specs)
}

fn job() -> Job {
    let address: std::net::SocketAddr = "192.0.2.1:80".parse().unwrap();
    let target = load::Target::new(address, Vec::new(), load::Expect::default());
    let stop = Stop::After(Duration::from_secs(1));
    Job {
        threads: 2,
        ..Job::to(target.with_connections(60)).segment(Segment::open(3_000.0, stop))
    }
}

fn make(fleet: &mut Fleet) -> Result<FleetLoad, AgentError> {
    fleet.load(&job(), &AtomicBool::new(false), &mut |_| {})
}

#[test]
fn every_host_has_the_whole_job_and_its_part_of_it() {
    let script = SharedScript::default();
    let mut fleet = fleet(&script, &["b", "a", "c"]);
    let made = make(&mut fleet).unwrap();
    let hosts: Vec<&str> = made
        .reading
        .hosts
        .iter()
        .map(|one| one.host.as_str())
        .collect();
    assert_eq!(hosts, ["b", "a", "c"], "in the order of the file");
    let script = script.borrow();
    // Each made a short one before.
    let (tried, made) = script.orders.split_at(3);
    for order in tried {
        assert_eq!(order.job.segments[0].stop, Stop::After(TRIED_FOR));
    }
    let mut firsts = Vec::new();
    for order in made {
        let part = order.job.part.unwrap();
        assert_eq!((order.job.threads, part.all_threads), (2, 6));
        assert_eq!(order.job.targets[0].connections, 60);
        assert_eq!(order.job.segments, job().segments);
        assert!(part.start_ns > 0);
        firsts.push(part.first_thread);
    }
    firsts.sort_unstable();
    assert_eq!(firsts, [0, 2, 4]);
}

#[test]
fn the_hosts_are_tried_once() {
    let script = SharedScript::default();
    let mut fleet = fleet(&script, &["a", "b"]);
    make(&mut fleet).unwrap();
    make(&mut fleet).unwrap();
    assert_eq!(script.borrow().loads, 2 + 2 + 2);
}

#[test]
fn after_a_late_start_the_hosts_have_more_time_to_begin() {
    let script = SharedScript::default();
    // As with an order that takes three seconds to arrive.
    script.borrow_mut().late_ns = Box::new(|_| 3_000_000_000);
    make(&mut fleet(&script, &["a"])).unwrap();
    let script = script.borrow();
    let starts: Vec<u64> = script
        .orders
        .iter()
        .map(|it| it.job.part.unwrap().start_ns)
        .collect();
    assert!(starts[1] - starts[0] >= 4_500_000_000, "{starts:?}");
}

#[test]
fn a_host_that_begins_late_is_named_with_its_lateness() {
    let script = SharedScript::default();
    script.borrow_mut().late_ns = Box::new(|order| match order.job.part.unwrap().first_thread {
        2 => 12_000_000,
        _ => 0,
    });
    let made = make(&mut fleet(&script, &["a", "b"])).unwrap();
    let late: Vec<f64> = made
        .reading
        .hosts
        .iter()
        .map(|one| one.start_late_us)
        .collect();
    assert_eq!(late, [0.0, 12_000.0]);
    assert_eq!(made.reading.requests, 20_000, "what was measured is kept");
}

#[test]
fn what_the_others_measured_is_kept_when_a_host_is_lost() {
    let script = SharedScript::default();
    // The first two try it.
    script.borrow_mut().dies_in_load = Some(4);
    let made = make(&mut fleet(&script, &["a", "b"])).unwrap();
    let lost: Vec<_> = made
        .reading
        .hosts
        .iter()
        .filter_map(|one| one.lost.as_deref())
        .collect();
    assert_eq!(lost, ["it ended"]);
    assert_eq!(made.reading.hosts.len(), 2);
    assert_eq!(made.reading.requests, 10_000);
}

#[test]
fn the_window_closes_when_the_last_remaining_host_closes_it() {
    // Loads 1 and 2 are the trial loads of each host.
    for dies_in_load in [None, Some(3), Some(4)] {
        let script = SharedScript::default();
        script.borrow_mut().dies_in_load = dies_in_load;
        let mut closed = 0;
        let mut fleet = fleet(&script, &["a", "b"]);
        let made = fleet.load(&job(), &AtomicBool::new(false), &mut |progress| {
            closed += u32::from(matches!(progress, Progress::WindowCloses { .. }));
        });
        assert!(made.is_ok());
        assert_eq!(closed, 1, "{dies_in_load:?}");
    }
}

#[test]
fn a_host_that_cannot_make_the_load_is_named() {
    let script = SharedScript::default();
    script.borrow_mut().fails = Box::new(|order| order.job.part.unwrap().first_thread == 2);
    let error = make(&mut fleet(&script, &["a", "b"])).err().unwrap();
    assert_eq!(error.to_string(), "load on host `b`: the load broke off");
}

#[test]
fn a_load_whose_only_host_is_lost_fails() {
    let script = SharedScript::default();
    script.borrow_mut().dies_in_load = Some(2);
    let error = make(&mut fleet(&script, &["a"])).err().unwrap();
    assert_eq!(error.to_string(), "lost the agent: host `a`: it ended");
}

#[test]
fn rows_of_the_hosts_are_rows_of_the_load() {
    let row = |start_s: f64, requests: u64| {
        let mut response = Histogram::new();
        response.record_many_ns(1_000_000, requests);
        Box::new(load::Row {
            segment: 0,
            reading: 0,
            row: readings::LoadRow {
                start_s,
                duration_s: 1.0,
                requests,
                ..readings::LoadRow::default()
            },
            response,
        })
    };
    let mut rows = HostRows::of(2);
    rows.take(0, *row(0.0, 3), &mut |_| {});
    rows.take(1, *row(0.0, 4), &mut |_| {});
    let part = |host: &str| {
        let loaded = Loaded {
            readings: vec![LoadReading::empty(Pacing::Closed)],
            ..Loaded::default()
        };
        (host.to_owned(), Ok(loaded))
    };
    let made = merged(vec![part("a"), part("b")], rows).unwrap();
    let counts: Vec<u64> = made.rows.iter().map(|row| row.requests).collect();
    assert_eq!(counts, [7]);
}

#[test]
fn a_host_without_a_reading_is_lost() {
    let part = |host: &str, count: usize| {
        let loaded = Loaded {
            readings: vec![LoadReading::empty(Pacing::Closed); count],
            ..Loaded::default()
        };
        (host.to_owned(), Ok(loaded))
    };
    let parts = vec![part("a", 0), part("b", 1), part("c", 2)];
    let made = merged(parts, HostRows::of(3)).unwrap();
    let lost: Vec<_> = made
        .hosts
        .iter()
        .map(|one| (one.host.as_str(), one.lost.as_deref()))
        .collect();
    assert_eq!(
        lost,
        [
            ("a", Some("it sent 0 readings of its load; expected 1")),
            ("b", None),
            ("c", Some("it sent 2 readings of its load; expected 1")),
        ]
    );
    let error = merged(vec![part("a", 0)], HostRows::of(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "lost the agent: host `a`: it sent 0 readings of its load; expected 1"
    );
}
