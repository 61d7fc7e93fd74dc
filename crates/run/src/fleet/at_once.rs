//! Loads that begin at the same time: one that several hosts make together, or several loads.
//!
//! Every host of a load makes its exact share of the connections and the rate, and its due times
//! lie between those of the load's other hosts. All hosts of all loads begin a segment at the same
//! time, each by its own clock. If one begins late, the load fails for all subjects.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use load::Row;
use readings::LoadReading;

use crate::fleet::orders::LoadOrders;
use crate::fleet::timing::{Timing, is_late};
use crate::testbed::Testbed;
use agent::wire::{LoadOrder, Loaded};
use agent::{AgentError, AgentHandle, LoadObserver};

/// The most reports that wait; then the hosts have to wait.
const REPORTS_MAX: usize = 1024;
/// How often a signal is looked for while loads are made.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// Makes all loads at the same time, each host its part. Returns what each load measured, merged
/// over its hosts. `progress` reports that of the first load.
///
/// # Errors
/// When an agent is lost, fails or begins late; the message names the load and the host.
pub(crate) fn carry_out(
    testbed: &mut Testbed,
    loads: Vec<LoadOrders>,
    timing: Timing,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(usize, u64, u64),
) -> Result<Vec<Loaded>, AgentError> {
    let mut orders = Vec::new();
    let mut host_parts = Vec::new();
    for (load, one) in loads.into_iter().enumerate() {
        for host in one.hosts {
            host_parts.push(HostPart {
                load,
                name: one.name.clone(),
                host: host.host,
            });
            orders.push(host.order);
        }
    }
    let hosts: Vec<Option<&str>> = host_parts.iter().map(|one| one.host.as_deref()).collect();
    let agents = testbed.load_agents(&hosts)?;
    let is_first: Vec<bool> = host_parts.iter().map(|one| one.load == 0).collect();
    let results = at_the_same_time(
        agents,
        host_parts.into_iter().zip(orders).collect(),
        timing.lead,
        stop,
        &mut |number, report| match report {
            HostReport::Answers {
                segment,
                requests,
                errors,
            } if is_first[number] => progress(segment, requests, errors),
            _ => {}
        },
    )?;
    let mut parts: Vec<Vec<(Loaded, HostPart)>> = Vec::new();
    for (host_part, result) in results {
        let loaded = result.map_err(|error| host_part.failed(error))?;
        parts.resize_with(parts.len().max(host_part.load + 1), Vec::new);
        let load = host_part.load;
        parts[load].push((loaded, host_part));
    }
    let merged = parts.into_iter();
    merged
        .map(|parts| merged_parts(parts, timing.may_be_late))
        .collect()
}

/// What a host reports while it makes its part of a load.
pub(crate) enum HostReport {
    /// A measured window has opened.
    WindowOpens,
    /// A measured window has closed.
    WindowCloses,
    /// Good answers and failures since the last report.
    Answers {
        segment: usize,
        requests: u64,
        errors: u64,
    },
    Row(Box<Row>),
    /// It reports nothing more: its part is over, or it was lost.
    Ends,
}

/// Passes the progress of one host on, with its number.
struct Reporter {
    number: usize,
    sender: mpsc::SyncSender<(usize, HostReport)>,
}

impl Reporter {
    fn send(&self, report: HostReport) {
        // Cannot fail: the receiver lives as long as the threads.
        let _ = self.sender.send((self.number, report));
    }
}

impl LoadObserver for Reporter {
    fn progress(&mut self, segment: usize, requests: u64, errors: u64) {
        self.send(HostReport::Answers {
            segment,
            requests,
            errors,
        });
    }

    fn tick(&mut self, opened_ns: Option<i64>) {
        if opened_ns.is_some() {
            self.send(HostReport::WindowOpens);
        }
    }

    fn window_closes(&mut self, _: usize) {
        self.send(HostReport::WindowCloses);
    }

    fn row(&mut self, row: Box<Row>) {
        self.send(HostReport::Row(row));
    }
}

/// What came of one host's part of a load.
pub(crate) type PartResult = (HostPart, Result<Loaded, AgentError>);

