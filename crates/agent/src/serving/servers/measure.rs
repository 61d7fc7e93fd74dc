//! What servers use: where that is read, and samples and counters of it.

use std::collections::{BTreeMap, BTreeSet};

use net::os::StartThreadError;
use readings::{BottleneckSample, InstructionScope};

use super::Servers;
use crate::kernel::proc_files::tree;
use crate::protocol::wire::{IdleTimes, Measured, OtherServer, Spans};
use crate::sampling::instructions::Counting;
use crate::sampling::sampler::Sampler;
use crate::sampling::server::watched::{Watched, WatchedServers};
use crate::sampling::system_counters::SystemSources;

impl Servers {
    /// Where own servers are read, and those of other agents on this machine.
    pub(crate) fn all_watched(&self, own: &[String], others: &[OtherServer]) -> WatchedServers {
        let own = own
            .iter()
            .map(|server| (server.clone(), self.watched(server)));
        let others = others
            .iter()
            .map(|other| (other.server.clone(), Watched::of_another(other)));
        own.chain(others).collect()
    }

    pub(crate) fn watched(&self, server: &str) -> Watched {
        let watched = match self.running.get(server) {
            None => Watched::processes(Vec::new()),
            Some(one) => match &one.group {
                Some(group) => Watched::of_group(group),
                None => Watched::processes(tree(one.pid())),
            },
        };
        watched.with_counts(self.counts_of(server).as_deref())
    }

    /// CPU time of a server since it was started, s.
    pub(crate) fn cpu_s(&self, server: &str) -> Result<f64, String> {
        match self.running.contains_key(server) {
            true => Ok(self.watched(server).cpu_s()),
            false => Err(format!("`{server}` does not run")),
        }
    }

    /// Starts sampling servers: these, or all.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start_sampling(
        &mut self,
        of: Option<&BTreeSet<String>>,
        scheduling: bool,
    ) -> Result<(), StartThreadError> {
        let running = self.running.iter();
        let sampled = running.filter(|(name, _)| of.is_none_or(|of| of.contains(*name)));
        let servers: Vec<OtherServer> = sampled
            .map(|(name, one)| OtherServer {
                server: name.clone(),
                pid: one.pid(),
                also: Vec::new(),
                group: self.group_of(name),
                counts: self.counts_of(name),
            })
            .collect();
        let watched = self.all_watched(&[], &servers);
        let system = SystemSources::remote(&servers);
        self.sampler = Some(Sampler::always(watched, system, scheduling)?);
        Ok(())
    }

    /// Stops sampling; returns what was measured in each reading, and scheduling in the last
    /// window, if that was sampled.
    pub(crate) fn stop_sampling(
        &mut self,
        readings: Vec<Spans>,
    ) -> (Vec<Measured>, Option<BottleneckSample>) {
        let timeline = self.sampler.take().map(Sampler::end).unwrap_or_default();
        let ends = readings.iter().filter_map(|spans| spans.windows.last());
        let last = ends.max_by_key(|window| window.to_ns);
        let seen = last.and_then(|window| timeline.bottleneck_in(*window));
        let measured = readings.into_iter().map(|spans| timeline.cut(spans));
        (measured.collect(), seen)
    }

    /// Opens counters of instructions, in place of earlier ones.
    ///
    /// # Errors
    /// As [`Counting::start`].
    pub(crate) fn start_counting(
        &mut self,
        own: &[String],
        others: &[OtherServer],
        scope: InstructionScope,
    ) -> Result<(), String> {
        self.counting = None;
        let watched = self.all_watched(own, others);
        self.counting = Some(Counting::start(&watched, scope)?);
        Ok(())
    }

    /// Closes them; returns the instructions of each server in each load.
    pub(crate) fn stop_counting(&mut self, loads: &[IdleTimes]) -> Vec<BTreeMap<String, u64>> {
        match self.counting.take() {
            Some(counting) => counting.end(loads),
            None => vec![BTreeMap::new(); loads.len()],
        }
    }
}
