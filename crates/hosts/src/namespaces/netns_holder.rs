//! The `netns-holder` process, which holds a topology's namespaces and links.

use std::io::{self, BufRead, Write};

use net::namespace::{self, Namespace};

use super::holder_protocol::{HeldHost, HolderAnswer, HolderOrder};
use super::namespace as host_namespace;
use super::namespace::HostNamespaces;
use super::setting::{Machine, MakeError};
use crate::addresses;
use crate::namespaces::link::Link;
use crate::namespaces::link::router::Addresses;
use agent::netem;
use agent::route::{DEVICE, Route};
use readings::{Access, HostSpec, LinkKind, LinkSpec};

const BRIDGE: &str = "wires";

struct HeldTopology {
    kind: LinkKind,
    users: Option<std::fs::File>,
    hosts: Vec<HostNamespaces>,
    /// The declared links, by host.
    specs: Vec<LinkSpec>,
    link: Option<Link>,
}

impl HeldTopology {
    /// Changes the rates of netem links, by host number, bits per second.
    fn set_rates(&self, rates: &[(usize, u64)]) -> io::Result<()> {
        if self.kind != LinkKind::Netem {
            return Err(io::Error::other("they have no rate"));
        }
        for &(number, rate) in rates {
            let Some(&spec) = self.specs.get(number) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            self.change(
                number,
                LinkSpec {
                    rate_bits_per_s: Some(rate),
                    ..spec
                },
            )?;
        }
        Ok(())
    }

    /// Changes the netem link of a host.
    fn change(&self, number: usize, spec: LinkSpec) -> io::Result<()> {
        if self.kind != LinkKind::Netem {
            return Err(io::Error::other("the kernel's bridge is no link"));
        }
        let host = self.hosts.get(number).ok_or(io::ErrorKind::NotFound)?;
        let change = move |route: &mut Route, index: u32| {
            route.change_discipline(index, netem::KIND, |message| {
                netem::options(&spec, netem::ETHERNET_HEADER, message);
            })
        };
        let mut route = Route::open()?;
        let index = route.index(&wire(number))?;
        change(&mut route, index)?;
        host_namespace::change_pair(host, change)
    }
}

/// The bridge's end of a host's veth pair.
fn wire(number: usize) -> String {
    format!("wire{number}")
}

/// Creates hosts as ordered and holds them until the input ends. Call it in a process of its own
/// with a single thread; when the process ends, everything vanishes.
///
/// # Errors
/// When its output is closed.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut held = None;
    for line in input.lines() {
        let answer =
            carry_out(&line?, &mut held).unwrap_or_else(|reason| HolderAnswer::Failed { reason });
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn carry_out(line: &str, held: &mut Option<HeldTopology>) -> Result<HolderAnswer, String> {
    use std::os::fd::AsRawFd;
    match serde_json::from_str(line).map_err(|e| format!("not an order: {e}"))? {
        HolderOrder::Build {
            hosts,
            kind,
            seed,
            link_cpus,
        } => {
            if held.is_some() {
                return Err("the hosts exist already".into());
            }
            let built = match build(&hosts, kind, seed, &link_cpus) {
                Ok(built) => held.insert(built),
                Err(MakeError::Setting(error)) => return Ok(HolderAnswer::Setting { error }),
                Err(MakeError::Failed(why)) => return Err(why),
            };
            Ok(HolderAnswer::Built {
                version: env!("CARGO_PKG_VERSION").to_string(),
                kind: built.kind,
                users: built.users.as_ref().map(AsRawFd::as_raw_fd),
                hosts: built
                    .hosts
                    .iter()
                    .map(|host| HeldHost {
                        namespaces: host.namespaces.iter().map(AsRawFd::as_raw_fd).collect(),
                        settings: host.settings.clone(),
                        warnings: host.warnings.clone(),
                    })
                    .collect(),
            })
        }
        HolderOrder::Rates { rates } => {
            let held = held.as_mut().ok_or("there are no hosts")?;
            let set = match &mut held.link {
                Some(link) => link.set_rates(rates),
                None => held.set_rates(&rates),
            };
            set.map_err(|e| format!("cannot change the rates of links: {e}"))?;
            Ok(HolderAnswer::Done)
        }
        HolderOrder::Change { host, link: spec } => {
            let held = held.as_mut().ok_or("there are no hosts")?;
            let changed = match &mut held.link {
                Some(link) => link.change(host, spec),
                None => held.change(host, spec),
            };
            changed.map_err(|e| format!("cannot change the link of a host: {e}"))?;
            Ok(HolderAnswer::Done)
        }
        HolderOrder::Counters => {
            let link = held.as_mut().and_then(|held| held.link.as_mut());
            let links = link.map(Link::counters).transpose();
            Ok(HolderAnswer::Counters {
                links: links.map_err(|e| e.to_string())?.unwrap_or_default(),
            })
        }
    }
}

fn build(
    hosts: &[HostSpec],
    wanted: Option<LinkKind>,
    seed: u64,
    link_cpus: &[u32],
) -> Result<HeldTopology, MakeError> {
    let machine = Machine::read(hosts);
    let users = enter_link_network()?;
    let all: Vec<(String, Addresses)> = hosts
        .iter()
        .enumerate()
        .map(|(number, host)| (host.name.clone(), addresses(number)))
        .collect();
    let namespaces = hosts
        .iter()
        .map(|host| host_namespace::make(host, &all, &machine))
        .collect::<Result<Vec<_>, _>>()?;
    let kind = match wanted {
        Some(kind) => kind,
        None => choose(hosts),
    };
    let mut link = None;
    if kind == LinkKind::UserSpace {
        let devices = namespaces
            .iter()
            .zip(&all)
            .map(|(host, (_, addresses))| host_namespace::add_tun(host, *addresses))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|e| {
                format!(
                    "these links need TUN devices, and /dev/net/tun cannot be opened: {e}; \
                     run as root, or give this user access to /dev/net/tun"
                )
            })?;
        let ends: Vec<_> = all
            .iter()
            .zip(hosts)
            .map(|((_, addresses), host)| (*addresses, host.link.unwrap_or_default()))
            .collect();
        let started = Link::start(devices, &ends, seed, link_cpus);
        link = Some(started.map_err(|e| format!("cannot start the links: {e}"))?);
    } else {
        join(hosts, &namespaces, &all, kind)
            .map_err(|e| format!("cannot connect the hosts: {e}"))?;
    }
    Ok(HeldTopology {
        kind,
        users,
        hosts: namespaces,
        specs: hosts
            .iter()
            .map(|host| host.link.unwrap_or_default())
            .collect(),
        link,
    })
}

