//! One load that several hosts make together, without an experiment: of `weigh load` and
//! `weigh capacity`.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use agent::wire::{AnswerSummary, LoadOrder, Loaded, Order};
use agent::{AgentError, AgentHandle};
use hosts::{Hosts, HostsError, HostsSpec};
use load::{Job, Progress, Row, Segment, Stop};
use readings::{HostReading, HostSpec, LoadReading};

use crate::fleet_load::{self, HostPart, HostReport, NeededTimes};
use crate::host_rows::HostRows;

/// The length of the load from which is learned how long the hosts need to begin one.
const TRIED_FOR: Duration = Duration::from_millis(1);

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
    is_tried: bool,
}

/// A host's name, and what came of its part of a load.
type HostResult = (String, Result<Loaded, AgentError>);

/// What the hosts measured.
pub struct FleetLoad {
    /// Merged; [`LoadReading::hosts`] has each host's part where there are several. A host that was
    /// lost is named there, and so is one that began late: the load is invalid then.
    pub reading: LoadReading,
    /// Whether the answers of the target differ from time to time, so that content is not compared.
    pub is_varying: bool,
    /// What the target answered to each request before the load, as the first host saw it; `None`
    /// where answers are not compared.
    pub answers: Vec<Option<AnswerSummary>>,
    /// A host whose answers before the load were others than those of the first one.
    pub differs: Option<String>,
}

