//! What the parts of a run share while they measure.

pub(crate) mod several_loads;
mod slice_times;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use load::{Arrivals, BodyRule, Job, Segment, StatusRule, Wait};
use net::AddressSelection;
use readings::{CurveChoice, FailureCause};
use serde_json::Value;

use crate::context::slice_times::SliceTimes;
use crate::fleet::at_once::{self, LoadOrders, NeededTimes, Timing};
use crate::group::ReadySubject;
use crate::group::sequential::Sequential;
use crate::measure::schedule;
use crate::testbed::Testbed;
use crate::testbed::authority::RunAuthority;
use crate::testbed::chosen_addresses::{ChosenAddresses, Unresolved};
use crate::testbed::copies::original;
use crate::testbed::outside::running_behind;
use crate::{CpuPlacement, RunEvent, RunOptions};
use agent::AgentError;
use agent::wire::{LoadOrder, Loaded};
use experiment::{
    BodyCheck, Expect, HttpVersion, LoadSpec, ResolvedCondition, SubjectSpec, Target,
};

pub(crate) struct Context<'a> {
    pub(crate) options: &'a RunOptions<'a>,
    pub(crate) placement: &'a CpuPlacement,
    pub(crate) testbed: &'a mut Testbed,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) seed: u64,
    pub(crate) block: u32,
    pub(crate) emit: &'a mut dyn FnMut(RunEvent),
    /// Configuration of each started server, for `hosts.json`.
    pub(crate) configurations: BTreeMap<String, Value>,
    pub(crate) driver_versions: &'a BTreeMap<String, Option<String>>,
    /// The rates of the condition's curve, once they are chosen.
    pub(crate) curve: Option<CurveChoice>,
    /// What a load of several hosts needed so far.
    pub(crate) needed: NeededTimes,
    /// State of sequential measurement.
    pub(crate) sequential: &'a mut Sequential,
    pub(crate) authority: &'a RunAuthority,
    pub(crate) chosen_addresses: &'a mut ChosenAddresses,
}

