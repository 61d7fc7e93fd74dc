//! The servers' commands and files, for `hosts.json`. Each distinct configuration of a server is
//! stored once, as of its first start.

use std::collections::{BTreeMap, BTreeSet};

use readings::Condition;
use serde_json::{Value, json};

use experiment::{Experiment, ServerSpec};

/// JSON key of the conditions of a variant.
const CONDITIONS: &str = "conditions";
/// JSON key of the further variants of a server.
const OTHER_VARIANTS: &str = "otherwise";

#[derive(Default)]
pub(crate) struct ServerConfigs {
    /// By server name.
    variants: BTreeMap<String, Vec<ConfigVariant>>,
}

/// JSON key of the version of a variant's program.
const VERSION: &str = "version";

/// A distinct configuration of a server. Address and folder change with each start and do not
/// distinguish variants.
struct ConfigVariant {
    spec: ServerSpec,
    /// Number of CPUs: which ones can differ at each start.
    cpus: usize,
    conditions: BTreeSet<Condition>,
    configuration: Value,
}

impl ServerConfigs {
    /// Reads the `servers` object of an existing `hosts.json`.
    pub(crate) fn of(servers: &Value, experiment: &Experiment) -> Self {
        let mut configs = Self::default();
        for (name, first) in servers.as_object().into_iter().flatten() {
            let others = first.get(OTHER_VARIANTS).and_then(Value::as_array);
            for variant in std::iter::once(first).chain(others.into_iter().flatten()) {
                let Some(mut fields) = variant.as_object().cloned() else {
                    continue;
                };
                fields.remove(OTHER_VARIANTS);
                let conditions = fields
                    .remove(CONDITIONS)
                    .and_then(|conditions| serde_json::from_value(conditions).ok())
                    // Omitted in experiments with one condition.
                    .unwrap_or_else(|| experiment.conditions());
                let configuration = Value::Object(fields);
                for condition in &conditions {
                    configs.add_one(experiment, condition, name, &configuration);
                }
            }
        }
        configs
    }

    /// Adds the configurations of a condition's servers; returns whether something is new. A version
    /// that is told now counts more than that of an earlier part of the run.
    pub(crate) fn add(
        &mut self,
        experiment: &Experiment,
        condition: &Condition,
        configurations: &BTreeMap<String, Value>,
    ) -> bool {
        let mut is_new = false;
        for (name, configuration) in configurations {
            is_new |= self.add_one(experiment, condition, name, configuration);
            let variants = self.variants.get_mut(name).into_iter().flatten();
            let of_condition = |one: &&mut ConfigVariant| one.conditions.contains(condition);
            for variant in variants.filter(of_condition) {
                let told = &configuration[VERSION];
                if variant.configuration[VERSION] != *told {
                    variant.configuration[VERSION] = told.clone();
                    is_new = true;
                }
            }
        }
        is_new
    }

    fn add_one(
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
        let variants = self.variants.entry(name.to_string()).or_default();
        if let Some(variant) = variants
            .iter_mut()
            .find(|variant| variant.spec == spec && variant.cpus == cpus)
        {
            return variant.conditions.insert(condition.clone());
        }
        variants.push(ConfigVariant {
            spec,
            cpus,
            conditions: BTreeSet::from([condition.clone()]),
            configuration: configuration.clone(),
        });
        true
    }

    pub(crate) fn server_count(&self) -> usize {
        self.variants.len()
    }

    /// The versions of a recipe's servers, each once, in the order of the servers' names. `None` if
    /// none of them was started yet.
    pub(crate) fn versions_of(&self, recipe: &str) -> Option<Vec<String>> {
        let variants = self.variants.values().flatten();
        let mut of_recipe = variants
            .filter(|one| one.configuration["recipe"] == recipe)
            .peekable();
        of_recipe.peek()?;
        let mut versions: Vec<String> = Vec::new();
        for variant in of_recipe {
            let version = variant.configuration[VERSION].as_str().map(str::to_owned);
            versions.extend(version.filter(|one| !versions.contains(one)));
        }
        Some(versions)
    }

    /// The `servers` object of `hosts.json`.
    pub(crate) fn document(&self, experiment: &Experiment) -> Value {
        let has_conditions = experiment.conditions().len() > 1;
        let of_server = |(name, variants): (&String, &Vec<ConfigVariant>)| {
            let mut documents = variants.iter().map(|variant| {
                let mut document = variant.configuration.clone();
                if has_conditions {
                    document[CONDITIONS] = json!(variant.conditions);
                }
                document
            });
            let mut document = documents.next()?;
            let others: Vec<Value> = documents.collect();
            if !others.is_empty() {
                document[OTHER_VARIANTS] = json!(others);
            }
            Some((name.clone(), document))
        };
        self.variants.iter().filter_map(of_server).collect()
    }
}
