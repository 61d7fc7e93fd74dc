//! Latency that is the client's own lag, and what helps against it.

use readings::{LoadReading, Pacing};

use crate::CpusOfOthers;
use crate::text::{counted, times_alike};

/// Schedule lag of the client that is always accepted, in microseconds.
const LAG_US: f64 = 100.0;
/// Accepted schedule lag of the client, as a share of the response latency.
const LAG_SHARE: f64 = 0.1;

/// What helps a client that sends late.
#[derive(Clone, Debug, PartialEq)]
pub enum LagRemedy {
    /// It was not bound to CPUs.
    OwnCpu,
    /// It was bound to CPUs, and other programs took much of the machine.
    EndOthers(CpusOfOthers),
    /// It was bound to these CPUs, and what else took them is not known.
    QuieterMachine(Vec<u32>),
}

impl LagRemedy {
    pub(crate) fn of(load: &LoadReading, others: Option<CpusOfOthers>) -> Self {
        match others.filter(|others| others.are_many()) {
            _ if load.client.cpus.is_empty() => Self::OwnCpu,
            Some(others) => Self::EndOthers(others),
            None => Self::QuieterMachine(load.client.cpus.clone()),
        }
    }

    /// The remedy as part of a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::OwnCpu => "give the load a CPU of its own".to_owned(),
            Self::EndOthers(others) => format!("{}: {}", others.words(), CpusOfOthers::REMEDY),
            Self::QuieterMachine(cpus) => format!(
                "the load was already bound to {}: lower the rate or measure on a quieter machine",
                counted(cpus.len(), "CPU")
            ),
        }
    }
}

/// Why a quantile of an open loop's response latency is the client's own doing in good part: at that
/// quantile the client's lag is above 100 us and above a tenth of the latency.
///
/// Lag that only the far tail has, as when the machine stops the client for a moment, spoils the
/// tail's quantiles and not the median. Smaller lag is held against what matters where verdicts
/// fall.
pub fn late_at(load: &LoadReading, quantile: f64) -> Option<String> {
    late_beside(load, quantile, None)
}

/// The same, with what other programs took of the machine meanwhile.
pub(crate) fn late_beside(
    load: &LoadReading,
    quantile: f64,
    others: Option<CpusOfOthers>,
) -> Option<String> {
    if load.pacing == Pacing::Closed {
        return None;
    }
    let lag = load.schedule_lag.quantile_us(quantile);
    let latency = load.response.quantile_us(quantile);
    if lag <= LAG_US || lag <= LAG_SHARE * latency {
        return None;
    }
    let p = quantile * 100.0;
    let (lag, latency) = times_alike(lag, latency);
    Some(format!(
        "the client sent late: p{p} of its lag is {lag}, more than a tenth of the p{p} of latency, \
         {latency}; {}",
        LagRemedy::of(load, others).words()
    ))
}

/// The client's lag as a share of an open loop's latency, both at a quantile; 0 where there is
/// neither.
pub(crate) fn lag_share(load: &LoadReading, quantile: f64) -> f64 {
    let latency = load.response.quantile_us(quantile);
    match load.pacing {
        Pacing::Open { .. } if latency > 0.0 => load.schedule_lag.quantile_us(quantile) / latency,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{closed, done, header, open, trial};
    use crate::{reasons, trial_flaws};
    use readings::{MachineMetrics, Outcome, ServerMetrics, SystemMetrics};

    #[test]
    fn lag_counts_against_the_latency_that_it_hides_in() {
        let late = |median_us: f64, lag_ns: u64| {
            let mut load = open(1000.0, median_us);
            for _ in 0..1000 {
                load.schedule_lag.record_ns(lag_ns);
            }
            reasons(&load).len()
        };
        assert_eq!(late(400.0, 300_000), 1);
        assert_eq!(late(400.0, 90_000), 0, "below 100 us");
        assert_eq!(late(40_000.0, 300_000), 0, "below a tenth of the median");
    }

    /// The flaws of a trial whose client was late, bound to these CPUs, while others took so many.
    fn flaws_of(cpus: Vec<u32>, others: f64) -> Vec<String> {
        let mut load = open(1000.0, 2_220.0);
        load.client.cpus = cpus;
        for _ in 0..1000 {
            load.schedule_lag.record_ns(832_000);
        }
        let mut outcome = done(Some(closed(1000.0)), Some(load));
        let Outcome::Done(reading) = &mut outcome else {
            unreachable!()
        };
        let machine = MachineMetrics {
            cpus: 2,
            busy_s: Some(4.0 + others * 10.0),
            ..MachineMetrics::default()
        };
        reading.probed = Some(SystemMetrics {
            looked_s: 10.0,
            machine,
            servers: [("origin".to_owned(), ServerMetrics::default())].into(),
            ..SystemMetrics::default()
        });
        trial_flaws(&header(1), &trial(1, "direct", false, outcome))
    }

    #[test]
    fn the_remedy_for_a_late_client_fits_its_placement() {
        let late = "latency: the client sent late: p50 of its lag is 0.83 ms, more than a tenth of \
                    the p50 of latency, 2.22 ms; ";
        let cases = [
            (vec![], 1.4, "give the load a CPU of its own"),
            (
                vec![0],
                1.4,
                "other programs and the hypervisor took 1.4 of the machine's 2 CPUs: end these \
                 programs or measure on a quieter machine",
            ),
            (
                vec![0],
                0.0,
                "the load was already bound to 1 CPU: lower the rate or measure on a quieter machine",
            ),
        ];
        for (cpus, others, remedy) in cases {
            assert_eq!(flaws_of(cpus, others), [format!("{late}{remedy}")]);
        }
    }
}