impl Fleet {
    /// Opens the hosts and starts the agent `weigh` on each.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn open(specs: Vec<HostSpec>, weigh: &Path) -> Result<Self, HostsError> {
        agent::leftovers::sweep();
        let hosts = Hosts::open(HostsSpec::Machines(specs.clone()), weigh)?;
        Ok(Self::of(hosts, specs))
    }

    fn of(hosts: Hosts, specs: Vec<HostSpec>) -> Self {
        Self {
            hosts: Some(hosts),
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            specs,
            needed: NeededTimes::default(),
            is_tried: false,
        }
    }

    /// How many hosts make the load.
    pub fn size(&self) -> usize {
        self.names.len()
    }

    /// The first host that is not in the network namespace of this process: a loopback address means
    /// another machine there.
    ///
    /// # Errors
    /// When an agent is lost.
    pub fn apart_from_here(&mut self) -> Result<Option<&str>, AgentError> {
        let here = agent::namespace_id();
        let agents = self.agents()?;
        let apart = agents.iter().position(|agent| agent.network() != here);
        Ok(apart.map(|place| self.names[place].as_str()))
    }

    fn agents(&mut self) -> Result<Vec<&mut dyn AgentHandle>, AgentError> {
        match &mut self.hosts {
            Some(hosts) => hosts.agents(&self.names),
            None => Err(AgentError::Lost("the hosts could not be reopened".into())),
        }
    }

    /// Makes a load of one segment. The job's connections and rates are those of all hosts, its
    /// threads those of each. Before the first load, a few requests of each host tell how long the
    /// hosts need to begin. Hosts that were lost in the load before are reopened.
    ///
    /// `report` gets the progress: rows over all hosts, and ticks whose thread is the first of their
    /// host. When `stop` is set the load is cut short and what was measured is returned.
    ///
    /// # Errors
    /// When a host cannot be reopened or cannot make the load, or all were lost; the message names
    /// the host.
    pub fn load(
        &mut self,
        job: &Job,
        stop: &AtomicBool,
        report: &mut dyn FnMut(Progress),
    ) -> Result<FleetLoad, AgentError> {
        self.reopen_lost(stop)?;
        if !self.is_tried {
            let tried = self.try_out(job, stop)?;
            tried.iter().for_each(|loaded| self.needed.learn(loaded));
            self.is_tried = true;
        }
        let mut rows = HostRows::of(self.names.len());
        let mut is_open = false;
        report(Progress::SegmentBegins { segment: 0 });
        let parts = self.carry_out(job, stop, &mut |number, one| match one {
            HostReport::WindowOpens if !is_open => {
                is_open = true;
                report(Progress::WindowOpens { segment: 0 });
            }
            HostReport::WindowOpens => {}
            HostReport::Answers {
                segment,
                requests,
                errors,
            } => report(Progress::Tick {
                thread: number * job.threads,
                segment,
                requests,
                errors,
            }),
            HostReport::Row(row) => rows.take(number, *row, &mut |row| report(row_of(row))),
            HostReport::Ends => rows.end(number, &mut |row| report(row_of(row))),
        })?;
        for loaded in parts.iter().filter_map(|(_, part)| part.as_ref().ok()) {
            self.needed.learn(loaded);
        }
        merged(parts, rows)
    }

    /// Has each host make a load that is over at once, with as few connections as possible.
    fn try_out(&mut self, job: &Job, stop: &AtomicBool) -> Result<Vec<Loaded>, AgentError> {
        let mut job = job.clone();
        for target in &mut job.targets {
            let fewest = self.names.len() * job.threads;
            target.connections = target.connections.min(fewest as u32);
        }
        job.segments = vec![Segment::closed(Stop::After(TRIED_FOR))];
        job.rows = None;
        let parts = self.carry_out(&job, stop, &mut |_, _| {})?;
        parts
            .into_iter()
            .map(|(host, result)| result.map_err(|error| HostPart::of_host(&host).failed(error)))
            .collect()
    }

    /// What each host made of its part of a job.
    fn carry_out(
        &mut self,
        job: &Job,
        stop: &AtomicBool,
        report: &mut dyn FnMut(usize, HostReport),
    ) -> Result<Vec<HostResult>, AgentError> {
        let timing = self.needed.timing(&job.segments);
        let count = self.names.len();
        let orders = self.specs.iter().enumerate().map(|(number, spec)| {
            let part = fleet_load::part_of(number, count, job.threads, timing.gap);
            let own = Job {
                part: Some(part),
                cpus: spec.cpus.clone(),
                ..job.clone()
            };
            let order = LoadOrder {
                report_windows: true,
                report_rows: own.rows.is_some(),
                report_answers: true,
                ..LoadOrder::of(own)
            };
            (HostPart::of_host(&spec.name), order)
        });
        let orders = orders.collect();
        let agents = self.agents()?;
        let parts = fleet_load::at_the_same_time(agents, orders, timing.lead, stop, report)?;
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
fn merged(parts: Vec<HostResult>, rows: HostRows) -> Result<FleetLoad, AgentError> {
    let is_shared = parts.len() > 1;
    let (mut readings, mut lost, mut late_us) = (Vec::new(), Vec::new(), Vec::new());
    let (mut is_varying, mut differs) = (false, None);
    let mut answers: Option<Vec<Option<AnswerSummary>>> = None;
    for (host, result) in parts {
        match result {
            Ok(loaded) => {
                is_varying |= !loaded.varying.is_empty();
                match &answers {
                    None => answers = Some(loaded.answers),
                    Some(first) if *first != loaded.answers => {
                        differs.get_or_insert(host.clone());
                    }
                    Some(_) => {}
                }
                late_us.push((host.clone(), loaded.late_ns as f64 / 1e3));
                let reading = loaded.readings.into_iter().next();
                readings.extend(reading.map(|one| (host, one)));
            }
            Err(AgentError::Lost(why)) => {
                let why = fleet_load::without_host(&why, &host).to_owned();
                lost.push((host, why));
            }
            Err(error) => return Err(HostPart::of_host(&host).failed(error)),
        }
    }
    let with = |reading| FleetLoad {
        reading,
        is_varying,
        answers: answers.unwrap_or_default(),
        differs,
    };
    if !is_shared && let Some((_, mut reading)) = readings.pop() {
        // The reading of a single host is taken whole.
        reading.keep_quantiles_only();
        return Ok(with(reading));
    }
    let Some(mut reading) = LoadReading::merged(readings) else {
        let (host, why) = lost.into_iter().next().unwrap_or_default();
        return Err(match host.is_empty() {
            true => AgentError::Failed("nothing was measured".into()),
            false => HostPart::of_host(&host).failed(AgentError::Lost(why)),
        });
    };
    for host in &mut reading.hosts {
        let late_us = late_us.iter().find(|(name, _)| *name == host.host);
        host.start_late_us = late_us.map_or(0.0, |(_, us)| *us);
    }
    reading
        .hosts
        .extend(lost.into_iter().map(|(host, why)| HostReading {
            host,
            lost: Some(why),
            ..HostReading::default()
        }));
    reading.rows = rows.rows;
    reading.rows_left_out = rows.left_out;
    Ok(with(reading))
}

#[cfg(test)]
mod tests;
