//! HTTP/3 as a client: requests as frames, and sessions that carry streams of a QUIC connection.

mod fetch;
mod request;
mod session;

pub(crate) use fetch::fetch;
pub(crate) use request::{EncodedRequest, frames, frames_of_shared};
pub(crate) use session::{Polled, Session, error_name};
