//! The target that the options describe.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use load::{
    BodyRule, Choice, Expect, Http2, Http3, Job, PrepareError, ProxyHeader, ProxyVersion,
    ReferenceError, Request, StatusRule, Target,
};
use net::fetch::FetchError;
use net::{Address, AddressSelection, NameError, UnixPath};
use readings::requests::RequestSet;
use readings::url::{AuthorityFault, authority, encoded_path};
use requests::placeholder::has_places;
use tls::CertificateFault;

use crate::cli::{HttpVersion, LoadArgs, ProxyProtocol};
use crate::failure::Failure;
use crate::signals::Signals;

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// Whether it is an https or wss URL.
    pub(super) is_tls: bool,
    /// Whether it is a ws or wss URL.
    pub(super) is_websocket: bool,
    /// Host with port, as it was written.
    pub(super) host: String,
    /// Path and query.
    pub(super) path: String,
}

/// What follows a URL's scheme, whose letters may be large or small (RFC 3986, 3.1).
fn without_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// A path with its query, as it is asked for: without a fragment, which is for browsers (RFC 3986,
/// 3.5), and with characters that may not stand there percent-encoded.
///
/// One with placeholders stays as it is, until they are read.
fn asked_path(path: &str) -> String {
    match has_places(path) {
        true => path.to_owned(),
        false => encoded_path(path.split('#').next().unwrap_or("/")),
    }
}

/// A text without its placeholders, and without all that follows one that is not closed.
fn outside_places(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("{{") {
        out.push_str(before);
        rest = inside.split_once("}}").map_or("", |(_, behind)| behind);
    }
    out + rest
}

/// Parses a URL.
pub(super) fn url(text: &str) -> Result<Url, String> {
    let wrong = || format!("{text}: expected a URL such as http://127.0.0.1:8080/path");
    let schemes = [
        ("https://", true, false),
        ("http://", false, false),
        ("wss://", true, true),
        ("ws://", false, true),
    ];
    let known = schemes
        .into_iter()
        .find_map(|(scheme, is_tls, is_websocket)| {
            without_scheme(text, scheme).map(|rest| (rest, is_tls, is_websocket))
        });
    let (rest, is_tls, is_websocket) = known.ok_or_else(wrong)?;
    let (host, path) = match rest.find(['/', '?', '#']) {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let path = match asked_path(path) {
        path if path.starts_with('/') => path,
        query => format!("/{query}"),
    };
    // More likely a slip than a part of the URL.
    let has_blank = |b: u8| b.is_ascii_whitespace() || b.is_ascii_control();
    if outside_places(text).bytes().any(has_blank) {
        return Err(wrong());
    }
    let host = authority(host).map_err(|why| match why {
        AuthorityFault::Empty | AuthorityFault::Character => wrong(),
        _ => format!("{text}: {why}"),
    })?;
    Ok(Url {
        is_tls,
        is_websocket,
        host: host.to_string(),
        path,
    })
}

/// The target as results name it.
pub struct Called {
    pub url: String,
    /// The address that the load goes to, if its name has several.
    pub chosen: Option<SocketAddr>,
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chosen {
            None => self.url.fmt(f),
            Some(address) => write!(f, "{} at {address}", self.url),
        }
    }
}

/// Where connections go.
pub(super) struct Destination {
    pub(super) address: Address,
    /// The address, if it is one of several that a name has.
    pub(super) chosen: Option<SocketAddr>,
}

/// The address of a URL's host. If it has several, says which one is used.
fn resolve(host: &str, is_tls: bool, selection: AddressSelection) -> Result<Destination, Failure> {
    let has_port = match host.rfind(']') {
        Some(end) => host[end..].contains(':'),
        None => host.contains(':'),
    };
    let with_port = if has_port {
        host.to_string()
    } else {
        format!("{host}:{}", if is_tls { 443 } else { 80 })
    };
    let found = net::resolve(&with_port, selection).map_err(|e| {
        let why = format!("{host}: {e}");
        match e {
            NameError::NoneAccepts(_) => Failure::failed(why),
            NameError::Unresolved(_) | NameError::NoAddress => Failure::words(why),
        }
    })?;
    if let Some(note) = found.note(host) {
        eprintln!("weigh: {note}");
    }
    Ok(Destination {
        address: found.address.into(),
        chosen: found.is_of_several().then_some(found.address),
    })
}

fn selection(args: &LoadArgs) -> AddressSelection {
    match (args.http(), &args.client.hosts) {
        (HttpVersion::Http3, _) => AddressSelection::FirstForQuic,
        (_, Some(_)) => AddressSelection::FirstFromElsewhere,
        (_, None) => AddressSelection::FirstAccepting,
    }
}

