//! Calls that stream both ways: each message is answered.

use super::*;

/// A server that answers messages when it has so many of a call, and never gets more.
fn answers_by(most: usize) -> SocketAddr {
    BackEnd::new(&[], move |link, _| {
        let mut held: HashMap<u32, Vec<u8>> = HashMap::new();
        while let Some(got) = link.receive() {
            let ended = got.ended();
            let stream = match got {
                Got::Head { stream, .. } => {
                    link.head(stream, &HEAD, false);
                    stream
                }
                Got::Data { stream, bytes, .. } => {
                    held.entry(stream).or_default().extend(bytes);
                    stream
                }
                _ => continue,
            };
            let own = held.entry(stream).or_default();
            let count = own.len() / message(b"\x0a\x02hi").len();
            assert!(count <= most, "{count} are in flight");
            if count == most || ended.is_some() {
                link.data(stream, own, false);
                own.clear();
            }
            if ended.is_some() {
                link.head(stream, &OK, true);
            }
        }
    })
    .address
}

#[test]
fn each_message_of_a_call_both_ways_is_answered() {
    for io in BOTH {
        for (messages, in_flight) in [(1, 1), (20, 1), (20, 4), (3, 8)] {
            let address = answers_by(in_flight.min(messages) as usize);
            let grpc = Grpc {
                call: CallKind::Both,
                messages,
                in_flight,
                ..Grpc::default()
            };
            let target = target(address, grpc, b"\x0a\x02hi");
            let job = job(io, target, Stop::Requests(12));
            let reading = in_time("both ways", move || one(&job));
            assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
            assert_eq!(reading.requests, 12);
            let lasting = reading.lasting.as_ref().unwrap();
            let all = u64::from(messages) * 12;
            assert_eq!((lasting.messages, lasting.answer.count()), (all, all));
            assert_eq!(ends(&reading), [("grpc-status 0", 12)]);
        }
    }
}

#[test]
fn a_call_both_ways_that_lacks_answers_is_wrong() {
    let address = server(|link, asked| {
        let body = &asked.body[..asked.body.len() / 2];
        answer(link, asked.stream, body, &OK);
        true
    });
    let grpc = Grpc {
        call: CallKind::Both,
        messages: 4,
        in_flight: 4,
        ..Grpc::default()
    };
    let target = target(address, grpc, b"\x0a\x02hi");
    let reading = one(&job(IoKind::Epoll, target, Stop::Requests(5)));
    assert_eq!((reading.requests_all, reading.errors_all.verify), (0, 5));
    assert_eq!(reading.wrong[0].expected, "4 answers");
    assert_eq!(reading.wrong[0].found, "2 messages");
}
