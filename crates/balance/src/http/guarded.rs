//! Names of header fields that clients must not forge.
//!
//! CGI passes both `X-Forwarded-For` and `X_Forwarded_For` as `HTTP_X_FORWARDED_FOR`, and some
//! servers turn every byte except letters and digits into an underscore. So names are compared
//! folded: in lower case, and with all other bytes taken as hyphens.

/// Fields by which proxies say who the client is and what it asked for. All names that begin with
/// `X-Forwarded` count as well.
const FORWARDED: [&[u8]; 7] = [
    b"cf-connecting-ip",
    b"client-ip",
    b"forwarded",
    b"true-client-ip",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-real-ip",
];
const FORWARDED_START: &[u8] = b"x-forwarded";

/// A byte of a name, folded.
#[inline]
pub(super) fn fold(byte: u8) -> u8 {
    match byte.is_ascii_alphanumeric() {
        true => byte.to_ascii_lowercase(),
        false => b'-',
    }
}

/// Whether two names are the same to a server that folds them.
pub(super) fn same_folded(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| fold(*one) == fold(*other))
}

/// Whether a field says who the client is, however it is spelt.
pub(super) fn is_forwarded(name: &[u8]) -> bool {
    let start = name.get(..FORWARDED_START.len());
    start.is_some_and(|start| same_folded(start, FORWARDED_START))
        || FORWARDED.iter().any(|known| same_folded(name, known))
}

/// FNV-1a hash of a folded name, computed byte by byte, as trailers arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameHash(u64);

impl NameHash {
    pub(super) const EMPTY: NameHash = NameHash(0xcbf2_9ce4_8422_2325);

    #[inline]
    pub(super) fn add(self, byte: u8) -> NameHash {
        NameHash((self.0 ^ u64::from(fold(byte))).wrapping_mul(0x0000_0100_0000_01b3))
    }

    fn of(name: &[u8]) -> NameHash {
        name.iter()
            .fold(NameHash::EMPTY, |hash, byte| hash.add(*byte))
    }
}

/// The fields that a configuration sets in requests. Clients may not send them as trailers, as a
/// receiver may merge trailers into the head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardedNames {
    hashes: Vec<NameHash>,
}

impl GuardedNames {
    /// Guards the fields with these names.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> GuardedNames {
        let mut hashes: Vec<NameHash> = Vec::new();
        for name in names {
            let hash = NameHash::of(name.as_bytes());
            if !hashes.contains(&hash) {
                hashes.push(hash);
            }
        }
        GuardedNames { hashes }
    }

    /// Guards no fields.
    pub const NONE: GuardedNames = GuardedNames { hashes: Vec::new() };

    pub(super) fn has(&self, name: NameHash) -> bool {
        self.hashes.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_a_server_sees_them_that_folds_them() {
        for name in [
            "Forwarded",
            "x-forwarded-for",
            "X_FORWARDED_PROTO",
            "X.Real-IP",
        ] {
            assert!(is_forwarded(name.as_bytes()), "{name}");
        }
        for name in ["Forward", "X-Forward", "XForwardedFor", "X-Real-IPs", "Via"] {
            assert!(!is_forwarded(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn guarded_names_are_found_however_they_are_spelt() {
        let guarded = GuardedNames::new(["X-Client-Certificate-Verified", "a"]);
        let has = |name: &str| guarded.has(NameHash::of(name.as_bytes()));
        assert!(has("x_client_certificate_verified") && has("A"));
        assert!(!has("x-client-certificate") && !has("b") && !has(""));
    }
}
