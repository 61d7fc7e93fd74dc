//! Load flaws that lie in servers and machine, and what sampling them cost.

use std::collections::BTreeSet;

use readings::{LoadReading, MachineMetrics, Pacing, SystemMetrics};
use serde::Serialize;

use crate::Warning;
use crate::cells::Cells;
use crate::text::{counted, grouped, number, percent};
use crate::validity::Flaw;

/// Steal time, as a share of all CPUs' time, that makes a load invalid...
const STEAL_SHARE: f64 = 0.05;
/// ...or so much of a closed loop's, ...
const STEAL_SHARE_OF_CLOSED: f64 = 0.5;
/// ...unless it is shorter than this, in seconds: the kernel counts in steps of 10 ms.
const STEAL_S: f64 = 0.05;
/// Throttled time, as a share of the measured time, that makes a load invalid.
const THROTTLED_SHARE: f64 = 0.01;
/// Swapped pages that make a load invalid: 1 MiB of pages of 4 KiB. Fewer may be other programs'.
const SWAPPED_PAGES: u64 = 256;

/// What servers or machine did that spoils a load, one sentence fragment each.
///
/// A load is invalid when a server of its path ended meanwhile, or was started again with requests
/// lost, when more than 5% of the CPU time was stolen (50% of a closed loop's), when a limit of CPU time that the
/// experiment did not ask for held it up for more than 1% of the time, or when the machine swapped
/// 256 pages or more.
pub fn machine_reasons(load: &LoadReading, probed: &SystemMetrics) -> Vec<String> {
    let flaws = flaws(load, Some(probed)).into_iter();
    flaws.map(|flaw| flaw.reason).collect()
}

pub(crate) fn flaws(load: &LoadReading, probed: Option<&SystemMetrics>) -> Vec<Flaw> {
    let Some(probed) = probed else {
        return Vec::new();
    };
    let of_servers = probed.servers.iter().filter_map(|(name, server)| {
        if server.ended {
            return Some(format!("server `{name}` ended while it was measured"));
        }
        // Servers that renew their processes on purpose lose no request over it.
        let lost = load.errors_all.total();
        (server.restarted && lost > 0).then(|| {
            format!(
                "server `{name}` was started again while it was measured, and {} failed",
                counted(lost as usize, "request")
            )
        })
    });
    let of_machine = |name: &str, machine: &MachineMetrics| {
        [
            stolen(name, machine, probed.looked_s, steal_share_max(load)),
            throttled(name, machine, probed.looked_s),
            swapped(name, machine),
        ]
    };
    let of_others = probed.others.iter();
    let of_machines = of_others
        .map(|(host, machine)| of_machine(&format!("the machine of host `{host}`"), machine));
    let of_machines = std::iter::once(of_machine("the machine", &probed.machine))
        .chain(of_machines)
        .flatten();
    of_servers
        .map(Flaw::of_subject)
        .chain(of_machines.flatten().map(Flaw::of_load))
        .collect()
}

/// The share of stolen time that makes a load invalid. Closed loops alternate between subjects, which
/// share it: there it widens intervals, as other programs do.
fn steal_share_max(load: &LoadReading) -> f64 {
    match load.pacing {
        Pacing::Closed => STEAL_SHARE_OF_CLOSED,
        Pacing::Open { .. } => STEAL_SHARE,
    }
}

fn stolen(name: &str, machine: &MachineMetrics, looked_s: f64, share_max: f64) -> Option<String> {
    let share = machine.steal_s / (looked_s * f64::from(machine.cpus));
    (machine.steal_s >= STEAL_S && share > share_max).then(|| {
        format!(
            "{name} was given less than its CPU time: {} of it was stolen",
            percent(share * 100.0, 1, false)
        )
    })
}

fn throttled(name: &str, machine: &MachineMetrics, looked_s: f64) -> Option<String> {
    let share = machine.throttled_s / looked_s;
    (machine.throttled > 0 && share > THROTTLED_SHARE).then(|| {
        format!(
            "a limit of CPU time throttled {name} {} times, for {} s in {} s",
            grouped(machine.throttled),
            number(machine.throttled_s, 2, false),
            number(looked_s, 2, false)
        )
    })
}

fn swapped(name: &str, machine: &MachineMetrics) -> Option<String> {
    let (read, written) = (machine.swapped_in_pages, machine.swapped_out_pages);
    (read + written >= SWAPPED_PAGES).then(|| {
        format!(
            "{name} swapped: {} pages written, {} read",
            grouped(written),
            grouped(read)
        )
    })
}

/// The servers of which CPU time may be missing.
pub(crate) fn uncounted(cells: &Cells<'_>) -> Option<Warning> {
    let readings = cells.counted().filter_map(|cell| cell.reading());
    let looks = readings.flat_map(|one| [&one.probed, &one.latency_probed]);
    let servers = looks.flatten().flat_map(|seen| &seen.servers);
    let names: BTreeSet<&String> = servers
        .filter(|(_, server)| server.children_uncounted)
        .map(|(name, _)| name)
        .collect();
    let names: Vec<String> = names.into_iter().cloned().collect();
    (!names.is_empty()).then_some(Warning::UncountedCpu(names))
}

/// What sampling servers and machine cost, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbesCost {
    /// Samples per second of measured time.
    pub looks_per_s: f64,
    /// CPU time of sampling over measured time: 0.01 is 1% of a core.
    pub share_of_core: f64,
}

