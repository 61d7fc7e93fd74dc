//! Hosts, as the lab sees them.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use net::os::{self, ChildSetup};

use super::groups::Groups;
use super::holder_protocol::{HeldHost, HolderAnswer, HolderOrder};
use super::{HOSTS_MAX, SettingError, addresses};
use agent::leftovers;
use agent::{self, Agent, AgentError, ChildGuard};
use readings::{Access, HostSpec};
use readings::{LinkCounters, LinkKind};

/// The process that holds the wires does not answer any more when it takes longer. To make hosts
/// takes a second or two.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Why hosts cannot be made or asked.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The machine or the caller's wishes do not allow it.
    #[error("{0}")]
    Impossible(String),
    /// A setting of a host is a mistake.
    #[error(transparent)]
    Setting(SettingError),
    /// The process that holds the wires was lost.
    #[error("lost the hosts: {0}")]
    Lost(String),
    /// A host was asked for that there is not.
    #[error("there is no host `{0}`")]
    NoHost(String),
    /// An agent does not start.
    #[error("host `{host}`: {source}")]
    Agent {
        /// The host.
        host: String,
        /// Why.
        source: AgentError,
    },
}

/// What is said about a topology as a whole.
#[derive(Clone, Debug, Default)]
pub struct TopologyOptions {
    /// What shall carry the packets; `None` for the least that does what the hosts ask for: a
    /// bridge, netem, user space.
    pub kind: Option<LinkKind>,
    /// Seed of loss and jitter.
    pub seed: u64,
    /// CPUs of the links' thread; empty for all.
    pub link_cpus: Vec<u32>,
}

/// A host that was made.
pub struct BuiltHost {
    /// What was asked for.
    pub spec: HostSpec,
    /// Its address.
    pub address: IpAddr,
    /// The address that it has for hosts with external access.
    pub external_address: IpAddr,
    /// The kernel's settings of its network.
    pub settings: BTreeMap<String, String>,
    /// Whether its programs are kept to its CPUs by a control group, rather than by binding them
    /// when they start.
    pub cpus_bound: bool,
    /// In the order in which they are entered; the network is the last but two.
    namespaces: Vec<File>,
    groups: Groups,
}

impl BuiltHost {
    /// Whether a control group bounds the CPU time of its programs, or which CPUs they have, in a
    /// way that a program loses when it is put into another group for CPU time.
    pub fn bounds_cpu_time(&self) -> bool {
        self.groups.bound_cpu_time()
    }

    /// Does something on a thread of this process that is in the host's network, such as opening
    /// sockets there. Where hosts are an ordinary user's, only their own processes can do that.
    ///
    /// # Errors
    /// When the thread may not enter the network.
    pub fn on_its_network<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let network = self.namespaces.iter().rev().nth(2);
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let network = network.ok_or(io::ErrorKind::NotFound)?;
                net::namespace::enter(network)?;
                Ok(work())
            });
            thread.join()
        })
        .unwrap_or_else(|_| Err(io::Error::other("a thread broke off")))
    }
}

/// Hosts and what joins them; dropped, all of it is gone, and what runs in their control groups
/// is killed. Drop the agents first, so that they can tidy up.
pub struct Topology {
    /// The hosts, in the order in which they were asked for.
    pub hosts: Vec<BuiltHost>,
    /// What carries the packets.
    pub kind: LinkKind,
    /// What the reader of a result should know.
    pub warnings: Vec<String>,
    program: PathBuf,
    holder: Holder,
}

