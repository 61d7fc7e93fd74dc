//! Programs of recipes and drivers, and their versions, on the hosts that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use crate::testbed::{Testbed, unexpected};
use agent::AgentError;
use agent::wire::{Answer, DriveOrder, FindOrder, Order};
use experiment::driver::Driver;
use experiment::recipe::Recipe;
use experiment::{Experiment, Recipes};

/// Time limit of a version command, ms.
const VERSION_TIMEOUT_MS: u64 = 3_000;

impl Testbed {
    /// The requirements of an experiment that are missing on machines behind a pipe, a sentence each.
    pub(crate) fn missing(
        &mut self,
        experiment: &Experiment,
        recipes: &Recipes,
    ) -> Result<Vec<String>, AgentError> {
        let mut sentences = Vec::new();
        let loads: BTreeSet<Option<String>> = experiment
            .conditions()
            .iter()
            .map(|condition| experiment.under(condition).load.host)
            .collect();
        let remote = experiment.hosts.iter().filter(|host| host.is_elsewhere());
        for host in remote {
            let name = Some(host.name.as_str());
            let mut wanted = Vec::new();
            for server in experiment.start_order() {
                let recipe = recipes.get(&server.recipe);
                if server.host.as_deref() == name {
                    wanted.extend(recipe.map(find_order));
                }
            }
            if loads.contains(&Some(host.name.clone())) {
                let drivers = recipes.drivers_of(experiment);
                wanted.extend(drivers.into_iter().map(driver_find_order));
            }
            for order in wanted {
                let (_, missing) = self.find(name, order)?;
                let sentence = missing.map(|it| format!("host `{}`: {it}", host.name));
                sentences.extend(sentence.filter(|one| !sentences.contains(one)));
            }
        }
        Ok(sentences)
    }

    fn find(
        &mut self,
        host: Option<&str>,
        order: FindOrder,
    ) -> Result<(BTreeMap<String, PathBuf>, Option<String>), AgentError> {
        match self.agent(host)?.ask(&Order::Find(order))? {
            Answer::Found { programs, missing } => Ok((programs, missing)),
            other => Err(unexpected(&other)),
        }
    }

    /// The programs of a recipe on a host.
    ///
    /// # Errors
    /// When one is missing.
    pub(crate) fn programs(
        &mut self,
        host: Option<&str>,
        recipe: &Recipe,
    ) -> Result<BTreeMap<String, PathBuf>, AgentError> {
        let (programs, missing) = if self.is_remote(host) {
            self.find(host, find_order(recipe))?
        } else {
            let available = recipe.available();
            let missing = available.sentence();
            (available.programs, missing)
        };
        missing.map_or(Ok(programs), |it| Err(AgentError::Failed(it)))
    }

    pub(crate) fn driver_programs(
        &mut self,
        host: Option<&str>,
        driver: &Driver,
    ) -> Result<BTreeMap<String, PathBuf>, AgentError> {
        if self.is_remote(host) {
            return Ok(self.find(host, driver_find_order(driver))?.0);
        }
        Ok(driver.available().programs)
    }

    pub(crate) fn driver_version(
        &mut self,
        host: Option<&str>,
        driver: &Driver,
        weigh: &Path,
    ) -> Option<String> {
        if !self.is_remote(host) {
            return driver.version(weigh);
        }
        let programs = self.driver_programs(host, driver).ok()?;
        let weigh = self.hosts.get(host)?.remote_program()?;
        let words = driver.version_words(&programs, &weigh)?;
        driver.version_in(&self.output_of(host, words)?)
    }

    /// The versions of servers on machines behind a pipe, by recipe, from their configurations as this
    /// process rendered them.
    pub(crate) fn versions(
        &mut self,
        configurations: &BTreeMap<String, Value>,
        recipes: &Recipes,
    ) -> BTreeMap<String, Option<String>> {
        let mut versions = BTreeMap::new();
        for configuration in configurations.values() {
            let (host, recipe) = (&configuration["host"], &configuration["recipe"]);
            let (Some(host), Some(name)) = (host.as_str(), recipe.as_str()) else {
                continue;
            };
            if !self.is_remote(Some(host)) || versions.contains_key(name) {
                continue;
            }
            let words = serde_json::from_value(configuration["version_command"].clone()).ok();
            let printed = words.and_then(|words| self.output_of(Some(host), words));
            let version = printed
                .zip(recipes.get(name))
                .and_then(|(text, recipe)| recipe.version_in(&text));
            versions.insert(name.to_owned(), version);
        }
        versions
    }

    /// Runs a command on a host and returns its output.
    fn output_of(&mut self, host: Option<&str>, command: Vec<String>) -> Option<String> {
        let order = DriveOrder {
            command,
            env: Vec::new(),
            cpus: Vec::new(),
            limit_ms: VERSION_TIMEOUT_MS,
            watch: Vec::new(),
            watch_others: Vec::new(),
        };
        let driven = self.agent(host).ok()?.drive(order, &AtomicBool::new(false));
        driven.ok().map(|driven| driven.output + &driven.errors)
    }

    /// Whether a host's agent is on another machine, with files of its own.
    pub(crate) fn is_remote(&self, host: Option<&str>) -> bool {
        let host = self.hosts.get(host);
        host.is_none_or(|host| host.remote_program().is_some())
    }
}

fn find_order(recipe: &Recipe) -> FindOrder {
    FindOrder {
        programs: recipe.programs.clone(),
        files: recipe
            .needs
            .iter()
            .map(|need| (need.file.clone(), need.package.clone()))
            .collect(),
        packages: recipe.packages.debian.clone(),
        pip: recipe
            .packages
            .pip
            .as_ref()
            .map(|package| (recipe.name.clone(), package.to_string())),
        homepage: recipe.homepage.clone(),
    }
}

fn driver_find_order(driver: &Driver) -> FindOrder {
    FindOrder {
        programs: driver.programs.clone(),
        files: Vec::new(),
        packages: driver.packages.debian.clone(),
        pip: None,
        homepage: driver.homepage.clone(),
    }
}
