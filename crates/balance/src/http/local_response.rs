//! Responses of the balancer itself.

use std::io::Write as _;

/// Appends a response with a line of text, after which the connection closes.
///
/// `text` has no line end. It may be sent in response to HEAD too, as nothing follows.
pub fn text_response(status: u16, text: &[u8], out: &mut Vec<u8>) {
    // Writing into a vector cannot fail.
    let _ = write!(
        out,
        "HTTP/1.1 {status} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        reason(status),
        text.len() + 1
    );
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// Reason phrases (RFC 9110 section 15).
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        // Clients ignore it.
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use crate::http::Refusal;
    use net::http::{Progress, ResponseParser};

    use super::*;

    #[test]
    fn a_refusal_is_one_complete_answer_that_ends_the_connection() {
        for refusal in [
            Refusal::LineEnd,
            Refusal::LengthAndCoding,
            Refusal::HeadTooLarge,
            Refusal::Version,
            Refusal::LengthRequired,
        ] {
            let mut out = Vec::new();
            text_response(refusal.status(), refusal.to_string().as_bytes(), &mut out);
            let mut parser = ResponseParser::new(false);
            let mut body = Vec::new();
            let end = parser.feed(&out, |bytes| body.extend_from_slice(bytes));
            assert_eq!(end, Ok(Progress::Done { taken: out.len() }));
            assert_eq!(parser.head().status, refusal.status());
            assert!(!parser.head().keep_alive);
            assert_eq!(String::from_utf8(body).unwrap(), format!("{refusal}\n"));
        }
    }
}