impl Topology {
    /// Makes hosts with the help of `program`, which is `weigh`. What dead programs have left on
    /// this machine is removed first.
    ///
    /// # Errors
    /// When namespaces, devices, control groups or settings cannot be had; all that was made is
    /// gone then.
    pub fn build(
        program: &Path,
        hosts: &[HostSpec],
        options: &TopologyOptions,
    ) -> Result<Self, TopologyError> {
        if hosts.len() > HOSTS_MAX {
            let count = hosts.len();
            return Err(TopologyError::Impossible(format!(
                "{count} hosts are asked for; at most {HOSTS_MAX} can be made"
            )));
        }
        leftovers::sweep();
        let groups = hosts
            .iter()
            .map(Groups::make)
            .collect::<Result<Vec<_>, _>>()
            .map_err(TopologyError::Impossible)?;
        let mut holder = Holder::start(program)?;
        let answer = holder.ask(&HolderOrder::Build {
            hosts: hosts.to_vec(),
            kind: options.kind,
            seed: options.seed,
            link_cpus: options.link_cpus.clone(),
        })?;
        let HolderAnswer::Built {
            version,
            kind,
            users,
            hosts: wired,
        } = answer
        else {
            return Err(TopologyError::Lost("it said something else".into()));
        };
        if version != env!("CARGO_PKG_VERSION") || wired.len() != hosts.len() {
            let why = format!("{} is version {version}", program.display());
            return Err(TopologyError::Lost(why));
        }
        let mut topology = Self {
            hosts: Vec::new(),
            kind,
            warnings: Vec::new(),
            program: program.to_path_buf(),
            holder,
        };
        for (number, ((spec, groups), wired)) in hosts.iter().zip(groups).zip(wired).enumerate() {
            topology.add(number, spec, groups, users, wired)?;
        }
        Ok(topology)
    }

    fn add(
        &mut self,
        number: usize,
        spec: &HostSpec,
        groups: Groups,
        users: Option<i32>,
        wired: HeldHost,
    ) -> Result<(), TopologyError> {
        let open = |descriptor: i32| self.holder.descriptor(descriptor);
        let namespaces = users
            .into_iter()
            .chain(wired.namespaces)
            .map(open)
            .collect::<io::Result<Vec<_>>>()
            .map_err(|e| TopologyError::Lost(e.to_string()))?;
        self.warnings.extend(wired.warnings);
        let addresses = addresses(number);
        self.hosts.push(BuiltHost {
            spec: spec.clone(),
            address: addresses.internal.into(),
            external_address: addresses.external.into(),
            settings: wired.settings,
            cpus_bound: groups.cpus_bound,
            namespaces,
            groups,
        });
        Ok(())
    }

    /// A host by its name.
    ///
    /// # Errors
    /// When there is none.
    pub fn host(&self, name: &str) -> Result<&BuiltHost, TopologyError> {
        let found = self.hosts.iter().find(|host| host.spec.name == name);
        found.ok_or_else(|| TopologyError::NoHost(name.to_string()))
    }