/// The address to connect to for a URL: a Unix socket, a proxy, or its host.
pub(super) fn destination(args: &LoadArgs, to: &Url) -> Result<Destination, Failure> {
    if let Some(path) = &args.route.unix_socket {
        let path =
            UnixPath::new(path).map_err(|e| Failure::words(format!("--unix-socket: {e}")))?;
        return Ok(Destination {
            address: path.into(),
            chosen: None,
        });
    }
    match &args.route.proxy {
        None => resolve(&to.host, to.is_tls, selection(args)),
        Some(proxy) => {
            let parts = url(proxy).map_err(|e| Failure::words(format!("--proxy {e}")))?;
            if parts.path != "/" {
                return Err(Failure::words(format!(
                    "--proxy {proxy}: expected a URL without a path, such as http://127.0.0.1:3128"
                )));
            }
            if parts.is_tls || to.is_tls {
                return Err(Failure::words(format!(
                    "--proxy {proxy}: TLS to a forward proxy, or through one, is not supported"
                )));
            }
            resolve(&parts.host, false, selection(args))
        }
    }
}

pub(super) fn tls(args: &LoadArgs, to: &Url) -> Result<Option<tls::ClientSettings>, Failure> {
    match to.is_tls {
        true => crate::tls::client(&args.tls, &to.host, args.http()).map(Some),
        false => match args.tls.given() {
            Some(option) => Err(Failure::words(format!(
                "{option} needs TLS; expected {}://{}{}",
                if to.is_websocket { "wss" } else { "https" },
                to.host,
                to.path
            ))),
            None => Ok(None),
        },
    }
}

fn streams(args: &LoadArgs, to: &Url) -> Result<(Option<Http2>, Option<Http3>), Failure> {
    let streams = args.version.streams;
    if let Some(congestion) = args
        .version
        .quic_congestion
        .filter(|_| args.http() != HttpVersion::Http3)
    {
        return Err(Failure::words(format!(
            "--quic-congestion {} needs HTTP/3: add --http 3",
            congestion.name()
        )));
    }
    let number = match args.http() {
        HttpVersion::Http1 if streams > 1 => {
            let needs = "--streams needs HTTP/2 or HTTP/3: add --http 2 or --http 3";
            return Err(Failure::words(needs));
        }
        HttpVersion::Http1 => return Ok((None, None)),
        HttpVersion::Http2 => 2,
        HttpVersion::Http3 => 3,
    };
    let others = [
        ("--crawl", args.site.crawl),
        ("--proxy", args.route.proxy.is_some()),
        ("--each-connection", args.length.each_connection.is_some()),
    ];
    if let Some((option, _)) = others.iter().find(|(_, given)| *given) {
        return Err(Failure::words(format!(
            "{option} needs HTTP/1.1: leave out --http {number}"
        )));
    }
    if number == 2 {
        return Ok((Some(Http2 { streams }), None));
    }
    if !to.is_tls {
        return Err(Failure::words(format!(
            "--http 3 needs an https:// URL; expected https://{}{}",
            to.host, to.path
        )));
    }
    let http3 = Http3 {
        streams,
        congestion: args.version.quic_congestion,
    };
    Ok((None, Some(http3)))
}

/// The bytes of a request with the fields that the options ask for.
pub(super) fn request_bytes(args: &LoadArgs, method: &str, url: &Url, body: &[u8]) -> Vec<u8> {
    let mut fields = args.request.headers.clone();
    if args.reuse.no_keepalive {
        fields.push(("Connection".into(), "close".into()));
    }
    if args.request.body.is_some() {
        fields.push(("Content-Length".into(), body.len().to_string()));
    }
    // A forward proxy gets the absolute form (RFC 9112, 3.2.2).
    let path = match args.route.proxy {
        Some(_) => format!("http://{}{}", url.host, url.path),
        None => url.path.clone(),
    };
    let mut bytes = net::fetch::request(method, &url.host, &path, &fields);
    bytes.extend_from_slice(body);
    bytes
}

/// A line of a file of requests, or the URL.
pub(super) struct Wanted {
    pub(super) weight: u32,
    pub(super) method: String,
    pub(super) url: Url,
}

/// Reads a file of requests.
fn read_urls(path: &Path, base: Option<&Url>) -> Result<Vec<Wanted>, Failure> {
    let name = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|e| Failure::words(format!("--urls {name}: {e}")))?;
    let mut all: Vec<Wanted> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wanted = wanted(line, base)
            .map_err(|why| Failure::words(format!("--urls {name}, line {}: {why}", number + 1)))?;
        if let Some(first) = all.first()
            && !(first.url.host.eq_ignore_ascii_case(&wanted.url.host)
                && first.url.is_tls == wanted.url.is_tls)
        {
            return Err(Failure::words(format!(
                "--urls {name}, line {}: `{}` is another server than `{}`; the requests of one \
                 load go to one server",
                number + 1,
                wanted.url.host,
                first.url.host
            )));
        }
        all.push(wanted);
    }
    if all.is_empty() {
        return Err(Failure::words(format!(
            "--urls {name}: expected lines such as `3 GET http://127.0.0.1:8080/path`, found none"
        )));
    }
    Ok(all)
}

