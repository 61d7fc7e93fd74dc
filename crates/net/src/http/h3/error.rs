//! Error codes, RFC 9114 section 8.1 and RFC 9204 section 6.

/// Why a stream or a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ErrorCode {
    NoError = 0x100,
    GeneralProtocolError,
    InternalError,
    StreamCreationError,
    ClosedCriticalStream,
    FrameUnexpected,
    FrameError,
    ExcessiveLoad,
    IdError,
    SettingsError,
    MissingSettings,
    RequestRejected,
    RequestCancelled,
    RequestIncomplete,
    MessageError,
    ConnectError,
    VersionFallback,
    QpackDecompressionFailed = 0x200,
    QpackEncoderStreamError,
    QpackDecoderStreamError,
}

impl ErrorCode {
    const ALL: [(ErrorCode, &'static str); 20] = [
        (ErrorCode::NoError, "H3_NO_ERROR"),
        (ErrorCode::GeneralProtocolError, "H3_GENERAL_PROTOCOL_ERROR"),
        (ErrorCode::InternalError, "H3_INTERNAL_ERROR"),
        (ErrorCode::StreamCreationError, "H3_STREAM_CREATION_ERROR"),
        (ErrorCode::ClosedCriticalStream, "H3_CLOSED_CRITICAL_STREAM"),
        (ErrorCode::FrameUnexpected, "H3_FRAME_UNEXPECTED"),
        (ErrorCode::FrameError, "H3_FRAME_ERROR"),
        (ErrorCode::ExcessiveLoad, "H3_EXCESSIVE_LOAD"),
        (ErrorCode::IdError, "H3_ID_ERROR"),
        (ErrorCode::SettingsError, "H3_SETTINGS_ERROR"),
        (ErrorCode::MissingSettings, "H3_MISSING_SETTINGS"),
        (ErrorCode::RequestRejected, "H3_REQUEST_REJECTED"),
        (ErrorCode::RequestCancelled, "H3_REQUEST_CANCELLED"),
        (ErrorCode::RequestIncomplete, "H3_REQUEST_INCOMPLETE"),
        (ErrorCode::MessageError, "H3_MESSAGE_ERROR"),
        (ErrorCode::ConnectError, "H3_CONNECT_ERROR"),
        (ErrorCode::VersionFallback, "H3_VERSION_FALLBACK"),
        (
            ErrorCode::QpackDecompressionFailed,
            "QPACK_DECOMPRESSION_FAILED",
        ),
        (
            ErrorCode::QpackEncoderStreamError,
            "QPACK_ENCODER_STREAM_ERROR",
        ),
        (
            ErrorCode::QpackDecoderStreamError,
            "QPACK_DECODER_STREAM_ERROR",
        ),
    ];

    /// The code of this number; `None` for one that neither RFC defines.
    pub fn of(number: u64) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(code, _)| *code as u64 == number)
            .map(|(code, _)| *code)
    }

    /// Its name in the RFCs.
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(code, _)| *code == self)
            .map_or("unknown", |(_, name)| name)
    }
}

/// An error of the whole connection, which has to be closed with this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct H3Error {
    /// The code to close the connection with.
    pub code: ErrorCode,
    /// What is wrong.
    pub what: &'static str,
}

impl H3Error {
    pub const fn new(code: ErrorCode, what: &'static str) -> Self {
        H3Error { code, what }
    }

    pub(super) const fn unexpected(what: &'static str) -> Self {
        Self::new(ErrorCode::FrameUnexpected, what)
    }

    pub(super) const fn frame(what: &'static str) -> Self {
        Self::new(ErrorCode::FrameError, what)
    }

    pub(super) const fn decompression(what: &'static str) -> Self {
        Self::new(ErrorCode::QpackDecompressionFailed, what)
    }
}
