//! The tests of the balancer that need no privilege and no other program.
#![allow(clippy::unwrap_used)]

#[path = "../../../../fuzz/balance_checks.rs"]
mod balance_checks;
#[path = "../../../../fuzz/proxy_checks.rs"]
mod proxy_checks;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

mod backend_failures;
mod config_corpus;
mod config_crossroads;
mod config_native;
mod config_round_trip;
mod control_probe;
mod control_reload;
mod control_socket;
mod control_tell;
mod dispatching;
mod docs;
mod external;
mod http2;
mod http2_attacks;
mod http2_back_end_failures;
mod http2_back_ends;
mod http_allocations;
mod http_churn;
mod http_configured;
mod http_corpus;
mod http_failures;
mod http_forged;
mod http_idle_memory;
mod http_limits;
mod http_logged;
mod http_messages;
mod http_occupied;
mod http_properties;
mod http_reload;
mod http_reuse;
mod http_rewriting;
mod http_smuggling;
mod http_unasked;
mod leaks;
mod lingering;
mod proxy_protocol;
mod relaying;
mod sni;
mod socket_takeover;
mod tls;