impl Context<'_> {
    pub(crate) fn phase(&mut self, what: &str) {
        (self.emit)(RunEvent::Phase { what: what.into() });
    }

    /// Tells whoever watches the run.
    pub(crate) fn note(&mut self, text: String) {
        (self.emit)(RunEvent::Note { text });
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The address of a subject, as seen from the host `from`.
    pub(crate) fn resolve(
        &mut self,
        from: Option<&str>,
        subject: &SubjectSpec,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Result<SocketAddr, Unresolved> {
        let experiment = self.options.experiment;
        match &subject.target {
            Target::Server(name) => self
                .testbed
                .address_of(experiment, from, name, addresses)
                .ok_or_else(|| Unresolved {
                    reason: format!("server `{name}` is not running"),
                    cause: FailureCause::Other,
                }),
            Target::Address(text) => {
                let is_here = !experiment.hosts_are_apart() && !experiment.hosts_are_machines();
                let selection = match (subject.http, is_here) {
                    (HttpVersion::Http3, _) => AddressSelection::FirstForQuic,
                    (_, true) => AddressSelection::FirstAccepting,
                    (_, false) => AddressSelection::FirstFromElsewhere,
                };
                self.chosen_addresses.resolve(text, selection)
            }
        }
    }

    /// The address of a subject as seen from each of the further hosts that make the load.
    pub(crate) fn resolve_elsewhere(
        &mut self,
        resolved: &ResolvedCondition,
        subject: &SubjectSpec,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Result<Vec<(String, SocketAddr)>, Unresolved> {
        let hosts = resolved.load.more_hosts.iter();
        let resolve = |host: &String| {
            let address = self.resolve(Some(host), subject, addresses)?;
            Ok((host.clone(), address))
        };
        hosts.map(resolve).collect()
    }

    pub(crate) fn order(
        &self,
        resolved: &ResolvedCondition,
        ready: &[ReadySubject],
        segments: Vec<Segment>,
    ) -> LoadOrder {
        let load = &resolved.load;
        let expect = &self.options.experiment.expect;
        let cpus = self.placement.load_cpus.clone();
        let threads = load.threads.unwrap_or(cpus.len().max(1) as u32);
        let (watch, mut watch_others) = self.testbed.watched(load.host.as_deref(), resolved);
        watch_others.extend(running_behind(ready));
        let targets = ready.iter().map(|one| target(one, load, expect));
        let job = Job {
            segments,
            threads: threads.clamp(1, load.connections) as usize,
            requests_per_connection: match load.keepalive {
                true => load.requests_per_connection,
                false => Some(1),
            },
            connect_timeout: load.timeout,
            timeout: load.timeout,
            cpus,
            // Several hosts may have CPUs in common.
            wait: match self.placement.load_alone && load.more_hosts.is_empty() {
                true => Wait::Spin,
                false => Wait::Sleep,
            },
            seed: self.seed,
            ..Job::to_all(targets)
        };
        LoadOrder {
            watch,
            watch_others,
            ..LoadOrder::of(job)
        }
    }

    pub(crate) fn load(
        &mut self,
        resolved: &ResolvedCondition,
        ready: &[ReadySubject],
        segments: Vec<Segment>,
    ) -> Result<Loaded, AgentError> {
        let segments = self.opened(resolved, ready, segments);
        let order = self.order(resolved, ready, segments);
        self.load_order(order, ready)
    }

    /// An open loop whose requests are due at exponentially distributed intervals. Loads of
    /// different `salt` have other intervals.
    pub(crate) fn load_poisson(
        &mut self,
        resolved: &ResolvedCondition,
        ready: &[ReadySubject],
        segments: Vec<Segment>,
        salt: u64,
    ) -> Result<Loaded, AgentError> {
        let segments = self.opened(resolved, ready, segments);
        let mut order = self.order(resolved, ready, segments);
        order.job.arrivals = Arrivals::Poisson;
        order.job.seed ^= salt;
        self.load_order(order, ready)
    }

    /// The segments, after such that open the connections where packets may be lost.
    fn opened(
        &self,
        resolved: &ResolvedCondition,
        ready: &[ReadySubject],
        segments: Vec<Segment>,
    ) -> Vec<Segment> {
        let hosts = self.options.experiment.hosts.iter();
        let mut links = hosts.filter_map(|host| host.link);
        match segments.first() {
            // A lost SYN is retransmitted after 1 s, which would span several slices.
            Some(first) if links.any(|link| link.loss > 0.0) => {
                let connections = resolved.load.connections;
                let opening = schedule::opening(ready.len(), connections, first.pacing);
                [opening, segments].concat()
            }
            _ => segments,
        }
    }

    /// If several hosts make the load and one of them is late, it is made once more, with the time
    /// between segments that it needed: answers may take longer than was known before.
    ///
    /// # Errors
    /// When an agent is lost, the load fails, or a host is late again.
    pub(crate) fn load_order(
        &mut self,
        order: LoadOrder,
        ready: &[ReadySubject],
    ) -> Result<Loaded, AgentError> {
        if ready.first().is_none_or(|one| one.also_from.is_empty()) {
            return self.carry_out(order, ready, None);
        }
        let segments = order.job.segments.clone();
        let timing = |needed: &NeededTimes, may_be_late| {
            let (usual, needed) = (Timing::of(&segments), needed.timing(&segments));
            Timing {
                gap: usual.gap.max(needed.gap),
                may_be_late,
                ..needed
            }
        };
        let first = timing(&self.needed, true);
        let loaded = self.carry_out(order.clone(), ready, Some(first))?;
        self.needed.learn(&loaded);
        if !at_once::is_late(&loaded) || self.stopped() {
            return Ok(loaded);
        }
        let again = timing(&self.needed, false);
        self.carry_out(order, ready, Some(again))
    }

    /// `timing` is that of a load of several hosts.
    fn carry_out(
        &mut self,
        order: LoadOrder,
        ready: &[ReadySubject],
        timing: Option<Timing>,
    ) -> Result<Loaded, AgentError> {
        let subject = |segment: &Segment| ready[segment.target].planned.subject.clone();
        let subjects: Vec<String> = order.job.segments.iter().map(subject).collect();
        let emit = &mut *self.emit;
        let mut times = SliceTimes::of(&order.job.segments);
        let mut progress = |segment: usize, requests: u64, errors: u64| {
            times.begins(segment).into_iter().for_each(&mut *emit);
            emit(RunEvent::Load {
                subject: subjects.get(segment).cloned().unwrap_or_default(),
                requests,
                errors,
            });
        };
        let from = ready.first().and_then(|one| one.from.as_deref());
        let remote = match order.sample_scheduling {
            true => self.testbed.start_remote_scheduling(from)?,
            false => self.testbed.start_remote_sampling(from)?,
        };
        let mut loaded = match timing {
            Some(timing) => {
                let declared = &self.options.experiment.hosts;
                let hosts = at_once::parts(order, ready, declared, timing.gap);
                let load = LoadOrders { name: None, hosts };
                let (stop, testbed) = (self.stop, &mut *self.testbed);
                let made = at_once::carry_out(testbed, vec![load], timing, stop, &mut progress);
                made?.pop().unwrap_or_default()
            }
            None => self
                .testbed
                .agent(from)?
                .load(order, self.stop, &mut progress)?,
        };
        times.ends().into_iter().for_each(&mut *self.emit);
        let there = self
            .testbed
            .add_remote_samples(from, remote, &mut loaded.measured)?;
        if let Some(seen) = &mut loaded.seen {
            there.into_iter().for_each(|one| one.add_to(seen));
        }
        Ok(loaded)
    }
}

/// The header field that asks a server to close the connection after its answer.
pub(crate) fn connection_close() -> Vec<(String, String)> {
    vec![("Connection".into(), "close".into())]
}

/// The host that a subject's requests name, unless the load's headers name another.
pub(crate) fn host_of(subject: &SubjectSpec) -> String {
    match &subject.target {
        Target::Server(name) => original(name).to_owned(),
        Target::Address(text) => text.clone(),
    }
}

pub(crate) fn request(
    subject: &SubjectSpec,
    load: &LoadSpec,
    fields: &[(String, String)],
) -> String {
    let host = host_of(subject);
    let mut fields = fields.to_vec();
    let body = load.body.clone().unwrap_or_default();
    if load.body.is_some() {
        fields.push(("Content-Length".into(), body.len().to_string()));
    }
    let head = net::fetch::request(&load.method, &host, &subject.path, &fields);
    String::from_utf8_lossy(&head).into_owned() + &body
}

fn target(one: &ReadySubject, load: &LoadSpec, expect: &Expect) -> load::Target {
    let mut fields = load.headers.clone();
    if !load.keepalive {
        // The server closes first, so TIME_WAIT is on its side.
        fields.extend(connection_close());
    }
    let expect = load::Expect {
        status: StatusRule::Exactly(expect.status),
        body: match (&expect.contains, expect.body) {
            (Some(text), _) => BodyRule::Contains(text.as_bytes().into()),
            (None, BodyCheck::Same) => BodyRule::Same,
            (None, BodyCheck::Varies) => BodyRule::Any,
            (None, BodyCheck::Auto) => BodyRule::Auto,
        },
    };
    let request = request(&one.subject, load, &fields).into_bytes();
    let streams_of = |version| (one.subject.streams).filter(|_| one.subject.http == version);
    load::Target {
        tls: one.tls.clone(),
        http2: streams_of(HttpVersion::Http2).map(|streams| load::Http2 { streams }),
        http3: streams_of(HttpVersion::Http3).map(|streams| load::Http3 {
            streams,
            congestion: load.quic_congestion,
        }),
        requests_per_connection: one.subject.requests_per_connection,
        ..load::Target::new(one.address, request, expect).with_connections(one.subject.connections)
    }
}
