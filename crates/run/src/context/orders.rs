//! The order of a load: what its job asks for, and the servers that are sampled meanwhile.

use std::net::SocketAddr;

use agent::wire::LoadOrder;
use experiment::{
    BodyCheck, Expect, Experiment, HttpVersion, LoadSpec, ResolvedCondition, SubjectSpec, Target,
};
use readings::requests::RequestSet;
use readings::{Pacing, TrafficKind};

use load::{BodyRule, Job, Segment, StatusRule, Wait};

use crate::context::{Context, traffic};
use crate::testbed::copies::original;
use crate::testbed::{ReadySubject, running_behind};

impl Context<'_> {
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
        // Answers that refuse are quick: in a measured closed loop they would pass for a quick server.
        let is_open = |one: &Segment| matches!(one.pacing, Pacing::Open { .. });
        let is_limited =
            self.options.experiment.design.window.is_zero() || segments.iter().all(is_open);
        let targets = ready.iter().map(|one| {
            let may_refuse = is_limited && one.back_ends.may_refuse();
            target(one, load, expect, may_refuse)
        });
        let targets: Vec<load::Target> = targets.collect();
        let fit = |threads, target: &load::Target| target.threads(threads);
        let threads = targets.iter().fold(threads.clamp(1, load.connections), fit);
        let job = Job {
            segments,
            threads: threads as usize,
            requests_per_connection: traffic::per_connection(load),
            connect_timeout: load.timeout,
            timeout: load.timeout,
            cpus,
            // Several hosts may have CPUs in common.
            wait: match self.placement.load_alone && load.more_hosts.is_empty() {
                true => Wait::Spin,
                false => Wait::Sleep,
            },
            seed: self.seed,
            first_number: self.learned.next_numbers(),
            ..Job::to_all(targets)
        };
        LoadOrder {
            watch,
            watch_others,
            ..LoadOrder::of(job)
        }
    }
}

