//! What one trial has to say on one metric: whether it can be used, and its value. Quantiles of
//! latency are taken here, all other figures by the function of their row.

use readings::{LoadReading, Outcome, Pacing, Quantiles, Reading};

use crate::metric::Value;
use crate::trial::cells::Cell;
use crate::trial::lag::late_beside;
use crate::trial::others;
use crate::{Flaw, Metric, Reason, TrialFlaw};

pub(crate) enum Datum {
    Value(Value),
    /// The load was not part of the trial.
    NotMeasured,
    /// It failed or is invalid; the reason.
    Unusable(Reason),
    /// The quantile, which too few of the trial's requests stand behind.
    Unresolved(Value),
}

impl Datum {
    /// Whether it is a figure, alone or with those of other trials.
    pub fn is_usable(&self) -> bool {
        matches!(self, Datum::Value(_) | Datum::Unresolved(_))
    }
}

pub(crate) fn offered(load: &LoadReading) -> Option<f64> {
    match load.pacing {
        Pacing::Closed => None,
        Pacing::Open { rate_per_s } => Some(rate_per_s),
    }
}

/// The load that a metric is about. An outside driver may report latency of its closed loop.
pub(crate) fn load_of<'a>(cell: &Cell<'a>, metric: Metric) -> Option<&'a LoadReading> {
    match is_open_loop(cell, metric) {
        false => cell.throughput(),
        true => cell.latency(),
    }
}

fn is_open_loop(cell: &Cell<'_>, metric: Metric) -> bool {
    let driver = cell.reading().and_then(|reading| reading.driver.as_ref());
    let closed = driver.is_some_and(|driver| driver.latency_loop() == Pacing::Closed);
    metric.is_of_open_loop() && !(metric.quantile().is_some() && closed)
}

pub(crate) fn label(cell: &Cell<'_>) -> Option<String> {
    Some(cell.reading()?.driver.as_ref()?.label())
}

/// Whether enough answers stand behind a quantile of the response latency, on enough occasions: a
/// pause of the machine is one, however many requests it delayed.
pub(crate) fn resolves(load: &LoadReading, quantile: f64) -> bool {
    would_resolve(load, quantile, 1.0)
}

/// Occasions that resolve a quantile: with twenty the share of answers beyond it is known to a fifth.
pub(crate) const OCCASIONS_MIN: f64 = 20.0;

/// Whether that would be so in a window of another length, as a multiple of the present one.
pub(crate) fn would_resolve(load: &LoadReading, quantile: f64, times: f64) -> bool {
    enough((load.response.count() as f64 * times) as u64, quantile)
        && load
            .exceedances(load.response.quantile_us(quantile))
            .is_none_or(|occasions| occasions as f64 * times >= OCCASIONS_MIN)
}

pub(crate) fn enough(count: u64, quantile: f64) -> bool {
    let count_alone = Quantiles {
        count,
        ..Quantiles::default()
    };
    count_alone.resolves(quantile)
}

pub(crate) fn datum(cell: &Cell<'_>, metric: Metric) -> Datum {
    let reading = match &cell.trial.outcome {
        Outcome::Failed { reason, .. } => return Datum::Unusable(Reason::Failed(reason.clone())),
        Outcome::Done(reading) => reading,
    };
    let (measured, flaws) = match is_open_loop(cell, metric) {
        false => (&reading.throughput, &cell.throughput_flaws),
        true => (&reading.latency, &cell.latency_flaws),
    };
    // A flaw of the whole trial also spoils a load that was then never begun.
    if let Some(flaw) = flaws.first() {
        return Datum::Unusable(flaw.clone().into());
    }
    let Some(load) = measured else {
        return Datum::NotMeasured;
    };
    let found = match metric.quantile() {
        Some(_) if reading.events.is_some() => return Datum::NotMeasured,
        Some(q) => match quantile(reading, load, q) {
            Ok(found) => found,
            Err(datum) => return datum,
        },
        None => metric.figure(reading, load),
    };
    match found {
        None => Datum::NotMeasured,
        Some(found) if found.value > 0.0 && found.value.is_finite() => Datum::Value(found),
        Some(_) => Datum::Unusable(Reason::Empty),
    }
}

/// The histograms of a trial's load that quantiles are taken from; an outside driver reports none.
pub(crate) fn histograms_of<'a>(cell: &Cell<'a>, metric: Metric) -> Option<&'a LoadReading> {
    let is_told = cell.reading()?.driver.is_some();
    load_of(cell, metric).filter(|_| !is_told)
}

/// What a trial has to say on a metric, in the metric's unit, if it can be used.
pub(crate) fn value(cell: &Cell<'_>, metric: Metric) -> Option<Value> {
    match datum(cell, metric) {
        Datum::Value(found) => Some(found),
        _ => None,
    }
}

/// Whether a trial has a figure of a metric that is no latency.
pub(crate) fn is_measured(metric: Metric, cell: &Cell<'_>) -> bool {
    cell.reading().is_some_and(|reading| {
        let load = match is_open_loop(cell, metric) {
            false => &reading.throughput,
            true => &reading.latency,
        };
        load.as_ref()
            .and_then(|load| metric.figure(reading, load))
            .is_some()
    })
}

/// Half of the step in which a histogram tells a value, as a share of it: three significant digits.
const HISTOGRAM_HALF_STEP: f64 = 0.5e-3;
/// A quantile of a trial's latency; `None` where its driver does not report it.
fn quantile(reading: &Reading, load: &LoadReading, q: f64) -> Result<Option<Value>, Datum> {
    if let Some(driver) = &reading.driver {
        let Some(value) = driver.latency_us(q) else {
            return Ok(None);
        };
        let half_step = driver.latency_step_us.unwrap_or(0.0) / 2.0;
        let found = Value::rounded(value, half_step);
        return match enough(driver.latency_requests(), q) {
            true => Ok(Some(found)),
            false => Err(Datum::Unresolved(found)),
        };
    }
    if let Some(late) = late_beside(load, q, others::of_reading(reading)) {
        let flaw = TrialFlaw::from(Flaw::LateClient(late));
        return Err(Datum::Unusable(flaw.into()));
    }
    let value = load.response.quantile_us(q);
    let found = Value::rounded(value, value * HISTOGRAM_HALF_STEP);
    match value > 0.0 && !resolves(load, q) {
        true => Err(Datum::Unresolved(found)),
        false => Ok(Some(found)),
    }
}

#[cfg(test)]
mod tests {
    use readings::Peaks;

    use super::resolves;
    use crate::fixtures::open;

    #[test]
    fn a_p99_that_rests_on_one_pause_is_not_resolved() {
        let mut load = open(2_000.0, 400.0);
        // 2% of the answers take 800 us: p99 is among them.
        assert!(resolves(&load, 0.99), "so many requests are enough");
        let peaks = |is_slow: &dyn Fn(usize) -> bool| {
            Peaks::new(
                0.01,
                (0..1_000).map(|at| if is_slow(at) { 800.0 } else { 400.0 }),
            )
        };
        load.peaks = peaks(&|at| (500..520).contains(&at));
        assert!(!resolves(&load, 0.99), "all of them came in one pause");
        assert!(resolves(&load, 0.5));
        load.peaks = peaks(&|at| at % 25 == 0);
        assert!(resolves(&load, 0.99), "they came on forty occasions");
    }
}
