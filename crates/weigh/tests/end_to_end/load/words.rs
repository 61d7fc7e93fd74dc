//! Wrong calls: status 2, what is wrong with them, and nothing is sent.

use std::net::TcpListener;

use crate::common::{Place, load, no_errors, serve_tcp, words};

/// A server that must not be asked.
struct Untouched(TcpListener);

impl Untouched {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn url(&self) -> String {
        format!("http://{}/", self.0.local_addr().unwrap())
    }

    /// Runs `verb` on this server with words that are wrong.
    #[track_caller]
    fn refuses(&self, place: &Place, verb: &str, more: &[&str], says: &[&str]) {
        let url = self.url();
        let mut all = vec![verb, &url, "--timeout", "1s"];
        all.extend(more);
        let done = place.run(&all).expect(2);
        done.says(says);
        assert_eq!(done.out, "");
        assert!(self.0.accept().is_err(), "{more:?}: it was asked");
    }
}

#[test]
fn a_source_is_an_address_of_this_machine_and_of_the_targets_family() {
    let place = Place::new();
    let server = Untouched::start();
    // Documentation's (RFC 5737), which no machine has.
    let foreign = words("--source 127.0.0.1,192.0.2.99");
    let says = ["192.0.2.99", "does not have this address", "`ip address`"];
    server.refuses(&place, "load", &foreign, &says);
    if TcpListener::bind("[::1]:0").is_ok() {
        let says = ["--source ::1", "expected an IPv4 address", "127.0.0.1:"];
        server.refuses(&place, "load", &["--source", "::1"], &says);
        server.refuses(&place, "load", &["--crawl", "--source", "::1"], &says);
    }
    let (address, _talk) = serve_tcp(|_| (200, "x".into()));
    let url = format!("http://{address}/");
    let (_, document) = load(&place, &url, "-n 20 -c 2 --source 127.0.0.2,127.0.0.3");
    no_errors(&document);
}

#[test]
fn calls_that_are_wrong_are_refused_with_the_reason() {
    let place = Place::new();
    for (name, text) in [
        ("body", "12345"),
        ("users.csv", "id,name\n1,A\n2\n"),
        ("good.csv", "id,name\n1,A\n2,B\n"),
        ("shop.toml", "[[request]]\npath = \"/{{ sek }}\"\n"),
        ("shop.har", "{\"log\": {\"entries\": []}}"),
        ("access.log", "nothing of a log\n"),
        ("good.toml", include_str!("../run/words/good.toml")),
    ] {
        place.write(name, text);
    }
    let (server, before) = (Untouched::start(), place.names());
    let calls = include_str!("words/refused.txt").lines();
    for call in calls.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (line, says) = call.split_once(" => ").unwrap();
        let done = place.run(&line.replace("URL", &server.url())).expect(2);
        done.says(&says.split(" | ").collect::<Vec<_>>());
        assert_eq!(done.out, "", "{line}");
        assert!(server.0.accept().is_err(), "{line}: it was asked");
    }
    assert_eq!(place.names(), before);
}

#[test]
fn options_of_an_open_loop_are_taken_where_they_say_something() {
    let place = Place::new();
    let (address, _talk) = serve_tcp(|_| (200, "x".into()));
    let url = format!("http://{address}/");
    for more in [
        "--rate 100 -n 5 --arrivals poisson --wait sleep",
        "--stages 100ms@100 --wait sleep",
    ] {
        load(&place, &url, more);
    }
}

#[test]
fn the_scheme_and_the_host_of_a_url_may_be_large_or_small() {
    let place = Place::new();
    let (address, _talk) = serve_tcp(|_| (200, "x".into()));
    let port = address.port();
    let (_, document) = load(&place, &format!("HTTP://{address}/"), &["-n", "5"]);
    no_errors(&document);
    place.write(
        "urls",
        &format!("http://localhost:{port}/a\nHttp://LOCALHOST:{port}/b\n"),
    );
    place.run("load --urls urls -n 5 -q").expect(0);
}
