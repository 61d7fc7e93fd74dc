//! Converts messages between HTTP/2 and HTTP/1.1, without I/O.
//!
//! [`net::h2`] has refused what cannot be a request or a response. What is written here is read by
//! [`crate::http`] like any message of HTTP/1.1, so that a stream is dispatched, rewritten, limited
//! and logged like a connection.

mod from_http_1;
mod to_http_1;
mod websocket;

pub(crate) use from_http_1::{Message, Part};
pub(crate) use to_http_1::{Chunk, chunk, last_chunk, write_request, write_response};
pub(crate) use websocket::{asks_websocket, new_key, write_switch};
