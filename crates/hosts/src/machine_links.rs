//! Links between hosts that are machines. The kernel's netem makes them: each host's agent holds
//! back and drops the packets that go from it to the others.

use std::collections::BTreeMap;
use std::net::IpAddr;

use agent::AgentError;
use agent::wire::{Order, PeerLink};
use readings::{HostSpec, LinkKind, LinkSpec};

use crate::host::{Host, HostsByName};
use crate::links::Links;

struct LinkedHost {
    name: String,
    address: IpAddr,
    declared: Option<LinkSpec>,
    /// Instead of the declared one.
    changed: Option<LinkSpec>,
}

/// The links between machines, of which at least one is declared.
pub struct MachineLinks {
    hosts: Vec<LinkedHost>,
    /// Factor on the declared rates.
    factor: f64,
    /// What the agents have carried out last, by host.
    made: BTreeMap<String, Vec<PeerLink>>,
}

impl MachineLinks {
    /// The links between hosts, with their addresses; `None` if none has one. Hosts whose address is
    /// not known have no links.
    pub fn of<'h>(hosts: impl IntoIterator<Item = (&'h HostSpec, Option<IpAddr>)>) -> Option<Self> {
        let hosts: Vec<LinkedHost> = hosts
            .into_iter()
            .filter_map(|(spec, address)| {
                Some(LinkedHost {
                    name: spec.name.clone(),
                    address: address?,
                    declared: spec.link,
                    changed: None,
                })
            })
            .collect();
        let has_links = hosts.iter().any(|host| host.declared.is_some());
        has_links.then(|| Self {
            hosts,
            factor: 1.0,
            made: BTreeMap::new(),
        })
    }

    /// The present link of a host.
    fn link(&self, host: &LinkedHost) -> Option<LinkSpec> {
        let link = host.changed.or(host.declared)?;
        let scaled = |rate: u64| ((rate as f64 * self.factor) as u64).max(1);
        Some(LinkSpec {
            rate_bits_per_s: link.rate_bits_per_s.map(scaled),
            ..link
        })
    }

    /// What lies between a host and each other one, if one of them has a link.
    fn peers(&self, host: &LinkedHost) -> Vec<PeerLink> {
        let others = self.hosts.iter().filter(|other| other.name != host.name);
        let linked = others.filter_map(|other| {
            let link = match (self.link(host), self.link(other)) {
                (None, None) => return None,
                (Some(one), Some(other)) => one.with(other),
                (one, other) => one.or(other)?,
            };
            Some(PeerLink {
                host: other.name.clone(),
                address: other.address,
                link,
            })
        });
        linked.collect()
    }

    /// Has the agents make the links as they are now. Returns the hosts where that fails.
    pub(crate) fn make<H: Host + ?Sized>(
        &mut self,
        hosts: &mut BTreeMap<String, Box<H>>,
    ) -> Vec<(String, AgentError)> {
        let mut failed = Vec::new();
        let mut networks: BTreeMap<String, String> = BTreeMap::new();
        let all = self.hosts.iter();
        let all = all.map(|host| (host.name.clone(), host.address, self.peers(host)));
        let all: Vec<(String, IpAddr, Vec<PeerLink>)> = all.collect();
        for (name, address, peers) in all {
            if peers.is_empty() {
                continue;
            }
            let Some(host) = hosts.get_mut(&name) else {
                continue;
            };
            let made = host.agent().and_then(|agent| {
                if let Some(other) = networks.insert(agent.network().to_owned(), name.clone()) {
                    return Err(AgentError::Failed(format!(
                        "it is in the same network namespace as host `{other}`, and links need one \
                         for each host"
                    )));
                }
                if self.made.get(&name) == Some(&peers) {
                    return Ok(());
                }
                // If that fails, it is not known what is there.
                self.made.remove(&name);
                let order = Order::PeerLinks {
                    address,
                    peers: peers.clone(),
                };
                agent.ask(&order).map(drop)
            });
            match made {
                Ok(()) => drop(self.made.insert(name, peers)),
                Err(error) => failed.push((name, error)),
            }
        }
        failed
    }

    /// The same. Fails where the first host does.
    fn remake(&mut self, hosts: &mut HostsByName) -> Result<(), AgentError> {
        match self.make(hosts).into_iter().next() {
            None => Ok(()),
            Some((host, AgentError::Failed(why))) => {
                Err(AgentError::Failed(format!("host `{host}`: {why}")))
            }
            // It names the host.
            Some((_, lost)) => Err(lost),
        }
    }
}

