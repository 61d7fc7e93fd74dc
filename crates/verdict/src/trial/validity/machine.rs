//! Load flaws that lie in servers and machine.

use readings::{LoadReading, MachineMetrics, Pacing, SystemMetrics};

use crate::Flaw;

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

/// What servers or machine did that spoils a load.
///
/// A load is invalid when a server of its path ended meanwhile, or was started again with requests
/// lost, when more than 5% of the CPU time was stolen (50% of a closed loop's), when a limit of CPU time that the
/// experiment did not ask for held it up for more than 1% of the time, or when the machine swapped
/// 256 pages or more.
pub fn machine_flaws(load: &LoadReading, probed: &SystemMetrics) -> Vec<Flaw> {
    let of_servers = probed.servers.iter().filter_map(|(name, server)| {
        let server_name = name.clone();
        if server.ended {
            return Some(Flaw::ServerEnded {
                server: server_name,
            });
        }
        // Servers that renew their processes on purpose lose no request over it.
        let failed = load.errors_all.total();
        (server.restarted && failed > 0).then_some(Flaw::ServerRestarted {
            server: server_name,
            failed,
        })
    });
    let of_machine = |host: Option<&String>, machine: &MachineMetrics| {
        let host = host.cloned();
        [
            stolen(&host, machine, probed.looked_s, steal_share_max(load)),
            throttled(&host, machine, probed.looked_s),
            swapped(&host, machine),
        ]
    };
    let of_others = probed.others.iter();
    let of_machines = of_others.map(|(host, machine)| of_machine(Some(host), machine));
    let of_machines = std::iter::once(of_machine(None, &probed.machine))
        .chain(of_machines)
        .flatten();
    of_servers.chain(of_machines.flatten()).collect()
}

/// The share of stolen time that makes a load invalid. Closed loops alternate between subjects, which
/// share it: there it widens intervals, as other programs do.
fn steal_share_max(load: &LoadReading) -> f64 {
    match load.pacing {
        Pacing::Closed => STEAL_SHARE_OF_CLOSED,
        Pacing::Open { .. } => STEAL_SHARE,
    }
}

fn stolen(
    host: &Option<String>,
    machine: &MachineMetrics,
    looked_s: f64,
    share_max: f64,
) -> Option<Flaw> {
    let share = machine.steal_s / (looked_s * f64::from(machine.cpus));
    (machine.steal_s >= STEAL_S && share > share_max).then(|| Flaw::Stolen {
        host: host.clone(),
        share,
    })
}

fn throttled(host: &Option<String>, machine: &MachineMetrics, looked_s: f64) -> Option<Flaw> {
    let share = machine.throttled_s / looked_s;
    (machine.throttled > 0 && share > THROTTLED_SHARE).then(|| Flaw::Throttled {
        host: host.clone(),
        times: machine.throttled,
        throttled_s: machine.throttled_s,
        looked_s,
    })
}

fn swapped(host: &Option<String>, machine: &MachineMetrics) -> Option<Flaw> {
    let (read_pages, written_pages) = (machine.swapped_in_pages, machine.swapped_out_pages);
    (read_pages + written_pages >= SWAPPED_PAGES).then(|| Flaw::Swapped {
        host: host.clone(),
        written_pages,
        read_pages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, measured, open, trial};
    use crate::trial::cells::Cells;
    use crate::{Loop, TrialFlaw};
    use readings::ServerMetrics;

    fn probed() -> SystemMetrics {
        SystemMetrics {
            looked_s: 10.0,
            machine: MachineMetrics {
                cpus: 2,
                ..MachineMetrics::default()
            },
            servers: [("nginx".to_owned(), ServerMetrics::default())].into(),
            ..SystemMetrics::default()
        }
    }

    fn flaws_after(change: impl Fn(&mut SystemMetrics)) -> Vec<Flaw> {
        let mut seen = probed();
        change(&mut seen);
        machine_flaws(&open(1000.0, 300.0), &seen)
    }

    #[test]
    fn what_the_machine_took_away_makes_a_load_invalid() {
        assert!(flaws_after(|_| {}).is_empty());
        assert!(flaws_after(|p| p.machine.steal_s = 0.9).is_empty());
        let stolen = Flaw::Stolen {
            host: None,
            share: 0.06,
        };
        assert_eq!(flaws_after(|p| p.machine.steal_s = 1.2), [stolen]);
        let mut stolen = probed();
        stolen.machine.steal_s = 9.9;
        assert!(machine_flaws(&closed(1000.0), &stolen).is_empty());
        stolen.machine.steal_s = 10.1;
        assert_eq!(machine_flaws(&closed(1000.0), &stolen).len(), 1);
        let short = |p: &mut SystemMetrics| (p.looked_s, p.machine.steal_s) = (0.1, 0.04);
        assert!(flaws_after(short).is_empty(), "four ticks");
        let limit =
            |p: &mut SystemMetrics| (p.machine.throttled, p.machine.throttled_s) = (12, 0.5);
        let throttled = Flaw::Throttled {
            host: None,
            times: 12,
            throttled_s: 0.5,
            looked_s: 10.0,
        };
        assert_eq!(flaws_after(limit), [throttled]);
        assert!(flaws_after(|p| p.machine.throttled = 1).is_empty());
        assert!(flaws_after(|p| p.machine.swapped_in_pages = 255).is_empty());
        let swapped = |host: Option<&str>, written_pages, read_pages| Flaw::Swapped {
            host: host.map(str::to_owned),
            written_pages,
            read_pages,
        };
        assert_eq!(
            flaws_after(|p| p.machine.swapped_out_pages = 256),
            [swapped(None, 256, 0)]
        );
        let other = |p: &mut SystemMetrics| {
            let mut machine = p.machine.clone();
            machine.swapped_in_pages = 256;
            p.others.insert("vm".to_owned(), machine);
        };
        assert_eq!(flaws_after(other), [swapped(Some("vm"), 0, 256)]);
    }

    #[test]
    fn a_server_that_ended_or_lost_requests_in_a_restart_spoils_the_whole_trial() {
        let mut seen = probed();
        seen.servers.get_mut("nginx").unwrap().restarted = true;
        let mut load = closed(1000.0);
        assert!(machine_flaws(&load, &seen).is_empty(), "nothing was lost");
        load.errors_all.read = 1;
        let found = machine_flaws(&load, &seen);
        assert!(found[0].spoils_trial());
        let server = || "nginx".to_owned();
        let restarted = Flaw::ServerRestarted {
            server: server(),
            failed: 1,
        };
        assert_eq!(found, [restarted]);
        seen.servers.get_mut("nginx").unwrap().ended = true;
        let ended = Flaw::ServerEnded { server: server() };
        assert_eq!(machine_flaws(&load, &seen), [ended]);
    }

    #[test]
    fn a_trial_is_judged_by_it() {
        let mut outcome = done(Some(closed(1000.0)), None);
        let reading = measured(&mut outcome);
        let mut seen = probed();
        seen.machine.swapped_in_pages = 1000;
        reading.probed = Some(seen);
        let trials = [trial(1, "direct", false, outcome)];
        let header = header(1);
        let cells = Cells::of(&header, &trials);
        let cell = cells.counted().next().unwrap();
        assert!(cell.throughput().is_none());
        let swapped = Flaw::Swapped {
            host: None,
            written_pages: 0,
            read_pages: 1_000,
        };
        assert_eq!(cell.reasons, [TrialFlaw::of(Loop::Closed, &swapped)]);
    }
}
