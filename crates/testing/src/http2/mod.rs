//! Peers that speak HTTP/2 and can send any frames.

pub mod back_end;
pub mod client;
