use super::*;
use crate::fixtures::{closed, done, header, open, trial};
use readings::Journal;
use testing::Text as _;

/// A load of so many requests, of which each back end received so many.
fn load(requests: u64, received: &[u64]) -> LoadReading {
    let mut load = open(1000.0, 300.0);
    (load.requests, load.requests_all) = (requests, requests);
    load.bytes_read = requests * 100;
    let named = received.iter().zip('a'..).map(|(&requests, name)| {
        let one = Received {
            requests,
            sent_bytes: requests * 80,
            ..Received::default()
        };
        (name.to_string(), one)
    });
    load.received = named.collect();
    load
}

fn found(blocks: &[LoadReading]) -> Vec<Shares> {
    let trials = (1..).zip(blocks).map(|(block, load)| {
        let outcome = done(Some(closed(1000.0)), Some(load.clone()));
        trial(block, "nginx", false, outcome)
    });
    crate::analyse(&Journal::of_trials(header(blocks.len() as u32), trials)).shares
}

fn told(requests: u64, received: &[u64]) -> Vec<String> {
    let half = |n: u64| [n / 2, n - n / 2];
    let blocks: Vec<LoadReading> = (0..2)
        .map(|block| {
            let received: Vec<u64> = received.iter().map(|&n| half(n)[block]).collect();
            load(half(requests)[block], &received)
        })
        .collect();
    found(&blocks).iter().map(words::shares).collect()
}

#[test]
fn equal_shares_are_one_figure_with_its_interval() {
    let expected = "`nginx` (connections=96) sends 25.0% [24.7%, 25.3%] to each of 4 back ends";
    assert_eq!(told(100_000, &[25_000; 4]), [expected]);
    // From the least of their bounds to the greatest.
    let nearly = told(100_000, &[25_010, 24_990, 25_020, 24_980]);
    nearly[0].has(" 25.0% [24.6%, 25.4%] to each of 4");
    // One back end that receives each request is not worth a sentence.
    assert!(told(100_000, &[100_000]).is_empty());
    assert!(told(100_000, &[]).is_empty(), "nobody counts");
}

#[test]
fn a_back_end_with_another_share_is_named() {
    let expected = "`nginx` (connections=96) sends 4.0% [3.8%, 4.2%] to `b`, 32.0% [31.6%, 32.4%] to each of `a`, \
                    `c`, `d`; equal shares are 25.0%";
    assert_eq!(told(100_000, &[32_000, 4_000, 32_000, 32_000]), [expected]);
    let off = |received: &[u64]| found(&[load(1, received)])[0].back_ends[0].is_off;
    assert!(!off(&[5, 6]), "few requests show nothing");
    assert!(
        !off(&[1_004_000, 1_000_000]),
        "it is so little that nobody asks"
    );
    assert!(off(&[1_020_000, 980_000]));
}

#[test]
fn lost_back_ends_have_no_shares_and_cached_answers_an_age() {
    let mut cached = load(100_000, &[5_000]);
    cached.ages = Some(AgeReading {
        answers: 96_000,
        sum_s: 38_400,
        highest_s: 2,
        limited: 96_000,
        stale: 12,
    });
    let of = |loss: &str| {
        let mut outcome = done(None, Some(cached.clone()));
        if let readings::Outcome::Done(reading) = &mut outcome {
            let event = EventReading {
                what: loss.to_owned(),
                ..EventReading::default()
            };
            reading.events = Some(readings::EventsReading {
                events: vec![event],
                ..readings::EventsReading::default()
            });
        }
        let trials = [trial(1, "nginx", false, outcome)];
        crate::analyse(&Journal::of_trials(header(1), trials)).shares
    };
    assert!(of("kill").is_empty() && of("reload").is_empty());
    words::shares(&of("quota")[0]).ends(
        "5,000 of 100,000 reached the back end; by their Age, answers are 0.4 s old on average, \
         at most 2 s; 12 of 96,000 are older than their max-age",
    );
}

/// What is told of two back ends that are weighed 3 to 1.
fn told_weighed(received: &[u64]) -> Vec<String> {
    let mut load = load(received.iter().sum(), received);
    for (one, weight) in load.received.values_mut().zip([3, 1]) {
        one.weight = Some(weight);
    }
    found(&[load]).iter().map(words::shares).collect()
}

#[test]
fn shares_are_held_against_declared_weights() {
    let expected = "`nginx` (connections=96) sends 25.0% [24.7%, 25.3%] to `b`, 75.0% [74.7%, 75.3%] \
                    to `a`, as weighted";
    assert_eq!(told_weighed(&[75_000, 25_000]), [expected]);
    let expected = "`nginx` (connections=96) sends 50.0% [49.6%, 50.4%] to `a`, 50.0% [49.6%, 50.4%] \
                    to `b`; their weights ask for 75.0% to `a`, 25.0% to `b`";
    assert_eq!(told_weighed(&[50_000, 50_000]), [expected]);
}

#[test]
fn requests_that_are_sent_twice_are_told() {
    let expected = "`nginx` (connections=96) sends 50.0% [49.7%, 50.3%] to each of 2 back ends, and sends 1.25 \
                    requests upstream per client request";
    assert_eq!(told(100_000, &[62_500, 62_500]), [expected]);
}

#[test]
fn exchanges_that_are_open_at_the_end_are_not_sent_twice() {
    let mut streams = load(200, &[250]);
    streams.lasting = Some(Box::new(readings::LastingReading {
        opened: 250,
        ..readings::LastingReading::default()
    }));
    assert_eq!(found(&[streams]).len(), 0);
}

#[test]
fn a_cache_has_a_hit_ratio_of_requests_and_of_bytes() {
    let expected = "`nginx` (connections=96) answers 95.0% [94.9%, 95.1%] of the requests and 96.0% of the bytes \
                    itself: 5,000 of 100,000 reached the back end";
    assert_eq!(told(100_000, &[5_000]), [expected]);
    let all = told(100_000, &[0]);
    all[0].begins("`nginx` (connections=96) answers 100.00% [100.00%, 100.00%]");
}

#[test]
fn all_intervals_of_a_subject_hold_at_once_in_95_of_100_runs() {
    // Requests that go anywhere, independently of each other.
    let mut random = fastrand::Rng::with_seed(7);
    for (ends, requests) in [(2_usize, 40_u64), (4, 400), (8, 1_000)] {
        let runs = 400;
        let mut held = 0;
        for _ in 0..runs {
            let mut received = vec![0; ends];
            (0..requests).for_each(|_| received[random.usize(..ends)] += 1);
            let mut sum = Sum::default();
            sum.extend(Some(&load(requests, &received)));
            let seen = sum.back_ends(requests);
            let share = 1.0 / ends as f64;
            held += usize::from(
                seen.iter()
                    .all(|one| (one.lower..=one.upper).contains(&share)),
            );
        }
        // Exact intervals are a little too wide, never too narrow: 95%, less three standard
        // errors.
        let rate = held as f64 / f64::from(runs);
        assert!((0.917..=1.0).contains(&rate), "{ends} back ends: {rate}");
    }
}
