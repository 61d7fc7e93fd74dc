//! Journals of queues whose latencies are known: M/M/1 and M/D/1, with a delay beside.

use readings::{CurvePoint, Offered, Outcome, Reading, RunHeader, Trial};

use super::{Cells, LatencyCurves, curves, settling_requests};
use crate::fixtures::{Normal, closed, condition, header, trial};

/// How long a request is served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Service {
    Exponential,
    Constant,
}

/// A single server with a queue, and a delay that each request takes besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) service: Service,
    pub(super) capacity_per_s: f64,
    pub(super) delay_us: f64,
}

impl Queue {
    pub(super) fn new(service: Service, capacity_per_s: f64) -> Self {
        Self {
            service,
            capacity_per_s,
            delay_us: 0.0,
        }
    }

    /// The quantile of the response time in equilibrium, us.
    pub(super) fn quantile_us(&self, rate: f64, quantile: f64) -> f64 {
        let mu = self.capacity_per_s;
        let s = match self.service {
            Service::Exponential => -(1.0 - quantile).ln() / (mu - rate),
            // Erlang's distribution of the wait in M/D/1, inverted by bisection.
            Service::Constant => {
                let (mut low, mut high) = (0.0, 60.0 / mu);
                for _ in 0..60 {
                    let middle = (low + high) / 2.0;
                    match waits_at_most(middle, rate, 1.0 / mu) < quantile {
                        true => low = middle,
                        false => high = middle,
                    }
                }
                low + 1.0 / mu
            }
        };
        s * 1e6 + self.delay_us
    }

    pub(super) fn passes_at(&self, quantile: f64, bound_us: f64) -> f64 {
        let (mut low, mut high) = (0.0, 0.97 * self.capacity_per_s);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            match self.quantile_us(middle, quantile) < bound_us {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    fn service_s(&self, random: &mut fastrand::Rng) -> f64 {
        match self.service {
            Service::Exponential => exponential(random) / self.capacity_per_s,
            Service::Constant => 1.0 / self.capacity_per_s,
        }
    }

    /// A point of about so many requests, in slices as a run makes them: each begins with an empty
    /// queue, and has a ramp-up of a quarter of its length.
    pub(super) fn point(&self, rate: f64, requests: u64, random: &mut fastrand::Rng) -> CurvePoint {
        let settling = settling_requests(rate / self.capacity_per_s);
        let slices = (requests as f64 / (1.5 * settling))
            .floor()
            .clamp(2.0, 10.0);
        let slices = match settling.is_finite() {
            true => slices as u32,
            false => 10,
        };
        let duration_s = requests as f64 / rate;
        let window_s = duration_s / f64::from(slices);
        let ramp_up_s = window_s / 4.0;
        let mut point = CurvePoint {
            rate_per_s: rate,
            duration_s,
            ramp_up_s: ramp_up_s * f64::from(slices),
            slices,
            connections: 16,
            ..CurvePoint::default()
        };
        let mut sum = Offered::default();
        for _ in 0..slices {
            let mut offered = Offered::default();
            let (mut now, mut free_at) = (0.0, 0.0);
            loop {
                now += exponential(random) / rate;
                if now >= ramp_up_s + window_s {
                    break;
                }
                free_at = f64::max(now, free_at) + self.service_s(random);
                let answered = free_at + self.delay_us / 1e6;
                for (quarter, waiting) in offered.backlog.iter_mut().enumerate() {
                    let mark = ramp_up_s + window_s * quarter as f64 / 4.0;
                    *waiting += u64::from(now <= mark && answered > mark);
                }
                let is_within = (ramp_up_s..ramp_up_s + window_s).contains(&answered);
                offered.answered_within += u64::from(is_within);
                if now >= ramp_up_s {
                    offered.due += 1;
                    point.response.record_ns(((answered - now) * 1e9) as u64);
                }
            }
            sum.add(&offered);
        }
        point.due = sum.due;
        point.answered = sum.due;
        point.offered = Some(sum);
        point
    }
}

fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// The probability that a request of M/D/1 waits at most `t`.
fn waits_at_most(t: f64, rate: f64, service_s: f64) -> f64 {
    let rho = rate * service_s;
    let terms = (t / service_s).floor() as u32;
    let mut sum = 0.0;
    for k in 0..=terms {
        let x = rate * (t - f64::from(k) * service_s);
        let mut term = x.exp();
        for i in 1..=k {
            term *= -x / f64::from(i);
        }
        sum += term;
    }
    ((1.0 - rho) * sum).clamp(0.0, 1.0)
}

/// A run of queues: each block has its own capacity, by `spread` around the true one, the same for
/// all points of it.
pub(super) struct Sweep<'a> {
    pub(super) queues: &'a [(&'a str, Queue)],
    pub(super) rates: &'a [f64],
    pub(super) blocks: u32,
    pub(super) requests: u64,
    pub(super) spread: f64,
}

impl Sweep<'_> {
    pub(super) fn header(&self) -> RunHeader {
        RunHeader {
            baseline: self.queues[0].0.to_owned(),
            subjects: self
                .queues
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            ..header(self.blocks)
        }
    }

    pub(super) fn trials(&self, seed: u64) -> Vec<Trial> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut normal = Normal::with_seed(seed ^ 0x5eed);
        let mut trials = Vec::new();
        for block in 1..=self.blocks {
            for (name, queue) in self.queues {
                let mut here = *queue;
                here.capacity_per_s *= (self.spread * normal.next()).exp();
                let rates = self.rates.iter();
                let rates = rates.filter(|rate| **rate <= 1.5 * queue.capacity_per_s);
                let curve = rates
                    .map(|rate| here.point(*rate, self.requests, &mut random))
                    .collect();
                let reading = Reading {
                    throughput: Some(closed(here.capacity_per_s)),
                    curve,
                    ..Reading::default()
                };
                trials.push(Trial {
                    condition: condition(96),
                    ..trial(block, name, false, Outcome::Done(Box::new(reading)))
                });
            }
        }
        trials
    }

    pub(super) fn curves(&self, seed: u64) -> LatencyCurves {
        let trials = self.trials(seed);
        let header = self.header();
        let cells = Cells::of(&header, &trials);
        curves(&header, &cells).remove(0)
    }
}
