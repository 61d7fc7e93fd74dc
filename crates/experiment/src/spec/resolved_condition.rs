//! An experiment under one condition.

use std::collections::BTreeMap;
use std::time::Duration;

use readings::{Access, Condition};

use super::experiment::{
    Effect, Event, EventFault, Experiment, Fault, ParamValue, Role, Server, Target, Upstream,
};
use super::load::{Choice, LoadSpec, Rate};
use crate::manifest::Value;

/// All that one condition asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedCondition {
    /// The servers that a subject's requests reach, in the order they have to be started: each
    /// after its upstreams.
    pub servers: Vec<ServerSpec>,
    /// The subjects, in the order they were written.
    pub subjects: Vec<SubjectSpec>,
    pub load: LoadSpec,
    /// What happens to servers in each measured window, in the order it was written.
    pub events: Vec<EventSpec>,
}

/// An event under one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// When, after the measured window begins.
    pub at: Duration,
    /// The server's name.
    pub server: String,
    /// What is done to it.
    pub fault: Fault,
    /// When it is undone, after the measured window begins; without it, at the window's end.
    pub until: Option<Duration>,
}

/// One server under one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    pub name: String,
    /// Its recipe's name.
    pub recipe: String,
    /// The host it runs on.
    pub host: Option<String>,
    /// The CPUs it is bound to; empty when it is not bound.
    pub cpus: Vec<u32>,
    /// The port it listens on; without one a free port is to be chosen.
    pub port: Option<u16>,
    /// What it passes requests on to.
    pub upstreams: Vec<Upstream>,
    /// Its recipe's parameters, checked and complete.
    pub params: BTreeMap<String, Value>,
}

/// One subject under one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectSpec {
    pub name: String,
    /// The scheme of its URL.
    pub scheme: String,
    /// Where its requests go.
    pub target: Target,
    /// Path and query.
    pub path: String,
    /// The servers that its requests go through, the first to be asked first.
    pub through: Vec<String>,
    /// What makes its load.
    pub driver: Choice,
    /// Connections that are open at once.
    pub connections: u32,
    /// Streams that each connection has open at once, with HTTP/2.
    pub streams: Option<u32>,
}

impl Experiment {
    /// Every combination of the factors' levels, the last factor changing fastest; one empty
    /// condition without factors.
    pub fn conditions(&self) -> Vec<Condition> {
        let mut all = vec![Condition::new()];
        for factor in &self.factors {
            all = all
                .iter()
                .flat_map(|condition| {
                    factor.levels.iter().map(|level| {
                        let mut more = condition.clone();
                        more.insert(factor.name.clone(), level.text.clone());
                        more
                    })
                })
                .collect();
        }
        all
    }

    /// The experiment under one condition. A factor that the condition does not name, or a level
    /// that the factor does not have, changes nothing.
    pub fn under(&self, condition: &Condition) -> ResolvedCondition {
        let mut load = self.load.clone();
        for effect in self.effects(condition) {
            match effect {
                (_, Effect::Load(change)) => change.apply(&mut load),
                (_, Effect::Loads(parts)) => {
                    parts.iter().for_each(|part| part.change.apply(&mut load));
                }
                _ => {}
            }
        }
        // A thread without a connection has nothing to do.
        load.threads = load.threads.map(|threads| threads.min(load.connections));
        ResolvedCondition {
            servers: self
                .start_order()
                .into_iter()
                .map(|server| self.server_under(server, condition))
                .collect(),
            subjects: self
                .subjects
                .iter()
                .map(|subject| SubjectSpec {
                    name: subject.name.clone(),
                    scheme: subject.scheme.clone(),
                    target: subject.target.clone(),
                    path: self.filled(&subject.path, condition),
                    through: self.through(&subject.target),
                    driver: subject.driver.as_ref().unwrap_or(&load.driver).clone(),
                    connections: subject.load.connections.unwrap_or(load.connections),
                    streams: subject
                        .load
                        .http2
                        .unwrap_or(load.http2)
                        .then(|| subject.load.streams.unwrap_or(load.streams)),
                })
                .collect(),
            load,
            events: self
                .events
                .iter()
                .filter_map(|event| event_under(event, condition))
                .collect(),
        }
    }

    /// The factors that act on the open loop only: under all conditions their levels change nothing
    /// but its rate.
    pub fn open_loop_factors(&self) -> Vec<String> {
        let conditions = self.conditions();
        let closed_loop = |condition: &Condition| {
            let mut resolved = self.under(condition);
            resolved.load.rate = Rate::Auto;
            resolved
        };
        let changes_nothing_else = |name: &str, first: &str| {
            conditions.iter().all(|condition| {
                let mut other = condition.clone();
                other.insert(name.to_owned(), first.to_owned());
                *condition == other || closed_loop(condition) == closed_loop(&other)
            })
        };
        let factors = self.factors.iter().filter(|factor| {
            let first = factor.levels.first();
            factor.levels.len() > 1
                && first.is_some_and(|first| changes_nothing_else(&factor.name, &first.text))
        });
        factors.map(|factor| factor.name.clone()).collect()
    }

    /// What makes the load, under any condition: each driver with its parameters once, in the
    /// order of conditions and subjects.
    pub fn drivers(&self) -> Vec<Choice> {
        let mut found: Vec<Choice> = Vec::new();
        for condition in self.conditions() {
            for subject in self.under(&condition).subjects {
                if !found.contains(&subject.driver) {
                    found.push(subject.driver);
                }
            }
        }
        found
    }

    /// Says whether bottlenecks are looked for after the last block; never with events.
    pub fn find_bottlenecks(&mut self, wanted: bool) {
        self.design.bottleneck = wanted && self.events.is_empty();
    }

