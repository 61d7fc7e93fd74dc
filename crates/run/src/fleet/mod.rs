//! One load that several hosts make together, without an experiment: of `weigh load` and
//! `weigh capacity`.

pub(crate) mod at_once;
mod host_rows;
pub(crate) mod orders;
pub(crate) mod timing;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use agent::wire::{LoadOrder, Loaded, Order};
use agent::{AgentError, AgentHandle};
use hosts::{Hosts, HostsError, HostsSpec};
use load::{Expect, Job, Progress, Row, Segment, Stop};
use readings::{HostReading, HostSpec, LoadReading};

use crate::fleet::at_once::{HostPart, HostReport};
use crate::fleet::host_rows::HostRows;
use crate::fleet::timing::NeededTimes;

/// The length of the load from which is learned how long the hosts need to begin one.
const TRIED_FOR: Duration = Duration::from_millis(1);
/// Its rate, requests per second: one request in all.
const TRIED_PER_S: f64 = 1_000.0;
/// After a load that began late, the next one has so many times that lateness longer to begin.
const LATE_FACTOR: f64 = 1.5;

/// Hosts that make one load after another, each of them together.
///
/// Each host makes its exact share of the connections and the rate, all begin at the same time, and
/// their due times are interleaved.
pub struct Fleet {
    /// Absent only while they are reopened.
    hosts: Option<Hosts>,
    specs: Vec<HostSpec>,
    names: Vec<String>,
    needed: NeededTimes,
    /// The most by which a load began late so far: an order with a long body may take as long to
    /// arrive.
    late: Duration,
    /// Which answers count as good on each host, by request; empty before the first load.
    expectations: Vec<Vec<Expect>>,
    is_varying: bool,
}

/// A host's name, and what came of its part of a load.
type HostResult = (String, Result<Loaded, AgentError>);

/// What the hosts measured.
pub struct FleetLoad {
    /// Merged; [`LoadReading::hosts`] has each host's part. With a host that was lost or late the load
    /// is invalid.
    pub reading: LoadReading,
    /// Whether the answers of the target differ from time to time, so that content is not compared.
    pub is_varying: bool,
    /// Which answers count as good on the first host, by request.
    pub expectations: Vec<Expect>,
    /// A host whose answers before the load were others than those of the first one.
    pub host_with_other_answers: Option<String>,
}

