//! What is said on the load's connections besides requests with one answer: keys of `[load]`, and
//! what they cannot be combined with.

use std::time::Duration;

use readings::{
    CALL_MESSAGES_MAX, EventFormat, HttpVersion, SOCKET_MESSAGE_BYTES_MAX, TrafficKind,
};

use super::{HOUR, rate};
use crate::file::names::path_of_load;
use crate::spec::{
    BodyCheck, Experiment, LoadSpec, Rate, ResolvedCondition, SubjectSpec, TrafficChange,
    TrafficSpec,
};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Node, Place, Tree};
use config::units::shown;

/// One key of the traffic; `None` also for a key that is none.
pub(super) fn change(
    reader: &mut Reader,
    key: &str,
    node: &Node,
    path: &str,
) -> Option<TrafficChange> {
    // The ranges fit their types.
    let small = |number: i64| u32::try_from(number).unwrap_or_default();
    let gap = Duration::from_nanos(1_000)..=HOUR;
    Some(match key {
        "events" => TrafficChange::Events(events(reader, node, path)?),
        "pace" => TrafficChange::Pace(reader.duration(node, path, gap)?),
        "stall" => TrafficChange::Stall(reader.duration(node, path, gap)?),
        "websocket" => TrafficChange::WebSocket(reader.boolean(node, path)?),
        "in_flight" => TrafficChange::InFlight(small(reader.integer(node, path, 1..=10_000)?)),
        "message_bytes" => {
            let bytes = reader.integer(node, path, 0..=SOCKET_MESSAGE_BYTES_MAX.into())?;
            TrafficChange::MessageBytes(small(bytes))
        }
        "message_rate" => match rate(reader, node, path)? {
            Rate::PerSecond(per_s) => TrafficChange::MessageRate(per_s),
            Rate::Auto => {
                reader.expected(node, path, "a rate, such as \"1/s\"");
                return None;
            }
        },
        "receive" => TrafficChange::Receive(reader.boolean(node, path)?),
        "fan_out" => TrafficChange::FanOut(match node.tree {
            Tree::Boolean(wanted) => wanted.then_some(0),
            _ => Some(small(reader.integer(node, path, 1..=1_000_000)?)),
        }),
        "retire_after" => {
            let count = reader.integer(node, path, 1..=1_000_000_000)?;
            TrafficChange::RetireAfter(count.unsigned_abs())
        }
        "grpc" => TrafficChange::Grpc(method(reader, node, path)?),
        "call_messages" => {
            let count = reader.integer(node, path, 1..=CALL_MESSAGES_MAX.into())?;
            TrafficChange::CallMessages(small(count))
        }
        "deadline" => TrafficChange::Deadline(reader.duration(node, path, gap)?),
        _ => return None,
    })
}

/// `true` for the format that the answer's `Content-Type` says, `false` for none.
fn events(reader: &mut Reader, node: &Node, path: &str) -> Option<Option<EventFormat>> {
    if let Tree::Boolean(wanted) = node.tree {
        return Some(wanted.then_some(EventFormat::Auto));
    }
    let names = EventFormat::ALL.map(EventFormat::name);
    let Tree::Text(text) = &node.tree else {
        reader.expected(node, path, "true, false, \"sse\", \"lines\" or \"reads\"");
        return None;
    };
    let mut formats = EventFormat::ALL.into_iter();
    let found = formats.find(|format| format.name() == text);
    if found.is_none() {
        let problem = Problem::at(
            node.place,
            format!("`{path}` is not a format of events: `{}`", shown(text)),
            "expected true, \"sse\", \"lines\" or \"reads\"",
        );
        reader.report(problem.help(suggestion(text, "formats", names)));
    }
    found.map(Some)
}

fn method(reader: &mut Reader, node: &Node, path: &str) -> Option<String> {
    let text = reader.text(node, path)?;
    let is_name = |name: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        !name.is_empty() && name.chars().all(letters)
    };
    let given = text.trim_start_matches('/');
    match given.split_once('/') {
        Some((service, method)) if is_name(service) && is_name(method) => Some(given.to_owned()),
        _ => {
            reader.report(Problem::at(
                node.place,
                format!("`{path}` is not a method: `{}`", shown(&text)),
                "expected \"package.Service/Method\"",
            ));
            None
        }
    }
}

