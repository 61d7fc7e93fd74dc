//! The order of a load: what its job asks for, and the servers that are sampled meanwhile.

use agent::wire::LoadOrder;
use experiment::{
    BodyCheck, Expect, HttpVersion, LoadSpec, ResolvedCondition, SubjectSpec, Target,
};
use readings::TrafficKind;
use readings::requests::{RequestSet, Template};

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
        let targets = ready.iter().map(|one| target(one, load, expect));
        let job = Job {
            segments,
            threads: threads.clamp(1, load.connections) as usize,
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

pub(crate) fn request(
    subject: &SubjectSpec,
    load: &LoadSpec,
    fields: &[(String, String)],
) -> String {
    let host = host_of(subject);
    let mut fields = fields.to_vec();
    let body = load.body().unwrap_or_default();
    let head = match &load.traffic.grpc {
        // The engine frames the message.
        Some(method) => net::fetch::request("POST", &host, &format!("/{method}"), &fields),
        None => {
            if load.body().is_some() {
                fields.push(("Content-Length".into(), body.len().to_string()));
            }
            net::fetch::request(&load.method, &host, &subject.path, &fields)
        }
    };
    String::from_utf8_lossy(&head).into_owned() + &body
}

fn target(one: &ReadySubject, load: &LoadSpec, good: &Expect) -> load::Target {
    let mut fields = load.headers.clone();
    if !load.keepalive {
        // The server closes first, so TIME_WAIT is on its side.
        fields.extend(connection_close());
    }
    let expect = load::Expect {
        status: StatusRule::Exactly(match load.traffic.kind() {
            // That of the handshake (RFC 6455, 4.2.2).
            TrafficKind::WebSocket => 101,
            _ => good.status,
        }),
        body: match (&good.contains, good.body) {
            (Some(text), _) => BodyRule::Contains(text.as_bytes().into()),
            (None, BodyCheck::Same) => BodyRule::Same,
            (None, BodyCheck::Varies) => BodyRule::Any,
            // Messages are checked by their format, and differ.
            (None, BodyCheck::Auto) if !load.traffic.kind().is_answers() => BodyRule::Any,
            (None, BodyCheck::Auto) => BodyRule::Auto,
        },
    };
    let request = request(&one.subject, load, &fields).into_bytes();
    let streams_of = |version| (one.subject.streams).filter(|_| one.subject.http == version);
    let target = load::Target {
        tls: one.tls.clone(),
        http2: streams_of(HttpVersion::Http2).map(|streams| load::Http2 { streams }),
        http3: streams_of(HttpVersion::Http3).map(|streams| load::Http3 {
            streams,
            congestion: load.quic_congestion,
        }),
        requests_per_connection: one.subject.requests_per_connection,
        traffic: traffic::traffic(load),
        idle: (load.idle > 0).then_some(load::Idle {
            connections: load.idle,
            is_silent: false,
        }),
        ..load::Target::new(one.address, request, expect).with_connections(one.subject.connections)
    };
    match &load.requests {
        None => target,
        Some(file) => with_requests(target, one, load, &file.set, good),
    }
}

/// With the requests of a file, each of which may say what a good answer is.
fn with_requests(
    target: load::Target,
    one: &ReadySubject,
    load: &LoadSpec,
    set: &RequestSet,
    good: &Expect,
) -> load::Target {
    let mut set = set.clone();
    // 200 is what an experiment expects that says nothing; requests may have other successes.
    let status = (good.status != 200).then_some(good.status);
    set.expect(status, good.contains.as_deref());
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let (hosts, headers): (Vec<_>, Vec<_>) =
        load.headers.iter().partition(|(name, _)| is_host(name));
    for (name, value) in headers {
        set.add_field(name, &Template::fixed(value.as_str()));
    }
    let host = hosts.first().map(|(_, value)| value.clone());
    let host = host.unwrap_or_else(|| host_of(&one.subject));
    let fields = match load.keepalive {
        true => Vec::new(),
        false => connection_close(),
    };
    target.with_requests(&set, &host, &fields)
}
