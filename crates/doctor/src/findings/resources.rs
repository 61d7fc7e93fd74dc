//! Memory, open files, the clock, the event loop, namespaces.

use crate::machine::Machine;
use crate::needs::Needs;
use crate::{Finding, Level, Topic, set_sysctl, sudo};

const GIB_KIB: u64 = 1024 * 1024;
/// Open files that are wanted where no experiment says: 8,000 connections through a proxy.
const OPEN_FILES: u64 = 16_384;
/// Open files beside the connections: logs, pipes, listeners, libraries.
const OPEN_FILES_BESIDE: u64 = 256;
/// The least limit that the command sets.
const OPEN_FILES_MENDED: u64 = 65_536;
/// `weigh` raises its limit no further than this.
const OPEN_FILES_MOST: u64 = 1 << 20;
/// Clocks that a program reads without a system call.
const QUICK_CLOCKS: [&str; 7] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "riscv_clocksource",
    "timebase",
    "tod",
];

pub(crate) fn findings(machine: &Machine, needs: &Needs) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(memory(machine));
    all.extend(swap(machine));
    all.extend(clock(machine));
    all.push(event_loop(machine));
    all.extend(open_files(machine, needs));
    all.push(namespaces(machine, needs));
    all
}

/// Memory that should be left, in KiB: a gibibyte, on a small machine a quarter of it.
fn memory_wanted_kib(total_kib: u64) -> u64 {
    GIB_KIB.min(total_kib / 4)
}

fn memory(machine: &Machine) -> Option<Finding> {
    let memory = machine.memory?;
    let wanted_kib = memory_wanted_kib(memory.total_kib);
    let level = if memory.available_kib < wanted_kib {
        Level::Warning
    } else {
        Level::Fine
    };
    Some(Finding::new(
        Topic::Memory,
        level,
        format!("{} available", size(memory.available_kib)),
        format!("at least {}", size(wanted_kib)),
        "With little left, the kernel throws out cached files and moves programs to disk while \
         they are measured. Servers need some kilobytes for each connection.",
    ))
}

fn swap(machine: &Machine) -> Option<Finding> {
    let memory = machine.memory?;
    let used = memory.swap_used_kib();
    let wanted = "none in use";
    let why = "A page that comes back from disk takes milliseconds, where the measured latency \
               is microseconds.";
    if used == 0 {
        return Some(Finding::new(Topic::Swap, Level::Fine, wanted, wanted, why));
    }
    let short = memory.available_kib < memory_wanted_kib(memory.total_kib);
    let finding = Finding::new(
        Topic::Swap,
        if short { Level::Warning } else { Level::Note },
        format!("{} in use", size(used)),
        wanted,
        why,
    );
    // Bringing it all back wants room for it.
    if memory.available_kib > used + memory_wanted_kib(memory.total_kib) {
        let sudo = sudo(machine.root);
        return Some(finding.mend(format!("{sudo}swapoff -a && {sudo}swapon -a")));
    }
    Some(finding)
}

fn clock(machine: &Machine) -> Option<Finding> {
    let clock = machine.clock.as_ref()?;
    let current = clock.current.as_str();
    let wanted = "a clock that is read without a system call, such as tsc";
    let why = "The load takes the time several times for each request. From tsc that costs some \
               20 ns, from hpet or acpi_pm a microsecond or more.";
    if QUICK_CLOCKS.contains(&current) {
        return Some(Finding::new(
            Topic::Clock,
            Level::Fine,
            current,
            wanted,
            why,
        ));
    }
    let finding = Finding::new(Topic::Clock, Level::Warning, current, wanted, why);
    let better = QUICK_CLOCKS
        .iter()
        .find(|quick| clock.available.iter().any(|name| name == *quick));
    Some(match better {
        Some(better) => finding.mend(format!(
            "echo {better} | {}tee \
             /sys/devices/system/clocksource/clocksource0/current_clocksource",
            sudo(machine.root)
        )),
        None => finding,
    })
}

fn event_loop(machine: &Machine) -> Finding {
    let topic = Topic::EventLoop;
    let wanted = "io_uring";
    let why = "The load runs on epoll instead. It measures the same, but reaches its limit \
               earlier: look whether the client is named as the bottleneck.";
    let Some(reason) = &machine.uring_refused else {
        return Finding::new(topic, Level::Fine, wanted, wanted, why);
    };
    let switch = "kernel.io_uring_disabled";
    match machine.sysctls.number(switch) {
        Some(value @ 1..) => Finding::new(
            topic,
            Level::Note,
            format!("io_uring cannot be used: {switch} is {value}"),
            wanted,
            why,
        )
        .mend(set_sysctl(machine.root, switch, "0")),
        _ => Finding::new(
            topic,
            Level::Note,
            format!("io_uring cannot be used: {reason}"),
            wanted,
            format!("{why} An old kernel, or a container's seccomp profile, refuses it."),
        ),
    }
}

