//! Whole crawls, and links as they are found.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

/// A server that answers each path with what `answer` says: a status, header fields, a body.
/// `MORE` in a field is the path and a letter more.
fn serve(answer: fn(&str) -> (u16, &'static str, &'static str)) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(client.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head);
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (status, fields, body) = answer(path);
            let fields = fields.replace("MORE", &format!("{path}y"));
            let length = body.len();
            let _ = write!(
                client,
                "HTTP/1.1 {status} So\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    address.into()
}

const LIMITS: CrawlLimits = CrawlLimits {
    pages: 100,
    bytes: 1 << 20,
    depth: 5,
    timeout: Duration::from_secs(20),
};

fn crawled(address: &Address, start: &str) -> Result<Site, CrawlError> {
    crawled_within(address, start, LIMITS)
}

fn crawled_within(address: &Address, start: &str, limits: CrawlLimits) -> Result<Site, CrawlError> {
    let request = |path: &str| net::fetch::request("GET", "site:81", path, &[]);
    crawl(
        address,
        None,
        "site:81",
        start,
        limits,
        request,
        &AtomicBool::new(false),
    )
}

/// The paths of the pages that were found.
fn paths(site: &Site) -> Vec<&str> {
    site.pages.iter().map(|page| page.path.as_str()).collect()
}

#[test]
fn links_are_found_as_a_browser_finds_them() {
    let page = br#"<!doctype html><a href="two.html">x</a> <A HREF='/top?a=1&amp;b=2#part'>
        <img src=pic.png alt="a > b"><!-- <a href="no.html"> --><a
        class=x href = "../up.html"><a href="http://site:81/abs"><a href="//site:81">
        <a href="https://site:81/tls"><a href="mailto:a@b"><a href="http://other/"><a href="">
        <link href="./deep/./x/../y.css"><a name=q>text<a href="?page=2">
        <a href="/x?a=1&#38;b=3&#35;c">"#;
    assert_eq!(
        page_links(page, None, "http://site:81", "/dir/one.html?z"),
        [
            "/dir/two.html",
            "/top?a=1&b=2",
            "/dir/pic.png",
            "/up.html",
            "/abs",
            "/",
            "/dir/deep/y.css",
            "/dir/one.html?page=2",
            "/x?a=1&b=3",
        ]
    );
}

#[test]
fn links_are_read_from_html_alone() {
    let address = serve(|path| match path {
        "/" => (
            200,
            "",
            "<a href=html><a href=js><a href=text><script>'<a href=no>'</script>",
        ),
        "/html" => (
            200,
            "content-type: TEXT/html; charset=utf-8\r\n",
            "<a href=end>",
        ),
        "/js" => (
            200,
            "Content-Type: text/javascript\r\n",
            "x = '<a href=no>'",
        ),
        "/text" => (200, "Content-Type: text/plain\r\n", "<a href=no>"),
        "/end" => (200, "", ""),
        _ => (404, "", ""),
    });
    let site = crawled(&address, "/").unwrap();
    assert_eq!(paths(&site), ["/", "/html", "/js", "/text", "/end"]);
    assert_eq!(site.refused, []);
}

#[test]
fn a_page_is_one_however_its_name_is_written() {
    let address = serve(|path| match path {
        "/caf%C3%A9/" => (
            200,
            "",
            "<a href='a b'><a href=a%20b> <a href=HTTP://SITE:81/caf\u{e9}/>",
        ),
        "/caf%C3%A9/a%20b" => (200, "", "<a href=' ./ '> <a href='/caf\u{e9}/\u{e9}'>"),
        "/caf%C3%A9/%C3%A9" => (200, "", ""),
        _ => (404, "", ""),
    });
    let site = crawled(&address, "/caf\u{e9}/").unwrap();
    let found = ["/caf%C3%A9/", "/caf%C3%A9/a%20b", "/caf%C3%A9/%C3%A9"];
    assert_eq!(paths(&site), found);
    assert_eq!(site.refused, []);
}

