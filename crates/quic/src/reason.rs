//! Why a connection was lost, for users.

use quinn_proto::ConnectionError;

/// Why there is no open connection, as the 'found' of a message. `name` gives the name of an
/// application error code.
pub fn reason(error: &ConnectionError, name: impl Fn(u64) -> Option<&'static str>) -> String {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            let code = u64::from(close.error_code);
            let name = name(code).map_or(format!("code {code:#x}"), str::to_owned);
            let text = String::from_utf8_lossy(&close.reason);
            match text.is_empty() {
                true => format!("the server closed the connection: {name}"),
                false => format!("the server closed the connection: {name}: {text}"),
            }
        }
        ConnectionError::ConnectionClosed(close) => {
            let code = u64::from(close.error_code);
            let what = match code {
                // The alert no_application_protocol, RFC 9001 section 4.8.
                0x178 => "it does not speak HTTP/3 (ALPN)".into(),
                2 => "CONNECTION_REFUSED".into(),
                _ => close.error_code.to_string(),
            };
            let text = String::from_utf8_lossy(&close.reason);
            match text.is_empty() {
                true => format!("the server ended the connection: {what}"),
                false => format!("the server ended the connection: {what}: {text}"),
            }
        }
        ConnectionError::TransportError(error) if !error.reason.is_empty() => error.reason.clone(),
        ConnectionError::VersionMismatch => "no version of QUIC that both sides speak".into(),
        ConnectionError::TimedOut => "no packet within the idle timeout".into(),
        ConnectionError::Reset => "the server has lost the connection's state (reset)".into(),
        other => other.to_string(),
    }
}
