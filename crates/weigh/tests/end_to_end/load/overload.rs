//! `weigh load --rate` at more than what is carried.

use crate::common::{Origin, Place, array, load, number};

#[test]
fn twice_what_is_carried_is_an_overload() {
    let place = Place::new();
    let origin = Origin::start(&place);
    // Four connections carry at most 200/s of answers that take 20 ms.
    let url = format!("{}/delay/constant/20ms", origin.url);
    let (done, document) = load(&place, &url, "-c 4 --rate 400 -d 2s --timeout 30s");
    assert_eq!(done.status, 4);
    let overload = &document["overload"];
    let carried = number(&overload["carried_per_s"]);
    assert!((1.0..=210.0).contains(&carried), "{carried}");
    assert_eq!(overload["offered_per_s"], 400.0);
    // The same for a script that reads one number.
    let per_s = number(&document["requests_per_s"]);
    assert!((per_s / carried - 1.0).abs() < 0.05, "{per_s} {carried}");
    assert!(number(&overload["backlog_end"]) > 300.0, "{overload}");
    // All of them were answered in the end.
    assert_eq!(document["requests"], 800);
    let problem = array(&document["problems"])[0].as_str().unwrap();
    // A machine that other programs keep busy is told first.
    let is_told = problem.contains("of 400/s offered") || problem.contains("too busy to offer");
    assert!(is_told, "{problem}");
}

#[test]
fn a_slow_server_that_keeps_up_is_none() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let url = format!("{}/delay/constant/200ms", origin.url);
    let (_, document) = load(&place, &url, "-c 100 --rate 100 -d 2s");
    assert!(document["overload"].is_null(), "{}", document["overload"]);
    let offered = &document["offered"];
    assert!(number(&offered["answered_within"]) < number(&offered["due"]));
}
