//! One request and its answer, blocking: to check whether a server is ready and what it answers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::http::h1::{HttpError, Progress, ResponseHead, ResponseParser, response_fields};

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The header fields in order, names as they were sent.
    pub fields: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// The fields behind the body, of HTTP/2 and HTTP/3.
    pub trailers: Vec<(String, Vec<u8>)>,
}

impl Answer {
    /// The value of the first field of a name.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the answer is {0}")]
    Http(#[from] HttpError),
    #[error("the answer is a TLS record: this server speaks TLS, which takes an https URL")]
    Tls,
    #[error(
        "the answer is a frame of HTTP/2: this server speaks only HTTP/2 (http = \"2\", --http 2)"
    )]
    Http2,
    #[error("the connection ended before the answer was complete")]
    Short,
    #[error("no complete answer within {:?}", rounded(*.0))]
    Late(Duration),
    #[error("the answer has more than {0} bytes")]
    Large(usize),
}

/// The bytes of a request.
pub fn request(method: &str, host: &str, path: &str, fields: &[(String, String)]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        text.push_str(&format!("Host: {host}\r\n"));
    }
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// What bytes pass through: a socket, or TLS on one.
pub trait Channel: Read + Write {}

impl<T: Read + Write> Channel for T {}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// The socket, whose next call may take until then: a peer that reads or writes a little now and
    /// then must not exceed the deadline.
    fn until(&mut self, end: Instant) -> io::Result<&mut dyn Channel> {
        let left = Some(left(end)?);
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(left)?;
                stream.set_write_timeout(left)?;
                Ok(stream)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(left)?;
                stream.set_write_timeout(left)?;
                Ok(stream)
            }
        }
    }
}

/// A socket with one deadline for all reads and writes.
///
/// A server may answer, and close, before it has read the whole request. So what is written after it
/// has closed is dropped, and the failure is reported once all that was received has been read: the
/// kernel keeps it beyond a reset.
struct TimedSocket {
    stream: Stream,
    end: Instant,
    failed_write: Option<io::ErrorKind>,
}

impl TimedSocket {
    fn begin(address: &Address, limit: Duration) -> Result<Self, FetchError> {
        let end = Instant::now() + limit;
        let late = |e| late(e, limit);
        let stream = match address {
            Address::Inet(address) => {
                let stream = left(end).and_then(|left| TcpStream::connect_timeout(address, left));
                let stream = stream.map_err(late)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path.path()).map_err(late)?),
        };
        Ok(Self {
            stream,
            end,
            failed_write: None,
        })
    }
}

impl Read for TimedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.until(self.end)?.read(buffer);
        match (read, self.failed_write) {
            // The write has taken the error from the socket.
            (Ok(0), Some(io::ErrorKind::ConnectionReset)) => {
                Err(io::Error::from_raw_os_error(libc::ECONNRESET))
            }
            (read, _) => read,
        }
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed_write.is_some() {
            return Ok(bytes.len());
        }
        let written = self.stream.until(self.end)?.write(bytes);
        match written {
            Err(error) if has_closed(error.kind()) => {
                self.failed_write = Some(error.kind());
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a write failed because the peer has closed. `BrokenPipe`: it ended its side in an orderly way
/// first.
fn has_closed(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// Sends all bytes. `Interrupted`, as after the program was stopped for a while, is tried again.
fn send(channel: &mut dyn Channel, bytes: &[u8], limit: Duration) -> Result<(), FetchError> {
    match channel.write_all(bytes).and_then(|()| channel.flush()) {
        Err(e) if e.kind() == io::ErrorKind::WriteZero => Err(FetchError::Short),
        sent => sent.map_err(|e| late(e, limit)),
    }
}

/// Receives bytes; 0 where the peer has closed.
fn receive(
    channel: &mut dyn Channel,
    buffer: &mut [u8],
    limit: Duration,
) -> Result<usize, FetchError> {
    loop {
        match channel.read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // TLS without `close_notify`.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Err(FetchError::Short),
            received => return received.map_err(|e| late(e, limit)),
        }
    }
}

/// A time limit for people: what was left of a longer one is an odd number of nanoseconds.
fn rounded(limit: Duration) -> Duration {
    let unit = match limit {
        _ if limit >= Duration::from_secs(1) => Duration::from_millis(10),
        _ if limit >= Duration::from_millis(10) => Duration::from_millis(1),
        _ => Duration::from_micros(1),
    };
    // A limit of more nanoseconds than 64 bits hold has not passed yet.
    let units = (limit.as_nanos() + unit.as_nanos() / 2) / unit.as_nanos();
    Duration::from_nanos(u64::try_from(units * unit.as_nanos()).unwrap_or(u64::MAX))
}

fn left(end: Instant) -> io::Result<Duration> {
    end.checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or(io::ErrorKind::TimedOut.into())
}

fn late(e: io::Error, limit: Duration) -> FetchError {
    match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => FetchError::Late(limit),
        _ => FetchError::Io(e),
    }
}

/// Sends bytes and reads until `wanted` was received or the peer closes, for servers that do not
/// speak HTTP. Returns what was received, whether `wanted` is in it or not.
///
/// # Errors
/// When the connection fails, more than `bytes_max` come, or `wanted` has not come in time.
pub fn exchange(
    address: &Address,
    bytes: &[u8],
    wanted: &[u8],
    limit: Duration,
    bytes_max: usize,
) -> Result<Vec<u8>, FetchError> {
    let mut socket = TimedSocket::begin(address, limit)?;
    send(&mut socket, bytes, limit)?;
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = receive(&mut socket, &mut buffer, limit)?;
        received.extend_from_slice(&buffer[..n]);
        let found = wanted.is_empty() || received.windows(wanted.len()).any(|part| part == wanted);
        if n == 0 || found {
            return Ok(received);
        }
        if received.len() > bytes_max {
            return Err(FetchError::Large(bytes_max));
        }
    }
}

