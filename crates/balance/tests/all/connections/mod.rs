//! Connections of all kinds, from clients to back ends.

mod backend_failures;
mod dispatching;
mod early_answers;
mod external;
mod leaks;
mod lingering;
mod proxy_protocol;
mod relaying;
mod sni;
mod tls;
