//! Whom the modes choose, and how often.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::config::model::{HashKey, Weight};

fn backends(weights: &[Weight]) -> Vec<Backend> {
    weights
        .iter()
        .enumerate()
        .map(|(at, weight)| Backend {
            weight: *weight,
            ..Backend::new(
                &format!("b{at}"),
                "127.0.0.1:80"
                    .parse::<std::net::SocketAddr>()
                    .unwrap()
                    .into(),
            )
        })
        .collect()
}

/// A dispatcher with the dice that it throws.
struct Chooser {
    dispatcher: Dispatcher,
    rng: fastrand::Rng,
}

impl Chooser {
    fn new(dispatch: &Dispatch, backends: &[Backend], seed: u64) -> Chooser {
        let dispatcher = Dispatcher::new(dispatch, backends);
        let rng = fastrand::Rng::with_seed(seed);
        Chooser { dispatcher, rng }
    }

    fn ask(&mut self, candidates: &[Candidate], request: &Request<'_>) -> usize {
        let chosen = self.dispatcher.choose(candidates, request, &mut self.rng);
        chosen.unwrap()
    }

    fn choose(&mut self, candidates: &[Candidate], number: u32) -> usize {
        self.ask(candidates, &request(number))
    }

    /// How often each is chosen for so many clients from different addresses.
    fn counts(&mut self, candidates: &[Candidate], clients: u32) -> Vec<u32> {
        let mut counts = vec![0; candidates.len()];
        (0..clients).for_each(|number| counts[self.choose(candidates, number)] += 1);
        counts
    }
}

fn up(count: usize) -> Vec<Candidate> {
    vec![
        Candidate {
            usable: true,
            active: 0,
            share: 1.0,
        };
        count
    ]
}

fn request(number: u32) -> Request<'static> {
    Request {
        client: std::net::Ipv4Addr::from_bits(number).into(),
        key: None,
        now_ns: u64::from(number) * 1_000_000,
    }
}

/// Pearson's statistic against expected shares, and whether it is within what one of 1000 right
/// samples exceeds; at most four degrees of freedom are needed here.
fn fits(counts: &[u32], shares: &[f64]) -> bool {
    const EXCEEDED_BY_1_OF_1000: [f64; 4] = [10.828, 13.816, 16.266, 18.467];
    let total: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let all: f64 = shares.iter().sum();
    let statistic: f64 = counts
        .iter()
        .zip(shares)
        .map(|(count, share)| {
            let expected = total * share / all;
            (f64::from(*count) - expected).powi(2) / expected
        })
        .sum();
    statistic < EXCEEDED_BY_1_OF_1000[counts.len() - 2]
}

const EQUAL: [Weight; 4] = [Weight::Share(1); 4];

#[test]
fn the_test_of_distributions_can_fail() {
    assert!(fits(&[2500, 2480, 2520, 2500], &[1.0; 4]));
    assert!(!fits(&[2700, 2400, 2450, 2450], &[1.0; 4]));
}

#[test]
fn round_robin_goes_around_and_passes_over_what_is_not_usable() {
    let mut chooser = Chooser::new(&Dispatch::RoundRobin, &backends(&EQUAL), 1);
    let mut candidates = up(4);
    let mut take = |candidates: &[Candidate], count: u32| -> Vec<usize> {
        (0..count).map(|n| chooser.choose(candidates, n)).collect()
    };
    assert_eq!(take(&candidates, 6), [0, 1, 2, 3, 0, 1]);
    candidates[3].usable = false;
    assert_eq!(take(&candidates, 6), [2, 0, 1, 2, 0, 1]);
}

#[test]
fn round_robin_keeps_to_shares_and_ignores_penalties() {
    let choose = |dispatch: &Dispatch, weights: &[Weight]| -> Vec<usize> {
        let mut chooser = Chooser::new(dispatch, &backends(weights), 1);
        let candidates = up(weights.len());
        (0..6).map(|n| chooser.choose(&candidates, n)).collect()
    };
    let external = Dispatch::External {
        command: crate::config::Template::parse("false").unwrap(),
    };
    for dispatch in [Dispatch::RoundRobin, external] {
        let shares = [Weight::Share(2), Weight::Share(1)];
        assert_eq!(choose(&dispatch, &shares), [0, 1, 0, 0, 1, 0]);
        // The same for all is plain round robin.
        let equal = [Weight::Share(3), Weight::Share(3)];
        assert_eq!(choose(&dispatch, &equal), [0, 1, 0, 1, 0, 1]);
        // A Crossroads file has penalties, which its round robin does not know.
        let penalties = [Weight::Penalty(4), Weight::Share(1)];
        assert_eq!(choose(&dispatch, &penalties), [0, 1, 0, 1, 0, 1]);
    }
}

