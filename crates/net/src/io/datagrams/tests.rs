use std::time::Duration;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

fn pair(stamps: bool) -> (Datagrams, Datagrams) {
    let server = Datagrams::listen("127.0.0.1:0".parse().unwrap(), false, stamps).unwrap();
    let client = Datagrams::connect(server.local().unwrap(), None, false).unwrap();
    (server, client)
}

/// Receives until this many datagrams have arrived, and returns them one by one.
fn take(socket: &Datagrams, count: usize) -> Vec<Vec<u8>> {
    let mut received = Received::new(4);
    let mut all = Vec::new();
    while all.len() < count {
        socket.wait(LIMIT).unwrap();
        socket.receive(&mut received).unwrap();
        assert!(received.arrivals().count() > 0, "nothing comes");
        for arrival in received.arrivals() {
            all.extend(arrival.bytes.chunks(arrival.segment).map(<[u8]>::to_vec));
        }
    }
    all
}

#[test]
fn segments_arrive_as_datagrams() {
    let (server, client) = pair(false);
    let bytes: Vec<u8> = (0..2500_u32).map(|n| n as u8).collect();
    let sizes = |all: &[Vec<u8>]| all.iter().map(Vec::len).collect::<Vec<_>>();
    client.send(None, &bytes, Some(1200)).unwrap();
    let all = take(&server, 3);
    assert_eq!(sizes(&all), [1200, 1200, 100]);
    assert_eq!(all.concat(), bytes);
    // The same without GSO.
    client.segments_max.set(1);
    client.send(None, &bytes, Some(1200)).unwrap();
    assert_eq!(sizes(&take(&server, 3)), [1200, 1200, 100]);
}

#[test]
fn answers_go_to_their_senders_with_timestamps() {
    let (server, client) = pair(true);
    client.send(None, b"hello", None).unwrap();
    server.wait(LIMIT).unwrap();
    let mut received = Received::new(1);
    assert!(server.receive(&mut received).unwrap(), "there may be more");
    let arrival = received.arrivals().next().unwrap();
    let from = arrival.from.unwrap();
    assert_eq!((arrival.bytes, Some(from)), (&b"hello"[..], client.local()));
    server.send(Some((from, None)), b"hi", None).unwrap();
    assert_eq!(take(&client, 1), [b"hi".to_vec()]);
    assert!(!server.receive(&mut received).unwrap());
    assert_eq!(received.arrivals().count(), 0);
}

#[test]
fn a_socket_on_all_addresses_answers_from_the_one_that_was_asked() {
    let server = Datagrams::listen("0.0.0.0:0".parse().unwrap(), false, false).unwrap();
    let port = server.local().unwrap().port();
    let asked: SocketAddr = format!("127.0.0.2:{port}").parse().unwrap();
    let client = Datagrams::connect(asked, None, false).unwrap();
    client.send(None, b"hello", None).unwrap();
    server.wait(LIMIT).unwrap();
    let mut received = Received::new(1);
    server.receive(&mut received).unwrap();
    let arrival = received.arrivals().next().unwrap();
    assert_eq!(arrival.to, Some(asked.ip()));
    let to = Some((arrival.from.unwrap(), arrival.to));
    server.send(to, b"hi", Some(1)).unwrap();
    assert_eq!(take(&client, 2).concat(), b"hi");
}

#[test]
fn a_port_without_a_socket_refuses() {
    let (server, client) = pair(false);
    drop(server);
    client.send(None, b"hello", None).unwrap();
    client.wait(LIMIT).unwrap();
    let mut received = Received::new(1);
    assert_eq!(client.receive(&mut received), Err(libc::ECONNREFUSED));
}

#[test]
fn a_refusal_of_gso_is_noted() {
    let (server, client) = pair(false);
    // More segments than the kernel takes are refused, as by a device without segmentation.
    client.send(None, &[7; 200], Some(1)).unwrap();
    assert!(client.gso_failed());
    assert_eq!(client.segments_max(), 1);
    assert_eq!(take(&server, 200).len(), 200);
}
