//! HTTP/1.1: heads by `httparse`, framing of bodies by RFC 9112 section 6.
//!
//! Both parsers are incremental; any split of the bytes gives the same result. Heads, chunk lines
//! and trailers are bounded.

mod body;
mod error;
mod head;
mod request;
mod response;

pub use body::{BodySink, MessageBody, content_length};
pub use error::HttpError;
pub use request::{Request, RequestParser};
pub use response::{Progress, ResponseHead, ResponseParser, may_have_content, response_fields};

/// Longest head that is accepted, in bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most header fields that are accepted in one head.
pub const HEADERS_MAX: usize = 100;
/// Most interim (1xx) answers that are accepted before the final one.
pub const INTERIM_MAX: u8 = 16;
