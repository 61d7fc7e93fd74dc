//! What is compared: a row for each metric, and what follows from it.

pub(crate) mod words;

pub(crate) mod figures;
pub(crate) mod margin;
mod rows;

use readings::{GateMetric, InstructionScope};
use serde::{Serialize, Serializer};

pub(crate) use figures::Value;
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
        self.row().of == Of::Throughput
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
        self.row().of == Of::Events
    }

    /// Whether it is about the load generator and not about the servers.
    pub fn is_of_driver(self) -> bool {
        self.row().of == Of::Driver
    }

    /// Whether it is what the servers cost for what they did. A run does not go on for such a metric
    /// alone.
    pub fn is_cost(self) -> bool {
        matches!(self.row().of, Of::Servers | Of::Instructions(_))
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
                Unit::RequestsPerS => name.ends_with("_per_s"),
                Unit::Us | Unit::UsPerRequest => has("us"),
                Unit::InstructionsPerRequest => name.ends_with("_per_request"),
                Unit::Bytes => has("bytes"),
                Unit::Share => has("share"),
                Unit::S => name.ends_with("_s"),
            };
            assert!(is_told, "{name}");
        }
    }
}
