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
