//! HTTP: sessions of its versions 2 and 3, and a single request in any version.

mod answer_fields;
mod call;
mod exchange;
mod fetcher;
pub(crate) mod grpc;
pub(crate) mod h2;
pub(crate) mod h3;
pub(crate) mod session;
pub(crate) mod ws;

pub(crate) use call::messages;
pub use call::{CallError, call};
pub(crate) use exchange::Http;
pub use fetcher::{Fetcher, FetcherError};
