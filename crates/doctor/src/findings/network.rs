//! The kernel's limits on connections.

use crate::machine::{Machine, proc};
use crate::needs::Needs;
use crate::{Finding, Level, Topic, set_sysctl};

const SOMAXCONN: &str = "net.core.somaxconn";
const SYN_BACKLOG: &str = "net.ipv4.tcp_max_syn_backlog";
const PORT_RANGE: &str = "net.ipv4.ip_local_port_range";
const PORTS_RESERVED: &str = "net.ipv4.ip_local_reserved_ports";
const TW_REUSE: &str = "net.ipv4.tcp_tw_reuse";

/// What Linux 5.4 and later start with.
const SOMAXCONN_USUAL: u64 = 4096;
/// The range that Linux starts with, and how many ports are in it, rounded down.
const PORT_RANGE_USUAL: &str = "32768 60999";
const PORTS_USUAL: u64 = 28_000;
/// The widest range of ports that are not reserved for servers, and how many ports are in it.
const PORT_RANGE_WIDEST: &str = "1024 65535";
const PORTS_WIDEST: u64 = 64_512;
/// How long a closed connection keeps its port, s.
const TIME_WAIT_S: u64 = 60;
/// As many connections as two addresses can have between one port and all others.
const CONNTRACK_ROOM: u64 = 65_536;
/// Settings that may be higher than recommended.
const LIMITS: [&str; 8] = [
    SOMAXCONN,
    SYN_BACKLOG,
    "fs.file-max",
    "fs.nr_open",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.netfilter.nf_conntrack_max",
];

pub(crate) fn findings(machine: &Machine, needs: &Needs) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(accept_queue(machine, needs));
    all.extend(syn_backlog(machine, needs));
    all.extend(local_ports(machine, needs));
    all.extend(reserved(machine, needs));
    all.extend(time_wait(machine));
    all.extend(conntrack(machine));
    all.extend(recommended(machine, needs));
    all
}

/// A finding on a limit that has to be at least so much.
fn at_least(
    machine: &Machine,
    needs: &Needs,
    topic: Topic,
    name: &str,
    own_wish: u64,
    why: &str,
) -> Option<Finding> {
    let value = machine.sysctls.number(name)?;
    let listed = needs.sysctl(name).and_then(|text| text.parse().ok());
    let wish = own_wish.max(listed.unwrap_or(0));
    // What holds all connections is enough for this machine's own result; what is recommended
    // makes it comparable with the results of others.
    let level = if value < own_wish {
        Level::Warning
    } else if value < wish {
        Level::Note
    } else {
        Level::Fine
    };
    let wanted = match listed {
        Some(listed) if listed >= own_wish => format!("{listed}, as the experiment recommends"),
        _ => format!("at least {wish}"),
    };
    let finding = Finding::new(topic, level, format!("{name} is {value}"), wanted, why);
    Some(match level {
        Level::Fine => finding,
        _ => finding.mend(set_sysctl(machine.root, name, &wish.to_string())),
    })
}

fn accept_queue(machine: &Machine, needs: &Needs) -> Option<Finding> {
    at_least(
        machine,
        needs,
        Topic::AcceptQueue,
        SOMAXCONN,
        needs.connections.unwrap_or(SOMAXCONN_USUAL),
        "It cuts the backlog that a server asks for. Connections that find the accept queue full \
         try again after 1 s, 3 s and 7 s, and that shows up as latency.",
    )
}

fn syn_backlog(machine: &Machine, needs: &Needs) -> Option<Finding> {
    // With SYN cookies the kernel drops nothing when this backlog is full.
    let cookies = machine.sysctls.number("net.ipv4.tcp_syncookies") != Some(0);
    let wish = match needs.connections {
        // Of the backlog a quarter is kept for addresses that are known.
        Some(connections) if !cookies => connections.div_ceil(3) * 4,
        _ => 0,
    };
    let why = if cookies {
        "With SYN cookies on, as they are, a full backlog costs window scaling and other options \
         rather than connections."
    } else {
        "With SYN cookies off, as they are, connections beyond three quarters of it are dropped, \
         and try again after 1 s."
    };
    at_least(machine, needs, Topic::SynBacklog, SYN_BACKLOG, wish, why)
}

