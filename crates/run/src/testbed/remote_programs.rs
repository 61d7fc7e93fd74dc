//! Programs of recipes and drivers, and their versions, on the hosts that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::testbed::{Testbed, unexpected};
use agent::AgentError;
use agent::wire::{Answer, DriveOrder, FindOrder, FindPackage, Order};
use experiment::driver::Driver;
use experiment::manifest::printed;
use experiment::recipe::Recipe;
use experiment::{Experiment, NeededRecipe, Recipes};
use installed::{Availability, PinnedPackage};

/// Time limit of a version command, ms.
const VERSION_TIMEOUT_MS: u64 = 3_000;

impl Testbed {
    /// The requirements of an experiment that are missing on machines behind a pipe, a sentence each.
    pub(crate) fn missing(
        &mut self,
        experiment: &Experiment,
        recipes: &Recipes,
    ) -> Result<Vec<String>, AgentError> {
        let mut sentences: Vec<String> = Vec::new();
        let loads: BTreeSet<Option<String>> = experiment
            .conditions()
            .iter()
            .map(|condition| experiment.under(condition).load.host)
            .collect();
        let remote = experiment.hosts.iter().filter(|host| host.is_elsewhere());
        let needed = experiment.needed(recipes);
        for host in remote {
            let name = Some(host.name.as_str());
            let mut missing = Vec::new();
            for one in needed.iter().filter(|one| one.host.as_deref() == name) {
                missing.extend(self.missing_recipe(name, one)?);
            }
            if loads.contains(&Some(host.name.clone())) {
                for driver in recipes.drivers_of(experiment) {
                    missing.extend(self.find(name, driver_find_order(driver))?.1);
                }
            }
            for it in missing {
                let sentence = format!("host `{}`: {it}", host.name);
                if !sentences.contains(&sentence) {
                    sentences.push(sentence);
                }
            }
        }
        Ok(sentences)
    }

    /// What of a recipe is missing on a host behind a pipe, or has another version.
    fn missing_recipe(
        &mut self,
        host: Option<&str>,
        needed: &NeededRecipe<'_>,
    ) -> Result<Option<String>, AgentError> {
        let (recipe, version) = (needed.recipe, needed.version.as_deref());
        let (programs, missing) = self.find(host, find_order(recipe, version))?;
        if missing.is_some() {
            return Ok(missing);
        }
        let mut found = Availability {
            programs,
            ..Availability::default()
        };
        if let Some(wanted) = recipe.version_to_check(version, &found) {
            let words = recipe.version_words(&found.programs);
            let told = words.and_then(|words| self.output_of(host, words));
            let told = told.and_then(|text| recipe.version_in(&text));
            recipe.check_version(&mut found, wanted, told.as_deref());
        }
        Ok(found.sentence())
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

    /// The programs of a recipe in a version, on a host. Whether the version of those outside the cache
    /// of `weigh install` is the right one was checked before the run.
    ///
    /// # Errors
    /// When one is missing.
    pub(crate) fn programs(
        &mut self,
        host: Option<&str>,
        recipe: &Recipe,
        version: Option<&str>,
    ) -> Result<BTreeMap<String, PathBuf>, AgentError> {
        let (programs, missing) = if self.is_remote(host) {
            self.find(host, find_order(recipe, version))?
        } else {
            let available = recipe.look(version);
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

    /// The version of a recipe's program on a host, as this command tells it; it is run once.
    pub(crate) fn version(
        &mut self,
        host: Option<&str>,
        recipe: &Recipe,
        command: &[String],
    ) -> Option<String> {
        let key = (host.map(str::to_owned), command.to_vec());
        if let Some(told) = self.versions.get(&key) {
            return told.clone();
        }
        let printed = match self.is_remote(host) {
            true => self.output_of(host, command.to_vec()),
            false => printed(command),
        };
        let version = printed.and_then(|text| recipe.version_in(&text));
        self.versions.insert(key, version.clone());
        version
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

fn find_order(recipe: &Recipe, version: Option<&str>) -> FindOrder {
    FindOrder {
        programs: recipe.programs.clone(),
        files: recipe
            .needs
            .iter()
            .map(|need| (need.file.clone(), need.package.clone()))
            .collect(),
        packages: recipe.packages.debian.clone(),
        pinned: recipe.packages.pinned(version).map(find_package),
        homepage: recipe.homepage.clone(),
    }
}

fn find_package(package: &PinnedPackage) -> FindPackage {
    FindPackage {
        kind: package.kind.folder.to_owned(),
        name: package.name.clone(),
        version: package.version.clone(),
        install: package.install.clone(),
    }
}

fn driver_find_order(driver: &Driver) -> FindOrder {
    FindOrder {
        programs: driver.programs.clone(),
        files: Vec::new(),
        packages: driver.packages.debian.clone(),
        pinned: driver.packages.pinned(None).map(find_package),
        homepage: driver.homepage.clone(),
    }
}
