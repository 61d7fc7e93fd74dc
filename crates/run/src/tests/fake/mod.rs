//! A fake agent: it answers by a script and logs its orders.

mod links;
mod script;
pub(crate) mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use agent::wire::{
    Answer, AnswerSummary, AwaitServer, DriveOrder, Driven, LoadOrder, Loaded, Order,
};
use agent::{AgentError, AgentHandle, Clock, LoadObserver};
use hosts::Host;
use readings::{
    BottleneckSample, CpuSample, HostSpec, LinkSpec, LoadReading, Offered, Pacing, ServerSample,
    ServerStart, Slice,
};

pub(crate) use links::FakeLinks;
use script::observed_now;
pub(crate) use script::{Script, SharedScript};

/// How long a load with events takes.
pub(crate) const LOAD: Duration = Duration::from_millis(30);

pub(crate) struct FakeHost {
    /// Of a machine; empty for this one where hosts are not separate.
    name: String,
    link: Option<LinkSpec>,
    agent: FakeAgent,
}

impl FakeHost {
    /// A new host; a dead agent is alive again.
    pub(crate) fn open(script: &SharedScript) -> Box<dyn Host> {
        Self::machine(script, &HostSpec::default())
    }

    /// A new host behind a pipe.
    pub(crate) fn machine(script: &SharedScript, spec: &HostSpec) -> Box<dyn Host> {
        script.borrow_mut().is_dead = false;
        script.borrow_mut().running.clear();
        Box::new(Self {
            name: spec.name.clone(),
            link: spec.link,
            agent: FakeAgent::on(script, &spec.name),
        })
    }
}

impl Host for FakeHost {
    fn name(&self) -> &str {
        &self.name
    }

    fn machine(&self) -> &str {
        &self.name
    }

    fn link(&self) -> Option<LinkSpec> {
        self.link
    }

    fn remote_program(&self) -> Option<PathBuf> {
        (!self.name.is_empty()).then(|| PathBuf::from("/fake/weigh"))
    }

    fn usable_cpus(&self) -> Vec<u32> {
        vec![0, 1]
    }

    fn agent(&mut self) -> Result<&mut dyn AgentHandle, AgentError> {
        Ok(&mut self.agent)
    }

    fn start_agent(&self) -> Result<Box<dyn AgentHandle>, AgentError> {
        Ok(Box::new(FakeAgent::on(&self.agent.script, &self.name)))
    }

    fn is_free(&mut self, _: u16) -> bool {
        true
    }

    fn set_cpu_quota(&self, cpus: Option<f64>) -> std::io::Result<()> {
        let mut script = self.agent.script.borrow_mut();
        script.log.push(format!("quota of the host {cpus:?}"));
        Ok(())
    }
}

struct FakeAgent {
    script: SharedScript,
    host: String,
    network: String,
}

impl FakeAgent {
    fn on(script: &SharedScript, host: &str) -> Self {
        let machine = if host.is_empty() { "fake" } else { host };
        Self {
            script: script.clone(),
            host: host.to_owned(),
            network: format!("{machine}/1"),
        }
    }

    /// Its CLOCK_MONOTONIC.
    fn now_ns(&self) -> i64 {
        time::now_ns() + self.ahead_ns()
    }

    fn ahead_ns(&self) -> i64 {
        let script = self.script.borrow();
        script.ahead_ns.get(&self.host).copied().unwrap_or(0)
    }

    fn failed(reason: impl Into<String>) -> AgentError {
        AgentError::Failed(reason.into())
    }
}

