//! What is done with each request.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::prelude::HttpPeer;
use pingora::proxy::{ProxyHttp, Session};
use pingora::{Error, Result};

use crate::settings::Settings;

/// What a reload replaces.
pub struct Routes {
    settings: Settings,
    peers: Vec<HttpPeer>,
    /// The first segment of each path of its own.
    prefixes: HashSet<String>,
    log: Option<File>,
}

impl Routes {
    pub fn new(settings: Settings) -> Result<Self, String> {
        let upstream = &settings.upstream;
        let timeout = Some(Duration::from_secs(settings.timeout_s));
        let idle = match upstream.keepalive {
            0 => 0,
            _ => settings.keepalive_timeout_s,
        };
        let peers = upstream.servers.iter().map(|server| {
            let is_tls = upstream.authority.is_some();
            let mut peer = HttpPeer::new(server.address, is_tls, server.name.clone());
            peer.options.connection_timeout = timeout;
            peer.options.total_connection_timeout = timeout;
            peer.options.read_timeout = timeout;
            peer.options.write_timeout = timeout;
            peer.options.idle_timeout = Some(Duration::from_secs(idle));
            peer.options.max_h2_streams = upstream.streams;
            match upstream.http2 {
                true => peer.options.set_http_version(2, 2),
                false => peer.options.set_http_version(1, 1),
            }
            peer
        });
        let peers = peers.collect();
        let prefixes = (1..=settings.routes).map(|number| format!("r{number}"));
        let prefixes = prefixes.collect();
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let log = settings.access_log.as_ref().map(open).transpose();
        let log = log.map_err(|why| format!("the log of requests: {why}"))?;
        Ok(Self {
            settings,
            peers,
            prefixes,
            log,
        })
    }

    /// The rest of a path of its own.
    fn rest<'p>(&self, path: &'p str) -> Option<&'p str> {
        let segment = path.strip_prefix('/')?;
        let end = segment.find('/')?;
        let is_own = self.prefixes.contains(&segment[..end]);
        is_own.then(|| &segment[end..])
    }
}

pub struct Proxy {
    routes: Arc<ArcSwap<Routes>>,
    turn: AtomicUsize,
}

impl Proxy {
    pub fn new(routes: Arc<ArcSwap<Routes>>) -> Self {
        let turn = AtomicUsize::new(0);
        Self { routes, turn }
    }
}

/// What belongs to a request.
pub struct Request {
    routes: Arc<Routes>,
    tried: usize,
}

#[async_trait]
impl ProxyHttp for Proxy {
    type CTX = Request;

    fn new_ctx(&self) -> Request {
        let routes = self.routes.load_full();
        Request { routes, tried: 0 }
    }

    async fn request_filter(&self, session: &mut Session, request: &mut Request) -> Result<bool> {
        let keep_s = request.routes.settings.keepalive_timeout_s;
        session.set_keepalive(Some(keep_s));
        Ok(false)
    }

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        request: &mut Request,
    ) -> Result<Box<HttpPeer>> {
        let peers = &request.routes.peers;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut peer = peers[turn % peers.len()].clone();
        if request.routes.settings.upstream.keepalive == 0 {
            // Connections of another group are not used again.
            peer.group_key = turn as u64;
        }
        Ok(Box::new(peer))
    }

    /// The next upstream is tried, until each had its turn.
    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        request: &mut Request,
        mut error: Box<Error>,
    ) -> Box<Error> {
        request.tried += 1;
        error.set_retry(request.tried < request.routes.peers.len());
        error
    }

    async fn upstream_request_filter(
        &self,
        _session: &mut Session,
        upstream: &mut RequestHeader,
        request: &mut Request,
    ) -> Result<()> {
        let target = upstream.uri.path_and_query().map_or("/", |it| it.as_str());
        if let Some(rest) = request.routes.rest(target) {
            let rest = rest.to_owned();
            upstream.set_raw_path(rest.as_bytes())?;
        }
        Ok(())
    }

    async fn response_filter(
        &self,
        _session: &mut Session,
        response: &mut ResponseHeader,
        request: &mut Request,
    ) -> Result<()> {
        if let Some(number) = request.routes.settings.reload {
            response.insert_header("X-Weigh-Reload", number.to_string())?;
        }
        Ok(())
    }

    async fn logging(&self, session: &mut Session, _error: Option<&Error>, request: &mut Request) {
        let Some(mut log) = request.routes.log.as_ref() else {
            return;
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let head = session.req_header();
        let line = format!(
            "{:.3} \"{} {} {:?}\" {} {}\n",
            since.unwrap_or_default().as_secs_f64(),
            head.method,
            head.uri,
            head.version,
            session
                .response_written()
                .map_or(0, |head| head.status.as_u16()),
            session.body_bytes_sent(),
        );
        // A full disk must not end the proxy.
        let _ = log.write_all(line.as_bytes());
    }
}
