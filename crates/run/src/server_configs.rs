//! What servers were given: their commands and files, for `hosts.json`. Each way in which a server
//! is set is kept once, as it was when it came up first.

use std::collections::{BTreeMap, BTreeSet};

use readings::Condition;
use serde_json::{Value, json};

use experiment::{Experiment, ServerSpec};

/// The key of the conditions under which a server was set in one way.
const CONDITIONS: &str = "conditions";
/// The key of a server's other ways.
const OTHERWISE: &str = "otherwise";

/// What servers were given so far.
#[derive(Default)]
pub(crate) struct Given {
    /// By server.
    ways: BTreeMap<String, Vec<Way>>,
}

/// One way in which a server is set. Its address and the folder that it runs in are other ones at
/// each start, and make no other way.
struct Way {
    spec: ServerSpec,
    /// How many CPUs it may use: which ones can be drawn anew at each start.
    cpus: usize,
    conditions: BTreeSet<Condition>,
    configuration: Value,
}

impl Given {
    /// What an earlier part of a run has kept below `servers`.
    pub(crate) fn of(servers: &Value, experiment: &Experiment) -> Self {
        let mut given = Self::default();
        for (name, first) in servers.as_object().into_iter().flatten() {
            let others = first.get(OTHERWISE).and_then(Value::as_array);
            for way in std::iter::once(first).chain(others.into_iter().flatten()) {
                let Some(mut fields) = way.as_object().cloned() else {
                    continue;
                };
                fields.remove(OTHERWISE);
                let conditions = fields
                    .remove(CONDITIONS)
                    .and_then(|conditions| serde_json::from_value(conditions).ok())
                    // They are left out where there is one.
                    .unwrap_or_else(|| experiment.conditions());
                let configuration = Value::Object(fields);
                for condition in &conditions {
                    given.take_one(experiment, condition, name, &configuration);
                }
            }
        }
        given
    }

    /// Takes what a condition's servers were given; whether there is something new.
    pub(crate) fn take(
        &mut self,
        experiment: &Experiment,
        condition: &Condition,
        configurations: &BTreeMap<String, Value>,
    ) -> bool {
        let mut is_new = false;
        for (name, configuration) in configurations {
            is_new |= self.take_one(experiment, condition, name, configuration);
        }
        is_new
    }

    fn take_one(
        &mut self,
        experiment: &Experiment,
        condition: &Condition,
        name: &str,
        configuration: &Value,
    ) -> bool {
        let servers = experiment.under(condition).servers;
        let Some(spec) = servers.into_iter().find(|server| server.name == name) else {
            return false;
        };
        let cpus = configuration["cpus"].as_array().map_or(0, Vec::len);
        let ways = self.ways.entry(name.to_string()).or_default();
        if let Some(way) = ways
            .iter_mut()
            .find(|way| way.spec == spec && way.cpus == cpus)
        {
            return way.conditions.insert(condition.clone());
        }
        ways.push(Way {
            spec,
            cpus,
            conditions: BTreeSet::from([condition.clone()]),
            configuration: configuration.clone(),
        });
        true
    }

    /// How many servers are known.
    pub(crate) fn servers(&self) -> usize {
        self.ways.len()
    }

    /// Of each server what it was given first.
    pub(crate) fn first(&self) -> BTreeMap<String, Value> {
        let first = |(name, ways): (&String, &Vec<Way>)| {
            Some((name.clone(), ways.first()?.configuration.clone()))
        };
        self.ways.iter().filter_map(first).collect()
    }

    /// All of it, as it stands below `servers`.
    pub(crate) fn document(&self, experiment: &Experiment) -> Value {
        let has_conditions = experiment.conditions().len() > 1;
        let of_server = |(name, ways): (&String, &Vec<Way>)| {
            let mut documents = ways.iter().map(|way| {
                let mut document = way.configuration.clone();
                if has_conditions {
                    document[CONDITIONS] = json!(way.conditions);
                }
                document
            });
            let mut document = documents.next()?;
            let others: Vec<Value> = documents.collect();
            if !others.is_empty() {
                document[OTHERWISE] = json!(others);
            }
            Some((name.clone(), document))
        };
        self.ways.iter().filter_map(of_server).collect()
    }
}
