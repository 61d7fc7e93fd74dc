//! A run from preparation to end.

mod agenda;
mod deadline;
mod machines;
mod records;
mod replan;
mod resume;
mod retries;
mod unusable;

pub use replan::{decides, smallest_decided};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use readings::{Condition, JournalRow, Trial};
use serde_json::Value;

use crate::context::{Context, Learned, loads, orders};
use crate::fleet::timing::NeededTimes;
use crate::group::result::GroupResult;
use crate::group::sequential::measure_group;
use crate::group::{bottleneck, profile};
use crate::journal::{JournalWriter, folder};
use crate::measure::tools;
use crate::session::agenda::Agenda;
use crate::session::machines::Machines;
use crate::session::records::Records;
use crate::session::resume::{EarlierResults, OpenedJournal};
use crate::testbed::Testbed;
use crate::testbed::cpu_placement::{AffinityGuard, LoadHostPlacements, check_ports};
use crate::{CpuPlacement, OpenHosts, RunError, RunEvent, RunOptions};
use agent::AgentError;
use experiment::SEARCH;
use experiment::plan::{Group, Plan};

pub(crate) struct Session<'a> {
    options: &'a RunOptions<'a>,
    stop: &'a AtomicBool,
    seed: u64,
    machines: Machines<'a>,
    agenda: Agenda<'a>,
    records: Records<'a>,
}

