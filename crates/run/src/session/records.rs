//! What is kept of a run, and told to whoever watches it.

use std::collections::BTreeMap;

use readings::{Condition, FailureCause, Journal, JournalRow, Outcome, Placement, Trial};
use serde_json::Value;

use crate::journal::inventory::Inventory;
use crate::journal::settings::ReportedSettings;
use crate::journal::{JournalError, JournalWriter};
use crate::{CpuPlacement, RunError, RunEvent, RunOptions};
use experiment::ResolvedCondition;

pub(super) struct Records<'a> {
    options: &'a RunOptions<'a>,
    pub(super) journal: JournalWriter,
    pub(super) emit: &'a mut dyn FnMut(RunEvent),
    pub(super) inventory: Inventory<'a>,
    settings: ReportedSettings,
    /// The placement that was recorded last.
    cpus: Option<Placement>,
}

impl<'a> Records<'a> {
    /// `earlier` has the rows of an earlier part of the run.
    pub(super) fn new(
        options: &'a RunOptions<'a>,
        journal: JournalWriter,
        emit: &'a mut dyn FnMut(RunEvent),
        earlier: Option<&Journal>,
    ) -> Self {
        Self {
            options,
            journal,
            emit,
            inventory: Inventory::of(options),
            settings: ReportedSettings::of(earlier),
            cpus: None,
        }
    }

    /// Tells an event; a warning is recorded, too.
    pub(super) fn tell(&mut self, event: RunEvent) -> Result<(), RunError> {
        let row = match &event {
            RunEvent::Warning { text } => Some(JournalRow::Warning { text: text.clone() }),
            _ => None,
        };
        (self.emit)(event);
        match row {
            Some(row) => Ok(self.journal.append(&row)?),
            None => Ok(()),
        }
    }

    pub(super) fn warn(&mut self, text: String) -> Result<(), RunError> {
        self.tell(RunEvent::Warning { text })
    }

    /// Appends a row. If it cannot be represented in a journal, it is left out with a warning.
    pub(super) fn append(&mut self, row: &JournalRow) -> Result<(), RunError> {
        match self.journal.append(row) {
            Err(JournalError::Row { source, .. }) => self.warn(format!(
                "a row of the journal could not be written and is missing: {source}"
            )),
            other => Ok(other?),
        }
    }

    /// Appends a trial. If it cannot be represented in a journal, it is appended as failed.
    pub(super) fn append_trial(&mut self, mut trial: Trial) -> Result<Trial, RunError> {
        let row = JournalRow::Trial(Box::new(trial.clone()));
        match self.journal.append(&row) {
            Err(JournalError::Row { source, .. }) => {
                trial.outcome = Outcome::Failed {
                    reason: format!("what was measured could not be written: {source}"),
                    cause: FailureCause::Other,
                };
                self.append(&JournalRow::Trial(Box::new(trial.clone())))?;
            }
            other => other?,
        }
        Ok(trial)
    }

    /// Records the settings and CPUs of a condition's servers, where they are new.
    pub(super) fn append_servers(
        &mut self,
        condition: &Condition,
        resolved: &ResolvedCondition,
        configurations: &BTreeMap<String, Value>,
        placement: &CpuPlacement,
    ) -> Result<(), RunError> {
        let recipes = self.options.recipes;
        if let Some(row) = self
            .settings
            .row(condition, resolved, configurations, recipes)
        {
            self.append(&row)?;
        }
        let cpus = placement.of_servers(&resolved.servers);
        if self.cpus.as_ref() != Some(&cpus) && !cpus.server_cpus.is_empty() {
            self.append(&JournalRow::Placement(cpus.clone()))?;
            self.cpus = Some(cpus);
        }
        Ok(())
    }
}