/// The ports that outgoing connections to one address and port can have, one each.
fn local_ports(machine: &Machine, needs: &Needs) -> Option<Finding> {
    let (low, high) = proc::range(&machine.sysctls.text(PORT_RANGE)?)?;
    let ports = (high + 1).saturating_sub(low);
    // Proxies may share what stands behind them.
    let wanted = needs.connections.unwrap_or(0).max(needs.of_one_subject);
    let wanted = wanted.max(PORTS_USUAL);
    let level = match needs.of_one_subject > ports {
        true => Level::Blocker,
        false if ports < wanted => Level::Warning,
        false => Level::Fine,
    };
    let mut finding = Finding::new(
        Topic::LocalPorts,
        level,
        format!("{PORT_RANGE} is {low} to {high}: {ports} ports"),
        format!("at least {wanted} ports"),
        "Each connection to one address and port takes one, also those from proxies to what \
         stands behind them; a closed one is kept for a minute.",
    );
    finding.is_certain = level == Level::Blocker;
    let range = match wanted <= PORTS_USUAL {
        true => PORT_RANGE_USUAL,
        false => PORT_RANGE_WIDEST,
    };
    // Of more ports than there are, no range is enough.
    let helps = wanted <= PORTS_WIDEST;
    Some(match level {
        Level::Fine => finding,
        _ if !helps => finding,
        _ => finding.mend(set_sysctl(machine.root, PORT_RANGE, range)),
    })
}

/// Fixed ports that an outgoing connection may take before their server does.
fn reserved(machine: &Machine, needs: &Needs) -> Option<Finding> {
    let (low, high) = proc::range(&machine.sysctls.text(PORT_RANGE)?)?;
    let kept = machine.sysctls.text(PORTS_RESERVED).unwrap_or_default();
    let is_kept =
        |port: u16| proc::numbers(&kept).is_some_and(|ports| ports.contains(&u32::from(port)));
    let open: Vec<&(String, u16)> = needs
        .ports
        .iter()
        .filter(|(_, port)| (low..=high).contains(&u64::from(*port)) && !is_kept(*port))
        .collect();
    let (server, port) = open.first()?;
    let mut all: Vec<String> = open.iter().map(|(_, port)| port.to_string()).collect();
    if !kept.is_empty() {
        all.insert(0, kept);
    }
    Some(
        Finding::new(
            Topic::FixedPort,
            Level::Note,
            format!("port {port} of server `{server}` is among those of outgoing connections"),
            format!("a port outside {low} to {high}, or one that is kept free"),
            "A connection of another program may take the port for a while; the server cannot \
             start then.",
        )
        .mend(set_sysctl(machine.root, PORTS_RESERVED, &all.join(","))),
    )
}

fn time_wait(machine: &Machine) -> Option<Finding> {
    let value = machine.sysctls.number(TW_REUSE)?;
    let wanted = "1, or 2 for connections within this machine";
    if value > 0 {
        return Some(Finding::new(
            Topic::TimeWait,
            Level::Fine,
            format!("{TW_REUSE} is {value}"),
            wanted,
            "The port of a closed connection can be used again after a second.",
        ));
    }
    let range = machine.sysctls.text(PORT_RANGE)?;
    let (low, high) = proc::range(&range)?;
    let per_s = (high + 1).saturating_sub(low) / TIME_WAIT_S;
    Some(
        Finding::new(
            Topic::TimeWait,
            Level::Warning,
            format!("{TW_REUSE} is 0"),
            wanted,
            format!(
                "The port of a closed connection is held for {TIME_WAIT_S} s, so no more than \
                 {per_s} connections per second can be opened to one address for long. A proxy \
                 that opens one for each request is held there, too."
            ),
        )
        .mend(set_sysctl(machine.root, TW_REUSE, "2")),
    )
}

fn conntrack(machine: &Machine) -> Option<Finding> {
    const MAX: &str = "net.netfilter.nf_conntrack_max";
    let max = machine.sysctls.number(MAX)?;
    let count = machine
        .sysctls
        .number("net.netfilter.nf_conntrack_count")
        .unwrap_or(0);
    let room = max.saturating_sub(count);
    let finding = Finding::new(
        Topic::Conntrack,
        if room < CONNTRACK_ROOM {
            Level::Warning
        } else {
            Level::Fine
        },
        format!("{count} of {max} entries are taken"),
        format!("room for {CONNTRACK_ROOM} more"),
        "With firewall rules that track connections, each has an entry, for two minutes after its \
         end. When the table is full, packets are dropped.",
    );
    Some(match finding.level {
        Level::Fine => finding,
        _ => {
            let goal = (count + CONNTRACK_ROOM).max(4 * CONNTRACK_ROOM);
            finding.mend(set_sysctl(machine.root, MAX, &goal.to_string()))
        }
    })
}

