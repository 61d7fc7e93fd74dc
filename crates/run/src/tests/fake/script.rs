//! What a fake agent does, and what has happened on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use agent::wire::{Answer, LoadOrder, Order};
use readings::InstructionScope;

use super::time::now_ns;

/// The behaviour of a test's agents, and a log of their orders.
pub(crate) struct Script {
    /// The orders, such as `start a`, in order of arrival.
    pub(crate) log: Vec<String>,
    /// The requests by which subjects were asked whether they answer.
    pub(crate) asked: Vec<String>,
    /// Number of readiness checks that fail first, by server or `subject NAME`.
    pub(crate) not_ready: BTreeMap<String, usize>,
    /// How long servers take to be ready where that is asked without waiting.
    pub(crate) ready_after: Duration,
    /// How long servers take to end after their first signal.
    pub(crate) ends_after: Duration,
    /// What subjects answer in turn, by their server; the last text for ever.
    pub(crate) answers: BTreeMap<String, Vec<&'static str>>,
    /// Servers that cannot be started.
    pub(crate) broken: BTreeSet<String>,
    pub(crate) loads: usize,
    /// The load, counted from 1, during which the agent dies.
    pub(crate) dies_in_load: Option<usize>,
    /// The load that fails after its events have begun.
    pub(crate) fails_in_load: Option<usize>,
    /// How long a start takes in a block.
    pub(crate) start_takes: fn(u32) -> Duration,
    /// Servers that end in each load on them.
    pub(crate) ends_in_loads: BTreeSet<String>,
    /// The load after which servers of the path `/cold` are nearly warm, since they were started, s.
    pub(crate) warm_after_s: f64,
    /// The load that they had.
    pub(super) had_s: f64,
    pub(crate) fails: Box<dyn FnMut(&LoadOrder) -> bool + Send>,
    /// How late a load begins, ns.
    pub(crate) late_ns: Box<dyn FnMut(&LoadOrder) -> u64 + Send>,
    /// The orders of all loads so far.
    pub(crate) orders: Vec<LoadOrder>,
    /// Idle CPU shares of servers.
    pub(crate) idle_cpus: BTreeMap<String, f64>,
    pub(crate) samples_without_load: usize,
    pub(crate) rate_per_s: fn(&LoadOrder) -> f64,
    /// The time of an answer in the load with this number, on this target, us; 0 is not recorded.
    pub(crate) answer_us: fn(usize, &load::Target) -> u64,
    /// The block that is measured.
    pub(crate) block: u32,
    /// Whether all answers are wrong in a block's load, counted from 1 over all blocks.
    pub(crate) answers_wrongly: fn(u32, usize) -> bool,
    /// Whether open loops carry half of what they are offered.
    pub(crate) is_overloaded: bool,
    /// CPU time of the client in each load, s.
    pub(crate) client_cpu_s: f64,
    /// How long an agent takes until it begins to carry out an order of an event.
    pub(crate) order_delay: fn(&Order) -> Duration,
    /// Whether suspended servers cannot be resumed.
    pub(crate) resume_fails: bool,
    /// The check, counted from 1, at which a reload is in effect.
    pub(crate) in_effect_at_check: usize,
    /// How far the clocks of hosts that are machines are ahead, ns.
    pub(crate) ahead_ns: BTreeMap<String, i64>,
    /// Whether CPU time cannot be limited.
    pub(crate) quota_fails: bool,
    /// Whether links between machines cannot be changed.
    pub(crate) links_fail: bool,
    /// Factor on the rate of loads while the CPU time of a server is limited by itself.
    pub(crate) limited_rate: f64,
    /// What a host counts, by its name.
    pub(crate) instruction_scope: fn(&str) -> Option<InstructionScope>,
    /// What each server retires in a load in which instructions are counted.
    pub(crate) instructions: BTreeMap<String, u64>,
    /// Whether counters cannot be opened.
    pub(crate) counting_fails: bool,
    /// The servers on which each host has counters.
    pub(super) counting: BTreeMap<String, Vec<String>>,
    pub(super) limited: BTreeSet<String>,
    pub(super) reload_checks: usize,
    /// The request that the latest check of a reload was to make.
    pub(crate) reload_asked: String,
    /// When servers were started or sent a signal last, ns.
    pub(super) changed: BTreeMap<String, i64>,
    /// Servers that were sent the first signal.
    pub(super) stopping: BTreeSet<String>,
    pub(super) running: BTreeSet<String>,
    /// Where servers were started last.
    pub(super) hosts: BTreeMap<String, String>,
    /// Hosts that sample their servers, and whether they sample scheduling.
    pub(super) sampling: BTreeMap<String, bool>,
    pub(super) is_dead: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            log: Vec::new(),
            asked: Vec::new(),
            not_ready: BTreeMap::new(),
            ready_after: Duration::ZERO,
            ends_after: Duration::ZERO,
            answers: BTreeMap::new(),
            broken: BTreeSet::new(),
            loads: 0,
            dies_in_load: None,
            fails_in_load: None,
            start_takes: |_| Duration::ZERO,
            ends_in_loads: BTreeSet::new(),
            warm_after_s: 0.0,
            had_s: 0.0,
            fails: Box::new(|_| false),
            late_ns: Box::new(|_| 0),
            orders: Vec::new(),
            idle_cpus: BTreeMap::new(),
            samples_without_load: 0,
            rate_per_s: |_| 10_000.0,
            answer_us: |_, _| 0,
            block: 0,
            answers_wrongly: |_, _| false,
            is_overloaded: false,
            client_cpu_s: 0.0,
            order_delay: |_| Duration::ZERO,
            resume_fails: false,
            in_effect_at_check: 1,
            ahead_ns: BTreeMap::new(),
            quota_fails: false,
            links_fail: false,
            limited_rate: 1.0,
            instruction_scope: |_| None,
            instructions: BTreeMap::new(),
            counting_fails: false,
            counting: BTreeMap::new(),
            limited: BTreeSet::new(),
            reload_checks: 0,
            reload_asked: String::new(),
            changed: BTreeMap::new(),
            stopping: BTreeSet::new(),
            running: BTreeSet::new(),
            hosts: BTreeMap::new(),
            sampling: BTreeMap::new(),
            is_dead: false,
        }
    }
}

