//! CPUs: how many, who gets which, how they clock, and who else uses them.

use crate::machine::Machine;
use crate::needs::Needs;
use crate::{Finding, Level, Topic, sudo};

/// Work of others that is too little to be seen in a result, in CPUs.
const OTHER_WORK_CPUS: f64 = 0.1;
/// The load average per CPU from which the last minute was a busy one.
const LOAD_PER_CPU: f64 = 0.5;
/// The share of CPU time that the host may take.
const STEAL: f64 = 0.01;
/// One tick of stolen time in a fifth of a second is chance.
const STEAL_TICKS: u64 = 2;

pub(crate) fn findings(machine: &Machine, needs: &Needs) -> Vec<Finding> {
    let mut all = vec![places(machine, needs)];
    all.extend(core_sharing(machine, needs));
    all.extend(quota(machine));
    all.extend(governor(machine));
    all.extend(turbo(machine));
    all.extend(virtualisation(machine));
    all.extend(other_work(machine));
    all.extend(load_average(machine));
    all
}

fn places(machine: &Machine, needs: &Needs) -> Finding {
    let topic = Topic::Cpus;
    let have = &machine.cpus;
    if let Some((host, cpu)) = needs.absent_cpus.first() {
        return Finding::new(
            topic,
            Level::Blocker,
            format!(
                "host `{host}` names CPU {cpu}; those that may be used are {}",
                list(have)
            ),
            "hosts that name CPUs of this machine",
            format!(
                "Its programs cannot be bound to that CPU. Name another: \
                 --set 'hosts.{host}.cpus=[{}]'.",
                have.first().copied().unwrap_or(0)
            ),
        );
    }
    let count = format!("{}: {}", counted(have.len(), "CPU"), list(have));
    if have.len() < 2 {
        return Finding::new(
            topic,
            Level::Warning,
            count,
            "two or more, so that the load and the servers each have their own",
            "They take CPU time from each other: throughput and latency are those of the pair.",
        );
    }
    let apart = "the load and the servers on CPUs of their own";
    let (load, servers) = (&needs.load_cpus, &needs.server_cpus);
    let shared: Vec<u32> = load
        .iter()
        .copied()
        .filter(|cpu| servers.contains(cpu))
        .collect();
    if !shared.is_empty() {
        return Finding::new(
            topic,
            Level::Warning,
            format!("the load and the servers share CPU {}", list(&shared)),
            apart,
            "They take CPU time from each other. Give them hosts with different `cpus`.",
        );
    }
    let found = if load.is_empty() || servers.is_empty() {
        count
    } else {
        format!(
            "the load on {}, the servers on {}",
            list(load),
            list(servers)
        )
    };
    Finding::new(
        topic,
        Level::Fine,
        found,
        apart,
        "They would take CPU time from each other.",
    )
}

fn core_sharing(machine: &Machine, needs: &Needs) -> Option<Finding> {
    let first = machine.cores.first()?;
    let has = |core: &[u32], cpus: &[u32]| core.iter().any(|cpu| cpus.contains(cpu));
    let torn = machine
        .cores
        .iter()
        .find(|core| has(core, &needs.load_cpus) && has(core, &needs.server_cpus));
    let wanted = "the load and the servers on different cores";
    let why = "Two hardware threads of one core share its execution units and caches: when one \
               works, the other is slower.";
    if let Some(core) = torn.filter(|_| needs.connections.is_some()) {
        return Some(
            Finding::new(
                Topic::CoreSharing,
                Level::Warning,
                format!(
                    "the load and a server share the core of CPUs {}",
                    list(core)
                ),
                wanted,
                why,
            )
            .mend(format!(
                "echo off | {}tee /sys/devices/system/cpu/smt/control",
                sudo(machine.root)
            )),
        );
    }
    let (level, found) = if needs.connections.is_some() {
        (Level::Fine, "no core has both load and servers".to_owned())
    } else {
        (
            Level::Note,
            format!(
                "{} with two or more hardware threads, such as CPUs {}",
                counted(machine.cores.len(), "core"),
                list(first)
            ),
        )
    };
    Some(Finding::new(Topic::CoreSharing, level, found, wanted, why))
}

fn quota(machine: &Machine) -> Option<Finding> {
    let quota = machine.quota_cpus?;
    let enough = quota >= machine.cpus.len() as f64;
    Some(Finding::new(
        Topic::CpuQuota,
        if enough { Level::Fine } else { Level::Warning },
        format!("the control group may use {quota:.2} CPUs"),
        format!("no limit, or at least {}", machine.cpus.len()),
        "When the quota is used up, everything stands still until the next period begins, some \
         tens of milliseconds later. Start the container without a CPU limit, and bind it to CPUs.",
    ))
}

