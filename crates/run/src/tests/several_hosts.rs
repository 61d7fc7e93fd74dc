//! A load that several hosts make together.

use agent::wire::LoadOrder;

use super::{run, script};

const HOSTS: &str = include_str!("several_hosts/experiment.toml");

/// Whether an order is the second host's part of a measured load; the warm-up has a segment for
/// each of the two trials.
fn is_measured_by_two(order: &LoadOrder) -> bool {
    order.job.part.unwrap().first_thread == 1 && order.job.segments.len() > 2
}

#[test]
fn hosts_that_wait_for_slow_answers_have_more_time_between_segments_the_second_time() {
    let script = script();
    let mut left = 1;
    script.borrow_mut().late_ns = Box::new(move |order| {
        let is_late = is_measured_by_two(order) && left > 0;
        left -= i32::from(is_late);
        u64::from(is_late) * 30_000_000
    });
    let ran = run(HOSTS, &script);
    assert!(ran.failures().is_empty(), "{:?}", ran.failures());
    let script = script.borrow();
    let of_two = script.orders.iter().filter(|it| is_measured_by_two(it));
    let gaps: Vec<u64> = of_two
        .map(|it| it.job.part.unwrap().gap_ns / 1_000_000)
        .collect();
    // The last answers after a window took 60 ms: times 1.5, plus 50 ms.
    assert_eq!(gaps, [50, 140]);
}

#[test]
fn a_host_that_stays_late_fails_the_condition_by_its_name() {
    let script = script();
    script.borrow_mut().late_ns = Box::new(|order| match is_measured_by_two(order) {
        true => 12_300_000,
        false => 0,
    });
    let failures = run(HOSTS, &script).failures();
    let told = "host `two` began its part of the load 12.3 ms late, so the hosts did not measure \
                at the same time";
    assert_eq!(failures, [told, told]);
}
