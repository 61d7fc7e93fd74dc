//! `weigh load`: the ways to a server other than a plain TCP connection, and the pages of a site.

use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use testing::Text as _;

use crate::common::started::Started;
use crate::common::{
    INT, Origin, Place, Running, TERM, array, free_port, has, load, no_errors, number, serve_tcp,
    serve_unix, skip, words,
};
use serde_json::Value;

/// How long a server may take until it listens.
const STARTS: Duration = Duration::from_secs(20);

/// Starts a server and waits until a connection to it can be opened; `None`, and said, where it
/// is not installed.
fn server<'a>(place: &'a Place, program: &str, words: &[&str], port: u16) -> Option<Running<'a>> {
    let mut command = Command::new(program);
    command.args(words);
    place.settle(&mut command);
    if Command::new(program).arg("-v").output().is_err() {
        skip(&format!("weigh load: {program} is not installed"));
        return None;
    }
    let mut running = place.start_command(command);
    let end = std::time::Instant::now() + STARTS;
    running.until("it listens", || {
        assert!(std::time::Instant::now() < end, "{program} does not listen");
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Some(running)
}

/// lighttpd with the files of the folder `site`.
fn lighttpd(place: &Place, port: u16) -> Option<Running<'_>> {
    let dir = place.path("");
    let dir = dir.to_str().unwrap().trim_end_matches('/');
    place.write(
        "lighttpd.conf",
        &format!(
            "server.document-root = \"{dir}/site\"\nserver.bind = \"127.0.0.1\"\n\
             server.port = {port}\nserver.errorlog = \"{dir}/lighttpd.log\"\n\
             index-file.names = ( \"index.html\" )\n\
             mimetype.assign = ( \".html\" => \"text/html\", \".css\" => \"text/css\" )\n"
        ),
    );
    server(place, "lighttpd", &["-D", "-f", "lighttpd.conf"], port)
}

#[test]
fn a_unix_socket_takes_the_place_of_the_host() {
    let place = Place::new();
    let path = place.path("s");
    let talk = serve_unix(&path, |head| {
        let host = head.lines().find(|line| line.starts_with("Host: "));
        (200, host.unwrap().to_owned())
    });
    let more = "--unix-socket s -n 300 -c 4 -t 2";
    let (_, document) = load(&place, "http://name.example:81/path", more);
    no_errors(&document);
    assert_eq!(document["requests"], 300);
    assert_eq!(document["connects"], 4);
    let heads = talk.heads();
    assert_eq!(heads.len(), 303);
    let start = "GET /path HTTP/1.1\r\nHost: name.example:81\r\n";
    let is_so = |head: &String| (head.to_owned() + "\r\n").starts_with(start);
    assert!(heads.iter().all(is_so), "{heads:?}");

    let more = "--unix-socket s -n 40 --no-keepalive --io epoll";
    let (_, document) = load(&place, "http://name.example/", more);
    no_errors(&document);
    assert_eq!(document["connects"], 40);

    let done = place.run("load http://h/ --unix-socket none -n 1");
    done.expect(1).says(&["none", "No such file"]);
    let long = "x".repeat(200);
    let done = place.run(&format!("load http://h/ --unix-socket {long} -n 1"));
    done.expect(2).says(&["--unix-socket"]);
}

#[test]
fn a_forward_proxy_is_told_the_whole_url() {
    let place = Place::new();
    let (proxy, talk) = serve_tcp(|head| {
        let absolute = head.starts_with("GET http://name.example:81/a?b HTTP/1.1\r\n")
            && head.contains("\r\nHost: name.example:81");
        if absolute {
            (200, "through".into())
        } else {
            (400, head.into())
        }
    });
    let more = format!("--proxy http://{proxy} -n 50 -c 2");
    // The name is the proxy's to look up; there is none here.
    let (_, document) = load(&place, "http://name.example:81/a?b", &more);
    no_errors(&document);
    assert_eq!(document["requests"], 50);
    assert_eq!(talk.lines().len(), 53);
    for (proxy, says) in [
        ("http://127.0.0.1:1/path", "URL without a path"),
        ("127.0.0.1:1", "expected a URL"),
    ] {
        let done = place.run(&format!("load http://h/ --proxy {proxy}"));
        done.expect(2).says(&["--proxy", says]);
    }
}

