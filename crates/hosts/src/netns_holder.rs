//! The process that holds a topology's namespaces and wires.

use std::io::{self, BufRead, Write};

use net::namespace::{self, Namespace};

use super::holder_protocol::{HeldHost, HolderAnswer, HolderOrder};
use super::namespace::Inside;
use super::setting::{Machine, MakeError};
use super::{addresses, namespace as inside};
use crate::link::router::Addresses;
use crate::link::{Link, netem};
use agent::route::{DEVICE, Route};
use readings::{Access, HostSpec};
use readings::{LinkKind, LinkSpec};

const BRIDGE: &str = "wires";

/// What lives as long as the process does.
struct Wires {
    kind: LinkKind,
    users: Option<std::fs::File>,
    hosts: Vec<Inside>,
    /// The links of each host, as they were asked for.
    specs: Vec<LinkSpec>,
    link: Option<Link>,
}

impl Wires {
    /// Gives links that are the kernel's other rates: of hosts by their number, bits per second.
    fn set_rates(&self, rates: &[(usize, u64)]) -> io::Result<()> {
        if self.kind != LinkKind::Netem {
            return Err(io::Error::other("they have none"));
        }
        for &(number, rate) in rates {
            let (Some(host), Some(&spec)) = (self.hosts.get(number), self.specs.get(number)) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            let spec = LinkSpec {
                rate_bits_per_s: Some(rate),
                ..spec
            };
            let change = move |route: &mut Route, index: u32| {
                route.change_discipline(index, netem::KIND, |message| {
                    netem::options(&spec, message);
                })
            };
            let mut route = Route::open()?;
            let index = route.index(&wire(number))?;
            change(&mut route, index)?;
            inside::change_pair(host, change)?;
        }
        Ok(())
    }
}

/// The outer end of a host's pair of devices.
fn wire(number: usize) -> String {
    format!("wire{number}")
}

/// Makes hosts as it is told and keeps them until the input ends. Call it in a process of its own,
/// before there is a second thread; when the process ends, everything is gone.
///
/// # Errors
/// When its output is closed.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut wires = None;
    for line in input.lines() {
        let answer =
            carry_out(&line?, &mut wires).unwrap_or_else(|reason| HolderAnswer::Failed { reason });
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn carry_out(line: &str, wires: &mut Option<Wires>) -> Result<HolderAnswer, String> {
    use std::os::fd::AsRawFd;
    match serde_json::from_str(line).map_err(|e| format!("not an order: {e}"))? {
        HolderOrder::Build {
            hosts,
            kind,
            seed,
            link_cpus,
        } => {
            if wires.is_some() {
                return Err("the hosts are there already".into());
            }
            let built = match build(&hosts, kind, seed, &link_cpus) {
                Ok(built) => wires.insert(built),
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
            let wires = wires.as_mut().ok_or("there are no hosts")?;
            let set = match &mut wires.link {
                Some(link) => link.set_rates(rates),
                None => wires.set_rates(&rates),
            };
            set.map_err(|e| format!("the links keep their rate: {e}"))?;
            Ok(HolderAnswer::Done)
        }
        HolderOrder::Counters => {
            let link = wires.as_mut().and_then(|wires| wires.link.as_mut());
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
) -> Result<Wires, MakeError> {
    let machine = Machine::look(hosts);
    let users = leave_the_machine()?;
    let all: Vec<(String, Addresses)> = hosts
        .iter()
        .enumerate()
        .map(|(number, host)| (host.name.clone(), addresses(number)))
        .collect();
    let made = hosts
        .iter()
        .map(|host| inside::make(host, &all, &machine))
        .collect::<Result<Vec<_>, _>>()?;
    let kind = match wanted {
        Some(kind) => kind,
        None => choose(hosts),
    };
    let mut link = None;
    if kind == LinkKind::UserSpace {
        let devices = made
            .iter()
            .zip(&all)
            .map(|(host, (_, addresses))| inside::add_tun(host, *addresses))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|e| {
                format!(
                    "these links are made with TUN devices, which /dev/net/tun does not give: {e}; \
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
        join(hosts, &made, &all, kind).map_err(|e| format!("cannot wire the hosts: {e}"))?;
    }
    Ok(Wires {
        kind,
        users,
        hosts: made,
        specs: hosts
            .iter()
            .map(|host| host.link.unwrap_or_default())
            .collect(),
        link,
    })
}

/// Enters a network namespace of its own, so that no wire is in the machine's; an ordinary user
/// gets the privilege for that from a namespace of users.
fn leave_the_machine() -> Result<Option<std::fs::File>, String> {
    let failed = |e: io::Error| {
        format!(
            "hosts are network namespaces, which this system does not let this user make: {e}; run \
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

/// What carries the packets: nothing is shaped without need, and not by this program where the
/// kernel can do it and do the same.
fn choose(hosts: &[HostSpec]) -> LinkKind {
    let external = hosts.iter().any(|host| host.access == Access::External);
    if !external && hosts.iter().all(|host| host.link.is_none()) {
        return LinkKind::Direct;
    }
    let links: Vec<LinkSpec> = hosts.iter().filter_map(|host| host.link).collect();
    if !external && links.iter().all(netem::can_make) && kernel_has_netem() {
        return LinkKind::Netem;
    }
    LinkKind::UserSpace
}

/// Tries netem on this namespace's `lo`, which nobody uses.
fn kernel_has_netem() -> bool {
    let tried = || {
        let mut route = Route::open()?;
        let index = route.index("lo")?;
        route.discipline(index, netem::KIND, |message| {
            netem::options(&LinkSpec::default(), message);
        })
    };
    tried().is_ok()
}

/// Joins hosts by pairs of virtual Ethernet devices and a bridge.
fn join(
    hosts: &[HostSpec],
    made: &[Inside],
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
                netem::options(&spec, message);
            })
        }
    };
    let mut route = Route::open()?;
    route.add_bridge(BRIDGE)?;
    let bridge = route.index(BRIDGE)?;
    route.up(bridge)?;
    for (number, ((spec, host), (_, addresses))) in hosts.iter().zip(made).zip(all).enumerate() {
        let wire = wire(number);
        route.add_pair(&wire, DEVICE, host.net())?;
        let index = route.index(&wire)?;
        route.plug(index, bridge)?;
        let spec = spec.link.unwrap_or_default();
        shape(spec)(&mut route, index)?;
        route.up(index)?;
        inside::set_up_pair(host, *addresses, shape(spec))?;
    }
    Ok(())
}
