//! Clients and a server over loopback. The test moves their clock.

use std::time::Duration;

use net::{Datagrams, os};
use readings::QuicCongestion;
use tls::{Authority, ClientTls, KeyType, ServerSettings, ServerTls, Trust};

use super::*;

const LIMITS: ServerLimits = ServerLimits {
    connections: 16,
    streams: 4,
    handshakes: (16, 16),
    handshake: Duration::from_secs(10),
    congestion: QuicCongestion::Cubic,
};

struct Both {
    server: Server<()>,
    settings: ClientSettings,
    scratch: Scratch,
    now: u64,
}

impl Both {
    fn with(limits: ServerLimits) -> Self {
        let authority = Authority::new().unwrap();
        let issued = authority.issue(&["localhost".into()], KeyType::EcdsaP256);
        let server = ServerSettings::new(issued.unwrap().identity);
        let server = ServerTls::new(&server, "the test").unwrap();
        let client = ClientTls::new(&tls::ClientSettings {
            trust: Trust::Authorities(authority.certificate()),
            alpn: vec!["x".into()],
            ..tls::ClientSettings::new("localhost")
        });
        let now = os::now_ns();
        let socket = Datagrams::listen("127.0.0.1:0".parse().unwrap(), false, false).unwrap();
        Self {
            server: Server::new(socket, &server, "x", limits, now).unwrap(),
            settings: ClientSettings::new(&client.unwrap(), limits.congestion, 1).unwrap(),
            scratch: Scratch::new(now, 4),
            now,
        }
    }

    fn client(&mut self) -> Client {
        let to = self.server.address().unwrap();
        let client = Client::open(&self.settings, to, None, false, self.now, &self.scratch);
        client.unwrap()
    }

    /// Advances the clock by a millisecond, and lets the server handle what has arrived.
    fn serve(&mut self) {
        self.now += 1_000_000;
        while self.server.receive(self.now, || ()) {}
        self.server.expire(self.now);
        while let Some(number) = self.server.take_touched() {
            if let Some(entry) = self.server.entry(number) {
                while entry.connection.poll().is_some() {}
            }
        }
        self.server.flush(self.now);
    }

    /// Lets a client handle what has arrived. Returns its events.
    fn turn(&mut self, client: &mut Client) -> Vec<Event> {
        let mut events = Vec::new();
        while client.receive(self.now, &mut self.scratch, |_, _| {}) == Ok(true) {}
        client.expire(self.now, &self.scratch);
        events.extend(std::iter::from_fn(|| client.connection.poll()));
        client.flush(self.now, &mut self.scratch);
        events
    }

    /// Lets both work until the client has an event of which `is` is true.
    fn until(&mut self, client: &mut Client, is: impl Fn(&Event) -> bool) -> Event {
        for _ in 0..200 {
            let mut events = self.turn(client).into_iter();
            if let Some(event) = events.find(&is) {
                return event;
            }
            self.serve();
        }
        panic!("it never came");
    }
}

fn is_connected(event: &Event) -> bool {
    matches!(event, Event::Connected)
}

fn is_lost(event: &Event) -> bool {
    matches!(event, Event::ConnectionLost { .. })
}

#[test]
fn a_handshake_says_what_was_negotiated() {
    let mut both = Both::with(LIMITS);
    let mut client = both.client();
    both.until(&mut client, is_connected);
    let handshake = client.handshake(both.now).unwrap();
    assert_eq!(handshake.suite, "TLS_AES_128_GCM_SHA256");
    assert_eq!(handshake.group, Some("x25519"));
    assert_eq!(handshake.key, Some("ecdsa-p256"));
    assert!(!handshake.is_resumed);
    assert!(handshake.opened_ns < handshake.established_ns);
    let counts = Counts::of(&client.connection);
    assert!(
        counts.packets_sent > 0 && counts.packets_lost == 0,
        "{counts:?}"
    );
    // The server learns of the end.
    client.close(7, "enough", both.now, &mut both.scratch);
    both.serve();
    both.now += 10_000_000_000;
    both.serve();
    assert!(both.server.entry(0).is_none());
}

#[test]
fn a_connection_has_the_congestion_control_that_was_asked_for() {
    for congestion in QuicCongestion::ALL {
        let mut both = Both::with(ServerLimits {
            congestion,
            ..LIMITS
        });
        let mut client = both.client();
        both.until(&mut client, is_connected);
        let own = client.connection.congestion_state();
        let server = both.server.entry(0).unwrap();
        for state in [own, server.connection.congestion_state()] {
            // Ten packets, whatever the algorithm.
            assert_eq!(state.initial_window(), 12_000);
            let state = state.clone_box().into_any();
            let is = match congestion {
                QuicCongestion::Cubic => state.is::<quinn_proto::congestion::Cubic>(),
                QuicCongestion::Bbr => state.is::<quinn_proto::congestion::Bbr>(),
                QuicCongestion::NewReno => state.is::<quinn_proto::congestion::NewReno>(),
            };
            assert!(is, "{congestion:?}");
        }
    }
}