/// What else the experiment recommends.
fn recommended(machine: &Machine, needs: &Needs) -> Vec<Finding> {
    needs
        .sysctls
        .iter()
        .filter(|(name, _)| name != SOMAXCONN && name != SYN_BACKLOG)
        .map(|(name, wanted)| {
            let why = "The experiment recommends this value. It is written down with the result \
                       whatever it is.";
            let wanted_text = format!("{wanted}, as the experiment recommends");
            let Some(value) = machine.sysctls.text(name) else {
                return Finding::new(
                    Topic::Sysctl,
                    Level::Note,
                    format!("this kernel has no {name}"),
                    wanted_text,
                    why,
                );
            };
            let finding = |level| {
                let found = format!("{name} is {value}");
                Finding::new(Topic::Sysctl, level, found, wanted_text.as_str(), why)
            };
            if is_as_good(name, &value, wanted) {
                finding(Level::Fine)
            } else {
                finding(Level::Warning).mend(set_sysctl(machine.root, name, wanted))
            }
        })
        .collect()
}

fn is_as_good(name: &str, value: &str, wanted: &str) -> bool {
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if words(value) == words(wanted) {
        return true;
    }
    let number = |text: &str| text.parse::<u64>().ok();
    LIMITS.contains(&name)
        && number(value)
            .zip(number(wanted))
            .is_some_and(|(value, wanted)| value > wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{good, needs, on, put};

    #[test]
    fn a_usual_kernel_is_fine() {
        for needs in [needs(), Needs::default()] {
            for finding in findings(&good(), &needs) {
                assert_eq!(finding.level, Level::Fine, "{finding:?}");
            }
        }
    }

    #[test]
    fn the_accept_queue_has_to_hold_the_connections_or_what_is_recommended() {
        let mut machine = good();
        type Case<'a> = (
            &'a str,
            Option<u64>,
            Option<&'a str>,
            Level,
            Option<&'a str>,
        );
        let cases: [Case<'_>; 7] = [
            // somaxconn, connections, recommended, level, what the command sets.
            ("4096", None, None, Level::Fine, None),
            ("128", None, None, Level::Warning, Some("4096")),
            ("128", Some(128), None, Level::Fine, None),
            ("128", Some(129), None, Level::Warning, Some("129")),
            ("4096", Some(96), Some("65535"), Level::Note, Some("65535")),
            (
                "4096",
                Some(4800),
                Some("65535"),
                Level::Warning,
                Some("65535"),
            ),
            ("65535", Some(96), Some("65535"), Level::Fine, None),
        ];
        for (value, connections, listed, level, set) in cases {
            put(&mut machine, SOMAXCONN, value);
            let mut needs = Needs {
                connections,
                ..Needs::default()
            };
            needs
                .sysctls
                .extend(listed.map(|value| (SOMAXCONN.to_owned(), value.to_owned())));
            let finding = on(Topic::AcceptQueue, &findings(&machine, &needs));
            assert_eq!(finding.level, level, "{value} {connections:?} {listed:?}");
            let command = set.map(|set| format!("sysctl -w {SOMAXCONN}={set}"));
            assert_eq!(finding.mend, command);
        }
    }

    #[test]
    fn the_syn_backlog_counts_without_cookies_only() {
        let mut machine = good();
        put(&mut machine, SYN_BACKLOG, "512");
        let mut needs = needs();
        needs.connections = Some(385);
        let finding = on(Topic::SynBacklog, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Fine);
        put(&mut machine, "net.ipv4.tcp_syncookies", "0");
        let finding = on(Topic::SynBacklog, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Warning);
        assert_eq!(
            finding.mend.unwrap(),
            "sysctl -w net.ipv4.tcp_max_syn_backlog=516"
        );
        needs.connections = Some(384);
        let finding = on(Topic::SynBacklog, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Fine);
    }

    #[test]
    fn ports_for_outgoing_connections() {
        let mut machine = good();
        machine.root = false;
        put(&mut machine, PORT_RANGE, "40000\t40999");
        let mut needs = needs();
        needs.connections = Some(1000);
        let finding = on(Topic::LocalPorts, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Warning);
        assert_eq!(
            finding.mend.unwrap(),
            "sudo sysctl -w 'net.ipv4.ip_local_port_range=32768 60999'"
        );
        needs.of_one_subject = 1001;
        let finding = on(Topic::LocalPorts, &findings(&machine, &needs));
        assert_eq!((finding.level, finding.is_certain), (Level::Blocker, true));
    }

    #[test]
    fn the_ports_that_are_wanted_are_more_than_there_are_and_so_are_those_of_the_command() {
        let machine = good();
        let of = |connections, of_one_subject| {
            let needs = Needs {
                connections: Some(connections),
                of_one_subject,
                ..needs()
            };
            on(Topic::LocalPorts, &findings(&machine, &needs))
        };
        assert_eq!(of(28_232, 28_232).level, Level::Fine);
        // To different ports, and maybe to one behind them.
        let finding = of(30_000, 10_000);
        assert_eq!((finding.level, finding.is_certain), (Level::Warning, false));
        assert_eq!(finding.wanted, "at least 30000 ports");
        let command = "sysctl -w 'net.ipv4.ip_local_port_range=1024 65535'";
        assert_eq!(finding.mend.as_deref(), Some(command));
        let finding = of(58_000, 29_000);
        assert_eq!((finding.level, finding.is_certain), (Level::Blocker, true));
        assert_eq!(finding.mend.as_deref(), Some(command));
        // The bound is never one that is met, nor the range that of today.
        let finding = of(100, 28_300);
        assert_eq!(finding.level, Level::Blocker);
        assert_eq!(finding.wanted, "at least 28300 ports");
        assert_eq!(finding.mend.as_deref(), Some(command));
        assert_eq!(of(140_000, 70_000).mend, None, "no range has so many");
    }

    #[test]
    fn fixed_ports_among_those_of_outgoing_connections() {
        let mut machine = good();
        let mut needs = needs();
        needs.ports = vec![("web".into(), 8080), ("cache".into(), 40_000)];
        put(&mut machine, PORTS_RESERVED, "50000-50010");
        let finding = on(Topic::FixedPort, &findings(&machine, &needs));
        assert_eq!(finding.level, Level::Note);
        assert_eq!(
            finding.mend.unwrap(),
            "sysctl -w net.ipv4.ip_local_reserved_ports=50000-50010,40000"
        );
        put(&mut machine, PORTS_RESERVED, "39999-40001");
        assert!(
            findings(&machine, &needs)
                .iter()
                .all(|f| f.topic != Topic::FixedPort)
        );
    }

    #[test]
    fn ports_that_are_held_after_the_end_set_a_rate() {
        let mut machine = good();
        put(&mut machine, TW_REUSE, "0");
        let finding = on(Topic::TimeWait, &findings(&machine, &needs()));
        assert_eq!(finding.level, Level::Warning);
        assert!(
            finding.why.contains("470 connections per second"),
            "{}",
            finding.why
        );
        assert_eq!(finding.mend.unwrap(), "sysctl -w net.ipv4.tcp_tw_reuse=2");
    }

    #[test]
    fn a_table_of_connections_that_fills_up() {
        let mut machine = good();
        put(&mut machine, "net.netfilter.nf_conntrack_max", "262144");
        put(&mut machine, "net.netfilter.nf_conntrack_count", "12");
        let finding = on(Topic::Conntrack, &findings(&machine, &needs()));
        assert_eq!(finding.level, Level::Fine);
        put(&mut machine, "net.netfilter.nf_conntrack_count", "200000");
        let finding = on(Topic::Conntrack, &findings(&machine, &needs()));
        assert_eq!(finding.level, Level::Warning);
        assert_eq!(
            finding.mend.unwrap(),
            "sysctl -w net.netfilter.nf_conntrack_max=265536"
        );
    }

    #[test]
    fn other_settings_are_compared_with_what_the_experiment_recommends() {
        let mut machine = good();
        put(&mut machine, "net.core.rmem_max", "300");
        put(&mut machine, "net.ipv4.tcp_rmem", "1\t2\t3");
        put(&mut machine, "vm.swappiness", "60");
        let mut needs = needs();
        let cases = [
            ("net.core.rmem_max", "200", Level::Fine),
            ("net.core.rmem_max", "400", Level::Warning),
            ("net.ipv4.tcp_rmem", "1 2 3", Level::Fine),
            ("net.ipv4.tcp_rmem", "1 2 4", Level::Warning),
            ("vm.swappiness", "10", Level::Warning),
            ("net.absent", "1", Level::Note),
        ];
        for (name, wanted, level) in cases {
            needs.sysctls = vec![(name.to_owned(), wanted.to_owned())];
            let finding = on(Topic::Sysctl, &findings(&machine, &needs));
            assert_eq!(finding.level, level, "{name} {wanted}");
            assert_eq!(finding.mend.is_some(), level == Level::Warning);
        }
    }
}