/// Enters a new network namespace for the links; an ordinary user enters a user namespace first,
/// for the privilege.
fn enter_link_network() -> Result<Option<std::fs::File>, String> {
    let failed = |e: io::Error| {
        format!(
            "hosts are network namespaces, which this user may not create here: {e}; run \
             as root, or allow user namespaces (sysctl user.max_user_namespaces, and on some \
             systems kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns)"
        )
    };
    if namespace::enter_new(&[Namespace::Net]).is_ok() {
        return Ok(None);
    }
    let (user, group) = namespace::user_and_group();
    namespace::enter_new(&[Namespace::User]).map_err(failed)?;
    namespace::keep_user(user, group).map_err(failed)?;
    namespace::enter_new(&[Namespace::Net]).map_err(failed)?;
    Namespace::User.current().map(Some).map_err(failed)
}

/// Chooses the link kind: no shaping unless needed, and netem if the kernel has it and it can do
/// the same as user space.
fn choose(hosts: &[HostSpec]) -> LinkKind {
    let external = hosts.iter().any(|host| host.access == Access::External);
    if !external && hosts.iter().all(|host| host.link.is_none()) {
        return LinkKind::Direct;
    }
    let links: Vec<LinkSpec> = hosts.iter().filter_map(|host| host.link).collect();
    if !external && links.iter().all(netem::supports) && kernel_has_netem() {
        return LinkKind::Netem;
    }
    LinkKind::UserSpace
}

/// Tries netem on this namespace's unused `lo`.
fn kernel_has_netem() -> bool {
    let tried = || {
        let mut route = Route::open()?;
        let index = route.index("lo")?;
        route.discipline(index, netem::KIND, |message| {
            netem::options(&LinkSpec::default(), netem::ETHERNET_HEADER, message);
        })
    };
    tried().is_ok()
}

/// Joins hosts by veth pairs and a bridge.
fn join(
    hosts: &[HostSpec],
    namespaces: &[HostNamespaces],
    all: &[(String, Addresses)],
    kind: LinkKind,
) -> io::Result<()> {
    let shape = |spec: LinkSpec| {
        move |route: &mut Route, index: u32| {
            if kind != LinkKind::Netem {
                return Ok(());
            }
            route.single_packets(index)?;
            route.discipline(index, netem::KIND, |message| {
                netem::options(&spec, netem::ETHERNET_HEADER, message);
            })
        }
    };
    let mut route = Route::open()?;
    route.add_bridge(BRIDGE)?;
    let bridge = route.index(BRIDGE)?;
    route.up(bridge)?;
    for (number, ((spec, host), (_, addresses))) in
        hosts.iter().zip(namespaces).zip(all).enumerate()
    {
        let wire = wire(number);
        route.add_pair(&wire, DEVICE, host.net())?;
        let index = route.index(&wire)?;
        route.plug(index, bridge)?;
        let spec = spec.link.unwrap_or_default();
        shape(spec)(&mut route, index)?;
        route.up(index)?;
        host_namespace::set_up_pair(host, *addresses, shape(spec))?;
    }
    Ok(())
}
