//! `weigh load`: requests of files, and mistakes in them.

mod login;
mod replay;

use crate::common::{Origin, Place, array, load, no_errors, serve_tcp, texts};

const NO_SERVER: &str = "http://127.0.0.1:1/";

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
fn mistakes_are_shown_before_anything_is_sent() {
    let place = Place::new();
    place.write("users.csv", "id,name\n1,A\n2\n");
    place.write("good.csv", "id,name\n1,A\n2,B\n");
    place.write("shop.toml", "[[request]]\npath = \"/{{ sek }}\"\n");
    place.write("shop.har", "{\"log\": {\"entries\": []}}");
    place.write("access.log", "nothing of a log\n");
    for (more, parts) in [
        (
            "--feed users.csv",
            vec!["users.csv", "1 value", "no value for `name`"],
        ),
        (
            "--feed good.csv",
            vec!["no placeholder names it", "{{ good.id }}"],
        ),
        (
            "--requests shop.toml",
            vec!["shop.toml", "did you mean `seq`?"],
        ),
        (
            "--requests absent.toml",
            vec!["absent.toml", "cannot be read"],
        ),
        ("--har shop.har", vec!["shop.har", "no request"]),
        (
            "--replay access.log",
            vec!["access.log", "no format of an access log"],
        ),
        (
            "--replay access.log --rate 5",
            vec!["--rate does not go with --replay"],
        ),
        (
            "--requests shop.toml --crawl",
            vec!["--crawl does not go with --requests"],
        ),
        ("-H X:{{x}}", vec!["--header X", "unknown name `x`"]),
        ("--body {{x}}", vec!["--body", "unknown name `x`"]),
        ("--cookies --idle 5", vec!["--idle alone"]),
        ("--feed 1.csv", vec!["cannot stand in a placeholder"]),
        (
            "--replay access.log --from noon",
            vec!["such as 2026-11-27T10:00:00Z"],
        ),
    ] {
        let done = place.run(&format!("load {NO_SERVER} {more}")).expect(2);
        done.says(&parts);
        assert_eq!(done.out, "", "{more}");
    }
    let done = place.run(&format!(
        "load {NO_SERVER}{{{{users.ix}}}} --feed users=good.csv"
    ));
    done.expect(2).says(&["the URL", "no column `ix`", "`id`"]);
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
