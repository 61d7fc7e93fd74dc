//! Links do what they say: round trip, loss, rate, translated addresses.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::common::{BackEnd, Turn, far, hosts_or_skip, load_on, skip, spec, words};
use hosts::Topology;
use readings::{Access, HostSpec, LinkKind, LinkSpec};

const URL: &str = "http://server:8080/";

/// What can carry shaped packets; netem only where the kernel has it.
const KINDS: [LinkKind; 2] = [LinkKind::UserSpace, LinkKind::Netem];

fn made(hosts: &[HostSpec], kind: LinkKind) -> Option<Topology> {
    // That a kernel has no netem is no lack of this machine: it has the other kind.
    if kind == LinkKind::Netem && !kernel_has_netem() {
        return None;
    }
    hosts_or_skip(hosts, Some(kind))
}

fn kernel_has_netem() -> bool {
    let hosts = [far("one", LinkSpec::default())];
    crate::common::topology(&hosts, None).is_ok_and(|topology| topology.kind == LinkKind::Netem)
}

/// The least time to connect, ms, at 1000 connections a second.
fn connect_ms(topology: &Topology, host: &str) -> f64 {
    let options = "--rate 1000 --no-keepalive -c 100 -d 1s --wait sleep";
    let words = [&[URL][..], &words(options)].concat();
    let document = load_on(topology, host, &words);
    document["connect_us"]["min"].as_f64().unwrap() / 1e3
}

#[test]
fn what_is_lost_is_counted_and_is_the_share_that_it_shall_be() {
    let _turn = Turn::shared();
    const PACKETS: u64 = 40_000;
    for kind in KINDS {
        let lossy = LinkSpec {
            loss: 0.01,
            ..LinkSpec::default()
        };
        let mut lost = Vec::new();
        for _ in 0..2 {
            let hosts = [far("one", lossy), spec("two")];
            let Some(mut topology) = made(&hosts, kind) else {
                break;
            };
            let received = match send_datagrams(&topology, PACKETS) {
                Ok(received) => received,
                Err(e) => {
                    skip(&format!("no datagrams were sent from host to host: {e}"));
                    break;
                }
            };
            let gone = PACKETS - received;
            let share = gone as f64 / PACKETS as f64;
            // The standard deviation is 0.05%.
            assert!((share - 0.01).abs() < 0.002, "{kind:?}: {share}");
            if let [one, two] = topology.counters().unwrap()[..] {
                assert_eq!(one.up.packets, PACKETS);
                assert_eq!(one.up.lost, gone);
                assert_eq!((one.up.dropped, two.down.lost), (0, 0));
                assert_eq!(two.delivered, received);
                lost.push(gone);
            }
        }
        // The same seed loses the same packets.
        assert!(lost.windows(2).all(|two| two[0] == two[1]), "{lost:?}");
    }
}

/// Sends datagrams from host `one` to host `two`; returns how many came.
fn send_datagrams(topology: &Topology, count: u64) -> std::io::Result<u64> {
    let to = SocketAddr::new(topology.address("one", "two").unwrap(), 9_000);
    let receiver = topology.host("two").unwrap().on_its_network(|| {
        let socket = UdpSocket::bind(to).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        socket
    })?;
    let sender = topology
        .host("one")
        .unwrap()
        .on_its_network(|| UdpSocket::bind("0.0.0.0:0").unwrap())?;
    let mut received = 0;
    let mut buffer = [0; 100];
    // A few at a time, so that nothing is lost in the sockets' own queues. The link keeps the
    // order: once something has come, all before it has come or is lost.
    for begin in (0..count).step_by(50) {
        for number in begin..(begin + 50).min(count) {
            sender.send_to(&number.to_be_bytes(), to)?;
        }
        receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
        while let Ok(length) = receiver.recv(&mut buffer) {
            received += 1;
            let number = u64::from_be_bytes(buffer[..length].try_into().unwrap());
            if number + 1 == (begin + 50).min(count) {
                break;
            }
        }
    }
    Ok(received)
}

