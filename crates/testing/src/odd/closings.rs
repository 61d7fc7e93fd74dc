//! When odd clients end.

/// A request that is not whole when its client ends. Nothing of it may reach a back end as a whole.
pub struct Closing {
    pub what: &'static str,
    /// What is sent before the end of the connection, if HTTP/1.1 has this moment.
    pub h1: Option<&'static [u8]>,
    pub h2: Option<StreamEnd>,
    pub section: &'static str,
}

/// How far a request to POST 5 bytes comes over HTTP/2.
#[derive(Clone, Copy)]
pub struct StreamEnd {
    /// Bytes of the frame with its head; `None` for all.
    pub head: Option<usize>,
    pub data: &'static [u8],
    /// The code of RST_STREAM; `None` for the end of the connection.
    pub reset: Option<u32>,
}

const fn end_at(data: &'static [u8]) -> Option<StreamEnd> {
    Some(StreamEnd {
        head: None,
        data,
        reset: None,
    })
}

const fn reset_at(data: &'static [u8], code: u32) -> Option<StreamEnd> {
    Some(StreamEnd {
        head: None,
        data,
        reset: Some(code),
    })
}

const CUT: &str = "RFC 9112, 8; RFC 9113, 8.1.1";
const RESET: &str = "RFC 9113, 8.1";

macro_rules! chunked {
    ($content:literal) => {
        Some(
            concat!(
                "POST /N HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                $content
            )
            .as_bytes(),
        )
    };
}

#[rustfmt::skip]
pub const CLOSINGS: [Closing; 14] = [
    Closing { what: "end in the request line", h1: Some(b"POST /N HT"), h2: None, section: CUT },
    Closing { what: "end in a field", h1: Some(b"POST /N HTTP/1.1\r\nHo"), h2: None, section: CUT },
    Closing { what: "end in the head", h1: Some(b"POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"), h2: Some(StreamEnd { head: Some(20), data: b"", reset: None }), section: CUT },
    Closing { what: "end before the content", h1: Some(b"POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"), h2: end_at(b""), section: CUT },
    Closing { what: "end in the content", h1: Some(b"POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel"), h2: end_at(b"hel"), section: CUT },
    Closing { what: "end before END_STREAM", h1: None, h2: end_at(b"hello"), section: "RFC 9113, 8.1" },
    Closing { what: "end in a size", h1: chunked!("5"), h2: None, section: CUT },
    Closing { what: "end in a chunk", h1: chunked!("5\r\nhel"), h2: None, section: CUT },
    Closing { what: "end before the last chunk", h1: chunked!("5\r\nhello\r\n"), h2: None, section: CUT },
    Closing { what: "end before the last line", h1: chunked!("5\r\nhello\r\n0\r\n"), h2: None, section: CUT },
    Closing { what: "end in a trailer", h1: chunked!("5\r\nhello\r\n0\r\nX-S"), h2: None, section: CUT },
    Closing { what: "reset before the content", h1: None, h2: reset_at(b"", 8), section: RESET },
    Closing { what: "reset in the content", h1: None, h2: reset_at(b"hel", 8), section: RESET },
    Closing { what: "reset in the content: NO_ERROR", h1: None, h2: reset_at(b"hello", 0), section: RESET },
];