impl AgentHandle for FakeAgent {
    fn ask_unless(&mut self, order: &Order, _: &AtomicBool) -> Result<Answer, AgentError> {
        if let Order::Timed { at_ns, of } = order {
            let left_ns = at_ns.saturating_sub(self.now_ns());
            time::sleep(Duration::from_nanos(left_ns.try_into().unwrap_or(0)));
            let order_delay = self.script.borrow().order_delay;
            time::sleep(order_delay(of));
            let began_ns = self.now_ns();
            let of = Box::new(self.ask(of)?);
            return Ok(Answer::Timed {
                began_ns,
                ended_ns: self.now_ns(),
                of,
            });
        }
        let mut script = self.script.borrow_mut();
        if script.is_dead {
            return Err(AgentError::Lost("it ended".into()));
        }
        Ok(match order {
            Order::Find(_) => Answer::Found {
                programs: BTreeMap::new(),
                missing: None,
            },
            Order::StartSampling {
                servers,
                scheduling,
            } => {
                let named = |servers: &BTreeSet<String>| {
                    let names: Vec<&str> = servers.iter().map(String::as_str).collect();
                    names.join("+")
                };
                let which = servers.as_ref().map_or("all".to_owned(), named);
                script.log.push(format!("sample {which} on {}", self.host));
                script.sampling.insert(self.host.clone(), *scheduling);
                Answer::Done
            }
            Order::StopSampling { readings } => {
                let scheduling = script.sampling.remove(&self.host).unwrap_or(false);
                let here = |server: &&String| script.hosts.get(*server) == Some(&self.host);
                let servers = script.running.iter().filter(here);
                let seen = BottleneckSample {
                    duration_s: 1.0,
                    servers: servers.map(|name| (name.clone(), busy(1.0))).collect(),
                    cpus: vec![CpuSample { cpu: 0, busy: 1.0 }],
                    ..BottleneckSample::default()
                };
                Answer::Measured {
                    readings: vec![agent::Measured::default(); readings.len()],
                    seen: scheduling.then(|| Box::new(seen)),
                }
            }
            Order::InstructionScope => Answer::InstructionScope {
                scope: (script.instruction_scope)(&self.host),
            },
            Order::StartCounting { .. } if script.counting_fails => {
                return Err(Self::failed("no counter is free"));
            }
            Order::StartCounting {
                servers,
                others,
                scope,
            } => {
                let others = others.iter().map(|other| other.server.clone());
                let mut all: Vec<String> = servers.iter().cloned().chain(others).collect();
                all.sort_unstable();
                let line = format!("count {} on {}: {scope:?}", all.join("+"), self.host);
                script.log.push(line);
                script.counting.insert(self.host.clone(), all);
                Answer::Done
            }
            Order::StopCounting { loads } => {
                script.log.push(format!("counted on {}", self.host));
                let servers = script.counting.remove(&self.host).unwrap_or_default();
                let count =
                    |server: String| Some((server.clone(), *script.instructions.get(&server)?));
                let counts = servers.into_iter().filter_map(count).collect();
                Answer::Counted {
                    loads: vec![counts; loads.len()],
                }
            }
            Order::Folder { server, .. } => Answer::Folder {
                path: format!("/fake/{server}"),
                weigh: None,
            },
            Order::Start(start) => {
                script.log.push(format!("start {}", start.server));
                if script.broken.contains(&start.server) {
                    let words = "its last output:\n  no such directive";
                    return Err(Self::failed(format!("it ended by itself; {words}")));
                }
                std::thread::sleep((script.start_takes)(script.block));
                script.had_s = 0.0;
                script.running.insert(start.server.clone());
                script.changed.insert(start.server.clone(), time::now_ns());
                script.hosts.insert(start.server.clone(), self.host.clone());
                Answer::Started {
                    pid: 1,
                    group: None,
                    counts: None,
                    tcp_congestion: None,
                }
            }
            Order::Await(ready) => {
                // A request names its subject's server.
                let host = ready.request.split("Host: ").nth(1);
                let host = host.and_then(|rest| rest.split_whitespace().next());
                let host = host.unwrap_or_default().to_owned();
                if ready.server.is_none() {
                    script.asked.push(ready.request.clone());
                }
                let subject = format!("subject {host}");
                let name = ready.server.clone().unwrap_or(subject);
                if script.ends_in_loads.contains(&name) && !script.running.contains(&name) {
                    return Err(Self::failed(format!("`{name}` ended by itself (status 7)")));
                }
                if let Some(left) = script.not_ready.get_mut(&name).filter(|left| **left > 0) {
                    *left -= 1;
                    return Err(Self::failed("it does not answer"));
                }
                let mut answers = script.answers.get_mut(&host);
                match answers.as_mut().filter(|_| ready.server.is_none()) {
                    Some(bodies) => {
                        let body = bodies[0];
                        if bodies.len() > 1 {
                            bodies.remove(0);
                        }
                        Answer::Ready(AnswerSummary {
                            status: 200,
                            body_bytes: body.len() as u64,
                            body_hash: body.bytes().map(u64::from).sum(),
                            coding: String::new(),
                        })
                    }
                    None if ready.server.is_some() => Answer::Up(ServerStart {
                        start_ms: 12.5,
                        rest_bytes: Some(7_000_000),
                    }),
                    None => Answer::Done,
                }
            }
            Order::IsReady(AwaitServer { server, .. }) => {
                script.observed(server.as_deref().unwrap_or_default(), script.ready_after)
            }
            Order::PollStop { server, .. } => script.poll_stop(server),
            Order::BeginStop { .. } | Order::Clock => Answer::Done,
            Order::Stop { server, .. } => {
                script.stopped(server);
                Answer::Stopped {
                    killed: false,
                    ended_before: false,
                }
            }
            Order::Suspend {
                server,
                suspended: false,
            } if script.resume_fails => {
                return Err(Self::failed(format!("{server} does not go on")));
            }
            Order::Suspend { server, suspended } => {
                script.log.push(format!("suspend {server} {suspended}"));
                Answer::Done
            }
            Order::Reload(order) => {
                let paths: Vec<&str> = order.files.iter().map(|file| file.path.as_str()).collect();
                let signal = order.signal.as_deref().unwrap_or_default();
                let line = format!("reload {} {signal} {}", order.server, paths.join(" "));
                script.log.push(line);
                Answer::Done
            }
            Order::IsReloaded(probe) => {
                script.reload_checks += 1;
                script.reload_asked.clone_from(&probe.ask.request);
                observed_now(script.reload_checks >= script.in_effect_at_check)
            }
            Order::Quota { cpus: Some(_), .. } if script.quota_fails => {
                return Err(Self::failed("no control group can be made"));
            }
            Order::Quota { server, cpus } => {
                script.log.push(format!("quota {server} {cpus:?}"));
                match cpus {
                    Some(_) => script.limited.insert(server.clone()),
                    None => script.limited.remove(server),
                };
                Answer::Done
            }
            Order::PeerLinks { .. } if script.links_fail => {
                return Err(Self::failed("the kernel refuses"));
            }
            Order::PeerLinks { peers, .. } => {
                for peer in peers {
                    let link = &peer.link;
                    let rate = link.rate_bits_per_s.map(|rate| format!(", {rate} bit/s"));
                    let line = format!(
                        "link {} to {}: {} ms, {}{}",
                        self.host,
                        peer.host,
                        link.rtt_ns / 1_000_000,
                        link.loss,
                        rate.unwrap_or_default()
                    );
                    script.log.push(line);
                }
                Answer::Done
            }
            Order::Logs { .. } => Answer::Logs {
                files: BTreeMap::new(),
            },
            Order::Usage { port, .. } => {
                script.log.extend(port.map(|_| "connections".to_owned()));
                Answer::Usage {
                    cpu_s: 0.0,
                    connections: None,
                    memory_bytes: None,
                }
            }
            Order::SampleScheduling { servers, .. } => {
                script.samples_without_load += 1;
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
            let mut script = self.script.borrow_mut();
            script.loads += 1;
            let running = script.running.iter().cloned().collect::<Vec<_>>().join("+");
            script.log.push(format!("load on {running}"));
            script.orders.push(order.clone());
            let mut ending = script.ends_in_loads.intersection(&script.running);
            if let Some(name) = ending.next().cloned() {
                script.running.remove(&name);
                return Err(Self::failed(format!("`{name}` ended by itself (status 7)")));
            }
            script.loads
        };
        let script = self.script.borrow();
        if script.dies_in_load == Some(number) {
            drop(script);
            self.script.borrow_mut().is_dead = true;
            return Err(AgentError::Lost("it ended".into()));
        }
        let limited = match script.limited.is_empty() {
            true => 1.0,
            false => script.limited_rate,
        };
        let (rate_per_s, fails) = ((script.rate_per_s)(&order) * limited, script.fails_in_load);
        let (client_cpu_s, answer_us) = (script.client_cpu_s, script.answer_us);
        let is_wrong = (script.answers_wrongly)(script.block, number);
        let is_overloaded = script.is_overloaded;
        drop(script);
        let rows = order.job.rows;
        if rows.is_some() {
            observer.tick(Some(self.now_ns()));
            let end_ns = time::now_ns() + LOAD.as_nanos() as i64;
            while time::now_ns() < end_ns {
                time::sleep(observer.interval());
                observer.tick(None);
            }
        }
        if order.report_windows {
            observer.window_closes(0);
        }
        let (late_ns, breaks) = {
            let mut script = self.script.borrow_mut();
            ((script.late_ns)(&order), (script.fails)(&order))
        };
        if breaks || fails == Some(number) {
            return Err(Self::failed("the load broke off"));
        }
        let count = order.job.readings();
        let mut loaded = Loaded {
            readings: vec![LoadReading::default(); count],
            late_ns,
            drain_ns: 2 * late_ns,
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
            let target = &order.job.targets[segment.target];
            let load_s = segment.ramp_up.as_secs_f64() + duration_s;
            let speed = self.script.borrow_mut().speed(target, load_s);
            let requests = (rate_per_s * speed * duration_s) as u64;
            let reading = &mut loaded.readings[reading];
            reading.pacing = segment.pacing;
            reading.client.cpu_s = client_cpu_s;
            reading.duration_s += duration_s;
            reading.requests += requests;
            reading.requests_all += requests;
            let answer_us = answer_us(number, &order.job.targets[segment.target]);
            if answer_us > 0 {
                reading.response.record_many_ns(answer_us * 1_000, requests);
            }
            reading.connections = u64::from(order.job.targets[segment.target].connections);
            reading.connections_open_min = reading.connections;
            if is_wrong {
                reading.errors_all.status += requests;
            }
            if is_overloaded && segment.pacing != Pacing::Closed {
                let due = reading.requests;
                reading.offered = Some(Offered {
                    due,
                    answered_within: due / 2,
                    backlog: [0, due / 8, due / 4, due * 3 / 8, due / 2],
                });
            }
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
        Ok(Clock {
            monotonic_ahead_ns: self.ahead_ns(),
            ..Clock::default()
        })
    }

    fn gone(&mut self) -> Option<AgentError> {
        let is_dead = self.script.borrow().is_dead;
        is_dead.then(|| AgentError::Lost("it ended".into()))
    }

    fn end(self: Box<Self>) -> Option<PathBuf> {
        None
    }

    fn network(&self) -> &str {
        &self.network
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
