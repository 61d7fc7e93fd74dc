/// Bytes that are not HTTP/1.1, or more of it than is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The head is not HTTP/1.1.
    #[error("not an HTTP/1.1 head")]
    Head,
    /// The head is longer than [`super::HEAD_BYTES_MAX`] or has too many fields.
    #[error("a head of more than 64 KiB or 100 fields")]
    HeadTooLarge,
    /// Several lengths that differ, a length that is no number, or a length beside chunks.
    #[error("contradicting or malformed Content-Length")]
    ContentLength,
    /// A transfer coding other than `chunked`.
    #[error("a Transfer-Encoding other than chunked")]
    TransferEncoding,
    /// A chunk whose size line is malformed, too long, or too large a number, or a line of the
    /// chunked coding that does not end with CR and LF.
    #[error("a malformed chunk")]
    Chunk,
    /// More trailer fields than are accepted.
    #[error("trailers of more than 16 KiB")]
    TrailersTooLarge,
    /// More interim responses than [`super::INTERIM_MAX`].
    #[error("too many interim (1xx) answers")]
    Interim,
    /// Bytes of a response without a request.
    #[error("bytes behind the answer that no request asked for")]
    Unasked,
}