fn open_files(machine: &Machine, needs: &Needs) -> Option<Finding> {
    let (soft, hard) = machine.open_files?;
    let topic = Topic::OpenFiles;
    // The load keeps the connections to all subjects open. A proxy has two sockets for each of its own.
    let wanted = needs.connections.map_or(OPEN_FILES, |connections| {
        connections.max(2 * needs.of_one_subject) + OPEN_FILES_BESIDE
    });
    let ceiling = machine.sysctls.number("fs.nr_open");
    let reach = if machine.may_raise_limits {
        hard.max(ceiling.unwrap_or(hard).min(OPEN_FILES_MOST))
    } else {
        hard
    };
    let figure = |limit: u64| match limit {
        u64::MAX => "unlimited".to_owned(),
        limit => limit.to_string(),
    };
    let found = format!(
        "soft limit {}, hard limit {}; weigh raises it to {}",
        figure(soft),
        figure(hard),
        figure(reach)
    );
    let why = "Each connection is an open file, in a proxy two. At the limit connections fail, \
               and the servers that weigh starts have the same limit.";
    let wanted_text = format!("at least {wanted}");
    if reach >= wanted {
        return Some(Finding::new(topic, Level::Fine, found, wanted_text, why));
    }
    let level = if needs.connections.is_some() {
        Level::Blocker
    } else {
        Level::Warning
    };
    let goal = wanted.max(OPEN_FILES_MENDED);
    let mut mend = String::new();
    if ceiling.is_some_and(|ceiling| ceiling < goal) {
        mend = format!(
            "{} && ",
            set_sysctl(machine.root, "fs.nr_open", &goal.to_string())
        );
    }
    mend.push_str(&format!(
        "{}prlimit --pid $$ --nofile={goal}:{goal}",
        sudo(machine.root)
    ));
    let mut finding = Finding::new(topic, level, found, wanted_text, why).mend(mend);
    finding.is_certain = needs.connections.is_some_and(|all| reach <= all);
    Some(finding)
}

fn namespaces(machine: &Machine, needs: &Needs) -> Finding {
    let wanted = "network namespaces and /dev/net/tun";
    if let Some(lacks) = &needs.hosts_lack {
        let why =
            "The hosts of this experiment are namespaces of their own, with links between them.";
        return match lacks.as_slice() {
            [] => {
                let found = "the hosts of this experiment can be made";
                Finding::new(Topic::Namespaces, Level::Fine, found, wanted, why)
            }
            _ => {
                let found = lacks.join("; ");
                Finding::new(Topic::Namespaces, Level::Blocker, found, wanted, why)
            }
        };
    }
    let (level, found) = match (machine.may_make_namespaces, machine.has_tun) {
        (true, true) => (
            Level::Fine,
            "network namespaces and /dev/net/tun can be used",
        ),
        (true, false) => (
            Level::Note,
            "network namespaces can be made; no /dev/net/tun",
        ),
        (false, true) => (
            Level::Note,
            "network namespaces cannot be made; /dev/net/tun is there",
        ),
        (false, false) => (
            Level::Note,
            "network namespaces cannot be made; no /dev/net/tun",
        ),
    };
    Finding::new(
        Topic::Namespaces,
        level,
        found,
        wanted,
        "Only experiments that put a network between their hosts need them.",
    )
}

