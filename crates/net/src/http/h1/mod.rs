//! HTTP/1.1: heads by `httparse`, framing of bodies by RFC 9112 section 6.
//!
//! Both parsers are incremental; any split of the bytes gives the same result. Heads, chunk lines
//! and trailers are bounded.

mod body;
mod error;
mod framing;
mod head;
mod known;
mod request;
mod response;
mod syntax;

pub use body::{BodySink, MessageBody};
pub use error::HttpError;
pub use framing::{Framing, content_length, may_have_content};
pub use head::{HEAD_BYTES_MAX, HEADERS_MAX};
pub use request::{Request, RequestParser};
pub use response::{
    INTERIM_MAX, Progress, ResponseHead, ResponseParser, ResponsePart, response_fields,
};
pub use syntax::{has_empty_line, is_control, is_token, is_token_byte, list};