fn governor(machine: &Machine) -> Option<Finding> {
    let topic = Topic::Governor;
    let wanted = "performance";
    let why = "The other governors follow the load with the clock rate, so a CPU that waits now \
               and then is slower than one that never does.";
    if machine.governors.is_empty() {
        // A virtual machine shows none, and could change none.
        return None;
    }
    let other: Vec<String> = machine
        .governors
        .iter()
        .filter(|(name, _)| *name != wanted)
        .map(|(name, cpus)| format!("{name} on CPUs {}", list(cpus)))
        .collect();
    if other.is_empty() {
        return Some(Finding::new(topic, Level::Fine, wanted, wanted, why));
    }
    Some(
        Finding::new(topic, Level::Warning, other.join(", "), wanted, why).mend(format!(
            "echo performance | {}tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
            sudo(machine.root)
        )),
    )
}

fn turbo(machine: &Machine) -> Option<Finding> {
    let turbo = machine.turbo?;
    let wanted = "off, for figures that other days should repeat";
    let why = "Turbo depends on heat and on how many cores work. Slices that alternate cancel \
               that in ratios, but not in the figures of one subject.";
    if !turbo.on {
        return Some(Finding::new(Topic::Turbo, Level::Fine, "off", wanted, why));
    }
    Some(
        Finding::new(Topic::Turbo, Level::Note, "on", wanted, why).mend(format!(
            "echo {} | {}tee {}",
            turbo.off,
            sudo(machine.root),
            turbo.path
        )),
    )
}

fn virtualisation(machine: &Machine) -> Option<Finding> {
    let topic = Topic::Virtualisation;
    let activity = machine.activity.as_ref();
    let wanted = "no stolen time";
    if let Some(now) = activity.filter(|a| a.steal >= STEAL && a.steal_ticks >= STEAL_TICKS) {
        return Some(Finding::new(
            topic,
            Level::Warning,
            format!(
                "the host takes {:.0}% of the CPU time now",
                now.steal * 100.0
            ),
            wanted,
            "Other guests of the host run where this machine should. Measure at another time, or \
             on CPUs that are not shared.",
        ));
    }
    if let Some(ever) = activity.filter(|a| a.steal_since_start >= STEAL) {
        return Some(Finding::new(
            topic,
            Level::Note,
            format!(
                "the host took {:.0}% of the CPU time since the start",
                ever.steal_since_start * 100.0
            ),
            wanted,
            "It does not now, but may again while you measure.",
        ));
    }
    machine.is_virtual.then(|| {
        Finding::new(
            topic,
            Level::Note,
            "a virtual machine; no stolen time is counted now",
            wanted,
            "System calls and interrupts cost more than on bare metal, and the host may be shared. \
             Ratios carry over better than figures.",
        )
    })
}

fn other_work(machine: &Machine) -> Option<Finding> {
    let activity = machine.activity.as_ref()?;
    let wanted = format!("less than {OTHER_WORK_CPUS} of a CPU");
    let why = "Other programs take CPU time and cache from what is measured, and not evenly.";
    let others = activity.others_cpus;
    let mut found = format!("others use {others:.2} CPUs");
    if others <= OTHER_WORK_CPUS {
        return Some(Finding::new(
            Topic::OtherWork,
            Level::Fine,
            found,
            wanted,
            why,
        ));
    }
    if let Some((pid, name, cpus)) = &activity.busiest {
        found.push_str(&format!(", most of it {name} (process {pid}, {cpus:.2})"));
    }
    Some(Finding::new(
        Topic::OtherWork,
        Level::Warning,
        found,
        wanted,
        format!("{why} End them, or wait until they are done."),
    ))
}

fn load_average(machine: &Machine) -> Option<Finding> {
    let load = machine.load_average?;
    let most = LOAD_PER_CPU * machine.cpus.len().max(1) as f64;
    let level = if load > most {
        Level::Note
    } else {
        Level::Fine
    };
    Some(Finding::new(
        Topic::LoadAverage,
        level,
        format!("{load:.2} over the last minute"),
        format!("at most {most:.1}, half of the CPUs"),
        "Programs that were busy a moment ago may be busy again, and the CPUs are still hot.",
    ))
}

