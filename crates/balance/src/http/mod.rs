//! HTTP/1.1 for a proxy: parsing and rewriting heads, and finding the ends of bodies.
//!
//! 1. [`HeadScan`] says when an incomplete head is worth parsing again.
//! 2. [`read_request`] or [`read_response`] parses the head and refuses whatever is ambiguous (RFC
//!    9112 section 11.2); [`text_response`] writes the response to that.
//! 3. [`rewrite_request`] or [`rewrite_response`] says how to forward the head: mostly unchanged
//!    ([`Rewritten::AsIs`]), so that the received bytes can be sent.
//! 4. A [`BodyTracker`] finds the end of the message.
//!
//! There is no I/O, clock or event loop here. Parsing a head and forwarding it unchanged allocate
//! nothing; a changed head is appended to the caller's vector.

mod direction;
mod guarded;
mod head;
mod local_response;
mod refusal;
mod rewrite;
mod tracker;

pub use direction::Direction;
pub use guarded::GuardedNames;
pub use head::{
    Field, Fields, HeadScan, Method, RequestContext, RequestHead, ResponseHead, read_request,
    read_response,
};
pub(crate) use local_response::reason;
pub use local_response::text_response;
pub use refusal::{BadResponse, Refusal};
pub use rewrite::{
    BodyPass, Edit, EditError, EditKind, ResponseRewrite, Rewritten, ToClient, ToUpstream,
    rewrite_request, rewrite_response,
};
pub use tracker::{BodyTracker, Taken};

pub use net::http::{Framing, HEAD_BYTES_MAX, HEADERS_MAX, INTERIM_MAX};
