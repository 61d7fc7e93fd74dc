//! TLS, as a user has it: origin, load, balancer and experiments.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use ::tls::{Authority, KeyType};

use crate::common::{Origin, Place, array, flat, has, load, no_errors, number, words};

#[test]
fn a_load_over_tls_says_what_was_agreed_on() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let (done, document) = load(&place, &origin.url, "-n 200 -c 4 --ca ca.pem");
    assert_eq!(done.status, 0, "{}", document["problems"]);
    no_errors(&document);
    assert_eq!(document["requests"], 200);
    assert_eq!(document["connects"], 4);
    let tls = &document["tls"];
    assert_eq!(tls["handshakes"], 4, "{tls}");
    assert_eq!(tls["resumed"], 0, "{tls}");
    assert_eq!(tls["handshake_us"]["count"], 4, "{tls}");
    let agreed = &tls["negotiated"][0];
    assert_eq!(agreed["version"], "1.3");
    assert_eq!(agreed["suite"], "TLS_AES_128_GCM_SHA256");
    assert_eq!(agreed["group"], "x25519");
    assert_eq!(agreed["alpn"], "http/1.1");
    assert_eq!(agreed["key"], "ecdsa-p256");
    assert_eq!(agreed["sessions"], 4);
    assert_eq!(array(&tls["negotiated"]).len(), 1);
    // TLS adds to what HTTP sends.
    assert!(number(&tls["wire_bytes_read"]) > number(&document["bytes_read"]));
}

#[test]
fn version_suites_groups_and_key_type_are_those_that_were_asked_for() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "--tls-key-type rsa-2048");
    let agreed = |line: &str| {
        let mut more = words(line);
        more.extend(["-n", "20", "-c", "2", "--ca", "ca.pem"]);
        let (_, document) = load(&place, &origin.url, &more);
        no_errors(&document);
        document["tls"]["negotiated"][0].clone()
    };
    let old = agreed("--tls-version 1.2");
    assert_eq!(old["version"], "1.2");
    assert_eq!(old["suite"], "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    assert_eq!(old["key"], "rsa-2048");
    let other = agreed("--tls-suites TLS_AES_256_GCM_SHA384 --tls-groups secp384r1");
    assert_eq!(other["version"], "1.3");
    assert_eq!(other["suite"], "TLS_AES_256_GCM_SHA384");
    assert_eq!(other["group"], "secp384r1");
}

#[test]
fn resumed_handshakes_are_counted_apart() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let more = words("-n 60 -c 2 --ca ca.pem --no-keepalive");
    let (_, document) = load(&place, &origin.url, &more);
    no_errors(&document);
    assert_eq!(document["tls"]["handshakes"], 60);
    assert_eq!(document["tls"]["resumed"], 0);
    let resuming = [more, vec!["--tls-resume"]].concat();
    let (_, document) = load(&place, &origin.url, &resuming);
    no_errors(&document);
    let tls = &document["tls"];
    assert_eq!(tls["handshakes"], 60);
    assert!(number(&tls["resumed"]) > 30.0, "{tls}");
    let counted = number(&tls["resumed_handshake_us"]["count"]);
    assert!(counted > 0.0 && number(&tls["handshake_us"]["count"]) + counted <= 60.0);
}

#[test]
fn a_certificate_of_a_stranger_is_refused_unless_any_is_accepted() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let stranger = Authority::new().unwrap();
    place.write("stranger.pem", &stranger.certificate());
    let with = |more: &str| place.run(&format!("load {} -n 10 -c 1 -q {more}", origin.url));
    let strange = "an authority that is not trusted (UnknownIssuer)";
    let remedies = ["--ca FILE", "--insecure"];
    let refused = with("--ca stranger.pem").expect(1);
    refused.says(&[strange]).says(&remedies);
    // Without any option, the authorities of this machine are trusted, if it has some.
    let refused = with("");
    match refused.status {
        2 => refused.says(&["no certificates of authorities"]),
        _ => refused.says(&["not trusted (UnknownIssuer)"]),
    };
    with("--insecure").expect(0);
    with("--ca ca.pem").expect(0);
    with("--ca ca.pem --tls-name elsewhere.example")
        .expect(1)
        .says(&["not valid for name \"elsewhere.example\""]);
    // A server that is only asked while the load runs says the same.
    with("--ca stranger.pem --body-varies").expect(4);
}

