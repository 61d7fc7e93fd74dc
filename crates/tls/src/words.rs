//! rustls' errors in the words of a user.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// What was found where a session was expected.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "a certificate by an authority that is not trusted (UnknownIssuer)".into()
        }
        // Another authority of the same name.
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "a certificate that the trusted authority has not signed (BadSignature)".into()
        }
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "an authority's own certificate (CA:TRUE), which no server may use \
             (CaUsedAsEndEntity)"
                .into()
        }
        Error::InvalidCertificate(_) => format!("an {error}"),
        Error::InvalidMessage(_) => format!("bytes that are not TLS ({error})"),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity => format!(
                "the alert {alert:?}: no version, cipher suite or group that both sides accept"
            ),
            _ => format!("the alert {alert:?}"),
        },
        _ => error.to_string(),
    }
}

/// The rustls error that an I/O error carries.
fn inner(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref::<Error>()
}

/// An I/O error of a blocking session with our words.
pub(crate) fn in_words(error: io::Error) -> io::Error {
    match inner(&error) {
        Some(cause) => io::Error::new(
            error.kind(),
            NoSession {
                is_untrusted: matches!(cause, Error::InvalidCertificate(_)),
                found: words(cause),
            },
        ),
        None => error,
    }
}

/// A session that did not come about.
#[derive(Debug, thiserror::Error)]
#[error("expected a TLS session, found {found}")]
struct NoSession {
    found: String,
    is_untrusted: bool,
}

/// Whether a request failed because the server's certificate is not accepted.
pub fn is_untrusted(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|e| e.downcast_ref::<NoSession>());
    cause.is_some_and(|one| one.is_untrusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_was_found() {
        let untrusted = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = in_words(io::Error::other(untrusted));
        assert!(is_untrusted(&error));
        assert_eq!(
            error.to_string(),
            "expected a TLS session, found a certificate by an authority that is not trusted \
             (UnknownIssuer)"
        );
        let expired = Error::InvalidCertificate(CertificateError::Expired);
        assert!(words(&expired).starts_with("an invalid peer certificate: "));
        let refused = words(&Error::AlertReceived(AlertDescription::HandshakeFailure));
        assert!(refused.contains("that both sides accept"), "{refused}");
        assert!(!is_untrusted(&in_words(io::Error::other(
            Error::DecryptError
        ))));
        assert!(!is_untrusted(&io::ErrorKind::TimedOut.into()));
    }
}
