//! Streams of events.

use crate::common::{Origin, Place, load};

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
