//! Access control by address prefix.
//!
//! As in Crossroads, the deny list is checked first; if there is an allow list, everybody else is
//! denied.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ::config::units::shown;

/// An address prefix.
///
/// IPv4-mapped IPv6 addresses (`::ffff:10.0.0.1`) count as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    /// Prefix length: 0 to 32 or 0 to 128.
    bits: u8,
}

/// Why a text is not a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    #[error("expected numbers from 0 to 255 between dots, found `{0}`")]
    Number(String),
    #[error("expected at most four numbers between dots")]
    Parts,
    /// A number or a prefix length follows a `*`.
    #[error("expected nothing but `*` after a `*`")]
    Wildcard,
    #[error("expected an IPv6 address, found `{0}`")]
    Ipv6(String),
    #[error("expected a number of bits from 0 to {most}, found `{found}`")]
    Bits {
        /// The address length.
        most: u8,
        found: String,
    },
}

impl Prefix {
    /// The prefix of an address; a larger `bits` is cut to the address length.
    pub fn new(address: IpAddr, bits: u8) -> Prefix {
        match address {
            IpAddr::V4(v4) => {
                let bits = bits.min(32);
                let first = v4.to_bits() & mask32(bits);
                Prefix {
                    address: Ipv4Addr::from_bits(first).into(),
                    bits,
                }
            }
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) if bits >= 96 => Prefix::new(v4.into(), bits - 96),
                _ => {
                    let bits = bits.min(128);
                    let first = v6.to_bits() & mask128(bits);
                    Prefix {
                        address: Ipv6Addr::from_bits(first).into(),
                        bits,
                    }
                }
            },
        }
    }

    /// Whether the address matches.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(v4)) => {
                v4.to_bits() & mask32(self.bits) == first.to_bits()
            }
            (IpAddr::V6(first), IpAddr::V6(v6)) => {
                v6.to_bits() & mask128(self.bits) == first.to_bits()
            }
            _ => false,
        }
    }
}

fn mask32(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

fn mask128(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Parses `2001:db8::/32`, `10.1.2.0/24`, and Crossroads' short forms: `10/8`, and `192.168` or
    /// `192.168.*.*` for `192.168.0.0/16`.
    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        if address.contains(':') {
            let v6: Ipv6Addr = address
                .parse()
                .map_err(|_| PrefixError::Ipv6(shown(address)))?;
            let bits = bits.map_or(Ok(128), |bits| number_of_bits(bits, 128))?;
            return Ok(Prefix::new(v6.into(), bits));
        }
        let mut octets = [0; 4];
        let mut given = 0;
        let mut open = false;
        for (at, part) in address.split('.').enumerate() {
            let octet = octets.get_mut(at).ok_or(PrefixError::Parts)?;
            if part == "*" && at > 0 {
                open = true;
                continue;
            }
            if open {
                return Err(PrefixError::Wildcard);
            }
            *octet = octet_of(part).ok_or_else(|| PrefixError::Number(shown(part)))?;
            given += 1;
        }
        let bits = match bits {
            Some(_) if open => return Err(PrefixError::Wildcard),
            Some(bits) => number_of_bits(bits, 32)?,
            None => given * 8,
        };
        Ok(Prefix::new(Ipv4Addr::from(octets).into(), bits))
    }
}

/// Decimal without leading zeros, which some read as octal.
fn octet_of(part: &str) -> Option<u8> {
    let plain = part.bytes().all(|byte| byte.is_ascii_digit());
    let leading = part.len() > 1 && part.starts_with('0');
    (plain && !leading).then(|| part.parse().ok()).flatten()
}

fn number_of_bits(text: &str, most: u8) -> Result<u8, PrefixError> {
    octet_of(text)
        .filter(|bits| *bits <= most)
        .ok_or_else(|| PrefixError::Bits {
            most,
            found: shown(text),
        })
}

/// Allow and deny lists, compiled for lookup.
///
/// A lookup takes logarithmic time and allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    allow: Option<Ranges>,
    deny: Ranges,
}

impl AccessRules {
    /// An empty allow list allows everybody.
    pub fn new(allow: &[Prefix], deny: &[Prefix]) -> AccessRules {
        AccessRules {
            allow: (!allow.is_empty()).then(|| Ranges::new(allow)),
            deny: Ranges::new(deny),
        }
    }

    /// Rules that deny everybody.
    pub fn deny_all() -> AccessRules {
        AccessRules {
            allow: Some(Ranges::default()),
            deny: Ranges::default(),
        }
    }

