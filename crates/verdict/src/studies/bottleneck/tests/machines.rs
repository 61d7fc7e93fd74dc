//! Servers and load on different machines.

use super::*;

/// The server is on another machine, whose CPUs have the same numbers.
fn on_machines(rates: &[(Change, f64)], shape: impl Fn(&mut Probe)) -> BottleneckReading {
    let made = reading(rates, |probe| {
        let cpus = probe.seen.cpus.clone();
        probe.seen.other_cpus.insert("vm".to_owned(), cpus);
        shape(probe);
    });
    BottleneckReading {
        client_cpus: vec![0],
        server_cpus: Vec::new(),
        cpus_of_servers: BTreeMap::from([("origin".to_owned(), vec![0])]),
        hosts: BTreeMap::from([("origin".to_owned(), "vm".to_owned())]),
        load_host: Some("client".to_owned()),
        not_tried: vec!["twice the link's rate: it is real".to_owned()],
        ..made
    }
}

#[test]
fn a_server_on_another_machine_shares_no_cpu_with_the_client() {
    let made = on_machines(&rates(1.0, 1.0, 0.5), |probe| {
        probe.seen.servers = BTreeMap::from([("origin".to_owned(), server(0.97, &[0.97]))]);
        // Both machines' CPU 0 is full, and each of its own.
        probe.seen.cpus[0].busy = 1.0;
        probe
            .seen
            .other_cpus
            .insert("vm".to_owned(), probe.seen.cpus.clone());
        probe.client = vec![0.79];
        probe.seen.client_wanted = 0.79;
    });
    let found = bottlenecks(&[&made]);
    assert_eq!(found.len(), 1, "{found:#?}");
    let seen = of_server(judged(&made, Bottleneck::Server, Standing::Confirmed));
    assert_eq!(seen.cpus.host.as_deref(), Some("vm"));
    assert!(
        found[0].not_tested.is_empty(),
        "it is confirmed without that"
    );
}

#[test]
fn other_programs_are_suspected_on_the_machine_that_they_are_on() {
    let made = on_machines(&rates(1.0, 1.0, 1.0), |probe| {
        let cpus = probe.seen.other_cpus.get_mut("vm").unwrap();
        cpus[0].busy = 0.95;
        // Busy, but not the server's.
        cpus[1].busy = 1.0;
        probe.seen.servers = BTreeMap::from([("origin".to_owned(), server(0.2, &[0.2]))]);
    });
    let found = bottlenecks(&[&made]);
    assert_eq!(found[0].bottleneck, Bottleneck::OtherPrograms);
    assert!(
        matches!(&found[0].evidence, Evidence::OtherPrograms(MachineUse { host: Some(host), busy, own })
            if host == "vm" && is(*busy, 0.95) && is(*own, 0.2)),
        "{found:?}"
    );
    assert_eq!(found[0].not_tested, made.not_tried);
    let idle = on_machines(&rates(1.0, 1.0, 1.0), |_| {});
    let unknown = bottlenecks(&[&idle]);
    assert_eq!(unknown[0].standing, Standing::Unknown);
    assert_eq!(unknown[0].not_tested, idle.not_tried);
    let is_said_once = matches!(&unknown[0].evidence, Evidence::Unexplained { not_tried, .. } if not_tried.is_empty());
    assert!(is_said_once, "{unknown:?}");
}