#[test]
fn a_forward_proxy_fetches_what_is_behind_it() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let Some(squid) = Started::start("squid", "", &[]) else {
        return;
    };
    let through = format!("--proxy http://{}/", squid.address);
    let more = format!("{through} -n 200 -c 4 --expect-contains 'Hello, world!'");
    let (_, document) = load(&place, &format!("{}/", origin.url), &more);
    no_errors(&document);
    assert_eq!(document["requests"], 200);
    squid.stop();
    // The origin has seen them all, and nobody else asked it.
    assert_eq!(origin.counts().1, 203);
}

#[test]
fn haproxy_sees_the_client_that_the_header_names() {
    let place = Place::new();
    let port = free_port();
    place.write(
        "haproxy.cfg",
        &format!(
            "defaults\n  mode http\n  timeout client 10s\n  timeout connect 10s\n  \
             timeout server 10s\nfrontend f\n  bind 127.0.0.1:{port} accept-proxy\n  \
             http-request return status 200 content-type text/plain lf-string \"from %[src]\"\n"
        ),
    );
    let Some(_server) = server(&place, "haproxy", &["-db", "-f", "haproxy.cfg"], port) else {
        return;
    };
    let url = format!("http://127.0.0.1:{port}/");
    for version in ["v1", "v2"] {
        for io in ["", "--io epoll"] {
            let more = format!(
                "--proxy-protocol {version} --proxy-client 192.0.2.7 -n 120 -c 3 -t 2 {io} \
                 --requests-per-connection 10"
            );
            let more = [words(&more), vec!["--expect-contains", "from 192.0.2.7"]].concat();
            let (_, document) = load(&place, &url, &more);
            no_errors(&document);
            assert_eq!(document["requests"], 120, "{version}");
            assert!(number(&document["connects"]) >= 12.0, "{version}");
        }
        // IPv6 over an IPv4 connection, and the numbers that clients have when none are named.
        for more in [
            "--proxy-client 2001:db8::7 --expect-contains 2001:db8::7",
            "--expect-contains 198.18.0.",
        ] {
            let more = format!("--proxy-protocol {version} -n 20 -c 4 {more}");
            let (_, document) = load(&place, &url, &words(&more));
            no_errors(&document);
            assert_eq!(document["requests"], 20, "{version}");
        }
    }
    // Without the header it does not answer a request.
    place.run(&format!("load {url} -n 5")).expect(1);
}

/// A site of four pages; one is linked and is not there, one is below nothing that was asked.
fn write_site(place: &Place) {
    place.write(
        "site/docs/index.html",
        "<a href=a.html>a</a> <a href='sub/b.html'>b</a> <a href=\"/up.html\">up</a> \
         <link rel=stylesheet href=style.css> <a href=gone.html>gone</a> <a href=\"#here\">x</a>",
    );
    place.write(
        "site/docs/a.html",
        "<a href=\"./\">back</a> <a href='sub/b.html'>b</a>",
    );
    place.write("site/docs/sub/b.html", "<a href=../a.html>a</a>");
    place.write("site/docs/style.css", "p { color: red }");
    place.write("site/up.html", "up");
}

fn crawl(place: &Place, url: &str, more: &[&str]) -> (Value, String) {
    let mut words = vec!["load", url, "--crawl", "--format", "json"];
    words.extend(more);
    let done = place.run(&words).expect(0);
    (done.json(), done.err)
}

