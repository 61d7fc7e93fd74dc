//! The orders and answers between a [`super::Topology`] and the process that holds its wires, a JSON
//! document a line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SettingError;
use readings::HostSpec;
use readings::{LinkCounters, LinkKind};

/// An order; each gets one answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub(super) enum HolderOrder {
    /// Make hosts and links. The first order, and given once.
    Build {
        /// The hosts.
        hosts: Vec<HostSpec>,
        /// What shall carry the packets; `None` for what the machine can do.
        kind: Option<LinkKind>,
        /// Seed of loss and jitter.
        seed: u64,
        /// CPUs of the links' thread; empty for all.
        link_cpus: Vec<u32>,
    },
    /// Tell what has become of packets.
    Counters,
    /// Change rates of links that have one.
    Rates {
        /// Host, by its place in the order in which they were asked for, and bits per second.
        rates: Vec<(usize, u64)>,
    },
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub(super) enum HolderAnswer {
    /// The hosts are there.
    Built {
        /// Version of the program; must be the caller's.
        version: String,
        /// What carries the packets.
        kind: LinkKind,
        /// The descriptor of the namespace of users, where there is one.
        users: Option<i32>,
        /// The hosts, in the order in which they were asked for.
        hosts: Vec<HeldHost>,
    },
    /// What has become of packets, by host; empty where the kernel carries them.
    Counters {
        /// The counters.
        links: Vec<LinkCounters>,
    },
    /// It was carried out.
    Done,
    /// A setting of a host is a mistake.
    Setting {
        /// Which, and why.
        error: SettingError,
    },
    /// It could not be carried out.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A host that was made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HeldHost {
    /// Descriptors of its namespaces, in the order in which they are entered.
    pub(super) namespaces: Vec<i32>,
    /// The kernel's settings in it.
    pub(super) settings: BTreeMap<String, String>,
    /// What could not be done for it.
    pub(super) warnings: Vec<String>,
}
