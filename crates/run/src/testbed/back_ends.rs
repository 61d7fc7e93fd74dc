//! The back ends of a path, and what they counted of a load.

use std::collections::BTreeMap;

use agent::Measured;
use experiment::manifest::Value;
use experiment::{
    RATE_LIMIT, ResolvedCondition, ServerSpec, SubjectSpec, Target, Upstream, WEIGHTS,
};
use readings::{LoadReading, RequestBody};

use crate::testbed::copies::original;

/// Where all that a load sends arrives.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackEnds {
    /// The servers of the path that forward nothing; empty where some of it runs elsewhere, or
    /// several loads are made at once.
    servers: Vec<String>,
    body: Option<RequestBody>,
    /// Their weights at the server that the load addresses, where it declares any.
    weights: BTreeMap<String, u32>,
    /// The rate limit that it declares, requests per second.
    rate_limit_per_s: Option<f64>,
}

impl BackEnds {
    pub(crate) fn of(resolved: &ResolvedCondition, subject: &SubjectSpec) -> Self {
        let load = &resolved.load;
        let body = load.body().filter(|_| load.traffic.kind().is_answers());
        let path = resolved.servers.iter();
        let mut path = path.filter(|one| subject.through.contains(&one.name));
        let leaves = |upstream: &Upstream| matches!(upstream, Upstream::Address(_));
        let is_partly_elsewhere = matches!(subject.target, Target::Address(_))
            || path.clone().any(|one| one.upstreams.iter().any(leaves));
        let ends = path.by_ref().filter(|one| one.upstreams.is_empty());
        let mut servers: Vec<String> = ends.map(|one| one.name.clone()).collect();
        if is_partly_elsewhere || !resolved.beside.is_empty() {
            servers.clear();
        }
        let first = subject.through.first();
        let first = first.and_then(|name| resolved.servers.iter().find(|one| one.name == *name));
        Self {
            servers,
            body: body.and_then(|body| RequestBody::of(body.as_bytes())),
            weights: first.map(weights).unwrap_or_default(),
            rate_limit_per_s: first.and_then(rate_limit_per_s),
        }
    }

    /// Whether answers with status 429 and 503 may be refusals of a rate limit.
    pub(crate) fn may_refuse(&self) -> bool {
        self.rate_limit_per_s.is_some()
    }

    /// Adds to a load what they counted, if all of them count.
    pub(crate) fn add_to(&self, load: &mut LoadReading, measured: &Measured) {
        load.request_body = self.body;
        load.rate_limit_per_s = self.rate_limit_per_s;
        load.received = self.all(|name| {
            let mut received = *measured.received.get(name)?;
            received.weight = self.weights.get(name).copied();
            Some(received)
        });
        load.arrivals = self.all(|name| measured.arrivals.get(name).cloned());
    }

    /// What all of them have; nothing where one has not.
    fn all<T>(&self, of: impl Fn(&str) -> Option<T>) -> BTreeMap<String, T> {
        let servers = self.servers.iter();
        let found = servers.map(|name| Some((original(name).to_owned(), of(name)?)));
        found.collect::<Option<_>>().unwrap_or_default()
    }
}

fn rate_limit_per_s(server: &ServerSpec) -> Option<f64> {
    match server.params.get(RATE_LIMIT) {
        Some(Value::Integer(limit)) if *limit > 0 => Some(*limit as f64),
        _ => None,
    }
}

/// Nothing where it declares other weights than one for each upstream.
fn weights(server: &ServerSpec) -> BTreeMap<String, u32> {
    let Some(Value::List(weights)) = server.params.get(WEIGHTS) else {
        return BTreeMap::new();
    };
    if weights.len() != server.upstreams.len() {
        return BTreeMap::new();
    }
    let pairs = server.upstreams.iter().zip(weights);
    let pairs = pairs.filter_map(|(upstream, weight)| match upstream {
        Upstream::Server(name) => Some((name.clone(), weight.parse().ok()?)),
        Upstream::Address(_) => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Received;

    #[test]
    fn counts_are_complete_or_absent() {
        let ends = BackEnds {
            servers: vec!["one.copy".to_owned(), "two".to_owned()],
            body: RequestBody::of(b"abc"),
            weights: BTreeMap::from([("two".to_owned(), 3)]),
            rate_limit_per_s: None,
        };
        let received = |requests| Received {
            requests,
            ..Received::default()
        };
        let mut measured = Measured::default();
        let mut load = LoadReading::default();
        measured.received.insert("one.copy".to_owned(), received(3));
        ends.add_to(&mut load, &measured);
        assert!(load.received.is_empty(), "one of them does not count");
        assert_eq!(load.request_body.unwrap().bytes, 3);
        measured.received.insert("two".to_owned(), received(4));
        measured.received.insert("proxy".to_owned(), received(9));
        ends.add_to(&mut load, &measured);
        let names: Vec<&str> = load.received.keys().map(String::as_str).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(Received::sum(&load.received).requests, 7);
        let weights = load.received.values().map(|one| one.weight);
        assert_eq!(weights.collect::<Vec<_>>(), [None, Some(3)]);
        assert!(load.arrivals.is_empty());
    }
}
