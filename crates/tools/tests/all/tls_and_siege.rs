//! What tools say of TLS, and what siege prints.
use crate::support::{one, output};
use tools::{ReadError, Tool, ToolReading, ToolTls, read_all, read_output};

fn tls(name: &str) -> Option<[Option<String>; 4]> {
    let ToolTls {
        version,
        suite,
        group,
        alpn,
    } = one(name).tls?;
    Some([version, suite, group, alpn])
}

fn words(words: [&str; 4]) -> Option<[Option<String>; 4]> {
    Some(words.map(|word| Some(word.to_owned()).filter(|word| !word.is_empty())))
}

#[test]
fn ab_and_h2load_say_how_connections_were_encrypted() {
    let ab = ["1.3", "TLS_AES_256_GCM_SHA384", "X25519", ""];
    assert_eq!(tls("ab-tls.txt"), words(ab));
    assert_eq!(one("ab-tls.txt").requests, Some(300));
    let url = one("ab-tls.txt").url;
    assert_eq!(url.as_deref(), Some("https://127.0.0.1:8443/"));
    let h2 = ["1.3", "TLS_AES_128_GCM_SHA256", "X25519", "h2"];
    assert_eq!(tls("h2load-tls.txt"), words(h2));
    let h1 = ["1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "X25519", "http/1.1"];
    assert_eq!(tls("h2load-tls-h1.txt"), words(h1));
    // Without TLS there is a protocol, too.
    assert_eq!(tls("h2load.txt"), None);
    assert_eq!(tls("ab.txt"), None);
}

#[test]
fn outputs_over_tls_are_read_like_others() {
    for name in ["wrk-tls.txt", "httperf-tls.txt", "h2load-tls.txt"] {
        let reading = one(name);
        assert!(reading.requests.unwrap() >= 50, "{name}");
        assert_eq!(reading.errors.total(), 0, "{name}");
    }
    let url = one("wrk-tls.txt").url;
    assert_eq!(url.as_deref(), Some("https://127.0.0.1:8443/"));
}

#[test]
fn siege_is_read_as_text_and_as_json() {
    let text = one("siege.txt");
    assert_eq!(text.tool, Tool::Siege);
    assert_eq!((text.requests, text.duration_s), (Some(9_225), Some(1.55)));
    assert_eq!(text.requests_per_s, Some(5_951.61));
    // From the command; whether connections are kept is a setting of a file.
    assert_eq!((text.connections, text.keepalive), (Some(4), None));
    assert_eq!(text.url.as_deref(), Some("http://127.0.0.1:8080/"));
    // 0.00 s is no figure; the mean follows from concurrency and rate.
    let mean_us = text.latency.mean_us.unwrap();
    assert!((mean_us - 636.8).abs() < 0.1, "{mean_us}");
    assert_eq!(text.latency.min_us, None);
    assert_eq!(text.latency.max_us, Some(10_000.0));
    assert_eq!((text.bytes_read, text.errors.total()), (None, 0));
    let json = one("siege-json.txt");
    assert_eq!((json.requests, json.connections), (Some(400), Some(4)));
    assert_eq!(json.url.as_deref(), Some("https://127.0.0.1:8443/"));
    assert!(json.latency.mean_us.unwrap() > 1_000.0);
}

#[test]
fn siege_tells_wrong_answers_from_failures() {
    let absent = one("siege-404.txt");
    assert_eq!((absent.requests, absent.errors.status), (Some(20), 20));
    let failing = one("siege-503.txt");
    let unexplained = |reading: &ToolReading| (reading.errors.unexplained, reading.errors.total());
    assert_eq!(failing.requests, Some(0));
    assert_eq!(unexplained(&failing), (20, 20));
    let refused = one("siege-refused.txt");
    assert_eq!(refused.requests, Some(0));
    assert_eq!(unexplained(&refused), (6, 6));
    assert_eq!((refused.duration_s, refused.latency.mean_us), (None, None));
}

#[test]
fn siege_is_found_between_others_and_misses_are_told() {
    let all = [
        output("siege.txt"),
        output("ab-tls.txt"),
        output("siege-json.txt"),
    ]
    .join("\n");
    let tools: Vec<Tool> = read_all(&all).iter().map(|one| one.tool).collect();
    assert_eq!(tools, [Tool::Siege, Tool::Ab, Tool::Siege]);
    let spoilt = output("siege.txt").replace("9225 hits", "many hits");
    let error = read_output(Tool::Siege, &spoilt).unwrap_err();
    assert!(matches!(error, ReadError::Figure { .. }), "{error}");
    assert!(read_output(Tool::Siege, "It felt fast.\n").is_err());
}
