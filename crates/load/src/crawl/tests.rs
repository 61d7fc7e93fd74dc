//! Whole crawls, and links as they are found.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

/// A server that answers each path with what `answer` says: a status, header fields, a body.
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
            let (status, fields, body) = answer(head.split(' ').nth(1).unwrap_or_default());
            let length = body.len();
            let _ = write!(
                client,
                "HTTP/1.1 {status} So\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    address.into()
}

fn crawled(address: &Address, start: &str) -> Result<Site, CrawlError> {
    let limits = CrawlLimits {
        pages: 100,
        depth: 5,
        timeout: Duration::from_secs(20),
    };
    let request = |path: &str| net::fetch::request("GET", "site:81", path, &[]);
    crawl(
        address,
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
        links(page, Kind::Html, "site:81", "/dir/one.html?z"),
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