#[test]
fn wrong_words_for_tls_are_shown_before_anything_is_measured() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let refused = |url: &str, more: &str, said: &[&str]| {
        let line = format!("load {url} -n 1 {more}");
        place.run(&line).expect(2).says(said);
    };
    let known = ["unknown cipher suite `RC4`", "TLS_AES_256_GCM_SHA384"];
    refused(&origin.url, "--ca ca.pem --tls-suites RC4", &known);
    let known = ["unknown key exchange group `x448`", "x25519, secp256r1"];
    refused(&origin.url, "--ca ca.pem --tls-groups x448", &known);
    let line = "--ca ca.pem --tls-version 1.2 --tls-suites TLS_AES_128_GCM_SHA256";
    refused(&origin.url, line, &["can be used with TLS 1.2"]);
    refused(&origin.url, "--ca none.pem", &["--ca none.pem"]);
    let plain = origin.url.replace("https://", "http://");
    refused(&plain, "--insecure", &["--insecure", "expected https://"]);
}

#[test]
fn running_servers_are_compared_with_the_authorities_that_were_named() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let compare = |more: &str| {
        let line = "-c 2 --blocks 1 --window 200ms --latency=false --bottleneck=false --out r";
        place.run(&format!("compare a={0} b={0} {line} {more}", origin.url))
    };
    let none = ["load.tls_ca (--ca) none.pem", "No such file"];
    compare("--ca none.pem").expect(2).says(&none);
    assert!(!place.path("r").exists());
    let document = compare("--ca ca.pem --format json").none_failed();
    assert_eq!(array(&document["tls"]).len(), 2);
}

#[test]
fn an_outside_driver_without_tls_is_refused_with_one_that_has_it() {
    let place = Place::new();
    place.write(
        "x.toml",
        "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\nwith = { tls = true }\n\
         [subjects]\na = \"https://o/\"\n[load]\ndriver = \"redis-benchmark\"\n",
    );
    let done = place.run("run x.toml --dry-run").expect(2);
    done.says(&["does not support https://", "drivers that support it: "]);
}

#[test]
fn the_wrong_scheme_is_named() {
    let place = Place::new();
    let encrypted = Origin::encrypted(&place, "");
    let ask = |url: &str| place.run(&format!("load {url} -n 1"));
    let done = ask(&encrypted.url.replace("https://", "http://")).expect(1);
    done.says(&["this server speaks TLS", "https"]);
    let plain = Origin::start(&place);
    let url = plain.url.replace("http://", "https://");
    let done = ask(&format!("{url} --insecure")).expect(1);
    done.says(&["expected a TLS session, found bytes that are not TLS"]);
}

#[test]
fn an_open_loop_over_tls_keeps_its_schedule() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let (_, document) = load(&place, &origin.url, "-n 100 -c 4 --rate 500 --ca ca.pem");
    no_errors(&document);
    assert_eq!(document["requests"], 100);
    assert_eq!(document["latency_us"]["count"], 100);
    assert_eq!(document["schedule_lag_us"]["count"], 100);
    assert!(document["overload"].is_null(), "{document}");
    // A busy machine may have sent late, and then it is said; nothing else may be wrong.
    for problem in array(&document["problems"]) {
        assert!(problem.as_str().unwrap().contains("client"), "{problem}");
    }
}

#[test]
fn a_crawl_and_a_capacity_speak_tls_too() {
    let place = Place::new();
    let origin = Origin::encrypted(&place, "");
    let line = format!("load {} --crawl --passes 2 --ca ca.pem", origin.url);
    let done = place.run(&line).expect(0);
    has(&done.out, "1 page below https://");
    let line = "--ca ca.pem --concurrency 1,2 --step 100ms --warmup 0s --rounds 1 --format json";
    let done = place.run(&format!("capacity {} {line}", origin.url));
    assert!([0, 4].contains(&done.status), "{}", done.err);
    assert!(done.json()["steps"].is_array(), "{}", done.out);
}

