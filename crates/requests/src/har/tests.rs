use std::path::Path;

use proptest::prelude::*;

use super::*;

fn fixture(name: &str, options: HarOptions) -> Recorded {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/har/fixtures");
    open(&Path::new(folder).join(name), &options).unwrap()
}

fn text(template: &Template) -> String {
    let bytes = template.as_fixed().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn headers(request: &RequestSpec) -> Vec<(&str, String)> {
    let fields = request.fields.iter();
    fields
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect()
}

fn counts(all: &[(String, u64)]) -> Vec<(&str, u64)> {
    all.iter()
        .map(|(what, count)| (what.as_str(), *count))
        .collect()
}

#[test]
fn what_chrome_saves_is_read_without_secrets() {
    let found = fixture("chrome.har", HarOptions::default());
    assert_eq!(found.origin, "https://shop.test");
    assert_eq!(
        counts(&found.left_out),
        [("to other servers", 1), ("without an http URL", 1)]
    );
    assert_eq!(
        counts(&found.secrets),
        [
            ("authorizations", 1),
            ("cookies", 1),
            ("headers with keys or tokens", 1),
            ("parameters of queries", 1)
        ]
    );
    let names: Vec<&str> = found
        .set
        .requests
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["GET /?q=a%20b", "POST /login", "GET /?q=a%20b (2)"]);
    assert!(found.set.in_order && found.set.users.is_none());
    let [page, login, again] = found.set.requests.as_slice() else {
        panic!("three requests");
    };
    assert_eq!(headers(page), [("accept", "text/html".to_owned())]);
    assert_eq!(
        headers(login),
        [("content-type", "application/json".to_owned())]
    );
    assert_eq!(text(login.body.as_ref().unwrap()), "{\"a\": {{\"b'\n");
    let statuses = [page, login, again].map(|one| one.expect.status);
    assert_eq!(statuses, [Some(200), Some(302), None]);
    assert_eq!(page.pause + login.pause, Duration::ZERO);
    assert!(found.notes()[2].contains("--har-secrets keeps them"));
}

#[test]
fn secrets_and_pauses_are_kept_where_asked_for() {
    let options = HarOptions {
        keeps_secrets: true,
        keeps_pauses: true,
    };
    let found = fixture("chrome.har", options);
    assert!(found.secrets.is_empty());
    assert!(found.set.users.is_some());
    let [page, login, again] = found.set.requests.as_slice() else {
        panic!("three requests");
    };
    assert_eq!(text(&page.path), "/?token=abc&q=a%20b");
    assert!(headers(page).contains(&("cookie", "sid=1".to_owned())));
    assert_eq!(login.pause, Duration::from_millis(2999));
    assert_eq!(again.pause, Duration::from_millis(10));
}

#[test]
fn what_firefox_saves_is_read_in_the_order_of_time() {
    let found = fixture("firefox.har", HarOptions::default());
    assert_eq!(found.origin, "http://shop.test:8080");
    assert_eq!(
        counts(&found.left_out),
        [("with a body that is not in the file", 1)]
    );
    let [page, form] = found.set.requests.as_slice() else {
        panic!("two requests");
    };
    assert_eq!(page.name, "GET /");
    assert_eq!(text(form.body.as_ref().unwrap()), "a=x+y&b=%C3%A9");
    assert_eq!(form.expect.status, None);
    assert_eq!(
        headers(form),
        [
            ("Accept-Language", "de".to_owned()),
            (
                "Content-Type",
                "application/x-www-form-urlencoded".to_owned()
            )
        ]
    );
}

#[test]
fn a_recording_that_is_written_as_a_file_is_read_as_the_same() {
    for (name, keeps_pauses) in [
        ("chrome.har", true),
        ("chrome.har", false),
        ("firefox.har", true),
    ] {
        let options = HarOptions {
            keeps_secrets: true,
            keeps_pauses,
        };
        let set = fixture(name, options).set;
        let written = crate::file::write(&set).unwrap();
        let read = crate::file::read("x.toml", &written, Path::new(""), Vec::new());
        assert_eq!(read.unwrap(), set, "{written}");
    }
}

