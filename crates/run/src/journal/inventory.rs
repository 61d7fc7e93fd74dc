//! Writes `hosts.json` when its first part is known, and again with every new one.

use std::collections::BTreeMap;
use std::path::Path;

use net::plain_file;
use readings::Condition;
use serde_json::{Value, json};

use crate::journal::folder::replace_file;
use crate::journal::server_configs::ServerConfigs;
use crate::testbed::Testbed;
use crate::{CpuPlacement, RunError, RunOptions};

const FILE_NAME: &str = "hosts.json";
/// The most bytes of it.
const BYTES_MAX: usize = 16 << 20;

pub(crate) struct Inventory<'a> {
    options: &'a RunOptions<'a>,
    configs: ServerConfigs,
    is_written: bool,
}

impl<'a> Inventory<'a> {
    /// Starts from the `hosts.json` of an earlier part of the run, if there is one.
    pub(crate) fn of(options: &'a RunOptions<'a>) -> Self {
        let before = read(options.folder);
        let servers = before
            .as_ref()
            .map(|document| &document["local"]["servers"]);
        Self {
            options,
            configs: servers.map_or_else(ServerConfigs::default, |servers| {
                ServerConfigs::of(servers, options.experiment)
            }),
            is_written: before.is_some(),
        }
    }

    /// Adds the configurations of a condition's servers, with the versions that run.
    pub(crate) fn add(
        &mut self,
        condition: &Condition,
        configurations: &BTreeMap<String, Value>,
        placement: &CpuPlacement,
        testbed: &mut Testbed,
        drivers: &BTreeMap<String, Option<String>>,
    ) -> Result<(), RunError> {
        let options = self.options;
        let servers = self.configs.server_count();
        let is_new = self
            .configs
            .add(options.experiment, condition, configurations);
        if !self.is_written || self.configs.server_count() > servers {
            self.is_written = true;
            return self.write(placement, testbed, drivers);
        }
        match read(options.folder).filter(|_| is_new) {
            Some(mut document) => {
                document["local"]["versions"] = json!(self.versions());
                document["local"]["servers"] = self.configs.document(options.experiment);
                replace(options.folder, &document)
            }
            None => Ok(()),
        }
    }

    fn write(
        &self,
        placement: &CpuPlacement,
        testbed: &mut Testbed,
        drivers: &BTreeMap<String, Option<String>>,
    ) -> Result<(), RunError> {
        let options = self.options;
        // This thread is bound to the servers' CPUs, so its own affinity is too small.
        let mut cpus = [placement.load_cpus.as_slice(), &placement.server_cpus].concat();
        cpus.sort_unstable();
        let hosts = testbed.hosts.inventory();
        let mut machine = agent::machine::describe();
        if !matches!(hosts, Some(("machines", _))) {
            machine["cpus"] = json!(cpus);
        }
        machine["weigh"] = json!(env!("CARGO_PKG_VERSION"));
        machine["load_cpus"] = json!(placement.load_cpus);
        machine["server_cpus"] = json!(placement.server_cpus);
        machine["versions"] = json!(self.versions());
        machine["servers"] = self.configs.document(options.experiment);
        machine["drivers"] = json!(drivers);
        let wanted: BTreeMap<_, _> = options.experiment.sysctls.iter().cloned().collect();
        machine["sysctls_wanted"] = json!(wanted);
        let mut document = json!({ "local": machine });
        if let Some((key, hosts)) = hosts {
            document[key] = hosts;
        }
        replace(options.folder, &document)
    }

    /// The versions of the experiment's servers, by recipe: several joined by `and`.
    fn versions(&self) -> BTreeMap<String, Option<String>> {
        let options = self.options;
        let before = versions_before(options.folder);
        let mut versions = BTreeMap::new();
        for server in options.experiment.start_order() {
            if options.recipes.get(&server.recipe).is_none() {
                continue;
            }
            let version = match self.configs.versions_of(&server.recipe) {
                Some(all) => (!all.is_empty()).then(|| all.join(" and ")),
                None => before.get(&server.recipe).cloned(),
            };
            versions.insert(server.recipe.clone(), version);
        }
        versions
    }
}

/// The run's `hosts.json`, if it has one.
fn read(folder: &Path) -> Option<Value> {
    let text = plain_file::read(&folder.join(FILE_NAME), BYTES_MAX).ok()?;
    let document: Value = serde_json::from_slice(&text).ok()?;
    document["local"].is_object().then_some(document)
}

fn replace(folder: &Path, document: &Value) -> Result<(), RunError> {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    replace_file(&folder.join(FILE_NAME), &(text + "\n")).map_err(|e| RunError::Folder {
        path: folder.to_path_buf(),
        why: e.to_string(),
    })
}

/// The versions by recipe in the `hosts.json` that an earlier part of the run wrote.
pub(crate) fn versions_before(folder: &Path) -> BTreeMap<String, String> {
    let document = read(folder).unwrap_or_default();
    let versions = document["local"]["versions"].as_object();
    let versions = versions.into_iter().flatten();
    versions
        .filter_map(|(recipe, version)| Some((recipe.clone(), version.as_str()?.to_owned())))
        .collect()
}
