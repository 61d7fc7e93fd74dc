//! HTTP/2 as a client: requests as header blocks, and sessions that carry streams.

mod fetch;
mod request;
mod session;

pub(crate) use fetch::fetch;
pub(crate) use request::EncodedRequest;
pub(crate) use session::Session;
