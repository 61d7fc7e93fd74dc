//! Choosing a back end.
//!
//! A [`Dispatcher`] belongs to one thread and one service. It is shown what is known of the back
//! ends, and says which one gets a client. It has no clock and no random source of its own, does
//! no input or output, and allocates nothing after it was made. A decision takes a time that grows
//! with the number of back ends.

mod ewma;
mod hash;
mod load;
mod random;
mod round_robin;

use std::net::IpAddr;
use std::time::Duration;

use crate::config::model::{Backend, Dispatch};

/// What is known of a back end when a client comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Whether it may be chosen: it is available, not at its limit, and was not tried for this
    /// client already.
    pub usable: bool,
    /// Its connections, or requests under way.
    pub active: u32,
    /// The share of its weight that it gets now, more than 0 and at most 1: less than 1 while it
    /// starts slowly.
    pub share: f64,
}

/// The client that a back end is chosen for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Its address.
    pub client: IpAddr,
    /// What a consistent hash is made of, where that is not the address; `None` where the request
    /// lacks it: the address is hashed then.
    pub key: Option<&'r [u8]>,
    /// The time, ns, by a clock that does not go back.
    pub now_ns: u64,
}

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
    /// A dispatcher for these back ends, in the order in which they will be shown.
    ///
    /// Where another program decides ([`Dispatch::External`]), this is what is done when the
    /// program fails: one after the other.
    pub fn new(dispatch: &Dispatch, backends: &[Backend]) -> Dispatcher {
        use load::{Load, Measure};
        let mode = match dispatch {
            Dispatch::RoundRobin | Dispatch::External { .. } => {
                Mode::RoundRobin(round_robin::RoundRobin::new(backends.len()))
            }
            Dispatch::WeightedRoundRobin => {
                Mode::WeightedRoundRobin(round_robin::WeightedRoundRobin::new(backends))
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

    /// The back end that gets a client; `None` when none may be chosen.
    ///
    /// A back end that then cannot be reached is shown as not usable when the next one is asked
    /// for.
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

    /// Notes that a back end answered, so long after it was asked.
    pub fn answered(&mut self, candidate: usize, latency_ns: u64, now_ns: u64) {
        if let Mode::Ewma(ewma) = &mut self.mode {
            ewma.answered(candidate, latency_ns, now_ns);
        }
    }

    /// Notes that a connection to a back end has ended: bytes in both directions, and how long it
    /// lasted.
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
