use std::collections::BTreeMap;

use readings::{Arrivals, Journal, LoadReading};

use super::*;
use crate::fixtures::{header, in_open, open};

fn told(blocks: &[Vec<u32>]) -> Vec<String> {
    let trials = (1..).zip(blocks).map(|(block, counts)| {
        let arrivals = Arrivals {
            start_s: 0.0,
            counts: counts.clone(),
        };
        let load = LoadReading {
            arrivals: BTreeMap::from([("origin".to_owned(), arrivals)]),
            ..open(1_000.0, 300.0)
        };
        in_open(block, "balance", load)
    });
    let analysis = crate::analyse(&Journal::of_trials(header(blocks.len() as u32), trials));
    analysis.expiries.iter().map(words::expiries).collect()
}

/// Five seconds, in each of which requests come in two slots 20 ms apart.
fn block(requests: [u32; 2]) -> Vec<u32> {
    let of_slot = |at: usize| match at % 102 {
        30 => requests[0],
        32 => requests[1],
        _ => 0,
    };
    (0..510).map(of_slot).collect()
}

#[test]
fn the_requests_of_an_expiry_are_counted_and_the_time_between_expiries() {
    let expected = "`balance` (connections=96) asks the back end 7.0 [4.5, 9.5] times when an answer \
                    expires (at most 8, over 12 expiries); an answer lasts 1.02 s";
    assert_eq!(
        told(&[block([4, 2]), block([5, 2]), block([6, 2])]),
        [expected]
    );
    let expected = "`balance` (connections=96) asks the back end 1.0 times when an answer expires (at \
                    most 1, over 4 expiries); an answer lasts 1.02 s";
    assert_eq!(told(&[block([1, 0])]), [expected]);
}

#[test]
fn a_burst_that_began_before_the_window_is_not_counted() {
    // The first burst has one request of ten.
    let mut cut = block([10, 0])[30..].to_vec();
    cut[0] = 1;
    let expected = "`balance` (connections=96) asks the back end 10.0 times when an answer expires (at \
                    most 10, over 4 expiries); an answer lasts 1.02 s";
    assert_eq!(told(&[cut]), [expected]);
}

#[test]
fn requests_that_come_all_the_time_are_no_expiries() {
    assert!(told(&[vec![1; 500]]).is_empty());
    let often: Vec<u32> = (0..500).map(|at| u32::from(at % 9 == 0)).collect();
    assert!(told(&[often]).is_empty());
    assert!(
        told(&[block([4, 2]), vec![0; 500]]).is_empty(),
        "not in all blocks"
    );
}
