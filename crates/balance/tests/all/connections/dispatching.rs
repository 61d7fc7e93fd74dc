//! Each dispatch mode sends real clients where it should, on both event loops.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use crate::support::{BOTH, ask, connect, counts, echo, on_both, read, serve, service, start};
use balance::Balancer;
use balance::config::model::{Dispatch, HashKey, Service, Weight};
use balance::health::{HealthEvent, State};
use net::proxy_protocol;

fn balanced(io: net::IoKind, dispatch: Dispatch, weights: &[u32]) -> Balancer {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let backends: Vec<SocketAddr> = (0..weights.len()).map(|at| echo(NAMES[at])).collect();
    start(io, weighed(dispatch, weights, &backends))
}

fn weighed(dispatch: Dispatch, weights: &[u32], backends: &[SocketAddr]) -> Service {
    let mut service = service(backends);
    service.dispatch = dispatch;
    for (backend, weight) in service.backends.iter_mut().zip(weights) {
        backend.weight = Weight::Share(*weight);
    }
    service
}

fn answers(balancer: &Balancer, count: usize) -> Vec<String> {
    (0..count).map(|_| ask(balancer, b"")).collect()
}

#[test]
fn round_robin_takes_turns() {
    on_both(|io| {
        let balancer = balanced(io, Dispatch::RoundRobin, &[1, 1, 1]);
        assert_eq!(answers(&balancer, 6), ["a", "b", "c", "a", "b", "c"]);
    });
}

#[test]
fn round_robin_keeps_to_weights_that_are_set_or_told() {
    on_both(|io| {
        let balancer = balanced(io, Dispatch::RoundRobin, &[2, 1]);
        assert_eq!(
            counts(&answers(&balancer, 60)),
            [("a", 40), ("b", 20)].into()
        );
        let shared = balancer.shared();
        shared.services[0].set_weight(0, Weight::Share(1));
        assert_eq!(
            counts(&answers(&balancer, 60)),
            [("a", 30), ("b", 30)].into()
        );
    });
}

#[test]
fn the_first_in_order_gets_all_until_it_is_taken_down() {
    on_both(|io| {
        let balancer = balanced(io, Dispatch::ByOrder, &[1, 1]);
        assert_eq!(answers(&balancer, 3), ["a", "a", "a"]);
        let shared = balancer.shared();
        shared.note(0, 0, HealthEvent::SetByOperator(State::Down));
        assert_eq!(answers(&balancer, 3), ["b", "b", "b"]);
        shared.note(0, 0, HealthEvent::SetByOperator(State::Available));
        assert_eq!(answers(&balancer, 1), ["a"]);
    });
}

#[test]
fn the_fewest_connections_count() {
    on_both(|io| {
        for (dispatch, expected) in [
            (Dispatch::ByConnections { over: None }, (3, 3)),
            (Dispatch::LeastConnections, (4, 2)),
        ] {
            let weights: [u32; 2] = if expected.0 == 3 { [1, 1] } else { [2, 1] };
            let balancer = balanced(io, dispatch, &weights);
            let mut held: Vec<_> = (0..6).map(|_| connect(&balancer)).collect();
            let mut got = Vec::new();
            for one in &mut held {
                // Each is connected before the next comes.
                got.push(read(one, 1));
            }
            let counts = counts(&got);
            assert_eq!(counts["a"] + counts["b"], 6);
            // All six may have come before the first was connected; places are taken at once.
            assert_eq!((counts["a"], counts["b"]), expected);
        }
    });
}

#[test]
fn small_and_short_connections_draw_clients() {
    on_both(|io| {
        for (dispatch, over) in [
            (Dispatch::BySize { over: None }, false),
            (Dispatch::ByDuration { over: Some(4) }, true),
        ] {
            let heavy = serve(move |mut stream| {
                // Larger, and slower, than the other.
                let _ = stream.write_all(&[b'h'; 5000]);
                std::thread::sleep(Duration::from_millis(if over { 120 } else { 0 }));
            });
            let balancer = start(io, weighed(dispatch, &[1, 1], &[heavy, echo("light")]));
            let mut got = answers(&balancer, 10);
            for one in &mut got {
                one.truncate(1);
            }
            // Each is tried once as long as nothing is known of it.
            assert_eq!(counts(&got)["l"], 9, "{got:?}");
        }
    });
}

/// The answer to a client with another address, as a proxy in front announces it.
fn announced(balancer: &Balancer, client: SocketAddr) -> String {
    let mut stream = connect(balancer);
    let mut header = Vec::new();
    proxy_protocol::encode_v2(client, balancer.address(), &mut header);
    stream.write_all(&header).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).unwrap();
    got
}

#[test]
fn a_client_s_address_stands_for_a_back_end() {
    let key = HashKey::ClientIp;
    for io in BOTH {
        for dispatch in [
            Dispatch::ByClientIp,
            Dispatch::ConsistentHash { key: key.clone() },
        ] {
            let names = [echo("a"), echo("b"), echo("c")];
            let mut service = weighed(dispatch.clone(), &[1, 1, 1], &names);
            service.proxy_protocol_in = true;
            let balancer = start(io, service);
            let all = |port: u16| -> Vec<String> {
                (1..=40)
                    .map(|n| announced(&balancer, SocketAddr::new([10, 1, 2, n].into(), port)))
                    .collect()
            };
            let before = all(1000);
            assert_eq!(before, all(2000), "another port is the same client");
            assert_eq!(counts(&before).len(), 3);
            let shared = balancer.shared();
            shared.note(0, 1, HealthEvent::SetByOperator(State::Down));
            for (before, now) in before.iter().zip(all(3000)) {
                assert!(now != "b" && (before == "b" || *before == now));
            }
        }
    }
}
