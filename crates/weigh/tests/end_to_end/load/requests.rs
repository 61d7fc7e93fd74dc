//! `weigh load`: requests of files, and mistakes in them.

mod login;
mod replay;

use crate::common::{Origin, Place, array, load, no_errors, serve_tcp, texts};

#[test]
fn requests_of_a_file_are_sent_with_their_bodies_and_checks() {
    let place = Place::new();
    let (address, talk) = serve_tcp(|head| {
        let line = head.lines().next().unwrap();
        (
            if line.starts_with("PUT") { 404 } else { 200 },
            line.to_owned(),
        )
    });
    place.write("body", "from a file");
    place.write(
        "shop.toml",
        "order = \"in_turn\"\n\
         [[request]]\npath = \"/\u{e9}\"\nheaders = { X-Own = \"1\" }\n\
         [[request]]\nname = \"put\"\nmethod = \"PUT\"\npath = \"/b\"\nbody_file = \"body\"\n\
         expect = { status = 404, contains = \"PUT /b\" }\n",
    );
    let url = format!("http://{address}/");
    let (_, document) = load(&place, &url, "--requests shop.toml -H X-All:2 -n 10 -c 1");
    no_errors(&document);
    let each = array(&document["per_request"]);
    assert_eq!(texts(each, "name"), ["GET /\u{e9}", "put"]);
    assert_eq!(document["content_compared"], false);
    let lines = talk.lines();
    assert!(
        lines.iter().any(|line| line == "GET /%C3%A9 HTTP/1.1"),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line == "PUT /b HTTP/1.1"),
        "{lines:?}"
    );
}

#[test]
fn a_recording_is_written_as_a_file_of_requests() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let entry = |path: &str, time: &str| {
        format!(
            "{{\"startedDateTime\": \"{time}\", \"time\": 5, \"request\": {{\"method\": \"GET\", \
             \"url\": \"https://shop.test{path}\", \"headers\": [{{\"name\": \"Cookie\", \"value\": \
             \"a=b\"}}]}}, \"response\": {{\"status\": 200}}}}"
        )
    };
    let entries = [
        entry("/bytes/5", "2026-11-27T10:00:00.000Z"),
        entry("/bytes/7?token=x", "2026-11-27T10:00:01.000Z"),
    ];
    let har = format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(","));
    place.write("shop.har", &har);
    let done = place
        .run("load --har shop.har --write-requests shop.toml")
        .expect(0);
    done.says(&[
        "2 requests to https://shop.test",
        "2 cookies",
        "--har-secrets",
    ]);
    for more in ["--requests shop.toml", "--har shop.har"] {
        let (_, document) = load(&place, &origin.url, &format!("{more} -n 10 -c 1"));
        no_errors(&document);
        let names = texts(array(&document["per_request"]), "name");
        assert_eq!(names, ["GET /bytes/5", "GET /bytes/7"]);
    }
}
