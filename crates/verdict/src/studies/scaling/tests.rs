//! Fits of made-up curves.

use proptest::prelude::*;

use super::*;
use crate::fixtures::Normal;

fn law(lambda_per_s: f64, sigma: f64, kappa: f64) -> Parameters {
    Parameters {
        lambda_per_s,
        sigma,
        kappa,
    }
}

const LEVELS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Points of a law, with noise between blocks and within; no blocks where `blocks` is 0.
fn points(law: &Parameters, blocks: u32, noise: (f64, f64), seed: u64) -> Vec<Point> {
    let mut normal = Normal::with_seed(seed);
    let mut points = Vec::new();
    for block in 0..blocks.max(1) {
        let shared = noise.0 * normal.next();
        for concurrency in LEVELS {
            points.push(Point {
                concurrency,
                requests_per_s: law.at(concurrency) * (shared + noise.1 * normal.next()).exp(),
                block: (blocks > 0).then_some(block),
            });
        }
    }
    points
}

proptest! {
    #[test]
    fn points_on_a_curve_give_it_back(
        lambda in 10.0..100_000.0f64,
        sigma in 0.0..0.5f64,
        kappa in 0.0..0.01f64,
    ) {
        let truth = law(lambda, sigma, kappa);
        let found = fit::fit(&points(&truth, 0, (0.0, 0.0), 1));
        prop_assert!((found.lambda_per_s / lambda - 1.0).abs() < 1e-5, "{found:?}");
        prop_assert!((found.sigma - sigma).abs() < 1e-5, "{found:?}");
        prop_assert!((found.kappa - kappa).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn contention_and_coherency_are_never_below_zero(values in prop::collection::vec(1.0..1e6f64, 7)) {
        let points: Vec<Point> = LEVELS
            .iter()
            .zip(values)
            .map(|(&concurrency, requests_per_s)| Point { concurrency, requests_per_s, block: None })
            .collect();
        let found = fit::fit(&points);
        prop_assert!(found.sigma >= 0.0 && found.kappa >= 0.0 && found.lambda_per_s > 0.0);
        // No worse than where the search began, and than a flat or a straight line.
        let error = fit::residual(&points, &found);
        for other in [law(found.lambda_per_s, 1.0, 0.0), law(found.lambda_per_s, 0.0, 0.0)] {
            prop_assert!(error <= fit::residual(&points, &other) + 1e-9);
        }
    }
}

#[test]
fn better_than_linear_is_fitted_at_the_constraint() {
    // 20% more per doubling than linear: only negative contention would fit.
    let points: Vec<Point> = LEVELS
        .iter()
        .map(|&n| Point {
            concurrency: n,
            requests_per_s: 100.0 * n * 1.2f64.powf(n.log2()),
            block: None,
        })
        .collect();
    let found = Usl::fit(&points, 1).unwrap();
    assert_eq!((found.parameters.sigma, found.parameters.kappa), (0.0, 0.0));
    assert!(found.peak.is_none());
    assert!(found.residual > 0.1);
}

#[test]
fn the_peak_is_where_the_law_has_it() {
    // sqrt((1 - 0.05) / 0.001) = 30.8.
    let truth = law(1000.0, 0.05, 0.001);
    let usl = Usl::fit(&points(&truth, 10, (0.02, 0.01), 3), 1).unwrap();
    assert_eq!(usl.bootstrap, Bootstrap::Blocks);
    let peak = usl.peak.unwrap();
    assert!((peak.concurrency.value - 30.8).abs() < 1.5, "{peak:?}");
    let high = peak.concurrency.high.unwrap();
    assert!(peak.concurrency.low <= 30.8 && 30.8 <= high, "{peak:?}");
    assert!(!peak.beyond_measured);
    let at = truth.peak().unwrap();
    assert!(truth.at(at) > truth.at(at * 1.05) && truth.at(at) > truth.at(at / 1.05));
}

#[test]
fn what_lies_beyond_the_measured_is_marked() {
    // sqrt((1 - 0.02) / 0.0001) = 99.
    let usl = Usl::fit(&points(&law(1000.0, 0.02, 0.0001), 6, (0.0, 0.01), 3), 1).unwrap();
    assert_eq!(usl.measured, (1.0, 64.0));
    assert!(usl.peak.unwrap().beyond_measured);
    assert!(!usl.predict(64.0).beyond_measured);
    assert!(usl.predict(65.0).beyond_measured);
    let inside = usl.predict(32.0).requests_per_s;
    let far = usl.predict(1000.0).requests_per_s;
    let width = |e: Estimate| (e.high.unwrap() / e.low).ln();
    assert!(width(far) > 5.0 * width(inside), "{inside:?} {far:?}");
}

#[test]
fn without_a_peak_there_is_none_and_its_upper_end_may_be_open() {
    let none = Usl::fit(&points(&law(1000.0, 0.1, 0.0), 0, (0.0, 0.0), 1), 1).unwrap();
    assert!(
        none.peak.is_none_or(|p| p.concurrency.value > 1e4),
        "{none:?}"
    );
    // So little coherency that noise hides it.
    let usl = Usl::fit(&points(&law(1000.0, 0.1, 2e-5), 5, (0.0, 0.03), 8), 1).unwrap();
    if let Some(peak) = usl.peak {
        assert_eq!(peak.concurrency.high, None, "{peak:?}");
    }
}

#[test]
fn intervals_hold_the_truth() {
    let truth = law(1000.0, 0.05, 0.001);
    for (blocks, bootstrap) in [(12, Bootstrap::Blocks), (0, Bootstrap::Residuals)] {
        let runs = 60;
        let mut held = [0, 0, 0];
        for seed in 0..runs {
            let noise = if blocks > 0 {
                (0.03, 0.02)
            } else {
                (0.0, 0.03)
            };
            let usl = Usl::fit(&points(&truth, blocks, noise, seed), seed).unwrap();
            assert_eq!(usl.bootstrap, bootstrap);
            let holds =
                |e: Estimate, value: f64| e.low <= value && e.high.is_none_or(|h| value <= h);
            held[0] += u32::from(holds(usl.lambda_per_s, truth.lambda_per_s));
            held[1] += u32::from(holds(usl.sigma, truth.sigma));
            held[2] += u32::from(usl.peak.is_some_and(|p| holds(p.concurrency, 30.82)));
        }
        // 57 of 60 would be right; 51 is that less 3.5 standard errors.
        assert!(held.iter().all(|n| *n >= 51), "{bootstrap:?}: {held:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_intervals() {
    let points = points(&law(1000.0, 0.05, 0.001), 6, (0.02, 0.02), 3);
    assert_eq!(Usl::fit(&points, 5), Usl::fit(&points, 5));
    assert_ne!(Usl::fit(&points, 5), Usl::fit(&points, 6));
}

#[test]
fn too_little_is_refused_with_what_would_do() {
    let of = |levels: &[f64]| {
        let points: Vec<Point> = levels
            .iter()
            .map(|&concurrency| Point {
                concurrency,
                requests_per_s: 100.0,
                block: None,
            })
            .collect();
        Usl::fit(&points, 1).unwrap_err().to_string()
    };
    assert_eq!(
        of(&[1.0, 2.0, 4.0, 4.0]),
        "expected at least 4 different concurrencies, found 3; measure more of them, such as 1, 2, \
         4, 8, 16"
    );
    assert!(of(&[]).contains("found 0"));
    assert_eq!(
        of(&[0.0, 1.0, 2.0, 4.0]),
        "expected concurrencies of at least 1 and throughputs above 0, found 100 requests/s at 0"
    );
    assert!(of(&[f64::NAN, 1.0, 2.0, 4.0]).contains("NaN"));
}

#[test]
fn the_test_for_lack_of_fit_refuses_a_true_law_as_often_as_it_should() {
    let truth = law(1000.0, 0.05, 0.001);
    let runs = 400;
    let mut refused = 0;
    for seed in 0..runs {
        let points = points(&truth, 5, (0.03, 0.02), seed);
        let found = fit::fit(&points);
        let test = LackOfFit::of(&points, &|n| found.at(n), 3).unwrap();
        assert_eq!(test.degrees, (4, 24));
        refused += u32::from(test.p < 0.05);
    }
    // 20 of 400 would be right; its standard error is 4.4.
    assert!((8..=34).contains(&refused), "{refused}");
}
