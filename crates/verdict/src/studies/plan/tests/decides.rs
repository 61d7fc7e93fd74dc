//! What a plan is said to decide is what its runs decide.

use super::*;
use crate::fixtures::analyse;
use crate::simulate::{Scenario, simulate};
use crate::{Looks, Verdict};

fn planned(blocks: u32, compared: usize) -> PlannedRun {
    PlannedRun {
        blocks,
        window_s: 10.0,
        has_closed_loop: true,
        compared,
        conditions: 1,
        matters: 0.03,
    }
}

/// The share of simulated runs that find the difference that such a plan is said to decide; the
/// other subjects are as fast as the baseline.
fn share_found(blocks: u32, compared: usize, seed: u64) -> f64 {
    let mut scenario = Scenario::of(1.0);
    scenario.blocks = blocks;
    let of = scenario.noise;
    // Of a ratio of two rates; a window of 10 s has all slices.
    let noise = Noise {
        starts: 2.0 * of.between.powi(2),
        slices_of_second: 10.0 * 2.0 * of.within.powi(2) / f64::from(of.slices),
        ..Noise::assumed()
    };
    let decides = planned(blocks, compared).decides(&noise);
    scenario.speeds = vec![1.0; compared];
    scenario.speeds[0] = 1.0 + decides.difference.unwrap();
    let tally = simulate(&scenario, 500, seed);
    let found = tally.subjects[0].faster;
    f64::from(found) / f64::from(tally.experiments)
}

#[test]
fn the_smallest_difference_that_is_said_is_found_in_about_four_of_five_runs() {
    for compared in [1, 5] {
        for blocks in [3, 5, 10] {
            let share = share_found(blocks, compared, 41);
            eprintln!("{compared} compared, {blocks} blocks: {share}");
            assert!(
                (0.7..=0.9).contains(&share),
                "{compared}, {blocks}: {share}"
            );
        }
    }
}

/// With the baseline's second copy, which varies as the subject does.
fn with_copies(truth: Truth, blocks: u32, random: &mut Normal) -> Vec<Trial> {
    let mut rows = trials(truth, blocks, random);
    let others = trials(truth, blocks, random).into_iter();
    rows.extend(
        others
            .filter(|row| row.subject == "balance")
            .map(|mut row| {
                row.subject = "direct".into();
                row.baseline_copy = true;
                reading(&mut row).separate_copy = true;
                row
            }),
    );
    rows
}

#[test]
fn what_is_said_from_a_pilot_allows_for_its_few_blocks() {
    let truth = varying(0.0, 0.05);
    let mut random = Normal::with_seed(11);
    let runs = 400;
    let mut found = 0;
    for _ in 0..runs {
        let pilot = with_copies(truth, 4, &mut random);
        let noise = Noise::of(&header(4), &pilot).unwrap();
        let Some(difference) = planned(5, 1).decides(&noise).difference else {
            found += 1;
            continue;
        };
        let mut rows = with_copies(truth, 5, &mut random);
        for row in &mut rows {
            if let (true, Outcome::Done(reading)) = (row.subject == "balance", &mut row.outcome) {
                let load = reading.throughput.as_mut().unwrap();
                let times = 1.0 + difference;
                load.requests = (load.requests as f64 * times) as u64;
                for slice in &mut load.slices {
                    slice.requests = (slice.requests as f64 * times) as u64;
                }
            }
        }
        let analysis = analyse(&header(5), &rows);
        found += u32::from(analysis.comparisons[0].verdict == Verdict::Faster);
    }
    let share = f64::from(found) / f64::from(runs);
    eprintln!("from a pilot: {share}");
    assert!((0.7..=0.9).contains(&share), "{share}");
}

#[test]
fn starts_and_slices_of_a_run_are_told_apart() {
    let truth = varying(0.02, 0.03);
    let mut random = Normal::with_seed(5);
    let noise = Noise::of(&header(200), &trials(truth, 200, &mut random)).unwrap();
    let sd = noise.starts.sqrt();
    assert!((0.025..0.035).contains(&sd), "{sd}");
    // The slices of 10 s have a variance of 0.02 squared.
    let of_second = (noise.slices_of_second / 10.0).sqrt();
    assert!((0.018..0.022).contains(&of_second), "{of_second}");
    assert!((noise.sd(40.0).powi(2) - (noise.starts + 1e-4)).abs() < 2e-5);
    assert_eq!(noise.degrees, Some(199.0));
    assert_eq!(noise.from, NoiseFrom::Pilot { blocks: 200 });
    // Many blocks hardly move towards what is assumed, and two do.
    let many = noise.beside_assumed();
    assert!((many.starts / noise.starts - 1.0).abs() < 0.02, "{many:?}");
    let two = Noise {
        degrees: Some(2.0),
        ..noise
    };
    let middle = f64::midpoint(two.starts, Noise::assumed().starts);
    assert!((two.beside_assumed().starts - middle).abs() < 1e-12);
    assert_eq!(two.beside_assumed().degrees, Some(4.0));
    assert_eq!(Noise::of(&header(1), &trials(truth, 1, &mut random)), None);
}

#[test]
fn more_blocks_and_longer_windows_decide_smaller_differences_and_more_subjects_larger_ones() {
    let noise = Noise::assumed();
    let of = |blocks, window_s, compared| {
        let run = PlannedRun {
            window_s,
            ..planned(blocks, compared)
        };
        run.decides(&noise).difference
    };
    assert!(of(10, 1.0, 1) < of(5, 1.0, 1) && of(5, 1.0, 1) < of(3, 1.0, 1));
    assert!(of(5, 4.0, 1) < of(5, 1.0, 1));
    assert!(of(5, 1.0, 6) > of(5, 1.0, 1));
    assert_eq!(of(2, 1.0, 1), None);
    // Never below the margin.
    let most = of(Looks::SEQUENTIAL[2] - 1, 1e6, 1).unwrap();
    assert!(most > 0.03, "{most}");
}
