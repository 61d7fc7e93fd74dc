//! The protocol between a [`super::Topology`] and its `netns-holder` process: one JSON document per
//! line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::setting::SettingError;
use readings::{HostSpec, LinkCounters, LinkKind, LinkSpec};

/// An order; each has one answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub(crate) enum HolderOrder {
    /// Create hosts and links; once, and first.
    Build {
        hosts: Vec<HostSpec>,
        /// What carries the packets; `None` to choose by what the machine can do.
        kind: Option<LinkKind>,
        /// Seed of loss and jitter.
        seed: u64,
        /// CPUs of the link thread; empty for all.
        link_cpus: Vec<u32>,
    },
    /// Report the link counters.
    Counters,
    /// Change the rates of links that have one.
    Rates {
        /// Host number, in the order of `Build`, and bits per second.
        rates: Vec<(usize, u64)>,
    },
    /// Change the link of a host.
    Change {
        /// Host number, in the order of `Build`.
        host: usize,
        link: LinkSpec,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub(crate) enum HolderAnswer {
    /// The hosts were created.
    Built {
        /// Version of the program, which has to be the caller's.
        version: String,
        /// What carries the packets.
        kind: LinkKind,
        /// Descriptor of the user namespace, if one was needed.
        users: Option<i32>,
        /// The hosts, in the order of `Build`.
        hosts: Vec<HeldHost>,
    },
    /// Counters by host; empty where the kernel carries the packets.
    Counters { links: Vec<LinkCounters> },
    /// The order succeeded.
    Done,
    /// A setting of a host is invalid.
    Setting {
        /// Which, and why.
        error: SettingError,
    },
    /// The order failed.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A created host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeldHost {
    /// Descriptors of its namespaces, in the order in which they are entered.
    pub(crate) namespaces: Vec<i32>,
    /// Its sysctls.
    pub(crate) settings: BTreeMap<String, String>,
    /// Non-fatal failures.
    pub(crate) warnings: Vec<String>,
}