fn wanted(line: &str, base: Option<&Url>) -> Result<Wanted, String> {
    // Placeholders in the URL may have blanks.
    let before = line.split("{{").next().unwrap_or_default();
    let mut words: Vec<&str> = before.split_whitespace().collect();
    let place = words.pop().unwrap_or_default();
    let start = before.trim_end().len() - place.len();
    let place = &line[start..];
    let mut words = words.into_iter().peekable();
    let weight = match words.peek().and_then(|word| word.parse::<u32>().ok()) {
        Some(weight) => {
            words.next();
            weight
        }
        None => 1,
    };
    let method = words.next().unwrap_or("GET").to_string();
    if weight == 0 || words.next().is_some() || !is_method(&method) {
        return Err(format!(
            "expected [WEIGHT] [METHOD] URL, such as `3 GET /path`, found `{line}`"
        ));
    }
    let url = match base {
        Some(base) if place.starts_with('/') => Url {
            is_tls: base.is_tls,
            is_websocket: base.is_websocket,
            host: base.host.clone(),
            path: asked_path(place),
        },
        None if place.starts_with('/') => {
            return Err(format!(
                "`{place}` is a path alone; give its server as URL before --urls"
            ));
        }
        _ => url(place)?,
    };
    Ok(Wanted {
        weight,
        method,
        url,
    })
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic())
}

/// The target that the options describe, its name in results, and its requests if they are those of
/// files or have placeholders.
pub fn target(args: &LoadArgs) -> Result<(Target, Called, Option<RequestSet>), Failure> {
    if !is_method(&args.request.method) {
        return Err(Failure::words(format!(
            "--method: expected a word such as GET or POST, found `{}`",
            args.request.method
        )));
    }
    let base = args
        .url
        .as_deref()
        .map(url)
        .transpose()
        .map_err(Failure::words)?;
    let wanted = match (&args.urls, base) {
        (Some(file), base) => read_urls(file, base.as_ref())?,
        (None, Some(url)) => vec![Wanted {
            weight: 1,
            method: args.request.method.clone(),
            url,
        }],
        (None, None) => return Err(Failure::words("expected a URL, or --urls FILE")),
    };
    let body = match (&args.request.body, &args.traffic.grpc.method_name) {
        (Some(body), None) => super::body::body(body)?,
        _ => Vec::new(),
    };
    let first = &wanted[0].url;
    let set = super::requests::set(args, &wanted, &body)?;
    let url = match &args.url {
        Some(url) if wanted.len() == 1 => url.clone(),
        _ => format!(
            "{}://{}/",
            if first.is_tls { "https" } else { "http" },
            first.host
        ),
    };
    let expect = Expect {
        status: args
            .answer
            .expect_status
            .map_or(StatusRule::Success, StatusRule::Exactly),
        body: match &args.answer.expect_contains {
            Some(text) => BodyRule::Contains(text.as_bytes().into()),
            None if args.answer.body_varies => BodyRule::Any,
            None => BodyRule::Auto,
        },
    };
    let (traffic, expect) = super::websocket::traffic(args, first, expect)?;
    let (http2, http3) = streams(args, first)?;
    let tls = tls(args, first)?;
    let destination = destination(args, first)?;
    let mut target = Target {
        address: destination.address,
        tls,
        http2,
        http3,
        requests_per_connection: args.traffic.websocket.retire_after,
        idle: args.idle.idle(),
        traffic,
        filling: None,
        connections: args.connections(),
        requests: wanted
            .iter()
            .map(|one| Request {
                name: format!("{} {}", one.method, one.url.path),
                bytes: request_bytes(args, &one.method, &one.url, &body),
                expect: expect.clone(),
                weight: one.weight,
            })
            .collect(),
        choice: if args.in_order {
            Choice::InOrder
        } else {
            Choice::Weighted
        },
        proxy_header: args.route.proxy_protocol.map(|version| ProxyHeader {
            version: match version {
                ProxyProtocol::V1 => ProxyVersion::V1,
                ProxyProtocol::V2 => ProxyVersion::V2,
            },
            clients: args.route.proxy_client.clone(),
        }),
    };
    super::call::complete(args, first, &mut target)?;
    if let Some(set) = &set {
        target = super::requests::target_of(args, set, first, target);
    }
    let chosen = destination.chosen;
    Ok((target, Called { url, chosen }, set))
}

