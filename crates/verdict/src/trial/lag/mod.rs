//! Latency that is the client's own lag, and what helps against it.

pub(crate) mod words;

use readings::{LoadReading, Pacing};

use crate::CpusOfOthers;

/// Schedule lag of the client that is always accepted, in microseconds.
const LAG_US: f64 = 100.0;
/// Accepted schedule lag of the client, as a share of the response latency.
const LAG_SHARE: f64 = 0.1;

/// What helps a client that sends late.
#[derive(Clone, Debug, PartialEq)]
pub enum LagRemedy {
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
}

/// A client whose lag is a good part of a quantile of the latency.
#[derive(Clone, Debug, PartialEq)]
pub struct LateClient {
    pub quantile: f64,
    pub lag_us: f64,
    pub latency_us: f64,
    pub remedy: LagRemedy,
}

/// Whether a quantile of an open loop's response latency is the client's own doing in good part: at
/// that quantile the client's lag is above 100 us and above a tenth of the latency.
///
/// Lag that only the far tail has, as when the machine stops the client for a moment, spoils the
/// tail's quantiles and not the median. Smaller lag is held against the margin where verdicts
/// fall.
pub fn late_at(load: &LoadReading, quantile: f64) -> Option<LateClient> {
    late_beside(load, quantile, None)
}

/// The same, with what other programs took of the machine meanwhile.
pub(crate) fn late_beside(
    load: &LoadReading,
    quantile: f64,
    others: Option<CpusOfOthers>,
) -> Option<LateClient> {
    if load.pacing == Pacing::Closed {
        return None;
    }
    let lag_us = load.schedule_lag.quantile_us(quantile);
    let latency_us = load.response.quantile_us(quantile);
    (lag_us > LAG_US && lag_us > LAG_SHARE * latency_us).then(|| LateClient {
        quantile,
        lag_us,
        latency_us,
        remedy: LagRemedy::of(load, others),
    })
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
    use super::*;
    use crate::fixtures::{closed, done, header, measured, open, trial};
    use crate::{Flaw, load_flaws, trial_flaws};
    use readings::{MachineMetrics, ServerMetrics, SystemMetrics};

    #[test]
    fn lag_counts_against_the_latency_that_it_hides_in() {
        let late = |median_us: f64, lag_ns: u64| {
            let mut load = open(1000.0, median_us);
            for _ in 0..1000 {
                load.schedule_lag.record_ns(lag_ns);
            }
            load_flaws(&load).len()
        };
        assert_eq!(late(400.0, 300_000), 1);
        assert_eq!(late(400.0, 90_000), 0, "below 100 us");
        assert_eq!(late(40_000.0, 300_000), 0, "below a tenth of the median");
    }

    /// What is found of a trial whose client was late, bound to these CPUs, while others took so
    /// many.
    fn late_of(cpus: Vec<u32>, others: f64) -> LateClient {
        let mut load = open(1000.0, 2_220.0);
        load.client.cpus = cpus;
        for _ in 0..1000 {
            load.schedule_lag.record_ns(832_000);
        }
        let mut outcome = done(Some(closed(1000.0)), Some(load));
        let reading = measured(&mut outcome);
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
        let found = trial_flaws(&header(1), &trial(1, "direct", false, outcome));
        match &found[..] {
            [one] => match &one.flaw {
                Flaw::LateClient(late) => late.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_remedy_for_a_late_client_fits_its_placement() {
        assert_eq!(late_of(vec![], 1.4).remedy, LagRemedy::OwnCpu);
        let LagRemedy::EndOthers(others) = late_of(vec![0], 1.4).remedy else {
            panic!("others took much");
        };
        assert!((others.cpus - 1.4).abs() < 1e-9 && others.of_cpus == 2);
        let late = late_of(vec![0], 0.0);
        assert_eq!(late.remedy, LagRemedy::QuieterMachine(vec![0]));
        assert_eq!(late.quantile, 0.5);
        let ratio = late.latency_us / late.lag_us;
        assert!((ratio / (2_220.0 / 832.0) - 1.0).abs() < 0.01, "{late:?}");
    }
}
