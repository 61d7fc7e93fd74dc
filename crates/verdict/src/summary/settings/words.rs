//! What settings of servers are called.

use readings::ServerSettings;

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
