//! Engines start programs elsewhere and pass their standard input and output on. For a host, an
//! engine creates what is needed there (its lease), gives the command that opens the pipe, and
//! releases the lease at the end.
//!
//! An engine's exit status and end of output are never trusted; see `agent::PipeFault`.

mod access;
mod command;
mod kubernetes;
mod nomad;
mod podman;
mod slurm;

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::atomic::AtomicBool;

use agent::{AgentError, PipeCommand, Program};
use readings::{HostSpec, Reach};
use serde_json::json;

pub(crate) use access::HostAccess;
use kubernetes::Pods;
use slurm::Allocation;

/// What the hosts of a run share.
#[derive(Default)]
pub(crate) struct Engines {
    /// Allocations by preset; the hosts hold them.
    allocations: BTreeMap<String, Weak<Allocation>>,
    pods: Pods,
}

impl Engines {
    /// Prepares the pipe to a host. The wait for one that has to be granted ends when `stop` is set.
    ///
    /// # Errors
    /// When its engine is missing or refuses.
    pub(crate) fn open(
        &mut self,
        host: &HostSpec,
        reach: &Reach,
        program: &Program,
        stop: &AtomicBool,
    ) -> Result<HostAccess, AgentError> {
        let name = host.name.as_str();
        Ok(match reach {
            Reach::Ssh(destination) => HostAccess {
                about: json!({ "ssh": destination }),
                ..HostAccess::of(PipeCommand::ssh(name, destination))
            },
            Reach::Exec(words) => HostAccess {
                about: json!({ "exec": words }),
                ..HostAccess::of(PipeCommand::agent(name, words.clone()))
            },
            Reach::Podman(podman) => podman::open(name, podman, program)?,
            Reach::Slurm(member) => {
                let known = self.allocations.get(&member.preset);
                let known = known.and_then(Weak::upgrade);
                let allocation = match known.filter(|one| one.is_granted()) {
                    Some(allocation) => allocation,
                    None => {
                        let count = member.count.unwrap_or(1);
                        let made = Rc::new(Allocation::request(&member.spec, count, stop)?);
                        let weak = Rc::downgrade(&made);
                        self.allocations.insert(member.preset.clone(), weak);
                        made
                    }
                };
                slurm::open(name, member.number, &allocation)?
            }
            Reach::Kubernetes(member) => self.pods.open(name, &member.spec, stop)?,
            Reach::Nomad(member) => nomad::open(name, &member.spec, member.number)?,
        })
    }
    /// Has a host get something else than before, as no agent has started there.
    pub(crate) fn forget(&mut self, host: &str) {
        self.pods.forget(host);
    }
}