/// A file with a certificate for 127.0.0.1 and its key.
fn certificate(place: &Place, authority: &Authority, name: &str) {
    let names = ["localhost".to_string(), "127.0.0.1".into()];
    let issued = authority.issue(&names, KeyType::EcdsaP256).unwrap();
    place.write(name, &(issued.identity.chain + &issued.identity.key));
}

#[test]
fn the_balancer_ends_tls_and_speaks_it_to_a_back_end() {
    let place = Place::new();
    let behind = Origin::encrypted(&place, "");
    let authority = Authority::new().unwrap();
    place.write("front.pem", &authority.certificate());
    certificate(&place, &authority, "both.pem");
    let back_end = behind.url.trim_start_matches("https://").trim_matches('/');
    place.write(
        "b.toml",
        &format!(
            "[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"http\"\n\
             [services.web.tls]\ncertificate = \"both.pem\"\nkey = \"both.pem\"\n\
             [services.web.backends]\n\
             one = {{ address = \"{back_end}\", tls = {{ ca = \"ca.pem\" }} }}\n"
        ),
    );
    let shown = place.run("balance b.toml --check").expect(0).out;
    has(&shown, "[services.web.tls]");
    let mut running = place.start("balance b.toml");
    running.until_said("back ends: ");
    let said = running.errors();
    let line = said
        .lines()
        .find(|line| line.starts_with("service web on "));
    let address: SocketAddr = line
        .unwrap()
        .split([' ', ','])
        .nth(3)
        .unwrap()
        .parse()
        .unwrap();
    let url = format!("https://{address}/");
    let more = "-n 50 -c 2 --ca front.pem";
    let (done, document) = load(&place, &url, more);
    assert_eq!(done.status, 0, "{}", document["problems"]);
    no_errors(&document);
    assert_eq!(document["tls"]["handshakes"], 2);
    // Another implementation of TLS, on machines that have it.
    let mut curl = Command::new("curl");
    place.settle(&mut curl);
    if let Ok(asked) = curl.args(["-sS", "--cacert", "front.pem", &url]).output() {
        let said = String::from_utf8_lossy(&asked.stderr);
        assert_eq!(asked.stdout, b"Hello, world!", "{said}");
    }
    // A file that holds no certificate is shown by the check, and a reload changes nothing.
    place.write("both.pem", "broken\n");
    let wrong = [
        "service `web`",
        "both.pem",
        "expected a certificate in PEM form",
    ];
    place.run("balance b.toml --check").expect(2).says(&wrong);
    place.run("balance reload b.toml").expect(2).says(&wrong);
    let (_, document) = load(&place, &url, more);
    no_errors(&document);
}

fn files(folder: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(fs::read(&path).unwrap()),
        }
    }
}

#[test]
fn an_experiment_over_tls_shows_what_was_agreed_on_and_keeps_no_key() {
    let place = Place::new();
    place.write(
        "x.toml",
        "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\nwith = { tls = true }\n\
         [servers.b]\nrecipe = \"balance\"\nupstreams = [\"o\"]\n\
         with = { tls = true, mode = \"http\" }\n\
         [subjects]\ndirect = \"https://o/\"\nbalanced = \"https://b/\"\n\
         [load]\nconnections = 4\nkeepalive = false\ntls_version = \"1.3\"\n\
         [design]\nblocks = 2\nwarmup = \"50ms\"\nwindow = \"200ms\"\nlatency_window = \"0s\"\n\
         bottleneck = false\nretries = 0\n",
    );
    let document = place.run("run x.toml --format json --out r").none_failed();
    let tls = array(&document["tls"]);
    assert_eq!(tls.len(), 2, "{}", document["tls"]);
    for one in tls {
        assert_eq!(one["negotiated"]["version"], "1.3", "{one}");
        assert_eq!(one["negotiated"]["key"], "ecdsa-p256", "{one}");
        assert!(number(&one["handshakes"]) > 10.0, "{one}");
    }
    let text = flat(&place.run("report r --verbose").expect(0).out);
    has(
        &text,
        "balanced: TLS 1.3, TLS_AES_128_GCM_SHA256, x25519, ecdsa-p256",
    );
    let mut kept = Vec::new();
    files(&place.path("r"), &mut kept);
    assert!(kept.len() > 5);
    for bytes in kept {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("PRIVATE KEY"), "{text}");
    }
}
