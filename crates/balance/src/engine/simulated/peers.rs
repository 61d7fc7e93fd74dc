//! Clients and back ends of a simulated balancer, which check what it does.
//!
//! A [`Tag`] where that of another request belongs shows that bytes went to the wrong peer.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use net::ConnId;
use net::http::RequestParser;
use net::simulated::{Driver, Fate, Network};

use super::messages::{STRAY, Tag, answer_text, request_text, tags};
use super::steps::{Answer, Ask, Operation, Step, libc_numbers::EMFILE};
use crate::config::model::{Config, ServiceKind};
use crate::engine::shared::Shared;
use crate::health::{HealthEvent, State};

/// How long everything may take to end once all peers are silent, ns: the longest chain of time
/// limits of the configuration.
const SILENCE_NS: u64 = 15_000_000_000;

/// A client's connection, or one to a back end.
struct Peer {
    conn: ConnId,
    service: usize,
    /// Bytes to be sent.
    outgoing: VecDeque<u8>,
    /// Bytes that were sent, and bytes that were received.
    sent: Vec<u8>,
    got: Vec<u8>,
    requests: usize,
    has_ended: bool,
}

impl Peer {
    fn new(conn: ConnId, service: usize) -> Peer {
        Peer {
            conn,
            service,
            outgoing: VecDeque::new(),
            sent: Vec::new(),
            got: Vec::new(),
            requests: 0,
            has_ended: false,
        }
    }

    fn send(&mut self, network: &mut Network, bytes: u16) {
        let taken = self.outgoing.len().min(bytes.into());
        let bytes: Vec<u8> = self.outgoing.drain(..taken).collect();
        self.sent.extend_from_slice(&bytes);
        network.arrive(self.conn, &bytes);
    }

    fn receive(&mut self, network: &mut Network) {
        self.got.extend(network.take_sent(self.conn));
    }
}

/// A connection to a back end.
struct Back {
    peer: Peer,
    parser: RequestParser,
    /// Bytes of `got` that the parser has read, and where the current request begins.
    parsed: usize,
    begin: usize,
    /// Requests that are not answered yet.
    waiting: VecDeque<Request>,
    /// Whether uninspected bytes follow instead of requests.
    is_raw: bool,
    /// Whether the current request was answered before its end.
    is_answered: bool,
}

/// A request that a back end has received.
#[derive(Clone, Copy)]
struct Request {
    tag: Tag,
    is_head: bool,
    asks_upgrade: bool,
}

/// What still has to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Steps,
    /// All peers are silent since this time, ns.
    Silent(u64),
    Draining(u64),
}

/// Clients and back ends, which do what the steps say.
pub struct Peers {
    shared: Arc<Shared>,
    config: Arc<Config>,
    /// The service of each target.
    services: Vec<usize>,
    steps: VecDeque<Step>,
    stage: Stage,
    clients: Vec<Peer>,
    backs: Vec<Back>,
    next_connects: VecDeque<Option<i32>>,
    hanging: Vec<ConnId>,
    /// The rules that were broken.
    pub found: Vec<String>,
}