#[test]
fn weighted_round_robin_spreads_turns_evenly() {
    let weights = [Weight::Share(4), Weight::Share(2), Weight::Share(1)];
    let mut chooser = Chooser::new(&Dispatch::WeightedRoundRobin, &backends(&weights), 1);
    let order: Vec<usize> = (0..7).map(|n| chooser.choose(&up(3), n)).collect();
    assert_eq!(order, [0, 1, 0, 2, 0, 1, 0]);
    // Crossroads' sense is the opposite one.
    let penalties = [Weight::Penalty(1), Weight::Penalty(2), Weight::Penalty(4)];
    let mut chooser = Chooser::new(&Dispatch::WeightedRoundRobin, &backends(&penalties), 1);
    assert_eq!(chooser.counts(&up(3), 700), [400, 200, 100]);
}

#[test]
fn one_that_starts_slowly_gets_less() {
    let mut candidates = up(2);
    candidates[1].share = 0.25;
    for (dispatch, exact) in [(Dispatch::RoundRobin, true), (Dispatch::Random, false)] {
        let mut chooser = Chooser::new(&dispatch, &backends(&EQUAL[..2]), 7);
        let counts = chooser.counts(&candidates, 5000);
        assert!(fits(&counts, &[4.0, 1.0]), "{counts:?}");
        assert!(!exact || counts == [4000, 1000], "{counts:?}");
    }
}

#[test]
fn lots_fall_in_proportion_to_weights() {
    let mut chooser = Chooser::new(&Dispatch::Random, &backends(&EQUAL), 11);
    let even = chooser.counts(&up(4), 10_000);
    assert!(fits(&even, &[1.0; 4]), "{even:?}");
    let weights = [Weight::Share(1), Weight::Share(5), Weight::Share(2)];
    let mut chooser = Chooser::new(&Dispatch::Random, &backends(&weights), 11);
    let counts = chooser.counts(&up(3), 10_000);
    assert!(fits(&counts, &[1.0, 5.0, 2.0]), "{counts:?}");
}

#[test]
fn by_order_is_the_first_that_is_usable() {
    let mut chooser = Chooser::new(&Dispatch::ByOrder, &backends(&EQUAL), 1);
    let mut candidates = up(4);
    assert_eq!(chooser.counts(&candidates, 9), [9, 0, 0, 0]);
    candidates[0].usable = false;
    assert_eq!(chooser.counts(&candidates, 9), [0, 9, 0, 0]);
}

#[test]
fn by_client_ip_stays_while_it_is_usable_and_else_goes_to_the_next() {
    let mut chooser = Chooser::new(&Dispatch::ByClientIp, &backends(&EQUAL), 1);
    let mut candidates = up(4);
    let spread = chooser.counts(&candidates, 10_000);
    assert!(fits(&spread, &[1.0; 4]), "{spread:?}");
    let mut ask = |candidates: &[Candidate], client: u32| chooser.choose(candidates, client);
    let before: Vec<usize> = (0..500).map(|client| ask(&candidates, client)).collect();
    candidates[2].usable = false;
    for client in 0..500 {
        let home = before[client as usize];
        let expected = if home == 2 { 3 } else { home };
        assert_eq!(ask(&candidates, client), expected);
    }
    candidates[2].usable = true;
    let after: Vec<usize> = (0..500).map(|client| ask(&candidates, client)).collect();
    assert_eq!(before, after);
}

