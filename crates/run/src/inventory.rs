//! When `hosts.json` is written: as soon as something is known, and again as more becomes known.

use std::collections::BTreeMap;

use readings::Condition;
use serde_json::Value;

use crate::server_configs::Given;
use crate::testbed::Testbed;
use crate::{CpuPlacement, RunError, RunOptions, folder};

/// What is described so far.
pub(super) struct Description<'a> {
    options: &'a RunOptions<'a>,
    given: Given,
    is_written: bool,
}

impl<'a> Description<'a> {
    /// With what an earlier part of the run has described; it may have died before it did.
    pub(super) fn of(options: &'a RunOptions<'a>) -> Self {
        let before = folder::described(options.folder);
        let given = before.as_ref().map_or_else(Given::default, |document| {
            Given::of(&document["local"]["servers"], options.experiment)
        });
        Self {
            options,
            given,
            is_written: before.is_some(),
        }
    }

    /// Takes what the servers of a condition were given.
    pub(super) fn take(
        &mut self,
        condition: &Condition,
        configurations: &BTreeMap<String, Value>,
        placement: &CpuPlacement,
        testbed: &mut Testbed,
        drivers: &BTreeMap<String, Option<String>>,
    ) -> Result<(), RunError> {
        let options = self.options;
        let servers = self.given.servers();
        let is_new = self
            .given
            .take(options.experiment, condition, configurations);
        // Of a server that comes up for the first time the version is asked, too.
        if !self.is_written || self.given.servers() > servers {
            self.is_written = true;
            let described = folder::Described {
                placement,
                given: &self.given,
                drivers,
                servers: testbed.versions(&self.given.first(), options.recipes),
                hosts: testbed.hosts.inventory(),
            };
            return folder::write_machine(options, described);
        }
        match is_new {
            true => folder::write_given(options, &self.given),
            false => Ok(()),
        }
    }
}