/// Asks the target first where its answers are the reference for later ones. Returns the names of
/// the requests whose answers differ from each other.
///
/// # Errors
/// When it does not answer as it should, or a signal came meanwhile.
pub fn prepare(job: &mut Job, signals: &Signals) -> Result<Vec<String>, Failure> {
    let prepared = load::prepare(job, &signals.stop);
    signals.go_on()?;
    match prepared {
        Ok(varying) => Ok(varying
            .iter()
            .map(|one| job.targets[one.target].requests[one.request].name.clone())
            .collect()),
        Err(e) => Err(Failure::failed(format!("{e}{}", remedy(&e)))),
    }
}

/// The options that accept a certificate that was not accepted.
fn remedy(error: &PrepareError) -> &'static str {
    let ReferenceError::Fetch(FetchError::Io(cause)) = &error.cause else {
        return "";
    };
    match tls::certificate_fault(cause) {
        Some(CertificateFault::Untrusted) => {
            "; name its authority with --ca FILE, or use --insecure"
        }
        Some(CertificateFault::WrongName) => {
            "; give a name that it bears with --tls-name, or use --insecure"
        }
        Some(CertificateFault::Invalid) => "; --insecure accepts any certificate",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, String)> {
        url(text).ok().map(|url| (url.host, url.path))
    }

    #[test]
    fn urls_are_taken_apart() {
        let expected = |h: &str, p: &str| Some((h.into(), p.into()));
        assert_eq!(
            parts("http://127.0.0.1:81/a?b#c"),
            expected("127.0.0.1:81", "/a?b")
        );
        assert_eq!(parts("http://127.0.0.1"), expected("127.0.0.1", "/"));
        assert_eq!(parts("http://[::1]?x=1"), expected("[::1]", "/?x=1"));
        assert_eq!(parts("HTTP://Name/A"), expected("Name", "/A"));
        assert_eq!(parts("http://h:/a"), expected("h", "/a"));
        assert_eq!(parts("http://h#/a"), expected("h", "/"));
        assert_eq!(
            parts("http://h/\u{e9}?\u{e9}"),
            expected("h", "/%C3%A9?%C3%A9")
        );
        assert!(url("HTTPS://x/").unwrap().is_tls);
        assert!(!url("http://x/").unwrap().is_tls);
        let resolved = |host, is_tls| match resolve(host, is_tls, AddressSelection::FirstAccepting)
        {
            Ok(Destination { address, chosen }) => format!("{address}{chosen:?}"),
            Err(e) => panic!("{host}: status {}", e.status()),
        };
        assert_eq!(resolved("[::1]", false), "[::1]:80None");
        assert_eq!(resolved("[::1]", true), "[::1]:443None");
        assert_eq!(resolved("127.0.0.1:81", false), "127.0.0.1:81None");
        for bad in [
            "127.0.0.1",
            "http://",
            "http://a b/",
            "ftp://x/",
            "http:/\u{fc}/",
        ] {
            assert!(url(bad).is_err(), "{bad}");
        }
        for (bad, why) in [
            ("http://\u{fc}/", "begins with xn--"),
            ("http://[fe80::1%25eth0]/", "a zone identifier"),
            ("http://u:p@h/", "Authorization"),
        ] {
            let said = url(bad).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn the_address_of_several_is_named_with_the_url() {
        let called = |chosen| Called {
            url: "http://both.test:81/".into(),
            chosen,
        };
        assert_eq!(called(None).to_string(), "http://both.test:81/");
        let chosen = called("127.0.0.1:81".parse().ok()).to_string();
        assert_eq!(chosen, "http://both.test:81/ at 127.0.0.1:81");
    }

    #[test]
    fn lines_of_requests_have_weight_method_and_place() {
        let base = url("http://h:1/").unwrap();
        let one = wanted("3 POST /a", Some(&base)).unwrap();
        assert_eq!((one.weight, one.method.as_str()), (3, "POST"));
        assert_eq!(
            (one.url.host.as_str(), one.url.path.as_str()),
            ("h:1", "/a")
        );
        let encoded = wanted("/\u{e9}#a", Some(&base)).unwrap();
        assert_eq!(encoded.url.path, "/%C3%A9");
        let plain = wanted("http://x/y", None).unwrap();
        assert_eq!((plain.weight, plain.method.as_str()), (1, "GET"));
        for (bad, base) in [
            ("/a", None),
            ("0 /a", Some(&base)),
            ("1 2 /a", Some(&base)),
            ("GET POST /a", Some(&base)),
            ("x", Some(&base)),
        ] {
            assert!(wanted(bad, base).is_err(), "{bad}");
        }
    }
}