/// Has each agent carry its order out, all from the same time on: `lead` from now. `report` gets
/// what they report meanwhile, with the number of the agent.
///
/// # Errors
/// When the clock of an agent cannot be read; the message names the load and the host.
pub(crate) fn at_the_same_time(
    mut agents: Vec<&mut dyn AgentHandle>,
    orders: Vec<(HostPart, LoadOrder)>,
    lead: Duration,
    stop: &AtomicBool,
    report: &mut dyn FnMut(usize, HostReport),
) -> Result<Vec<PartResult>, AgentError> {
    // The start is set by this process's clock, and converted to the clock of each agent.
    let mut ahead_ns = Vec::new();
    for (agent, (host_part, _)) in agents.iter_mut().zip(&orders) {
        let clock = agent.clock().map_err(|error| host_part.failed(error))?;
        ahead_ns.push(clock.monotonic_ahead_ns);
    }
    let start_ns = net::os::now_ns() as i64 + lead.as_nanos() as i64;
    let (sender, receiver) = mpsc::sync_channel(REPORTS_MAX);
    // Where one host cannot make its part, the others need not go on.
    let is_over = &AtomicBool::new(false);
    Ok(std::thread::scope(|scope| {
        let mut running = Vec::new();
        let all = orders.into_iter().zip(agents).zip(&ahead_ns);
        for (number, (((host_part, mut order), agent), ahead_ns)) in all.enumerate() {
            if let Some(part) = &mut order.job.part {
                let there_ns = start_ns.saturating_add(*ahead_ns);
                part.start_ns = u64::try_from(there_ns).unwrap_or_default();
            }
            let mut reporter = Reporter {
                number,
                sender: sender.clone(),
            };
            let thread = net::os::start_scoped(scope, "which makes a load", move || {
                let end = agent.load(order, is_over, &mut reporter);
                if matches!(end, Err(AgentError::Failed(_))) {
                    is_over.store(true, Ordering::Relaxed);
                }
                reporter.send(HostReport::Ends);
                end
            });
            if thread.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
            running.push((host_part, thread));
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(STOP_CHECK) {
                Ok((number, one)) => report(number, one),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stop.load(Ordering::Relaxed) {
                is_over.store(true, Ordering::Relaxed);
            }
        }
        let died = || AgentError::Lost("its thread panicked".into());
        let joined = running.into_iter().map(|(host_part, thread)| {
            let end = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(died())),
                Err(error) => Err(AgentError::Failed(error.to_string())),
            };
            (host_part, end)
        });
        joined.collect()
    }))
}

/// The load and the host of one order.
pub(crate) struct HostPart {
    /// The load's number.
    load: usize,
    /// The load's name, if there are several.
    name: Option<String>,
    host: Option<String>,
}

impl HostPart {
    /// The part of a host in the only load.
    pub(crate) fn of_host(host: &str) -> Self {
        Self {
            load: 0,
            name: None,
            host: Some(host.to_owned()),
        }
    }

    /// ``load `slow` on host `a` ``; only `load` if there is one load, and no host.
    fn words(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" `{name}`"));
        let host = self.host.as_ref().map(|host| format!(" on host `{host}`"));
        format!(
            "load{}{}",
            name.unwrap_or_default(),
            host.unwrap_or_default()
        )
    }

    pub(crate) fn failed(&self, error: AgentError) -> AgentError {
        let words = self.words();
        let host = self.host.as_deref().unwrap_or_default();
        let error = match error {
            AgentError::Lost(why) => AgentError::Lost(without_host(&why, host).to_owned()),
            failed => failed,
        };
        match (error, &self.name, &self.host) {
            // With one load it is the host that is named.
            (AgentError::Lost(why), None, Some(host)) => {
                AgentError::Lost(format!("host `{host}`: {why}"))
            }
            (AgentError::Lost(why), ..) => AgentError::Lost(format!("{words}: {why}")),
            (AgentError::Failed(why), ..) => AgentError::Failed(format!("{words}: {why}")),
        }
    }

    fn late(&self, late_ns: u64) -> AgentError {
        let ms = late_ns as f64 / 1e6;
        AgentError::Failed(match (&self.name, &self.host) {
            (Some(_), _) => format!(
                "{} began {ms:.1} ms late, so the loads did not measure at the same time",
                self.words()
            ),
            (None, host) => format!(
                "host `{}` began its part of the load {ms:.1} ms late, so the hosts did not \
                 measure at the same time",
                host.as_deref().unwrap_or_default()
            ),
        })
    }
}

/// Why an agent was lost, without its host's name in front, which agents behind a pipe say themselves.
pub(crate) fn without_host<'w>(why: &'w str, host: &str) -> &'w str {
    why.strip_prefix(&format!("host `{host}`: ")).unwrap_or(why)
}

/// What the hosts of one load measured together.
fn merged_parts(parts: Vec<(Loaded, HostPart)>, may_be_late: bool) -> Result<Loaded, AgentError> {
    let mut all: Vec<Vec<(String, LoadReading)>> = Vec::new();
    let mut whole = Loaded::default();
    let is_shared = parts.len() > 1;
    let late_us: Vec<f64> = parts
        .iter()
        .map(|(part, _)| part.late_ns as f64 / 1e3)
        .collect();
    for (number, (part, host_part)) in parts.into_iter().enumerate() {
        if is_late(&part) && !may_be_late {
            return Err(host_part.late(part.late_ns));
        }
        let host = host_part.host.unwrap_or_default();
        all.resize_with(part.readings.len().max(all.len()), Vec::new);
        for (readings, reading) in all.iter_mut().zip(part.readings) {
            readings.push((host.clone(), reading));
        }
        let new = part
            .varying
            .iter()
            .filter(|one| !whole.varying.contains(one));
        let new: Vec<usize> = new.copied().collect();
        whole.varying.extend(new);
        if number == 0 {
            (whole.measured, whole.seen) = (part.measured, part.seen);
        }
        whole.late_ns = whole.late_ns.max(part.late_ns);
        whole.ready_ns = whole.ready_ns.max(part.ready_ns);
        whole.drain_ns = whole.drain_ns.max(part.drain_ns);
    }
    whole.readings = match is_shared {
        true => all.into_iter().filter_map(LoadReading::merged).collect(),
        // The reading of a single host is taken whole.
        false => all.into_iter().flatten().map(|(_, one)| one).collect(),
    };
    for reading in &mut whole.readings {
        for (host, late_us) in reading.hosts.iter_mut().zip(&late_us) {
            host.start_late_us = *late_us;
        }
    }
    Ok(whole)
}