    /// The servers that some subject's requests reach, each after its upstreams.
    pub fn start_order(&self) -> Vec<&Server> {
        let mut order = Vec::new();
        for subject in &self.subjects {
            if let Target::Server(name) = &subject.target {
                self.visit(name, &mut order);
            }
        }
        order
    }

    /// Whether hosts are namespaces of their own, apart from this machine: all are, as soon as one
    /// asks for something that only those can have. Otherwise they are CPUs of this machine.
    pub fn hosts_are_apart(&self) -> bool {
        self.hosts.iter().any(|host| {
            host.link.is_some()
                || host.quota.is_some()
                || host.access != Access::Internal
                || !host.settings.is_empty()
        })
    }

    /// Whether hosts are machines: each one behind ssh, or this one. They are as soon as one is
    /// behind ssh.
    pub fn hosts_are_machines(&self) -> bool {
        self.hosts.iter().any(|host| host.ssh.is_some())
    }

    /// Whether a host is a machine behind ssh.
    pub fn is_behind_ssh(&self, host: Option<&str>) -> bool {
        let found = self
            .hosts
            .iter()
            .find(|one| Some(one.name.as_str()) == host);
        found.is_some_and(|host| host.ssh.is_some())
    }

    /// The server of that name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Depth first; upstreams form no circle in an experiment that was parsed, and depth is
    /// bounded by the number of servers.
    fn visit<'e>(&'e self, name: &str, order: &mut Vec<&'e Server>) {
        if order.iter().any(|server| server.name == name) {
            return;
        }
        if let Some(server) = self.server(name) {
            for upstream in &server.upstreams {
                if let Upstream::Server(name) = upstream {
                    self.visit(name, order);
                }
            }
            order.push(server);
        }
    }

    fn through(&self, target: &Target) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut next: Vec<&str> = match target {
            Target::Server(name) => vec![name],
            Target::Address(_) => Vec::new(),
        };
        while !next.is_empty() {
            let mut behind = Vec::new();
            for name in next {
                if names.iter().any(|known| known == name) {
                    continue;
                }
                names.push(name.to_owned());
                let upstreams = self.server(name).map_or(&[][..], |s| &s.upstreams);
                behind.extend(upstreams.iter().filter_map(|upstream| match upstream {
                    Upstream::Server(name) => Some(name.as_str()),
                    Upstream::Address(_) => None,
                }));
            }
            next = behind;
        }
        names
    }

    fn server_under(&self, server: &Server, condition: &Condition) -> ServerSpec {
        let mut params = BTreeMap::new();
        for (name, given) in &server.with {
            let value = match given {
                ParamValue::Value(value) => self.filled_value(value, condition),
                ParamValue::Factor { factor, by_level } => {
                    let text = condition.get(factor);
                    let level = by_level
                        .iter()
                        .find(|(level, _)| Some(level) == text)
                        .or(by_level.first());
                    match level {
                        Some((_, value)) => value.clone(),
                        None => continue,
                    }
                }
            };
            params.insert(name.clone(), value);
        }
        for (role, effect) in self.effects(condition) {
            if let (
                Role::Param {
                    server: changed,
                    param,
                },
                Effect::Param(value),
            ) = (role, effect)
                && *changed == server.name
            {
                params.insert(param.clone(), value.clone());
            }
        }
        let host = server.host.as_ref();
        let cpus = self
            .hosts
            .iter()
            .find(|one| Some(&one.name) == host)
            .map(|one| one.cpus.clone());
        ServerSpec {
            name: server.name.clone(),
            recipe: server.recipe.clone(),
            host: server.host.clone(),
            cpus: cpus.unwrap_or_default(),
            port: server.port,
            upstreams: server.upstreams.clone(),
            params,
        }
    }

    fn effects<'e>(
        &'e self,
        condition: &'e Condition,
    ) -> impl Iterator<Item = (&'e Role, &'e Effect)> {
        self.factors.iter().filter_map(|factor| {
            let text = condition.get(&factor.name)?;
            let level = factor.levels.iter().find(|level| level.text == *text)?;
            Some((&factor.role, &level.effect))
        })
    }

    fn filled_value(&self, value: &Value, condition: &Condition) -> Value {
        match value {
            Value::Text(text) => Value::Text(self.filled(text, condition)),
            Value::List(items) => Value::List(
                items
                    .iter()
                    .map(|item| self.filled(item, condition))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// The text with each factor's `{name}` replaced, in one pass: what is filled in is not
    /// searched again.
    fn filled(&self, text: &str, condition: &Condition) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            out.push_str(&rest[..start]);
            let inner = &rest[start + 1..];
            let level = inner.find('}').and_then(|end| {
                let name = &inner[..end];
                let declared = self.factors.iter().any(|factor| factor.name == name);
                condition
                    .get(name)
                    .filter(|_| declared)
                    .map(|level| (level, end))
            });
            match level {
                Some((level, end)) => {
                    out.push_str(level);
                    rest = &inner[end + 1..];
                }
                None => {
                    out.push('{');
                    rest = inner;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

fn event_under(event: &Event, condition: &Condition) -> Option<EventSpec> {
    let fault = match &event.what {
        EventFault::Fault(fault) => *fault,
        EventFault::Factor { factor, by_level } => {
            let text = condition.get(factor);
            let level = by_level.iter().find(|(level, _)| Some(level) == text);
            level.or(by_level.first())?.1
        }
    };
    Some(EventSpec {
        at: event.at,
        server: event.server.clone(),
        fault,
        until: event.until,
    })
}
