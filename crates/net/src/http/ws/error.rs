//! Why a connection is ended.

/// What in a peer's bytes breaks a rule. The connection is to be closed with [`WsError::close_code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WsError {
    #[error("a frame with reserved bits that no extension has defined")]
    Reserved,
    #[error("a frame with an unknown opcode")]
    Opcode,
    #[error("a masked frame from a server")]
    Masked,
    #[error("a frame without a mask from a client")]
    NotMasked,
    #[error("a length that is not in its shortest form")]
    LengthForm,
    #[error("a frame of 2^63 bytes or more")]
    Length,
    #[error("a control frame of more than 125 bytes")]
    LongControl,
    #[error("a fragmented control frame")]
    FragmentedControl,
    #[error("a continuation without a message")]
    Continuation,
    #[error("a new message within a fragmented one")]
    Interleaved,
    #[error("a message that is longer than the limit")]
    TooLong,
    #[error("text that is not UTF-8")]
    Utf8,
    #[error("a close frame with half a code")]
    CloseLength,
    #[error("a close frame with a code that must not be sent")]
    CloseCode,
    #[error("a close frame whose reason is not UTF-8")]
    CloseUtf8,
    #[error("compressed data that cannot be decompressed")]
    Compressed,
}

impl WsError {
    /// The code to close the connection with (RFC 6455 7.4.1).
    pub fn close_code(self) -> CloseCode {
        match self {
            WsError::TooLong => CloseCode::TOO_LONG,
            WsError::Utf8 | WsError::CloseUtf8 => CloseCode::INVALID_CONTENT,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }
}

/// The code of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(pub u16);

impl CloseCode {
    pub const NORMAL: CloseCode = CloseCode(1000);
    pub const GOING_AWAY: CloseCode = CloseCode(1001);
    pub const PROTOCOL_ERROR: CloseCode = CloseCode(1002);
    pub const INVALID_CONTENT: CloseCode = CloseCode(1007);
    pub const TOO_LONG: CloseCode = CloseCode(1009);

    /// Whether an end may send it (RFC 6455 7.4, and IANA's registry for 1012 to 1014).
    pub fn may_be_sent(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}
