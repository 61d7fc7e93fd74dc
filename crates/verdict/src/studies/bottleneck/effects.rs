//! What each change did to the throughput.

use readings::{BottleneckReading, Change, Probe};
use serde::Serialize;

/// Standard errors by which a change must move the throughput to count.
const ERRORS: f64 = 3.0;

/// What one change did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    pub change: Change,
    /// Throughput changed over unchanged: geometric means.
    pub ratio: f64,
    /// The standard error of the ratio's logarithm.
    pub log_error: f64,
    pub loads: usize,
}

/// The effects of all changes on one subject.
pub(super) struct Effects {
    told: Vec<Effect>,
    unchanged_per_s: f64,
}

impl Effects {
    pub(super) fn of(reading: &BottleneckReading) -> Self {
        let logs = |change: Change| -> Vec<f64> {
            of_change(reading, change)
                .map(|probe| probe.requests_per_s.max(1e-3).ln())
                .collect()
        };
        let base = logs(Change::None);
        let changes = [
            Change::ClientThread,
            Change::ClientApart,
            Change::TwiceTheConnections,
            Change::HalfTheConnections,
            Change::HalfTheServerCpu,
            Change::TwiceTheLinkRate,
            Change::MorePorts,
        ];
        let groups: Vec<(Change, Vec<f64>)> = changes
            .into_iter()
            .map(|change| (change, logs(change)))
            .filter(|(_, logs)| !logs.is_empty())
            .collect();
        // Pooled over all groups, since each has few loads.
        let all: Vec<&Vec<f64>> = groups.iter().map(|(_, logs)| logs).chain([&base]).collect();
        let squares: f64 = all.iter().map(|logs| square_deviations(logs)).sum();
        let free: usize = all.iter().map(|logs| logs.len().saturating_sub(1)).sum();
        let variance = squares / free.max(1) as f64;
        let told = match base.is_empty() {
            true => Vec::new(),
            false => groups
                .into_iter()
                .map(|(change, logs)| Effect {
                    change,
                    ratio: (mean(&logs) - mean(&base)).exp(),
                    log_error: (variance * (1.0 / logs.len() as f64 + 1.0 / base.len() as f64))
                        .sqrt(),
                    loads: logs.len(),
                })
                .collect(),
        };
        Self {
            told,
            unchanged_per_s: if base.is_empty() {
                0.0
            } else {
                mean(&base).exp()
            },
        }
    }

    pub(super) fn told(&self) -> Vec<Effect> {
        self.told.clone()
    }

    pub(super) fn unchanged_per_s(&self) -> f64 {
        self.unchanged_per_s
    }

    pub(super) fn get(&self, change: Change) -> Option<Effect> {
        self.told.iter().find(|one| one.change == change).copied()
    }

    /// The ratio, where a change raised the throughput by `factor` or more and beyond noise.
    pub(super) fn raised(&self, change: Change, factor: f64) -> Option<f64> {
        let one = self.get(change)?;
        let sure = one.ratio.ln() > ERRORS * one.log_error;
        (sure && one.ratio >= factor).then_some(one.ratio)
    }

    /// The ratio, where a change lowered the throughput to `factor` or less and beyond noise.
    pub(super) fn lowered(&self, change: Change, factor: f64) -> Option<f64> {
        let one = self.get(change)?;
        let sure = one.ratio.ln() < -ERRORS * one.log_error;
        (sure && one.ratio <= factor).then_some(one.ratio)
    }
}

pub(super) fn of_change(
    reading: &BottleneckReading,
    change: Change,
) -> impl Iterator<Item = &Probe> {
    reading
        .probes
        .iter()
        .filter(move |probe| probe.change == change)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn square_deviations(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}
