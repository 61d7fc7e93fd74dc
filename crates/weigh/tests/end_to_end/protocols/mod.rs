//! HTTP/2, HTTP/3 and TLS, over all commands that speak them.

mod http2;
mod http3;
mod tls;
