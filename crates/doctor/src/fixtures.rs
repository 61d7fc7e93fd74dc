//! A machine and an experiment to change in tests.

use std::collections::BTreeMap;

use crate::machine::activity::Activity;
use crate::machine::proc::Memory;
use crate::machine::{Clock, Machine, Sysctls, Turbo};
use crate::needs::Needs;
use crate::{Finding, Topic};

/// A quiet machine of four CPUs on which nothing is wrong, seen by root.
pub(crate) fn good() -> Machine {
    let sysctls = [
        ("kernel.io_uring_disabled", "0"),
        ("fs.nr_open", "1048576"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.tcp_max_syn_backlog", "2048"),
        ("net.ipv4.tcp_syncookies", "1"),
        ("net.ipv4.ip_local_port_range", "32768\t60999"),
        ("net.ipv4.tcp_tw_reuse", "2"),
    ];
    Machine {
        root: true,
        cpus: vec![0, 1, 2, 3],
        governors: BTreeMap::from([("performance".into(), vec![0, 1, 2, 3])]),
        turbo: Some(Turbo {
            on: false,
            path: "/sys/boost",
            off: "0",
        }),
        activity: Some(Activity::default()),
        load_average: Some(0.2),
        memory: Some(Memory {
            total_kib: 16 << 20,
            available_kib: 12 << 20,
            swap_total_kib: 1 << 20,
            swap_free_kib: 1 << 20,
        }),
        clock: Some(Clock {
            current: "tsc".into(),
            available: vec!["tsc".into(), "hpet".into()],
        }),
        open_files: Some((1024, 524_288)),
        may_raise_limits: true,
        may_make_namespaces: true,
        has_tun: true,
        sysctls: Sysctls::Table(
            sysctls
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        ),
        ..Machine::default()
    }
}

/// An experiment that the machine of [`good`] carries with ease.
pub(crate) fn needs() -> Needs {
    Needs {
        connections: Some(192),
        of_one_subject: 64,
        load_cpus: vec![3],
        server_cpus: vec![0, 1, 2],
        ..Needs::default()
    }
}

/// Gives a kernel setting a value.
pub(crate) fn put(machine: &mut Machine, name: &str, value: &str) {
    if let Sysctls::Table(table) = &mut machine.sysctls {
        table.insert(name.to_owned(), value.to_owned());
    }
}

/// The only finding on a topic.
pub(crate) fn on(topic: Topic, findings: &[Finding]) -> Finding {
    let found: Vec<&Finding> = findings.iter().filter(|f| f.topic == topic).collect();
    match found.as_slice() {
        [one] => (*one).clone(),
        other => panic!("expected one finding on {topic:?}, found {other:#?}"),
    }
}
