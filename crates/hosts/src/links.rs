//! What a run may ask of the links between its hosts.

use std::cell::RefCell;
use std::rc::Rc;

use agent::AgentError;
use readings::{HostSpec, LinkKind, LinkSpec};

use crate::host::HostsByName;
use crate::namespaces::topology::Topology;

/// Mean lateness above which a link is reported, ns.
const LATE_NS: u64 = 200_000;

/// The links between hosts.
pub trait Links {
    /// What carries the packets.
    fn kind(&self) -> LinkKind;

    /// Warnings about the creation of hosts and links.
    fn warnings(&self) -> Vec<String>;

    /// The links that delivered packets late, a sentence each.
    fn late(&mut self) -> Vec<String>;

    /// Sets the rates of links that have one to the declared ones times `factor`. `hosts` are those
    /// that the links belong to.
    ///
    /// # Errors
    /// When the kernel refuses, or the holder process or an agent is gone.
    fn scale_rates(&mut self, hosts: &mut HostsByName, factor: f64) -> Result<(), AgentError>;

    /// Changes the link of a host; `None` restores the declared one.
    ///
    /// # Errors
    /// When there is no such host, the kernel refuses, or the holder process or an agent is gone.
    fn change(
        &mut self,
        hosts: &mut HostsByName,
        host: &str,
        spec: Option<LinkSpec>,
    ) -> Result<(), AgentError>;

    /// Whether the holder process has ended.
    fn are_lost(&mut self) -> bool;

    /// The process that carries the packets, if they pass through user space.
    fn process(&self) -> Option<i32> {
        None
    }
}

impl Links for Rc<RefCell<Topology>> {
    fn kind(&self) -> LinkKind {
        self.borrow().kind
    }

    fn warnings(&self) -> Vec<String> {
        self.borrow().warnings.clone()
    }

    fn late(&mut self) -> Vec<String> {
        let counters = self.borrow_mut().counters().unwrap_or_default();
        let topology = self.borrow();
        let late = counters.iter().zip(&topology.hosts);
        let late: Vec<(&HostSpec, u64)> = late
            .filter_map(|(link, host)| {
                let late_ns = link.late_ns_sum.checked_div(link.delivered)?;
                Some((&host.spec, late_ns))
            })
            .collect();
        late_words(&late)
    }

    fn scale_rates(&mut self, _: &mut HostsByName, factor: f64) -> Result<(), AgentError> {
        let scaled = self.borrow_mut().scale_rates(factor);
        scaled.map_err(|e| AgentError::Failed(e.to_string()))
    }

    fn change(
        &mut self,
        _: &mut HostsByName,
        host: &str,
        spec: Option<LinkSpec>,
    ) -> Result<(), AgentError> {
        let changed = self.borrow_mut().change_link(host, spec);
        changed.map_err(|e| AgentError::Failed(e.to_string()))
    }

    fn are_lost(&mut self) -> bool {
        self.borrow_mut().has_lost_its_links()
    }

    fn process(&self) -> Option<i32> {
        self.borrow().link_process()
    }
}

/// A warning for each host whose link delivered packets too late on average, by how late that was
/// in ns. Advice comes with the first of them, unless a host has a link without delay already.
fn late_words(hosts: &[(&HostSpec, u64)]) -> Vec<String> {
    let mut is_near = hosts.iter().filter_map(|(host, _)| host.link);
    let mut advice = match is_near.any(|link| link.rtt_ns == 0) {
        true => "",
        false => {
            ". To compare with a path of the same cost, give the near host \
             link = { rtt = \"0ms\" }"
        }
    };
    let late = hosts.iter().filter(|(_, late_ns)| *late_ns > LATE_NS);
    let words = late.map(|(host, late_ns)| {
        format!(
            "the link of host `{}` delivered packets {:.2} ms late on average: its thread lacked CPU \
             time. Round trips over it take about {:.2} ms longer than set{}",
            host.name,
            *late_ns as f64 / 1e6,
            2.0 * *late_ns as f64 / 1e6,
            std::mem::take(&mut advice)
        )
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_about_a_late_link_is_given_once_and_not_where_it_is_followed() {
        let host = |name: &str, rtt_ns| HostSpec {
            name: name.to_owned(),
            link: Some(LinkSpec {
                rtt_ns,
                ..LinkSpec::default()
            }),
            ..HostSpec::default()
        };
        let advised = |hosts: &[HostSpec]| {
            let late: Vec<_> = hosts.iter().map(|host| (host, 2 * LATE_NS)).collect();
            let words = late_words(&late);
            assert!(words[0].starts_with("the link of host `far` delivered packets 0.40 ms late"));
            let with_advice = words.iter().filter(|words| words.contains("0ms"));
            (words.len(), with_advice.count())
        };
        let (far, farther) = (host("far", 20_000_000), host("farther", 40_000_000));
        assert_eq!(advised(&[far.clone(), farther]), (2, 1));
        assert_eq!(advised(&[far.clone(), host("near", 0)]), (2, 0));
        assert!(late_words(&[(&far, LATE_NS)]).is_empty());
    }
}
