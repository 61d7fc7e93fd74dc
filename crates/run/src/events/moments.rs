//! When events happen, and orders that agents carry out at given moments. All times are by this
//! process's CLOCK_MONOTONIC, ns; each agent's clock is converted by its measured offset.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::time::{now_ns, sleep};
use crate::testbed::{Testbed, unexpected};
use agent::wire::{Answer, Order};
use agent::{AgentError, AgentHandle, Clock};

/// Interval at which the schedule is checked for due events.
pub(super) const TICK: Duration = Duration::from_millis(5);
/// Round trips to an agent that the lead of an order allows for: samples of a server that precede
/// the order, and the order itself.
const ROUND_TRIPS: u64 = 3;
/// What a byte of a file takes at most until the agent has it, ns: configurations with 10,000 routes are
/// megabytes.
const NS_PER_BYTE: u64 = 100;
/// The longest lead of an order.
const LEAD_MAX: Duration = Duration::from_secs(1);
/// As early as possible.
pub(super) const AT_ONCE: i64 = i64::MIN;

/// When something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) began_ns: i64,
    pub(super) ended_ns: i64,
}

/// The clocks of the agents that load and events need.
pub(super) struct AgentClocks {
    load_ahead_ns: i64,
    /// By the keys of hosts.
    hosts: BTreeMap<String, Clock>,
}

/// Does something here at a moment.
pub(super) fn here_at(
    at_ns: i64,
    work: impl FnOnce() -> Result<(), AgentError>,
) -> Result<Moment, AgentError> {
    let left_ns = at_ns.saturating_sub(now_ns());
    sleep(Duration::from_nanos(left_ns.try_into().unwrap_or(0)));
    let began_ns = now_ns();
    work()?;
    Ok(Moment {
        began_ns,
        ended_ns: now_ns(),
    })
}

impl AgentClocks {
    /// Measures the clocks of the load's agent and of those hosts.
    ///
    /// # Errors
    /// When an agent is lost.
    pub(super) fn measure<'h>(
        testbed: &mut Testbed,
        loader: &mut dyn AgentHandle,
        hosts: impl IntoIterator<Item = Option<&'h str>>,
    ) -> Result<Self, AgentError> {
        let mut clocks = Self {
            load_ahead_ns: loader.clock()?.monotonic_ahead_ns,
            hosts: BTreeMap::new(),
        };
        for host in hosts {
            let key = testbed.hosts.key(host);
            if let Entry::Vacant(vacant) = clocks.hosts.entry(key) {
                vacant.insert(testbed.agent(host)?.clock()?);
            }
        }
        Ok(clocks)
    }

    /// Converts a time that the load's agent has reported.
    pub(super) fn of_load(&self, at_ns: i64) -> i64 {
        at_ns - self.load_ahead_ns
    }
}

/// What events are carried out with.
pub(super) struct Means<'m> {
    pub(super) testbed: &'m mut Testbed,
    pub(super) clocks: &'m AgentClocks,
    pub(super) stop: &'m AtomicBool,
}

impl Means<'_> {
    fn clock_of(&self, host: Option<&str>) -> Clock {
        let clock = self.clocks.hosts.get(&self.testbed.hosts.key(host));
        clock.copied().unwrap_or_default()
    }

    /// How long before its moment an order to a host is given, with files of so many bytes.
    pub(super) fn lead_ns(&self, host: Option<&str>, bytes: usize) -> i64 {
        let round_trip_ns = self.clock_of(host).round_trip_ns.unsigned_abs();
        let sending_ns = bytes as u64 * NS_PER_BYTE;
        let lead = TICK + Duration::from_nanos(ROUND_TRIPS * round_trip_ns + sending_ns);
        lead.min(LEAD_MAX).as_nanos() as i64
    }

    /// Has a host's agent carry an order out at a moment. Returns when it did, and its answer.
    pub(super) fn ask(
        &mut self,
        host: Option<&str>,
        order: Order,
        at_ns: i64,
    ) -> Result<(Moment, Answer), AgentError> {
        let ahead_ns = self.clock_of(host).monotonic_ahead_ns;
        let order = Order::Timed {
            at_ns: at_ns.saturating_add(ahead_ns),
            of: Box::new(order),
        };
        match self.testbed.agent(host)?.ask(&order)? {
            Answer::Timed {
                began_ns,
                ended_ns,
                of,
            } => {
                let moment = Moment {
                    began_ns: began_ns - ahead_ns,
                    ended_ns: ended_ns - ahead_ns,
                };
                Ok((moment, *of))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// When a host's agent first observed the state that an order polls; `None`: not yet.
    pub(super) fn poll(
        &mut self,
        host: Option<&str>,
        order: &Order,
    ) -> Result<Option<i64>, AgentError> {
        let ahead_ns = self.clock_of(host).monotonic_ahead_ns;
        match self.testbed.agent(host)?.ask(order)? {
            Answer::Observed { at_ns } => Ok(at_ns.map(|at_ns| at_ns - ahead_ns)),
            other => Err(unexpected(&other)),
        }
    }
}
