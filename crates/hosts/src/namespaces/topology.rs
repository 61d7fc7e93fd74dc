//! A topology: separate hosts on this machine, and their links.

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
use super::setting::SettingError;
use crate::{HOSTS_MAX, addresses};
use agent::{self, Agent, AgentError, ChildGuard, leftovers};
use readings::{Access, HostSpec, LinkCounters, LinkKind, LinkSpec};

/// Time limit of the holder's answers. Creating hosts takes a second or two.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Why hosts cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The machine does not allow it, or the request is invalid.
    #[error("{0}")]
    Impossible(String),
    /// A setting of a host is invalid.
    #[error(transparent)]
    Setting(SettingError),
    /// The holder process was lost.
    #[error("lost the hosts: {0}")]
    Lost(String),
    #[error("there is no host `{0}`")]
    NoHost(String),
    /// An agent did not start.
    #[error("host `{host}`: {source}")]
    Agent {
        host: String,
        /// Why.
        source: AgentError,
    },
}

/// Options of a topology as a whole.
#[derive(Clone, Debug, Default)]
pub struct TopologyOptions {
    /// What carries the packets; `None` for the simplest that does what the hosts need: bridge,
    /// netem, user space.
    pub kind: Option<LinkKind>,
    /// Seed of loss and jitter.
    pub seed: u64,
    /// CPUs of the link thread; empty for all.
    pub link_cpus: Vec<u32>,
}

/// A created host.
pub struct BuiltHost {
    /// Its declaration.
    pub spec: HostSpec,
    pub address: IpAddr,
    /// Its address for hosts with external access.
    pub external_address: IpAddr,
    /// The sysctls of its network.
    pub settings: BTreeMap<String, String>,
    /// Whether a cpuset binds its programs to its CPUs, rather than their affinity at start.
    pub cpus_bound: bool,
    /// In order of entering; the network is the third from the end.
    namespaces: Vec<File>,
    groups: Groups,
}

impl BuiltHost {
    /// Whether a control group of the host accounts CPU time, which a program would leave when
    /// moved to another one.
    pub fn accounts_cpu_time(&self) -> bool {
        self.groups.accounts_cpu_time()
    }

    /// Runs `work` on a thread of this process in the host's network, for example to open sockets
    /// there. Hosts of an ordinary user admit only their own processes.
    ///
    /// # Errors
    /// When the thread cannot be started, or may not enter the network.
    pub fn on_its_network<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let network = self.namespaces.iter().rev().nth(2);
        std::thread::scope(|scope| {
            let thread = os::start_scoped(scope, "in the network of a host", move || {
                let network = network.ok_or(io::ErrorKind::NotFound)?;
                net::namespace::enter(network)?;
                Ok(work())
            })?;
            let panicked = |_| Err(io::Error::other("a thread panicked"));
            thread.join().unwrap_or_else(panicked)
        })
    }
}

/// Hosts and their links. Dropping it removes them all and kills what runs in their control groups;
/// drop the agents first, so that they can clean up.
pub struct Topology {
    /// The hosts, in the order of their declaration.
    pub hosts: Vec<BuiltHost>,
    /// What carries the packets.
    pub kind: LinkKind,
    /// Warnings for the reader of the result.
    pub warnings: Vec<String>,
    program: PathBuf,
    holder: Holder,
}

impl Topology {
    /// Creates hosts with the program `weigh`, after sweeping leftovers of dead processes.
    ///
    /// # Errors
    /// When namespaces, devices, control groups or sysctls fail; all that was created is removed
    /// then.
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
            return Err(TopologyError::Lost("unexpected answer".into()));
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

    /// A host by name.
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

    /// The setup that places a child process in a host: namespaces, control groups and CPUs.
    ///
    /// # Errors
    /// When there is no such host; the inner error when file descriptors run out.
    pub fn setup_in(&self, name: &str) -> Result<io::Result<ChildSetup>, TopologyError> {
        let host = self.host(name)?;
        let setup = || {
            let folder = std::env::current_dir()?;
            Ok(ChildSetup {
                own_session: true,
                cpus: host.spec.cpus.clone(),
                confine: host.groups.procs_files()?,
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

    /// Sets the CPU quota of a host's control group; `None` restores the declared quota.
    ///
    /// # Errors
    /// When there is no such host, or its control group does not accept it.
    pub fn set_cpu_quota(&self, name: &str, cpus: Option<f64>) -> Result<(), TopologyError> {
        let host = self.host(name)?;
        let set = host.groups.set_quota(cpus.or(host.spec.quota));
        set.map_err(|e| {
            TopologyError::Impossible(format!("cannot set the CPU quota of host `{name}`: {e}"))
        })
    }

    /// Sets the rates of links that have one to the declared ones times `factor`.
    ///
    /// # Errors
    /// When the kernel refuses, or the holder process is gone.
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

    /// Changes the link of a host; `None` restores the declared one.
    ///
    /// # Errors
    /// When there is no such host, the kernel refuses, or the holder process is gone.
    pub fn change_link(&mut self, name: &str, spec: Option<LinkSpec>) -> Result<(), TopologyError> {
        let found = self.hosts.iter().position(|host| host.spec.name == name);
        let number = found.ok_or_else(|| TopologyError::NoHost(name.to_string()))?;
        let declared = self.hosts[number].spec.link.unwrap_or_default();
        let order = HolderOrder::Change {
            host: number,
            link: spec.unwrap_or(declared),
        };
        match self.holder.ask(&order)? {
            HolderAnswer::Done => Ok(()),
            other => Err(TopologyError::Lost(format!("unexpected answer: {other:?}"))),
        }
    }

    /// The holder process, if packets pass through it.
    pub fn link_process(&self) -> Option<i32> {
        let carries = self.kind == LinkKind::UserSpace;
        carries.then(|| self.holder.child.pid() as i32)
    }

    /// Whether the holder process has ended, so that no host reaches another.
    pub fn has_lost_its_links(&mut self) -> bool {
        !matches!(self.holder.child.ended(), Ok(None))
    }

    /// The link counters, by host; empty where the kernel carries the packets.
    ///
    /// # Errors
    /// When the holder process is gone.
    pub fn counters(&mut self) -> Result<Vec<LinkCounters>, TopologyError> {
        match self.holder.ask(&HolderOrder::Counters)? {
            HolderAnswer::Counters { links } => Ok(links),
            other => Err(TopologyError::Lost(format!("unexpected answer: {other:?}"))),
        }
    }
}

/// The holder process; it ends when its input closes.
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
        // Its own session, so that the terminal's Ctrl-C reaches only the caller.
        let setup = ChildSetup {
            own_session: true,
            ..ChildSetup::default()
        };
        os::set_up_child(&mut command, setup);
        let lost = |e: &dyn std::fmt::Display| {
            TopologyError::Lost(format!("cannot start {}: {e}", program.display()))
        };
        let refused = |e: io::Error| lost(&format!("{e}{}", os::Lacking(&e)));
        let mut child = command.spawn().map_err(refused)?;
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
        let answer = match self.answers.recv_timeout(ANSWER_TIMEOUT) {
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

    /// Opens a file descriptor of the holder.
    fn descriptor(&self, number: i32) -> io::Result<File> {
        File::open(format!("/proc/{}/fd/{number}", self.child.pid()))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It has nothing to clean up.
        self.child.kill();
    }
}