impl Peers {
    pub fn new(shared: Arc<Shared>, config: Arc<Config>, steps: Vec<Step>) -> Peers {
        let services = config.services.iter().enumerate();
        Peers {
            shared,
            services: services
                .flat_map(|(number, one)| one.backends.iter().map(move |_| number))
                .collect(),
            config,
            steps: steps.into(),
            stage: Stage::Steps,
            clients: Vec::new(),
            backs: Vec::new(),
            next_connects: VecDeque::new(),
            hanging: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Whether a service relays bytes only.
    fn is_tcp(&self, service: usize) -> bool {
        self.config.services[service].kind == crate::config::model::ServiceKind::Tcp
    }

    fn carry_out(&mut self, network: &mut Network, step: Step) {
        match step {
            Step::Connect { service, is_gone } => self.connect(network, service, is_gone),
            Step::Ask {
                client,
                what,
                bytes,
            } => self.ask(network, client, what, bytes),
            Step::Send { client, bytes } => {
                if let Some(at) = at(client, self.clients.len()) {
                    self.clients[at].send(network, bytes);
                }
            }
            Step::EndClient { client, is_reset } => {
                if let Some(at) = at(client, self.clients.len()) {
                    end(&mut self.clients[at], network, is_reset);
                }
            }
            Step::NextConnect { errno } => self.next_connects.push_back(errno),
            Step::Answer { back, what, bytes } => self.answer(network, back, what, bytes),
            Step::AnswerEarly { back, what, bytes } => {
                self.answer_early(network, back, what, bytes);
            }
            Step::SendBack { back, bytes } => {
                if let Some(at) = at(back, self.backs.len()) {
                    self.backs[at].peer.send(network, bytes);
                }
            }
            Step::EndBack { back, is_reset } => {
                if let Some(at) = at(back, self.backs.len()) {
                    end(&mut self.backs[at].peer, network, is_reset);
                }
            }
            Step::Stray { back } => self.stray(network, back),
            Step::Room { peer, bytes } => self.room(network, peer, bytes.into()),
            Step::AllRoom { peer } => self.room(network, peer, usize::MAX / 2),
            Step::NoDescriptor { is_client: true } => network.accept_fails(EMFILE),
            Step::NoDescriptor { is_client: false } => network.socket_errors.push_back(EMFILE),
            Step::Full { is_full } => network.is_full = is_full,
            Step::Operate {
                service,
                back,
                what,
            } => self.operate(network, service, back, what),
            Step::Turn { .. } => {}
        }
    }

    fn connect(&mut self, network: &mut Network, service: u8, is_gone: bool) {
        let number = self.clients.len();
        let Some(service) = at(service, self.config.services.len()) else {
            return;
        };
        let address = SocketAddr::from(([10, 0, 0, 1], 1000 + number as u16));
        let address = (!is_gone).then_some(address);
        let Some(conn) = network.accept(service as u32, address) else {
            return;
        };
        let mut client = Peer::new(conn, service);
        if self.config.services[service].proxy_protocol_in {
            let header = format!("PROXY TCP4 10.1.0.1 10.2.0.1 {} 80\r\n", 1000 + number);
            client.outgoing.extend(header.as_bytes());
        }
        self.clients.push(client);
    }

    fn ask(&mut self, network: &mut Network, client: u8, what: Ask, bytes: u16) {
        let Some(number) = at(client, self.clients.len()) else {
            return;
        };
        let is_tcp = self.is_tcp(self.clients[number].service);
        let client = &mut self.clients[number];
        let request = client.requests;
        client.requests += 1;
        let tag = Tag {
            client: number,
            request,
        };
        let text = match is_tcp {
            true => tag.text().into_bytes(),
            false => request_text(tag, what),
        };
        client.outgoing.extend(text);
        client.send(network, bytes);
    }

    fn answer(&mut self, network: &mut Network, back: u8, what: Answer, bytes: u16) {
        // Only back ends that have to answer are chosen from, so that most steps have an effect.
        let waiting: Vec<usize> = (0..self.backs.len())
            .filter(|&at| !self.backs[at].waiting.is_empty())
            .collect();
        let Some(at) = at(back, waiting.len()).map(|at| waiting[at]) else {
            return;
        };
        let is_tcp = self.is_tcp(self.backs[at].peer.service);
        let back = &mut self.backs[at];
        let interim = matches!(what, Answer::Interim) && !is_tcp;
        let next = match interim {
            true => back.waiting.front().copied(),
            false => back.waiting.pop_front(),
        };
        let Some(request) = next else { return };
        let what = match what {
            Answer::Surplus if back.is_raw => Answer::Length { bytes: 10 },
            Answer::Switch if back.is_raw || !request.asks_upgrade => Answer::Length { bytes: 10 },
            what => what,
        };
        back.is_raw |= matches!(what, Answer::Switch);
        let text = match is_tcp {
            true => request.tag.text().into_bytes(),
            false => answer_text(request.tag, what, request.is_head),
        };
        back.peer.outgoing.extend(text);
        back.peer.send(network, bytes);
        if matches!(what, Answer::UntilClose { .. }) && !is_tcp {
            back.peer.send(network, u16::MAX);
            end(&mut back.peer, network, false);
        }
    }

    /// An answer to a request of which only a part has come.
    fn answer_early(&mut self, network: &mut Network, back: u8, what: Answer, bytes: u16) {
        let tag_of = |back: &Back| {
            let is_begun = !back.is_raw && !back.is_answered && back.waiting.is_empty();
            let begun = tags(&back.peer.got[back.begin..]);
            begun.first().copied().flatten().filter(|_| is_begun)
        };
        let begun: Vec<(usize, Tag)> = self
            .backs
            .iter()
            .enumerate()
            .filter_map(|(at, back)| Some((at, tag_of(back)?)))
            .collect();
        let Some((at, tag)) = at(back, begun.len()).map(|at| begun[at]) else {
            return;
        };
        let back = &mut self.backs[at];
        back.is_answered = !matches!(what, Answer::Interim);
        back.peer.outgoing.extend(answer_text(tag, what, false));
        back.peer.send(network, bytes);
    }

    /// An answer to no request, on a connection that the balancer keeps.
    fn stray(&mut self, network: &mut Network, back: u8) {
        let idle: Vec<usize> = (0..self.backs.len())
            .filter(|&at| {
                let back = &self.backs[at];
                back.waiting.is_empty()
                    && !back.is_raw
                    && !self.is_tcp(back.peer.service)
                    && back.parsed > 0
                    && back.parsed == back.begin
                    && back.peer.outgoing.is_empty()
            })
            .collect();
        let Some(at) = at(back, idle.len()).map(|at| idle[at]) else {
            return;
        };
        let mut text = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n".to_vec();
        text.extend_from_slice(STRAY);
        network.arrive(self.backs[at].peer.conn, &text);
    }

    fn room(&mut self, network: &mut Network, peer: u8, bytes: usize) {
        let conns = self.clients.iter().map(|one| one.conn);
        let conns: Vec<ConnId> = conns
            .chain(self.backs.iter().map(|b| b.peer.conn))
            .collect();
        if let Some(at) = at(peer, conns.len()) {
            network.set_room(conns[at], bytes);
        }
    }

    fn operate(&mut self, network: &mut Network, service: u8, back: u8, what: Operation) {
        let Some(service) = at(service, self.shared.services.len()) else {
            return;
        };
        let state = &self.shared.services[service];
        let Some(back) = at(back, state.backends.len()) else {
            return;
        };
        let one = &state.backends[back];
        let now_ns = network.now_ns();
        let (to, cutoff_ns) = match what {
            Operation::Up => (State::Available, u64::MAX),
            Operation::Down => (State::Down, u64::MAX),
            Operation::Remove => (State::Available, now_ns),
        };
        one.note(HealthEvent::SetByOperator(to), now_ns, &state.policy);
        one.set_cutoff_ns(cutoff_ns);
    }

    /// Receives what the balancer sent, opens connections, and reads requests.
    fn look(&mut self, network: &mut Network) {
        for client in &mut self.clients {
            client.receive(network);
        }
        for conn in network.opening() {
            if self.hanging.contains(&conn) {
                continue;
            }
            match self.next_connects.pop_front() {
                None => network.decide(conn, None),
                Some(Some(errno)) => network.decide(conn, Some(errno)),
                Some(None) => self.hanging.push(conn),
            }
        }
        for conn in network.opened() {
            if self.backs.iter().all(|back| back.peer.conn != conn) {
                let target = network.target(conn).map_or(0, |target| target as usize);
                let service = self.services[target];
                self.backs.push(Back {
                    peer: Peer::new(conn, service),
                    parser: RequestParser::default(),
                    parsed: 0,
                    begin: 0,
                    waiting: VecDeque::new(),
                    is_raw: self.config.services[service].kind != ServiceKind::HTTP,
                    is_answered: false,
                });
            }
        }
        for at in 0..self.backs.len() {
            self.backs[at].peer.receive(network);
            self.read_requests(at);
        }
        self.check_places();
    }

    fn read_requests(&mut self, at: usize) {
        let back = &mut self.backs[at];
        if back.is_raw {
            // Each tag is taken for a request.
            let known = tags(&back.peer.got[..back.parsed]).len();
            let got = tags(&back.peer.got);
            for tag in got.iter().skip(known).flatten() {
                back.waiting.push_back(Request {
                    tag: *tag,
                    is_head: false,
                    asks_upgrade: false,
                });
            }
            back.parsed = back.peer.got.len();
            return;
        }
        while back.parsed < back.peer.got.len() {
            match back.parser.feed(&back.peer.got[back.parsed..]) {
                Ok((taken, complete)) => {
                    back.parsed += taken;
                    if !complete {
                        break;
                    }
                    let bytes = &back.peer.got[back.begin..back.parsed];
                    back.begin = back.parsed;
                    let tags = tags(bytes);
                    let first = tags.first().copied().flatten();
                    if first.is_none() || tags.iter().any(|tag| *tag != first) {
                        let text = String::from_utf8_lossy(bytes);
                        self.found.push(format!("one request of several: {text:?}"));
                    }
                    let is_answered = std::mem::take(&mut back.is_answered);
                    if let Some(tag) = first.filter(|_| !is_answered) {
                        let mut parts = bytes.windows(8);
                        back.waiting.push_back(Request {
                            tag,
                            is_head: bytes.starts_with(b"HEAD"),
                            asks_upgrade: parts.any(|it| it.eq_ignore_ascii_case(b"upgrade:")),
                        });
                    }
                }
                Err(error) => {
                    let text = String::from_utf8_lossy(&back.peer.got[back.begin..]);
                    self.found.push(format!("a request with {error}: {text:?}"));
                    back.is_raw = true;
                    break;
                }
            }
        }
    }

    /// Checks that the limits hold at this time.
    fn check_places(&mut self) {
        for (state, service) in self.shared.services.iter().zip(&self.config.services) {
            let queued = state.queued.load(Ordering::Relaxed);
            if queued > service.queue.length {
                self.found
                    .push(format!("{queued} are in the queue of {}", state.name));
            }
            let active = state.active.load(Ordering::Relaxed);
            if active > service.connections_max.unwrap_or(u32::MAX) {
                self.found
                    .push(format!("{active} clients of {}", state.name));
            }
            for (one, backend) in state.backends.iter().zip(&service.backends) {
                let active = one.active.load(Ordering::Relaxed);
                if active > backend.connections_max.unwrap_or(u32::MAX) {
                    self.found
                        .push(format!("{active} places of {} are taken", one.name));
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        let idle = |count: u32| count == 0;
        self.shared.services.iter().all(|service| {
            idle(service.active.load(Ordering::Relaxed))
                && idle(service.queued.load(Ordering::Relaxed))
                && service
                    .backends
                    .iter()
                    .all(|one| idle(one.active.load(Ordering::Relaxed)))
        })
    }

    /// The places that are taken, for a message.
    fn places(&self) -> String {
        let mut text = String::new();
        for service in &self.shared.services {
            let count = |count: &AtomicU32| count.load(Ordering::Relaxed);
            let (active, queued) = (count(&service.active), count(&service.queued));
            text.push_str(&format!(
                "{}: {active} clients, {queued} queued",
                service.name
            ));
            for one in &service.backends {
                text.push_str(&format!(", {} at {}", count(&one.active), one.name));
            }
            text.push_str("; ");
        }
        text
    }

    /// What each client has received.
    pub fn received(&self) -> Vec<Vec<u8>> {
        self.clients.iter().map(|one| one.got.clone()).collect()
    }

    /// Checks that each peer received only bytes for it, in order.
    pub fn check_bytes(&mut self) {
        let mut posts: BTreeMap<Tag, usize> = BTreeMap::new();
        for (number, client) in self.clients.iter().enumerate() {
            let got = tags(&client.got);
            let own = |tag: &Option<Tag>| tag.is_some_and(|tag| tag.client == number);
            if !got.iter().all(own) || !got.is_sorted() {
                let text = String::from_utf8_lossy(&client.got);
                self.found.push(format!("client {number} got {text:?}"));
            }
        }
        for back in &self.backs {
            let got = tags(&back.peer.got);
            let first = got.first().copied().flatten();
            if self.is_tcp(back.peer.service)
                && let Some(tag) = first
            {
                let client = &self.clients[tag.client];
                if !client.sent.starts_with(&back.peer.got) {
                    self.found
                        .push(format!("client {} was relayed wrongly", tag.client));
                }
                if !back.peer.sent.starts_with(&client.got) {
                    self.found
                        .push(format!("client {} got other bytes", tag.client));
                }
            }
            let text = String::from_utf8_lossy(&back.peer.got);
            for post in text.split("POST /").skip(1) {
                if let Some(Some(tag)) = tags(post.as_bytes()).first() {
                    *posts.entry(*tag).or_default() += 1;
                }
            }
        }
        for (tag, times) in posts {
            if times > 1 {
                self.found
                    .push(format!("{} was posted {times} times", tag.text()));
            }
        }
    }
}

impl Driver for Peers {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> io::Result<()> {
        let wait_ns = wait_ns.unwrap_or(0);
        self.look(network);
        // The balancer looks once more before it ends.
        if wait_ns == 0 {
            return Ok(());
        }
        while let Some(step) = self.steps.pop_front() {
            if let Step::Turn {
                ms,
                is_late,
                is_reversed,
            } = step
            {
                let (ns, wait_ns) = (u64::from(ms) * 1_000_000, wait_ns.max(1));
                network.advance(ns.min(wait_ns).max(1_000));
                (network.is_late, network.is_reversed) = (is_late, is_reversed);
                // A longer time takes several polls.
                let left = ns.saturating_sub(wait_ns) / 1_000_000;
                if left > 0 {
                    self.steps.push_front(Step::Turn {
                        ms: left as u16,
                        is_late,
                        is_reversed,
                    });
                }
                return Ok(());
            }
            self.carry_out(network, step);
        }
        network.advance(wait_ns);
        let now_ns = network.now_ns();
        match self.stage {
            Stage::Steps => self.stage = Stage::Silent(now_ns),
            Stage::Silent(since) if self.is_idle() || now_ns - since > SILENCE_NS => {
                if !self.is_idle() {
                    let open = network.open().len();
                    let places = self.places();
                    self.found
                        .push(format!("{open} connections wait for ever: {places}"));
                }
                self.stage = Stage::Draining(now_ns);
                self.shared.draining.store(true, Ordering::Relaxed);
            }
            Stage::Draining(since) if now_ns - since > SILENCE_NS => {
                self.found
                    .push("it does not end when it is drained".to_owned());
                self.shared.stop.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
        Ok(())
    }
}

fn at(index: u8, len: usize) -> Option<usize> {
    usize::from(index).checked_rem(len)
}

fn end(peer: &mut Peer, network: &mut Network, is_reset: bool) {
    if network.fate(peer.conn) == Fate::Aborted {
        return;
    }
    peer.has_ended = true;
    match is_reset {
        true => network.reset(peer.conn),
        false => network.end(peer.conn),
    }
}
