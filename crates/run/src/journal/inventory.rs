//! Writes `hosts.json` when its first part is known, and again with every new one.

use std::collections::BTreeMap;

use readings::Condition;
use serde_json::Value;

use crate::journal::folder;
use crate::journal::server_configs::ServerConfigs;
use crate::testbed::Testbed;
use crate::{CpuPlacement, RunError, RunOptions};

pub(crate) struct Inventory<'a> {
    options: &'a RunOptions<'a>,
    configs: ServerConfigs,
    is_written: bool,
}

impl<'a> Inventory<'a> {
    /// Starts from the `hosts.json` of an earlier part of the run, if there is one.
    pub(crate) fn of(options: &'a RunOptions<'a>) -> Self {
        let before = folder::read_inventory(options.folder);
        let configs = before
            .as_ref()
            .map_or_else(ServerConfigs::default, |document| {
                ServerConfigs::of(&document["local"]["servers"], options.experiment)
            });
        Self {
            options,
            configs,
            is_written: before.is_some(),
        }
    }

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
        // A new server's version is added too.
        if !self.is_written || self.configs.server_count() > servers {
            self.is_written = true;
            let parts = folder::InventoryParts {
                placement,
                configs: &self.configs,
                drivers,
                servers: testbed.versions(self.configs.rendered(), options.recipes),
                hosts: testbed.hosts.inventory(),
            };
            return folder::write_inventory(options, parts);
        }
        match is_new {
            true => folder::write_server_configs(options, &self.configs),
            false => Ok(()),
        }
    }
}
