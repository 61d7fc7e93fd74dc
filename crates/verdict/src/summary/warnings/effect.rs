//! What a warning does to the reading of a result.

use serde::Serialize;

use crate::{Warning, WithoutPauses};

/// What a warning does to the reading of a result, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningEffect {
    /// A figure means something else than it seems to.
    ChangesAnswer,
    /// The answer holds, less sharply than it could.
    WidensInterval,
    /// Worth knowing; the reading stays the same.
    ForCompleteness,
}

/// From this share of requests on, failures change what a latency means; it leaves them out.
const FAILED_SHARE: f64 = 0.001;
/// From this share of connections on, lost SYNs change what a throughput means.
const LOST_SHARE: f64 = 0.01;
/// From this factor on, pauses of the client change what a p99 means.
const PAUSED_FACTOR: f64 = 1.5;

impl Warning {
    /// What it does to the reading.
    pub fn effect(&self) -> WarningEffect {
        match self {
            Warning::Errors {
                failed, requests, ..
            } => of_share(*failed, *requests, FAILED_SHARE),
            Warning::LostSyns {
                late, connections, ..
            } => of_share(*late, *connections, LOST_SHARE),
            Warning::ClientPauses { found, .. } => match outweigh(found) {
                true => WarningEffect::ChangesAnswer,
                false => WarningEffect::ForCompleteness,
            },
            Warning::Recorded { .. }
            | Warning::TlsDiffers { .. }
            | Warning::CongestionDiffers { .. }
            | Warning::ConnectionsDiffer { .. }
            | Warning::BiasedBaseline { .. }
            | Warning::Drifts { .. }
            | Warning::Unsettled { .. }
            | Warning::SliceLength { .. }
            | Warning::AtLeast { .. }
            | Warning::RateNotKept { .. }
            | Warning::IdleConnections { .. }
            | Warning::Handshakes { .. }
            | Warning::UncountedCpu(_)
            | Warning::Settings { .. } => WarningEffect::ChangesAnswer,
            Warning::DependentBlocks { .. }
            | Warning::WideFloor { .. }
            | Warning::OtherPrograms { .. }
            | Warning::Unresolved { .. } => WarningEffect::WidensInterval,
            Warning::SteadyStateUnchecked { .. } | Warning::UncountedUpstreams { .. } => {
                WarningEffect::ForCompleteness
            }
        }
    }

    /// Its rank among those with the same effect, the gravest first.
    pub fn gravity(&self) -> u8 {
        match self {
            Warning::Drifts { .. } => 0,
            Warning::BiasedBaseline { .. }
            | Warning::Handshakes { .. }
            | Warning::RateNotKept { .. } => 1,
            // Where each request opens a connection, that is most of what is measured.
            Warning::ConnectionsDiffer { per_request, .. } if per_request[0] > 0.5 => 1,
            Warning::TlsDiffers { .. }
            | Warning::CongestionDiffers { .. }
            | Warning::ConnectionsDiffer { .. } => 2,
            Warning::Settings { .. } => 3,
            Warning::AtLeast { .. } => 4,
            Warning::Errors { .. } => 5,
            Warning::Unsettled { .. } | Warning::SliceLength { .. } => 6,
            Warning::LostSyns { .. } | Warning::IdleConnections { .. } => 7,
            Warning::ClientPauses { .. } => 8,
            Warning::UncountedCpu(_) | Warning::UncountedUpstreams { .. } => 9,
            Warning::Recorded { .. } => 10,
            Warning::OtherPrograms { .. } => 11,
            Warning::WideFloor { .. } => 12,
            Warning::DependentBlocks { .. } => 13,
            Warning::Unresolved { .. } => 14,
            Warning::SteadyStateUnchecked { .. } => 15,
        }
    }
}

fn of_share(part: u64, all: u64, from: f64) -> WarningEffect {
    match part as f64 >= from * all as f64 {
        true => WarningEffect::ChangesAnswer,
        false => WarningEffect::ForCompleteness,
    }
}

/// Whether the p99 is mostly the pauses'; also where too little is left without them.
fn outweigh(found: &WithoutPauses) -> bool {
    let without = found.p99_us_without;
    without.is_none_or(|without| found.p99_us >= PAUSED_FACTOR * without)
}

/// Those with this effect, the gravest first.
pub fn with_effect(warnings: &[Warning], effect: WarningEffect) -> Vec<&Warning> {
    let mut found: Vec<&Warning> = warnings.iter().filter(|w| w.effect() == effect).collect();
    found.sort_by_key(|warning| warning.gravity());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;
    use readings::Condition;

    fn errors(failed: u64) -> Warning {
        Warning::Errors {
            at: Place {
                subject: "a".into(),
                condition: Condition::new(),
            },
            failed,
            requests: 100_000,
        }
    }

    #[test]
    fn a_few_failures_are_for_completeness_and_many_change_the_answer() {
        assert_eq!(errors(99).effect(), WarningEffect::ForCompleteness);
        assert_eq!(errors(100).effect(), WarningEffect::ChangesAnswer);
    }

    #[test]
    fn the_gravest_comes_first() {
        let recorded = Warning::Recorded {
            text: "x".into(),
            trials: 1,
        };
        let all = [recorded.clone(), errors(9), errors(900)];
        let found = with_effect(&all, WarningEffect::ChangesAnswer);
        assert_eq!(found, [&all[2], &recorded]);
        assert_eq!(with_effect(&all, WarningEffect::ForCompleteness), [&all[1]]);
        assert!(WarningEffect::ChangesAnswer < WarningEffect::WidensInterval);
    }
}
