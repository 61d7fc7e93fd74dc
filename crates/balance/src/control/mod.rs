//! What is around the balancer while it runs.
//!
//! A [`Supervisor`] runs the configuration of a file, and replaces it when told to. It answers on
//! a Unix socket ([`Socket`], [`ask`]) and shows its counters on a page ([`Page`]); logs and
//! commands are in [`access_log`].

pub mod access_log;
mod ask;
mod metrics;
mod page;
mod requests;
mod server;
mod socket;
mod status;
mod supervisor;

pub use ask::{AskError, ask};
pub use metrics::page as metrics_page;
pub use page::Page;
pub use socket::{Socket, SocketError, beside};
pub use status::status;
pub use supervisor::{ReloadError, Supervisor, Tell, TellError};
