//! TCP servers.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A server that runs a function on each connection, on a thread of its own.
pub fn serve(each: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    serve_on(TcpListener::bind("127.0.0.1:0").unwrap(), each)
}

/// The same with a listening socket.
pub fn serve_on(
    listener: TcpListener,
    each: impl Fn(TcpStream) + Send + Sync + 'static,
) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    let each = Arc::new(each);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, each) = (stream.unwrap(), each.clone());
            std::thread::spawn(move || each(stream));
        }
    });
    address
}