#[test]
fn what_is_no_recording_says_so() {
    let of = |text: &str| read(text, &HarOptions::default()).unwrap_err();
    assert!(of("{}").contains("not a HAR file"), "{}", of("{}"));
    assert!(of("[").contains("line 1"));
    assert!(of(r#"{"log": {"entries": []}}"#).contains("no request"));
    let connect =
        r#"{"log": {"entries": [{"request": {"method": "CONNECT", "url": "http://a/"}}]}}"#;
    assert!(of(connect).contains("1 with a method that is not sent"));
}

/// The only request of a recording with this URL, fields and body.
fn recorded(url: &str, fields: &[(&str, &str)], body: Option<&str>) -> Recorded {
    let headers: Vec<_> = fields
        .iter()
        .map(|(name, value)| serde_json::json!({"name": name, "value": value}))
        .collect();
    let mut request = serde_json::json!({"method": "POST", "url": url, "headers": headers});
    if let Some(body) = body {
        request["postData"] = serde_json::json!({"mimeType": "text/plain", "text": body});
    }
    let recording = serde_json::json!({"log": {"entries": [{"request": request}]}});
    read(&recording.to_string(), &HarOptions::default()).unwrap()
}

#[test]
fn a_query_without_a_path_is_kept() {
    let found = recorded("https://h?x=1", &[], None);
    assert_eq!(text(&found.set.requests[0].path), "/?x=1");
}

#[test]
fn secrets_are_found_by_all_their_names() {
    for (name, is_kept) in [
        ("X-Authorization", false),
        ("X-Authentication", false),
        ("X-Author", true),
        ("X-Session-Id", false),
    ] {
        let found = recorded("http://h/", &[(name, "s3cret")], None);
        let kept = !headers(&found.set.requests[0]).is_empty();
        assert_eq!(kept, is_kept, "{name}");
    }
    for name in ["PHPSESSID", "credentials", "passphrase", "otp", "code"] {
        let found = recorded(&format!("http://h/a?{name}=s3cret&q=1"), &[], None);
        assert_eq!(text(&found.set.requests[0].path), "/a?q=1", "{name}");
    }
    let found = recorded(
        "http://h/a;jsessionid=s3cret;v=1/b?country_code=de",
        &[],
        None,
    );
    assert_eq!(
        text(&found.set.requests[0].path),
        "/a;v=1/b?country_code=de"
    );
    let referer = [("Referer", "http://h/a?token=s3cret&q=1")];
    let found = recorded("http://h/", &referer, None);
    assert_eq!(headers(&found.set.requests[0])[0].1, "http://h/a?q=1");
}

#[test]
fn bodies_that_may_hold_secrets_are_counted() {
    for (body, expected) in [
        ("user=a&password=b", 1),
        (r#"{"passphrase": "b"}"#, 1),
        ("a=b", 0),
        (r#"{"name": "b"}"#, 0),
    ] {
        let found = recorded("http://h/", &[], Some(body));
        assert_eq!(found.secret_bodies, expected, "{body}");
        let is_noted = found
            .notes()
            .iter()
            .any(|note| note.starts_with("bodies stay"));
        assert_eq!(is_noted, expected > 0);
    }
}

proptest! {
    #[test]
    fn no_entry_makes_the_reader_panic(
        url in "(https?://|[a-z:/?#&=%@]){0,8}", time in ".{0,30}", took in -1e300..1e300f64, method in "[A-Z ]{0,4}"
    ) {
        let entry = serde_json::json!({
            "startedDateTime": time, "time": took,
            "request": {"method": method, "url": url, "headers": [{"name": url, "value": time}]},
        });
        let text = serde_json::json!({"log": {"entries": [entry]}}).to_string();
        let _ = read(&text, &HarOptions { keeps_secrets: false, keeps_pauses: true });
    }
}
