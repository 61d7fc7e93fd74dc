//! How the servers of the subjects were set, in words that mean the same for each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Condition, QuicCongestion};

/// The settings of all subjects' servers under one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsReading {
    pub condition: Condition,
    /// Each subject, as declared.
    pub subjects: Vec<SubjectSettings>,
}

/// The settings of one subject's servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectSettings {
    pub subject: String,
    /// The servers of its path, the one that is asked first.
    pub servers: Vec<ServerSettings>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSettings {
    pub server: String,
    pub recipe: String,
    /// Its version, where it could be read.
    pub version: Option<String>,
    /// What its recipe tells, by the words of recipes: `workers`, `keepalive_client`,
    /// `keepalive_upstream`, `access_log`, `caching`, `compression`, `buffering`, `tls`, `quic_congestion`; and what
    /// the run adds: `tcp_congestion`. `unknown (…)` where lines of the user's own may have set it.
    pub settings: BTreeMap<String, String>,
}

/// How a value begins that is not known.
const UNKNOWN: &str = "unknown ";

impl ServerSettings {
    /// The setting with the congestion control that the kernel gives TCP connections on the server's
    /// host.
    pub const TCP_CONGESTION: &str = "tcp_congestion";
    /// The setting with the congestion control of the server's QUIC connections.
    pub const QUIC_CONGESTION: &str = "quic_congestion";
    /// The setting by which a server holds back what it passes on, in the words of its own
    /// configuration, such as `proxy_buffering on`; [`Self::OFF`] where it does not.
    pub const BUFFERING: &str = "buffering";
    /// The value of a setting that is off.
    pub const OFF: &str = "off";
    /// In a recipe: QUIC has the congestion control of TCP on the server's host. The run fills in
    /// which one that is.
    pub const LIKE_TCP: &str = "auto";

    /// The value of a setting that the text of a parameter may have changed: `unknown (extra lines)`.
    pub fn unknown(param: &str) -> String {
        let lines = match param.starts_with("extra") {
            true => " lines",
            false => "",
        };
        format!("{UNKNOWN}({param}{lines})")
    }

    /// Whether a value says that the setting is not known.
    pub fn is_unknown(value: &str) -> bool {
        value.starts_with(UNKNOWN)
    }

    /// Adds the congestion control of TCP on the server's host to settings as a recipe has them.
    pub fn add_tcp_congestion(settings: &mut BTreeMap<String, String>, tcp: Option<&str>) {
        if let Some(quic) = settings.get_mut(Self::QUIC_CONGESTION)
            && quic == Self::LIKE_TCP
        {
            *quic = QuicCongestion::like_tcp(tcp).name().to_owned();
        }
        if let Some(tcp) = tcp {
            settings.insert(Self::TCP_CONGESTION.to_owned(), tcp.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_follows_tcp_is_recorded_with_the_algorithm_of_its_host() {
        let settings = |quic: &str| {
            let one = (ServerSettings::QUIC_CONGESTION.to_owned(), quic.to_owned());
            BTreeMap::from([one])
        };
        for (quic, tcp, expected) in [
            ("auto", Some("bbr"), [Some("bbr"), Some("bbr")]),
            ("auto", None, [Some("cubic"), None]),
            ("newreno", Some("bbr"), [Some("newreno"), Some("bbr")]),
        ] {
            let mut settings = settings(quic);
            ServerSettings::add_tcp_congestion(&mut settings, tcp);
            let names = [
                ServerSettings::QUIC_CONGESTION,
                ServerSettings::TCP_CONGESTION,
            ];
            let found = names.map(|name| settings.get(name).map(String::as_str));
            assert_eq!(found, expected);
        }
    }
}