/// The keys that need one of the kinds, and whether a load has them.
fn dependent(traffic: &TrafficSpec) -> [(&'static str, TrafficKind, bool); 12] {
    use TrafficKind::{Events, Grpc, WebSocket};
    [
        ("pace", Events, traffic.pace.is_some()),
        ("stall", Events, traffic.stall.is_some()),
        // Calls have it too.
        (
            "in_flight",
            WebSocket,
            traffic.in_flight.is_some() && traffic.grpc.is_none(),
        ),
        ("message_bytes", WebSocket, traffic.message_bytes.is_some()),
        ("message_rate", WebSocket, traffic.message_rate.is_some()),
        ("receive", WebSocket, traffic.receive),
        ("fan_out", WebSocket, traffic.fan_out.is_some()),
        ("retire_after", WebSocket, traffic.retire_after.is_some()),
        ("proto", Grpc, traffic.proto.is_some()),
        ("body_file", Grpc, traffic.body_file.is_some()),
        ("call_messages", Grpc, traffic.call_messages.is_some()),
        ("deadline", Grpc, traffic.deadline.is_some()),
    ]
}

/// The key of a kind, and how it is written.
fn key_of(kind: TrafficKind) -> (&'static str, &'static str) {
    match kind {
        TrafficKind::Events => ("events", "events = true"),
        TrafficKind::WebSocket => ("websocket", "websocket = true"),
        TrafficKind::Grpc => ("grpc", "grpc = \"package.Service/Method\""),
        TrafficKind::Answers => ("method", "method = \"GET\""),
    }
}

/// Leaves out what has no meaning where the sender sets the pace: the search for bottlenecks, and
/// the open loop unless a rate is named.
pub(crate) fn fit(experiment: &mut Experiment) {
    let conditions = experiment.conditions();
    let mut loads = conditions.iter().map(|one| experiment.under(one).load);
    let Some(load) = loads.find(|load| load.traffic.is_paced_by_sender()) else {
        return;
    };
    if load.rate == Rate::Auto {
        experiment.design.latency_window = Duration::ZERO;
    }
    experiment.design.bottleneck = false;
}

/// Finds the first thing that a condition's loads cannot be combined with.
pub(crate) fn check(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    resolved: &ResolvedCondition,
) {
    let beside = resolved.beside.iter();
    let beside = beside.map(|one| (Some(one.name.as_str()), &one.load, &one.subjects));
    let name = resolved.load_name.as_deref();
    for (name, load, subjects) in beside.chain([(name, &resolved.load, &resolved.subjects)]) {
        let of_load = OfLoad {
            top,
            experiment,
            name,
            load,
        };
        of_load.check(reader, subjects);
    }
}

/// What a load may be combined with, in a file.
struct OfLoad<'a> {
    top: &'a Section<'a>,
    experiment: &'a Experiment,
    name: Option<&'a str>,
    load: &'a LoadSpec,
}

