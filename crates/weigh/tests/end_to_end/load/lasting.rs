//! Loads of streams of events and of WebSockets.

use crate::common::{Origin, Place, load, no_errors};

#[test]
fn streams_are_told_by_their_events() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let url = format!("{}/events/20?every=5ms", origin.url);
    let (_, document) = load(&place, &url, "--events -c 3 --each-connection 2");
    assert_eq!(document["requests"], 6, "{document}");
    let lasting = &document["lasting"];
    assert_eq!(
        (&lasting["messages"], &lasting["opened"]),
        (&120.into(), &6.into())
    );
    assert_eq!(
        (&lasting["lost"], &lasting["lag_base"]),
        (&0.into(), &"sender".into())
    );
    assert_eq!(lasting["ends"][0]["how"], "end");
    assert_eq!(document["content_compared"], false);
    // Without an end they last as long as the load.
    let url = format!("{}/events/0?every=5ms", origin.url);
    let (_, document) = load(&place, &url, "--events=sse -c 3 -d 1s --timeout 500ms");
    assert_eq!(document["requests"], 0);
    assert_eq!(
        document["problems"].as_array().unwrap().len(),
        0,
        "{document}"
    );
    assert_eq!(document["lasting"]["open_min"], 3);
}

#[test]
fn messages_come_back_from_the_origin() {
    let place = Place::new();
    let origin = Origin::with(&place, "");
    let url = origin.url.replacen("http", "ws", 1) + "ws/echo";
    for (more, messages) in [
        ("--messages 500 --in-flight 4", 500),
        ("--messages 300 --deflate --message-bytes 900", 300),
        ("--messages 100 --binary --retire-after 10", 100),
        ("--message-rate 100 -d 500ms", 100),
    ] {
        let (done, document) = load(&place, &url, &format!("-c 2 {more}"));
        no_errors(&document);
        assert_eq!(document["requests"], messages, "{more}: {}", done.out);
        assert!(document["statuses"].as_array().unwrap().is_empty());
    }
    let done = place
        .run(&format!("load {url} -c 2 --messages 100"))
        .expect(0);
    for part in [
        "  100 messages in ",
        "WebSockets: 2 opened",
        "Messages/sec:",
    ] {
        assert!(done.out.contains(part), "{}", done.out);
    }
}

#[test]
fn messages_that_are_no_answers_are_counted() {
    let place = Place::new();
    let origin = Origin::with(&place, "");
    let url = origin.url.replacen("http", "ws", 1);
    let paced = format!("{url}ws/paced/0?every=5ms");
    let (done, document) = load(&place, &paced, "--receive -c 3 -d 400ms");
    no_errors(&document);
    assert_eq!(document["lasting"]["open_min"], 3, "{}", done.out);
    assert!(document["lasting"]["messages"].as_u64().unwrap() > 100);
    let topic = format!("{url}ws/topic/a");
    let more = "--fan-out=5 -c 10 -t 2 --message-rate 100 --warmup 200ms -d 400ms";
    let (_, document) = load(&place, &topic, more);
    no_errors(&document);
    let lasting = &document["lasting"];
    assert_eq!(
        (&lasting["expected"], &lasting["reach"]),
        (&400.into(), &1.0.into())
    );
    let all = "--fan-out -c 4 --message-rate 50 --warmup 200ms -d 400ms";
    let done = place.run(&format!("load {topic} {all}")).expect(0);
    for part in [
        "  Reach: 80 of 80 deliveries, 100.000%",
        "Delivery (from due)",
        "  4 WebSockets opened, 4 open at the end; 80 messages",
        "Messages/sec:",
    ] {
        assert!(done.out.contains(part), "no {part:?} in\n{}", done.out);
    }
}

#[test]
fn messages_of_calls_both_ways_are_answered() {
    let place = Place::new();
    let origin = Origin::with(&place, "");
    let message = "--body {\"payload\":\"aGVsbG8=\"}";
    let call = "--grpc weigh.v1.Echo/Both --call-messages 20 --in-flight 4 -c 2 --count 10";
    let (_, document) = load(&place, &origin.url, &format!("{call} {message}"));
    no_errors(&document);
    assert_eq!(document["requests"], 10, "{document}");
    assert_eq!(document["lasting"]["messages"], 200);
    assert_eq!(document["lasting"]["answer_us"]["count"], 200);
}