/// A script that the hosts and agents of a test share.
#[derive(Clone, Default)]
pub(crate) struct SharedScript(Arc<Mutex<Script>>);

impl SharedScript {
    pub(crate) fn borrow(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    pub(crate) fn borrow_mut(&self) -> MutexGuard<'_, Script> {
        self.borrow()
    }
}

impl Script {
    /// What a server is slower at the moment, in a load of so many seconds.
    pub(super) fn speed(&mut self, target: &load::Target, load_s: f64) -> f64 {
        if self.warm_after_s <= 0.0 || !target.requests[0].bytes.starts_with(b"GET /cold ") {
            return 1.0;
        }
        self.had_s += load_s;
        1.0 - 0.5 * (-3.0 * self.had_s / self.warm_after_s).exp()
    }

    /// Whether that long has passed since a server was started or sent a signal.
    pub(super) fn observed(&self, server: &str, after: Duration) -> Answer {
        let since = self.changed.get(server);
        observed_now(since.is_some_and(|since| now_ns() - since >= after.as_nanos() as i64))
    }

    /// Whether a server is stopped, which takes [`Script::ends_after`].
    pub(super) fn poll_stop(&mut self, server: &str) -> Answer {
        if !self.running.contains(server) {
            return observed_now(true);
        }
        if self.stopping.insert(server.to_owned()) {
            self.changed.insert(server.to_owned(), now_ns());
        }
        let answer = self.observed(server, self.ends_after);
        if answer != observed_now(false) {
            self.stopped(server);
        }
        answer
    }

    pub(super) fn stopped(&mut self, server: &str) {
        self.log.push(format!("stop {server}"));
        self.running.remove(server);
        self.stopping.remove(server);
    }
}

pub(super) fn observed_now(is_so: bool) -> Answer {
    Answer::Observed {
        at_ns: is_so.then(now_ns),
    }
}
