//! A fake agent: it answers by a script and logs its orders.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use agent::wire::{Answer, AnswerSummary, DriveOrder, Driven, LoadOrder, Loaded, Order};
use agent::{AgentError, AgentHandle, Clock, LoadObserver};
use hosts::Host;
use readings::{BottleneckSample, LoadReading, ServerSample, Slice};

/// The behaviour of a test's agents, and a log of their orders.
pub(crate) struct Script {
    /// The orders, such as `start a`, in order of arrival.
    pub(crate) log: Vec<String>,
    /// Number of readiness checks that fail first, by server or `subject NAME`.
    pub(crate) not_ready: BTreeMap<String, usize>,
    /// What subjects answer, by their server: a text each.
    pub(crate) answers: BTreeMap<String, String>,
    /// Servers that cannot be started.
    pub(crate) broken: BTreeSet<String>,
    pub(crate) loads: usize,
    /// The load, counted from 1, during which the agent dies.
    pub(crate) dies_in_load: Option<usize>,
    /// The load that fails after its faults were injected.
    pub(crate) fails_in_load: Option<usize>,
    /// Idle CPU shares of servers.
    pub(crate) idle_cpus: BTreeMap<String, f64>,
    pub(crate) rate_per_s: fn(&LoadOrder) -> f64,
    /// CPU time of the client in each load, s.
    pub(crate) client_cpu_s: f64,
    /// Whether frozen servers stay frozen.
    pub(crate) thaw_fails: bool,
    running: BTreeSet<String>,
    is_dead: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            log: Vec::new(),
            not_ready: BTreeMap::new(),
            answers: BTreeMap::new(),
            broken: BTreeSet::new(),
            loads: 0,
            dies_in_load: None,
            fails_in_load: None,
            idle_cpus: BTreeMap::new(),
            rate_per_s: |_| 10_000.0,
            client_cpu_s: 0.0,
            thaw_fails: false,
            running: BTreeSet::new(),
            is_dead: false,
        }
    }
}

pub(crate) type SharedScript = Rc<RefCell<Script>>;

pub(crate) struct FakeHost {
    agent: FakeAgent,
}

impl FakeHost {
    /// A new host; a dead agent is alive again.
    pub(crate) fn open(script: &SharedScript) -> Box<dyn Host> {
        script.borrow_mut().is_dead = false;
        script.borrow_mut().running.clear();
        Box::new(Self {
            agent: FakeAgent(script.clone()),
        })
    }
}

impl Host for FakeHost {
    fn name(&self) -> &str {
        ""
    }

    fn agent(&mut self) -> Result<&mut dyn AgentHandle, AgentError> {
        Ok(&mut self.agent)
    }

    fn start_agent(&self) -> Result<Box<dyn AgentHandle>, AgentError> {
        Ok(Box::new(FakeAgent(self.agent.0.clone())))
    }

    fn is_free(&mut self, _: u16) -> bool {
        true
    }
}

struct FakeAgent(SharedScript);

impl FakeAgent {
    fn failed(reason: impl Into<String>) -> AgentError {
        AgentError::Failed(reason.into())
    }
}

impl AgentHandle for FakeAgent {
    fn ask_unless(&mut self, order: &Order, _: &AtomicBool) -> Result<Answer, AgentError> {
        let mut script = self.0.borrow_mut();
        if script.is_dead {
            return Err(AgentError::Lost("it ended".into()));
        }
        Ok(match order {
            Order::Folder { server, .. } => Answer::Folder {
                path: format!("/fake/{server}"),
            },
            Order::Start(start) => {
                script.log.push(format!("start {}", start.server));
                if script.broken.contains(&start.server) {
                    let words = "its last words:\n  no such directive";
                    return Err(Self::failed(format!("it ended by itself; {words}")));
                }
                script.running.insert(start.server.clone());
                Answer::Started {
                    pid: 1,
                    group: None,
                }
            }
            Order::Await(ready) => {
                // A request names its subject's server.
                let host = ready.request.split("Host: ").nth(1);
                let host = host.and_then(|rest| rest.split_whitespace().next());
                let host = host.unwrap_or_default().to_owned();
                let subject = format!("subject {host}");
                let name = ready.server.clone().unwrap_or(subject);
                if let Some(left) = script.not_ready.get_mut(&name).filter(|left| **left > 0) {
                    *left -= 1;
                    return Err(Self::failed("it does not answer"));
                }
                match script.answers.get(&host).filter(|_| ready.server.is_none()) {
                    Some(body) => Answer::Ready(AnswerSummary {
                        status: 200,
                        body_bytes: body.len() as u64,
                        body_hash: body.bytes().map(u64::from).sum(),
                        coding: String::new(),
                    }),
                    None => Answer::Done,
                }
            }
            Order::Stop { server, .. } => {
                script.log.push(format!("stop {server}"));
                script.running.remove(server);
                Answer::Stopped {
                    killed: false,
                    ended_before: false,
                }
            }
            Order::Freeze {
                server,
                frozen: false,
            } if script.thaw_fails => {
                return Err(Self::failed(format!("{server} does not go on")));
            }
            Order::Freeze { server, frozen } => {
                script.log.push(format!("freeze {server} {frozen}"));
                Answer::Done
            }
            Order::Logs { .. } => Answer::Logs {
                files: BTreeMap::new(),
            },
            Order::Usage { .. } => Answer::Usage {
                cpu_s: 0.0,
                connections: None,
            },
            Order::SampleScheduling { servers, .. } => {
                let one = |name: &String| {
                    let cpus = script.idle_cpus.get(name).copied().unwrap_or(0.0);
                    (name.clone(), busy(cpus))
                };
                Answer::Scheduling(Box::new(BottleneckSample {
                    duration_s: 0.2,
                    servers: servers.iter().map(one).collect(),
                    ..BottleneckSample::default()
                }))
            }
            other => return Err(Self::failed(format!("not in the script: {other:?}"))),
        })
    }

