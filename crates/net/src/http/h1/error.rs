/// Bytes that are not HTTP/1.1, or more of it than is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    #[error("not an HTTP/1.1 head")]
    Head,
    /// The head is longer than [`super::HEAD_BYTES_MAX`] or has too many fields.
    #[error("a head of more than 64 KiB or 100 fields")]
    HeadTooLarge,
    #[error("contradicting or malformed Content-Length")]
    ContentLength,
    /// A transfer coding other than `chunked`.
    #[error("a Transfer-Encoding other than chunked")]
    TransferEncoding,
    #[error("a malformed chunk")]
    Chunk,
    #[error("trailers of more than 16 KiB")]
    TrailersTooLarge,
    /// More interim responses than [`super::INTERIM_MAX`].
    #[error("too many interim (1xx) answers")]
    Interim,
    #[error("bytes behind the answer that no request asked for")]
    Unasked,
}
