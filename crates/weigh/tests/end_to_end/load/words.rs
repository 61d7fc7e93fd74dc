//! Wrong words of `weigh load`: status 2, what is wrong with them, and nothing is sent.

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
fn headers_do_not_say_twice_what_a_request_may_say_once() {
    let place = Place::new();
    let server = Untouched::start();
    place.write("body", "12345");
    for verb in ["load", "capacity"] {
        let more: &[&str] = match verb {
            "load" => &[],
            _ => &["--slo", "p99<1s"],
        };
        let refuses = |headers: &[&str], says: &[&str]| {
            let mut all = more.to_vec();
            all.extend(headers);
            server.refuses(&place, verb, &all, says);
        };
        refuses(
            &["--body", "body", "-H", "content-length: 3"],
            &["Content-Length", "--body gives the length"],
        );
        refuses(
            &["-m", "POST", "-H", "Transfer-Encoding: chunked"],
            &["Transfer-Encoding", "--body gives"],
        );
        refuses(
            &["-H", "Host: a", "-H", "host: b"],
            &["expected one Host at most", "`a` and `b`"],
        );
    }
    let refused = ["--crawl", "-H", "Host: a", "-H", "Host: b"];
    server.refuses(&place, "load", &refused, &["one Host at most"]);
}

#[test]
fn values_that_no_load_can_have_are_refused_as_words() {
    let place = Place::new();
    let server = Untouched::start();
    for (more, says) in [
        ("--interval 0s", "at least 10ms, found `0s`"),
        ("--connect-timeout 0s", "a time above 0"),
        ("-d 10", "the unit is missing"),
        ("-c 0", "'0'"),
        ("--rate 1e12", "at most 100000000 requests per second"),
        ("--stages 10s", "10s@2000"),
        ("--stages 1s@0,2s@0-0", "no request becomes due"),
        ("--io kqueue", "kqueue"),
        ("--body @absent", "--body @absent: No such file"),
        (
            "--body absent.json",
            "no such file; --body @absent.json names a file",
        ),
        ("--cpus 0,9999", "--cpus 9999: no thread"),
        ("--crawl --cpus 999", "--cpus 999: no thread"),
    ] {
        server.refuses(&place, "load", &words(more), &[says]);
    }
    for (more, says) in [
        ("--step 0s", "a time above 0"),
        ("--step-max 0s", "a time above 0"),
        ("--cpus 999", "--cpus 999: no thread"),
    ] {
        let more = format!("--slo p99<1s {more}");
        server.refuses(&place, "capacity", &words(&more), &[says]);
    }
    for url in ["127.0.0.1:9", "ftp://127.0.0.1/", "'http://no host/'"] {
        let done = place.run(&format!("load {url}")).expect(2);
        done.says(&["expected a URL"]);
        assert_eq!(done.out, "");
    }
    for verb in ["load", "capacity --slo p99<1s"] {
        let line = format!("{verb} {} --timeout 0s", server.url());
        place.run(&line).expect(2).says(&["a time above 0"]);
    }
}

#[test]
fn options_that_contradict_each_other_or_say_nothing_are_refused() {
    let place = Place::new();
    let server = Untouched::start();
    let open = "were not provided: <--rate <RATE>";
    let both = "cannot be used with";
    for (more, says) in [
        ("--passes 3", "--crawl"),
        ("--passes 3 -d 1s", "--crawl"),
        ("--pages-max 3 -n 5", "--crawl"),
        ("--depth 3 -c 1", "--crawl"),
        ("--arrivals poisson", open),
        ("--arrivals even -n 5", open),
        ("--wait spin", open),
        ("--wait sleep --each-connection 5", open),
        ("--wait spin --crawl", open),
        ("--stages 1s@5 --rate 5", both),
        ("--stages 1s@5 -n 5", both),
        ("--stages 1s@5 -d 5s", both),
        ("-d 1s -n 5", both),
        ("--crawl -d 1s", both),
        ("--crawl --rate 5", both),
        ("--crawl -c 2", both),
        (
            "--source 127.0.0.1 --unix-socket x",
            "cannot be used with '--unix-socket",
        ),
    ] {
        server.refuses(&place, "load", &words(more), &[says]);
    }
    // Where they say something they are taken.
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

#[test]
fn streams_of_events_fit_no_option_about_whole_answers() {
    let place = Place::new();
    let server = Untouched::start();
    for (more, says) in [
        (
            "--events --expect-contains x",
            "--expect-contains: it is about the body",
        ),
        ("--events --crawl", "--crawl: it asks for pages"),
        (
            "--events -m HEAD",
            "--method HEAD: its answers have no content",
        ),
        ("--events=html", "--events"),
        ("--pace 20ms", "--events"),
        ("--stall 1s", "--events"),
    ] {
        server.refuses(&place, "load", &words(more), &[says]);
    }
}
