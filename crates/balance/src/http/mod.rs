//! HTTP/1.1 as a proxy reads it and passes it on: heads, changes of heads, and the ends of bodies.
//!
//! There is no input, output, clock or event loop here; whoever has bytes asks what they mean:
//!
//! 1. [`HeadScan`] tells when a head that comes in pieces is worth reading.
//! 2. [`read_request`] or [`read_response`] reads the head. What could be read in two ways is
//!    refused (RFC 9112 section 11.2); [`refusal_response`] makes the answer to that.
//! 3. [`rewrite_request`] or [`rewrite_response`] says how the head goes on: mostly as it came
//!    ([`Rewritten::AsIs`]), so that the received bytes can be sent untouched.
//! 4. A [`BodyTracker`] follows the body and says where the message ends.
//!
//! Reading a head and passing it on as it is allocate nothing; a changed head is appended to a
//! vector of the caller.

mod edits;
mod fields;
mod head_info;
mod local_response;
mod refusal;
mod request;
mod response;
mod rewrite;
mod scan;
mod target;
mod tracker;

pub use edits::{Edit, EditError, EditKind};
pub use fields::{Field, Fields};
pub use local_response::{refusal_response, text_response};
pub use refusal::{BadResponse, Refusal};
pub use request::{Method, RequestHead, read_request};
pub use response::{RequestContext, ResponseHead, read_response};
pub use rewrite::{
    BodyPass, ResponseRewrite, Rewritten, ToClient, ToUpstream, rewrite_request, rewrite_response,
};
pub use scan::HeadScan;
pub use tracker::{BodyTracker, Direction, Framing, Taken};

pub use net::http::{HEAD_BYTES_MAX, HEADERS_MAX, INTERIM_MAX};

/// Most empty lines that are dropped before a request (RFC 9112 2.2 asks for at least one).
pub const EMPTY_LINES_MAX: usize = 2;
/// Most names in a message's Connection fields besides those that are understood.
pub const CONNECTION_NAMES_MAX: usize = 32;
