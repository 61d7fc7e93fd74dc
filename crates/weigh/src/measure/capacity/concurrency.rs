//! Throughput at several numbers of connections.

use fastrand::Rng;
use readings::Pacing;
use readings::text::{counted, rate};
use verdict::usl::LevelStep;

use super::steps::Steps;
use crate::failure::Failure;

const ROUNDS: u32 = 5;

/// Every number of connections once per round, in random order, until a signal comes or a step
/// fails. Returns the steps that were made, and the failure.
///
/// # Errors
/// When the first step fails.
pub(super) fn measure(
    steps: &Steps<'_>,
    seed: u64,
) -> Result<(Vec<LevelStep>, Option<Failure>), Failure> {
    let args = steps.args;
    let mut random = Rng::with_seed(seed);
    let mut levels = args.concurrency.clone();
    levels.sort_unstable();
    levels.dedup();
    let mut made = Vec::new();
    for round in 0..args.rounds.unwrap_or(ROUNDS) {
        random.shuffle(&mut levels);
        for connections in &levels {
            let load = match steps.make(Pacing::Closed, *connections, args.step) {
                Ok(Some(load)) => load,
                Ok(None) => return Ok((made, None)),
                Err(failure) if made.is_empty() => return Err(failure),
                Err(failure) => return Ok((made, Some(failure))),
            };
            let at_least = if load.client.saturated {
                "  the client was the limit"
            } else {
                ""
            };
            steps.print(&format!(
                "round {}  {:>16}  {:>9} requests/s{at_least}",
                round + 1,
                counted(*connections as usize, "connection"),
                rate(load.requests_per_s()),
            ));
            made.push(LevelStep {
                connections: *connections,
                round,
                load,
            });
        }
    }
    Ok((made, None))
}