#[test]
fn redirects_on_the_same_host_are_followed() {
    let address = serve(|path| {
        match path {
        "/in/" => (
            200,
            "",
            "<a href=a><a href=b><a href=known><a href=out><a href=far><a href=port><a href=nowhere>
             <a href=loop><a href=self><a href=gone><a href=end?1><a href=many>",
        ),
        "/in/a" => (301, "Location: http://SITE:81/in/sub/\r\n", ""),
        "/in/sub/" => (200, "", "<a href=c>"),
        "/in/sub/c" => (308, "location: ../end?a=1&amp;b#x\r\n", ""),
        "/in/end?a=1&amp;b" => (200, "", ""),
        "/in/b" => (302, "Location: /in/b1\r\n", "<a href=no>"),
        "/in/b1" => (303, "Location: b2\r\n", ""),
        "/in/b2" => (307, "Location: b3 b\r\n", ""),
        "/in/b3%20b" => (200, "", ""),
        "/in/known" => (301, "Location: /in/end?1\r\n", ""),
        "/in/end?1" => (200, "", ""),
        "/in/out" => (301, "Location: /out/\r\n", ""),
        "/out/" => (200, "", "<a href=no><a href=/in/last>"),
        "/in/last" => (200, "", ""),
        "/in/far" => (302, "Location: http://other:81/in/\r\n", ""),
        "/in/port" => (302, "Location: http://site/in/\r\n", ""),
        "/in/nowhere" => (302, "", ""),
        "/in/loop" => (302, "Location: loop1\r\n", ""),
        "/in/loop1" => (307, "Location: loop\r\n", ""),
        "/in/self" => (302, "Location: self#again\r\n", ""),
        "/in/gone" => (301, "Location: not-there\r\n", ""),
        // A chain without an end.
        path if path.starts_with("/in/many") => (302, "Location: MORE\r\n", ""),
        _ => (404, "", ""),
    }
    });
    let site = crawled(&address, "/in/").unwrap();
    let found = [
        "/in/",
        "/in/sub/",
        "/in/b3%20b",
        "/out/",
        "/in/end?1",
        "/in/end?a=1&amp;b",
        "/in/last",
    ];
    assert_eq!(paths(&site), found);
    assert!(site.pages.iter().all(|page| page.status == 200));
    let refused: Vec<(&str, u16)> = site.refused.iter().map(|(p, s)| (p.as_str(), *s)).collect();
    let many = format!("/in/many{}", "y".repeat(REDIRECTS_MAX));
    let left_out = [
        ("/in/far", 302),
        ("/in/port", 302),
        ("/in/nowhere", 302),
        ("/in/loop1", 307),
        ("/in/self", 302),
        ("/in/not-there", 404),
        (many.as_str(), 302),
    ];
    assert_eq!(refused, left_out);
}

#[test]
fn the_first_page_may_be_redirected() {
    let address = serve(|path| match path {
        "/" => (302, "Location: /en/home\r\n", ""),
        "/en/home" => (200, "", "<a href=/style><a href=two>"),
        "/old/page" => (301, "Location: /en/home\r\n", ""),
        "/docs" => (301, "Location: /docs/\r\n", ""),
        "/docs/" => (200, "", "<a href=/style><a href=a>"),
        "/a" => (302, "Location: /b\r\n", ""),
        "/b" => (302, "Location: /a\r\n", ""),
        "/far" => (301, "Location: http://other/\r\n", ""),
        _ => (200, "", ""),
    });
    for (start, found) in [
        ("/", ["/en/home", "/style", "/en/two"].as_slice()),
        ("/old/page", &["/en/home", "/en/two"]),
        ("/docs", &["/docs/", "/style", "/docs/a"]),
    ] {
        assert_eq!(paths(&crawled(&address, start).unwrap()), found, "{start}");
    }
    for (start, end) in [
        ("/a", "/b answers with status 302"),
        ("/far", "/far answers with status 301"),
    ] {
        let text = crawled(&address, start).unwrap_err().to_string();
        assert!(text.starts_with(end), "{text}");
    }
}

