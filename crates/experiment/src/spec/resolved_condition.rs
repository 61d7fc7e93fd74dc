//! An experiment under one condition.

use std::collections::{BTreeMap, BTreeSet};

use readings::{Access, Condition, HostSpec, HttpVersion};

use super::event::{Event, EventSettings, EventSpec, EventWhat, ParamValue};
use super::experiment::{Effect, Experiment, Role, Server, Target, Upstream};
use super::load::{Choice, LoadRole, LoadSpec};
use crate::manifest::Value;

/// All that one condition asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedCondition {
    /// The servers that a subject's requests reach, in the order they have to be started: each
    /// after its upstreams.
    pub servers: Vec<ServerSpec>,
    /// The subjects, in the order they were written.
    pub subjects: Vec<SubjectSpec>,
    /// The load; of several loads, the first compared one.
    pub load: LoadSpec,
    /// The name of that load, if there are several.
    pub load_name: Option<String>,
    /// The other loads that are made at the same time.
    pub beside: Vec<LoadBeside>,
    /// What happens to servers in each measured window, in the order it was written.
    pub events: Vec<EventSpec>,
}

/// A load that is made at the same time as the first compared one, under one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBeside {
    pub name: String,
    pub role: LoadRole,
    pub load: LoadSpec,
    /// The subjects that it is made on, with its path, connections and version of HTTP.
    pub subjects: Vec<SubjectSpec>,
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
    /// Requests after which a connection is closed and another opened; `None` for the load's own.
    pub requests_per_connection: Option<u64>,
    pub http: HttpVersion,
    /// Streams that each connection has open at once, with HTTP/2 and HTTP/3.
    pub streams: Option<u32>,
}

