//! What settings of servers are called.

use readings::ServerSettings;
use readings::at_condition as at;

use super::upgrades::{Upgrade, UpgradeChange};
use crate::Metric;
use crate::metric::words::shown_change;
use crate::summary::ranking::words::short;

/// The settings in the order in which they are shown, with their heads.
pub const HEADS: [(&str, &str); 10] = [
    (
        super::REQUESTS_PER_CONNECTION,
        "requests per connection (observed)",
    ),
    ("workers", "workers"),
    ("keepalive_client", "keep-alive to clients"),
    ("keepalive_upstream", "keep-alive to upstreams"),
    ("access_log", "access log"),
    ("caching", "caching"),
    ("compression", "compression"),
    ("tls", "TLS"),
    (ServerSettings::TCP_CONGESTION, "congestion (TCP)"),
    (ServerSettings::QUIC_CONGESTION, "congestion (QUIC)"),
];

/// What a setting is called.
pub fn setting(setting: &str) -> &str {
    let known = HEADS.iter().find(|(name, _)| *name == setting);
    known.map_or(setting, |(_, words)| words)
}

/// What upgrades are told by, as far as it was measured.
const OF_UPGRADES: [Metric; 4] = [
    Metric::RequestsPerS,
    Metric::ServerCpuUsPerRequest,
    Metric::LatencyUsP50,
    Metric::LatencyUsP99,
];

/// A sentence for each upgrade: `nginx 1.22.1 to 1.31.3 (nginx_today against nginx_debian): throughput
/// -3% [-5%, -1%] at size=100.`
pub fn upgrades(all: &[Upgrade]) -> Vec<String> {
    all.iter().filter_map(upgrade).collect()
}

fn upgrade(one: &Upgrade) -> Option<String> {
    let of_metric = |metric: Metric| {
        let its = one.changes.iter().filter(|change| change.metric == metric);
        let its: Vec<String> = its.map(change).collect();
        (!its.is_empty()).then(|| format!("{} {}", short(metric), its.join(", ")))
    };
    let metrics: Vec<String> = OF_UPGRADES.into_iter().filter_map(of_metric).collect();
    (!metrics.is_empty()).then(|| {
        format!(
            "Upgrade of {} from {} to {} ({} against {}): {}.",
            one.recipe,
            one.from.version,
            one.to.version,
            one.to.subject,
            one.from.subject,
            metrics.join("; ")
        )
    })
}

/// `-3% [-5%, -1%] at size=100`.
fn change(one: &UpgradeChange) -> String {
    let change = shown_change(one.ratio, one.low.zip(one.high));
    let open = if one.told_apart {
        ""
    } else {
        " (not told apart)"
    };
    format!("{change}{}{open}", at(&one.condition))
}