/// Numbers as the kernel writes them: `0-3,8`.
fn list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    runs.iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect::<Vec<_>>()
        .join(",")
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{good, needs, on};
    use crate::machine::Turbo;
    use crate::machine::activity::Activity;

    #[test]
    fn a_quiet_machine_with_cpus_to_spare_is_fine() {
        for finding in findings(&good(), &needs()) {
            assert_eq!(finding.level, Level::Fine, "{finding:?}");
            assert_eq!(finding.mend, None, "{finding:?}");
        }
    }

    #[test]
    fn cpus_that_are_not_there_are_a_blocker() {
        let mut needs = needs();
        needs.absent_cpus = vec![("vm".into(), 9)];
        let finding = on(Topic::Cpus, &findings(&good(), &needs));
        assert_eq!(finding.level, Level::Blocker);
        assert_eq!(
            finding.found,
            "host `vm` names CPU 9; those that may be used are 0-3"
        );
        assert!(finding.why.contains("--set 'hosts.vm.cpus=[0]'"));
    }

    #[test]
    fn load_and_servers_on_one_cpu_are_told() {
        let mut needs = needs();
        needs.load_cpus = vec![1, 2, 3];
        needs.server_cpus = vec![0, 1, 3];
        let finding = on(Topic::Cpus, &findings(&good(), &needs));
        assert_eq!(finding.level, Level::Warning);
        assert_eq!(finding.found, "the load and the servers share CPU 1,3");

        let mut machine = good();
        machine.cpus = vec![2];
        let finding = on(Topic::Cpus, &findings(&machine, &Needs::default()));
        assert_eq!(
            (finding.level, finding.found.as_str()),
            (Level::Warning, "1 CPU: 2")
        );
    }

    #[test]
    fn a_core_that_load_and_servers_share_is_told_for_an_experiment() {
        let mut machine = good();
        machine.cores = vec![vec![0, 2], vec![1, 3]];
        let mut needs = needs();
        needs.load_cpus = vec![3];
        needs.server_cpus = vec![0, 1];
        let finding = on(Topic::CoreSharing, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Warning);
        assert!(finding.found.ends_with("CPUs 1,3"), "{}", finding.found);
        assert!(finding.mend.unwrap().ends_with("smt/control"));
        needs.server_cpus = vec![0, 2];
        let finding = on(Topic::CoreSharing, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Fine);
        let general = on(Topic::CoreSharing, &findings(&machine, &Needs::default()));
        assert_eq!(general.level, Level::Note);
    }

    #[test]
    fn clocks_that_wander() {
        let mut machine = good();
        machine.root = false;
        machine.governors = [
            ("performance".to_owned(), vec![0]),
            ("schedutil".to_owned(), vec![1, 2, 3]),
        ]
        .into();
        machine.turbo = Some(Turbo {
            on: true,
            path: "/sys/boost",
            off: "0",
        });
        let all = findings(&machine, &needs());
        let governor = on(Topic::Governor, &all);
        assert_eq!(governor.level, Level::Warning);
        assert_eq!(governor.found, "schedutil on CPUs 1-3");
        assert!(
            governor
                .mend
                .unwrap()
                .starts_with("echo performance | sudo tee ")
        );
        let turbo = on(Topic::Turbo, &all);
        assert_eq!(turbo.level, Level::Note);
        assert_eq!(turbo.mend.unwrap(), "echo 0 | sudo tee /sys/boost");
    }

    #[test]
    fn stolen_time_now_weighs_more_than_before() {
        let cases = [
            // Share now, ticks now, share since the start.
            (0.05, 2, 0.0, Level::Warning),
            // A single tick is 2.5% of two CPUs and no evidence.
            (0.025, 1, 0.0, Level::Note),
            (0.0, 0, 0.02, Level::Note),
        ];
        for (steal, steal_ticks, steal_since_start, level) in cases {
            let mut machine = good();
            machine.is_virtual = true;
            machine.activity = Some(Activity {
                steal,
                steal_ticks,
                steal_since_start,
                ..Activity::default()
            });
            let finding = on(Topic::Virtualisation, &findings(&machine, &needs()));
            assert_eq!(finding.level, level, "{steal} {steal_since_start}");
        }
    }

    #[test]
    fn the_busiest_process_is_named() {
        let mut machine = good();
        machine.load_average = Some(3.1);
        machine.activity = Some(Activity {
            others_cpus: 1.25,
            busiest: Some((4711, "rustc".into(), 0.95)),
            ..Activity::default()
        });
        let all = findings(&machine, &needs());
        let finding = on(Topic::OtherWork, &all);
        assert_eq!(finding.level, Level::Warning);
        assert_eq!(
            finding.found,
            "others use 1.25 CPUs, most of it rustc (process 4711, 0.95)"
        );
        assert_eq!(on(Topic::LoadAverage, &all).level, Level::Note);
    }

    #[test]
    fn a_quota_below_the_cpus_is_told() {
        let mut machine = good();
        machine.quota_cpus = Some(1.5);
        let finding = on(Topic::CpuQuota, &findings(&machine, &needs()));
        assert_eq!(finding.level, Level::Warning);
        machine.quota_cpus = Some(4.0);
        let finding = on(Topic::CpuQuota, &findings(&machine, &needs()));
        assert_eq!(finding.level, Level::Fine);
    }

    #[test]
    fn cpus_are_written_as_the_kernel_writes_them() {
        for (cpus, expected) in [
            (&[0][..], "0"),
            (&[1, 0], "0,1"),
            (&[0, 1, 2, 3, 8], "0-3,8"),
            (&[], ""),
        ] {
            assert_eq!(list(cpus), expected);
        }
    }
}
