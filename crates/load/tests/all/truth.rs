//! Known latencies: the quantiles that a load reports agree with the origin's own record, in every
//! version of HTTP, with and without TLS.

use std::time::Duration;

use crate::http3::origin_with;
use crate::support::{LONG, hello, job, one, origin, target};
use load::{Http2, Http3, Request, Stop, Target};
use net::fetch::request;
use net::{Address, IoKind};
use origin::Origin;
use readings::{Histogram, HttpVersion, LoadReading};
use tls::ClientSettings;

/// A version of HTTP, and whether with TLS.
type Protocol = (HttpVersion, bool);

const PROTOCOLS: [Protocol; 5] = [
    (HttpVersion::Http1, false),
    (HttpVersion::Http1, true),
    (HttpVersion::Http2, false),
    (HttpVersion::Http2, true),
    (HttpVersion::Http3, true),
];

/// An origin, and the client's TLS settings if it has TLS.
fn server((_, tls): Protocol) -> (Origin, Option<ClientSettings>) {
    match tls {
        true => {
            let (origin, client) = origin_with(true, IoKind::best());
            (origin, Some(client))
        }
        false => (origin(), None),
    }
}

fn spoken(
    protocol: Protocol,
    target: Target,
    tls: Option<&ClientSettings>,
    streams: u32,
) -> Target {
    let (http, _) = protocol;
    Target {
        tls: tls.cloned().map(|tls| ClientSettings {
            alpn: vec![http.alpn().into()],
            ..tls
        }),
        http2: (http == HttpVersion::Http2).then_some(Http2 { streams }),
        http3: (http == HttpVersion::Http3).then_some(Http3::new(streams)),
        ..target
    }
}

/// The delays that the origin has recorded.
fn recorded(origin: &Origin, tls: Option<&ClientSettings>) -> Histogram {
    let tls = tls.map(|tls| ClientSettings {
        alpn: vec![HttpVersion::Http1.alpn().into()],
        ..tls.clone()
    });
    let bytes = request("GET", "localhost", "/.weigh/delays", &[]);
    let fetcher = load::Fetcher::new(HttpVersion::Http1, tls.as_ref(), bytes).unwrap();
    let address = Address::from(origin.address());
    let answer = fetcher.fetch(&address, b"", LONG, 1 << 24).unwrap();
    Histogram::from_base64(std::str::from_utf8(&answer.body).unwrap()).unwrap()
}

fn no_errors(reading: &LoadReading, protocol: Protocol) {
    assert_eq!(
        reading.errors_all.total(),
        0,
        "{protocol:?}: {:?}",
        reading.wrong
    );
}

#[test]
fn quantiles_of_planted_latencies_are_the_origins_own() {
    for protocol in PROTOCOLS {
        let (origin, tls) = server(protocol);
        // One request in ten takes 120 ms. There are two connections, or 60 with HTTP/1.1.
        let path = "/delay/bimodal/10ms/120ms/10";
        let (connections, streams) = match protocol.0 {
            HttpVersion::Http1 => (60, 1),
            _ => (2, 30),
        };
        let mut target = spoken(
            protocol,
            target(origin.address(), path),
            tls.as_ref(),
            streams,
        );
        target.requests[0].expect = hello();
        let mut job = job(IoKind::best(), target, connections, 1, Stop::Requests(600));
        job.segments[0] = load::Segment::open(300.0, Stop::Requests(600));
        let reading = one(&job);
        no_errors(&reading, protocol);
        let truth = recorded(&origin, tls.as_ref());
        assert_eq!(
            (reading.requests, truth.count()),
            (600, 600),
            "{protocol:?}"
        );
        for q in [0.25, 0.5, 0.8, 0.95, 0.99] {
            let (own, seen) = (truth.quantile_us(q), reading.service.quantile_us(q));
            // Each answer arrives after it was sent. A busy machine adds a little; streams that
            // wait for the slow ones would add much more.
            let added = seen - own;
            assert!(
                (-0.005 * own..40_000.0).contains(&added),
                "{protocol:?}: p{} of {own:.0} us is reported as {seen:.0} us",
                q * 100.0
            );
        }
    }
}

#[test]
fn a_slow_stream_does_not_hold_up_the_others_of_its_connection() {
    for protocol in PROTOCOLS
        .into_iter()
        .filter(|(http, _)| *http != HttpVersion::Http1)
    {
        let (origin, tls) = server(protocol);
        let slow = request("GET", "localhost", "/delay/constant/400ms", &[]);
        let mut target = spoken(protocol, target(origin.address(), "/"), tls.as_ref(), 8);
        target.requests[0].expect = hello();
        target.requests[0].weight = 200;
        target.requests.push(Request::new(slow, hello()));
        let after = Stop::After(Duration::from_secs(2));
        let reading = one(&job(IoKind::best(), target, 1, 1, after));
        no_errors(&reading, protocol);
        assert_eq!((reading.connects, reading.streams), (1, Some(8)));
        let of = |name: &str| {
            let found = reading.per_request.iter().find(|one| one.name == name);
            found
                .unwrap_or_else(|| panic!("{protocol:?}: no {name}"))
                .clone()
        };
        let (quick, slow) = (of("GET /"), of("GET /delay/constant/400ms"));
        assert!(slow.requests > 0, "{protocol:?}");
        assert!(slow.latency_us.p50 >= 398_000.0, "{protocol:?}: {slow:?}");
        assert!(quick.latency_us.p90 < 200_000.0, "{protocol:?}: {quick:?}");
        // On one connection, seven others continued while one was slow.
        assert!(
            quick.requests > 20 * slow.requests,
            "{protocol:?}: {quick:?} {slow:?}"
        );
    }
}