/// Serves clients one at a time; a back end's connections have these sizes and durations.
fn serve(dispatch: &Dispatch, backends: &[Backend], sizes: &[u64], clients: u32) -> Vec<u32> {
    let mut chooser = Chooser::new(dispatch, backends, 5);
    let mut counts = vec![0; backends.len()];
    for number in 0..clients {
        let at = chooser.choose(&up(backends.len()), number);
        counts[at] += 1;
        chooser.dispatcher.finished(at, sizes[at], sizes[at] * 1000);
    }
    counts
}

#[test]
fn by_size_and_by_duration_take_the_smallest_mean() {
    for dispatch in [
        Dispatch::BySize { over: None },
        Dispatch::ByDuration { over: Some(3) },
    ] {
        // Each is tried once; then the smallest gets all.
        let counts = serve(&dispatch, &backends(&EQUAL[..3]), &[30, 10, 20], 100);
        assert_eq!(counts, [1, 98, 1], "{dispatch:?}");
    }
}

#[test]
fn a_penalty_multiplies_what_is_measured() {
    let weights = [Weight::Penalty(4), Weight::Penalty(1), Weight::Share(1)];
    let counts = serve(
        &Dispatch::BySize { over: None },
        &backends(&weights),
        &[10, 30, 50],
        100,
    );
    assert_eq!(counts, [1, 98, 1], "10 × 4 is more than 30");
}

#[test]
fn what_decays_is_tried_again() {
    let mut some = backends(&EQUAL[..2]);
    for one in &mut some {
        one.decay_percent = 10;
    }
    // 40 × 0.9¹⁴ is less than 10: about each 15th goes to the slow one.
    let counts = serve(&Dispatch::BySize { over: Some(1) }, &some, &[10, 40], 1500);
    assert!((90..=110).contains(&counts[1]), "{counts:?}");
}

#[test]
fn a_mean_over_the_last_forgets() {
    let mut chooser = Chooser::new(
        &Dispatch::ByDuration { over: Some(2) },
        &backends(&EQUAL[..2]),
        5,
    );
    chooser.dispatcher.finished(0, 0, 1_000_000);
    for _ in 0..2 {
        chooser.dispatcher.finished(0, 0, 10);
    }
    chooser.dispatcher.finished(1, 0, 20);
    assert_eq!(chooser.choose(&up(2), 0), 0);
}

#[test]
fn the_fewest_connections_are_found_and_equals_take_turns() {
    for dispatch in [
        Dispatch::ByConnections { over: None },
        Dispatch::LeastConnections,
    ] {
        let mut chooser = Chooser::new(&dispatch, &backends(&EQUAL), 1);
        let mut candidates = up(4);
        assert_eq!(chooser.counts(&candidates, 400), [100; 4]);
        for (candidate, active) in candidates.iter_mut().zip([3, 2, 1, 2]) {
            candidate.active = active;
        }
        assert_eq!(chooser.counts(&candidates, 9), [0, 0, 9, 0]);
    }
}

#[test]
fn connections_follow_weights_when_they_last() {
    let weights = [Weight::Share(1), Weight::Share(2), Weight::Share(5)];
    let mut chooser = Chooser::new(&Dispatch::LeastConnections, &backends(&weights), 3);
    let mut candidates = up(3);
    for number in 0..800 {
        let at = chooser.choose(&candidates, number);
        candidates[at].active += 1;
    }
    let active: Vec<u32> = candidates.iter().map(|one| one.active).collect();
    assert!(
        active
            .iter()
            .zip([100, 200, 500])
            .all(|(a, e)| a.abs_diff(e) <= 3),
        "{active:?}"
    );
}

#[test]
fn averaged_connections_look_back() {
    let mut chooser = Chooser::new(
        &Dispatch::ByConnections { over: Some(4) },
        &backends(&EQUAL[..2]),
        3,
    );
    let mut candidates = up(2);
    candidates[0].active = 8;
    for number in 0..4 {
        assert_eq!(chooser.choose(&candidates, number), 1);
    }
    // Now it is the emptier one, but was not on average.
    candidates[0].active = 0;
    candidates[1].active = 1;
    assert_eq!(chooser.choose(&candidates, 5), 1);
    for number in 0..4 {
        chooser.choose(&candidates, number);
    }
    assert_eq!(chooser.choose(&candidates, 9), 0);
}

