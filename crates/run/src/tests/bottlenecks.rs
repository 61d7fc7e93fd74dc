//! The search for bottlenecks, on fake agents.

use readings::{BottleneckReading, Change};

use super::*;

/// [`TWO`] with the search for bottlenecks.
fn with_search() -> String {
    TWO.replace("bottleneck = false", "bottleneck = true")
}

fn bottleneck_of_a(ran: &Finished) -> (verdict::Bottleneck, verdict::Standing) {
    let readings = ran.journal.bottlenecks();
    assert_eq!(readings.len(), 2);
    let found = verdict::bottlenecks(&readings);
    let of_a = found.iter().find(|it| it.subject == "a").unwrap();
    (of_a.bottleneck, of_a.standing)
}

#[test]
fn a_server_that_limits_is_found_by_halving_its_cpu_time() {
    let script = script();
    script.borrow_mut().rate_per_s = |order| match order.quota {
        Some(_) => 5_000.0,
        None => 10_000.0,
    };
    let ran = run(&with_search(), &script);
    let (bottleneck, standing) = bottleneck_of_a(&ran);
    assert_eq!(bottleneck, verdict::Bottleneck::Server);
    assert_eq!(standing, verdict::Standing::Confirmed);
    let reading = ran.journal.bottlenecks()[0].clone();
    let halved = |it: &&readings::Probe| it.change == Change::HalfTheServerCpu;
    assert_eq!(reading.probes.iter().filter(halved).count(), 3);
}

#[test]
fn without_an_effect_no_bottleneck_is_confirmed() {
    let ran = run(&with_search(), &script());
    let (_, standing) = bottleneck_of_a(&ran);
    assert_ne!(standing, verdict::Standing::Confirmed);
}

#[test]
fn a_search_goes_on_after_a_probe_that_fails_by_chance() {
    let script = script();
    let mut probes = 0;
    script.borrow_mut().fails = Box::new(move |order| {
        probes += usize::from(order.sample_scheduling);
        // The first one without a change, and one of the later ones.
        order.sample_scheduling && (probes == 1 || probes == 5)
    });
    let ran = run(&with_search(), &script);
    let readings = ran.journal.bottlenecks();
    let of = |subject: &str| readings.iter().find(|it| it.subject == subject).unwrap();
    let (one, other) = (of("a"), of("b"));
    let failed = |reading: &BottleneckReading| {
        let texts = reading.not_tried.iter();
        texts.filter(|text| text.contains("broke off")).count()
    };
    assert_eq!((&one.failed, &other.failed), (&None, &None));
    assert_eq!(failed(one) + failed(other), 1);
    assert_eq!(one.probes.len() + 1, other.probes.len());
}

#[test]
fn a_subject_whose_probes_all_fail_has_no_bottleneck() {
    let script = script();
    let mut probes = 0;
    script.borrow_mut().fails = Box::new(move |order| {
        probes += usize::from(order.sample_scheduling);
        order.sample_scheduling && probes > 1
    });
    let ran = run(&with_search(), &script);
    for reading in ran.journal.bottlenecks() {
        assert_eq!(reading.failed.as_deref(), Some("the load broke off"));
    }
}
