//! HTTP/3, as a user has it: the load against the origin and Caddy, the origin with a browser.

use std::process::Command;

use readings::{QuicCongestion, is_same_congestion};

use super::agreed;
use crate::common::{Origin, Place, array, has, load, no_errors, number, skip, words};
use crate::compare::own_servers::there;

#[test]
fn a_load_over_http3_has_streams_and_packets() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let (url, running) = (origin.url.clone(), origin.running);
    assert!(running.errors().contains("HTTP/3"), "{}", running.errors());
    let (done, document) = load(&place, &url, "--http 3 --streams 8 -c 2 -n 400 --ca ca.pem");
    assert_eq!(done.status, 0, "{}", document["problems"]);
    no_errors(&document);
    assert_eq!(document["requests"], 400);
    assert_eq!(document["connects"], 2);
    assert_eq!(document["streams"], 8);
    assert_eq!(document["connect_us"]["count"], 0);
    let tls = &document["tls"];
    assert_eq!(tls["negotiated"][0]["alpn"], "h3");
    assert_eq!(tls["handshake_us"]["count"], 2);
    let quic = &document["quic"];
    assert!(number(&quic["packets_sent"]) > 0.0, "{quic}");
    assert!(number(&quic["gso_batch"]) >= 1.0, "{quic}");
    assert!(number(&quic["window_bytes"]) > 1e8, "{quic}");
    // Congestion control is that of TCP here, on both sides, unless one is asked for.
    let tcp = document["tcp_congestion"].as_str().unwrap();
    let like_tcp = QuicCongestion::like_tcp(Some(tcp)).name();
    assert_eq!(quic["congestion"], like_tcp);
    let said = format!("HTTP/3 with {like_tcp}");
    assert!(running.errors().contains(&said), "{}", running.errors());
    let line = format!("load {url} --http 3 -n 20 --insecure --quic-congestion newreno");
    let done = place.run(&words(&line)).expect(0);
    let said = "QUIC: the client's congestion control is newreno";
    has(&done.out, said);
    let open = "--http 3 --streams 8 -c 2 -d 1s --rate 300 --insecure";
    let (_, document) = load(&place, &url, open);
    no_errors(&document);
    assert!(
        (250.0..350.0).contains(&number(&document["requests"])),
        "{document}"
    );
    // A stopped origin says so, and no request waits for an idle timeout.
    drop(running);
    let done = place.run(&words(&format!(
        "load {url} --http 3 -n 5 --insecure --timeout 5s"
    )));
    has(&done.err, "HTTP/3");
}

#[test]
fn a_result_says_where_http3_and_tcp_have_other_congestion_control() {
    let place = Place::new();
    let tcp = net::os::tcp_congestion().unwrap();
    let other = match tcp.as_str() {
        "reno" => "cubic",
        _ => "newreno",
    };
    place.experiment(
        "[servers.o]\nrecipe = \"origin\"\nwith = { tls = true }\n\
         [subjects]\nhttp2 = { url = \"https://o/\", http = \"2\", connections = 2, streams = 4 }\n\
         http3 = { url = \"https://o/\", http = \"3\", connections = 2, streams = 4 }\n",
    );
    let like_tcp = QuicCongestion::like_tcp(Some(&tcp)).name();
    let of_load = format!("load.quic_congestion={other}");
    let of_server = format!("servers.o.with.quic_congestion={other}");
    for (set, client, server) in [
        ("load.quic_congestion=auto", like_tcp, like_tcp),
        (of_load.as_str(), other, like_tcp),
        (of_server.as_str(), like_tcp, other),
    ] {
        let call = ["run", "x.toml", "--format", "json", "--out", set];
        let done = place.run(&[&call[..], &["--set", set]].concat());
        let document = done.none_failed();
        let ends = array(&document["congestion"]).iter().map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            [
                text("subject"),
                text("transport"),
                text("client"),
                text("server"),
            ]
        });
        let expected = [
            ["http2", "TCP", tcp.as_str(), tcp.as_str()],
            ["http3", "QUIC", client, server],
        ];
        assert_eq!(ends.collect::<Vec<_>>(), expected, "{set}");
        let warnings = document["warnings"].to_string();
        let is_same = is_same_congestion(client, &tcp) && is_same_congestion(server, &tcp);
        assert_eq!(
            warnings.contains("congestion control"),
            !is_same,
            "{warnings}"
        );
    }
    // It shows with the settings, and between the sentences on the loads.
    let shown = place.run("report load.quic_congestion=auto --verbose").out;
    let sentence = format!("http3: QUIC, congestion control {like_tcp} at both ends");
    has(&shown, &sentence);
    let done = place.run("run x.toml --set load.quic_congestion=bbr --set subjects.http3.http=2");
    assert_eq!(done.status, 2, "{}", done.err);
    has(&done.err, "needs HTTP/3");
}

