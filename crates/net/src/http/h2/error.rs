//! Error codes, RFC 9113 section 7.

/// Why a stream or a connection was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// No error: a graceful end.
    NoError = 0,
    /// A rule of the protocol was broken that no other code names.
    ProtocolError,
    /// A fault of the sender of the code.
    InternalError,
    /// A flow-control window was exceeded or overflowed.
    FlowControlError,
    /// SETTINGS were not acknowledged in time.
    SettingsTimeout,
    StreamClosed,
    FrameSizeError,
    /// The stream was refused before anything was done for it.
    RefusedStream,
    /// The stream is no longer needed.
    Cancel,
    /// A header block that cannot be decoded.
    CompressionError,
    /// The connection of a CONNECT request was reset.
    ConnectError,
    /// The peer causes too much load.
    EnhanceYourCalm,
    /// TLS does not satisfy RFC 9113 section 9.2.
    InadequateSecurity,
    /// The request needs HTTP/1.1.
    Http11Required,
}

impl ErrorCode {
    const ALL: [(ErrorCode, &'static str); 14] = [
        (ErrorCode::NoError, "NO_ERROR"),
        (ErrorCode::ProtocolError, "PROTOCOL_ERROR"),
        (ErrorCode::InternalError, "INTERNAL_ERROR"),
        (ErrorCode::FlowControlError, "FLOW_CONTROL_ERROR"),
        (ErrorCode::SettingsTimeout, "SETTINGS_TIMEOUT"),
        (ErrorCode::StreamClosed, "STREAM_CLOSED"),
        (ErrorCode::FrameSizeError, "FRAME_SIZE_ERROR"),
        (ErrorCode::RefusedStream, "REFUSED_STREAM"),
        (ErrorCode::Cancel, "CANCEL"),
        (ErrorCode::CompressionError, "COMPRESSION_ERROR"),
        (ErrorCode::ConnectError, "CONNECT_ERROR"),
        (ErrorCode::EnhanceYourCalm, "ENHANCE_YOUR_CALM"),
        (ErrorCode::InadequateSecurity, "INADEQUATE_SECURITY"),
        (ErrorCode::Http11Required, "HTTP_1_1_REQUIRED"),
    ];

    /// The code of this number; `None` for one that RFC 9113 does not define.
    pub fn of(number: u32) -> Option<Self> {
        let index = usize::try_from(number).ok()?;
        Self::ALL.get(index).map(|(code, _)| *code)
    }

    /// Its name in RFC 9113.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// An error of the whole connection: it is answered with GOAWAY and closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct H2Error {
    /// The code for GOAWAY.
    pub code: ErrorCode,
    /// What is wrong.
    pub what: &'static str,
}

impl H2Error {
    pub(super) const fn new(code: ErrorCode, what: &'static str) -> Self {
        H2Error { code, what }
    }

    pub const fn protocol(what: &'static str) -> Self {
        Self::new(ErrorCode::ProtocolError, what)
    }

    pub(super) const fn size(what: &'static str) -> Self {
        Self::new(ErrorCode::FrameSizeError, what)
    }

    pub(super) const fn compression(what: &'static str) -> Self {
        Self::new(ErrorCode::CompressionError, what)
    }

    pub const fn calm(what: &'static str) -> Self {
        Self::new(ErrorCode::EnhanceYourCalm, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names() {
        for number in 0..14 {
            let code = ErrorCode::of(number).unwrap();
            assert_eq!(code as u32, number);
        }
        assert_eq!(ErrorCode::of(14), None);
        assert_eq!(ErrorCode::of(0xb), Some(ErrorCode::EnhanceYourCalm));
        assert_eq!(ErrorCode::Http11Required.name(), "HTTP_1_1_REQUIRED");
        let error = H2Error::protocol("SETTINGS of a stream");
        assert_eq!(error.to_string(), "SETTINGS of a stream");
    }
}
