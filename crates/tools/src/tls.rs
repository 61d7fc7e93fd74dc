//! The words of OpenSSL for TLS, which several tools print.

/// `TLSv1.3`.
pub(super) fn version(text: &str) -> Option<String> {
    let version = text.trim().strip_prefix("TLSv")?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// `X25519 253 bits`, `ECDH P-256 256 bits`, `DH 2048 bits`.
pub(super) fn group(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [group, _, "bits"] | ["ECDH", group, _, "bits"] => Some(group.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_openssl_are_taken_apart() {
        assert_eq!(version("TLSv1.3").as_deref(), Some("1.3"));
        assert_eq!(version("TLSv"), None);
        for (text, wanted) in [
            ("X25519 253 bits", Some("X25519")),
            ("ECDH P-256 256 bits", Some("P-256")),
            ("DH 2048 bits", Some("DH")),
            ("none", None),
        ] {
            assert_eq!(group(text).as_deref(), wanted);
        }
    }
}
