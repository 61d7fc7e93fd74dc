//! Why a message is not passed on.

/// Why a request is refused. The text says what is wrong with it.
///
/// Most of these are ways to make two servers read the same bytes differently; RFC 9112 section
/// 11.2 calls that request smuggling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// A line ends with LF alone, or has a CR inside.
    #[error("a line that does not end with CR LF")]
    LineEnd,
    /// More than [`super::EMPTY_LINES_MAX`] empty lines.
    #[error("too many empty lines before the request")]
    EmptyLines,
    /// The request line is not method, target and version with a blank between each.
    #[error("malformed request line")]
    RequestLine,
    /// The method is no token.
    #[error("malformed method")]
    Method,
    /// The target has a form that the method does not allow, or a byte that no URI has.
    #[error("malformed request target")]
    Target,
    /// The request line does not end within [`super::HEAD_BYTES_MAX`].
    #[error("request target too long")]
    TargetTooLong,
    /// More than [`super::HEAD_BYTES_MAX`] bytes or [`super::HEADERS_MAX`] fields.
    #[error("a head of more than 64 KiB or 100 fields")]
    HeadTooLarge,
    /// Not HTTP/1.1 or HTTP/1.0.
    #[error("a version other than HTTP/1.1 and HTTP/1.0")]
    Version,
    /// CONNECT: this is no forward proxy.
    #[error("CONNECT is not offered here")]
    Connect,
    /// A field that goes on in the next line.
    #[error("a folded line")]
    FoldedLine,
    /// A blank before the colon.
    #[error("a blank in or behind a field's name")]
    BlankInName,
    /// A field without a name, without a colon, or with a name that is no token.
    #[error("malformed field name")]
    FieldName,
    /// A name that programs behind cannot tell from that of a framing field.
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
    /// Host is not a host with or without a port.
    #[error("malformed Host")]
    Host,
    /// Content-Length is no number.
    #[error("malformed Content-Length")]
    ContentLength,
    /// Content-Length more than once, or (in an answer) with different numbers.
    #[error("more than one Content-Length")]
    ContentLengthRepeated,
    /// Content-Length and Transfer-Encoding together.
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    /// A length that no counter holds.
    #[error("a body of 2^63 bytes or more")]
    BodyTooLarge,
    /// POST or PUT of HTTP/1.0 without Content-Length.
    #[error("an HTTP/1.0 request with a body needs Content-Length")]
    LengthRequired,
    /// Transfer-Encoding whose last coding is not `chunked`, or with it more than once.
    #[error("Transfer-Encoding does not end with one chunked")]
    TransferEncoding,
    /// A coding besides `chunked`.
    #[error("a transfer coding other than chunked")]
    CodingUnknown,
    /// HTTP/1.0 knows no transfer codings.
    #[error("Transfer-Encoding in HTTP/1.0")]
    CodingInHttp10,
    /// Connection names what is no token, what may not be dropped, or too much.
    #[error("malformed Connection")]
    Connection,
    /// Expect with anything but `100-continue`.
    #[error("an expectation other than 100-continue")]
    Expectation,
    /// The chunked coding is broken.
    #[error("malformed chunk")]
    Chunk,
    /// A trailer line that is no field.
    #[error("malformed trailer")]
    Trailer,
    /// A trailer that could be taken for a field of the head that frames or routes the message.
    #[error("a trailer that may only be in the head")]
    TrailerName,
    /// More trailers than are passed on.
    #[error("trailers of more than 16 KiB")]
    TrailersTooLarge,
}

impl Refusal {
    /// The status of the answer.
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

/// Why an upstream's answer is not passed on. The client is answered with 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BadResponse {
    /// Something that would be refused in a request too.
    #[error(transparent)]
    Head(#[from] Refusal),
    /// The first line is no status line of HTTP/1.1 or HTTP/1.0.
    #[error("malformed status line")]
    StatusLine,
    /// 101, and nobody asked for another protocol.
    #[error("status 101 without a request for an upgrade")]
    Switch,
}
