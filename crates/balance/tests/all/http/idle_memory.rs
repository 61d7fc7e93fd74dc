//! What clients hold while they wait.

use crate::support::http::*;
use crate::support::{in_own_process, memory};

#[test]
fn clients_that_wait_hold_little() {
    in_own_process(
        "http::idle_memory::clients_that_wait_hold_little",
        measure_memory,
    );
}

fn measure_memory() {
    const CLIENTS: usize = 400;
    for io in BOTH {
        // It keeps no requests, which would count.
        let back = BackEnd::new(|peer, _, _| {
            while peer.request().is_some() {
                peer.say(ok("hi"));
            }
        });
        let balancer = balancer(io, &[back.address]);
        let long = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "x".repeat(30_000)
        );
        // What is allocated once.
        for _ in 0..20 {
            Peer::connect(balancer.address()).ask(&long);
        }
        let before = memory();
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = Peer::connect(balancer.address());
            assert_eq!(client.ask(&long).status(), 200);
            clients.push(client.stream);
        }
        let each = memory().saturating_sub(before) / CLIENTS;
        assert!(
            each < 12 * 1024,
            "{each} bytes for a client without a request"
        );
    }
}