/// What the reader of the result has to know of a log: which of its lines are not replayed.
pub(crate) fn left_out_notice(experiment: &Experiment) -> Option<String> {
    let replay = experiment.load.replay.as_ref()?.set.replay.as_ref()?;
    let lines: u64 = replay.left_out.iter().map(|(_, count)| count).sum();
    let why = replay.left_out.iter();
    let why = why.map(|(why, count)| format!("{count}: {why}"));
    let (noun, are) = match lines {
        0 => return None,
        1 => ("line", "is"),
        _ => ("lines", "are"),
    };
    Some(format!(
        "{lines} {noun} of the log, besides {} that are replayed, {are} left out ({})",
        replay.due_ns.len(),
        why.collect::<Vec<_>>().join("; ")
    ))
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

/// The request that asks a server whether it is ready.
pub(crate) fn ready_request(server: &str, path: &str) -> String {
    let http = net::fetch::request("GET", original(server), path, &connection_close());
    String::from_utf8_lossy(&http).into_owned()
}

/// The request that a subject is asked for once, with these header fields. Of one with placeholders it
/// is the first of the load; of a file of requests, or a log, it is one for the subject's path.
pub(crate) fn request(
    subject: &SubjectSpec,
    load: &LoadSpec,
    fields: &[(String, String)],
) -> String {
    if let Some(first) = first_request(subject, load) {
        return first;
    }
    let host = host_of(subject);
    let mut fields = fields.to_vec();
    let body = load.body().unwrap_or_default();
    if load.body().is_some() {
        fields.push(("Content-Length".into(), body.len().to_string()));
    }
    let head = net::fetch::request(&load.method, &host, &subject.path, &fields);
    String::from_utf8_lossy(&head).into_owned() + &body
}

/// The request of a call, whose message the engine frames.
fn call_request(
    one: &ReadySubject,
    load: &LoadSpec,
    method: &str,
    fields: &[(String, String)],
) -> Vec<u8> {
    let host = host_of(&one.subject);
    let mut request = net::fetch::request("POST", &host, &format!("/{method}"), fields);
    request.extend(one.call_of(load).into_iter().flat_map(|call| &call.message));
    request
}

/// The target that a subject is. Where it may refuse, the refusals of a rate limit are good answers.
pub(crate) fn target(
    one: &ReadySubject,
    load: &LoadSpec,
    good: &Expect,
    may_refuse: bool,
) -> load::Target {
    let mut fields = load.headers.clone();
    if !load.keepalive {
        // The server closes first, so TIME_WAIT is on its side.
        fields.extend(connection_close());
    }
    let expect = load::Expect {
        status: match load.traffic.kind() {
            // That of the handshake (RFC 6455, 4.2.2).
            TrafficKind::WebSocket => StatusRule::Exactly(101),
            _ if may_refuse => StatusRule::OrRefused(good.status),
            _ => StatusRule::Exactly(good.status),
        },
        body: match (&good.contains, good.body) {
            (Some(text), _) => BodyRule::Contains(text.as_bytes().into()),
            (None, BodyCheck::Same) => BodyRule::Same,
            (None, BodyCheck::Varies) => BodyRule::Any,
            // Messages are checked by their format, and differ.
            (None, BodyCheck::Auto) if !load.traffic.kind().is_answers() => BodyRule::Any,
            (None, BodyCheck::Auto) => BodyRule::Auto,
        },
    };
    let request = match &load.traffic.grpc {
        Some(method) => call_request(one, load, method, &fields),
        None => request(&one.subject, load, &fields).into_bytes(),
    };
    let streams_of = |version| (one.subject.streams).filter(|_| one.subject.http == version);
    let target = load::Target {
        tls: one.tls.clone(),
        http2: streams_of(HttpVersion::Http2).map(|streams| load::Http2 { streams }),
        http3: streams_of(HttpVersion::Http3).map(|streams| load::Http3 {
            streams,
            congestion: load.quic_congestion,
        }),
        requests_per_connection: one.subject.requests_per_connection,
        traffic: traffic::traffic(load, one.call_of(load)),
        idle: (load.idle > 0).then_some(load::Idle {
            connections: load.idle,
            is_silent: false,
            ping_every: None,
        }),
        ..load::Target::new(one.address, request, expect).with_connections(one.subject.connections)
    };
    let target = match load.request_set(&one.subject.path) {
        None => target,
        Some(set) => with_requests(target, one, load, set, good),
    };
    match load.ages {
        true => target.with_ages(),
        false => target,
    }
}

/// With requests that differ, each of which may say what a good answer is.
fn with_requests(
    target: load::Target,
    one: &ReadySubject,
    load: &LoadSpec,
    mut set: RequestSet,
    good: &Expect,
) -> load::Target {
    let is_file = load.requests.is_some() || load.replay.is_some();
    // 200 is what an experiment expects that says nothing; requests of a file may have other
    // successes.
    let status = (!is_file || good.status != 200).then_some(good.status);
    set.expect(status, good.contains.as_deref());
    let fields = match load.keepalive {
        true => Vec::new(),
        false => connection_close(),
    };
    target.with_requests(&set, &named_host(&one.subject, load), &fields)
}

/// The first request of a load with placeholders, which closes its connection; `None` for other loads.
fn first_request(subject: &SubjectSpec, load: &LoadSpec) -> Option<String> {
    if load.requests.is_some() || load.replay.is_some() || !load.has_places(&subject.path) {
        return None;
    }
    let set = load.request_set(&subject.path)?;
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let expect = load::Expect {
        status: StatusRule::Success,
        body: BodyRule::Any,
    };
    let target = load::Target::new(anywhere, Vec::new(), expect);
    let host = named_host(subject, load);
    let filled = target.with_requests(&set, &host, &connection_close());
    let bytes = &filled.requests.first()?.bytes;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// The host that all requests name.
fn named_host(subject: &SubjectSpec, load: &LoadSpec) -> String {
    let mut headers = load.headers.iter();
    let own = headers.find(|(name, _)| name.eq_ignore_ascii_case("host"));
    own.map_or_else(|| host_of(subject), |(_, host)| host.clone())
}
