//! Links on hosts that are machines.

use std::net::IpAddr;

use readings::LinkSpec;
use serde::{Deserialize, Serialize};

/// What lies between a host and another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerLink {
    /// The other host.
    pub host: String,
    pub address: IpAddr,
    /// The links of both hosts as one. Without jitter.
    pub link: LinkSpec,
}
