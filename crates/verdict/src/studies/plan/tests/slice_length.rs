//! Pilots on a machine whose speed drifts from slice to slice.

use super::*;

/// Standard deviations of log rates.
#[derive(Clone, Copy)]
struct Machine {
    /// Of a slice of one subject, over one second.
    slices: f64,
    /// Of the drift that both subjects share, after one second.
    shared: f64,
    /// Of the drift that one subject has for itself, after one second.
    own: f64,
    starts: f64,
}

const STEADY: Machine = Machine {
    slices: 0.0,
    shared: 0.0,
    own: 0.0,
    starts: 0.001,
};

const WINDOW_S: f64 = 2.4;
/// The random walk goes in steps of this.
const STEP_S: f64 = 0.01;

/// Two closed loops that take turns in random order: slices of a length, a tenth of it between them.
fn pair(machine: Machine, slice_s: f64, random: &mut Normal) -> [readings::LoadReading; 2] {
    let rounds = (WINDOW_S / slice_s).round() as usize;
    let start = machine.starts * random.next();
    let (mut now_s, mut shared, mut own) = (0.0, 0.0, [0.0; 2]);
    let mut slices: [Vec<Slice>; 2] = Default::default();
    for _ in 0..rounds {
        let first = usize::from(random.next() > 0.0);
        for subject in [first, 1 - first] {
            let level = if subject == 0 { 0.0 } else { start };
            // The mean over the slice, after the gap before it.
            let mut sum = 0.0;
            let (gap, steps) = (0.1 * slice_s / STEP_S, slice_s / STEP_S);
            for step in 0..(gap + steps).round() as usize {
                let root = STEP_S.sqrt();
                shared += machine.shared * root * random.next();
                for own in &mut own {
                    *own += machine.own * root * random.next();
                }
                if step >= gap.round() as usize {
                    sum += shared + own[subject];
                }
            }
            let noise = machine.slices / slice_s.sqrt() * random.next();
            let log = level + sum / steps.round() + noise;
            slices[subject].push(Slice {
                // As recorded: since the start of the slice's own stretch.
                start_s: 0.1 * slice_s,
                at_s: Some(now_s + 0.1 * slice_s),
                duration_s: slice_s,
                requests: (1e7 * log.exp() * slice_s) as u64,
                ..Slice::default()
            });
            now_s += 1.1 * slice_s;
        }
    }
    slices.map(|slices| {
        let requests: u64 = slices.iter().map(|slice| slice.requests).sum();
        let mut load = closed(requests as f64 / WINDOW_S);
        load.duration_s = WINDOW_S;
        load.requests = requests;
        load.slices = slices;
        load
    })
}

fn pilot(machine: Machine, slice_s: f64, blocks: u32, random: &mut Normal) -> PlanAdvice {
    let mut all = Vec::new();
    for block in 1..=blocks {
        let [theirs, ours] = pair(machine, slice_s, random);
        all.push(in_closed(block, "direct", theirs));
        all.push(in_closed(block, "balance", ours));
    }
    plan(&journal(all, blocks), Some(10.0))
}

/// How many of so many pilots of twelve blocks with slices of 0.3 s advise shorter ones.
fn advised(machine: Machine, pilots: u64) -> u64 {
    let mut random = Normal::with_seed(3);
    let is_advised = |_: &u64| {
        let advice = pilot(machine, 0.3, 12, &mut random);
        let is_it = |one: &Remedy| matches!(one, Remedy::ShorterSlices { .. });
        advice.remedies.iter().any(is_it)
    };
    (0..pilots).filter(is_advised).count() as u64
}

#[test]
fn shorter_slices_are_advised_where_the_machine_drifts_between_slices_and_hardly_elsewhere() {
    let drifting = Machine {
        slices: 0.005,
        shared: 0.08,
        ..STEADY
    };
    let found = advised(drifting, 40);
    assert!(found >= 32, "{found} of 40");
    let random_slices = Machine {
        slices: 0.04,
        ..STEADY
    };
    let own_drift = Machine {
        slices: 0.005,
        own: 0.08,
        ..STEADY
    };
    let starts = Machine {
        starts: 0.05,
        ..drifting
    };
    for (what, machine) in [
        ("slices", random_slices),
        ("own", own_drift),
        ("starts", starts),
    ] {
        let found = advised(machine, 100);
        assert!(found <= 8, "{what}: {found} of 100");
    }
}

#[test]
fn the_estimated_gain_of_shorter_slices_is_about_the_true_one() {
    let machine = Machine {
        slices: 0.01,
        shared: 0.08,
        ..STEADY
    };
    let mut random = Normal::with_seed(4);
    let of_slices = |slice_s: f64, random: &mut Normal| {
        let spread = pilot(machine, slice_s, 400, random).rows[0].spread;
        spread.unwrap().components.total
    };
    let truth = of_slices(0.1, &mut random) / of_slices(0.3, &mut random);
    let mut estimates = Vec::new();
    for _ in 0..60 {
        let advice = pilot(machine, 0.3, 12, &mut random);
        let share = advice.remedies.iter().find_map(|one| match one {
            Remedy::ShorterSlices {
                drift_share,
                slice_s,
                shorter_slice_s,
                ..
            } => {
                assert!((slice_s - 0.3).abs() < 1e-9 && (shorter_slice_s - 0.1).abs() < 1e-9);
                Some(*drift_share)
            }
            _ => None,
        });
        estimates.extend(share.map(|share| 1.0 - share * (1.0 - 1.0 / 9.0)));
    }
    assert!(estimates.len() > 30, "{}", estimates.len());
    estimates.sort_by(f64::total_cmp);
    let median = estimates[estimates.len() / 2];
    assert!(
        (0.6..1.6).contains(&(median / truth)),
        "{median} for {truth}"
    );
}

#[test]
fn slices_are_not_advised_that_are_too_short_for_the_answers() {
    let drifting = Machine {
        slices: 0.005,
        shared: 0.08,
        ..STEADY
    };
    let mut random = Normal::with_seed(5);
    // What ten pilots advise where the median answer takes so long.
    let mut with_answers_of = |ms: u64| {
        let mut advised = Vec::new();
        for _ in 0..10 {
            let mut all = Vec::new();
            for block in 1..=12 {
                let [theirs, mut ours] = pair(drifting, 0.3, &mut random);
                ours.response.record_many_ns(ms * 1_000_000, 1_000);
                all.push(in_closed(block, "direct", theirs));
                all.push(in_closed(block, "balance", ours));
            }
            for remedy in plan(&journal(all, 12), Some(10.0)).remedies {
                if let Remedy::ShorterSlices {
                    shorter_slice_s, ..
                } = remedy
                {
                    advised.push(shorter_slice_s);
                }
            }
        }
        advised
    };
    let quick = with_answers_of(1);
    assert!(quick.len() >= 5, "{quick:?}");
    assert!(quick.iter().all(|s| (s - 0.1).abs() < 1e-9), "{quick:?}");
    let slower = with_answers_of(6);
    assert!(!slower.is_empty());
    assert!(
        slower.iter().all(|s| (0.149..0.171).contains(s)),
        "{slower:?}"
    );
    assert!(with_answers_of(20).is_empty());
}