impl Links for MachineLinks {
    fn kind(&self) -> LinkKind {
        LinkKind::Netem
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn late(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn scale_rates(&mut self, hosts: &mut HostsByName, factor: f64) -> Result<(), AgentError> {
        self.factor = factor;
        self.remake(hosts)
    }

    fn change(
        &mut self,
        hosts: &mut HostsByName,
        host: &str,
        spec: Option<LinkSpec>,
    ) -> Result<(), AgentError> {
        let found = self.hosts.iter().position(|one| one.name == host);
        let none = || AgentError::Failed(format!("there is no host `{host}`"));
        let number = found.ok_or_else(none)?;
        let before = std::mem::replace(&mut self.hosts[number].changed, spec);
        let made = self.remake(hosts);
        if made.is_err() && spec.is_some() {
            // It may have been changed on one of its sides. The first failure is the one to report.
            self.hosts[number].changed = before;
            let _ = self.remake(hosts);
        }
        made
    }

    /// The agents hold them.
    fn are_lost(&mut self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, link: Option<LinkSpec>) -> HostSpec {
        HostSpec {
            name: name.to_owned(),
            link,
            ..HostSpec::default()
        }
    }

    fn links(hosts: &[HostSpec]) -> Option<MachineLinks> {
        let address = |number: usize| Some(IpAddr::from([10, 0, 0, number as u8]));
        let all = hosts.iter().enumerate();
        MachineLinks::of(all.map(|(number, host)| (host, address(number))))
    }

    fn link(rtt_ns: u64, loss: f64, rate: Option<u64>) -> Option<LinkSpec> {
        Some(LinkSpec {
            rtt_ns,
            jitter_ns: 0,
            loss,
            rate_bits_per_s: rate,
        })
    }

    /// What lies between a host and the others.
    fn seen(links: &MachineLinks, host: &str) -> Vec<(String, Option<LinkSpec>)> {
        let host = links.hosts.iter().find(|one| one.name == host).unwrap();
        let peers = links.peers(host).into_iter();
        peers.map(|one| (one.host, Some(one.link))).collect()
    }

    #[test]
    fn between_two_hosts_lie_both_links_and_nothing_where_neither_has_one() {
        let far = link(20, 0.5, Some(800));
        let odd = link(2, 0.0, None);
        let hosts = [
            host("far", far),
            host("odd", odd),
            host("a", None),
            host("b", None),
        ];
        let links = links(&hosts).unwrap();
        let of = |name: &str, link| (name.to_owned(), link);
        let both = link(22, 0.5, Some(800));
        assert_eq!(
            seen(&links, "far"),
            [of("odd", both), of("a", far), of("b", far)]
        );
        assert_eq!(seen(&links, "a"), [of("far", far), of("odd", odd)]);
        assert_eq!(
            seen(&links, "odd")[0],
            of("far", both),
            "the same either way"
        );
    }

    #[test]
    fn a_link_is_changed_and_scaled_and_restored() {
        let mut links = links(&[host("far", link(20, 0.0, Some(800))), host("a", None)]).unwrap();
        let mut none = HostsByName::new();
        let is = |links: &MachineLinks, expected| {
            assert_eq!(seen(links, "a"), [("far".to_owned(), expected)]);
        };
        links
            .change(&mut none, "far", link(30, 0.1, Some(800)))
            .unwrap();
        is(&links, link(30, 0.1, Some(800)));
        links.scale_rates(&mut none, 2.0).unwrap();
        is(&links, link(30, 0.1, Some(1_600)));
        links.change(&mut none, "far", None).unwrap();
        links.scale_rates(&mut none, 1.0).unwrap();
        is(&links, link(20, 0.0, Some(800)));
        assert!(links.change(&mut none, "nobody", None).is_err());
    }

    #[test]
    fn hosts_without_links_or_without_addresses_need_none() {
        assert!(links(&[host("a", None), host("b", None)]).is_none());
        let far = host("far", link(20, 0.0, None));
        assert!(MachineLinks::of([(&far, None)]).is_none());
    }
}
