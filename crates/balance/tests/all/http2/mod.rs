//! HTTP/2 to clients and to back ends.

mod attacks;
mod back_end_failures;
pub mod back_ends;
pub mod clients;
mod websocket;