/// With quinn-proto's BBR alone half of the bytes had come after 60 of these round trips.
#[test]
fn no_congestion_control_holds_up_a_new_connection() {
    const BYTES: usize = 500_000;
    for congestion in QuicCongestion::ALL {
        let mut both = Both::with(ServerLimits {
            congestion,
            ..LIMITS
        });
        let mut client = both.client();
        both.until(&mut client, is_connected);
        let request = client.connection.streams().open(Dir::Bi).unwrap();
        let mut stream = client.connection.send_stream(request);
        stream.write(b"?").unwrap();
        stream.finish().unwrap();
        let (mut received, mut is_answered, mut round_trips) = (0, false, 0);
        while received < BYTES {
            both.turn(&mut client);
            let mut stream = client.connection.recv_stream(request);
            if let Ok(mut chunks) = stream.read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    received += chunk.bytes.len();
                }
                let _ = chunks.finalize();
            }
            both.serve();
            let connection = &mut both.server.entry(0).unwrap().connection;
            if !is_answered && let Some(id) = connection.streams().accept(Dir::Bi) {
                let written = connection.send_stream(id).write(&vec![b'x'; BYTES]);
                assert_eq!(written.unwrap(), BYTES);
                is_answered = true;
                both.server.mark(0);
            }
            round_trips += 1;
            assert!(round_trips < 60, "{congestion:?}: {received} bytes");
        }
    }
}

#[test]
fn without_a_choice_quic_follows_the_kernels_tcp() {
    let tcp = os::tcp_congestion().expect("TCP sockets");
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    if let Ok(set) = std::fs::read_to_string(path) {
        assert_eq!(tcp, set.trim());
    }
    assert_eq!(congestion(None), QuicCongestion::like_tcp(Some(&tcp)));
    let asked = QuicCongestion::NewReno;
    assert_eq!(congestion(Some(asked)), asked);
}

#[test]
fn many_handshakes_need_a_proof_of_address() {
    let mut both = Both::with(ServerLimits {
        handshakes: (2, 3),
        ..LIMITS
    });
    let mut silent: Vec<Client> = (0..4).map(|_| both.client()).collect();
    for client in &mut silent {
        client.flush(both.now, &mut both.scratch);
    }
    both.serve();
    let counts = both.server.counts();
    assert_eq!((counts.accepted, counts.retried, counts.refused), (2, 2, 0));
    // One that proves its address is accepted; the next is too many.
    both.turn(&mut silent[2]);
    both.serve();
    both.turn(&mut silent[3]);
    both.serve();
    let counts = both.server.counts();
    assert_eq!((counts.accepted, counts.retried, counts.refused), (3, 2, 1));
    let mut refused = silent.remove(3);
    let Event::ConnectionLost { reason } = both.until(&mut refused, is_lost) else {
        unreachable!("asked for");
    };
    let why = super::reason(&reason, |_| None);
    assert!(why.contains("CONNECTION_REFUSED"), "{why}");
    // A client that proves its address at once completes its handshake without delay.
    let mut proven = silent.remove(2);
    both.until(&mut proven, is_connected);
}

#[test]
fn handshakes_and_idle_connections_end() {
    let mut both = Both::with(LIMITS);
    let mut silent = both.client();
    silent.flush(both.now, &mut both.scratch);
    both.serve();
    assert_eq!(both.server.counts().accepted, 1);
    both.now += 11_000_000_000;
    both.serve();
    assert_eq!(both.server.counts().slow, 1);
    let mut idle = both.client();
    both.until(&mut idle, is_connected);
    both.serve();
    for _ in 0..10 {
        both.now += 20_000_000_000;
        both.serve();
    }
    for number in 0..2 {
        assert!(both.server.entry(number).is_none(), "{number}");
    }
}

#[test]
fn a_server_holds_a_limited_number_of_connections() {
    let mut both = Both::with(ServerLimits {
        connections: 1,
        ..LIMITS
    });
    let mut first = both.client();
    both.until(&mut first, is_connected);
    let mut second = both.client();
    both.until(&mut second, is_lost);
    assert_eq!(both.server.counts().refused, 1);
}

#[test]
fn timers_are_looked_at_once_at_their_earlier_time() {
    let mut timers = Timers::default();
    let mut registered = u64::MAX;
    timers.set(3, &mut registered, Some(50));
    timers.set(3, &mut registered, Some(70));
    timers.set(3, &mut registered, None);
    assert_eq!(timers.next_ns(), Some(50));
    timers.set(3, &mut registered, Some(20));
    assert_eq!(registered, 20);
    assert_eq!(timers.take_due(19), None);
    assert_eq!(timers.take_due(60), Some((20, 3)));
    // This belongs to the earlier registration, and no longer counts.
    assert_eq!(timers.take_due(60), Some((50, 3)));
    assert_eq!(timers.take_due(60), None);
}
