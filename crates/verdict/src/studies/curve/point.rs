//! What a point of a curve shows: latency, overload, or nothing that can be used.

use readings::CurvePoint;

use crate::TrialFlaw;
use crate::trial::overload::overload_of_point;

pub(super) const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// So many answers must lie beyond a quantile in each block. A single load asks for more; here the
/// interval comes from the blocks, and only the bias of a quantile of few answers has to be small.
const BEYOND_MIN: f64 = 20.0;
/// The client's lag that is always accepted, us, and as a share of the judged quantile.
const LAG_US: f64 = 100.0;
const LAG_SHARE: f64 = 0.1;
/// What one block shows at one rate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen {
    /// The latency at each of [`QUANTILES`] that is resolved, us.
    Latency([Option<f64>; 3]),
    /// More was offered than carried.
    Overloaded {
        /// Good answers per second while requests waited; `None` where it is not known.
        carried_per_s: Option<f64>,
    },
    /// It cannot be used.
    Unusable(PointFlaw),
}

/// Why a point cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum PointFlaw {
    /// What spoils the whole trial.
    Trial(Box<TrialFlaw>),
    NothingDue,
    /// The client was too busy to offer a rate on time.
    ClientBusy {
        rate_per_s: f64,
    },
    /// The client sent late; medians.
    LateClient {
        lag_us: f64,
        latency_us: f64,
    },
    /// More requests failed than may.
    Failed {
        failed: u64,
        due: u64,
        max_error: f64,
    },
}

pub(super) fn judge(point: &CurvePoint, max_error: f64) -> Seen {
    let quantiles = point.response.quantiles();
    if point.due == 0 || point.duration_s <= 0.0 {
        return Seen::Unusable(PointFlaw::NothingDue);
    }
    if point.client_saturated {
        return Seen::Unusable(PointFlaw::ClientBusy {
            rate_per_s: point.rate_per_s,
        });
    }
    let is_late = |lag_us: f64, us: f64| lag_us > LAG_US && lag_us > LAG_SHARE * us;
    if is_late(point.lag_us_p50, quantiles.p50) {
        return Seen::Unusable(PointFlaw::LateClient {
            lag_us: point.lag_us_p50,
            latency_us: quantiles.p50,
        });
    }
    if let Some(found) = overload_of_point(point) {
        return Seen::Overloaded {
            carried_per_s: found.carried_per_s,
        };
    }
    if point.failed as f64 > max_error * point.due as f64 || point.answered == 0 {
        return Seen::Unusable(PointFlaw::Failed {
            failed: point.failed,
            due: point.due,
            max_error,
        });
    }
    let us = QUANTILES.map(|quantile| {
        let beyond = point.response.count() as f64 * (1.0 - quantile);
        let us = point.response.quantile_us(quantile);
        let late = quantile > 0.5 && is_late(point.lag_us_p99, us);
        (beyond >= BEYOND_MIN - 1e-6 && !late && us > 0.0).then_some(us)
    });
    Seen::Latency(us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Offered;

    /// Two seconds in ten slices, of which so many requests wait at the end, as many more with each
    /// quarter.
    fn point(rate_per_s: f64, us: f64, waiting: u64) -> CurvePoint {
        let due = (rate_per_s * 2.0) as u64;
        let mut point = CurvePoint {
            rate_per_s,
            duration_s: 2.0,
            ramp_up_s: 0.5,
            slices: 10,
            connections: 16,
            due,
            answered: due,
            offered: Some(Offered {
                due,
                answered_within: due - waiting,
                backlog: [0, 1, 2, 3, 4].map(|quarter| waiting * quarter / 4),
            }),
            ..CurvePoint::default()
        };
        point.response.record_many_ns((us * 1e3) as u64, due);
        point
    }

    #[test]
    fn a_growing_backlog_is_an_overload() {
        let well = judge(&point(2000.0, 400.0, 8), 0.01);
        assert!(
            matches!(well, Seen::Latency([Some(_), Some(_), None])),
            "{well:?}"
        );
        let over = judge(&point(2200.0, 15_000.0, 500), 0.01);
        let carried_per_s = Some(1950.0);
        assert_eq!(over, Seen::Overloaded { carried_per_s });
    }

    #[test]
    fn a_late_client_makes_no_latency() {
        let mut late = point(2000.0, 400.0, 0);
        late.lag_us_p50 = 150.0;
        assert!(matches!(judge(&late, 0.01), Seen::Unusable(_)));
        let mut tail = point(20_000.0, 400.0, 0);
        tail.lag_us_p99 = 150.0;
        let seen = judge(&tail, 0.01);
        assert!(
            matches!(seen, Seen::Latency([Some(_), None, None])),
            "{seen:?}"
        );
    }

    #[test]
    fn failures_spoil_a_point_unless_it_is_overloaded() {
        let mut failed = point(2000.0, 400.0, 0);
        failed.failed = 100;
        assert!(matches!(judge(&failed, 0.01), Seen::Unusable(_)));
        let mut waiting = point(2000.0, 400.0, 1000);
        waiting.failed = 100;
        assert!(matches!(judge(&waiting, 0.01), Seen::Overloaded { .. }));
    }
}
