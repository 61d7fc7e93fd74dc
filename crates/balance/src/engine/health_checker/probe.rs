//! A single probe: a TCP connection, or an HTTP request, with TLS and in HTTP/2 if requests to the
//! back end are sent in that way.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::h2::{Incoming, Session, SessionLimits};
use net::http::{Progress, ResponseParser};
use net::wait::{Watch, begin_connect};
use tls::{ClientTls, NonblockingSession};

use crate::config::model::{Backend, Check, ProxyVersion, Service};
use crate::h2::{Message, Part};

/// Limit of a probe where the service has none.
const UNLIMITED: Duration = Duration::from_secs(60);
/// Longest response in bytes; a longer one fails the probe.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// How much a back end may send to an HTTP/2 probe besides the response.
const PROBE_LIMITS: SessionLimits = SessionLimits {
    streams_max: 0,
    overhead_max: 1000,
    reset_cost: 1,
};
/// The PROXY protocol header of a probe: LOCAL in version 2 (section 2.2), UNKNOWN in version 1
/// (2.1), which has no LOCAL.
const LOCAL_V1: &[u8] = b"PROXY UNKNOWN\r\n";
const LOCAL_V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

#[derive(Clone, Debug)]
pub(in crate::engine) struct ProbeSettings {
    limit: Duration,
    /// `None`: connecting is enough.
    http: Option<HttpProbe>,
}

#[derive(Clone, Debug)]
struct HttpProbe {
    /// A PROXY protocol header, in clear.
    preamble: &'static [u8],
    request: Arc<[u8]>,
    /// The expected status.
    status: u16,
    tls: Option<ClientTls>,
    speaks_http_2: bool,
}

impl ProbeSettings {
    pub fn new(service: &Service, backend: &Backend, tls: Option<&ClientTls>) -> ProbeSettings {
        let http = match &service.check {
            Check::Tcp => None,
            Check::Http { path, host, status } => {
                let own = backend.address.to_string();
                let host = host.as_deref().unwrap_or(&own);
                let close = [("Connection".to_owned(), "close".to_owned())];
                let request = net::fetch::request("GET", host, path, &close);
                let preamble: &[u8] = match backend.proxy_protocol_out {
                    None => b"",
                    Some(ProxyVersion::V1) => LOCAL_V1,
                    Some(ProxyVersion::V2) => LOCAL_V2,
                };
                Some(HttpProbe {
                    preamble,
                    request: request.into(),
                    status: *status,
                    tls: tls.cloned(),
                    speaks_http_2: backend.speaks_http_2(),
                })
            }
        };
        let limit = service.probing.timeout;
        ProbeSettings {
            limit: if limit.is_zero() { UNLIMITED } else { limit },
            http,
        }
    }
}

pub(in crate::engine) struct Probe {
    link: Link,
    end: Instant,
    connected: bool,
    http: Option<Exchange>,
}

/// The connection, with a session where the back end has TLS.
enum Link {
    Plain(TcpStream),
    Secure(Box<NonblockingSession>),
}

impl Link {
    fn stream(&self) -> &TcpStream {
        match self {
            Link::Plain(stream) => stream,
            Link::Secure(session) => session.stream(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Link::Plain(stream) => stream.write(bytes),
            Link::Secure(session) => session.write(bytes),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Plain(stream) => stream.read(bytes),
            Link::Secure(session) => session.read(bytes),
        }
    }
}

struct Exchange {
    settings: HttpProbe,
    /// Bytes sent of the preamble.
    announced: usize,
    client: HttpClient,
    read: usize,
}

/// Sends the request and takes the response, in either version of HTTP.
enum HttpClient {
    Http1 {
        /// Bytes sent of the request.
        sent: usize,
        parser: ResponseParser,
    },
    Http2(Box<Http2Client>),
}

struct Http2Client {
    session: Session,
    /// How many bytes of the session's output have been sent.
    sent: usize,
    status: u16,
    is_complete: bool,
    has_failed: bool,
}

impl HttpClient {
    fn new(settings: &HttpProbe) -> HttpClient {
        if !settings.speaks_http_2 {
            return HttpClient::Http1 {
                sent: 0,
                parser: ResponseParser::new(false),
            };
        }
        let mut session = Session::of_client(PROBE_LIMITS);
        let mut request = Message::request(settings.tls.is_some());
        // The balancer made it, so it is well-formed.
        let _ = request.take(&settings.request, |part| {
            if let Part::Head { block, is_last } = part {
                session.open(block, is_last);
            }
        });
        HttpClient::Http2(Box::new(Http2Client {
            session,
            sent: 0,
            status: 0,
            is_complete: false,
            has_failed: false,
        }))
    }

    /// What has to be sent.
    fn unsent<'d>(&'d self, request: &'d [u8]) -> &'d [u8] {
        match self {
            HttpClient::Http1 { sent, .. } => &request[*sent..],
            HttpClient::Http2(one) => &one.session.out[one.sent..],
        }
    }

