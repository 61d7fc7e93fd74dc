//! The same back end for the same client.

use std::net::IpAddr;

use super::{Candidate, Request};
use crate::config::model::Backend;

/// Rendezvous hashing: each back end bids a number made of the key and its name, and the highest
/// bid wins ("Using name-based mappings to increase hit rates", D. Thaler and C. Ravishankar,
/// 1998). When a back end goes, only its keys move, spread over all others; when one comes, it
/// takes its share from all. Weights as in "Weighted distributed hash tables" (C. Schindelhauer and
/// G. Schomaker, 2005): a bid is the weight over an exponentially distributed number.
///
/// A ring or table would be faster with hundreds of back ends; this needs no memory or tuning, and
/// its shares are exact. There is no slow start, as each step of it would move clients.
#[derive(Clone, Debug)]
pub(super) struct Rendezvous {
    /// Hash of the name, and weight.
    bidders: Box<[(u64, f64)]>,
}

impl Rendezvous {
    pub fn new(backends: &[Backend]) -> Rendezvous {
        Rendezvous {
            bidders: backends
                .iter()
                .map(|one| (hash(one.name.as_bytes()), one.weight.share()))
                .collect(),
        }
    }

    pub fn choose(&self, candidates: &[Candidate], request: &Request<'_>) -> Option<usize> {
        let key = match request.key {
            Some(key) => hash(key),
            None => address(request.client),
        };
        let mut best: Option<(usize, f64)> = None;
        for (at, (candidate, (name, weight))) in candidates.iter().zip(&self.bidders).enumerate() {
            if !candidate.usable {
                continue;
            }
            let bid = weight / -unit(mix(key ^ name)).ln();
            if best.is_none_or(|(_, highest)| bid > highest) {
                best = Some((at, bid));
            }
        }
        best.map(|(at, _)| at)
    }
}

/// The back end of a client's address; the next usable one if it is not usable.
pub(super) fn by_address(candidates: &[Candidate], client: IpAddr) -> Option<usize> {
    let count = candidates.len();
    let first = address(client).checked_rem(count as u64)? as usize;
    (0..count)
        .map(|step| (first + step) % count)
        .find(|at| candidates[*at].usable)
}

fn address(client: IpAddr) -> u64 {
    match client.to_canonical() {
        IpAddr::V4(four) => hash(&four.octets()),
        IpAddr::V6(six) => hash(&six.octets()),
    }
}

/// FNV-1a, 64 bits (draft-eastlake-fnv), with a finalizer, as its high bits are poor. Stable across
/// machines and versions, so that clients keep their back end.
fn hash(bytes: &[u8]) -> u64 {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(sum)
}

/// The finalizer of SplitMix64 ("Fast splittable pseudorandom number generators", G. Steele and
/// others, 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform in the open interval (0, 1).
fn unit(bits: u64) -> f64 {
    const STEPS: f64 = (1_u64 << 52) as f64;
    ((bits >> 12) as f64 + 0.5) / STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_stay_what_they_are() {
        // FNV's own test vectors, then mixed.
        assert_eq!(hash(b""), mix(0xcbf2_9ce4_8422_2325));
        assert_eq!(hash(b"a"), mix(0xaf63_dc4c_8601_ec8c));
        assert_eq!(hash(b"foobar"), mix(0x8594_4171_f739_67e8));
        assert!(unit(0) > 0.0 && unit(u64::MAX) < 1.0);
    }
}
