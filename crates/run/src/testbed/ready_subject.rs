//! A subject whose servers are up and that answers as expected.

use std::net::SocketAddr;
use std::sync::Arc;

use agent::wire::OtherServer;
use experiment::plan::PlannedTrial;
use experiment::{Call, LoadSpec, SubjectSpec};
use tls::ClientSettings;

use crate::testbed::back_ends::BackEnds;
use crate::testbed::outside::Outside;

#[derive(Clone)]
pub(crate) struct ReadySubject {
    pub(crate) planned: PlannedTrial,
    pub(crate) subject: SubjectSpec,
    pub(crate) address: SocketAddr,
    /// The host of the load.
    pub(crate) from: Option<String>,
    /// The other hosts that make the load together with it, and its address as they see it.
    pub(crate) also_from: Vec<(String, SocketAddr)>,
    /// What is on its path and is reached by an address.
    pub(crate) outside: Outside,
    pub(crate) back_ends: BackEnds,
    /// How it is spoken to, if its URL is an https URL.
    pub(crate) tls: Option<ClientSettings>,
    /// What a gRPC call sends, where only the subject knows.
    pub(crate) call: Option<Arc<Call>>,
    /// The subject for each other load of the condition; `None` if that load is not made on it.
    pub(crate) beside: Vec<Option<ReadySubject>>,
}

impl ReadySubject {
    /// What each call of the load made on it sends.
    pub(crate) fn call_of<'s>(&'s self, load: &'s LoadSpec) -> Option<&'s Call> {
        self.call.as_deref().or(load.traffic.call.as_deref())
    }
}

/// All that ran before behind these subjects, each once: several may be paths of one server.
pub(crate) fn running_behind(ready: &[ReadySubject]) -> Vec<OtherServer> {
    let mut all: Vec<OtherServer> = Vec::new();
    for one in ready.iter().flat_map(|one| &one.outside.running) {
        // Its children and its control group may have changed between two looks.
        let is_it = |other: &OtherServer| (&other.server, other.pid) == (&one.server, one.pid);
        if !all.iter().any(is_it) {
            all.push(one.clone());
        }
    }
    all
}
