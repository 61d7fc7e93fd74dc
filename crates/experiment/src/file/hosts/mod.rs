//! `[hosts.NAME]`: where programs run, and the links between them.

mod file;
pub(super) mod machine_links;
pub(super) mod machines;
pub(super) mod reach;

pub use file::read_hosts;

use std::path::PathBuf;
use std::time::Duration;

use super::load::loads;
use super::names::{MOST_NAMES, check_name};
use crate::spec::{Experiment, Target, Upstream};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units::{self, shown};
use readings::{Access, HostSpec, LinkSpec};

const KEYS: [&str; 13] = [
    "cpus",
    "quota",
    "link",
    "access",
    "settings",
    "ssh",
    "exec",
    "podman",
    "slurm",
    "kubernetes",
    "nomad",
    "binary",
    "address",
];
const LINK_KEYS: [&str; 4] = ["rtt", "jitter", "loss", "rate"];
const LONGEST: Duration = Duration::from_secs(10);
/// The smallest share that the kernel gives in the period used here.
const QUOTA_MIN: f64 = 0.1;

/// `[hosts.NAME]`
pub(super) fn hosts(reader: &mut Reader, top: &Section<'_>) -> Vec<HostSpec> {
    let Some(section) = top.section(reader, "hosts") else {
        return Vec::new();
    };
    let mut hosts = Vec::new();
    for entry in section.table.entries.iter().take(MOST_NAMES) {
        let Some(inner) = reader.section(entry, section.name_of(&entry.name)) else {
            continue;
        };
        check_name(reader, "a host", &entry.name, entry.place);
        if entry.name == "localhost" {
            reader.report(Problem::at(
                entry.place,
                "a host cannot be called `localhost`",
                "the name is reserved: it means the local host",
            ));
        }
        refuse_needless(reader, &inner);
        let external = inner.word(reader, "access", &["internal", "external"]);
        let host = HostSpec {
            name: entry.name.clone(),
            cpus: cpus(reader, &inner).unwrap_or_default(),
            quota: quota(reader, &inner),
            link: link(reader, &inner),
            access: match external.as_deref() {
                Some("external") => Access::External,
                _ => Access::Internal,
            },
            settings: settings(reader, &inner),
            reach: None,
            binary: inner.text(reader, "binary").map(PathBuf::from),
            address: machines::address(reader, &inner),
        };
        hosts.extend(reach::hosts(reader, &inner, host));
    }
    reach::check_names(reader, top, &hosts);
    hosts
}

/// Explains keys that a user may expect here.
fn refuse_needless(reader: &mut Reader, host: &Section<'_>) {
    let mut known = KEYS.to_vec();
    for entry in &host.table.entries {
        if matches!(entry.name.as_str(), "namespace" | "netns") {
            known.push(&entry.name);
            let name = host.name_of(&entry.name);
            let message = format!("`{name}` is not needed");
            let problem = Problem::at(entry.place, message, "unknown key");
            reader.report(problem.help("remove it: link = {} gives every host its own namespace"));
        }
    }
    host.only(reader, &known);
}

fn cpus(reader: &mut Reader, host: &Section<'_>) -> Option<Vec<u32>> {
    let (entry, path) = host.entry("cpus")?;
    let Tree::Array(items) = &entry.node.tree else {
        reader.expected(&entry.node, &path, "a list of CPU numbers, such as [0, 1]");
        return None;
    };
    let mut cpus = Vec::new();
    for item in items {
        let cpu = reader.integer(item, &format!("{path}[]"), 0..=4095)?;
        // The range fits.
        let cpu = u32::try_from(cpu).unwrap_or_default();
        if cpus.contains(&cpu) {
            reader.report(Problem::at(
                item.place,
                format!("`{path}` names CPU {cpu} twice"),
                "the second",
            ));
        } else {
            cpus.push(cpu);
        }
    }
    if cpus.is_empty() {
        reader.advise(
            entry.node.place,
            format!("`{path}` is empty"),
            "expected at least one CPU number",
            "leave the key out to bind nothing",
        );
    }
    Some(cpus)
}

/// Reads the key `quota`, in CPUs.
pub(super) fn quota(reader: &mut Reader, section: &Section<'_>) -> Option<f64> {
    let (entry, path) = section.entry("quota")?;
    let quota = match &entry.node.tree {
        Tree::Integer(number) => *number as f64,
        Tree::Float(number) => *number,
        _ => {
            reader.expected(&entry.node, &path, "a number of CPUs, such as 0.5");
            return None;
        }
    };
    if (QUOTA_MIN..=4096.0).contains(&quota) {
        return Some(quota);
    }
    reader.report(Problem::at(
        entry.node.place,
        format!("`{path}` is out of range: {quota}"),
        format!("expected {QUOTA_MIN} to 4096 CPUs"),
    ));
    None
}