#[test]
fn links_are_relative_to_the_base_of_their_page() {
    let address = serve(|path| match path {
        "/in/" => (
            200,
            "",
            "<base href=/in/deep/x><a href=a><a href=//site:81/in/b><a href=?q>",
        ),
        "/in/deep/a" => (200, "", "<base href='other/'><a href=c>"),
        "/in/b" => (
            200,
            "",
            "<base href=http://far/in/><a href=no><a href=http://site:81/in/d>",
        ),
        "/in/d" => (200, "", "<base href='#x'><a href=e><base href=/in/no/>"),
        _ => (200, "", ""),
    });
    let site = crawled(&address, "/in/").unwrap();
    let found = [
        "/in/",
        "/in/deep/a",
        "/in/b",
        "/in/deep/x?q",
        "/in/deep/other/c",
        "/in/d",
        "/in/e",
    ];
    assert_eq!(paths(&site), found);
}

#[test]
fn an_endless_site_is_crawled_up_to_a_limit() {
    // Each page links to one in a folder below.
    const PAGE: &str = "<a href=y/y>";
    let address = serve(|_| (200, "", PAGE));
    let limit = |limits: CrawlLimits| {
        let site = crawled_within(&address, "/x/y", limits).unwrap();
        assert_eq!(site.left, 1);
        (site.pages.len(), site.limit)
    };
    let limits = CrawlLimits { pages: 2, ..LIMITS };
    assert_eq!(limit(limits), (2, Some(CrawlLimit::Pages)));
    let limits = CrawlLimits {
        bytes: 3 * PAGE.len(),
        ..LIMITS
    };
    assert_eq!(limit(limits), (3, Some(CrawlLimit::Bytes)));
}

#[test]
fn refused_pages_are_limited_as_well() {
    let address = serve(|path| match path {
        "/" => (200, "", "<a href=1><a href=2><a href=3><a href=4>"),
        _ => (404, "", ""),
    });
    let limits = CrawlLimits { pages: 3, ..LIMITS };
    let site = crawled_within(&address, "/", limits).unwrap();
    assert_eq!((site.refused.len(), site.left), (3, 1));
    assert_eq!(site.limit, Some(CrawlLimit::Refused));
}

#[test]
fn links_take_a_limited_amount_of_memory() {
    let long = "x".repeat(PATH_MAX + 1);
    let page = format!("<base href=/{long}/><a href={long}><a href=b>");
    let found = page_links(page.as_bytes(), None, "http://site:81", "/dir/a");
    assert_eq!(found, ["/dir/b"]);
    // A base makes short links long, and so does percent-encoding.
    let base = &long[..PATH_MAX - 5];
    let umlauts = "\u{e4}".repeat(PATH_MAX / 4);
    let page = format!("<a href={umlauts}><base href=/{base}/><a href=x><a href=xyzxyz>");
    let found = page_links(page.as_bytes(), None, "http://site:81", "/");
    assert_eq!(found, [format!("/{base}/x")]);
    // A base of 16 KiB makes many short links of as many bytes.
    let links: String = (0..10_000).map(|n| format!("<a href={n}>")).collect();
    let base = &long[..PATH_MAX - 50];
    let page = format!("<base href=/{base}/>{links}");
    let found = page_links(page.as_bytes(), None, "http://site:81", "/");
    let bytes: usize = found.iter().map(String::len).sum();
    assert!(bytes <= LINK_BYTES_MAX && found.len() > 1_000);
    // Of many pages as well.
    let mut known = Known::default();
    let paths = (0..1_000_000).map(|number| format!("/{number}"));
    let taken = paths.filter(|path| known.insert(path)).count();
    assert!(known.bytes <= LINK_BYTES_MAX && known.left == 1_000_000 - taken);
}
