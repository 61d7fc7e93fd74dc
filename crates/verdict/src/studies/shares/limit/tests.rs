use std::collections::BTreeMap;
use testing::Text as _;

use readings::{Arrivals, Journal, LoadReading};

use super::*;
use crate::fixtures::{header, in_open, open};

/// A load of 1,000/s in which these requests came by slot, under a limit of 500/s.
fn load(counts: Vec<u32>) -> LoadReading {
    let arrivals = Arrivals {
        start_s: 0.0,
        counts,
    };
    LoadReading {
        rate_limit_per_s: Some(500.0),
        arrivals: BTreeMap::from([("origin".to_owned(), arrivals)]),
        ..open(1_000.0, 300.0)
    }
}

fn found(blocks: &[Vec<u32>]) -> Vec<Limiting> {
    let trials = (1..).zip(blocks);
    let trials = trials.map(|(block, counts)| in_open(block, "balance", load(counts.clone())));
    crate::analyse(&Journal::of_trials(header(blocks.len() as u32), trials)).limits
}

#[test]
fn a_limit_that_is_kept_on_average_only_shows_in_short_windows() {
    // All requests of a second in its first 100 ms.
    let second = |at: usize| if at % 100 < 10 { 50 } else { 0 };
    let block: Vec<u32> = (0..1_200).map(second).collect();
    let found = &found(&[block.clone(), block.clone(), block])[0];
    assert_eq!(found.finding, LimitFinding::Kept);
    let most: Vec<(f64, f64)> = (found.windows.iter())
        .map(|one| (one.window_s, (one.most * 1e6).round() / 1e6))
        .collect();
    assert_eq!(most, [(0.01, 9.0), (0.1, 9.0), (1.0, 0.0), (10.0, 0.0)]);
    assert_eq!(found.windows[0].least, -1.0);
    assert_eq!(
        words::limiting(found),
        "`balance` (connections=96) keeps its limit of 500/s: 500/s pass (0.00% [0.00%, 0.00%] from the limit); fullest \
         windows: +900% in 10 ms, +900% in 100 ms, 0.0% in 1 s, 0.0% in 10 s"
    );
}

#[test]
fn a_limit_that_lets_too_many_through_is_named_with_its_interval() {
    // 565.5 a second: 13.1% too many, give or take one in 10 s.
    let block = |more: u32| -> Vec<u32> {
        let even = (0..1_000).map(|at| (at + 1) * 5_655 / 1_000 - at * 5_655 / 1_000);
        let mut counts: Vec<u32> = even.collect();
        counts[500] += more;
        counts
    };
    let found = &found(&[block(0), block(1), block(2)])[0];
    assert_eq!(found.finding, LimitFinding::TooMany);
    let (low, high) = found.excess.interval().unwrap();
    assert!(low < 0.131 + 0.000_2 && 0.131 < high, "{found:?}");
    assert!(high - low < 0.002, "{found:?}");
    let text = words::limiting(found);
    text.has("lets too many requests through: 566/s (+13.12% [+13.07%, +13.17%] from its limit");
    text.has("from its limit of 500/s");
}

#[test]
fn what_does_not_reach_a_limit_shows_nothing_and_one_block_settles_nothing() {
    let few: Vec<u32> = vec![3; 500];
    let too_few = &found(&[few.clone(), few.clone(), few.clone()])[0];
    assert_eq!(too_few.finding, LimitFinding::TooFew);
    assert_eq!(too_few.windows.len(), 3, "10 s are longer than the load");
    assert_eq!(found(&[few])[0].finding, LimitFinding::Unsettled);
    let slow = |_| LoadReading {
        rate_limit_per_s: Some(995.0),
        ..load(vec![10; 500])
    };
    let slow: Vec<LoadReading> = (0..3).map(slow).collect();
    let found = limiting(&slow.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(found.finding, LimitFinding::NotReached);
    let none = LoadReading {
        rate_limit_per_s: None,
        ..load(vec![5])
    };
    assert_eq!(limiting(&[&none]), None);
}

#[test]
fn users_offer_their_requests() {
    // 400 users a second, who make so many requests each.
    let users = |requests: u64| LoadReading {
        offered: Some(readings::Offered {
            due: 400 * requests,
            ..Default::default()
        }),
        users: Some(Box::new(readings::UsersReading {
            arrived: 400,
            ..Default::default()
        })),
        pacing: readings::Pacing::Open { rate_per_s: 400.0 },
        ..load(vec![4; 500])
    };
    let of = |blocks: [u64; 3]| {
        let loads = blocks.map(users);
        limiting(&loads.iter().collect::<Vec<_>>()).unwrap()
    };
    let found = of([3, 3, 3]);
    assert_eq!(found.offered_per_s, 1_200.0);
    assert_eq!(found.finding, LimitFinding::TooFew);
    // One block with too little settles nothing.
    let found = of([3, 1, 3]);
    assert_eq!(found.offered_per_s, 400.0);
    assert_eq!(found.finding, LimitFinding::NotReached);
}