#[test]
fn subjects_speak_http3_to_the_origin_and_to_caddy() {
    let place = Place::new();
    let mut servers = "[servers.o]\nrecipe = \"origin\"\nwith = { tls = true }\n".to_owned();
    let mut subjects = "[subjects]\nhttp1 = { url = \"https://o/\", connections = 6 }\n\
         http3 = { url = \"https://o/\", http = \"3\", connections = 1, streams = 12 }\n"
        .to_owned();
    match Command::new("caddy").arg("version").output() {
        Err(_) => skip("caddy is not installed"),
        Ok(_) => {
            servers.push_str(
                "[servers.c]\nrecipe = \"caddy\"\n\
                 with = { tls = true, http2 = true, http3 = true }\n",
            );
            subjects.push_str(
                "caddy = { url = \"https://c/hello.txt\", http = \"3\", connections = 2, \
                 streams = 4 }\n",
            );
        }
    }
    let has_caddy = subjects.contains("caddy");
    place.experiment(&format!("{servers}{subjects}"));
    place.run("run x.toml --format json --out r").none_failed();
    let mut expected = vec![("http1", 6, "http/1.1", false), ("http3", 1, "h3", true)];
    if has_caddy {
        expected.push(("caddy", 2, "h3", true));
    }
    let owned = |(name, count, alpn, is_quic): (&str, u64, &str, bool)| {
        (name.to_owned(), count, alpn.to_owned(), is_quic)
    };
    assert_eq!(agreed(&place), expected.into_iter().map(owned).collect());
}

#[test]
fn a_browser_loads_a_page_of_the_origin_over_http3_and_http2() {
    let place = Place::new();
    if !there("chromium", "chromium") || !there("openssl", "openssl") {
        return;
    }
    let Origin {
        running: _origin,
        url,
    } = Origin::encrypted(&place, "");
    let port = url.rsplit(':').next().unwrap().trim_end_matches('/');
    // The browser trusts the key of this certificate, whoever has signed it.
    let address = format!("127.0.0.1:{port}");
    let pin = format!(
        "openssl s_client -connect {address} </dev/null 2>/dev/null \
         | openssl x509 -pubkey -noout | openssl pkey -pubin -outform der \
         | openssl dgst -sha256 -binary | openssl base64"
    );
    let pin = Command::new("sh").args(["-c", &pin]).output().unwrap();
    let pin = String::from_utf8(pin.stdout).unwrap();
    for (number, more) in [
        format!("--origin-to-force-quic-on={address}"),
        "--disable-quic".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let page = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!(
                "--user-data-dir={}",
                place.path(&format!("browser{number}")).display()
            ))
            .arg(format!(
                "--ignore-certificate-errors-spki-list={}",
                pin.trim()
            ))
            .arg(more)
            .arg(&url)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&page.stdout);
        let said = String::from_utf8_lossy(&page.stderr);
        assert!(text.contains("Hello, world!"), "{more}: {text} {said}");
    }
}
