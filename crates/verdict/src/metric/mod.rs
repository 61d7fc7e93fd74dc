//! What is compared: a row for each metric, and what follows from it.

pub(crate) mod words;

pub(crate) mod figures;
pub(crate) mod of_trial;
pub(crate) mod quantile;
mod rows;

use readings::{EventsReading, GateMetric, InstructionScope, LoadReading, Reading};
use serde::{Serialize, Serializer};

use crate::trial::loops::Loop;
pub(crate) use figures::{EventTime, Value};
use rows::{Loops, Of};
pub use rows::{Metric, Unit};

impl Metric {
    /// The name in the JSON document.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The words in a sentence.
    pub fn words(self) -> &'static str {
        self.row().words
    }

    /// The unit of its values.
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// The head of its column in the table of figures, if it has one of its own there.
    pub fn column(self) -> Option<&'static str> {
        self.row().column
    }

    /// The place among the columns of the first screen, from 1.
    pub fn rank(self) -> u8 {
        self.row().rank
    }

    /// The word by which gates bound it.
    pub fn gate(self) -> Option<GateMetric> {
        self.row().gate
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self.row().of, Of::Throughput | Of::Reach)
    }

    /// Whether it is measured in a closed loop, which factors of the open loop do not change. The
    /// latency of outside drivers may be.
    pub(crate) fn is_of_closed_loop(self) -> bool {
        self.row().loops == Loops::Closed
    }

    /// Whether it is measured in the open loop.
    pub fn is_of_open_loop(self) -> bool {
        self.row().loops == Loops::Open
    }

    /// Which instructions it counts; nothing for other metrics.
    pub fn instructions(self) -> Option<InstructionScope> {
        match self.row().of {
            Of::Instructions(scope) => Some(scope),
            _ => None,
        }
    }

    /// The quantile of the latency, between 0 and 1; nothing for what is no latency.
    pub fn quantile(self) -> Option<f64> {
        match self.row().of {
            Of::Latency(quantile) => Some(quantile),
            _ => None,
        }
    }

    /// Whether it is measured around events.
    pub fn is_of_events(self) -> bool {
        matches!(
            self.row().of,
            Of::FailedShare | Of::FailuresPerEvent | Of::EventTime(_)
        )
    }

    /// Whether it is about the messages of streams.
    pub fn is_of_messages(self) -> bool {
        matches!(self.row().of, Of::Messages | Of::Reach) || self.unit() == Unit::MessagesPerS
    }

    /// Whether it is about the load generator and not about the servers.
    pub fn is_of_driver(self) -> bool {
        matches!(self.row().of, Of::Driver)
    }

    /// Whether it only is in a result where the run asks for it.
    pub fn is_on_demand(self) -> bool {
        matches!(
            self.row().of,
            Of::Start | Of::Reload | Of::AfterEvents | Of::Limit
        )
    }

    /// Whether it is in tables and growths only, and not compared: what is about reloads and limits.
    pub(crate) fn is_uncompared(self) -> bool {
        matches!(self.row().of, Of::Reload | Of::Limit)
    }

    /// Whether it is what the servers cost for what they did. A run does not go on for such a metric
    /// alone.
    pub fn is_cost(self) -> bool {
        matches!(
            self.row().of,
            Of::Servers | Of::Instructions(_) | Of::Start | Of::AfterEvents
        )
    }

    /// A figure of a trial that is no latency; `None` where it was not measured.
    pub(crate) fn figure(self, reading: &Reading, load: &LoadReading) -> Option<Value> {
        if self.is_of_events() {
            return figures::exact(self.figure_of_events(reading.events.as_ref()?)?);
        }
        // With events or outside clients of different kinds, the cost of servers says nothing.
        let is_apart = self.instructions().is_some() || matches!(self.row().of, Of::AfterEvents);
        if self.is_cost() && reading.events.is_some() && !is_apart {
            return None;
        }
        self.row().figure?(reading, load)
    }

    /// The same of what was noticed around events: never zero, so that it has a logarithm.
    pub(crate) fn figure_of_events(self, noticed: &EventsReading) -> Option<f64> {
        match self.row().of {
            Of::FailedShare => Some(figures::failed_share(noticed)),
            Of::FailuresPerEvent => Some(figures::failures_per_event(noticed)),
            Of::EventTime(time) => Some(time.of(noticed)?.max(time.step_s)),
            _ => None,
        }
    }

    /// How a time around events is taken; nothing for other metrics.
    pub(crate) fn event_time(self) -> Option<EventTime> {
        match self.row().of {
            Of::EventTime(time) => Some(time),
            _ => None,
        }
    }

    pub(crate) fn load_loop(self) -> Loop {
        match self.is_of_open_loop() {
            true => Loop::Open,
            false => Loop::Closed,
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_metrics_share_a_name_a_rank_or_a_gate() {
        for (at, one) in Metric::ALL.into_iter().enumerate() {
            for other in Metric::ALL.into_iter().skip(at + 1) {
                assert_ne!(one.name(), other.name());
                assert_ne!(one.words(), other.words());
                assert_ne!(one.rank(), other.rank(), "{}", other.name());
                assert!(one.gate().is_none() || one.gate() != other.gate());
            }
        }
    }

    #[test]
    fn the_name_of_a_metric_ends_in_its_unit_or_tells_it() {
        for metric in Metric::ALL {
            let name = metric.name();
            let has = |word: &str| name.split('_').any(|part| part == word);
            let is_told = match metric.unit() {
                Unit::RequestsPerS | Unit::MessagesPerS => name.ends_with("_per_s"),
                Unit::Us | Unit::UsPerRequest | Unit::UsPerMessage => has("us"),
                Unit::InstructionsPerRequest => name.ends_with("_per_request"),
                Unit::Bytes => has("bytes"),
                Unit::Share => has("share"),
                Unit::PerEvent => name.ends_with("_per_event"),
                Unit::S => name.ends_with("_s"),
            };
            assert!(is_told, "{name}");
        }
    }
}
