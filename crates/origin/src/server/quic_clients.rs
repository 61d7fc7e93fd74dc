//! The part of a thread that serves HTTP/3 clients.

use std::io;
use std::time::Duration;

use net::h3::ALPN;
use net::{ConnId, Datagrams, Io};
use quic::{Server, ServerLimits, StreamId};
use readings::QuicCongestion;
use tls::ServerTls;

use super::stream_pages::StreamPages;
use super::{AnswerTo, RequestBody, Worker};
use crate::h3::{H3Page, H3Request, H3Server, STREAMS_MAX};
use crate::pages::StreamPage;

/// Numbers of handshakes in progress, per thread: from the first on, clients must prove their
/// address; from the second on, they are refused.
const HANDSHAKES: (usize, usize) = (256, 4096);
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How many calls in a row receive datagrams before anything else is done.
const RECEIVES_MAX: u32 = 16;

/// The QUIC connections of a thread.
pub(super) struct QuicClients {
    server: Server<H3Server>,
    socket: Option<ConnId>,
    is_readable: bool,
    pages: StreamPages<H3Page>,
    requests: Vec<H3Request>,
    /// How many connections have been counted.
    counted: u64,
}

impl QuicClients {
    pub(super) fn new(
        socket: Datagrams,
        tls: &ServerTls,
        connections: u32,
        congestion: Option<QuicCongestion>,
        now_ns: u64,
    ) -> Result<Self, tls::TlsError> {
        let limits = ServerLimits {
            connections: connections as usize,
            streams: STREAMS_MAX,
            handshakes: HANDSHAKES,
            handshake: HANDSHAKE_LIMIT,
            congestion: quic::congestion(congestion),
        };
        Ok(Self {
            server: Server::new(socket, tls, ALPN, limits, now_ns)?,
            socket: None,
            is_readable: false,
            pages: StreamPages::new(),
            requests: Vec::new(),
            counted: 0,
        })
    }

    pub(super) fn watch<I: Io>(&mut self, io: &mut I) -> io::Result<()> {
        self.socket = Some(io.watch(self.server.socket())?);
        Ok(())
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        match self.is_readable {
            true => Some(0),
            false => self.server.next_ns(),
        }
    }

    pub(super) fn readable(&mut self, conn: ConnId) {
        self.is_readable |= self.socket == Some(conn);
    }
}

impl<I: Io> Worker<I> {
    /// Handles datagrams and timers, and sends what there is to send.
    pub(super) fn turn_quic(&mut self) {
        let Some(mut quic) = self.quic.take() else {
            return;
        };
        let now_ns = self.io.now_ns();
        for _ in 0..RECEIVES_MAX {
            if !quic.is_readable {
                break;
            }
            quic.is_readable = quic.server.receive(now_ns, H3Server::default);
            self.poll_quic(&mut quic);
        }
        if quic.server.next_ns().is_some_and(|at| at <= now_ns) {
            quic.server.expire(now_ns);
            self.poll_quic(&mut quic);
        }
        quic.server.flush(now_ns);
        let accepted = quic.server.counts().accepted;
        self.connections += accepted - std::mem::replace(&mut quic.counted, accepted);
        self.quic = Some(quic);
    }

    /// Handles the events of connections.
    fn poll_quic(&mut self, quic: &mut QuicClients) {
        while let Some(number) = quic.server.take_touched() {
            let mut requests = std::mem::take(&mut quic.requests);
            let Some(entry) = quic.server.entry(number) else {
                continue;
            };
            let polled = entry.session.poll(&mut entry.connection, &mut requests);
            let (id, arrived_ns) = (entry.id, entry.arrived_ns);
            for one in requests.drain(..) {
                self.counts.request(RequestBody::of(&one.request));
                self.respond_h3(quic, (number, id), one, arrived_ns);
            }
            quic.requests = requests;
            if let Err(error) = polled {
                let now_ns = self.io.now_ns();
                quic.server
                    .close(number, error.code as u64, error.what, now_ns);
            }
        }
    }

    fn respond_h3(
        &mut self,
        quic: &mut QuicClients,
        (number, id): (usize, u64),
        one: H3Request,
        arrived_ns: Option<u64>,
    ) {
        let H3Request { stream, request } = one;
        let mut pages = std::mem::take(&mut quic.pages);
        let to = AnswerTo::Http3 { number, id, stream };
        self.with_page(&mut pages, &request, arrived_ns, to, |worker, page| {
            worker.counts.sent(page.bytes());
            if let Some(entry) = quic.server.entry(number) {
                entry.session.answer(&mut entry.connection, stream, page);
            }
        });
        quic.pages = pages;
    }

    /// Sends a delayed answer; false if its connection is gone.
    pub(super) fn answer_h3(
        &mut self,
        number: usize,
        id: u64,
        stream: StreamId,
        bytes: &[u8],
    ) -> bool {
        let Some(quic) = &mut self.quic else {
            return false;
        };
        let Some(entry) = quic.server.entry(number).filter(|entry| entry.id == id) else {
            return false;
        };
        let page = H3Page::of(bytes);
        self.counts.sent(page.bytes());
        entry.session.answer(&mut entry.connection, stream, &page);
        quic.server.mark(number);
        true
    }

    /// Tells clients that the origin stops.
    pub(super) fn close_quic(&mut self) {
        if let Some(quic) = &mut self.quic {
            let code = net::h3::ErrorCode::NoError as u64;
            quic.server.close_all(code, self.io.now_ns());
        }
    }
}