impl Fleet {
    /// Opens the hosts and starts the agent `weigh` on each. The wait for one that has to be granted ends
    /// when `stop` is set.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn open(specs: Vec<HostSpec>, weigh: &Path, stop: &AtomicBool) -> Result<Self, HostsError> {
        agent::leftovers::sweep();
        let hosts = Hosts::open(HostsSpec::Machines(specs.clone()), weigh, stop)?;
        Ok(Self::of(hosts, specs))
    }

    fn of(hosts: Hosts, specs: Vec<HostSpec>) -> Self {
        Self {
            hosts: Some(hosts),
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            specs,
            needed: NeededTimes::default(),
            late: Duration::ZERO,
            expectations: Vec::new(),
            is_varying: false,
        }
    }

    /// How many hosts make the load.
    pub fn size(&self) -> usize {
        self.names.len()
    }

    /// The first host in another network namespace than this process. There a loopback address means
    /// that host.
    ///
    /// # Errors
    /// When an agent is lost.
    pub fn first_in_other_network(&mut self) -> Result<Option<&str>, AgentError> {
        let here = agent::namespace_id();
        let agents = self.agents()?;
        let other = agents.iter().position(|agent| agent.network() != here);
        Ok(other.map(|place| self.names[place].as_str()))
    }

    fn agents(&mut self) -> Result<Vec<&mut dyn AgentHandle>, AgentError> {
        match &mut self.hosts {
            Some(hosts) => hosts.agents(&self.names),
            None => Err(AgentError::Lost("the hosts could not be reopened".into())),
        }
    }

    /// Makes a load of one segment. The job's connections and rates are those of all hosts, its
    /// threads those of each. Before the first load each host asks for its reference answers, with
    /// which the answers of all loads are compared, and a load of a millisecond tells how long the hosts
    /// need to begin. If a host was lost in the load before, all are reopened.
    ///
    /// `report` gets the progress: rows over all hosts, and ticks whose thread is the first of their
    /// host. When `stop` is set the load is cut short and what was measured is returned.
    ///
    /// # Errors
    /// [`AgentError::Lost`] when hosts cannot be reopened, or all were lost; otherwise when a host cannot
    /// make the load. The message names the host.
    pub fn load(
        &mut self,
        job: &Job,
        stop: &AtomicBool,
        report: &mut dyn FnMut(Progress),
    ) -> Result<FleetLoad, AgentError> {
        self.reopen_lost(stop)?;
        if self.expectations.is_empty() {
            self.prepare(job, stop)?;
        }
        let mut rows = HostRows::of(self.names.len());
        let (mut has_begun, mut is_open) = (false, false);
        // The hosts whose window is open or still to come.
        let mut measuring: BTreeSet<usize> = (0..self.names.len()).collect();
        let parts = self.carry_out(job, stop, &mut |number, one| {
            if !std::mem::replace(&mut has_begun, true) {
                report(Progress::SegmentBegins { segment: 0 });
            }
            if matches!(one, HostReport::WindowCloses | HostReport::Ends)
                && measuring.remove(&number)
                && measuring.is_empty()
            {
                report(Progress::WindowCloses { segment: 0 });
            }
            match one {
                HostReport::WindowCloses => {}
                HostReport::WindowOpens => {
                    if !std::mem::replace(&mut is_open, true) {
                        report(Progress::WindowOpens { segment: 0 });
                    }
                }
                HostReport::Answers {
                    segment,
                    requests,
                    errors,
                } => report(Progress::Tick {
                    thread: number * job.threads,
                    segment,
                    requests,
                    errors,
                    // Hosts report what is over.
                    messages: 0,
                }),
                HostReport::Row(row) => rows.take(number, *row, &mut |row| report(row_of(row))),
                HostReport::Ends => rows.end(number, &mut |row| report(row_of(row))),
            }
        })?;
        for loaded in parts.iter().filter_map(|(_, part)| part.as_ref().ok()) {
            self.learn(loaded);
        }
        let reading = merged(parts, rows)?;
        let first = &self.expectations[0];
        let other = self.expectations.iter().position(|one| one != first);
        Ok(FleetLoad {
            reading,
            is_varying: self.is_varying,
            expectations: first.clone(),
            host_with_other_answers: other.map(|number| self.names[number].clone()),
        })
    }

    fn learn(&mut self, loaded: &Loaded) {
        self.needed.learn(loaded);
        self.late = self.late.max(Duration::from_nanos(loaded.late_ns));
    }

    /// Has each host ask for its reference answers and make a load that is over at once.
    fn prepare(&mut self, job: &Job, stop: &AtomicBool) -> Result<(), AgentError> {
        let mut job = job.clone();
        job.segments = vec![Segment::open(TRIED_PER_S, Stop::After(TRIED_FOR))];
        job.rows = None;
        let mut expectations = Vec::new();
        for (host, result) in self.carry_out(&job, stop, &mut |_, _| {})? {
            let loaded = result.map_err(|error| HostPart::of_host(&host).failed(error))?;
            self.learn(&loaded);
            self.is_varying |= !loaded.varying.is_empty();
            expectations.push(loaded.expectations);
        }
        self.expectations = expectations;
        Ok(())
    }

    /// The job of one host, with its part and the answers that count as good there.
    fn job_of(&self, number: usize, job: &Job, gap: Duration) -> Job {
        let mut own = job.clone();
        let part = orders::part_of(number, self.names.len(), job.threads, gap);
        own.part = Some(part);
        own.cpus.clone_from(&self.specs[number].cpus);
        let requests = own
            .targets
            .iter_mut()
            .take(1)
            .flat_map(|one| &mut one.requests);
        let known = self.expectations.get(number).into_iter().flatten();
        for (request, expect) in requests.zip(known) {
            request.expect = expect.clone();
        }
        own
    }

    /// Has each host make its part of a job.
    fn carry_out(
        &mut self,
        job: &Job,
        stop: &AtomicBool,
        report: &mut dyn FnMut(usize, HostReport),
    ) -> Result<Vec<HostResult>, AgentError> {
        let timing = self.needed.timing(&job.segments);
        let lead = timing.lead + self.late.mul_f64(LATE_FACTOR);
        let orders = self.names.iter().enumerate().map(|(number, name)| {
            let own = self.job_of(number, job, timing.gap);
            let order = LoadOrder {
                report_windows: true,
                report_rows: own.rows.is_some(),
                report_expectations: true,
                ..LoadOrder::of(own)
            };
            (HostPart::of_host(name), order)
        });
        let orders = orders.collect();
        let agents = self.agents()?;
        let parts = at_once::at_the_same_time(agents, orders, lead, stop, report)?;
        let results = parts.into_iter().map(|(_, result)| result);
        Ok(self.names.iter().cloned().zip(results).collect())
    }

    fn reopen_lost(&mut self, stop: &AtomicBool) -> Result<(), AgentError> {
        let asked = self.agents().and_then(|agents| {
            let answers = agents.into_iter().map(|agent| agent.ask(&Order::Clock));
            answers.collect::<Result<Vec<_>, _>>()
        });
        let Some(hosts) = self.hosts.take_if(|_| asked.is_err()) else {
            return Ok(());
        };
        let reopened = hosts.reopen(stop);
        self.hosts = Some(reopened.map_err(|error| AgentError::Lost(error.to_string()))?);
        Ok(())
    }

    /// Ends all agents. Returns the hosts whose agents did not confirm that, a sentence each.
    pub fn close(mut self) -> Vec<String> {
        self.hosts
            .take()
            .map_or_else(Vec::new, |mut hosts| hosts.close())
    }
}

