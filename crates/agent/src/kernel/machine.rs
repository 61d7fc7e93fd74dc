//! The description of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Kernel settings that change results.
const SYSCTLS: [&str; 12] = [
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_syncookies",
    "fs/nr_open",
    "kernel/io_uring_disabled",
];

/// Kernel, CPUs, memory and the settings that change results.
pub fn describe() -> Value {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_string());
    let sysctls: BTreeMap<String, String> = SYSCTLS
        .iter()
        .filter_map(|name| Some((name.replace('/', "."), read(format!("/proc/sys/{name}"))?)))
        .collect();
    json!({
        "host": read("/proc/sys/kernel/hostname"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "kernel_build": read("/proc/sys/kernel/version"),
        "architecture": std::env::consts::ARCH,
        "cpu": model,
        "cpus": net::os::allowed_cpus().unwrap_or_default(),
        "memory": read("/proc/meminfo").and_then(|m| m.lines().next().map(str::to_string)),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "mitigations": mitigations(),
        "io_uring": net::uring_unavailable().unwrap_or("available"),
        "sysctls": sysctls,
    })
}

/// A file's text without the space around it.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn mitigations() -> BTreeMap<String, String> {
    let entries = fs::read_dir("/sys/devices/system/cpu/vulnerabilities");
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, read(entry.path())?)))
        .collect()
}