/// `None` without samples.
pub(crate) fn cost(cells: &Cells<'_>) -> Option<ProbesCost> {
    let (mut measured_s, mut looks, mut cpu_s) = (0.0, 0, 0.0);
    for reading in cells.counted().filter_map(|cell| cell.reading()) {
        let loads = [
            (&reading.throughput, &reading.probed),
            (&reading.latency, &reading.latency_probed),
        ];
        for (load, probed) in loads {
            if let (Some(load), Some(probed)) = (load, probed) {
                // A driver is sampled from its start to its end.
                measured_s += load.duration_s.max(probed.looked_s);
                looks += probed.looks;
                cpu_s += probed.cpu_s;
            }
        }
    }
    if looks == 0 || measured_s <= 0.0 {
        return None;
    }
    Some(ProbesCost {
        looks_per_s: looks as f64 / measured_s,
        share_of_core: cpu_s / measured_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, open, trial};
    use readings::{Outcome, ServerMetrics};

    fn probed() -> SystemMetrics {
        SystemMetrics {
            looked_s: 10.0,
            looks: 70,
            cpu_s: 0.05,
            machine: MachineMetrics {
                cpus: 2,
                ..MachineMetrics::default()
            },
            servers: [("nginx".to_owned(), ServerMetrics::default())].into(),
            ..SystemMetrics::default()
        }
    }

    fn reasons_after(change: impl Fn(&mut SystemMetrics)) -> Vec<String> {
        let mut seen = probed();
        change(&mut seen);
        machine_reasons(&open(1000.0, 300.0), &seen)
    }

    #[test]
    fn what_the_machine_took_away_makes_a_load_invalid() {
        assert!(reasons_after(|_| {}).is_empty());
        assert!(reasons_after(|p| p.machine.steal_s = 0.9).is_empty());
        assert_eq!(
            reasons_after(|p| p.machine.steal_s = 1.2),
            ["the machine was given less than its CPU time: 6.0% of it was stolen"]
        );
        let mut stolen = probed();
        stolen.machine.steal_s = 9.9;
        assert!(machine_reasons(&closed(1000.0), &stolen).is_empty());
        stolen.machine.steal_s = 10.1;
        assert_eq!(machine_reasons(&closed(1000.0), &stolen).len(), 1);
        let short = |p: &mut SystemMetrics| (p.looked_s, p.machine.steal_s) = (0.1, 0.04);
        assert!(reasons_after(short).is_empty(), "four ticks");
        let limit =
            |p: &mut SystemMetrics| (p.machine.throttled, p.machine.throttled_s) = (12, 0.5);
        assert_eq!(
            reasons_after(limit),
            ["a limit of CPU time throttled the machine 12 times, for 0.50 s in 10.00 s"]
        );
        assert!(reasons_after(|p| p.machine.throttled = 1).is_empty());
        assert!(reasons_after(|p| p.machine.swapped_in_pages = 255).is_empty());
        assert_eq!(
            reasons_after(|p| p.machine.swapped_out_pages = 256),
            ["the machine swapped: 256 pages written, 0 read"]
        );
        let other = |p: &mut SystemMetrics| {
            let mut machine = p.machine.clone();
            machine.swapped_in_pages = 256;
            p.others.insert("vm".to_owned(), machine);
        };
        assert_eq!(
            reasons_after(other),
            ["the machine of host `vm` swapped: 0 pages written, 256 read"]
        );
    }

    #[test]
    fn a_server_that_ended_or_lost_requests_in_a_restart_spoils_the_whole_trial() {
        let mut seen = probed();
        seen.servers.get_mut("nginx").unwrap().restarted = true;
        let mut load = closed(1000.0);
        assert!(flaws(&load, Some(&seen)).is_empty(), "nothing was lost");
        load.errors_all.read = 1;
        let found = flaws(&load, Some(&seen));
        assert!(found[0].whole_trial);
        assert_eq!(
            found[0].reason,
            "server `nginx` was started again while it was measured, and 1 request failed"
        );
        seen.servers.get_mut("nginx").unwrap().ended = true;
        let found = flaws(&load, Some(&seen));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].reason,
            "server `nginx` ended while it was measured"
        );
    }

    #[test]
    fn a_server_of_which_cpu_time_may_be_missing_is_named() {
        let uncounted_of = |children_uncounted| {
            let mut outcome = done(Some(closed(1000.0)), None);
            let Outcome::Done(reading) = &mut outcome else {
                unreachable!()
            };
            let mut seen = probed();
            seen.servers.get_mut("nginx").unwrap().children_uncounted = children_uncounted;
            reading.probed = Some(seen);
            let trials = [trial(1, "direct", false, outcome)];
            let header = header(1);
            uncounted(&Cells::of(&header, &trials))
        };
        assert_eq!(uncounted_of(false), None);
        let expected = Warning::UncountedCpu(vec!["nginx".to_owned()]);
        assert_eq!(uncounted_of(true), Some(expected));
    }

    #[test]
    fn a_trial_is_judged_by_it_and_its_cost_is_told() {
        let mut outcome = done(Some(closed(1000.0)), None);
        let Outcome::Done(reading) = &mut outcome else {
            unreachable!()
        };
        let mut seen = probed();
        seen.machine.swapped_in_pages = 1000;
        reading.probed = Some(seen);
        let trials = [trial(1, "direct", false, outcome)];
        let header = header(1);
        let cells = Cells::of(&header, &trials);
        let cell = cells.counted().next().unwrap();
        assert!(cell.throughput().is_none());
        assert_eq!(
            cell.reasons,
            ["throughput: the machine swapped: 0 pages written, 1,000 read"]
        );
        let cost = cost(&cells).unwrap();
        assert!((cost.looks_per_s - 7.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.share_of_core - 0.005).abs() < 1e-9, "{cost:?}");
    }
}