    /// The address by which one host reaches another, or itself.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn address(&self, from: &str, to: &str) -> Result<IpAddr, TopologyError> {
        let (asking, asked) = (self.host(from)?, self.host(to)?);
        Ok(match asking.spec.access {
            Access::External if from != to => asked.external_address,
            _ => asked.address,
        })
    }

    /// Starts an agent inside a host.
    ///
    /// # Errors
    /// When there is no such host, or the agent does not start there.
    pub fn agent_in(&self, name: &str) -> Result<Agent, TopologyError> {
        let failed = |source: AgentError| TopologyError::Agent {
            host: name.to_string(),
            source,
        };
        let setup = self
            .setup_in(name)?
            .map_err(|e| failed(AgentError::Lost(e.to_string())))?;
        Agent::start_with(&self.program, setup).map_err(failed)
    }

    /// What makes a child process one of a host: its namespaces, control groups and CPUs.
    ///
    /// # Errors
    /// When there is no such host; the inner error when descriptors run out.
    pub fn setup_in(&self, name: &str) -> Result<io::Result<ChildSetup>, TopologyError> {
        let host = self.host(name)?;
        let setup = || {
            let folder = std::env::current_dir()?;
            Ok(ChildSetup {
                own_session: true,
                cpus: host.spec.cpus.clone(),
                confine: host.groups.entrances()?,
                namespaces: host
                    .namespaces
                    .iter()
                    .map(File::try_clone)
                    .collect::<io::Result<_>>()?,
                folder: CString::new(folder.as_os_str().as_bytes()).ok(),
                ..ChildSetup::default()
            })
        };
        Ok(setup())
    }

    /// Bounds what the programs of a host use together by its own control group, to so many CPUs;
    /// `None` gives back the bound that was asked for.
    ///
    /// # Errors
    /// When there is no such host, or its control group takes no such bound.
    pub fn bound_cpu_time(&self, name: &str, cpus: Option<f64>) -> Result<(), TopologyError> {
        let host = self.host(name)?;
        let bound = host.groups.bound(cpus.or(host.spec.quota));
        bound.map_err(|e| {
            TopologyError::Impossible(format!(
                "the CPU time of host `{name}` cannot be bounded: {e}"
            ))
        })
    }

    /// Gives every link that has a rate so many times the one that was asked for.
    ///
    /// # Errors
    /// When the kernel does not change them, or the process that holds the wires is gone.
    pub fn scale_rates(&mut self, factor: f64) -> Result<(), TopologyError> {
        let rates = self.hosts.iter().enumerate().filter_map(|(number, host)| {
            let rate = host.spec.link?.rate_bits_per_s?;
            Some((number, ((rate as f64 * factor) as u64).max(1)))
        });
        let rates = rates.collect();
        match self.holder.ask(&HolderOrder::Rates { rates })? {
            HolderAnswer::Done => Ok(()),
            other => Err(TopologyError::Lost(format!("unexpected answer: {other:?}"))),
        }
    }

    /// Whether the process that holds the links has ended: no host reaches another any more.
    pub fn has_lost_its_links(&mut self) -> bool {
        !matches!(self.holder.child.ended(), Ok(None))
    }

    /// What has become of the packets so far, by host; empty where the kernel carries them.
    ///
    /// # Errors
    /// When the process that holds the wires is gone.
    pub fn counters(&mut self) -> Result<Vec<LinkCounters>, TopologyError> {
        match self.holder.ask(&HolderOrder::Counters)? {
            HolderAnswer::Counters { links } => Ok(links),
            other => Err(TopologyError::Lost(format!("unexpected answer: {other:?}"))),
        }
    }
}

/// The process that holds namespaces and wires; when its input closes it ends.
struct Holder {
    child: ChildGuard,
    answers: Receiver<io::Result<String>>,
}

impl Holder {
    fn start(program: &Path) -> Result<Self, TopologyError> {
        let mut command = Command::new(program);
        command
            .arg("netns-holder")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // A session of its own: the terminal's Ctrl-C is for the caller alone.
        let setup = ChildSetup {
            own_session: true,
            ..ChildSetup::default()
        };
        os::set_up_child(&mut command, setup);
        let lost = |e: &dyn std::fmt::Display| {
            TopologyError::Lost(format!("cannot start {}: {e}", program.display()))
        };
        let mut child = command.spawn().map_err(|e| lost(&e))?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| lost(&"it has no output"))?;
        Ok(Self {
            child: ChildGuard::new(child),
            answers: agent::read_answers(output),
        })
    }

    fn ask(&mut self, order: &HolderOrder) -> Result<HolderAnswer, TopologyError> {
        let lost = |e: &dyn std::fmt::Display| TopologyError::Lost(e.to_string());
        let mut line = serde_json::to_vec(order).map_err(|e| lost(&e))?;
        line.push(b'\n');
        self.child.send(&line).map_err(|e| lost(&e))?;
        let answer = match self.answers.recv_timeout(ANSWERS_WITHIN) {
            Ok(answer) => answer.map_err(|e| lost(&e))?,
            Err(RecvTimeoutError::Disconnected) => return Err(lost(&"it has ended")),
            Err(RecvTimeoutError::Timeout) => {
                self.child.kill();
                return Err(lost(&"it does not answer"));
            }
        };
        match serde_json::from_str(&answer).map_err(|e| lost(&e))? {
            HolderAnswer::Setting { error } => Err(TopologyError::Setting(error)),
            HolderAnswer::Failed { reason } => Err(TopologyError::Impossible(reason)),
            other => Ok(other),
        }
    }

    /// A file that this process holds open.
    fn descriptor(&self, number: i32) -> io::Result<File> {
        File::open(format!("/proc/{}/fd/{number}", self.child.pid()))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It holds nothing that it would have to put away.
        self.child.kill();
    }
}
