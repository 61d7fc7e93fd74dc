//! Answers without content, as of a server that does not know the host name: a note or a warning.

use crate::common::{Place, has, load, serve_tcp, words};

/// Knows its own name only, as a site of a web server does.
fn site(head: &str) -> (u16, String) {
    // The delay keeps the load low.
    std::thread::sleep(std::time::Duration::from_millis(1));
    let is_known = head.to_ascii_lowercase().contains("host: example.test");
    (200, if is_known { "hello" } else { "" }.to_owned())
}

#[test]
fn a_load_asks_whether_an_empty_page_is_meant() {
    let place = Place::new();
    let (address, _talk) = serve_tcp(site);
    let url = format!("http://{address}/");
    let note = format!("the server may not know the host name `{address}`");
    let (_, document) = load(&place, &url, "-n 20 -c 2");
    let notes = document["notes"].to_string();
    has(&notes, &note);
    let mut call = vec!["load", &url, "-q"];
    call.extend(words("-n 20 -c 2"));
    let text = place.run(&call).expect(0).out;
    has(
        &text,
        "  Note: every answer had status 200 and an empty body",
    );
    has(&text, &note);
    for said in [
        "-H Host:example.test",
        "--expect-status 200",
        "--body-varies",
        "-m HEAD",
    ] {
        let mut more = words("-n 20 -c 2");
        more.extend(words(said));
        let (_, document) = load(&place, &url, &more);
        assert_eq!(document["notes"], serde_json::json!([]), "{said}");
    }
}

#[test]
fn a_load_says_that_it_does_not_follow_redirects() {
    let place = Place::new();
    let (address, _talk) = serve_tcp(|_| (302, "elsewhere".to_owned()));
    let url = format!("http://{address}/");
    let (_, document) = load(&place, &url, "-n 20 -c 2");
    let notes = document["notes"].to_string();
    let note = "every answer was a redirect with status 302";
    has(&notes, note);
    let (_, document) = load(&place, &url, "-n 20 -c 2 --expect-status 302");
    assert_eq!(document["notes"], serde_json::json!([]));
}

#[test]
fn a_comparison_warns_of_each_subject_that_answers_with_an_empty_page() {
    let place = Place::new();
    let (a, _talk) = serve_tcp(site);
    let (b, _talk) = serve_tcp(site);
    let (a, b) = (format!("a=http://{a}/"), format!("b=http://{b}/"));
    let mut call = vec!["compare", &a, &b, "--format", "json"];
    call.extend(words(
        "--blocks 1 --window 200ms --latency=false --bottleneck=false -c 2 --out r",
    ));
    let document = place.run(&call).result();
    let warnings = document["warnings"].to_string();
    for subject in ["a", "b"] {
        let said = format!("`{subject}` answers with status 200 and an empty body");
        assert_eq!(warnings.matches(&said).count(), 1, "{warnings}");
    }
}

#[test]
fn a_comparison_is_told_the_host_name_and_what_a_good_answer_is() {
    let place = Place::new();
    let (a, _talk) = serve_tcp(site);
    let (b, _talk) = serve_tcp(site);
    let (a, b) = (format!("a=http://{a}/"), format!("b=http://{b}/"));
    let quick = "--format json --blocks 1 --window 200ms --latency=false --bottleneck=false -c 2";
    let compared = |folder: &str, more: &str| {
        let mut call = vec!["compare", &a, &b, "--out", folder];
        call.extend(words(quick).into_iter().chain(words(more)));
        place.run(&call)
    };
    for (folder, more) in [
        ("named", "-H Host:example.test"),
        ("content", "-H Host:example.test --expect-contains hello"),
        ("status", "-H Host:example.test --expect-status 200"),
        ("empty", "--expect-body same"),
    ] {
        let document = compared(folder, more).result();
        let warnings = document["warnings"].to_string();
        assert!(!warnings.contains("empty body"), "{more}: {warnings}");
    }
    let said = compared("wrong", "--expect-contains hello").expect(1).err;
    has(&said, "hello");
    let said = compared("twice", "-H Host:a -H host:b").expect(2).err;
    has(&said, "the header `Host` is given again as `host`");
}
