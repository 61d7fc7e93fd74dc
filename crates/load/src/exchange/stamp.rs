//! What a sender that knows its pace writes at the start of its messages: `weigh N DUE_NS `.

use std::io::Write as _;

/// The name of the header field with the ID of the sender's clock.
pub(crate) const CLOCK_FIELD: &str = "weigh-clock";
/// What a stamp begins with.
pub(crate) const STAMP: &[u8] = b"weigh ";
/// The longest stamp: two numbers of 20 digits, each with a space.
pub(crate) const STAMP_MAX: usize = STAMP.len() + 2 * 21;
/// No sender counts so far; a greater number is no stamp, but somebody's text.
const NUMBER_MAX: u64 = 1 << 40;

/// The stamp of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// From 0 in each exchange.
    pub(crate) number: u64,
    /// ns of the sender's CLOCK_MONOTONIC.
    pub(crate) due_ns: u64,
}

impl Stamp {
    /// Reads the stamp at the start of a message, of which [`STAMP_MAX`] bytes are enough.
    pub(crate) fn read(message: &[u8]) -> Option<Stamp> {
        let (number, rest) = number(message.strip_prefix(STAMP)?)?;
        let (due_ns, _) = self::number(rest)?;
        (number <= NUMBER_MAX).then_some(Stamp { number, due_ns })
    }
}

impl Stamp {
    /// Writes it at the end of a text.
    pub(crate) fn write(self, text: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ = write!(text, "weigh {} {} ", self.number, self.due_ns);
    }

    /// Whether this may be the beginning of a stamp whose rest has not come.
    pub(crate) fn is_begun(text: &[u8]) -> bool {
        let Some(rest) = text.strip_prefix(STAMP) else {
            return STAMP.starts_with(text);
        };
        let mut numbers = rest.splitn(3, |byte| *byte == b' ');
        let are_digits = |one: &[u8]| one.len() <= 20 && one.iter().all(u8::is_ascii_digit);
        let (first, second) = (numbers.next(), numbers.next());
        numbers.next().is_none()
            && first.is_none_or(are_digits)
            && second.is_none_or(are_digits)
            && !(second.is_some() && first.is_some_and(<[u8]>::is_empty))
    }
}

/// A number and the space behind it, and what follows.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    let digits = text
        .get(..end)
        .filter(|one| (1..=20).contains(&one.len()))?;
    let number = digits.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })?;
    Some((number, &text[end + 1..]))
}

/// Whether this is the ID of this machine's clock, which lasts as long as its boot: the clocks of both
/// sides are the same then.
pub(crate) fn is_own_clock(id: &[u8]) -> bool {
    use std::sync::LazyLock;
    static OWN: LazyLock<Option<String>> = LazyLock::new(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    });
    OWN.as_ref()
        .is_some_and(|own| own.as_bytes() == id.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_from_the_start_of_a_message_only() {
        let read = |text: &str| Stamp::read(text.as_bytes()).map(|one| (one.number, one.due_ns));
        assert_eq!(read("weigh 7 123456789 xxxx"), Some((7, 123_456_789)));
        assert_eq!(read("weigh 0 18446744073709551615 "), Some((0, u64::MAX)));
        for text in [
            "",
            "weigh ",
            "weigh 7",
            "weigh 7 12",
            "weigh 7 12\n",
            "weigh -1 12 ",
            "weigh  12 ",
            "weigh 7 18446744073709551616 ",
            "weigh 2199023255552 1 ",
            "so weigh 7 12 ",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        for (text, is_begun) in [
            ("", true),
            ("wei", true),
            ("weigh ", true),
            ("weigh 12", true),
            ("weigh 12 ", true),
            ("weigh 12 3", true),
            ("weigh 12 3 ", false),
            ("weigh x", false),
            ("weigh  1", false),
            ("weigh 1 x", false),
        ] {
            assert_eq!(Stamp::is_begun(text.as_bytes()), is_begun, "{text:?}");
        }
        assert!(!Stamp::is_begun(
            format!("weigh {}", "9".repeat(21)).as_bytes()
        ));
        let longest = format!("weigh {0} {0} ", u64::MAX);
        assert_eq!(longest.len(), STAMP_MAX);
    }

    #[test]
    fn the_clock_of_this_machine_is_known() {
        let own = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
        assert!(is_own_clock(&own));
        assert!(!is_own_clock(b""));
        assert!(!is_own_clock(b"00000000-0000-0000-0000-000000000000"));
    }
}