fn row_of(row: Row) -> Progress {
    Progress::Row(Box::new(row))
}

/// What the hosts measured together.
fn merged(parts: Vec<HostResult>, rows: HostRows) -> Result<LoadReading, AgentError> {
    let names: Vec<String> = parts.iter().map(|(host, _)| host.clone()).collect();
    let (mut readings, mut late_us, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for (host, result) in parts {
        match result {
            Ok(loaded) => {
                let late_ns = loaded.late_ns;
                match <[LoadReading; 1]>::try_from(loaded.readings) {
                    Ok([reading]) => {
                        late_us.push(late_ns as f64 / 1e3);
                        readings.push((host, reading));
                    }
                    Err(others) => {
                        let count = others.len();
                        lost.push((
                            host,
                            format!("it sent {count} readings of its load; expected 1"),
                        ));
                    }
                }
            }
            Err(AgentError::Lost(why)) => {
                let why = at_once::without_host(&why, &host).to_owned();
                lost.push((host, why));
            }
            Err(error) => return Err(HostPart::of_host(&host).failed(error)),
        }
    }
    let alone = (names.len() == 1).then(|| readings.pop()).flatten();
    if let Some((host, mut reading)) = alone {
        // The reading of a single host is taken whole.
        reading.keep_quantiles_only();
        reading.hosts = vec![reading.as_host(&host)];
        return Ok(reading);
    }
    let Some(mut reading) = LoadReading::merged(readings) else {
        return Err(match lost.into_iter().next() {
            None => AgentError::Failed("nothing was measured".into()),
            Some((host, why)) => HostPart::of_host(&host).failed(AgentError::Lost(why)),
        });
    };
    for (host, late_us) in reading.hosts.iter_mut().zip(late_us) {
        host.start_late_us = late_us;
    }
    reading
        .hosts
        .extend(lost.into_iter().map(|(host, why)| HostReading {
            host,
            lost: Some(why),
            ..HostReading::default()
        }));
    let place = |host: &HostReading| names.iter().position(|name| *name == host.host);
    reading.hosts.sort_by_key(place);
    reading.rows = rows.rows;
    reading.rows_left_out = rows.left_out;
    Ok(reading)
}

#[cfg(test)]
mod tests;
