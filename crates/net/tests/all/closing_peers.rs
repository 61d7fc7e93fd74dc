//! Peers that answer and close while they are still being sent to: all that they sent arrives.
//!
//! The kernel keeps what was received before a reset, so it can be read after a send has failed.
//! Which of both a program notices first depends on timing, which is why many peers are tried.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::{ConnId, Epoll, Event, Io, IoOptions, Uring};

use crate::loops::turn;

/// How many peers each loop meets.
const PEERS: usize = 200;
const PIECE: usize = 32 * 1024;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    /// How many bytes it reads before it answers.
    reads: usize,
    /// How many bytes it answers with.
    answers: usize,
    /// Whether it ends its side before it closes, so that the end comes before the reset.
    ends_first: bool,
}

impl Peer {
    /// One of many that differ.
    fn of(number: usize) -> Self {
        Self {
            reads: 1 + number * 7_919 % 300_000,
            answers: 1 + number * 1_231 % 30_000,
            ends_first: number.is_multiple_of(3),
        }
    }

    fn serve(self, mut stream: TcpStream) {
        let mut rest = self.reads;
        let mut input = [0; 16 * 1024];
        while rest > 0 {
            let most = rest.min(input.len());
            match stream.read(&mut input[..most]) {
                Ok(n @ 1..) => rest -= n,
                _ => return,
            }
        }
        stream.write_all(&answer(self.answers)).unwrap();
        if self.ends_first {
            let _ = stream.shutdown(Shutdown::Write);
        }
        // It is closed with unread bytes, which resets the connection.
    }
}

fn answer(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// How a connection was reported to end.
#[derive(Default)]
struct End {
    got: Vec<u8>,
    has_ended: bool,
    has_failed: bool,
}

/// Sends until the connection has failed, and receives. If `is_pausing`, reading is paused until the
/// peer has closed and a send has failed.
fn send_until_failed<I: Io>(
    io: &mut I,
    conn: ConnId,
    peer: &JoinHandle<()>,
    is_pausing: bool,
) -> End {
    let mut end = End::default();
    let piece = [b'x'; PIECE];
    let until = soon();
    if is_pausing {
        io.pause(conn);
    }
    let mut is_paused = is_pausing;
    while !end.has_failed {
        assert!(Instant::now() < until, "nothing more happened");
        let has_closed = peer.is_finished();
        if io.queued(conn) == 0 {
            for _ in 0..4 {
                io.send_copy(conn, &piece);
            }
        }
        io.poll(Some(1_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            end.take(io, conn, event);
        }
        if has_closed && std::mem::take(&mut is_paused) {
            io.resume(conn);
        }
    }
    end
}

impl End {
    fn take<I: Io>(&mut self, io: &mut I, conn: ConnId, event: Event) {
        match event {
            Event::Data { conn: of, buf } => {
                assert_eq!(of, conn);
                assert!(!self.has_ended && !self.has_failed, "data after the end");
                self.got.extend_from_slice(io.bytes(&buf));
                io.recycle(buf);
            }
            Event::Drained { .. } => {}
            Event::Eof { .. } => self.has_ended = true,
            Event::Failed { errno, .. } => {
                let known = [libc::EPIPE, libc::ECONNRESET];
                assert!(known.contains(&errno), "{errno}");
                self.has_failed = true;
            }
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn all_that_a_closing_peer_sent_arrives<I: Io, const FILES: bool>() {
    let mut io = I::open(IoOptions {
        outgoing: 4,
        buffers: 8,
        buffer_size: 4096,
        files: FILES,
        ..IoOptions::default()
    })
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = io.add_target(&listener.local_addr().unwrap().into(), &[]);
    let mut lost = Vec::new();
    for number in 0..PEERS {
        let peer = Peer::of(number);
        let conn = io.connect(target, None).unwrap();
        turn(&mut io, soon(), |_, event| {
            matches!(event, Event::Connected { .. })
        });
        let (stream, _) = listener.accept().unwrap();
        let serving = std::thread::spawn(move || peer.serve(stream));
        let end = send_until_failed(&mut io, conn, &serving, number.is_multiple_of(4));
        serving.join().unwrap();
        if end.got != answer(peer.answers) {
            lost.push((peer, end.got.len()));
        }
        assert!(
            end.has_ended || !peer.ends_first,
            "{peer:?}: its end is told"
        );
        io.close(conn);
    }
    let many = lost.len();
    assert!(lost.is_empty(), "{many} of {PEERS}, such as {:?}", lost[0]);
}

mod uring {
    #[test]
    fn all_that_a_closing_peer_sent_arrives() {
        super::all_that_a_closing_peer_sent_arrives::<super::Uring, false>();
    }
}

mod uring_files {
    #[test]
    fn all_that_a_closing_peer_sent_arrives() {
        super::all_that_a_closing_peer_sent_arrives::<super::Uring, true>();
    }
}

mod epoll {
    #[test]
    fn all_that_a_closing_peer_sent_arrives() {
        super::all_that_a_closing_peer_sent_arrives::<super::Epoll, true>();
    }
}
