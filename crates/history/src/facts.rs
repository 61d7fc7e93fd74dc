//! The settings and machines of a run, as flat lists of names and values.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Names and values, such as `load.connections` and `64`.
pub type Facts = BTreeMap<String, String>;

/// Parts of an experiment that do not change the measurement: how often it is repeated, what is
/// concluded, and what it is called.
const NOT_MEASURED: [&str; 14] = [
    "name",
    "title",
    "question",
    "published",
    "quick",
    "gates",
    "design.blocks",
    "design.retries",
    "design.within",
    "design.matters",
    "design.matters_latency",
    "design.matters_failures",
    "design.max_error",
    "design.bottleneck",
];

/// The parts of a machine's description that can change results. The name is one of them, for
/// absolute figures. Which CPUs load and servers had is not: where the experiment does not say, they
/// are drawn anew for each block.
const OF_MACHINE: [&str; 9] = [
    "host",
    "cpu",
    "architecture",
    "kernel",
    "clocksource",
    "io_uring",
    "mitigations",
    "sysctls",
    "cpus",
];

pub(crate) fn digest(facts: &Facts) -> String {
    let mut hash = Sha256::new();
    for (name, value) in facts {
        for text in [name, value] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let bytes = hash.finalize();
    bytes[..6].iter().map(|b| format!("{b:02x}")).collect()
}

/// The facts of an experiment file; empty if it cannot be read.
pub(crate) fn experiment_facts(text: &str) -> Facts {
    let mut facts = Facts::new();
    let Ok(table) = text.parse::<toml::Table>() else {
        return facts;
    };
    if let Ok(value) = serde_json::to_value(table) {
        flatten("", &value, &mut facts);
    }
    let is_measured = |name: &str| {
        let within = |part: &str| {
            let rest = name.strip_prefix(part);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        !NOT_MEASURED.iter().any(|part| within(part))
    };
    facts.retain(|name, _| is_measured(name));
    facts
}

/// The facts of `hosts.json`: this machine, the run's other machines under the names of their
/// hosts, and the links between namespaces.
pub(crate) fn machine_facts(hosts: &Value) -> Facts {
    let mut facts = Facts::new();
    add_machine("", &hosts["local"], &mut facts);
    if let Some(machines) = hosts["machines"].as_object() {
        for (name, host) in machines {
            add_machine(&format!("{name}."), &host["machine"], &mut facts);
        }
    }
    flatten("links", &hosts["apart"]["links"], &mut facts);
    facts
}

/// Removes the names of the machines from the facts and returns them: `vm`, or `vm, db`.
pub(crate) fn take_names(facts: &mut Facts) -> String {
    let is_name = |key: &str| key == "host" || key.ends_with(".host");
    let names: Vec<String> = facts
        .iter()
        .filter(|(key, _)| is_name(key))
        .map(|(_, name)| name.clone())
        .collect();
    facts.retain(|key, _| !is_name(key));
    names.join(", ")
}

fn add_machine(prefix: &str, document: &Value, facts: &mut Facts) {
    for part in OF_MACHINE {
        if let Some(value) = document.get(part) {
            flatten(&format!("{prefix}{part}"), value, facts);
        }
    }
    // It differs by a few kB from boot to boot.
    if let Some(gib) = document["memory"].as_str().and_then(gib) {
        facts.insert(format!("{prefix}memory"), format!("{gib} GiB"));
    }
}

/// The memory in whole GiB, from a line such as `MemTotal:  24684092 kB`.
fn gib(text: &str) -> Option<u64> {
    let kb: f64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some((kb / f64::from(1 << 20)).round() as u64)
}

fn flatten(name: &str, value: &Value, facts: &mut Facts) {
    match value {
        Value::Null => {}
        Value::Object(parts) => {
            for (part, value) in parts {
                let name = match name {
                    "" => part.clone(),
                    name => format!("{name}.{part}"),
                };
                flatten(&name, value, facts);
            }
        }
        Value::String(text) => {
            facts.insert(name.to_owned(), text.clone());
        }
        other => {
            facts.insert(name.to_owned(), other.to_string());
        }
    }
}

/// A machine in words: `vm: AMD EPYC, 2 CPUs, 24 GiB, Linux 6.18`.
pub(crate) fn machine_words(name: &str, facts: &Facts) -> String {
    let cpus = facts.get("cpus").map(|list| {
        let count = list.split(',').count();
        readings::text::counted(count, "CPU")
    });
    let parts = [
        facts.get("cpu").cloned(),
        cpus,
        facts.get("memory").cloned(),
        facts.get("kernel").map(|kernel| format!("Linux {kernel}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match (name, parts.is_empty()) {
        ("", true) => "unknown machine".to_owned(),
        (name, true) => name.to_owned(),
        ("", false) => parts.join(", "),
        (name, false) => format!("{name}: {}", parts.join(", ")),
    }
}

/// A fact that differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    pub name: String,
    /// Absent if the first run lacks it.
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Difference {
    /// `kernel 6.1 -> 6.18`.
    pub fn words(&self) -> String {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        format!(
            "{} {} -> {}",
            self.name,
            shown(&self.before),
            shown(&self.after)
        )
    }
}

/// The differences between two lists of facts, by name.
pub(crate) fn differences(before: &Facts, after: &Facts) -> Vec<Difference> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differ = names
        .into_iter()
        .filter(|n| before.get(*n) != after.get(*n));
    differ
        .map(|name| Difference {
            name: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_and_under_which_title_is_no_other_experiment() {
        let one =
            "title = \"a\"\n[design]\nblocks = 5\nwindow = \"2s\"\n[load]\nconnections = 64\n";
        let more = one
            .replace("blocks = 5", "blocks = 30")
            .replace("\"a\"", "\"b\"");
        assert_eq!(experiment_facts(one), experiment_facts(&more));
        let other = one.replace("64", "128");
        let differ = differences(&experiment_facts(one), &experiment_facts(&other));
        assert_eq!(differ[0].words(), "load.connections 64 -> 128");
        assert_ne!(
            digest(&experiment_facts(one)),
            digest(&experiment_facts(&other))
        );
        assert_eq!(experiment_facts("no = = toml"), Facts::new());
    }

    #[test]
    fn a_machine_is_its_hardware_and_kernel() {
        let hosts = |kernel: &str, kb: u64| {
            serde_json::json!({"local": {"host": "vm", "kernel": kernel, "cpu": "X", "cpus": [0, 1],
                "memory": format!("MemTotal:  {kb} kB"), "versions": {"nginx": "1"}},
                "machines": {"far": {"ssh": "x", "machine": {"kernel": "6.1", "host": "f"}}}})
        };
        let mut facts = machine_facts(&hosts("6.18", 24_684_092));
        assert_eq!(facts, machine_facts(&hosts("6.18", 24_684_100)));
        assert_ne!(facts, machine_facts(&hosts("6.19", 24_684_092)));
        assert_eq!(facts["far.kernel"], "6.1");
        assert_eq!(take_names(&mut facts), "f, vm");
        assert_eq!(take_names(&mut facts), "");
        assert_eq!(
            machine_words("vm", &facts),
            "vm: X, 2 CPUs, 24 GiB, Linux 6.18"
        );
        assert_eq!(machine_words("", &Facts::new()), "unknown machine");
    }
}
