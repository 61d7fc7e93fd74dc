//! A run from preparation to end.

mod deadline;
mod resume;
pub(crate) mod retries;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use readings::{Condition, CurveChoice, FailureCause, JournalRow, Outcome, Placement, Trial};
use serde_json::Value;

use crate::context::loads;
use crate::context::{Context, Learned};
use crate::fleet::timing::NeededTimes;
use crate::group::bottleneck;
use crate::group::profile;
use crate::group::result::GroupResult;
use crate::group::sequential::measure_group;
use crate::journal::folder;
use crate::journal::inventory::Inventory;
use crate::journal::settings;
use crate::journal::{JournalError, JournalWriter};
use crate::measure::tools;
use crate::session::deadline::Deadline;
use crate::session::resume::{EarlierResults, OpenedJournal};
use crate::session::retries::RetryTracker;
use crate::testbed::authority::RunAuthority;
use crate::testbed::chosen_addresses::ChosenAddresses;
use crate::testbed::cpu_placement::{AffinityGuard, LoadHostPlacements, check_ports};
use crate::testbed::{Testbed, hosts_spec};
use crate::{CpuPlacement, OpenHosts, RunError, RunEvent, RunOptions};
use agent::AgentError;
use experiment::SEARCH;
use experiment::plan::{Group, Plan, PlannedTrial};

pub(crate) struct Session<'a> {
    open: OpenHosts<'a>,
    options: &'a RunOptions<'a>,
    stop: &'a AtomicBool,
    emit: &'a mut dyn FnMut(RunEvent),
    placements: LoadHostPlacements,
    journal: JournalWriter,
    seed: u64,
    earlier_results: EarlierResults,
    /// The groups left to measure, with their blocks.
    queue: VecDeque<(u32, Group)>,
    rates: BTreeMap<Condition, f64>,
    curves: BTreeMap<Condition, CurveChoice>,
    retries: RetryTracker<'a>,
    testbed: Option<Testbed>,
    driver_versions: BTreeMap<String, Option<String>>,
    learned: Learned,
    chosen_addresses: ChosenAddresses,
    authority: RunAuthority,
    settings: settings::ReportedSettings,
    inventory: Inventory<'a>,
    /// The placement that was recorded last.
    cpus: Option<Placement>,
    /// Subjects that never worked, by condition.
    left_out: Vec<(Condition, String)>,
    /// Whether groups were given up, since nothing was left to compare in them.
    nothing_left: bool,
    deadline: Deadline,
}

/// The result of a group, with its servers' configurations and its placement.
pub(crate) struct Measured {
    result: GroupResult,
    configurations: BTreeMap<String, Value>,
    placement: CpuPlacement,
}

impl<'a> Session<'a> {
    /// Opens the journal and the hosts, and determines what is left to do.
    pub(crate) fn prepare(
        open: OpenHosts<'a>,
        options: &'a RunOptions<'a>,
        stop: &'a AtomicBool,
        emit: &'a mut dyn FnMut(RunEvent),
    ) -> Result<Self, RunError> {
        let experiment = options.experiment;
        // First of all: a run that is still in progress occupies the ports that it names.
        let resumed = match options.resume {
            true => Some(JournalWriter::resume(options.folder)?),
            false => None,
        };
        let sentences = doctor::missing(experiment, options.recipes);
        if !sentences.is_empty() {
            return Err(RunError::Missing { sentences });
        }
        if !experiment.hosts_are_apart() && !experiment.hosts_are_machines() {
            check_ports(experiment)?;
        }
        let placements = LoadHostPlacements::of(experiment)?;
        let OpenedJournal {
            journal,
            header,
            earlier,
            new_folder,
        } = match resumed {
            Some(resumed) => resumed.into(),
            None => resume::begin(options)?,
        };
        options
            .builds
            .record(options.folder)
            .map_err(|e| RunError::Folder {
                path: options.folder.to_path_buf(),
                why: e.to_string(),
            })?;
        let plan = Plan::new(experiment, header.seed);
        let earlier_results = EarlierResults::of(earlier.as_ref(), &plan);
        let trials = earlier_results.trials.clone();
        let retries = RetryTracker::of(options.may_stop, header, trials);
        let mut session = Session {
            open,
            options,
            stop,
            emit,
            placements,
            journal,
            seed: plan.seed,
            queue: plan
                .groups()
                .filter(|(block, group)| !earlier_results.has_all(*block, group))
                .map(|(block, group)| (block, group.clone()))
                .collect(),
            rates: earlier_results.rates.clone(),
            curves: earlier_results.curves.clone(),
            earlier_results,
            retries,
            testbed: None,
            driver_versions: BTreeMap::new(),
            learned: Learned::default(),
            chosen_addresses: ChosenAddresses::default(),
            authority: RunAuthority::default(),
            settings: settings::ReportedSettings::of(earlier.as_ref()),
            inventory: Inventory::of(options),
            cpus: None,
            left_out: Vec::new(),
            nothing_left: false,
            deadline: Deadline::of(experiment.design.within.filter(|_| !options.resume)),
        };
        // If all is settled, the blocks that an earlier part did not reach are skipped.
        if options.resume && !session.next_has_failed_before() && session.retries.is_settled() {
            session.queue.clear();
        }
        session.report_begin(&plan);
        if let Err(error) = session.open_hosts() {
            if let Some(new_folder) = new_folder {
                options.builds.unrecord(options.folder);
                new_folder.remove(session.journal);
            }
            return Err(error);
        }
        session.write_notices(&plan)?;
        session.deadline.first_attempt_begins();
        Ok(session)
    }