/// Sends the bytes of a request and reads the answer, its body up to `body_bytes_max`.
///
/// # Errors
/// When the connection fails or ends, the answer is not HTTP, too large or too late.
pub fn fetch(
    address: &Address,
    request: &[u8],
    limit: Duration,
    body_bytes_max: usize,
) -> Result<Answer, FetchError> {
    fetch_after(address, &[], request, limit, body_bytes_max)
}

/// As [`fetch`], with bytes that the connection begins with before the request: a PROXY protocol
/// header.
pub fn fetch_after(
    address: &Address,
    preamble: &[u8],
    request: &[u8],
    limit: Duration,
    body_bytes_max: usize,
) -> Result<Answer, FetchError> {
    let plain = |channel| Ok(channel);
    fetch_over(address, preamble, &plain, request, limit, body_bytes_max)
}

/// What makes the socket of a [`fetch_over`] into the channel that requests pass through.
pub type Encrypt<'a> = &'a dyn Fn(Box<dyn Channel>) -> io::Result<Box<dyn Channel>>;

/// A blocking connection, with one time limit for all that is done with it.
pub struct BlockingConnection {
    channel: Box<dyn Channel>,
    limit: Duration,
}

impl BlockingConnection {
    /// Connects and sends the preamble; what follows passes through what `encrypt` makes of the
    /// socket.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn begin(
        address: &Address,
        preamble: &[u8],
        encrypt: Encrypt<'_>,
        limit: Duration,
    ) -> Result<Self, FetchError> {
        let mut socket = TimedSocket::begin(address, limit)?;
        send(&mut socket, preamble, limit)?;
        let channel = encrypt(Box::new(socket))?;
        Ok(Self { channel, limit })
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When the connection fails, or the time is over.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        send(&mut *self.channel, bytes, self.limit)
    }

    /// Receives bytes; 0 where the peer has closed.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        receive(&mut *self.channel, buffer, self.limit)
    }
}

/// As [`fetch_after`], through what `encrypt` makes of the socket after the preamble.
///
/// # Errors
/// As [`fetch`], and those of `encrypt`.
pub fn fetch_over(
    address: &Address,
    preamble: &[u8],
    encrypt: Encrypt<'_>,
    request: &[u8],
    limit: Duration,
    body_bytes_max: usize,
) -> Result<Answer, FetchError> {
    let mut channel = BlockingConnection::begin(address, preamble, encrypt, limit)?;
    channel.send(request)?;
    let mut parser = ResponseParser::new(request.starts_with(b"HEAD "));
    // What has come up to the end of the head, and some of the body behind it.
    let mut head = Vec::new();
    let mut body = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = channel.receive(&mut buffer)?;
        if n == 0 {
            if parser.end() {
                break;
            }
            return Err(FetchError::Short);
        }
        if parser.head() == ResponseHead::default() {
            head.extend_from_slice(&buffer[..n]);
        }
        let progress = parser.feed(&buffer[..n], |bytes| {
            if body.len() <= body_bytes_max {
                body.extend_from_slice(bytes);
            }
        });
        let progress = match progress {
            Err(_) if is_tls_record(&head) => return Err(FetchError::Tls),
            Err(_) if is_http2_settings(&head) => return Err(FetchError::Http2),
            other => other?,
        };
        if body.len() > body_bytes_max {
            return Err(FetchError::Large(body_bytes_max));
        }
        if let Progress::Done { .. } = progress {
            break;
        }
    }
    Ok(Answer {
        status: parser.head().status,
        fields: response_fields(&head),
        body,
        trailers: Vec::new(),
    })
}

