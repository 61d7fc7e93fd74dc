//! What the parts of a run share while they measure.

pub(crate) mod loads;
pub(crate) mod orders;
pub(crate) mod segments;
mod slice_times;
mod traffic;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::AddressSelection;
use readings::{Condition, CurveChoice, FailureCause, Journal};
use serde_json::Value;

use crate::fleet::timing::NeededTimes;
use crate::testbed::Testbed;
use crate::testbed::authority::RunAuthority;
use crate::testbed::chosen_addresses::{ChosenAddresses, Unresolved};
use crate::{CpuPlacement, RunEvent, RunOptions};
use experiment::within::Windows;
use experiment::{Experiment, HttpVersion, ResolvedCondition, SubjectSpec, Target};

pub(crate) struct Context<'a> {
    pub(crate) options: &'a RunOptions<'a>,
    pub(crate) placement: &'a CpuPlacement,
    pub(crate) testbed: &'a mut Testbed,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) seed: u64,
    pub(crate) block: u32,
    pub(crate) emit: &'a mut dyn FnMut(RunEvent),
    /// Configuration of each started server, for `hosts.json`.
    pub(crate) configurations: BTreeMap<String, Value>,
    pub(crate) driver_versions: &'a BTreeMap<String, Option<String>>,
    /// The measured times of a trial: those of the design, or shorter ones that fit into the time.
    pub(crate) windows: Windows,
    /// The most that the warm-up may become by itself.
    pub(crate) warmup_max: Duration,
    /// Time spent on what only a condition's first block needs.
    pub(crate) once: Duration,
    /// Time spent on starting servers.
    pub(crate) starting: Duration,
    /// The rates of the condition's curve, once they are chosen.
    pub(crate) curve: Option<CurveChoice>,
    /// What loads that begin at the same time needed so far.
    pub(crate) needed: NeededTimes,
    pub(crate) learned: &'a mut Learned,
    pub(crate) authority: &'a RunAuthority,
    pub(crate) chosen_addresses: &'a mut ChosenAddresses,
}

/// What groups have shown that matters for later ones.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// Conditions whose subjects are measured one after the other, and why.
    pub(crate) one_by_one: BTreeMap<Condition, String>,
    /// Conditions whose idle servers were sampled.
    pub(crate) sampled: BTreeSet<Condition>,
    /// The warm-ups of conditions that were measured.
    pub(crate) warm_ups: BTreeMap<Condition, WarmUp>,
    /// Conditions in which the baseline's second copy has no servers of its own.
    pub(crate) without_copies: BTreeSet<Condition>,
    /// Servers that do not start, which was reported.
    pub(crate) not_started: BTreeSet<String>,
    /// Loads so far.
    loads: Cell<u64>,
}

/// Between the first numbers of two loads: none has so many requests, and no feed so many rows that
/// loads would begin with the same ones.
const NUMBERS_APART: u64 = 1_618_033_989;
/// A trial has fewer loads than this.
const LOADS_OF_A_TRIAL: u64 = 1_000;

impl Learned {
    /// What an earlier part of the run has shown.
    pub(crate) fn of(journal: Option<&Journal>, experiment: &Experiment) -> Self {
        let choices = journal.into_iter().flat_map(Journal::warm_ups);
        let subjects = experiment.subjects.iter().map(|one| one.name.clone());
        let subjects: BTreeSet<String> = subjects.collect();
        let known = choices.map(|choice| {
            let length = Duration::try_from_secs_f64(choice.warmup_s).unwrap_or_default();
            let checked = subjects.clone();
            (choice.condition.clone(), WarmUp { length, checked })
        });
        let trials = journal.map_or(0, |journal| journal.trials().count() as u64);
        Self {
            warm_ups: known.collect(),
            loads: Cell::new(trials * LOADS_OF_A_TRIAL),
            ..Self::default()
        }
    }

    /// The number of the next load's first request. Each load sends others than those before it, and
    /// the same to all of its subjects.
    pub(crate) fn next_numbers(&self) -> u64 {
        let loads = self.loads.get();
        self.loads.set(loads + 1);
        loads.wrapping_mul(NUMBERS_APART)
    }
}

/// How servers are warmed up under a condition.
#[derive(Debug, Default)]
pub(crate) struct WarmUp {
    /// Load before measuring, per subject and block.
    pub(crate) length: Duration,
    /// Subjects of which it is known whether they are warm after the declared warm-up.
    pub(crate) checked: BTreeSet<String>,
}

impl Context<'_> {
    pub(crate) fn phase(&mut self, what: &str) {
        (self.emit)(RunEvent::Phase { what: what.into() });
    }

    /// Tells whoever watches the run.
    pub(crate) fn note(&mut self, text: String) {
        (self.emit)(RunEvent::Note { text });
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The address of a subject, as seen from the host `from`.
    pub(crate) fn resolve(
        &mut self,
        from: Option<&str>,
        subject: &SubjectSpec,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Result<SocketAddr, Unresolved> {
        let experiment = self.options.experiment;
        match &subject.target {
            Target::Server(name) => self
                .testbed
                .address_of(experiment, from, name, addresses)
                .ok_or_else(|| Unresolved {
                    reason: format!("server `{name}` is not running"),
                    cause: FailureCause::Other,
                }),
            Target::Address(text) => {
                let is_here = !experiment.hosts_are_apart() && !experiment.hosts_are_machines();
                let selection = match (subject.http, is_here) {
                    (HttpVersion::Http3, _) => AddressSelection::FirstForQuic,
                    (_, true) => AddressSelection::FirstAccepting,
                    (_, false) => AddressSelection::FirstFromElsewhere,
                };
                self.chosen_addresses.resolve(text, selection)
            }
        }
    }

    /// The address of a subject as seen from each of the further hosts that make the load.
    pub(crate) fn resolve_elsewhere(
        &mut self,
        resolved: &ResolvedCondition,
        subject: &SubjectSpec,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Result<Vec<(String, SocketAddr)>, Unresolved> {
        let hosts = resolved.load.more_hosts.iter();
        let resolve = |host: &String| {
            let address = self.resolve(Some(host), subject, addresses)?;
            Ok((host.clone(), address))
        };
        hosts.map(resolve).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_have_numbers_of_their_own() {
        let learned = Learned::default();
        let firsts: Vec<u64> = (0..50).map(|_| learned.next_numbers()).collect();
        for rows in [1_000, 1_000_000] {
            let mut places: Vec<u64> = firsts.iter().map(|first| first % rows).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), firsts.len(), "of {rows} rows");
        }
        assert!(firsts.windows(2).all(|two| two[1] - two[0] > 1_000_000_000));
    }
}
