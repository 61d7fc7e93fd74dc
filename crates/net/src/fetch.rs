//! One request and its answer, blocking: to look whether a server is ready and what it answers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::http::{HttpError, Progress, ResponseParser};

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The answer is not HTTP/1.1.
    #[error("the answer is {0}")]
    Http(#[from] HttpError),
    /// The connection ended early.
    #[error("the connection ended before the answer was complete")]
    Short,
    /// The time limit passed.
    #[error("no complete answer within {0:?}")]
    Late(Duration),
    /// The body is larger than the limit.
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

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(limit),
            Stream::Unix(stream) => stream.set_write_timeout(limit),
        }
    }

    fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(limit),
            Stream::Unix(stream) => stream.set_read_timeout(limit),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
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
///
/// # Errors
/// As [`fetch`].
pub fn fetch_after(
    address: &Address,
    greeting: &[u8],
    request: &[u8],
    limit: Duration,
    body_bytes_max: usize,
) -> Result<Answer, FetchError> {
    let end = Instant::now() + limit;
    let left = || {
        end.checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .ok_or(FetchError::Late(limit))
    };
    let late = |e: io::Error| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => FetchError::Late(limit),
        _ => FetchError::Io(e),
    };
    let mut stream = match address {
        Address::Inet(address) => {
            let stream = TcpStream::connect_timeout(address, left()?).map_err(late)?;
            stream.set_nodelay(true)?;
            Stream::Tcp(stream)
        }
        Address::Unix(path) => Stream::Unix(UnixStream::connect(path.path()).map_err(late)?),
    };
    let all = [greeting, request].concat();
    let mut unsent = all.as_slice();
    while !unsent.is_empty() {
        // Each time anew: a peer that reads a little now and then must not draw it out.
        stream.set_write_timeout(Some(left()?))?;
        match stream.send(unsent).map_err(late)? {
            0 => return Err(FetchError::Short),
            n => unsent = &unsent[n..],
        }
    }
    let mut parser = ResponseParser::new(request.starts_with(b"HEAD "));
    let mut body = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        stream.set_read_timeout(Some(left()?))?;
        let n = stream.receive(&mut buffer).map_err(late)?;
        if n == 0 {
            if parser.end() {
                break;
            }
            return Err(FetchError::Short);
        }
        let progress = parser.feed(&buffer[..n], |bytes| {
            if body.len() <= body_bytes_max {
                body.extend_from_slice(bytes);
            }
        })?;
        if body.len() > body_bytes_max {
            return Err(FetchError::Large(body_bytes_max));
        }
        if let Progress::Done { .. } = progress {
            break;
        }
    }
    Ok(Answer {
        status: parser.head().status,
        body,
    })
}
