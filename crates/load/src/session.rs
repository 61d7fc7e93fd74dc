//! What sessions of HTTP/2 and HTTP/3 have in common.

/// What arrived on a session's streams; `place` is the number that the request was sent with.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// The head of the final answer.
    Head { place: u32, status: u16, bytes: u64 },
    /// A piece of the body.
    Body { place: u32, bytes: &'a [u8] },
    /// The answer is complete.
    End { place: u32 },
    /// The server has reset the stream.
    Reset { place: u32, code: u64 },
    /// The server has not processed the request (RFC 9113 8.7, RFC 9114 4.1.1): it can be sent again.
    NotProcessed { place: u32 },
}

/// Header fields in order, names in lower case.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// Why no request can be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The server's limit of concurrent streams.
    Full,
    /// The connection ends: a GOAWAY, or no stream numbers are left.
    Ending,
}
