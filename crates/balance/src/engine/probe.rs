//! A single probe: a TCP connection, or an HTTP request.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::http::{Progress, ResponseParser};
use net::wait::{Watch, begin_connect};

use crate::config::model::{Backend, Check, ProxyVersion, Service};

/// Limit of a probe where the service has none.
const UNLIMITED: Duration = Duration::from_secs(60);
/// Longest response in bytes; a longer one fails the probe.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// The PROXY protocol header of a probe: LOCAL in version 2 (section 2.2), UNKNOWN in version 1
/// (2.1), which has no LOCAL.
const LOCAL_V1: &[u8] = b"PROXY UNKNOWN\r\n";
const LOCAL_V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

#[derive(Clone, Debug)]
pub(super) struct ProbeSettings {
    limit: Duration,
    /// Request and expected status; `None`: connecting is enough.
    http: Option<(Arc<[u8]>, u16)>,
}

impl ProbeSettings {
    pub fn new(service: &Service, backend: &Backend) -> ProbeSettings {
        let http = match &service.check {
            Check::Tcp => None,
            Check::Http { path, host, status } => {
                let own = backend.address.to_string();
                let host = host.as_deref().unwrap_or(&own);
                let close = [("Connection".to_owned(), "close".to_owned())];
                let request = net::fetch::request("GET", host, path, &close);
                let header = match backend.proxy_protocol_out {
                    None => b"",
                    Some(ProxyVersion::V1) => LOCAL_V1,
                    Some(ProxyVersion::V2) => LOCAL_V2,
                };
                Some(([header, &request].concat().into(), *status))
            }
        };
        let limit = service.probing.timeout;
        ProbeSettings {
            limit: if limit.is_zero() { UNLIMITED } else { limit },
            http,
        }
    }
}

pub(super) struct Probe {
    stream: TcpStream,
    end: Instant,
    connected: bool,
    http: Option<Exchange>,
}

struct Exchange {
    request: Arc<[u8]>,
    sent: usize,
    status: u16,
    parser: ResponseParser,
    read: usize,
}

impl Probe {
    /// Starts connecting.
    ///
    /// # Errors
    /// When that fails immediately.
    pub fn begin(settings: &ProbeSettings, address: SocketAddr) -> io::Result<Probe> {
        Ok(Probe {
            stream: begin_connect(address)?,
            end: Instant::now() + settings.limit,
            connected: false,
            http: settings.http.as_ref().map(|(request, status)| Exchange {
                request: request.clone(),
                sent: 0,
                status: *status,
                parser: ResponseParser::new(false),
                read: 0,
            }),
        })
    }

    /// The deadline.
    pub fn end(&self) -> Instant {
        self.end
    }

    pub fn watch(&self) -> Watch<'_> {
        let reading = |one: &Exchange| one.sent == one.request.len();
        match self.connected && self.http.as_ref().is_some_and(reading) {
            true => Watch::read(self.stream.as_fd()),
            false => Watch::write(self.stream.as_fd()),
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
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            self.connected = true;
        }
        let Some(http) = &mut self.http else {
            return Ok(Some(true));
        };
        while let Some(rest @ [_, ..]) = http.request.get(http.sent..) {
            http.sent += self.stream.write(rest)?;
        }
        let mut bytes = [0; 4096];
        loop {
            let n = self.stream.read(&mut bytes)?;
            http.read += n;
            let good = |parser: &ResponseParser| Some(parser.head().status == http.status);
            if n == 0 {
                return Ok(http
                    .parser
                    .end()
                    .then(|| good(&http.parser))
                    .flatten()
                    .or(Some(false)));
            }
            match http.parser.feed(&bytes[..n], |_| {}) {
                Ok(Progress::Done { .. }) => return Ok(good(&http.parser)),
                Ok(_) if http.read > PAGE_BYTES_MAX => return Ok(Some(false)),
                Ok(_) => {}
                Err(_) => return Ok(Some(false)),
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
