//! What a decision is about.

use std::net::IpAddr;

/// A back end as seen when a client arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Whether it may be chosen: available, below its limit, and not yet tried for this client.
    pub usable: bool,
    /// Current connections or requests.
    pub active: u32,
    /// The share of its weight in effect, in (0, 1]: below 1 during slow start.
    pub share: f64,
}

/// The client or request to dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    pub client: IpAddr,
    /// The key of a consistent hash, unless that is the address; without it, the address is hashed.
    pub key: Option<&'r [u8]>,
    /// Monotonic time, ns.
    pub now_ns: u64,
}