impl OfLoad<'_> {
    /// The load as it is written, before factors change it.
    fn written(&self) -> Option<&LoadSpec> {
        let mut loads = self.experiment.all_loads().into_iter();
        loads.find_map(|(name, load)| (name == self.name).then_some(load))
    }

    /// Where a key is varied or set.
    fn place(&self, key: &str) -> Option<Place> {
        let factor = match self.name {
            Some(name) => format!("{name}.{key}"),
            None => key.to_owned(),
        };
        let set = self.top.place_of(&path_of_load(self.name, key));
        set.or_else(|| self.top.place_of(&["factors", &factor]))
    }

    fn refuse(&self, reader: &mut Reader, key: &str, message: &str, label: &str, help: &str) {
        let place = self.place(key).unwrap_or_default();
        reader.advise(place, message, label, help);
    }

    /// Refuses a key beside another.
    fn excludes(&self, reader: &mut Reader, key: &str, other: &str, why: &str, help: &str) {
        let message = format!("`{key}` and `{other}` exclude each other");
        let place = self.place(key).unwrap_or_default();
        let problem = Problem::at(place, message, why);
        let problem = match self.place(other) {
            Some(other) => problem.and(other, "set here"),
            None => problem,
        };
        reader.report(problem.help(help));
    }

    fn check(&self, reader: &mut Reader, subjects: &[SubjectSpec]) {
        let traffic = &self.load.traffic;
        let kind = traffic.kind();
        for (key, wanted, is_set) in dependent(traffic) {
            if is_set && wanted != kind {
                let (other, form) = key_of(wanted);
                let message = format!("`{key}` needs `{other}`");
                let help = format!("add {form}, or remove `{key}`");
                let label = format!("expected `{other}` beside it");
                return self.refuse(reader, key, &message, &label, &help);
            }
        }
        let kinds = [
            ("events", traffic.events.is_some()),
            ("websocket", traffic.websocket),
            ("grpc", traffic.grpc.is_some()),
        ];
        let mut kinds = kinds.into_iter().filter(|(_, is_set)| *is_set);
        let (Some((key, _)), second) = (kinds.next(), kinds.next()) else {
            if self.load.ages {
                self.check_driver(reader, "ages", subjects);
            }
            return;
        };
        if self.load.ages {
            let why = "only a response of one request has an age";
            return self.excludes(reader, "ages", key, why, "remove `ages`");
        }
        if let Some((second, _)) = second {
            let help = "keep one of them; [loads.NAME] makes several loads at the same time";
            return self.excludes(reader, second, key, "another kind of traffic", help);
        }
        if !self.check_driver(reader, key, subjects) {
            return;
        }
        match kind {
            TrafficKind::WebSocket => self.check_websocket(reader, subjects),
            TrafficKind::Grpc => self.check_calls(reader, subjects),
            _ => {}
        }
        let key = match (traffic.fan_out, traffic.receive) {
            (Some(_), _) => "fan_out",
            (None, true) => "receive",
            (None, false) => key,
        };
        self.check_sender(reader, key);
        self.check_expected(reader, key);
    }

    /// Whether all subjects have the built-in engine; reports one that has not.
    fn check_driver(&self, reader: &mut Reader, key: &str, subjects: &[SubjectSpec]) -> bool {
        let Some(other) = subjects.iter().find(|one| !one.driver.is_engine()) else {
            return true;
        };
        let message = format!(
            "`{key}` needs the built-in engine, but the subject `{}` has the driver `{}`",
            shown(&other.name),
            other.driver.name
        );
        let label = "outside drivers measure requests with one answer";
        self.refuse(reader, key, &message, label, "remove the driver");
        false
    }

    fn check_websocket(&self, reader: &mut Reader, subjects: &[SubjectSpec]) {
        let (load, traffic) = (self.load, &self.load.traffic);
        let own_rate = self.written().is_some_and(|load| load.rate != Rate::Auto);
        let factor = match self.name {
            Some(name) => format!("{name}.rate"),
            None => "rate".to_owned(),
        };
        let varies = self.experiment.factors.iter().any(|it| it.name == factor);
        if traffic.message_rate.is_some() && (own_rate || varies) {
            let help = "keep one of them: `rate` is over all connections";
            return self.excludes(reader, "message_rate", "rate", "per connection", help);
        }
        if traffic.receive || traffic.fan_out.is_some() {
            return self.check_one_way(reader);
        }
        if load.requests_per_connection.is_some() {
            let help = "write retire_after = N: messages until a WebSocket is closed and another \
                        opened";
            let (key, other) = ("requests_per_connection", "websocket");
            return self.excludes(reader, key, other, "a WebSocket has messages", help);
        }
        let not_keepalive = !load.keepalive;
        let given = [
            ("keepalive", not_keepalive, "write retire_after = 1"),
            ("method", load.method != "GET", "remove `method`"),
            ("body", load.body().is_some(), "write message_bytes = N"),
        ];
        for (key, is_set, help) in given {
            if is_set {
                let why = "its request is that of the handshake";
                return self.excludes(reader, key, "websocket", why, help);
            }
        }
        if let Some(one) = subjects.iter().find(|one| one.http != HttpVersion::Http1) {
            let message = format!(
                "subject `{}`: WebSocket over HTTP/{}",
                shown(&one.name),
                one.http.name()
            );
            let help = "use http = \"1.1\"";
            self.refuse(reader, "http", &message, "not supported", help);
        }
    }

    /// WebSockets whose messages are no answers.
    fn check_one_way(&self, reader: &mut Reader) {
        let traffic = &self.load.traffic;
        let sends = traffic.fan_out.is_some();
        let key = if sends { "fan_out" } else { "receive" };
        let others = [
            ("receive", sends && traffic.receive),
            ("in_flight", traffic.in_flight.is_some()),
            ("retire_after", traffic.retire_after.is_some()),
            ("message_bytes", !sends && traffic.message_bytes.is_some()),
            ("message_rate", !sends && traffic.message_rate.is_some()),
        ];
        if let Some((other, _)) = others.into_iter().find(|(_, is_set)| *is_set) {
            let help = format!("remove `{other}`");
            return self.excludes(reader, other, key, "no message is answered", &help);
        }
        let Some(members) = traffic.fan_out else {
            return;
        };
        if traffic.message_rate.is_none() {
            let message = "`fan_out` needs `message_rate`";
            let help = "add message_rate = \"10/s\": messages per second of each topic";
            return self.refuse(reader, "fan_out", message, "nothing would be sent", help);
        }
        let connections = self.load.connections;
        if !connections.is_multiple_of(members.max(1)) {
            let message = format!("{connections} connections are no whole topics of {members}");
            let help = "give a number that divides `connections`";
            self.refuse(
                reader,
                "fan_out",
                &message,
                "the rest would be in no topic",
                help,
            );
        }
    }

    fn check_calls(&self, reader: &mut Reader, subjects: &[SubjectSpec]) {
        let load = self.load;
        if load.method != "GET" {
            let help = "remove `method`";
            return self.excludes(reader, "method", "grpc", "calls are POST requests", help);
        }
        if load.traffic.body_file.is_some() && load.body().is_some() {
            let help = "keep one of the two";
            return self.excludes(reader, "body_file", "body", "each is the message", help);
        }
        if let Err(wrong) = load.call() {
            let place = self.place(wrong.key).unwrap_or_default();
            let problem = Problem::at(place, format!("`{}`: {wrong}", wrong.key), "set here");
            return reader.report(match wrong.help {
                Some(help) => problem.help(help),
                None => problem,
            });
        }
        let written = self.written();
        let is_2 = written.is_none_or(|load| load.http == HttpVersion::Http2);
        let is_other = !is_2 && self.place("http").is_some();
        let other = subjects.iter().find(|one| one.http != HttpVersion::Http2);
        if is_other || other.is_some() {
            let message = "gRPC needs HTTP/2";
            let help = "remove `http`: it is \"2\" with `grpc`";
            let place = self.place("http").or_else(|| {
                let other = other.map_or("", |one| one.name.as_str());
                self.top.place_of(&["subjects", other])
            });
            let problem = Problem::at(place.unwrap_or_default(), message, "another version");
            reader.report(problem.help(help));
        }
    }

    /// A pace that the sender sets cannot be asked for.
    fn check_sender(&self, reader: &mut Reader, key: &str) {
        if !self.load.traffic.is_paced_by_sender() {
            return;
        }
        if self.experiment.load.curve.is_some() {
            let message = format!("`curve` and `{key}` exclude each other");
            let label = "the sender sets the pace";
            let help = "remove `curve`; `weigh capacity --events` finds how many streams a path \
                        sustains";
            self.refuse(reader, "curve", &message, label, help);
        } else if !self.experiment.events.is_empty() {
            let message = format!("`[[events]]` and `{key}` exclude each other");
            let place = self.top.place_of(&["events"]).unwrap_or_default();
            let problem = Problem::at(place, message, "failures are counted per request");
            reader.report(problem.help(
                "measure with websocket = true and message_rate = \"1/s\": each message is a \
                 request",
            ));
        }
    }

    /// Messages are judged by their own format.
    fn check_expected(&self, reader: &mut Reader, key: &str) {
        let expect = &self.experiment.expect;
        let given = match (&expect.contains, expect.body) {
            (Some(_), _) => "contains",
            (None, BodyCheck::Same) => "body",
            _ => return,
        };
        let message = format!("`expect.{given}` and `{key}` exclude each other");
        let place = self.top.place_of(&["expect", given]).unwrap_or_default();
        let label = "messages are checked by their format";
        reader.advise(place, message, label, format!("remove `{given}`"));
    }
}
