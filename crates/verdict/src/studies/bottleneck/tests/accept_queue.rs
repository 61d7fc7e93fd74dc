//! Accept queues that were full.

use super::*;

#[test]
fn a_full_accept_queue_is_confirmed_by_half_the_connections() {
    let queue = |p: &mut Probe| {
        p.connects = 1000;
        p.connect_us_max = 1.04e6;
        p.seen.kernel.listen_overflows = 40 * u64::from(p.change != Change::HalfTheConnections);
    };
    let mut changes = rates(1.0, 1.0, 0.9).to_vec();
    changes.push((Change::HalfTheConnections, 1040.0));
    let seen = judged(
        &reading(&changes, queue),
        Bottleneck::AcceptQueue,
        Standing::Confirmed,
    );
    assert!(
        matches!(
            seen,
            Evidence::AcceptQueue {
                found_full: 120,
                slowest_us: 1.04e6,
                ..
            }
        ),
        "{seen:?}"
    );
    let one = first(&reading(&rates(1.0, 1.0, 0.9), queue));
    assert_eq!(one.standing, Standing::Suspected);
    assert!(matches!(
        one.evidence,
        Evidence::AcceptQueue { half: None, .. }
    ));
}

#[test]
fn full_accept_queues_of_other_programs_are_no_bottleneck() {
    let queue = |full: u64| {
        let made = reading(&rates(1.0, 1.0, 0.9), |p| {
            p.connects = 1000;
            // The kernel counts for all of the network namespace.
            p.seen.kernel.listen_overflows = 40;
            p.accept_queue_full = Some(full);
        });
        let mut found = bottlenecks(&[&made]).into_iter();
        found.any(|one| one.bottleneck == Bottleneck::AcceptQueue)
    };
    assert!(!queue(0));
    assert!(queue(40));
}
