//! Why a message is not forwarded.

/// Why a request is refused.
///
/// Most of these are ways to make two servers parse the same bytes differently: request smuggling
/// (RFC 9112 section 11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// A line ends with a bare LF, or contains a CR.
    #[error("a line that does not end with CR LF")]
    LineEnd,
    /// More than two empty lines.
    #[error("too many empty lines before the request")]
    EmptyLines,
    /// The request line is not method, target and version, separated by single spaces.
    #[error("malformed request line")]
    RequestLine,
    /// The method is not a token.
    #[error("malformed method")]
    Method,
    /// The target has a form the method does not allow, or an invalid character.
    #[error("malformed request target")]
    Target,
    /// The request line is longer than [`super::HEAD_BYTES_MAX`].
    #[error("request target too long")]
    TargetTooLong,
    /// More than [`super::HEAD_BYTES_MAX`] bytes or [`super::HEADERS_MAX`] fields.
    #[error("a head of more than 64 KiB or 100 fields")]
    HeadTooLarge,
    /// Another major version than 1.
    #[error("a version other than HTTP/1.1 and HTTP/1.0")]
    Version,
    /// CONNECT: this is not a forward proxy.
    #[error("CONNECT is not offered here")]
    Connect,
    /// An obsolete folded line.
    #[error("a folded line")]
    FoldedLine,
    /// Whitespace before the colon.
    #[error("a blank in or behind a field's name")]
    BlankInName,
    /// No name, no colon, or the name is not a token.
    #[error("malformed field name")]
    FieldName,
    /// A name that programs behind the proxy may take for a framing field.
    #[error("a field name that is easily taken for another")]
    LookalikeName,
    /// A control character in a value.
    #[error("a control character in a field's value")]
    FieldValue,
    /// HTTP/1.1 without Host.
    #[error("no Host")]
    HostMissing,
    /// Host more than once.
    #[error("more than one Host")]
    HostRepeated,
    /// Host is not a valid host with or without a port.
    #[error("malformed Host")]
    Host,
    /// Content-Length is not a number.
    #[error("malformed Content-Length")]
    ContentLength,
    /// Repeated Content-Length; in a response, only with different values.
    #[error("more than one Content-Length")]
    ContentLengthRepeated,
    /// Content-Length and Transfer-Encoding together.
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    /// The length does not fit a counter.
    #[error("a body of 2^63 bytes or more")]
    BodyTooLarge,
    /// POST or PUT of HTTP/1.0 without Content-Length.
    #[error("an HTTP/1.0 request with a body needs Content-Length")]
    LengthRequired,
    /// Transfer-Encoding does not end with `chunked`, or has it more than once.
    #[error("Transfer-Encoding does not end with one chunked")]
    TransferEncoding,
    /// A coding other than `chunked`.
    #[error("a transfer coding other than chunked")]
    CodingUnknown,
    /// HTTP/1.0 has no transfer codings.
    #[error("Transfer-Encoding in HTTP/1.0")]
    CodingInHttp10,
    /// Connection has an invalid name, one that must not be dropped, or too many.
    #[error("malformed Connection")]
    Connection,
    /// An expectation other than `100-continue`.
    #[error("an expectation other than 100-continue")]
    Expectation,
    /// Malformed chunked coding.
    #[error("malformed chunk")]
    Chunk,
    /// A malformed trailer.
    #[error("malformed trailer")]
    Trailer,
    /// A trailer that could be taken for a field that frames or routes the message.
    #[error("a trailer that may only be in the head")]
    TrailerName,
    /// Trailers over the limit.
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
    /// Something that would be refused in a request too.
    #[error(transparent)]
    Head(#[from] Refusal),
    /// Not a status line of HTTP/1.1 or HTTP/1.0.
    #[error("malformed status line")]
    StatusLine,
    /// Status 101 without a request for an upgrade.
    #[error("status 101 without a request for an upgrade")]
    Switch,
    /// Success without 101, where the client can only take it for the agreement to its WebSocket.
    #[error("no agreement to the WebSocket")]
    NoSwitch,
}
