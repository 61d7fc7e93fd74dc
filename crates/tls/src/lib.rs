//! TLS for the event loops, with rustls: [`Secure`] makes any [`net::Io`] one whose connections may
//! be TLS sessions, so that load, origin and balancer need no second code path. No type of rustls
//! leaves this crate, but for [`ClientTls::connect`].
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod authority;
mod client;
mod error;
mod fetch;
mod provider;
mod quic;
mod secure;
mod server;
mod settings;
mod words;

pub use authority::{Authority, Issued, KeyType};
pub use client::ClientTls;
pub use error::{CA_CERTIFICATE, CLIENT_CERTIFICATE, TlsError};
pub use fetch::{NonblockingSession, fetch, open};
pub use provider::{group_names, suite_names};
pub use quic::QuicNegotiated;
pub use secure::Secure;
pub use server::ServerTls;
pub use settings::{ClientSettings, Identity, ServerSettings, Trust, Version};
pub use words::{CertificateFault, certificate_fault};
