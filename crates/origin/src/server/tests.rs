use std::net::TcpStream;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use super::*;

/// 1: the next turn of an origin's thread fails; 2: it panics.
static FAULT: AtomicI32 = AtomicI32::new(0);

pub(super) fn meet_fault() -> io::Result<()> {
    match FAULT.swap(0, Ordering::Relaxed) {
        0 => Ok(()),
        1 => Err(io::Error::other("injected")),
        _ => panic!("injected"),
    }
}

#[test]
fn a_thread_that_ends_is_told_of_and_listens_no_more() {
    for io in [IoKind::Epoll, IoKind::Uring] {
        if io == IoKind::Uring && net::uring_unavailable().is_some() {
            continue;
        }
        for fault in [1, 2] {
            let mut origin = Origin::start(&OriginOptions {
                io,
                ..OriginOptions::default()
            })
            .unwrap();
            assert!(TcpStream::connect(origin.address()).is_ok());
            assert!(origin.ended().is_none());
            FAULT.store(fault, Ordering::Relaxed);
            let end = Instant::now() + Duration::from_secs(20);
            let told = loop {
                assert!(Instant::now() < end, "never told");
                if let Some(told) = origin.ended() {
                    break told;
                }
                std::thread::sleep(Duration::from_millis(2));
            };
            assert_eq!(matches!(told, ThreadEnded::Panic), fault == 2, "{told}");
            while let Ok(client) = TcpStream::connect(origin.address()) {
                assert!(Instant::now() < end, "it listens still");
                drop(client);
            }
            assert!(origin.ended().is_none(), "once");
        }
    }
}
