//! One request over TLS, blocking.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use net::Address;
use net::fetch::{Answer, BlockingConnection, Channel, FetchError, fetch_over};
use rustls::{ClientConnection, StreamOwned};

use crate::client::ClientTls;
use crate::words::in_words;

/// Like [`net::fetch::fetch_after`], with a TLS session after the preamble if `tls` is given.
///
/// # Errors
/// The same; a failed handshake is an I/O error that says what was found.
pub fn fetch(
    address: &Address,
    tls: Option<&ClientTls>,
    preamble: &[u8],
    request: &[u8],
    limit: Duration,
    body_bytes_max: usize,
) -> Result<Answer, FetchError> {
    let encrypt = |channel| encrypted(tls, channel);
    fetch_over(address, preamble, &encrypt, request, limit, body_bytes_max)
}

/// A connection for exchanges other than a single HTTP/1.1 request.
pub fn open(
    address: &Address,
    tls: Option<&ClientTls>,
    preamble: &[u8],
    limit: Duration,
) -> Result<BlockingConnection, FetchError> {
    let encrypt = |channel| encrypted(tls, channel);
    BlockingConnection::begin(address, preamble, &encrypt, limit)
}

fn encrypted(tls: Option<&ClientTls>, channel: Box<dyn Channel>) -> io::Result<Box<dyn Channel>> {
    let Some(tls) = tls else { return Ok(channel) };
    let session = tls.open().map_err(io::Error::other)?;
    Ok(Box::new(Encrypted(StreamOwned::new(session, channel))))
}

impl ClientTls {
    /// A blocking session over a new connection, for tests and tools; the handshake happens with
    /// the first byte that is written or read.
    ///
    /// # Errors
    /// When the connection cannot be opened.
    pub fn connect(&self, to: SocketAddr) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        let session = self.open().map_err(io::Error::other)?;
        Ok(StreamOwned::new(session, stream))
    }
}

/// A session over a connection that does not block.
pub struct NonblockingSession {
    session: ClientConnection,
    stream: TcpStream,
}

impl ClientTls {
    /// A session over a connection that is being opened and does not block. Reading and writing fail
    /// with [`io::ErrorKind::WouldBlock`] while [`NonblockingSession::waits_to_write`] says what for.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn over(&self, stream: TcpStream) -> io::Result<NonblockingSession> {
        let session = self.open().map_err(io::Error::other)?;
        Ok(NonblockingSession { session, stream })
    }
}

impl NonblockingSession {
    /// The underlying connection.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether it waits until the connection can take bytes; if not, it waits for bytes to arrive.
    pub fn waits_to_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Continues the handshake. Returns whether it is complete.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`], or that of the connection or the handshake.
    pub fn handshake(&mut self) -> io::Result<bool> {
        if self.session.is_handshaking() {
            self.session
                .complete_io(&mut self.stream)
                .map_err(in_words)?;
        }
        Ok(!self.session.is_handshaking())
    }
}

impl Read for NonblockingSession {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = rustls::Stream::new(&mut self.session, &mut self.stream);
        stream.read(buffer).map_err(in_words)
    }
}

impl Write for NonblockingSession {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = rustls::Stream::new(&mut self.session, &mut self.stream);
        stream.write(bytes).map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut stream = rustls::Stream::new(&mut self.session, &mut self.stream);
        stream.flush().map_err(in_words)
    }
}

struct Encrypted(StreamOwned<ClientConnection, Box<dyn Channel>>);

impl Read for Encrypted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(in_words)
    }
}

impl Write for Encrypted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(in_words)
    }
}