    fn report_begin(&mut self, plan: &Plan) {
        let groups = self.queue.len();
        (self.emit)(RunEvent::Begins {
            trials: self.queue.iter().map(|(_, group)| group.trials.len()).sum(),
            groups,
            groups_per_block: plan.conditions.len(),
            blocks: self.options.experiment.design.blocks,
            estimated_s: plan.estimated.as_secs_f64() * groups as f64
                / plan.groups().count().max(1) as f64,
            after_s: plan.searches.as_secs_f64(),
            folder: self.options.folder.to_path_buf(),
        });
    }

    /// Opens the hosts and checks the requirements of the experiment there.
    fn open_hosts(&mut self) -> Result<(), RunError> {
        let options = self.options;
        let placement = self.placements.first();
        let spec = hosts_spec(options.experiment, placement, self.seed);
        let mut testbed = Testbed::of((self.open)(None, spec)?);
        let sentences = testbed.missing(options.experiment, options.recipes)?;
        if !sentences.is_empty() {
            return Err(RunError::Missing { sentences });
        }
        self.testbed = Some(testbed);
        Ok(())
    }

    /// Reopens the hosts after a loss.
    fn reopen_hosts(&mut self) -> Result<(), RunError> {
        let placement = self.placements.first();
        let spec = hosts_spec(self.options.experiment, placement, self.seed);
        let before = self.testbed.take().map(Testbed::into_hosts);
        self.testbed = Some(Testbed::of((self.open)(before, spec)?));
        Ok(())
    }

    /// Determines the drivers' versions, and writes warnings for the reader of the result.
    fn write_notices(&mut self, plan: &Plan) -> Result<(), RunError> {
        let options = self.options;
        let drivers = options.recipes.drivers_of(options.experiment);
        let mut notices = self.placements.first().warnings.clone();
        notices.extend(self.placements.warnings_beside(options.experiment));
        if !options.resume {
            let clocks = drivers.iter().filter_map(|one| tools::clock_notice(one));
            notices.extend(clocks);
            notices.extend(loads::background_notice(options.experiment));
        }
        let first = plan.conditions.first();
        let load = first.map(|condition| options.experiment.under(condition).load);
        let from = load.and_then(|load| load.host);
        if let Some(testbed) = &mut self.testbed {
            for driver in drivers {
                let version = testbed.driver_version(from.as_deref(), driver, options.weigh);
                self.driver_versions.insert(driver.name.clone(), version);
            }
            notices.extend(testbed.hosts.notices());
        }
        notices.into_iter().try_for_each(|text| self.warn(text))
    }

    fn warn(&mut self, text: String) -> Result<(), RunError> {
        (self.emit)(RunEvent::Warning { text: text.clone() });
        self.journal.append(&JournalRow::Warning { text })?;
        Ok(())
    }

