//! HTTP/3: links over QUIC, each with a UDP socket of its own.

use std::net::SocketAddr;

use net::h3::{ErrorCode, H3Error};
use net::{ConnId, Io};
use quic::{Client, ClientSettings, Counts, OpenError, Scratch, Timers};
use readings::QuicReading;

use super::carrier::{Carrier, QuicLink};
use super::{LINK, LinkState, StreamEnd, take};
use crate::exchange::Kind;
use crate::http::h3::{Polled, Session};
use crate::job::Job;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::worker::Worker;
use crate::worker::request_picker::sources;
use crate::worker::segment::SegmentRun;

/// Receives per system call; the kernel usually joins a connection's datagrams to one or two.
const MESSAGES: usize = 4;

/// What the links of a thread share.
pub(in crate::worker) struct QuicLinks {
    /// By target.
    settings: Vec<Option<ClientSettings>>,
    scratch: Scratch,
    timers: Timers,
    stamps: bool,
    sources: Vec<SocketAddr>,
    turn: usize,
    /// Packets of closed connections, by target.
    closed: Vec<Counts>,
    /// Whether a socket has refused GSO.
    gso_failed: bool,
}

impl QuicLinks {
    fn open(&mut self, target: usize, to: SocketAddr, now: u64) -> Result<Client, OpenError> {
        let Some(settings) = &self.settings[target] else {
            return Err(std::io::Error::other("there is no TLS").into());
        };
        let source = match self.sources.as_slice() {
            [] => None,
            all => {
                self.turn += 1;
                Some(all[self.turn % all.len()])
            }
        };
        Client::open(settings, to, source, self.stamps, now, &self.scratch)
    }
}

/// Adds the packets of a segment to its reading.
pub(in crate::worker) fn add_packets(reading: &mut QuicReading, counts: &Counts) {
    reading.datagrams_sent += counts.datagrams_sent;
    reading.sends += counts.sends;
    reading.datagrams_received += counts.datagrams_received;
    reading.packets_sent += counts.packets_sent;
    reading.packets_lost += counts.packets_lost;
    reading.bytes_lost += counts.bytes_lost;
    reading.congestion_events += counts.congestion_events;
}

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    /// With the settings of each target that has HTTP/3.
    pub(crate) fn with_quic(mut self, settings: Vec<Option<ClientSettings>>) -> Self {
        if settings.iter().any(Option::is_some) {
            let job: &Job = &self.job;
            self.quic = Some(Box::new(QuicLinks {
                scratch: Scratch::new(self.clock.now_ns(), MESSAGES),
                timers: Timers::default(),
                stamps: job.uses_kernel_timestamps(net::os::open_files()),
                sources: sources(job, self.thread),
                turn: self.thread,
                closed: vec![Counts::default(); settings.len()],
                gso_failed: false,
                settings,
            }));
        }
        self
    }

    /// The packets of all connections to a target so far.
    pub(in crate::worker) fn quic_counts(&self, target: usize) -> Counts {
        let Some(quic) = &self.quic else {
            return Counts::default();
        };
        let mut sum = quic.closed[target];
        for link in self.links.iter().filter(|link| link.target == target) {
            if let Some(Carrier::H3(link)) = &link.session {
                sum += Counts::of(&link.client.connection);
            }
        }
        sum
    }

    /// Whether a socket of this thread has refused GSO, and whether sockets have GSO and GRO.
    pub(in crate::worker) fn offloads(&self) -> Option<(bool, bool, bool)> {
        let quic = self.quic.as_ref()?;
        let (mut failed, mut gso, mut gro) = (quic.gso_failed, false, false);
        for link in &self.links {
            if let Some(Carrier::H3(link)) = &link.session {
                let socket = link.client.socket();
                failed |= socket.gso_failed();
                gso |= socket.segments_max() > 1;
                gro |= socket.has_gro();
            }
        }
        Some((failed, gso, gro))
    }

    #[inline]
    pub(in crate::worker) fn next_quic_ns(&self) -> Option<u64> {
        self.quic.as_ref()?.timers.next_ns()
    }

    /// Sends the datagrams of a link, and sets its timer.
    pub(in crate::worker) fn flush_quic(&mut self, number: usize) {
        let now = self.clock.now_ns();
        let (Some(quic), Some(Carrier::H3(link))) =
            (&mut self.quic, &mut self.links[number].session)
        else {
            return;
        };
        let timer = link.client.flush(now, &mut quic.scratch);
        quic.timers.set(number as u32, &mut link.timer_ns, timer);
    }

    /// Tells the server that a link is closed.
    pub(in crate::worker) fn end_quic(&mut self, number: usize) {
        let now = self.clock.now_ns();
        let link = &mut self.links[number];
        let target = link.target;
        let (Some(quic), Some(Carrier::H3(mut link))) = (
            &mut self.quic,
            link.session
                .take_if(|session| matches!(session, Carrier::H3(_))),
        ) else {
            return;
        };
        let code = ErrorCode::NoError as u64;
        link.client.close(code, "", now, &mut quic.scratch);
        quic.closed[target] += Counts::of(&link.client.connection);
        quic.gso_failed |= link.client.socket().gso_failed();
    }

    /// Closes all links at the end of the load, so that no server has to wait for its idle timeout.
    pub(in crate::worker) fn close_quic(&mut self) {
        for number in 0..self.links.len() {
            if matches!(self.links[number].session, Some(Carrier::H3(_))) {
                self.close_link(number);
            }
        }
    }

    /// The link whose timer has expired, which is handled.
    fn take_expired(&mut self, now: u64) -> Option<usize> {
        let quic = self.quic.as_mut()?;
        while let Some((at, number)) = quic.timers.take_due(now) {
            let number = number as usize;
            if let Some(Carrier::H3(link)) = &mut self.links[number].session
                && link.timer_ns == at
            {
                link.timer_ns = u64::MAX;
                link.client.expire(now, &quic.scratch);
                return Some(number);
            }
        }
        None
    }

    /// As [`SegmentRun::quic_readable`], for a link whose target has no segment now.
    pub(in crate::worker) fn readable_at_rest(&mut self, id: ConnId) {
        let Some(number) = self.link_of(id) else {
            return;
        };
        let now = self.clock.now_ns();
        let (Some(quic), Some(Carrier::H3(link))) =
            (&mut self.quic, &mut self.links[number].session)
        else {
            return;
        };
        while let Ok(true) = link.client.receive(now, &mut quic.scratch, |_, _| {}) {}
        self.poll_at_rest(number);
    }

    /// Handles the timers of links that have expired between segments.
    pub(in crate::worker) fn expire_at_rest(&mut self) {
        let now = self.clock.now_ns();
        while let Some(number) = self.take_expired(now) {
            self.poll_at_rest(number);
        }
    }

    pub(in crate::worker) fn poll_at_rest(&mut self, number: usize) {
        let Some(Carrier::H3(link)) = &mut self.links[number].session else {
            return;
        };
        let polled = link.session.poll(&mut link.client.connection, |_| {});
        match polled {
            Ok(Polled { lost: None, .. }) => self.dirty(number),
            _ => self.close_link(number),
        }
    }
}