#[test]
fn the_pages_of_a_site_are_found_and_fetched_pass_after_pass() {
    let place = Place::new();
    write_site(&place);
    let port = free_port();
    let Some(_server) = lighttpd(&place, port) else {
        return;
    };
    let url = format!("http://127.0.0.1:{port}/docs/");
    let (document, said) = crawl(&place, &url, &["--passes", "3"]);
    // `./` is the first page again, and is known.
    assert_eq!(document["pages"], 4, "{document}");
    assert_eq!(document["url"], url);
    assert_eq!(document["refused"][0][0], "/docs/gone.html");
    assert_eq!(document["refused"][0][1], 404);
    has(&said, "/docs/gone.html answers with status 404");
    let files = ["index.html", "a.html", "sub/b.html", "style.css"];
    let bytes: u64 = files
        .iter()
        .map(|file| {
            std::fs::metadata(place.path(&format!("site/docs/{file}")))
                .unwrap()
                .len()
        })
        .sum();
    assert_eq!(document["page_bytes"], bytes);
    let passes = array(&document["passes"]);
    assert_eq!(passes.len(), 3);
    for pass in passes {
        assert_eq!(pass["requests"], 4, "{pass}");
        assert_eq!(pass["errors"]["connect"], 0, "{pass}");
        assert_eq!(pass["latency_us"]["count"], 4, "{pass}");
        assert!(number(&pass["duration_s"]) > 0.0, "{pass}");
        assert!(number(&pass["bytes_read"]) > bytes as f64, "{pass}");
    }
    let (document, said) = crawl(&place, &url, &["--pages-max", "2", "--passes", "1"]);
    assert_eq!(document["pages"], 2);
    has(&said, "--pages-max 2");
    // lighttpd leads from a folder without its slash to the one with it; `/up.html` is below `/`.
    let (document, _) = crawl(&place, url.trim_end_matches('/'), &["--passes", "2"]);
    assert_eq!(document["pages"], 5, "{document}");
    for pass in array(&document["passes"]) {
        assert_eq!(pass["requests"], 5, "{pass}");
        no_errors(pass);
    }
    // Depth 0 is the first page alone.
    let (document, _) = crawl(&place, &url, &["--depth", "0"]);
    assert_eq!(document["pages"], 1);
    assert_eq!(array(&document["passes"]).len(), 10);
    let text = place
        .run(&format!("load {url} --crawl --passes 2"))
        .expect(0)
        .out;
    text.begins("4 pages below http://");
    text.has("median");
}

#[test]
fn a_page_that_is_not_there_cannot_be_crawled() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let url = format!("{}/status/404", origin.url);
    let done = place.run(&format!("load {url} --crawl")).expect(1);
    done.says(&["/status/404 answers with status 404: there is nothing to crawl"]);
    assert_eq!(done.out, "");
}

#[test]
fn a_crawl_that_is_stopped_says_what_it_fetched() {
    let slow = |head: &str| {
        let page = match head.split(' ').nth(1) {
            Some("/") => "<a href=slow>x</a>",
            _ => "",
        };
        std::thread::sleep(Duration::from_secs(1));
        (200, page.to_owned())
    };
    // The first two requests are those that find the pages.
    let stop = |asked: usize, signal: i32, format: &str| {
        let place = Place::new();
        let (address, talk) = serve_tcp(slow);
        let url = format!("http://{address}/");
        let mut running = place.start(&format!("load {url} --crawl --format {format}"));
        running.until("it has asked", || talk.heads().len() == asked);
        running.signal(signal);
        running.end().expect(128 + signal)
    };
    let cases = [
        (1, INT, "stopped while looking for pages, after 1", 1),
        (3, INT, "stopped in pass 1, after 0 of 2 pages", 2),
        (4, TERM, "stopped in pass 1, after 1 of 2 pages", 2),
        (6, TERM, "stopped in pass 2, after 1 of 2 pages", 2),
    ];
    std::thread::scope(|scope| {
        for (asked, signal, says, pages) in cases {
            scope.spawn(move || {
                let done = stop(asked, signal, "json");
                done.says(&[says]);
                let document = done.json();
                assert_eq!(document["pages"], pages, "{document}");
                let passes = usize::from(asked > 4);
                assert_eq!(array(&document["passes"]).len(), passes, "{document}");
            });
        }
        let done = stop(3, INT, "text");
        has(&done.out, "no pass was complete");
    });
}
