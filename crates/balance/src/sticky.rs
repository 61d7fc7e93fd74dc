//! Sticky cookies.

/// The value of the first cookie of that name in a `Cookie` field's value.
///
/// Pairs are divided as RFC 6265 (5.4) writes them, and read as leniently as browsers write them:
/// space around a pair does not count, and a value may stand in quotes. Allocates nothing.
pub fn cookie<'h>(field: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    field.split(|byte| *byte == b';').find_map(|pair| {
        let pair = pair.trim_ascii();
        let at = memchr::memchr(b'=', pair)?;
        let (key, value) = (
            pair[..at].trim_ascii_end(),
            pair[at + 1..].trim_ascii_start(),
        );
        let value = match value {
            [b'"', inner @ .., b'"'] => inner,
            plain => plain,
        };
        (key == name).then_some(value)
    })
}

/// Appends the value of a `Set-Cookie` field for a session cookie on the whole host, hidden from
/// scripts.
///
/// Check name and value with [`is_name`] and [`is_value`] first.
pub fn set_cookie(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"; Path=/; HttpOnly");
}

/// Whether a text is a valid cookie name: a token of RFC 9110 (5.6.2).
pub fn is_name(text: &str) -> bool {
    net::http::is_token(text.as_bytes())
}

/// Whether a text is a valid cookie value: RFC 6265 (4.1.1), without quotes.
pub fn is_value(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found<'f>(field: &'f str, name: &str) -> Option<&'f str> {
        cookie(field.as_bytes(), name.as_bytes()).map(|value| std::str::from_utf8(value).unwrap())
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let field = "a=1; BalanceID=two;c = \"3\" ;empty=; =odd; a=later";
        assert_eq!(found(field, "a"), Some("1"));
        assert_eq!(found(field, "BalanceID"), Some("two"));
        assert_eq!(found(field, "c"), Some("3"));
        assert_eq!(found(field, "empty"), Some(""));
        assert_eq!(found(field, "balanceid"), None);
        assert_eq!(found(field, "alance"), None);
        assert_eq!(found("", "a"), None);
        assert_eq!(found("a", "a"), None);
        assert_eq!(found("x=a=1", "a"), None);
    }

    #[test]
    fn a_set_cookie_holds_for_the_whole_host() {
        let mut out = Vec::new();
        set_cookie("BalanceID", "two", &mut out);
        assert_eq!(out, b"BalanceID=two; Path=/; HttpOnly");
    }

    proptest! {
        #[test]
        fn what_was_set_is_found_again(name in "[!#-'*+.^-z|~0-9A-Z-]{1,12}",
                value in "[!#-+./0-:<-\\[\\]-~-]{0,12}", before in "[a-z=; \"]{0,20}") {
            prop_assume!(is_name(&name) && is_value(&value));
            prop_assume!(cookie(before.as_bytes(), name.as_bytes()).is_none());
            let field = format!("{before}; {name}={value}; last=1");
            prop_assert_eq!(found(&field, &name), Some(value.as_str()));
        }

        #[test]
        fn any_bytes_are_looked_through(field in proptest::collection::vec(any::<u8>(), 0..80),
                name in proptest::collection::vec(any::<u8>(), 0..4)) {
            let _ = cookie(&field, &name);
        }
    }
}
