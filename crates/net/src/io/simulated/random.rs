//! Tries a program with random input.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestRunner};

/// Tries `cases` random inputs, and more until the seconds of `WEIGH_SIMULATED_S` have passed.
/// `run` returns the rules that were broken. An input with any is shrunk, and stored in
/// `proptest-regressions` of the crate of `source_file`.
///
/// # Panics
/// When a rule was broken.
pub fn try_random<S: Strategy>(
    cases: u32,
    source_file: &'static str,
    inputs: &S,
    run: impl Fn(S::Value) -> Vec<String>,
) {
    let seconds = std::env::var("WEIGH_SIMULATED_S").unwrap_or("0".to_owned());
    let Ok(seconds) = seconds.parse() else {
        panic!("expected seconds in WEIGH_SIMULATED_S, found `{seconds}`");
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        let mut runner = TestRunner::new(ProptestConfig {
            cases,
            max_shrink_iters: 20_000,
            failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel(
                "proptest-regressions",
            ))),
            source_file: Some(source_file),
            ..ProptestConfig::default()
        });
        let held = runner.run(inputs, |input| {
            let found = run(input);
            prop_assert!(found.is_empty(), "{found:#?}");
            Ok(())
        });
        if let Err(error) = held {
            panic!("{error}");
        }
        if Instant::now() >= end {
            return;
        }
    }
}
