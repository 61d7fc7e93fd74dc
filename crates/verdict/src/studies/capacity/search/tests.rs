use fastrand::Rng;
use proptest::prelude::*;
use testing::Text as _;

use super::*;
use crate::fixtures::Normal;

/// Runs a search against a server; how many trials it took.
fn run(options: SearchOptions, mut server: impl FnMut(f64) -> Outcome) -> (Capacity, u32) {
    let mut search = Search::new(options).unwrap();
    for trials in 0..=options.max_trials {
        match search.next() {
            Step::Done(capacity) => return (capacity, trials),
            Step::Offer { rate_per_s } => {
                assert!(options.min_per_s <= rate_per_s && rate_per_s <= options.max_per_s);
                search.record(rate_per_s, server(rate_per_s));
            }
        }
    }
    panic!("it went on after the trials that were allowed");
}

fn up_to(limit: f64) -> impl FnMut(f64) -> Outcome {
    move |rate| {
        if rate <= limit {
            Outcome::Met
        } else {
            Outcome::Missed
        }
    }
}

/// A server whose capacity differs from trial to trial: a log-normal with this spread.
fn noisy(limit: f64, spread: f64, seed: u64) -> impl FnMut(f64) -> Outcome {
    let mut normal = Normal::with_seed(seed);
    move |rate| {
        if rate <= limit * (spread * normal.next()).exp() {
            Outcome::Met
        } else {
            Outcome::Missed
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_quiet_server_is_found_to_the_precision(
        limit in 50.0..400_000.0f64,
        start in 500.0..100_000.0f64,
        precision in 0.005..0.2f64,
    ) {
        let options = SearchOptions { precision, min_per_s: 1.0, ..SearchOptions::around(start) };
        let (capacity, trials) = run(options, up_to(limit));
        prop_assert!(capacity.complete);
        let (lower, upper) = (capacity.lower_per_s.unwrap(), capacity.upper_per_s.unwrap());
        prop_assert!(lower <= limit && limit < upper);
        // The last step is rounded to four digits.
        prop_assert!(upper / lower <= (1.0 + precision) * 1.001, "{lower} {upper}");
        let (low, high) = (capacity.low_per_s.unwrap(), capacity.high_per_s.unwrap());
        prop_assert!(low < upper && low < high, "{low} {lower} {upper} {high}");
        let holds = capacity.holds_per_s.unwrap();
        prop_assert!(holds <= limit, "{holds} {limit}");
        prop_assert!(holds > limit * (1.0 - 3.0 * precision - 0.02), "{holds} {limit}");
        prop_assert_eq!(capacity.upper_is, Bound::Missed);
        // Doublings, halvings, two more trials of each bound, and the refining.
        let far = (limit / start).log2().abs() + 2.0;
        let near = (2.0f64.ln() / (1.0 + precision).ln()).log2().max(0.0) + 1.0;
        prop_assert!(f64::from(trials) <= far + near + 25.0, "{trials}");
    }

    #[test]
    fn any_server_comes_to_an_end(seed in any::<u64>(), held in 0.0..1.0f64, spoilt in 0.0..1.0f64) {
        let mut random = Rng::with_seed(seed);
        let (capacity, _) = run(SearchOptions::around(1000.0), |_| {
            if random.f64() < spoilt {
                Outcome::Unusable
            } else if random.f64() < held {
                Outcome::Met
            } else {
                Outcome::Missed
            }
        });
        if let (Some(lower), Some(upper)) = (capacity.lower_per_s, capacity.upper_per_s) {
            prop_assert!(lower < upper);
        }
    }
}

#[test]
fn the_same_outcomes_give_the_same_steps() {
    let options = SearchOptions::around(1000.0);
    assert_eq!(
        run(options, noisy(7000.0, 0.05, 4)),
        run(options, noisy(7000.0, 0.05, 4))
    );
}

#[test]
fn one_disturbed_trial_does_not_move_the_answer() {
    let quiet = run(SearchOptions::around(1000.0), up_to(7300.0)).0;
    for disturbed in 0..14 {
        let mut trial = 0;
        let mut server = up_to(7300.0);
        let (capacity, _) = run(SearchOptions::around(1000.0), |rate| {
            trial += 1;
            match server(rate) {
                Outcome::Met if trial == disturbed => Outcome::Missed,
                outcome => outcome,
            }
        });
        let (lower, upper) = (capacity.lower_per_s.unwrap(), capacity.upper_per_s.unwrap());
        assert!(
            lower <= 7300.0 && 7300.0 < upper,
            "{disturbed}: {lower} {upper}"
        );
        assert!(upper / lower < 1.021, "{disturbed}: {capacity:?} {quiet:?}");
        let holds = capacity.holds_per_s.unwrap() / 7300.0;
        assert!((0.9..1.001).contains(&holds), "{disturbed}: {holds}");
    }
}

#[test]
fn a_server_that_holds_nothing_or_everything() {
    let options = SearchOptions {
        start_per_s: 100.0,
        min_per_s: 10.0,
        max_per_s: 1000.0,
        precision: 0.02,
        max_trials: 60,
        whole: false,
    };
    let (none, trials) = run(options, |_| Outcome::Missed);
    assert_eq!((none.lower_per_s, none.upper_per_s), (None, Some(10.0)));
    assert_eq!(none.low_per_s, None);
    assert!(none.complete && trials <= 9, "{trials}");
    let (all, trials) = run(options, |_| Outcome::Met);
    assert_eq!((all.lower_per_s, all.upper_per_s), (Some(1000.0), None));
    assert_eq!((all.upper_is, all.high_per_s), (Bound::Range, None));
    assert!(all.complete && trials <= 9, "{trials}");
}

#[test]
fn a_client_that_cannot_offer_more_makes_it_at_least() {
    let (capacity, _) = run(SearchOptions::around(1000.0), |rate| {
        if rate < 5000.0 {
            Outcome::Met
        } else {
            Outcome::Unusable
        }
    });
    assert_eq!(capacity.upper_is, Bound::Client);
    let lower = capacity.lower_per_s.unwrap();
    assert!((4850.0..5000.0).contains(&lower), "{lower}");
    assert!(capacity.complete);
    assert_eq!(capacity.high_per_s, None);
}

#[test]
fn options_that_leave_nothing_to_search_are_refused() {
    let options = SearchOptions::around(1000.0);
    let refused = |options| Search::new(options).unwrap_err().to_string();
    refused(SearchOptions {
        max_per_s: 500.0,
        ..options
    })
    .begins("expected rates above 0");
    refused(SearchOptions {
        min_per_s: 0.0,
        ..options
    })
    .begins("expected rates above 0");
    assert_eq!(
        refused(SearchOptions {
            precision: 2.0,
            ..options
        }),
        "expected a precision from 0.1% to 100%, found 200%"
    );
    assert!(
        Search::new(SearchOptions {
            max_trials: 0,
            ..options
        })
        .is_err()
    );
    assert!(Search::new(SearchOptions::around(f64::NAN)).is_err());
}

fn search(spread: f64, correlation: f64, beside: u32, seed: u64) -> SimulatedSearch {
    let scenario = SearchScenario {
        spread,
        correlation,
        beside,
    };
    scenario.search(seed).unwrap()
}

fn mean(runs: &[SimulatedSearch], of: impl Fn(&SimulatedSearch) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

#[test]
fn the_objective_holds_at_the_answer_in_nine_of_ten_trials_and_the_interval_holds_the_truth() {
    for spread in [0.01, 0.03, 0.1] {
        let runs: Vec<SimulatedSearch> = (0..60).map(|seed| search(spread, 0.0, 0, seed)).collect();
        let chance = mean(&runs, |f| f.chance);
        let covered = mean(&runs, |f| f64::from(u8::from(f.is_covered)));
        let trials = mean(&runs, |f| f64::from(f.trials));
        let width = mean(&runs, |f| f.width);
        let told = format!("{spread}: {chance} {covered} {width} {trials}");
        assert!((0.89..0.98).contains(&chance), "{told}");
        // 57 of 60 would be right; 52 is that less three standard errors.
        assert!(covered >= 52.0 / 60.0, "{told}");
        assert!(width < 4.0 * spread + 0.02, "{told}");
        assert!(trials < 55.0, "{told}");
    }
}

#[test]
fn trials_that_resemble_their_neighbours_widen_the_interval() {
    let wide = |correlation| -> (f64, f64, f64) {
        let runs: Vec<SimulatedSearch> = (0..60)
            .map(|seed| search(0.03, correlation, 1, seed))
            .collect();
        (
            mean(&runs, |f| f.chance),
            mean(&runs, |f| f64::from(u8::from(f.is_covered))),
            mean(&runs, |f| f.width),
        )
    };
    let (independent, dependent) = (wide(0.0), wide(0.8));
    assert!(dependent.2 > independent.2, "{independent:?} {dependent:?}");
    assert!(dependent.0 > 0.85, "{dependent:?}");
    assert!(dependent.1 > 0.85, "{dependent:?}");
}

#[test]
fn a_few_trials_that_held_do_not_show_that_nearly_all_do() {
    let of = |held, missed| {
        let trials = RateTrials {
            rate_per_s: 1.0,
            held,
            missed,
            unusable: 0,
        };
        trials.holds_at_least()
    };
    for (held, missed, least) in [
        (3, 0, 0.3684),
        (29, 0, 0.9018),
        (19, 1, 0.7839),
        (0, 3, 0.0),
    ] {
        assert!(
            (of(held, missed) - least).abs() < 1e-3,
            "{held} {missed}: {}",
            of(held, missed)
        );
    }
}

#[test]
fn of_streams_only_whole_numbers_are_offered_and_found() {
    let options = SearchOptions {
        max_per_s: 100_000.0,
        whole: true,
        ..SearchOptions::around(10.0)
    };
    for limit in [1.5, 7.2, 33.9, 417.3] {
        let (found, trials) = run(options, up_to(limit));
        let offered = found.trials.iter().map(|one| one.rate_per_s);
        let known = [found.holds_per_s, found.low_per_s, found.high_per_s];
        for number in offered.chain(known.into_iter().flatten()) {
            assert_eq!(number.fract(), 0.0, "{limit}: {number}");
        }
        assert!(trials < 60 && found.complete, "{limit}: {trials}");
        assert!(found.lower_per_s.unwrap() <= limit, "{limit}");
    }
    let half = SearchOptions {
        start_per_s: 2.5,
        ..options
    };
    assert!(Search::new(half).is_err());
}