/// Whether bytes begin with an alert or a handshake message of TLS (RFC 8446, 5.1).
fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, ..])
}

/// Whether bytes begin with a SETTINGS frame, the first frame of an HTTP/2 server (RFC 9113, 3.4).
fn is_http2_settings(bytes: &[u8]) -> bool {
    matches!(bytes, [0, _, _, 4, 0, 0, 0, 0, 0, ..])
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_server_that_speaks_tls_is_recognised_by_its_alert() {
        // A fatal alert: unexpected message.
        let address = peer(&[&[0x15, 3, 3, 0, 2, 2, 10]]);
        let found = fetch(&address, b"ping", LONG, 100);
        assert!(matches!(found, Err(FetchError::Tls)), "{found:?}");
    }

    #[test]
    fn a_server_that_speaks_only_http2_is_recognised_by_its_settings() {
        // One setting: at most 100 streams at once.
        let address = peer(&[&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]]);
        let found = fetch(&address, b"ping", LONG, 100);
        assert!(matches!(found, Err(FetchError::Http2)), "{found:?}");
    }

    #[test]
    fn the_fields_are_those_of_the_final_answer() {
        let address = peer(&[
            b"HTTP/1.1 103 Early Hints\r\nLocation: /no\r\n\r\nHTTP/1.1 200 OK\r\nContent-Ty",
            b"pe: text/html\r\nContent-Length: 4\r\n\r\nab",
            b"cd",
        ]);
        let answer = fetch(&address, b"ping", LONG, 100).unwrap();
        assert_eq!(answer.field("content-type"), Some(&b"text/html"[..]));
        assert_eq!(answer.field("location"), None);
        assert_eq!((answer.status, &answer.body[..]), (200, &b"abcd"[..]));
    }

    /// A peer that hears four bytes and says `parts`, each after a while.
    fn peer(parts: &'static [&'static [u8]]) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = [0; 4];
            stream.read_exact(&mut heard).unwrap();
            for part in parts {
                stream.write_all(part).unwrap();
            }
            // Not closed until the other end is: nothing but what was said tells it to stop.
            let _ = stream.read(&mut heard);
        });
        address.into()
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_exchange_ends_with_what_was_wanted_or_its_time() {
        let heard = exchange(&peer(&[b"+PO", b"NG\r\n"]), b"ping", b"+PONG", LONG, 100).unwrap();
        assert!(heard.starts_with(b"+PONG"));
        let short = Duration::from_millis(50);
        let late = exchange(&peer(&[b"-ERR"]), b"ping", b"+PONG", short, 100);
        assert!(matches!(late, Err(FetchError::Late(_))), "{late:?}");
        let large = exchange(&peer(&[&[b'x'; 5000]]), b"ping", b"+PONG", LONG, 100);
        assert!(matches!(large, Err(FetchError::Large(100))), "{large:?}");
    }

    #[test]
    fn a_time_limit_is_told_in_round_figures() {
        let said = |ns: u64| FetchError::Late(Duration::from_nanos(ns)).to_string();
        assert_eq!(said(1_999_992_327), "no complete answer within 2s");
        assert_eq!(said(1_500_000_000), "no complete answer within 1.5s");
        assert_eq!(said(49_999_999), "no complete answer within 50ms");
        assert_eq!(said(999_999_999), "no complete answer within 1s");
        assert_eq!(said(1_234_567), "no complete answer within 1.235ms");
        let most = FetchError::Late(Duration::MAX).to_string();
        assert!(
            most.starts_with("no complete answer within 18446744073"),
            "{most}"
        );
    }

    #[test]
    fn an_exchange_ends_when_the_peer_closes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().into();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4]);
            stream.write_all(b"bye").unwrap();
        });
        let heard = exchange(&address, b"ping", b"+PONG", LONG, 100);
        assert_eq!(heard.unwrap(), b"bye");
    }
}
