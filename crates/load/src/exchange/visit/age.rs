//! How old an answer says it is.

/// The highest age: a higher one counts as this (RFC 9111, 1.2.2).
const HIGHEST_S: u64 = 1 << 31;

/// What the head of an answer says of its age, s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerAge {
    pub(crate) age_s: Option<u64>,
    pub(crate) max_age_s: Option<u64>,
}

impl AnswerAge {
    pub(super) fn take_field(&mut self, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(b"age") {
            self.age_s = seconds(value);
        } else if name.eq_ignore_ascii_case(b"cache-control") {
            for directive in value.split(|byte| *byte == b',') {
                if let Some((name, value)) = directive.trim_ascii().split_at_checked(8)
                    && name.eq_ignore_ascii_case(b"max-age=")
                {
                    self.max_age_s = seconds(value);
                }
            }
        }
    }
}

/// `None` if it is no number.
fn seconds(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(value).ok().filter(|_| is_number)?;
    // A number that does not fit is a high age, too.
    Some(number.parse().unwrap_or(HIGHEST_S).min(HIGHEST_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_limits_are_read_and_nonsense_is_none() {
        let of = |fields: &[(&str, &str)]| {
            let mut age = AnswerAge::default();
            for (name, value) in fields {
                age.take_field(name.as_bytes(), value.as_bytes());
            }
            (age.age_s, age.max_age_s)
        };
        assert_eq!(of(&[("Age", "12")]), (Some(12), None));
        let limit = ("Cache-Control", "public,  Max-Age=5, s-maxage=7");
        assert_eq!(of(&[("age", "0"), limit]), (Some(0), Some(5)));
        assert_eq!(of(&[("Age", "99999999999999999999")]).0, Some(HIGHEST_S));
        for wrong in ["", "-1", "+1", "1.5", "1, 2", "a"] {
            assert_eq!(of(&[("Age", wrong)]), (None, None), "{wrong}");
        }
        assert_eq!(of(&[("Cache-Control", "max-age=x, no-store")]).1, None);
    }
}
