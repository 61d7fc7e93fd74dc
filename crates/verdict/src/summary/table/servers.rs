//! The servers of a subject in the table of figures, each by itself.

use std::collections::BTreeMap;

use serde::Serialize;

use super::SubjectRow;

/// What one server of a subject's path took, over the subject's valid trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerRow {
    pub server: String,
    /// Whether the load addresses it.
    pub first: bool,
    /// Mean CPU time per request of the closed loop, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// The user part of it, in microseconds.
    pub cpu_user_us_per_request: Option<f64>,
    /// The system part of it, in microseconds.
    pub cpu_system_us_per_request: Option<f64>,
    /// Requests of the closed loop for each second of its CPU time.
    pub requests_per_core: Option<f64>,
    /// Geometric mean of its peak memory, in bytes.
    pub rss_bytes_max: Option<u64>,
}

/// The servers of a row, in the order of the path; those of which nothing is known are left out.
pub(super) fn of_row(row: &SubjectRow, path: &[String]) -> Vec<ServerRow> {
    let of = |figures: &BTreeMap<String, f64>, server: &str| figures.get(server).copied();
    let each = path.iter().enumerate().map(|(place, server)| {
        let cpu_us = of(&row.server_cpu_us_per_request, server);
        ServerRow {
            server: server.clone(),
            first: place == 0,
            cpu_us_per_request: cpu_us,
            cpu_user_us_per_request: of(&row.server_cpu_user_us_per_request, server),
            cpu_system_us_per_request: of(&row.server_cpu_system_us_per_request, server),
            requests_per_core: cpu_us.filter(|us| *us > 0.0).map(|us| 1e6 / us),
            rss_bytes_max: row.server_rss_bytes_max.get(server).copied(),
        }
    });
    let is_known = |one: &ServerRow| {
        one.cpu_us_per_request.is_some() || one.rss_bytes_max.is_some_and(|bytes| bytes > 0)
    };
    each.filter(is_known).collect()
}