fn ewma() -> Dispatch {
    Dispatch::PeakEwma {
        decay: Duration::from_secs(10),
    }
}

#[test]
fn the_faster_of_two_gets_nearly_all_and_the_slower_is_tried_again() {
    let mut chooser = Chooser::new(&ewma(), &backends(&EQUAL[..2]), 9);
    let mut counts = [0_u32; 2];
    // A request each 10 ms, for 100 s; answers come in 1 ms and in 50 ms.
    for number in 0..10_000_u64 {
        let now_ns = number * 10_000_000;
        let ask = Request {
            now_ns,
            ..request(1)
        };
        let at = chooser.ask(&up(2), &ask);
        counts[at] += 1;
        let latency_ns = [1_000_000, 50_000_000][at];
        chooser
            .dispatcher
            .answered(at, latency_ns, now_ns + latency_ns);
    }
    // Its average falls from 50 ms to 1 ms in 10 s × ln 50, about 39 s.
    assert!((2..=5).contains(&counts[1]), "{counts:?}");
}

#[test]
fn a_slow_answer_counts_at_once_and_requests_under_way_count_too() {
    let mut chooser = Chooser::new(&ewma(), &backends(&EQUAL[..2]), 9);
    for at in 0..2 {
        chooser.dispatcher.answered(at, 1_000_000, 0);
    }
    let mut candidates = up(2);
    candidates[0].active = 3;
    let now = Request {
        now_ns: 1,
        ..request(1)
    };
    assert_eq!(chooser.ask(&candidates, &now), 1);
    chooser.dispatcher.answered(1, 9_000_000, 2);
    assert_eq!(chooser.ask(&candidates, &now), 0);
}

#[test]
fn one_that_never_answered_gets_one_request_at_a_time() {
    let mut chooser = Chooser::new(&ewma(), &backends(&EQUAL[..2]), 9);
    chooser.dispatcher.answered(0, 1_000_000, 0);
    let mut candidates = up(2);
    assert_eq!(chooser.choose(&candidates, 0), 1);
    candidates[1].active = 1;
    candidates[0].active = 50;
    assert_eq!(chooser.choose(&candidates, 0), 0);
}

#[test]
fn two_choices_keep_equal_back_ends_nearly_level() {
    let mut chooser = Chooser::new(&ewma(), &backends(&EQUAL), 21);
    let mut candidates = up(4);
    for at in 0..4 {
        chooser.dispatcher.answered(at, 1_000_000, 0);
    }
    for _ in 0..4000 {
        let at = chooser.choose(&candidates, 0);
        candidates[at].active += 1;
    }
    let active: Vec<u32> = candidates.iter().map(|one| one.active).collect();
    // Chosen by lot alone they would lie about 27 apart from 1000; two choices keep them within
    // a few.
    assert!(
        active.iter().all(|one| one.abs_diff(1000) <= 8),
        "{active:?}"
    );
}

fn hashing() -> Dispatch {
    Dispatch::ConsistentHash {
        key: HashKey::Header("X-User".to_owned()),
    }
}

#[test]
fn hashed_clients_spread_in_proportion_to_weights() {
    let mut chooser = Chooser::new(&hashing(), &backends(&EQUAL), 1);
    let even = chooser.counts(&up(4), 20_000);
    assert!(fits(&even, &[1.0; 4]), "{even:?}");
    let weights = [Weight::Share(1), Weight::Share(3), Weight::Share(6)];
    let mut chooser = Chooser::new(&hashing(), &backends(&weights), 1);
    let counts = chooser.counts(&up(3), 20_000);
    assert!(fits(&counts, &[1.0, 3.0, 6.0]), "{counts:?}");
}

