//! Operating a running balancer.
//!
//! A [`Supervisor`] runs a configuration file and reloads it on request. It answers on a Unix
//! socket ([`Socket`], [`ask`]) and serves its counters over HTTP ([`Page`]). [`access_log`] writes
//! logs and runs hooks.

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
