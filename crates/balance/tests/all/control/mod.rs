//! The control socket, replacing the configuration, and logs.

mod http_logged;
mod http_reload;
mod probe;
mod reload;
mod socket;
mod socket_takeover;
mod tell;