    fn note_sent(&mut self, bytes: usize) {
        match self {
            HttpClient::Http1 { sent, .. } => *sent += bytes,
            HttpClient::Http2(one) => one.sent += bytes,
        }
    }

    /// Takes received bytes; none at the end of the connection. Returns the status once the
    /// response is complete; 0 if there is no valid response.
    fn take(&mut self, bytes: &[u8]) -> Option<u16> {
        match self {
            HttpClient::Http1 { parser, .. } if bytes.is_empty() => match parser.end() {
                true => Some(parser.head().status),
                false => Some(0),
            },
            HttpClient::Http1 { parser, .. } => match parser.feed(bytes, |_| {}) {
                Ok(Progress::Done { .. }) => Some(parser.head().status),
                Ok(_) => None,
                Err(_) => Some(0),
            },
            HttpClient::Http2(_) if bytes.is_empty() => Some(0),
            HttpClient::Http2(one) => one.take(bytes),
        }
    }
}

impl Http2Client {
    fn take(&mut self, bytes: &[u8]) -> Option<u16> {
        let Http2Client {
            session,
            status,
            is_complete,
            has_failed,
            ..
        } = self;
        let mut taken = Vec::new();
        let fed = session.feed(bytes, |incoming| match incoming {
            Incoming::Head {
                head,
                is_complete: ends,
                ..
            } => {
                *status = head.status();
                *is_complete |= ends;
            }
            Incoming::Data {
                stream,
                flow,
                is_complete: ends,
                ..
            } => {
                taken.push((stream, flow));
                *is_complete |= ends;
            }
            Incoming::Trailers { .. } => *is_complete = true,
            Incoming::Reset { .. } | Incoming::Malformed => *has_failed = true,
        });
        for (stream, flow) in taken {
            session.release(stream, flow);
        }
        match (fed.is_err() || *has_failed, *is_complete) {
            (_, true) => Some(*status),
            (true, false) => Some(0),
            (false, false) => None,
        }
    }
}

impl Probe {
    /// Starts connecting.
    ///
    /// # Errors
    /// When that fails immediately.
    pub fn begin(settings: &ProbeSettings, address: SocketAddr) -> io::Result<Probe> {
        let stream = begin_connect(address)?;
        let tls = settings.http.as_ref().and_then(|http| http.tls.as_ref());
        Ok(Probe {
            link: match tls {
                None => Link::Plain(stream),
                Some(tls) => Link::Secure(Box::new(tls.over(stream)?)),
            },
            end: Instant::now() + settings.limit,
            connected: false,
            http: settings.http.as_ref().map(|http| Exchange {
                settings: http.clone(),
                announced: 0,
                client: HttpClient::new(http),
                read: 0,
            }),
        })
    }

    /// The deadline.
    pub fn end(&self) -> Instant {
        self.end
    }

    pub fn watch(&self) -> Watch<'_> {
        let reading = |one: &Exchange| match &self.link {
            Link::Plain(_) => one.client.unsent(&one.settings.request).is_empty(),
            Link::Secure(session) => {
                one.announced == one.settings.preamble.len() && !session.waits_to_write()
            }
        };
        let stream = self.link.stream().as_fd();
        match self.connected && self.http.as_ref().is_some_and(reading) {
            true => Watch::read(stream),
            false => Watch::write(stream),
        }
    }

    /// Makes progress. Returns the outcome once it is known.
    pub fn go_on(&mut self) -> Option<bool> {
        match self.step() {
            Ok(ended) => ended,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => Some(false),
        }
    }

    fn step(&mut self) -> io::Result<Option<bool>> {
        if !self.connected {
            if let Some(error) = self.link.stream().take_error()? {
                return Err(error);
            }
            self.connected = true;
        }
        let Some(http) = &mut self.http else {
            return Ok(Some(true));
        };
        while let Some(rest @ [_, ..]) = http.settings.preamble.get(http.announced..) {
            let mut stream = self.link.stream();
            http.announced += stream.write(rest)?;
        }
        if let Link::Secure(session) = &mut self.link
            && !session.handshake()?
        {
            return Ok(None);
        }
        let Exchange {
            settings,
            client,
            read,
            ..
        } = http;
        let mut bytes = [0; 4096];
        loop {
            while let rest @ [_, ..] = client.unsent(&settings.request) {
                let sent = self.link.write(rest)?;
                client.note_sent(sent);
            }
            let n = self.link.read(&mut bytes)?;
            *read += n;
            if let Some(status) = client.take(&bytes[..n]) {
                return Ok(Some(status == settings.status));
            }
            if *read > PAGE_BYTES_MAX {
                return Ok(Some(false));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::proxy_protocol::{Header, Parsed, parse};

    #[test]
    fn probes_announce_themselves_by_the_proxy_protocol() {
        for (bytes, header) in [(LOCAL_V1, Header::Unknown), (LOCAL_V2, Header::Local)] {
            let taken = bytes.len();
            assert_eq!(parse(bytes), Ok(Parsed::Done { taken, header }));
        }
    }
}
