//! The static table, RFC 7541 appendix A.

/// Number of its entries; the first has index 1.
pub(super) const LEN: usize = 61;

const NAME_MAX: usize = 27;

/// The static table; index 1 is at 0.
#[rustfmt::skip]
pub(super) static ENTRIES: [(&[u8], &[u8]); LEN] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Places in `ENTRIES`, those of each length of name together and in their order.
struct ByLength {
    places: [u8; LEN],
    /// Where each length begins in `places`; one more for the end.
    starts: [u8; NAME_MAX + 2],
}

static BY_LENGTH: ByLength = by_length();

const fn by_length() -> ByLength {
    let mut sorted = ByLength {
        places: [0; LEN],
        starts: [0; NAME_MAX + 2],
    };
    let mut length = 0;
    let mut count = 0;
    while length <= NAME_MAX {
        sorted.starts[length] = count as u8;
        let mut place = 0;
        while place < LEN {
            if ENTRIES[place].0.len() == length {
                sorted.places[count] = place as u8;
                count += 1;
            }
            place += 1;
        }
        length += 1;
    }
    sorted.starts[NAME_MAX + 1] = count as u8;
    sorted
}

/// What the static table has of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Name and value, at this index.
    Field(usize),
    /// The name, first at this index.
    Name(usize),
    Nothing,
}

pub(super) fn find(name: &[u8], value: &[u8]) -> Found {
    if name.len() > NAME_MAX {
        return Found::Nothing;
    }
    let starts = &BY_LENGTH.starts;
    let range = usize::from(starts[name.len()])..usize::from(starts[name.len() + 1]);
    let mut found = Found::Nothing;
    for &place in &BY_LENGTH.places[range] {
        let index = usize::from(place) + 1;
        let (entry_name, entry_value) = ENTRIES[usize::from(place)];
        if entry_name == name {
            if entry_value == value {
                return Found::Field(index);
            }
            if found == Found::Nothing {
                found = Found::Name(index);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_entry() {
        for (place, (name, value)) in ENTRIES.iter().enumerate() {
            assert_eq!(find(name, value), Found::Field(place + 1));
            let first = ENTRIES.iter().position(|entry| entry.0 == *name).unwrap();
            assert_eq!(find(name, b"else"), Found::Name(first + 1));
        }
        assert_eq!(find(b"", b""), Found::Nothing);
        assert_eq!(find(b"x-else", b""), Found::Nothing);
        assert_eq!(find(&[b'a'; NAME_MAX + 1], b""), Found::Nothing);
        let longest = ENTRIES.iter().map(|entry| entry.0.len()).max();
        assert_eq!(longest, Some(NAME_MAX));
    }
}