    /// Whether a client at this address may connect.
    pub fn permit(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        !self.deny.contains(client)
            && self
                .allow
                .as_ref()
                .is_none_or(|allow| allow.contains(client))
    }
}

/// Sorted, disjoint ranges: first and last address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Ranges {
    fn new(prefixes: &[Prefix]) -> Ranges {
        let mut ranges = Ranges::default();
        for prefix in prefixes {
            match prefix.address {
                IpAddr::V4(first) => {
                    let first = first.to_bits();
                    ranges.v4.push((first, first | !mask32(prefix.bits)));
                }
                IpAddr::V6(first) => {
                    let first = first.to_bits();
                    ranges.v6.push((first, first | !mask128(prefix.bits)));
                }
            }
        }
        merge(&mut ranges.v4);
        merge(&mut ranges.v6);
        ranges
    }

    fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => within(&self.v4, v4.to_bits()),
            IpAddr::V6(v6) => within(&self.v6, v6.to_bits()),
        }
    }
}

fn merge<T: Copy + Ord>(ranges: &mut Vec<(T, T)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|later, earlier| {
        let overlap = later.0 <= earlier.1;
        if overlap {
            earlier.1 = earlier.1.max(later.1);
        }
        overlap
    });
}

fn within<T: Copy + Ord>(ranges: &[(T, T)], address: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= address);
    after > 0 && ranges[after - 1].1 >= address
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn crossroads_short_forms_mean_what_its_manual_says() {
        for (short, long) in [
            ("10/8", "10.0.0.0/8"),
            ("192.168/16", "192.168.0.0/16"),
            ("192.168", "192.168.0.0/16"),
            ("192.168.*.*", "192.168.0.0/16"),
            ("192.168.*", "192.168.0.0/16"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("10.1.2.3/24", "10.1.2.0/24"),
            ("0/0", "0.0.0.0/0"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ] {
            assert_eq!(prefix(short).to_string(), long, "{short}");
        }
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for wrong in "~10.~.10~256~10.0.0.0.0~010.1~10.*.1~10.*/8~10/33~10/~::/129~::g~ten~\
            10.0.0.1/+8~*~10/8/8~1 0"
            .split('~')
        {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_deny_list_comes_first_and_an_allow_list_denies_all_others() {
        let rules = AccessRules::new(&[prefix("10/8")], &[prefix("10.1/16")]);
        assert!(rules.permit(ip("10.2.0.1")));
        assert!(rules.permit(ip("::ffff:10.2.0.1")));
        assert!(!rules.permit(ip("10.1.0.1")));
        assert!(!rules.permit(ip("11.0.0.1")));
        assert!(!rules.permit(ip("::1")));
        let only_deny = AccessRules::new(&[], &[prefix("10.1/16")]);
        assert!(only_deny.permit(ip("::1")) && !only_deny.permit(ip("10.1.255.255")));
        assert!(AccessRules::default().permit(ip("1.2.3.4")));
    }

    fn prefixes() -> impl Strategy<Value = Vec<Prefix>> {
        // Few addresses, so that they meet.
        let v4 = (0..4u32, 0..4u32, 0..=32u8).prop_map(|(high, low, bits)| {
            Prefix::new(Ipv4Addr::from_bits(high << 30 | low).into(), bits)
        });
        let v6 = (0..4u128, 0..4u128, 0..=128u8).prop_map(|(high, low, bits)| {
            Prefix::new(Ipv6Addr::from_bits(high << 126 | low).into(), bits)
        });
        proptest::collection::vec(prop_oneof![v4, v6], 0..6)
    }

    proptest! {
        #[test]
        fn a_prefix_is_written_and_read_the_same(list in prefixes()) {
            for one in list {
                prop_assert_eq!(prefix(&one.to_string()), one);
            }
        }

        #[test]
        fn rules_say_what_looking_through_the_lists_says(
            allow in prefixes(), deny in prefixes(), high in 0..4u32, low in 0..5u32,
        ) {
            let rules = AccessRules::new(&allow, &deny);
            let v4 = IpAddr::from(Ipv4Addr::from_bits(high << 30 | low));
            let v6 = IpAddr::from(Ipv6Addr::from_bits(u128::from(high) << 126 | u128::from(low)));
            for client in [v4, v6] {
                let on = |list: &[Prefix]| list.iter().any(|one| one.contains(client));
                let expected = !on(&deny) && (allow.is_empty() || on(&allow));
                prop_assert_eq!(rules.permit(client), expected);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-f:.*/]{0,24}|\\PC{0,12}") {
            let _ = text.parse::<Prefix>();
        }
    }
}