impl ResolvedCondition {
    /// The servers that are started a second time, for the baseline's second copy: those of its path
    /// that no other subject uses. Where others use all of them, as the back end that the baseline
    /// asks directly, it is the whole path.
    ///
    /// None where the subjects have one path in common, so that their ratios contain no start either;
    /// where a server has a fixed port; and with events, which happen to one server.
    pub fn servers_of_copy(&self, baseline: &str, others: &[&str]) -> BTreeSet<String> {
        let path = |name: &str| {
            let subject = self.subjects.iter().find(|one| one.name == name);
            subject.map_or(&[][..], |one| one.through.as_slice())
        };
        let own_path = path(baseline);
        let others: Vec<&[String]> = others.iter().map(|name| path(name)).collect();
        let one_path = !others.is_empty() && others.iter().all(|path| *path == own_path);
        if one_path || !self.events.is_empty() {
            return BTreeSet::new();
        }
        let is_shared = |server: &&String| others.iter().any(|path| path.contains(server));
        let mut own: BTreeSet<String> = own_path
            .iter()
            .filter(|one| !is_shared(one))
            .cloned()
            .collect();
        if own.is_empty() {
            own = own_path.iter().cloned().collect();
        }
        let mut servers = self.servers.iter().filter(|one| own.contains(&one.name));
        match servers.any(|one| one.port.is_some()) {
            true => BTreeSet::new(),
            false => own,
        }
    }
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
        let loads = self.loads_under(condition);
        let (load, path) = (&loads.main, loads.path.as_deref());
        ResolvedCondition {
            servers: self
                .start_order()
                .into_iter()
                .map(|server| self.server_under(server, condition))
                .collect(),
            subjects: self
                .subjects
                .iter()
                .map(|subject| self.subject_under(subject, condition, load, path))
                .collect(),
            beside: loads.beside(self, condition),
            load_name: loads.name,
            load: loads.main,
            events: self
                .events
                .iter()
                .filter_map(|event| self.event_under(event, condition))
                .collect(),
        }
    }

    /// The factors that act on the open loop only: under all conditions their levels change nothing
    /// but its rate.
    pub fn open_loop_factors(&self) -> Vec<String> {
        let conditions = self.conditions();
        let closed_loop = |condition: &Condition| {
            let mut resolved = self.under(condition);
            resolved.load.leave_out_rate();
            let beside = resolved.beside.iter_mut();
            // A background load keeps to its rate during the closed loop of the first load, too.
            for one in beside.filter(|one| one.role == LoadRole::Compared) {
                one.load.leave_out_rate();
            }
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

    /// Sets whether bottlenecks are looked for after the last block. With events or several loads
    /// they never are.
    pub fn find_bottlenecks(&mut self, wanted: bool) {
        self.design.bottleneck = wanted && !self.is_in_one_piece() && self.loads.is_empty();
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
    /// asks for something that only those can have. Otherwise they are machines, or CPUs of this one.
    pub fn hosts_are_apart(&self) -> bool {
        let asks = |host: &HostSpec| {
            host.link.is_some()
                || host.quota.is_some()
                || host.access != Access::Internal
                || !host.settings.is_empty()
        };
        !self.hosts_are_machines() && self.hosts.iter().any(asks)
    }

    /// Whether hosts are machines: each one behind a pipe, or this one. They are as soon as one is
    /// behind a pipe, such as ssh.
    pub fn hosts_are_machines(&self) -> bool {
        self.hosts.iter().any(|host| host.is_elsewhere())
    }

    /// Whether a host is behind a pipe.
    pub fn is_elsewhere(&self, host: Option<&str>) -> bool {
        let found = self
            .hosts
            .iter()
            .find(|one| Some(one.name.as_str()) == host);
        found.is_some_and(|host| host.is_elsewhere())
    }

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

    pub(super) fn through(&self, target: &Target) -> Vec<String> {
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
        let mut params = self.params_under(&server.with, condition);
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

    fn params_under(
        &self,
        given: &BTreeMap<String, ParamValue>,
        condition: &Condition,
    ) -> BTreeMap<String, Value> {
        let value = |given: &ParamValue| match given {
            ParamValue::Value(value) => Some(self.filled_value(value, condition)),
            ParamValue::Factor { factor, by_level } => {
                let text = condition.get(factor);
                let level = by_level.iter().find(|(level, _)| Some(level) == text);
                Some(level.or(by_level.first())?.1.clone())
            }
        };
        let params = given.iter();
        params
            .filter_map(|(name, given)| Some((name.clone(), value(given)?)))
            .collect()
    }

    fn event_under(&self, event: &Event, condition: &Condition) -> Option<EventSpec> {
        let kind = match &event.what {
            EventWhat::Kind(kind) => *kind,
            EventWhat::Factor { factor, by_level } => {
                let text = condition.get(factor);
                let level = by_level.iter().find(|(level, _)| Some(level) == text);
                level.or(by_level.first())?.1
            }
        };
        let given = &event.settings;
        Some(EventSpec {
            at: event.at,
            target: event.target.clone(),
            kind,
            until: event.until,
            settings: EventSettings {
                params: self.params_under(&given.params, condition),
                quota: given.quota,
                delay: given.delay,
                loss: given.loss,
                pause: given.pause,
            },
        })
    }

    pub(super) fn effects<'e>(
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
    pub(super) fn filled(&self, text: &str, condition: &Condition) -> String {
        self.filled_beside(text, None, condition)
    }

    /// The same of a path, in which `{{` begins a placeholder: a factor may stand in that.
    pub(super) fn filled_path(&self, text: &str, condition: &Condition) -> String {
        self.filled_beside(text, Some("{{"), condition)
    }

    /// `{name}`s are not looked for in `other`.
    fn filled_beside(&self, text: &str, other: Option<&str>, condition: &Condition) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            out.push_str(&rest[..start]);
            if let Some(other) = other.filter(|other| rest[start..].starts_with(other)) {
                out.push_str(other);
                rest = &rest[start + other.len()..];
                continue;
            }
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
