//! Choosing a back end.
//!
//! A [`Dispatcher`] belongs to one thread and one service. It has no clock, random source or I/O of
//! its own, and allocates nothing after construction. A decision takes time linear in the number of
//! back ends.

mod candidate;
mod ewma;
mod hash;
mod load;
mod random;
mod round_robin;

use std::time::Duration;

pub use candidate::{Candidate, Request};

use crate::config::model::{Backend, Dispatch, Weight};

/// Chooses back ends for one service, on one thread.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    mode: Mode,
}

#[derive(Clone, Debug)]
enum Mode {
    RoundRobin(round_robin::RoundRobin),
    WeightedRoundRobin(round_robin::WeightedRoundRobin),
    Order,
    Random(random::Random),
    Load(load::Load),
    Ewma(ewma::PeakEwma),
    ClientIp,
    Hash(hash::Rendezvous),
}

impl Dispatcher {
    /// A dispatcher for these back ends; candidates come in the same order.
    ///
    /// For [`Dispatch::External`] this is the fallback: round robin. Round robin goes by shares
    /// where they differ. It ignores penalties, as Crossroads does.
    pub fn new(dispatch: &Dispatch, backends: &[Backend]) -> Dispatcher {
        use load::{Load, Measure};
        let mode = match dispatch {
            Dispatch::RoundRobin | Dispatch::External { .. } => {
                let turns = |one: &Backend| match one.weight {
                    Weight::Share(share) => f64::from(share.max(1)),
                    Weight::Penalty(_) => 1.0,
                };
                let turns: Box<[f64]> = backends.iter().map(turns).collect();
                match turns.windows(2).all(|two| two[0] == two[1]) {
                    true => Mode::RoundRobin(round_robin::RoundRobin::new(backends.len())),
                    false => Mode::WeightedRoundRobin(round_robin::WeightedRoundRobin::new(turns)),
                }
            }
            Dispatch::WeightedRoundRobin => {
                let turns = backends.iter().map(|one| one.weight.share()).collect();
                Mode::WeightedRoundRobin(round_robin::WeightedRoundRobin::new(turns))
            }
            Dispatch::Random => Mode::Random(random::Random::new(backends)),
            Dispatch::BySize { over } => Mode::Load(Load::new(Measure::Size, *over, backends)),
            Dispatch::ByDuration { over } => {
                Mode::Load(Load::new(Measure::Duration, *over, backends))
            }
            Dispatch::ByConnections { over } => {
                Mode::Load(Load::new(Measure::Connections, *over, backends))
            }
            Dispatch::LeastConnections => Mode::Load(Load::new(Measure::Next, None, backends)),
            Dispatch::ByOrder => Mode::Order,
            Dispatch::ByClientIp => Mode::ClientIp,
            Dispatch::PeakEwma { decay } => {
                Mode::Ewma(ewma::PeakEwma::new(nanoseconds(*decay), backends))
            }
            Dispatch::ConsistentHash { .. } => Mode::Hash(hash::Rendezvous::new(backends)),
        };
        Dispatcher { mode }
    }

    /// Chooses a back end; `None` if none is usable.
    ///
    /// If it cannot be reached, call again with it marked unusable.
    pub fn choose(
        &mut self,
        candidates: &[Candidate],
        request: &Request<'_>,
        rng: &mut fastrand::Rng,
    ) -> Option<usize> {
        match &mut self.mode {
            Mode::RoundRobin(turns) => turns.choose(candidates),
            Mode::WeightedRoundRobin(turns) => turns.choose(candidates),
            Mode::Order => candidates.iter().position(|candidate| candidate.usable),
            Mode::Random(lot) => lot.choose(candidates, rng),
            Mode::Load(load) => load.choose(candidates),
            Mode::Ewma(ewma) => ewma.choose(candidates, request.now_ns, rng),
            Mode::ClientIp => hash::by_address(candidates, request.client),
            Mode::Hash(hash) => hash.choose(candidates, request),
        }
    }

    /// Reports the latency of a response.
    pub fn answered(&mut self, candidate: usize, latency_ns: u64, now_ns: u64) {
        if let Mode::Ewma(ewma) = &mut self.mode {
            ewma.answered(candidate, latency_ns, now_ns);
        }
    }

    /// Reports the end of a connection: bytes in both directions, and its length.
    pub fn finished(&mut self, candidate: usize, bytes: u64, duration_ns: u64) {
        if let Mode::Load(load) = &mut self.mode {
            load.finished(candidate, bytes, duration_ns);
        }
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

#[cfg(test)]
mod tests;
