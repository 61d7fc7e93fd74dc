//! Why a message is not forwarded.

/// Why a request is refused.
///
/// Most of these are ways to make two servers parse the same bytes differently: request smuggling
/// (RFC 9112 section 11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    #[error("a line that does not end with CR LF")]
    LineEnd,
    #[error("too many empty lines before the request")]
    EmptyLines,
    #[error("malformed request line")]
    RequestLine,
    #[error("malformed method")]
    Method,
    #[error("malformed request target")]
    Target,
    /// The request line is longer than [`super::HEAD_BYTES_MAX`].
    #[error("request target too long")]
    TargetTooLong,
    /// More than [`super::HEAD_BYTES_MAX`] bytes or [`super::HEADERS_MAX`] fields.
    #[error("a head of more than 64 KiB or 100 fields")]
    HeadTooLarge,
    #[error("a version other than HTTP/1.1 and HTTP/1.0")]
    Version,
    #[error("CONNECT is not offered here")]
    Connect,
    #[error("a folded line")]
    FoldedLine,
    #[error("a blank in or behind a field's name")]
    BlankInName,
    #[error("malformed field name")]
    FieldName,
    #[error("a field name that is easily taken for another")]
    LookalikeName,
    #[error("a control character in a field's value")]
    FieldValue,
    #[error("no Host")]
    HostMissing,
    #[error("more than one Host")]
    HostRepeated,
    #[error("malformed Host")]
    Host,
    #[error("malformed Content-Length")]
    ContentLength,
    #[error("more than one Content-Length")]
    ContentLengthRepeated,
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    #[error("a body of 2^63 bytes or more")]
    BodyTooLarge,
    #[error("an HTTP/1.0 request with a body needs Content-Length")]
    LengthRequired,
    /// Transfer-Encoding does not end with `chunked`, or has it more than once.
    #[error("Transfer-Encoding does not end with one chunked")]
    TransferEncoding,
    /// A coding other than `chunked`.
    #[error("a transfer coding other than chunked")]
    CodingUnknown,
    #[error("Transfer-Encoding in HTTP/1.0")]
    CodingInHttp10,
    /// Connection has an invalid name, one that must not be dropped, or too many.
    #[error("malformed Connection")]
    Connection,
    /// An expectation other than `100-continue`.
    #[error("an expectation other than 100-continue")]
    Expectation,
    #[error("malformed chunk")]
    Chunk,
    #[error("malformed trailer")]
    Trailer,
    #[error("a trailer that may only be in the head")]
    TrailerName,
    #[error("trailers of more than 16 KiB")]
    TrailersTooLarge,
}

impl Refusal {
    /// The status of the response.
    pub fn status(self) -> u16 {
        match self {
            Refusal::LengthRequired => 411,
            Refusal::BodyTooLarge => 413,
            Refusal::TargetTooLong => 414,
            Refusal::Expectation => 417,
            Refusal::HeadTooLarge | Refusal::TrailersTooLarge => 431,
            Refusal::Connect | Refusal::CodingUnknown => 501,
            Refusal::Version => 505,
            _ => 400,
        }
    }
}

/// Why a response is not forwarded. The client gets a 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BadResponse {
    #[error(transparent)]
    Head(#[from] Refusal),
    #[error("malformed status line")]
    StatusLine,
    #[error("status 101 without a request for an upgrade")]
    Switch,
    #[error("no agreement to the WebSocket")]
    NoSwitch,
}