/// KiB in a unit that leaves few digits.
fn size(kib: u64) -> String {
    if kib >= GIB_KIB {
        format!("{:.1} GiB", kib as f64 / GIB_KIB as f64)
    } else {
        format!("{} MiB", kib / 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{good, needs, on, put};
    use crate::machine::Clock;
    use crate::machine::proc::Memory;

    #[test]
    fn a_good_machine_is_fine() {
        for finding in findings(&good(), &needs()) {
            assert_eq!(finding.level, Level::Fine, "{finding:?}");
        }
    }

    #[test]
    fn little_memory_and_swap_in_use() {
        let mut machine = good();
        let memory = Memory {
            total_kib: 2 * GIB_KIB,
            available_kib: GIB_KIB,
            swap_total_kib: GIB_KIB,
            swap_free_kib: GIB_KIB - 102_400,
        };
        machine.memory = Some(memory);
        let all = findings(&machine, &needs());
        // A small machine has to have a quarter of its memory left.
        assert_eq!(on(Topic::Memory, &all).level, Level::Fine);
        let swap = on(Topic::Swap, &all);
        assert_eq!(
            (swap.level, swap.found.as_str()),
            (Level::Note, "100 MiB in use")
        );
        assert_eq!(swap.mend.unwrap(), "swapoff -a && swapon -a");

        machine.memory = Some(Memory {
            available_kib: 300 * 1024,
            ..memory
        });
        let all = findings(&machine, &needs());
        assert_eq!(on(Topic::Memory, &all).level, Level::Warning);
        let swap = on(Topic::Swap, &all);
        assert_eq!((swap.level, swap.mend), (Level::Warning, None));
    }

    #[test]
    fn slow_clocks_and_the_way_out() {
        let mut machine = good();
        machine.root = false;
        let clock = |current: &str, available: &[&str]| Clock {
            current: current.into(),
            available: available.iter().map(|&name| name.into()).collect(),
        };
        machine.clock = Some(clock("hpet", &["tsc", "hpet"]));
        let finding = on(Topic::Clock, &findings(&machine, &needs()));
        assert_eq!(finding.level, Level::Warning);
        assert!(
            finding
                .mend
                .unwrap()
                .starts_with("echo tsc | sudo tee /sys/")
        );
        machine.clock = Some(clock("acpi_pm", &["acpi_pm"]));
        let finding = on(Topic::Clock, &findings(&machine, &needs()));
        assert_eq!((finding.level, finding.mend), (Level::Warning, None));
    }

    #[test]
    fn io_uring_that_is_switched_off_can_be_switched_on() {
        let mut machine = good();
        machine.uring_refused = Some("Operation not permitted (os error 1)".into());
        put(&mut machine, "kernel.io_uring_disabled", "2");
        let finding = on(Topic::EventLoop, &findings(&machine, &needs()));
        assert_eq!(finding.level, Level::Note);
        assert_eq!(
            finding.mend.unwrap(),
            "sysctl -w kernel.io_uring_disabled=0"
        );
        // Refused by something else: no command helps.
        put(&mut machine, "kernel.io_uring_disabled", "0");
        let finding = on(Topic::EventLoop, &findings(&machine, &needs()));
        assert!(finding.found.ends_with("not permitted (os error 1)"));
        assert_eq!(finding.mend, None);
    }

    #[test]
    fn open_files_for_each_connection_and_its_way_through_a_proxy() {
        let mut machine = good();
        machine.root = false;
        machine.may_raise_limits = false;
        machine.open_files = Some((1024, 4096));
        let mut needs = needs();
        (needs.connections, needs.of_one_subject) = (Some(3840), 1920);
        let finding = on(Topic::OpenFiles, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Fine, "{finding:?}");
        // A proxy has two sockets for each of its connections.
        needs.of_one_subject = 1921;
        let finding = on(Topic::OpenFiles, &findings(&machine, &needs));
        assert_eq!((finding.level, finding.is_certain), (Level::Blocker, false));
        assert_eq!(finding.wanted, "at least 4098");
        // The load could not open all of its own.
        needs.connections = Some(4096);
        let certain = on(Topic::OpenFiles, &findings(&machine, &needs));
        assert!(certain.is_certain);
        assert_eq!(
            finding.mend.unwrap(),
            "sudo prlimit --pid $$ --nofile=65536:65536"
        );
        // In general it is a limit to know of.
        let general = on(Topic::OpenFiles, &findings(&machine, &Needs::default()));
        assert_eq!(general.level, Level::Warning);
        // Root's own limits are raised by the program.
        machine.may_raise_limits = true;
        let finding = on(Topic::OpenFiles, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Fine);
        put(&mut machine, "fs.nr_open", "4096");
        machine.root = true;
        let finding = on(Topic::OpenFiles, &findings(&machine, &needs));
        assert_eq!(
            finding.mend.unwrap(),
            "sysctl -w fs.nr_open=65536 && prlimit --pid $$ --nofile=65536:65536"
        );
    }

    #[test]
    fn namespaces_are_never_more_than_a_note() {
        for (namespaces, tun) in [(true, false), (false, true), (false, false)] {
            let mut machine = good();
            machine.may_make_namespaces = namespaces;
            machine.has_tun = tun;
            let finding = on(Topic::Namespaces, &findings(&machine, &needs()));
            assert_eq!(finding.level, Level::Note);
        }
    }

    #[test]
    fn hosts_that_cannot_be_made_keep_their_experiment_from_running() {
        let of = |lack: &[&str]| {
            let needs = Needs {
                hosts_lack: Some(lack.iter().map(|text| (*text).to_owned()).collect()),
                ..needs()
            };
            on(Topic::Namespaces, &findings(&good(), &needs))
        };
        assert_eq!(of(&[]).level, Level::Fine);
        let lacks = of(&["no tun", "no quota"]);
        assert_eq!(lacks.level, Level::Blocker);
        assert_eq!(lacks.found, "no tun; no quota");
    }
}
