//! Nodes of a Slurm allocation, with a step for each agent.
//!
//! A `salloc` that waits for the end of its input holds the allocation, so it is released however
//! this program ends. Inside an existing allocation (`SLURM_JOB_ID`), that one is used.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use agent::{AgentError, ChildGuard, PipeCommand};
use net::os;
use readings::Slurm;
use serde_json::json;

use super::access::{HostAccess, Lease};
use super::command::{failed, output_of, owned, started};

/// How long to wait for an allocation.
const GRANTED_WITHIN: Duration = Duration::from_secs(600);
const STOP_CHECKED_EVERY: Duration = Duration::from_millis(100);
/// How long `salloc` may take to withdraw a request: the controller may be busy.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(10);
const SIGTERM: i32 = 15;
const SALLOC: &str = "salloc";
const STOPPED: &str = "stopped before nodes were granted";
const GRANTED: &str = "weigh-allocation";
/// The most bytes of the messages of `salloc` that are kept.
const SAID_BYTES_MAX: u64 = 16 * 1024;

/// Nodes that are allocated to this run.
pub(super) struct Allocation {
    job: String,
    nodes: Vec<String>,
    /// `salloc`; `None` in an existing allocation.
    holder: Option<ChildGuard>,
}

impl Lease for Allocation {}

impl Allocation {
    /// Requests nodes, and waits for them, at most [`GRANTED_WITHIN`] and until `stop` is set.
    pub(super) fn request(
        slurm: &Slurm,
        count: u32,
        stop: &AtomicBool,
    ) -> Result<Self, AgentError> {
        let allocation = match std::env::var("SLURM_JOB_ID") {
            Ok(job) => {
                let list = std::env::var("SLURM_JOB_NODELIST").unwrap_or_default();
                Self {
                    job,
                    nodes: names(&list)?,
                    holder: None,
                }
            }
            Err(_) if stop.load(Ordering::Relaxed) => {
                return Err(failed(SALLOC, STOPPED.to_owned()));
            }
            Err(_) => Self::allocate(slurm, count, stop)?,
        };
        let have = allocation.nodes.len();
        if have < count as usize {
            let job = &allocation.job;
            return Err(AgentError::Failed(format!(
                "slurm: expected {count} nodes, found {have} in job {job}"
            )));
        }
        Ok(allocation)
    }

    fn allocate(slurm: &Slurm, count: u32, stop: &AtomicBool) -> Result<Self, AgentError> {
        let mut command = agent::piped(SALLOC);
        command.arg(format!("--nodes={count}"));
        // If a node fails, the others must stay.
        command.args(["--no-kill", "--job-name=weigh"]);
        command.args(slurm.partition.iter().map(|it| format!("--partition={it}")));
        command.args(&slurm.options);
        let script = format!("echo {GRANTED} \"$SLURM_JOB_ID\" \"$SLURM_JOB_NODELIST\"; exec cat");
        command.args(["sh", "-c", &script]);
        let mut child = started(SALLOC, &mut command)?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let pid = child.id() as i32;
        let holder = ChildGuard::new(child);
        let (sender, granted) = mpsc::channel();
        let refused = |error: os::StartThreadError| failed(SALLOC, error.to_string());
        os::start_thread("which reads what salloc prints", move || {
            let output = output.into_iter().flat_map(|it| BufReader::new(it).lines());
            for line in output.map_while(Result::ok) {
                if let Some(rest) = line.strip_prefix(GRANTED) {
                    // Fails if the caller has given up.
                    let _ = sender.send(rest.to_owned());
                }
            }
        })
        .map_err(refused)?;
        let (sender, said) = mpsc::channel();
        os::start_thread("which reads errors of salloc", move || {
            let mut text = String::new();
            if let Some(errors) = errors {
                let mut errors = BufReader::new(errors);
                // What was read before an error is still shown.
                let _ = (&mut errors).take(SAID_BYTES_MAX).read_to_string(&mut text);
                let _ = sender.send(text);
                // Reads on, so that a full pipe does not block `salloc`.
                let _ = std::io::copy(&mut errors, &mut std::io::sink());
            }
        })
        .map_err(refused)?;
        let end = Instant::now() + GRANTED_WITHIN;
        let answer = loop {
            let answer = granted.recv_timeout(STOP_CHECKED_EVERY);
            let is_open = answer == Err(mpsc::RecvTimeoutError::Timeout) && Instant::now() < end;
            if !is_open || stop.load(Ordering::Relaxed) {
                break answer;
            }
        };
        match answer {
            Ok(rest) => {
                let mut words = rest.split_whitespace();
                let job = words.next().unwrap_or_default().to_owned();
                let nodes = names(words.next().unwrap_or_default())?;
                Ok(Self {
                    job,
                    nodes,
                    holder: Some(holder),
                })
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                // On SIGTERM `salloc` withdraws its request; the SIGKILL of its guard would leave the
                // request in the queue.
                let _ = net::os::kill(pid, SIGTERM);
                let end = Instant::now() + WITHDRAWN_WITHIN;
                while matches!(holder.ended(), Ok(None)) && Instant::now() < end {
                    sleep(Duration::from_millis(20));
                }
                let why = match stop.load(Ordering::Relaxed) {
                    true => STOPPED.to_owned(),
                    false => format!("nothing was granted for {} s", GRANTED_WITHIN.as_secs()),
                };
                Err(failed(SALLOC, why))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let said = said.recv_timeout(Duration::from_secs(1));
                let said = said.unwrap_or_default();
                Err(failed(SALLOC, said.trim().replace('\n', "; ")))
            }
        }
    }