fn link(reader: &mut Reader, host: &Section<'_>) -> Option<LinkSpec> {
    let link = host.section(reader, "link")?;
    link.only(reader, &LINK_KEYS);
    let zero_to = Duration::ZERO..=LONGEST;
    let ns = |time: Option<Duration>| time.map_or(0, |time| time.as_nanos() as u64);
    let rtt = link.duration(reader, "rtt", zero_to.clone());
    // A wrong `rtt` is one mistake, not two.
    let known = rtt.is_some() || link.entry("rtt").is_none();
    let spec = LinkSpec {
        rtt_ns: ns(rtt),
        jitter_ns: ns(link.duration(reader, "jitter", zero_to)),
        loss: link.share(reader, "loss").unwrap_or(0.0),
        rate_bits_per_s: bit_rate(reader, &link),
    };
    if known
        && spec.jitter_ns > spec.rtt_ns
        && let Some((entry, path)) = link.entry("jitter")
    {
        let rtt = units::duration_text(Duration::from_nanos(spec.rtt_ns));
        reader.advise(
            entry.node.place,
            format!("`{path}` is more than the round-trip time"),
            format!("expected at most {rtt}"),
            "a packet cannot arrive before it is sent; raise `rtt` or lower `jitter`",
        );
    }
    Some(spec)
}

fn bit_rate(reader: &mut Reader, link: &Section<'_>) -> Option<u64> {
    let (entry, path) = link.entry("rate")?;
    let form = units::BIT_RATE_FORM;
    let rate = reader.quantity(&entry.node, &path, "link rate", form, units::bit_rate)?;
    if (8_000..=1_000_000_000_000).contains(&rate) {
        return Some(rate);
    }
    reader.report(Problem::at(
        entry.node.place,
        format!("`{path}` is out of range: {}", units::bit_rate_text(rate)),
        "expected 8kbit/s to 1000Gbit/s",
    ));
    None
}

fn settings(reader: &mut Reader, host: &Section<'_>) -> Vec<(String, String)> {
    let Some(section) = host.section(reader, "settings") else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    for entry in &section.table.entries {
        let name = &entry.name;
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !name.chars().all(good) || !name.starts_with("net.") || name.contains("..") {
            reader.advise(
                entry.place,
                format!("`{}` is not a host setting", shown(name)),
                "expected a name such as \"net.core.somaxconn\"",
                "only settings of the network exist per host; [sysctls] compares the others, \
                     which the whole machine shares",
            );
        }
        let value = match &entry.node.tree {
            Tree::Text(text) => text.clone(),
            Tree::Integer(number) => number.to_string(),
            _ => {
                let path = section.name_of(name);
                reader.expected(&entry.node, &path, "a whole number or a string");
                continue;
            }
        };
        settings.push((name.clone(), value));
    }
    settings
}

/// Checks an experiment whose hosts are namespaces.
pub(super) fn check_apart(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    if !experiment.hosts_are_apart() || experiment.hosts_are_machines() {
        return;
    }
    let help = "one host has `link`, `quota`, `access` or `settings`, so every host is a namespace, \
                and the load and every server must name theirs";
    let at = |path: &[&str]| {
        let place = top.place_of(path);
        place.unwrap_or_default()
    };
    for server in &experiment.servers {
        let name = server.name.as_str();
        if server.host.is_none() {
            let problem = Problem::at(
                at(&["servers", name]),
                format!("the server `{name}` has no host"),
                "expected host = \"…\"",
            );
            reader.report(problem.help(help));
        }
        if let Some(Upstream::Address(address)) = server
            .upstreams
            .iter()
            .find(|upstream| matches!(upstream, Upstream::Address(_)))
        {
            let place = at(&["servers", name, "upstreams"]);
            reader.report(outside(place, &address.to_string()));
        }
    }
    for (table, problem) in loads::without_host(top, experiment) {
        reader.advise(at(&table), problem.0, problem.1, help);
    }
    for subject in &experiment.subjects {
        if let Target::Address(address) = &subject.target {
            reader.report(outside(at(&["subjects", &subject.name]), address));
        }
    }
}

fn outside(place: Place, address: &str) -> Problem {
    Problem::at(
        place,
        format!("`{}` cannot be reached", shown(address)),
        "hosts with namespaces reach only each other",
    )
    .help("use a server of this experiment, or remove `link`, `quota`, `access` and `settings`")
}