    fn load(
        &mut self,
        order: LoadOrder,
        _: &AtomicBool,
        observer: &mut dyn LoadObserver,
    ) -> Result<Loaded, AgentError> {
        let number = {
            let mut script = self.0.borrow_mut();
            script.loads += 1;
            let running = script.running.iter().cloned().collect::<Vec<_>>().join("+");
            script.log.push(format!("load on {running}"));
            script.loads
        };
        let script = self.0.borrow();
        if script.dies_in_load == Some(number) {
            drop(script);
            self.0.borrow_mut().is_dead = true;
            return Err(AgentError::Lost("it ended".into()));
        }
        let (rate_per_s, fails) = ((script.rate_per_s)(&order), script.fails_in_load);
        let client_cpu_s = script.client_cpu_s;
        drop(script);
        let rows = order.job.rows;
        if rows.is_some() {
            observer.tick(true);
            let end = std::time::Instant::now() + std::time::Duration::from_millis(30);
            while std::time::Instant::now() < end {
                observer.tick(false);
            }
        }
        if fails == Some(number) {
            return Err(Self::failed("the load broke off"));
        }
        let count = order.job.readings();
        let mut loaded = Loaded {
            readings: vec![LoadReading::default(); count],
            ..Loaded::default()
        };
        for segment in &order.job.segments {
            let Some(reading) = segment.reading else {
                continue;
            };
            let duration_s = match segment.stop {
                load::Stop::After(time) => time.as_secs_f64(),
                load::Stop::Requests(count) | load::Stop::EachConnection(count) => {
                    count as f64 / rate_per_s
                }
            };
            let requests = (rate_per_s * duration_s) as u64;
            let reading = &mut loaded.readings[reading];
            reading.pacing = segment.pacing;
            reading.client.cpu_s = client_cpu_s;
            reading.duration_s += duration_s;
            reading.requests += requests;
            reading.requests_all += requests;
            reading.connections = u64::from(order.job.targets[segment.target].connections);
            reading.slices.push(Slice {
                duration_s,
                requests,
                ..Slice::default()
            });
        }
        if order.sample_scheduling {
            let servers = order.watch.iter().map(|name| (name.clone(), busy(1.0)));
            loaded.seen = Some(BottleneckSample {
                duration_s: 1.0,
                servers: servers.collect(),
                ..BottleneckSample::default()
            });
        }
        Ok(loaded)
    }

    fn drive(&mut self, _: DriveOrder, _: &AtomicBool) -> Result<Driven, AgentError> {
        Err(Self::failed("not in the script: an outside driver"))
    }

    fn clock(&mut self) -> Result<Clock, AgentError> {
        Ok(Clock::default())
    }

    fn gone(&mut self) -> Option<AgentError> {
        let is_dead = self.0.borrow().is_dead;
        is_dead.then(|| AgentError::Lost("it ended".into()))
    }

    fn network(&self) -> &str {
        "fake/1"
    }

    fn program(&self) -> &Path {
        Path::new("/fake/weigh")
    }
}

fn busy(cpus: f64) -> ServerSample {
    ServerSample {
        cpus,
        threads: 1,
        busiest: vec![cpus],
        wanted: vec![cpus],
    }
}
