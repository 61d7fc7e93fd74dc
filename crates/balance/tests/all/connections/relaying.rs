//! What a client behind the balancer relies on, on both event loops.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::support::{ask, dead, echo, on_both, service, start};

#[test]
fn a_refusing_upstream_is_passed_over_within_the_attempt() {
    on_both(|io| {
        let balancer = start(io, service(&[dead(), echo("alive "), dead()]));
        for _ in 0..6 {
            assert_eq!(ask(&balancer, b"x"), "alive x");
        }
        let stats = balancer.stats();
        assert_eq!((stats.clients, stats.served), (6, vec![0, 6, 0]));
    });
}

#[test]
fn a_slow_reader_holds_up_the_writer_and_nothing_is_lost() {
    on_both(|io| {
        let balancer = start(io, service(&[echo("")]));
        let mut stream = TcpStream::connect(balancer.address()).unwrap();
        // More than the sockets on the way have come to hold by then, also where they may grow to
        // 32 MB each.
        let sent: Vec<u8> = (0..253).collect::<Vec<u8>>().repeat(320_000);
        let mut writer = stream.try_clone().unwrap();
        let bytes = sent.clone();
        let writing = std::thread::spawn(move || {
            writer.write_all(&bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        std::thread::sleep(Duration::from_millis(300));
        assert!(!writing.is_finished(), "81 MB cannot be under way unread");
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        assert!(got == sent, "{} bytes of {} came", got.len(), sent.len());
    });
}