    /// Appends a row. If it cannot be represented in a journal, it is left out with a warning.
    fn append(&mut self, row: &JournalRow) -> Result<(), RunError> {
        match self.journal.append(row) {
            Err(JournalError::Row { source, .. }) => self.warn(format!(
                "a row of the journal could not be written and is missing: {source}"
            )),
            other => Ok(other?),
        }
    }

    /// Appends a trial. If it cannot be represented in a journal, it is appended as failed.
    fn append_trial(&mut self, mut trial: Trial) -> Result<Trial, RunError> {
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

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether an earlier part of the run measured the next group with a failed trial: then it is
    /// measured again in any case.
    fn next_has_failed_before(&self) -> bool {
        let next = self.queue.front();
        next.is_some_and(|(block, group)| self.earlier_results.has_attempt(*block, group))
    }

    /// The next group; `None` at the end, and when the run was stopped.
    pub(crate) fn next_group(&mut self) -> Option<(u32, Group)> {
        if self.is_stopped() {
            return None;
        }
        let (block, group) = self.queue.pop_front()?;
        (self.emit)(RunEvent::GroupBegins {
            block,
            blocks: self.options.experiment.design.blocks,
            condition: group.condition.clone(),
        });
        Some((block, group))
    }

    pub(crate) fn measure(&mut self, block: u32, group: &Group) -> Measured {
        let seed = self.retries.seed(block, group);
        let load = self.options.experiment.under(&group.condition).load;
        let placement = self.placements.from(load.host.as_ref()).drawn(seed);
        let rate = self.rates.get(&group.condition).copied();
        let curve = self.curves.get(&group.condition).cloned();
        let (result, configurations) = self.with_context(block, seed, &placement, |cx| {
            cx.curve = curve;
            let result = measure_group(cx, group, rate);
            (result, std::mem::take(&mut cx.configurations))
        });
        Measured {
            result,
            configurations,
            placement,
        }
    }

    fn with_context<T>(
        &mut self,
        block: u32,
        seed: u64,
        placement: &CpuPlacement,
        work: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let _guard = AffinityGuard::of(placement);
        // There is no testbed only between a loss and reopening.
        let empty = || Testbed::of(hosts::Hosts::of(Vec::new(), None));
        let mut cx = Context {
            options: self.options,
            placement,
            testbed: self.testbed.get_or_insert_with(empty),
            stop: self.stop,
            seed,
            block,
            emit: &mut *self.emit,
            configurations: BTreeMap::new(),
            driver_versions: &self.driver_versions,
            curve: None,
            needed: NeededTimes::default(),
            authority: &self.authority,
            learned: &mut self.learned,
            chosen_addresses: &mut self.chosen_addresses,
        };
        work(&mut cx)
    }

    pub(crate) fn record(
        &mut self,
        block: u32,
        group: &Group,
        measured: Measured,
    ) -> Result<(), RunError> {
        let Measured {
            result,
            configurations,
            placement,
        } = measured;
        let options = self.options;
        let resolved = options.experiment.under(&group.condition);
        let row = self.settings.row(
            &group.condition,
            &resolved,
            &configurations,
            options.recipes,
        );
        if let Some(row) = row {
            self.append(&row)?;
        }
        let cpus = placement.of_servers(&resolved.servers);
        if self.cpus.as_ref() != Some(&cpus) && !cpus.server_cpus.is_empty() {
            self.append(&JournalRow::Placement(cpus.clone()))?;
            self.cpus = Some(cpus);
        }
        if let Some(choice) = result.found.rate {
            self.rates
                .insert(group.condition.clone(), choice.rate_per_s);
            (self.emit)(RunEvent::RateChosen(choice.clone()));
            self.append(&JournalRow::Rate(choice))?;
        }
        if let Some(choice) = result.found.curve {
            self.curves.insert(group.condition.clone(), choice.clone());
            self.append(&JournalRow::Curve(choice))?;
        }
        let attempt = self.retries.next_attempt(block, &group.condition);
        self.retries.set_lasting(result.lasting);
        for (planned, outcome) in result.found.outcomes {
            let trial = Trial {
                attempt,
                trial: planned.trial,
                block,
                condition: group.condition.clone(),
                subject: planned.subject,
                baseline_copy: planned.baseline_copy,
                outcome,
            };
            let trial = self.append_trial(trial)?;
            self.retries.add(&trial);
            (self.emit)(RunEvent::TrialEnds {
                trial: Box::new(trial),
            });
        }
        for (trial, files) in result.found.logs {
            folder::write_logs(options.folder, trial, &files);
        }
        for text in result.found.warnings {
            self.warn(text)?;
        }
        if let Some(testbed) = self
            .testbed
            .as_mut()
            .filter(|_| !self.stop.load(Ordering::Relaxed))
        {
            self.inventory.add(
                &group.condition,
                &configurations,
                &placement,
                testbed,
                &self.driver_versions,
            )?;
        }
        (self.emit)(RunEvent::GroupEnds);
        if result.agent_lost && !self.is_stopped() {
            self.reopen_hosts()?;
        }
        Ok(())
    }

    /// Decides what follows a group: a retry, the next group, or the end if all is settled.
    pub(crate) fn plan_next(&mut self, block: u32, group: &Group) -> Result<(), RunError> {
        if self.is_stopped() {
            return Ok(());
        }
        self.deadline.attempt_ends(&group.condition);
        let design = &self.options.experiment.design;
        let blocks = design.blocks;
        let retry = self.retries.retry(block, group, design.retries);
        // Asked only for a retry, as it counts those for which there is no time.
        let retry = retry.filter(|_| self.deadline.allows_retry(group, &self.queue));
        if let Some((reasons, left)) = retry {
            (self.emit)(RunEvent::Retry { reasons, left });
            self.queue.push_front((block, group.clone()));
        } else {
            self.leave_out(block, group)?;
        }
        let block_ends = self.queue.front().is_some_and(|(next, _)| *next != block);
        if block_ends && !self.next_has_failed_before() && self.retries.is_settled() {
            (self.emit)(RunEvent::Settled { block, blocks });
            self.queue.clear();
        } else if block_ends && let Some(why) = self.deadline.next_block(&self.queue, blocks) {
            self.queue.clear();
            self.warn(why)?;
        } else if block_ends && let Some(outlook) = self.retries.outlook() {
            // Not recorded: the result says what the noise floor was in the end.
            (self.emit)(RunEvent::Outlook(Box::new(outlook)));
        }
        let left_out = self.deadline.left_out().filter(|_| self.queue.is_empty());
        left_out.map_or(Ok(()), |text| self.warn(text))
    }

    /// Leaves subjects that have never worked out of the blocks that follow, and a condition in
    /// which nothing is left to compare.
    fn leave_out(&mut self, block: u32, group: &Group) -> Result<(), RunError> {
        let (condition, baseline) = (&group.condition, &self.options.experiment.design.baseline);
        let never = |planned: &&PlannedTrial| {
            let why = self.retries.never_worked(block, condition, planned);
            why.map(|why| (planned.subject.clone(), planned.baseline_copy, why))
        };
        let never: Vec<(String, bool, String)> =
            group.trials.iter().filter_map(|one| never(&one)).collect();
        let is_left_out = |one: &PlannedTrial| {
            let is_of = |(subject, copy, _): &(String, bool, String)| {
                *subject == one.subject && *copy == one.baseline_copy
            };
            never.iter().any(is_of)
        };
        let names = |left: bool| {
            let trials = group.trials.iter();
            let trials = trials.filter(|one| !one.baseline_copy && is_left_out(one) != left);
            trials.map(|one| one.subject.clone()).collect::<Vec<_>>()
        };
        let (left, gone) = (names(true), names(false));
        if never.is_empty() {
            return Ok(());
        }
        for subject in &gone {
            self.left_out.push((condition.clone(), subject.clone()));
        }
        let is_left = left.contains(baseline) && left.len() > 1
            || (left.contains(baseline) && gone.is_empty());
        let mut affected = 0;
        for (_, later) in &mut self.queue {
            if later.condition == *condition {
                affected += 1;
                later.trials.retain(|one| is_left && !is_left_out(one));
            }
        }
        self.queue.retain(|(_, later)| !later.trials.is_empty());
        if affected == 0 {
            return Ok(());
        }
        let at: Vec<String> = condition.iter().map(|(k, v)| format!(" {k}={v}")).collect();
        let at = at.concat();
        if !is_left {
            self.nothing_left = true;
            let gone = gone.join("`, `");
            let ends = match self.queue.is_empty() {
                true => "the run ends".to_owned(),
                false => format!("the blocks that follow leave out{at}"),
            };
            return self.warn(format!(
                "{ends} after block {block}, since nothing is left to compare: `{gone}` never worked"
            ));
        }
        for (subject, is_copy, why) in &never {
            let what = match is_copy {
                true => "the second copy of",
                false => "subject",
            };
            self.warn(format!(
                "{what} `{subject}`{at} is left out of the blocks that follow, since {why}"
            ))?;
        }
        Ok(())
    }

    /// Searches for each subject's bottleneck, after the last block.
    pub(crate) fn find_bottlenecks(&mut self) -> Result<(), RunError> {
        let experiment = self.options.experiment;
        if !experiment.design.bottleneck {
            return Ok(());
        }
        let mut searches = experiment.engine_subjects();
        searches.retain(|one| !self.earlier_results.bottlenecks.contains(one));
        searches.retain(|one| !self.left_out.contains(one));
        if self.nothing_left {
            searches.clear();
        }
        for (number, (condition, subject)) in searches.iter().enumerate() {
            if self.is_stopped() {
                break;
            }
            if !self.deadline.allows(SEARCH) {
                let left = searches.len() - number;
                self.warn(format!(
                    "the time limit was reached before {left} of {} searches for a bottleneck",
                    searches.len()
                ))?;
                break;
            }
            (self.emit)(RunEvent::BottleneckBegins {
                condition: condition.clone(),
                subject: subject.clone(),
                left: searches.len() - number,
            });
            let load = experiment.under(condition).load;
            let placement = self.placements.from(load.host.as_ref()).clone();
            let seed = self.seed ^ (1 << 60) ^ (number as u64);
            let found = self.with_context(0, seed, &placement, |cx| {
                bottleneck::search(cx, condition, subject)
            });
            match found {
                Ok(Some(reading)) => {
                    self.append(&JournalRow::Bottleneck(Box::new(reading)))?;
                }
                Ok(None) => {}
                Err(_) => self.reopen_hosts()?,
            }
        }
        Ok(())
    }

    /// Profiles the servers of each subject under each condition, and draws what they show.
    pub(crate) fn profile(&mut self) -> Result<(), RunError> {
        let Some(call_graph) = self.options.profile else {
            return Ok(());
        };
        if !self.testbed.as_ref().is_some_and(|it| it.hosts.are_here()) {
            return self.warn("no profiles: servers on other machines are not profiled".to_owned());
        }
        let experiment = self.options.experiment;
        let mut subjects = experiment.engine_subjects();
        if subjects.is_empty() {
            let text = "no profiles: profiling needs a single load, made by the built-in engine";
            return self.warn(text.to_owned());
        }
        subjects.retain(|one| !self.left_out.contains(one));
        let mut profiles = profile::Profiles::new(experiment);
        for (number, (condition, subject)) in subjects.iter().enumerate() {
            if self.is_stopped() || !self.deadline.allows(profile::TIME) {
                break;
            }
            let load = experiment.under(condition).load;
            let placement = self.placements.from(load.host.as_ref()).clone();
            let seed = self.seed ^ (1 << 61) ^ (number as u64);
            let found = self.with_context(0, seed, &placement, |cx| {
                profile::measure(cx, condition, subject, call_graph)
            });
            match found {
                Ok(found) => profiles.add(condition, subject, found),
                Err(AgentError::Failed(why)) => profiles.fail(subject, why),
                Err(AgentError::Lost(_)) => self.reopen_hosts()?,
            }
        }
        for text in profiles.write(&self.options.folder.join(profile::FOLDER)) {
            self.warn(text)?;
        }
        Ok(())
    }

    /// Closes the hosts and ends the journal. Returns whether the run was completed: it was neither
    /// stopped, nor was nothing left to compare.
    pub(crate) fn finish(mut self) -> Result<bool, RunError> {
        let faults = self.testbed.as_mut().map(|it| it.hosts.link_faults());
        for text in faults.unwrap_or_default() {
            self.warn(text)?;
        }
        let unconfirmed = self.testbed.as_mut().map(|it| it.hosts.close());
        for text in unconfirmed.unwrap_or_default() {
            self.warn(text)?;
        }
        self.testbed = None;
        let complete = !self.is_stopped() && !self.nothing_left;
        self.journal.append(&JournalRow::End { complete })?;
        Ok(complete)
    }
}