#[test]
fn only_the_clients_of_a_back_end_that_goes_or_comes_move() {
    let five = backends(&[Weight::Share(1); 5]);
    let place = |backends: &[Backend], candidates: &[Candidate]| -> HashMap<String, String> {
        let mut chooser = Chooser::new(&hashing(), backends, 1);
        (0..5000)
            .map(|number| {
                let key = format!("user-{number}");
                let ask = Request {
                    key: Some(key.as_bytes()),
                    ..request(7)
                };
                let at = chooser.ask(candidates, &ask);
                (key, backends[at].name.clone())
            })
            .collect()
    };
    let before = place(&five, &up(5));
    let mut down = up(5);
    down[1].usable = false;
    let during = place(&five, &down);
    let mut moved_to: HashMap<&str, u32> = HashMap::new();
    for (key, home) in &before {
        if home == "b1" {
            *moved_to.entry(&during[key]).or_default() += 1;
        } else {
            assert_eq!(&during[key], home);
        }
    }
    let moved: Vec<u32> = moved_to.values().copied().collect();
    assert!(moved.len() == 4 && fits(&moved, &[1.0; 4]), "{moved_to:?}");
    // The order in the file does not matter, and one that is taken out is as one that is down.
    let mut four = five.clone();
    four.remove(1);
    four.reverse();
    assert_eq!(place(&four, &up(4)), during);
}

#[test]
fn without_its_key_a_request_is_hashed_by_its_address() {
    let mut chooser = Chooser::new(&hashing(), &backends(&EQUAL), 1);
    let mapped = Request {
        client: "::ffff:10.0.0.7".parse().unwrap(),
        ..request(0)
    };
    let plain = Request {
        client: "10.0.0.7".parse().unwrap(),
        ..request(1)
    };
    let first = chooser.ask(&up(4), &mapped);
    assert_eq!(first, chooser.ask(&up(4), &plain));
}

fn modes() -> impl Strategy<Value = Dispatch> {
    let over = || proptest::option::of(1..5u32);
    prop_oneof![
        Just(Dispatch::RoundRobin),
        Just(Dispatch::WeightedRoundRobin),
        Just(Dispatch::Random),
        over().prop_map(|over| Dispatch::BySize { over }),
        over().prop_map(|over| Dispatch::ByDuration { over }),
        over().prop_map(|over| Dispatch::ByConnections { over }),
        Just(Dispatch::LeastConnections),
        Just(Dispatch::ByOrder),
        Just(Dispatch::ByClientIp),
        Just(ewma()),
        Just(hashing()),
    ]
}

fn weights() -> impl Strategy<Value = Vec<Weight>> {
    let weight = prop_oneof![
        (1..=1_000_000u32).prop_map(Weight::Share),
        (1..=1_000_000u32).prop_map(Weight::Penalty),
    ];
    proptest::collection::vec(weight, 0..6)
}

proptest! {
    #[test]
    fn a_back_end_is_chosen_if_there_is_one_and_only_a_usable_one(
        dispatch in modes(), weights in weights(), seed in any::<u64>(),
        steps in proptest::collection::vec((any::<u8>(), any::<u32>(), any::<u64>(), any::<u64>()), 1..40),
    ) {
        let mut some = backends(&weights);
        for (at, one) in some.iter_mut().enumerate() {
            one.decay_percent = (at * 25) as u8;
        }
        let mut dispatcher = Dispatcher::new(&dispatch, &some);
        let mut rng = fastrand::Rng::with_seed(seed);
        for (usable, active, value, now_ns) in steps {
            let candidates: Vec<Candidate> = (0..some.len())
                .map(|at| Candidate {
                    usable: usable >> at & 1 == 1,
                    active: active.rotate_left(at as u32 * 5),
                    share: if at == 1 { 0.05 } else { 1.0 },
                })
                .collect();
            let ask = Request { now_ns, ..request(active) };
            let chosen = dispatcher.choose(&candidates, &ask, &mut rng);
            prop_assert_eq!(chosen.is_some(), candidates.iter().any(|one| one.usable));
            if let Some(at) = chosen {
                prop_assert!(candidates[at].usable);
                dispatcher.answered(at, value, now_ns);
                dispatcher.finished(at, value, value);
            }
        }
    }

    #[test]
    fn turns_follow_weights_exactly_over_a_round(shares in proptest::collection::vec(1..12u32, 1..6)) {
        let weights: Vec<Weight> = shares.iter().map(|share| Weight::Share(*share)).collect();
        let mut chooser = Chooser::new(&Dispatch::WeightedRoundRobin, &backends(&weights), 1);
        let round: u32 = shares.iter().sum();
        prop_assert_eq!(chooser.counts(&up(shares.len()), round), shares);
    }
}
