//! Hosts and the links between them, as they are declared, and what links counted.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// By which addresses a host reaches the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    #[default]
    Internal,
    /// By external ones, which are translated on the way, as from outside of a data centre.
    External,
}

/// A host to be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its name, by which the others know it.
    pub name: String,
    /// The CPUs of its programs; empty for all.
    pub cpus: Vec<u32>,
    /// How many CPUs' time its programs may use together, such as 0.5; `None` for no bound.
    pub quota: Option<f64>,
    /// What lies between it and the others; `None` for nothing.
    pub link: Option<LinkSpec>,
    /// How it reaches the others.
    pub access: Access,
    /// Settings of the kernel's network, such as `net.core.somaxconn`, and their values.
    pub settings: Vec<(String, String)>,
    /// How it is reached, if it is another machine than this one.
    pub reach: Option<Reach>,
    /// A `weigh` for that machine, where it needs another one than this.
    pub binary: Option<PathBuf>,
    /// The address by which other machines reach its servers.
    pub address: Option<IpAddr>,
}

impl HostSpec {
    /// Whether it is reached through a pipe, as another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.reach.is_some()
    }

    /// The name that it was declared by: its own, or that of a preset for several hosts.
    pub fn declared_name(&self) -> &str {
        match &self.reach {
            Some(Reach::Slurm(member)) => &member.preset,
            Some(Reach::Kubernetes(member)) => &member.preset,
            Some(Reach::Nomad(member)) => &member.preset,
            _ => &self.name,
        }
    }

    /// Whether it is the first host of those that it was declared with.
    pub fn is_first(&self) -> bool {
        match &self.reach {
            Some(Reach::Slurm(member)) => member.number == 1,
            Some(Reach::Kubernetes(member)) => member.number == 1,
            Some(Reach::Nomad(member)) => member.number == 1,
            _ => true,
        }
    }
}

/// What opens a pipe to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The system's `ssh`, with what it calls the machine, such as `user@host`.
    Ssh(String),
    /// A command that runs `weigh agent` there.
    Exec(Vec<String>),
    Podman(Podman),
    /// A node of an allocation.
    Slurm(Member<Slurm>),
    Kubernetes(Member<Kubernetes>),
    /// An allocation of a job.
    Nomad(Member<Nomad>),
}

impl Reach {
    /// The key that declares it.
    pub fn key(&self) -> &'static str {
        match self {
            Reach::Ssh(_) => "ssh",
            Reach::Exec(_) => "exec",
            Reach::Podman(_) => "podman",
            Reach::Slurm(_) => "slurm",
            Reach::Kubernetes(_) => "kubernetes",
            Reach::Nomad(_) => "nomad",
        }
    }
}

/// One of the hosts that a preset stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member<T> {
    /// The name in the experiment that stands for all of them.
    pub preset: String,
    /// Its number among them, from 1.
    pub number: u32,
    /// How many there are; `None` for one that has the preset's own name.
    pub count: Option<u32>,
    pub spec: T,
}

/// A container that runs, or one that is made from an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Podman {
    pub source: ContainerSource,
    /// Further options of `podman run` or `podman exec`.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerSource {
    Container(String),
    Image(String),
}

/// Nodes of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slurm {
    pub partition: Option<String>,
    /// Further options of `salloc`.
    pub options: Vec<String>,
}

/// Pods of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kubernetes {
    pub image: String,
    pub namespace: Option<String>,
    /// Further options of `kubectl run`.
    pub options: Vec<String>,
}

/// Running allocations of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nomad {
    pub job: String,
    pub task: Option<String>,
    pub namespace: Option<String>,
}

/// The largest IP packet on a link, as on Ethernet.
pub const PACKET_BYTES_MAX: usize = 1_500;

/// What lies between a host and the middle, where all links meet. Two hosts that talk have both of
/// their links between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSpec {
    /// Added to every round trip, half of it each way, ns.
    pub rtt_ns: u64,
    /// How far a round trip may lie from that, ns: each way's share is drawn evenly from plus and
    /// minus half of it. Packets do not overtake each other.
    pub jitter_ns: u64,
    /// The share of packets that is lost, each way.
    pub loss: f64,
    /// Bits of IP packets per second, each way; `None` for as many as the machine can carry.
    pub rate_bits_per_s: Option<u64>,
}

impl LinkSpec {
    /// This link and another one, as one link: what lies between the two hosts that they belong to.
    /// It has the rate of the slower one.
    pub fn with(self, other: LinkSpec) -> LinkSpec {
        let rates = [self.rate_bits_per_s, other.rate_bits_per_s];
        LinkSpec {
            rtt_ns: self.rtt_ns.saturating_add(other.rtt_ns),
            jitter_ns: self.jitter_ns.saturating_add(other.jitter_ns),
            loss: 1.0 - (1.0 - self.loss) * (1.0 - other.loss),
            rate_bits_per_s: rates.into_iter().flatten().min(),
        }
    }

    /// The longest queue before the rate's bottleneck, bytes: 50 ms, and at least 32 packets. What
    /// does not fit is dropped, as at a router.
    pub fn queue_bytes(rate_bits_per_s: u64) -> u64 {
        (rate_bits_per_s / 8 / 20).max(32 * PACKET_BYTES_MAX as u64)
    }
}

/// What carries the packets between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Pairs of virtual Ethernet devices and a bridge, which add nothing.
    Direct,
    /// The same, shaped by the kernel's netem.
    Netem,
    /// TUN devices and a thread of this program.
    UserSpace,
}

impl LinkKind {
    /// A sentence for the reader of a result.
    pub fn sentence(self) -> &'static str {
        match self {
            LinkKind::Direct => "hosts are joined by a bridge without delay",
            LinkKind::Netem => "links are the kernel's netem",
            LinkKind::UserSpace => "links are made in user space: TUN devices and one thread",
        }
    }
}

/// What became of the packets of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionCounters {
    pub packets: u64,
    /// Their bytes, IP header and all.
    pub bytes: u64,
    /// Of the packets, those that it lost because it shall.
    pub lost: u64,
    /// Of the packets, those that found its queue full.
    pub dropped: u64,
}

/// What became of a host's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    pub up: DirectionCounters,
    pub down: DirectionCounters,
    /// Packets that were handed to the host.
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// Packets from the host that went nowhere: not IPv4, or to an address that no host has.
    pub unroutable: u64,
    /// The sum of how late packets were handed to the host, ns.
    pub late_ns_sum: u64,
    pub late_ns_max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_links_in_a_row_are_one_with_both_round_trips_and_losses_and_the_lower_rate() {
        let near = LinkSpec {
            rtt_ns: 2,
            loss: 0.5,
            ..LinkSpec::default()
        };
        let far = LinkSpec {
            rtt_ns: 20,
            loss: 0.1,
            rate_bits_per_s: Some(8_000),
            ..LinkSpec::default()
        };
        let both = near.with(far);
        assert_eq!((both.rtt_ns, both.rate_bits_per_s), (22, Some(8_000)));
        assert!((both.loss - 0.55).abs() < 1e-12, "{both:?}");
        let slower = LinkSpec {
            rate_bits_per_s: Some(1_000),
            ..LinkSpec::default()
        };
        assert_eq!(far.with(slower).rate_bits_per_s, Some(1_000));
        assert_eq!(near.with(LinkSpec::default()), near);
        // What loses everything does so behind any other link.
        let cut = LinkSpec {
            loss: 1.0,
            ..LinkSpec::default()
        };
        assert_eq!(cut.with(near).loss, 1.0);
    }
}