/// The result of a group, with its servers' configurations and its placement.
pub(crate) struct Measured {
    result: GroupResult,
    configurations: BTreeMap<String, Value>,
    placement: CpuPlacement,
    /// Time spent on what only a condition's first block needs, and on starting servers.
    once: Duration,
    starting: Duration,
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
        let results = EarlierResults::of(earlier.as_ref(), &plan);
        let learned = Learned::of(earlier.as_ref(), experiment);
        let mut session = Session {
            options,
            stop,
            seed: plan.seed,
            machines: Machines::new(open, options, plan.seed, placements, learned),
            agenda: Agenda::of(options, &plan, header, results),
            records: Records::new(options, journal, emit, earlier.as_ref()),
        };
        session.report_begin(&plan)?;
        if let Err(error) = session.machines.open_first() {
            if let Some(new_folder) = new_folder {
                options.builds.unrecord(options.folder);
                new_folder.remove(session.records.journal);
            }
            return Err(error);
        }
        session.write_notices(&plan)?;
        session.agenda.deadline.first_attempt_begins();
        Ok(session)
    }

    fn report_begin(&mut self, plan: &Plan) -> Result<(), RunError> {
        let queue = &self.agenda.queue;
        self.records.tell(RunEvent::Begins {
            trials: queue.iter().map(|(_, group)| group.trials.len()).sum(),
            groups: queue.len(),
            groups_per_block: plan.conditions.len(),
            blocks: self.options.experiment.design.blocks,
            estimated_s: plan.estimated.as_secs_f64() * queue.len() as f64
                / plan.groups().count().max(1) as f64,
            after_s: plan.searches.as_secs_f64(),
            folder: self.options.folder.to_path_buf(),
        })
    }

    /// Determines the drivers' versions, and writes warnings for the reader of the result.
    fn write_notices(&mut self, plan: &Plan) -> Result<(), RunError> {
        let options = self.options;
        let placements = &self.machines.placements;
        let mut notices = placements.first().warnings.clone();
        notices.extend(placements.warnings_beside(options.experiment));
        if !options.resume {
            let drivers = options.recipes.drivers_of(options.experiment).into_iter();
            notices.extend(drivers.filter_map(tools::clock_notice));
            notices.extend(loads::background_notice(options.experiment));
            notices.extend(orders::left_out_notice(options.experiment));
        }
        let first = plan.conditions.first();
        let load = first.map(|condition| options.experiment.under(condition).load);
        let from = load.and_then(|load| load.host);
        self.machines.find_driver_versions(from.as_deref());
        let testbed = self.machines.testbed.as_ref();
        notices.extend(testbed.map(|it| it.hosts.notices()).unwrap_or_default());
        self.warn_of(notices)
    }

    fn warn_of(&mut self, texts: impl IntoIterator<Item = String>) -> Result<(), RunError> {
        let mut texts = texts.into_iter();
        texts.try_for_each(|text| self.records.warn(text))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The next group; `None` at the end, and when the run was stopped.
    pub(crate) fn next_group(&mut self) -> Option<(u32, Group)> {
        if self.is_stopped() {
            return None;
        }
        let (block, group) = self.agenda.queue.pop_front()?;
        (self.records.emit)(RunEvent::GroupBegins {
            block,
            blocks: self.agenda.blocks(),
            condition: group.condition.clone(),
            left: self.agenda.queue.len() + 1,
        });
        Some((block, group))
    }

    pub(crate) fn measure(&mut self, block: u32, group: &Group) -> Measured {
        let condition = &group.condition;
        let seed = self.agenda.retries.seed(block, group);
        let load = self.options.experiment.under(condition).load;
        let placement = self
            .machines
            .placements
            .from(load.host.as_ref())
            .drawn(seed);
        let rate = self.agenda.rates.get(condition).copied();
        let curve = self.agenda.curves.get(condition).cloned();
        self.with_context(block, seed, &placement, |cx| {
            cx.curve = curve;
            let result = measure_group(cx, group, rate);
            Measured {
                result,
                configurations: std::mem::take(&mut cx.configurations),
                placement: placement.clone(),
                once: cx.once,
                starting: cx.starting,
            }
        })
    }

    fn with_context<T>(
        &mut self,
        block: u32,
        seed: u64,
        placement: &CpuPlacement,
        work: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let _guard = AffinityGuard::of(placement);
        let warmup_max = self.agenda.warmup_max();
        let machines = &mut self.machines;
        // Hosts that could not be reopened ended the run.
        let none = || Testbed::of(hosts::Hosts::of(Vec::new(), None));
        let mut cx = Context {
            options: self.options,
            placement,
            testbed: machines.testbed.get_or_insert_with(none),
            stop: self.stop,
            seed,
            block,
            emit: &mut *self.records.emit,
            configurations: BTreeMap::new(),
            driver_versions: &machines.driver_versions,
            windows: self.agenda.windows,
            warmup_max,
            once: Duration::ZERO,
            starting: Duration::ZERO,
            curve: None,
            needed: NeededTimes::default(),
            authority: &machines.authority,
            learned: &mut machines.learned,
            chosen_addresses: &mut machines.chosen_addresses,
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
            once,
            starting,
        } = measured;
        let (options, condition) = (self.options, &group.condition);
        let (agenda, records) = (&mut self.agenda, &mut self.records);
        let resolved = options.experiment.under(condition);
        records.append_servers(condition, &resolved, &configurations, &placement)?;
        if let Some(choice) = result.found.rate {
            agenda.rates.insert(condition.clone(), choice.rate_per_s);
            records.tell(RunEvent::RateChosen(choice.clone()))?;
            records.append(&JournalRow::Rate(choice))?;
        }
        if let Some(choice) = result.found.curve {
            agenda.curves.insert(condition.clone(), choice.clone());
            records.append(&JournalRow::Curve(choice))?;
        }
        if let Some(choice) = result.found.warm_up {
            records.tell(RunEvent::WarmUpChosen(choice.clone()))?;
            records.append(&JournalRow::WarmUp(choice))?;
        }
        agenda.slow.extend(result.found.slow);
        agenda.once = once;
        agenda.starting.insert(condition.clone(), starting);
        let attempt = agenda.retries.next_attempt(block, condition);
        agenda.retries.set_lasting(result.lasting);
        for (planned, outcome) in result.found.outcomes {
            let trial = records.append_trial(Trial {
                attempt,
                trial: planned.trial,
                block,
                condition: condition.clone(),
                subject: planned.subject,
                baseline_copy: planned.baseline_copy,
                outcome,
            })?;
            agenda.retries.add(&trial);
            let trial = Box::new(trial);
            records.tell(RunEvent::TrialEnds { trial })?;
        }
        for (trial, files) in result.found.logs {
            folder::write_logs(options.folder, trial, &files);
        }
        self.warn_of(result.found.warnings)?;
        let machines = &mut self.machines;
        if let Some(testbed) = &mut machines.testbed
            && !self.stop.load(Ordering::Relaxed)
        {
            self.records.inventory.add(
                condition,
                &configurations,
                &placement,
                testbed,
                &machines.driver_versions,
            )?;
        }
        self.records.tell(RunEvent::GroupEnds)?;
        if result.agent_lost && !self.is_stopped() {
            self.machines.open()?;
        }
        Ok(())
    }

    /// Decides what follows a group: a retry, the next group, or the end if all is settled.
    pub(crate) fn plan_next(&mut self, block: u32, group: &Group) -> Result<(), RunError> {
        if self.is_stopped() {
            return Ok(());
        }
        let events = self.agenda.group_ends(block, group);
        let mut events = events.into_iter();
        events.try_for_each(|event| self.records.tell(event))
    }

    /// Searches for each subject's bottleneck, after the last block.
    pub(crate) fn find_bottlenecks(&mut self) -> Result<(), RunError> {
        let experiment = self.options.experiment;
        if !experiment.design.bottleneck {
            return Ok(());
        }
        let searches = self.agenda.to_search();
        for (number, (condition, subject)) in searches.iter().enumerate() {
            if self.is_stopped() {
                break;
            }
            if !self.agenda.deadline.allows(SEARCH) {
                let left = searches.len() - number;
                self.records.warn(format!(
                    "the time budget was used up before {left} of {} searches for a bottleneck",
                    searches.len()
                ))?;
                break;
            }
            self.records.tell(RunEvent::BottleneckBegins {
                condition: condition.clone(),
                subject: subject.clone(),
                left: searches.len() - number,
            })?;
            let seed = self.seed ^ (1 << 60) ^ (number as u64);
            let found = self.with_subject(seed, condition, |cx| {
                bottleneck::search(cx, condition, subject)
            });
            match found {
                Ok(Some(reading)) => {
                    let row = JournalRow::Bottleneck(Box::new(reading));
                    self.records.append(&row)?;
                }
                Ok(None) => {}
                Err(_) => drop(self.machines.open()?),
            }
        }
        Ok(())
    }

    /// Profiles the servers of each subject under each condition, and draws what they show.
    pub(crate) fn profile(&mut self) -> Result<(), RunError> {
        let Some(call_graph) = self.options.profile else {
            return Ok(());
        };
        let testbed = self.machines.testbed.as_ref();
        if !testbed.is_some_and(|it| it.hosts.are_here()) {
            let text = "no profiles: servers on other machines are not profiled";
            return self.records.warn(text.to_owned());
        }
        let experiment = self.options.experiment;
        if experiment.engine_subjects().is_empty() {
            let text = "no profiles: profiling needs a single load, made by the built-in engine";
            return self.records.warn(text.to_owned());
        }
        let subjects = self.agenda.with_engine();
        let mut profiles = profile::Profiles::new(experiment);
        for (number, (condition, subject)) in subjects.iter().enumerate() {
            if self.is_stopped() || !self.agenda.deadline.allows(profile::TIME) {
                break;
            }
            let seed = self.seed ^ (1 << 61) ^ (number as u64);
            let found = self.with_subject(seed, condition, |cx| {
                profile::measure(cx, condition, subject, call_graph)
            });
            match found {
                Ok(found) => profiles.add(condition, subject, found),
                Err(AgentError::Failed(why)) => profiles.fail(subject, why),
                Err(AgentError::Lost(_)) => drop(self.machines.open()?),
            }
        }
        self.warn_of(profiles.write(&self.options.folder.join(profile::FOLDER)))
    }

    /// Work on one subject, after the last block.
    fn with_subject<T>(
        &mut self,
        seed: u64,
        condition: &Condition,
        work: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let load = self.options.experiment.under(condition).load;
        let placement = self.machines.placements.from(load.host.as_ref()).clone();
        self.with_context(0, seed, &placement, work)
    }

    /// Closes the hosts and ends the journal. Returns whether the run was completed: it was neither
    /// stopped, nor was nothing left to compare.
    pub(crate) fn finish(mut self) -> Result<bool, RunError> {
        if let Some(mut testbed) = self.machines.testbed.take() {
            self.warn_of(testbed.hosts.link_faults())?;
            self.warn_of(testbed.hosts.close())?;
        }
        let complete = !self.is_stopped() && !self.agenda.nothing_left;
        self.records.journal.append(&JournalRow::End { complete })?;
        Ok(complete)
    }
}
