//! Latency against offered rate: what one subject shows at each of several rates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Answered, Condition, Histogram, LoadReading, Offered, Pacing};

/// One point of a curve: an open loop with Poisson arrivals, in several slices. Of the load it has
/// what the curve needs, since a journal has a hundred points for each trial of another load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Requests due per second, over all connections.
    pub rate_per_s: f64,
    /// The share of the subject's own capacity that the rate is, where the point was asked for so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Measured time: the sum of its windows.
    pub duration_s: f64,
    /// Load before the windows, which is not measured, all together.
    pub ramp_up_s: f64,
    pub slices: u32,
    /// Connections that carried the load.
    #[serde(default)]
    pub connections: u64,
    /// Requests that became due in the windows.
    pub due: u64,
    /// Good answers to those, whenever they came.
    pub answered: u64,
    pub failed: u64,
    /// What was offered and answered in the windows, and the backlog at their quarters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Offered>,
    /// The good answers by when they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<Answered>,
    /// Complete answer from the intended time, ns, of the good answers.
    pub response: Histogram,
    /// The median of how late the client handled a due request, us.
    pub lag_us_p50: f64,
    /// Its 99th percentile, us.
    pub lag_us_p99: f64,
    /// Whether a thread of the client was too busy to keep to the schedule.
    pub client_saturated: bool,
}

impl CurvePoint {
    /// The point that an open loop measured, with this ramp-up before its windows, all together.
    pub fn of(load: &LoadReading, ramp_up_s: f64) -> Self {
        let rate_per_s = match load.pacing {
            Pacing::Open { rate_per_s } => rate_per_s,
            Pacing::Closed => 0.0,
        };
        let failed = load.errors.total();
        Self {
            rate_per_s,
            share: None,
            ramp_up_s,
            duration_s: load.duration_s,
            slices: load.slices.len() as u32,
            connections: load.connections,
            due: load.requests.saturating_add(failed),
            answered: load.requests,
            failed,
            offered: load.offered,
            arrived: load.answered(),
            response: load.response.clone(),
            lag_us_p50: load.schedule_lag.quantile_us(0.5),
            lag_us_p99: load.schedule_lag.quantile_us(0.99),
            client_saturated: load.client.saturated,
        }
    }
}

/// The rates of the curves under one condition, chosen from the first block and kept for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveChoice {
    pub condition: Condition,
    /// The rates at which all subjects are compared, ascending.
    pub rates_per_s: Vec<f64>,
    /// The shares of its own capacity at which each subject is measured besides, ascending.
    pub shares: Vec<f64>,
    /// What each subject carried in the closed loop of the first block.
    pub capacities_per_s: BTreeMap<String, f64>,
    /// The highest rate that the client was held to be able to offer; rates beyond it are left out.
    pub client_per_s: Option<f64>,
    /// The bounds of the 99th percentile for which the rate is asked, us.
    pub bounds_us: Vec<f64>,
}
