//! The CPU time of the servers: which of it is full, and whether the throughput follows it.

use readings::Change;

use super::effects::{Effects, of_change};
use super::suspects::FULL;
use super::unchanged::{Threads, Unchanged, percent};
use super::{Bottleneck, Standing, Suspect};
use crate::text::counted;

/// Half the CPU time must leave no more than this: exactly half where the CPU was full, and a
/// server that was busy for up to three quarters of its time keeps more.
const CPU_LEFT: f64 = 0.67;
/// A server that takes at least this share of what a CPU gave fills it alone.
const ALONE: f64 = 0.8;

/// CPUs, and the servers that may use them.
struct Group<'a> {
    /// The host, if it is on another machine than the load.
    host: Option<&'a str>,
    cpus: Vec<u32>,
    servers: Vec<&'a String>,
    /// CPUs that the servers used, together.
    used: f64,
}

impl Group<'_> {
    fn is_full(&self) -> bool {
        !self.cpus.is_empty() && self.used >= FULL * self.cpus.len() as f64
    }

    /// The server that uses the most, and its share of what all use.
    fn most<'b>(&'b self, loads: &Unchanged<'_>) -> Option<(&'b String, f64)> {
        let of = |name: &&String| loads.server(name);
        let most = self
            .servers
            .iter()
            .copied()
            .max_by(|a, b| of(a).total_cmp(&of(b)))?;
        Some((most, loads.server(most) / self.used.max(1e-9)))
    }

    /// `98% of its one CPU (CPU 0)`.
    fn words(&self) -> String {
        let number = self.cpus.len();
        let used = match number {
            0 => format!("{} of a CPU", percent(self.used)),
            1 => format!("{} of CPU {}", percent(self.used), self.cpus[0]),
            _ => format!("{:.2} of {}", self.used, cpus_named(&self.cpus)),
        };
        used + &self.at()
    }

    /// ` of host \`vm\``; empty for the load's machine.
    fn at(&self) -> String {
        self.host
            .map_or_else(String::new, |host| format!(" of host `{host}`"))
    }
}

pub(super) fn server(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let groups = groups(loads);
    let lost = effects.lowered(Change::HalfTheServerCpu, CPU_LEFT);
    let full = groups
        .iter()
        .filter(|group| group.is_full())
        .max_by(|a, b| a.used.total_cmp(&b.used));
    // Threads that always want a CPU are full wherever the CPU went to.
    let full_thread = groups
        .iter()
        .flat_map(|group| group.servers.iter().map(move |name| (group, *name)))
        .map(|(group, name)| (group, name, loads.threads(name)))
        .filter(|(_, _, threads)| threads.wanted >= FULL)
        .max_by(|a, b| a.2.had.total_cmp(&b.2.had));
    let shared = full.filter(|group| {
        group.servers.len() > 1 && group.most(loads).is_some_and(|(_, share)| share < ALONE)
    });
    let (bottleneck, name, mut why) = match (shared, full, full_thread) {
        (Some(group), _, _) => (Bottleneck::SharedCpu, None, of_shared(loads, group)),
        (None, Some(group), _) => {
            let (name, _) = group.most(loads)?;
            (
                Bottleneck::Server,
                Some(name.clone()),
                of_full(loads, group, name),
            )
        }
        (None, None, Some((group, name, threads))) => (
            Bottleneck::Server,
            Some(name.clone()),
            of_thread(group, threads),
        ),
        // Without half of the time of a CPU that was half idle nothing is lost: see CPU_LEFT.
        (None, None, None) => {
            lost?;
            let group = groups.iter().max_by(|a, b| a.used.total_cmp(&b.used))?;
            let (name, _) = group.most(loads)?;
            let why = format!("its CPU was not full: the servers used {}", group.words());
            (Bottleneck::Server, Some(name.clone()), why)
        }
    };
    if bottleneck == Bottleneck::Server && loads.server_names().len() > 1 {
        why.push_str(&format!(
            "; CPU time: {}",
            each(loads, &loads.server_names())
        ));
    }
    let is_full = full.is_some() || full_thread.is_some();
    let standing = match (lost, is_full) {
        (Some(_), true) => Standing::Confirmed,
        (Some(_), false) => Standing::Sensitive,
        (None, _) => Standing::Suspected,
    };
    if let Some(left) = lost {
        let quota = of_change(loads.reading, Change::HalfTheServerCpu)
            .find_map(|probe| probe.quota_cpus)
            .unwrap_or(0.5);
        why.push_str(&format!(
            "; with {} for the servers together {} of the throughput is left (halving costs {})",
            cpus(quota),
            percent(left),
            percent(1.0 - left)
        ));
    }
    Some(Suspect {
        bottleneck,
        standing,
        server: name,
        why,
    })
}

/// The servers by the CPUs that they may use.
fn groups<'a>(loads: &Unchanged<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for name in loads.server_names() {
        let of = loads.reading.cpus_of_servers.get(name);
        let cpus = of.unwrap_or(&loads.reading.server_cpus).clone();
        let used = loads.server(name);
        let host = loads.reading.apart(name);
        let is_one = |group: &&mut Group<'a>| group.cpus == cpus && group.host == host;
        match groups.iter_mut().find(is_one) {
            Some(group) => {
                group.servers.push(name);
                group.used += used;
            }
            None => groups.push(Group {
                host,
                cpus,
                servers: vec![name],
                used,
            }),
        }
    }
    groups
}

fn of_shared(loads: &Unchanged<'_>, group: &Group<'_>) -> String {
    let names: Vec<String> = group
        .servers
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let full = if group.cpus.len() == 1 { "is" } else { "are" };
    format!(
        "{}{}, which {} share, {full} full ({}; CPU time: {})",
        cpus_named(&group.cpus),
        group.at(),
        crate::text::listed(&names),
        group.words(),
        each(loads, &group.servers)
    )
}

fn of_full(loads: &Unchanged<'_>, group: &Group<'_>, name: &str) -> String {
    let threads = counted(loads.threads(name).count as usize, "thread");
    match group.cpus.len() {
        1 => format!("its one CPU is full ({}; it has {threads})", group.words()),
        _ => format!("its CPUs are full ({}; it has {threads})", group.words()),
    }
}

fn of_thread(group: &Group<'_>, threads: Threads) -> String {
    let had = match group.cpus.len() {
        0 => String::new(),
        _ => format!("; the server had {}{}", cpus_named(&group.cpus), group.at()),
    };
    let count = counted(threads.count as usize, "thread");
    if threads.count > 1 && threads.second_had < threads.had / 2.0 {
        return format!(
            "one of its {count} is full ({}), the next took {}{had}",
            threads.words(),
            percent(threads.second_had)
        );
    }
    format!("the busiest of its {count} took {}{had}", threads.words())
}

fn each(loads: &Unchanged<'_>, names: &[&String]) -> String {
    let each: Vec<String> = names
        .iter()
        .map(|name| format!("{name} {}", percent(loads.server(name))))
        .collect();
    each.join(", ")
}

/// `CPU 0`, `2 CPUs (0 and 1)`.
fn cpus_named(numbers: &[u32]) -> String {
    let names: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match numbers {
        [one] => format!("CPU {one}"),
        _ => format!("{} CPUs ({})", numbers.len(), crate::text::listed(&names)),
    }
}

fn cpus(number: f64) -> String {
    match number {
        n if (n - 1.0).abs() < 1e-9 => "1 CPU".to_owned(),
        n if n.fract() < 1e-9 => format!("{n:.0} CPUs"),
        n => format!("{n:.2} CPUs"),
    }
}