#[test]
fn a_host_outside_reaches_the_others_by_external_addresses() {
    let _turn = Turn::shared();
    let outside = HostSpec {
        access: Access::External,
        ..spec("outside")
    };
    let Some(topology) = hosts_or_skip(&[outside, spec("inside"), spec("server")], None) else {
        return;
    };
    assert_eq!(topology.kind, LinkKind::UserSpace);
    let _back_end = BackEnd::on(&topology, "server");
    let address = |from| topology.address(from, "server").unwrap().to_string();
    assert_eq!(address("inside"), "10.77.0.3");
    assert_eq!(address("outside"), "198.18.77.3");
    for from in ["outside", "inside"] {
        // By name, by that address, and with bodies of many packets.
        let by_address = format!("http://{}:8080/bytes/100000", address(from));
        for url in [URL, by_address.as_str()] {
            let document = load_on(&topology, from, &[url, "-c", "4", "-n", "100"]);
            assert_eq!(document["requests"], 100, "{from}: {document}");
        }
    }
}

mod alone {
    use super::*;

    #[test]
    fn a_round_trip_is_what_it_shall_be_beside_a_control_of_none() {
        let _turn = Turn::alone();
        let link = |rtt_ms: u64| LinkSpec {
            rtt_ns: rtt_ms * 1_000_000,
            ..LinkSpec::default()
        };
        for kind in KINDS {
            let hosts = [far("near", link(0)), far("far", link(20)), spec("server")];
            let Some(topology) = made(&hosts, kind) else {
                continue;
            };
            let _back_end = BackEnd::on(&topology, "server");
            // Whatever else the machine does makes it longer only, with and without a link.
            let least = |host| {
                let rounds = (0..3).map(|_| connect_ms(&topology, host));
                rounds.fold(f64::INFINITY, f64::min)
            };
            let (far, near) = (least("far"), least("near"));
            assert!(far > 19.99, "{kind:?}: {far} ms");
            assert!(
                (far - near - 20.0).abs() < 0.3,
                "{kind:?}: {far} and {near} ms"
            );
        }
    }

    #[test]
    fn a_rate_is_kept() {
        let _turn = Turn::alone();
        const BITS_PER_S: u64 = 100_000_000;
        for kind in KINDS {
            let slow = LinkSpec {
                rate_bits_per_s: Some(BITS_PER_S),
                rtt_ns: 1_000_000,
                ..LinkSpec::default()
            };
            let control = LinkSpec {
                rate_bits_per_s: None,
                ..slow
            };
            let hosts = [far("client", slow), far("control", control), spec("server")];
            let Some(topology) = made(&hosts, kind) else {
                continue;
            };
            let _back_end = BackEnd::on(&topology, "server");
            // Of an IP packet of 1500 bytes, 1448 are the answer's.
            // Only whole answers are counted, so they are small beside what is sent in the time.
            let url = format!("{URL}bytes/20000");
            let share_from = |host: &str| {
                let words = [url.as_str(), "-c", "8", "--warmup", "500ms", "-d", "1s"];
                let document = load_on(&topology, host, &words);
                let bytes = document["bytes_read"].as_f64().unwrap();
                let seconds = document["duration_s"].as_f64().unwrap();
                bytes * 8.0 * 1_500.0 / 1_448.0 / seconds / BITS_PER_S as f64
            };
            // Never more; and not less, unless the machine does not carry much more at all.
            let (mut share, mut at_all) = (Vec::new(), Vec::new());
            for _ in 0..2 {
                share.push(share_from("client"));
                at_all.push(share_from("control"));
            }
            assert!(
                share.iter().all(|&share| share < 1.03),
                "{kind:?}: {share:?}"
            );
            assert!(
                share.iter().any(|&share| share > 0.9) || at_all.iter().all(|&share| share < 2.0),
                "{kind:?}: {share:?} of the rate, {at_all:?} without one"
            );
        }
    }
}
