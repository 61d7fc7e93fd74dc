//! QUIC connections of a load, and their congestion control.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sums::add_count;

/// An algorithm of congestion control that QUIC connections here can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuicCongestion {
    Cubic,
    Bbr,
    NewReno,
}

impl QuicCongestion {
    /// All of them.
    pub const ALL: [QuicCongestion; 3] = [Self::Cubic, Self::Bbr, Self::NewReno];

    /// The name in options and experiment files.
    pub fn name(self) -> &'static str {
        match self {
            QuicCongestion::Cubic => "cubic",
            QuicCongestion::Bbr => "bbr",
            QuicCongestion::NewReno => "newreno",
        }
    }

    /// The algorithm of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The one that matches an algorithm of the kernel's TCP, by the kernel's name; CUBIC for those
    /// without a match.
    pub fn like_tcp(algorithm: Option<&str>) -> Self {
        match algorithm {
            Some("bbr") => QuicCongestion::Bbr,
            Some("reno") => QuicCongestion::NewReno,
            _ => QuicCongestion::Cubic,
        }
    }
}

impl FromStr for QuicCongestion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of(text)
            .ok_or_else(|| format!("expected `cubic`, `bbr` or `newreno`, found `{text}`"))
    }
}

/// Whether two names of algorithms, of TCP or of QUIC, mean the same algorithm.
pub fn is_same_congestion(one: &str, other: &str) -> bool {
    let common = |name: &str| match name {
        "newreno" => "reno".to_owned(),
        name => name.to_owned(),
    };
    common(one) == common(other)
}

/// Adds the algorithm of another part of a load; parts that differ are all named.
pub(crate) fn add_congestion(sum: &mut Option<String>, part: Option<&str>) {
    let Some(part) = part else { return };
    match sum {
        None => *sum = Some(part.to_owned()),
        Some(names) if names.split(", ").any(|name| name == part) => {}
        Some(names) => *names = format!("{names}, {part}"),
    }
}

/// The packets of a load over HTTP/3, inside the measured windows, as the client counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicReading {
    pub packets_sent: u64,
    /// Packets of the client that were lost. QUIC sends their content again in other packets.
    pub packets_lost: u64,
    pub bytes_lost: u64,
    pub congestion_events: u64,
    pub datagrams_sent: u64,
    /// System calls that sent those datagrams: their ratio is the GSO batch.
    pub sends: u64,
    pub datagrams_received: u64,
    /// Whether the kernel takes several datagrams per send (GSO), and joins those that arrive (GRO).
    pub gso: bool,
    pub gro: bool,
    /// Whether the network refused GSO (EIO), so that datagrams were sent one by one.
    pub gso_failed: bool,
    /// The flow-control window that the client announced for each stream and connection.
    pub window_bytes: u64,
    /// The client's congestion control, by the name of a [`QuicCongestion`]; several where hosts
    /// that make the load together differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

impl QuicReading {
    /// Datagrams per system call that sent any.
    pub fn gso_batch(&self) -> Option<f64> {
        (self.sends > 0).then(|| self.datagrams_sent as f64 / self.sends as f64)
    }

    /// Adds another part of the same load.
    pub fn add(&mut self, part: &QuicReading) {
        add_count(&mut self.packets_sent, part.packets_sent);
        add_count(&mut self.packets_lost, part.packets_lost);
        add_count(&mut self.bytes_lost, part.bytes_lost);
        add_count(&mut self.congestion_events, part.congestion_events);
        add_count(&mut self.datagrams_sent, part.datagrams_sent);
        add_count(&mut self.sends, part.sends);
        add_count(&mut self.datagrams_received, part.datagrams_received);
        self.gso |= part.gso;
        self.gro |= part.gro;
        self.gso_failed |= part.gso_failed;
        self.window_bytes = self.window_bytes.max(part.window_bytes);
        add_congestion(&mut self.congestion, part.congestion.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quic_has_the_algorithm_of_the_kernels_tcp_if_it_can() {
        for (tcp, quic) in [
            (Some("bbr"), QuicCongestion::Bbr),
            (Some("reno"), QuicCongestion::NewReno),
            (Some("cubic"), QuicCongestion::Cubic),
            (Some("vegas"), QuicCongestion::Cubic),
            (None, QuicCongestion::Cubic),
        ] {
            assert_eq!(QuicCongestion::like_tcp(tcp), quic, "{tcp:?}");
        }
        assert!(is_same_congestion("reno", "newreno"));
        assert!(!is_same_congestion("bbr", "cubic"));
    }

    #[test]
    fn names_round_trip() {
        for one in QuicCongestion::ALL {
            assert_eq!(one.name().parse(), Ok(one));
            let json = serde_json::to_string(&one).unwrap();
            assert_eq!(json, format!("\"{}\"", one.name()));
        }
        assert!("reno".parse::<QuicCongestion>().is_err());
    }

    #[test]
    fn parts_of_a_load_with_different_algorithms_are_all_named() {
        let with = |name: &str| QuicReading {
            congestion: Some(name.to_owned()),
            ..QuicReading::default()
        };
        let mut sum = QuicReading::default();
        for name in ["bbr", "cubic", "bbr"] {
            sum.add(&with(name));
        }
        assert_eq!(sum.congestion.as_deref(), Some("bbr, cubic"));
    }
}