/// The effect of a link's events.
type LinkPolled = Result<Polled, H3Error>;

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Records what the sockets can do.
    pub(in crate::worker) fn note_offloads(&mut self) {
        if let Some((failed, gso, gro)) = self.worker.offloads()
            && let Some(quic) = &mut self.worker.recorders[self.recorder].quic
        {
            quic.gso_failed |= failed;
            quic.gso |= gso;
            quic.gro |= gro;
        }
    }

    /// Begins a connection.
    pub(in crate::worker) fn open_quic(&mut self, number: usize, now: u64) {
        let worker = &mut *self.worker;
        let link = &mut worker.links[number];
        let target = link.target;
        let (Some(quic), Some(to)) = (&mut worker.quic, worker.job.targets[target].address.inet())
        else {
            return;
        };
        let opened = quic.open(target, to, now).and_then(|client| {
            let id = worker.io.watch(client.socket())?;
            Ok((client, id))
        });
        match opened {
            Ok((client, id)) => {
                worker.by_slot[id.slot()] = LINK | number as u32;
                (link.id, link.since, link.state) = (Some(id), now, LinkState::Connecting);
                let places = link.places.len() as u32;
                let session = match K::HAS_MESSAGES {
                    true => Session::keeping_fields(places),
                    false => Session::new(places),
                };
                link.session = Some(Carrier::H3(Box::new(QuicLink {
                    client,
                    session,
                    timer_ns: u64::MAX,
                })));
                worker.dirty(number);
            }
            Err(OpenError::Io(error)) => {
                self.link_could_not_connect(number, error.raw_os_error().unwrap_or(0), None);
            }
            Err(error) => self.link_could_not_connect(number, 0, Some(error.to_string())),
        }
    }

    /// Reads the datagrams of a link.
    pub(in crate::worker) fn quic_readable(&mut self, id: ConnId) {
        let Some(number) = self.worker.link_of(id) else {
            return;
        };
        if self.worker.links[number].target != self.target {
            return self.worker.readable_at_rest(id);
        }
        let mut is_more = true;
        while is_more {
            let now = self.worker.clock.now_ns();
            let mut ended = std::mem::take(&mut self.worker.ended_streams);
            let mut polled = Ok(Polled::default());
            let received = self.receive(number, now, &mut ended, &mut polled);
            self.streams_ended(ended, now);
            self.quic_polled(number, polled, now);
            is_more = match received {
                Ok(is_more) => is_more,
                Err(errno) => {
                    self.quic_error(number, errno);
                    // This call took the error; datagrams may follow it.
                    true
                }
            };
            // The link may be closed, and opened again with another socket.
            is_more &= self.worker.link_of(id) == Some(number);
        }
    }

    /// Receives once. Returns whether there may be more, or the `errno`.
    fn receive(
        &mut self,
        number: usize,
        now: u64,
        ended: &mut Vec<(usize, StreamEnd, u64)>,
        polled: &mut LinkPolled,
    ) -> Result<bool, i32> {
        let span = self.span();
        let worker = &mut *self.worker;
        let link = &mut worker.links[number];
        let first = link.places.start;
        let requests = &worker.job.targets[link.target].requests;
        let conns = &mut worker.conns[first..];
        let (Some(quic), Some(Carrier::H3(link))) = (&mut worker.quic, &mut link.session) else {
            return Ok(false);
        };
        let session = &mut link.session;
        let recorder = &mut worker.recorders[self.recorder];
        link.client
            .receive(now, &mut quic.scratch, |connection, arrived_ns| {
                let arrived = arrived_ns.map_or(now, |at| at.min(now));
                if arrived_ns.is_some() && now >= span.window.from {
                    recorder.receive_lag.record_ns(now - arrived);
                }
                let mut note = |times, note| Self::record_note(recorder, span, times, note);
                let own = session.poll(connection, |answer| {
                    take(answer, conns, requests, arrived, &mut note, |place, end| {
                        ended.push((first + place, end, arrived));
                    });
                });
                match (polled.as_mut(), own) {
                    (Ok(sum), Ok(own)) => sum.add(own),
                    (Ok(_), Err(error)) => *polled = Err(error),
                    (Err(_), _) => {}
                }
            })
    }

    /// Handles an error from ICMP. QUIC ignores most of these, as anybody can forge them. But
    /// otherwise only a time limit would reveal a closed port.
    fn quic_error(&mut self, number: usize, errno: i32) {
        const EMSGSIZE: i32 = 90;
        const ECONNREFUSED: i32 = 111;
        match (self.worker.links[number].state, errno) {
            (_, EMSGSIZE) | (LinkState::Closed, _) => {}
            (LinkState::Connecting, _) => self.link_could_not_connect(number, errno, None),
            (LinkState::Open, ECONNREFUSED) => {
                let found = std::io::Error::from_raw_os_error(errno).to_string();
                self.link_lost(number, &found);
            }
            (LinkState::Open, _) => {}
        }
    }

    /// Acts on what has changed.
    fn quic_polled(&mut self, number: usize, polled: LinkPolled, now: u64) {
        self.worker.dirty(number);
        let polled = match polled {
            Ok(polled) => polled,
            Err(error) => {
                // Tells the server why.
                if let (Some(quic), Some(Carrier::H3(link))) = (
                    &mut self.worker.quic,
                    &mut self.worker.links[number].session,
                ) {
                    let code = error.code as u64;
                    link.client.close(code, error.what, now, &mut quic.scratch);
                }
                for place in self.take_busy(number) {
                    self.protocol_error(place, error.what);
                }
                return;
            }
        };
        if polled.is_established {
            self.quic_connected(number, now);
        }
        if let Some(why) = polled.lost {
            match self.worker.links[number].state {
                LinkState::Connecting => self.link_could_not_connect(number, 0, Some(why)),
                _ => self.link_lost(number, &why),
            }
            return;
        }
        self.send_waiting(number, now);
        self.end_link_at_rest(number, now);
    }

    fn quic_connected(&mut self, number: usize, now: u64) {
        let worker = &mut *self.worker;
        let link = &mut worker.links[number];
        let Some(Carrier::H3(quic)) = &link.session else {
            return;
        };
        let recorder = &mut worker.recorders[self.recorder];
        recorder.connects += 1;
        if let Some(handshake) = quic.client.handshake(now) {
            recorder.handshake(&handshake, self.window.contains(now));
        }
        link.state = LinkState::Open;
    }

    /// Handles the timers that have expired.
    pub(in crate::worker) fn expire_quic(&mut self) {
        let now = self.worker.clock.now_ns();
        while let Some(number) = self.worker.take_expired(now) {
            if self.worker.links[number].target != self.target {
                self.worker.poll_at_rest(number);
                continue;
            }
            let Some(Carrier::H3(link)) = &mut self.worker.links[number].session else {
                continue;
            };
            // A timer brings no answers, but may end the connection.
            let polled = link.session.poll(&mut link.client.connection, |_| {});
            self.quic_polled(number, polled, now);
        }
    }
}
