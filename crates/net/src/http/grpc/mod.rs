//! gRPC over HTTP/2, without I/O: messages, statuses and deadlines
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).
//!
//! A call is a POST to `/PACKAGE.SERVICE/METHOD`. Both bodies are [messages](MessageReader) with a
//! prefix; the status is in the trailers, or in the head of an answer without a body.

pub mod echo;
mod message;
mod protobuf;
pub mod reflection;
mod status;
mod timeout;

pub use message::{GrpcError, MESSAGE_BYTES_MAX, MessageReader, PREFIX_BYTES, Part, prefix};
pub use status::{OK, decode_message, encode_message, parse_status, status_name};
pub use timeout::{parse_timeout, timeout};

/// The media type of requests and answers. Answers may have `+proto` and the like behind it.
pub const CONTENT_TYPE: &str = "application/grpc";

/// Whether a `content-type` is one of gRPC: [`CONTENT_TYPE`], alone or with `+` or `;` behind it.
pub fn is_content_type(value: &[u8]) -> bool {
    let Some((start, rest)) = value.split_at_checked(CONTENT_TYPE.len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(CONTENT_TYPE.as_bytes())
        && matches!(rest.first(), None | Some(b'+' | b';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_may_name_the_format_of_messages() {
        for good in [
            "application/grpc",
            "application/grpc+proto",
            "Application/gRPC; a=b",
        ] {
            assert!(is_content_type(good.as_bytes()), "{good}");
        }
        for other in ["", "application/grpc-web", "text/html", "application/json"] {
            assert!(!is_content_type(other.as_bytes()), "{other}");
        }
    }
}