    /// Whether the allocation still exists.
    pub(super) fn is_granted(&self) -> bool {
        let has_ended = |holder: &ChildGuard| !matches!(holder.ended(), Ok(None));
        !self.holder.as_ref().is_some_and(has_ended)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.holder.is_some() {
            // Steps that outlive their srun end with the job.
            let _ = output_of(&["scancel", "--quiet", &self.job]);
        }
    }
}

/// The nodes of a list such as `n[1-3]`.
fn names(list: &str) -> Result<Vec<String>, AgentError> {
    let printed = output_of(&["scontrol", "show", "hostnames", list])?;
    Ok(printed.split_whitespace().map(str::to_owned).collect())
}

pub(super) fn open(
    host: &str,
    number: u32,
    allocation: &Rc<Allocation>,
) -> Result<HostAccess, AgentError> {
    let at = (number as usize).saturating_sub(1);
    let Some(node) = allocation.nodes.get(at) else {
        let job = &allocation.job;
        return Err(AgentError::Failed(format!(
            "slurm: job {job} has no node {number}"
        )));
    };
    let job = format!("--jobid={}", allocation.job);
    let list = format!("--nodelist={node}");
    let mut words = owned(&["srun", &job, &list, "--nodes=1", "--ntasks=1", "--overlap"]);
    // One step's end does not affect the others. Input and output are not buffered.
    words.extend(owned(&[
        "--wait=0",
        "--kill-on-bad-exit=0",
        "--quit-on-interrupt",
    ]));
    words.extend(owned(&["--unbuffered", "--cpu-bind=none"]));
    let allocated: Rc<dyn Lease> = allocation.clone();
    Ok(HostAccess {
        address: address_of(node),
        lease: Some(allocated),
        about: json!({ "slurm": { "job": allocation.job, "node": node } }),
        ..HostAccess::of(PipeCommand::shell(host, words))
    })
}

/// The address by which the controller reaches a node.
fn address_of(node: &str) -> Option<IpAddr> {
    let printed = output_of(&["scontrol", "--oneliner", "show", "node", node]).ok()?;
    let fields = printed.split_whitespace();
    let mut found = fields.filter_map(|field| field.strip_prefix("NodeAddr="));
    let all = (found.next()?, 0).to_socket_addrs().ok()?;
    let all: Vec<IpAddr> = all.map(|one| one.ip()).collect();
    all.iter()
        .find(|one| one.is_ipv4())
        .or(all.first())
        .copied()
}
