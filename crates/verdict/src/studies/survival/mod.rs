//! What becomes of connections that last when servers are reloaded, restarted or killed.

pub mod words;

#[cfg(test)]
mod tests;

use readings::{
    Condition, ConnectionsRow, EventReading, ExchangeEnd, Histogram, LastingReading, LoadReading,
};
use serde::{Serialize, Serializer};

use crate::trial::cells::{Cell, Cells};
use crate::trial::loops::Loop;

/// The connections of a subject around events, over all blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survival {
    pub condition: Condition,
    pub subject: String,
    pub blocks: usize,
    /// What happened in a block: `reload of proxy`; empty for a control.
    pub events: Vec<String>,
    pub connections: u64,
    pub cut: u64,
    /// How they were cut, the most frequent first: close codes, resets.
    pub ends: Vec<ExchangeEnd>,
    /// From the loss of a connection to its next one being open; written as quantiles, us.
    #[serde(serialize_with = "quantiles")]
    pub reconnect: Histogram,
    /// The most connections that were opened in a second from the first event on.
    pub storm_per_s: f64,
    /// Messages sent, and those of them that failed.
    pub messages: u64,
    pub failed: u64,
    /// The most memory of the path's servers in a block, bytes: old workers included.
    pub memory_bytes_max: Option<u64>,
    pub processes_max: Option<u32>,
    /// Connections over time in the first block.
    pub over_time: Vec<ConnectionsRow>,
}

fn quantiles<S: Serializer>(times: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    times.quantiles().serialize(serializer)
}

/// What became of the connections of each subject: by condition, then by subject, as declared.
pub(crate) fn survivals(cells: &Cells<'_>) -> Vec<Survival> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        for subject in &cells.subjects {
            let trials = cells.judged(Loop::Open, condition, subject, false);
            let mut trials = trials.into_values().filter_map(parts).peekable();
            if trials.peek().is_none() {
                continue;
            }
            let mut one = Survival {
                condition: condition.clone(),
                subject: subject.clone(),
                blocks: 0,
                events: Vec::new(),
                connections: 0,
                cut: 0,
                ends: Vec::new(),
                reconnect: Histogram::new(),
                storm_per_s: 0.0,
                messages: 0,
                failed: 0,
                memory_bytes_max: None,
                processes_max: None,
                over_time: Vec::new(),
            };
            trials.for_each(|(cell, load, lasting)| one.add(cell, load, lasting));
            one.ends.sort_by_key(|end| std::cmp::Reverse(end.count));
            found.push(one);
        }
    }
    found
}

/// A trial of connections that last with events.
fn parts<'c, 'a>(
    cell: &'c Cell<'a>,
) -> Option<(&'c Cell<'a>, &'a LoadReading, &'a LastingReading)> {
    cell.reading()?.events.as_ref()?;
    let load = cell.latency()?;
    Some((cell, load, load.lasting.as_deref()?))
}

impl Survival {
    fn add(&mut self, cell: &Cell<'_>, load: &LoadReading, lasting: &LastingReading) {
        self.blocks += 1;
        self.connections = self.connections.max(load.connections);
        self.cut += lasting.cut();
        for end in lasting.ends.iter().filter(|end| end.is_cut) {
            readings::count_end(&mut self.ends, &end.how, true, end.count);
        }
        self.reconnect.merge(&lasting.reconnect);
        if self.over_time.is_empty() {
            self.over_time.clone_from(&lasting.connections);
        }
        let Some(reading) = cell.reading() else {
            return;
        };
        if let Some(noticed) = &reading.events {
            self.messages += noticed.requests;
            self.failed += noticed.failed;
            if self.events.is_empty() {
                self.events = noticed.events.iter().map(what).collect();
            }
            let from_s = noticed.events.first().map_or(0.0, |event| event.at_s);
            let storm = storm_per_s(&lasting.connections, from_s);
            self.storm_per_s = self.storm_per_s.max(storm);
        }
        if let Some(seen) = &reading.latency_probed {
            let servers = seen.servers.values();
            let bytes = servers.clone().map(|one| one.rss_bytes_max).sum();
            let processes = servers.map(|one| one.processes_max).sum();
            self.memory_bytes_max = self.memory_bytes_max.max(Some(bytes));
            self.processes_max = self.processes_max.max(Some(processes));
        }
    }
}

fn what(event: &EventReading) -> String {
    format!("{} of {}", event.what, event.target())
}

/// The most connections opened in any second that begins with a row, per second.
fn storm_per_s(rows: &[ConnectionsRow], from_s: f64) -> f64 {
    // Rows are shorter than a second; one of them may begin before the event.
    let length_s = match rows {
        [first, second, ..] => second.start_s - first.start_s,
        _ => return 0.0,
    };
    let per_second = (1.0 / length_s).round().max(1.0) as usize;
    let after = rows.partition_point(|row| row.start_s + length_s <= from_s);
    let after = &rows[after..];
    let sums = (0..after.len()).map(|at| {
        let second = &after[at..after.len().min(at + per_second)];
        second.iter().map(|row| row.opened).sum::<u64>() as f64
    });
    sums.fold(0.0, f64::max) / (per_second as f64 * length_s)
}
