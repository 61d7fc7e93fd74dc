//! HTTP/2 as a client: requests as header blocks, and sessions that carry streams.

mod fetch;
#[cfg(test)]
mod mutated;
mod request;
mod session;

pub(crate) use fetch::fetch;
pub(crate) use request::EncodedRequest;
pub(crate) use session::Session;
