//! The back ends of a path, and what they counted of a load.

use std::collections::BTreeMap;

use agent::Measured;
use experiment::{ResolvedCondition, SubjectSpec, Target, Upstream};
use readings::{LoadReading, Received, RequestBody};

use crate::testbed::copies::original;

/// Where all that a load sends arrives.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackEnds {
    /// The servers of the path that forward nothing; empty where some of it runs elsewhere, or
    /// several loads are made at once.
    servers: Vec<String>,
    body: Option<RequestBody>,
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
        Self {
            servers,
            body: body.and_then(|body| RequestBody::of(body.as_bytes())),
        }
    }

    /// Adds to a load what they counted, if all of them count.
    pub(crate) fn add_to(&self, load: &mut LoadReading, measured: &Measured) {
        load.request_body = self.body;
        let counted = self.servers.iter().map(|name| {
            let received = measured.received.get(name)?;
            Some((original(name).to_owned(), *received))
        });
        let counted: Option<BTreeMap<String, Received>> = counted.collect();
        load.received = counted.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_complete_or_absent() {
        let ends = BackEnds {
            servers: vec!["one.copy".to_owned(), "two".to_owned()],
            body: RequestBody::of(b"abc"),
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
    }
}
