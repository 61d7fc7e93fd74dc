//! What is said on connections besides HTTP/1.1.

mod events;
pub mod http2;
pub mod http3;
mod websocket;
