//! The sockets that an origin listens on.

use std::net::{SocketAddr, TcpListener};

use net::{Datagrams, os};

use super::{OriginError, OriginOptions};

/// A thread's sockets: TCP, and UDP with HTTP/3.
pub(super) type Sockets = (TcpListener, Option<Datagrams>);

/// Attempts to find a port that is free for both.
const TRIES: u32 = 8;

/// Opens the sockets of all threads. Returns their address with them.
///
/// # Errors
/// When it cannot listen there, or HTTP/3 is asked for without TLS.
pub(super) fn open(options: &OriginOptions) -> Result<(SocketAddr, Vec<Sockets>), OriginError> {
    if options.http3 {
        let Some(tls) = &options.tls else {
            return Err(OriginError::Quic("it needs TLS".into()));
        };
        tls.quic(net::h3::ALPN)
            .map_err(|error| OriginError::Quic(error.to_string()))?;
    }
    let mut left = match options.listen.port() {
        0 => TRIES,
        _ => 1,
    };
    loop {
        left -= 1;
        match open_once(options) {
            Err(_) if left > 0 => {}
            result => return result,
        }
    }
}

fn open_once(options: &OriginOptions) -> Result<(SocketAddr, Vec<Sockets>), OriginError> {
    let mut address = options.listen;
    let mut sockets = Vec::new();
    let share_port = options.threads > 1;
    for _ in 0..options.threads.max(1) {
        let cannot = move |source| OriginError::Listen { address, source };
        let listener = os::listen(address, options.backlog, share_port).map_err(cannot)?;
        address = listener.local_addr().map_err(cannot)?;
        let datagrams = options
            .http3
            .then(|| Datagrams::listen(address, share_port, options.spin));
        sockets.push((listener, datagrams.transpose().map_err(cannot)?));
    }
    Ok((address, sockets))
}
