//! Serves the counters over HTTP.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::metrics;
use super::server::{Server, read_while};
use super::supervisor::Supervisor;

/// Longest head of a request, bytes.
const HEAD_BYTES_MAX: usize = 8192;
/// Time limit of a request, and of its response.
const LIMIT: Duration = Duration::from_secs(5);

/// The HTTP server; dropping it stops it.
pub struct Page {
    address: SocketAddr,
    _server: Server,
}

impl Page {
    /// Starts the server.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn open(address: SocketAddr, supervisor: &Arc<Supervisor>) -> io::Result<Page> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let supervisor = supervisor.clone();
        // A bad or broken request is the client's problem.
        let read = |stream: &mut TcpStream| {
            let is_partial = |head: &[u8]| !is_whole(head) && head.len() <= HEAD_BYTES_MAX;
            let head = read_while(stream, LIMIT, is_partial).ok();
            head.filter(|head| is_whole(head))
        };
        let server = Server::tcp(listener, read, move |stream, head: Vec<u8>| {
            let _ = serve(stream, &head, &supervisor);
        })?;
        Ok(Page {
            address,
            _server: server,
        })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn serve(mut stream: TcpStream, head: &[u8], supervisor: &Supervisor) -> io::Result<()> {
    let (status, body) = match request(head) {
        Some(("GET" | "HEAD", "/metrics")) => ("200 OK", metrics::page(supervisor)),
        Some(("GET" | "HEAD", _)) => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        Some(_) => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
        None => ("400 Bad Request", "GET /metrics\n".to_owned()),
    };
    let allow = match status.starts_with("405") {
        true => "Allow: GET, HEAD\r\n",
        false => "",
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    if !head.starts_with(b"HEAD ") {
        answer.push_str(&body);
    }
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(answer.as_bytes())
}

/// Method and path.
fn request(head: &[u8]) -> Option<(&str, &str)> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut invalid = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (invalid.next()?, invalid.next()?);
    invalid.next()?.starts_with("HTTP/1.").then_some(())?;
    Some((method, target.split('?').next()?))
}

fn is_whole(head: &[u8]) -> bool {
    head.windows(4).any(|four| four == b"\r\n\r\n")
}
