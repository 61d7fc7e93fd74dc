//! The pages of a site, found by following links from one of them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::Address;
use net::fetch::{FetchError, fetch};

/// Largest page.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// How far to follow links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlLimits {
    /// Most pages.
    pub pages: usize,
    /// Most links to follow one after the other from the first page.
    pub depth: usize,
    /// Longest wait for a page.
    pub timeout: Duration,
}

/// A page that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Path and query.
    pub path: String,
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The pages that answered with a success, in the order in which they were found.
    pub pages: Vec<Page>,
    /// Pages that answered with another status.
    pub refused: Vec<(String, u16)>,
    /// Links that were not followed because there were too many pages.
    pub left: usize,
}

/// Why a site could not be crawled.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// A page did not come.
    #[error("{path} does not answer: {source}")]
    Fetch {
        /// The page.
        path: String,
        /// Why.
        source: FetchError,
    },
    /// The first page has no success.
    #[error("{path} answers with status {status}: there is nothing to crawl")]
    Start {
        /// The page.
        path: String,
        /// Its status.
        status: u16,
    },
}

/// Fetches the page at `start` and, page by page in the order of discovery, all that it links to
/// on the same host and below the folder of `start`. `host` is the name with its port as links
/// spell it; `request` makes the bytes of a request for a path. Once `stop` is set no further page
/// is asked for, and what was found until then is returned.
///
/// Links are the `href` and `src` of any element, taken as RFC 3986 resolves them.
///
/// # Errors
/// When a page does not answer at all, or the first one answers with no success.
pub fn crawl(
    address: &Address,
    host: &str,
    start: &str,
    limits: CrawlLimits,
    mut request: impl FnMut(&str) -> Vec<u8>,
    stop: &AtomicBool,
) -> Result<Site, CrawlError> {
    let below = &start[..=start
        .split('?')
        .next()
        .and_then(|path| path.rfind('/'))
        .unwrap_or(0)];
    let mut site = Site::default();
    let mut known = BTreeSet::from([start.to_string()]);
    let mut next = VecDeque::from([(start.to_string(), 0)]);
    while let Some((path, depth)) = next.pop_front() {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        if site.pages.len() == limits.pages {
            site.left = next.len() + 1;
            break;
        }
        let answer = match fetch(address, &request(&path), limits.timeout, PAGE_BYTES_MAX) {
            Ok(answer) => answer,
            // Nobody waits for it any more.
            Err(_) if stop.load(Ordering::SeqCst) => break,
            Err(source) => return Err(CrawlError::Fetch { path, source }),
        };
        if !(200..300).contains(&answer.status) {
            if site.pages.is_empty() {
                let status = answer.status;
                return Err(CrawlError::Start { path, status });
            }
            site.refused.push((path, answer.status));
            continue;
        }
        if depth < limits.depth {
            for link in links(&answer.body, host, &path) {
                if link.starts_with(below) && known.insert(link.clone()) {
                    next.push_back((link, depth + 1));
                }
            }
        }
        site.pages.push(Page {
            path,
            status: answer.status,
            body: answer.body,
        });
    }
    Ok(site)
}

/// The links of a page on its own host, as paths, in their order.
fn links(page: &[u8], host: &str, base: &str) -> Vec<String> {
    // What is no text has no links.
    let Ok(text) = std::str::from_utf8(page) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        rest = &rest[open + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let (element, after) = element(rest);
        rest = after;
        found.extend(
            element
                .into_iter()
                .filter_map(|link| resolve(&link, host, base)),
        );
    }
    found
}

/// The links of the element that begins here, and what comes after it.
fn element(text: &str) -> (Vec<String>, &str) {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(|c: char| !c.is_whitespace() && c != '>');
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if rest.is_empty() {
            return (found, rest);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (found, after);
        }
        let name_end = rest
            .find(|c: char| c.is_whitespace() || c == '=' || c == '>')
            .unwrap_or(rest.len());
        let name = &rest[..name_end];
        rest = rest[name_end..].trim_start();
        let Some(value) = rest.strip_prefix('=') else {
            if name_end == 0 {
                // A stray character that begins no attribute.
                let mut after = rest.chars();
                after.next();
                rest = after.as_str();
            }
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let value = &value[1..];
                match value.find(quote) {
                    Some(end) => (&value[..end], &value[end + 1..]),
                    None => (value, ""),
                }
            }
            _ => {
                let end = value
                    .find(|c: char| c.is_whitespace() || c == '>')
                    .unwrap_or(value.len());
                value.split_at(end)
            }
        };
        if name.eq_ignore_ascii_case("href") || name.eq_ignore_ascii_case("src") {
            found.push(value.trim().replace("&amp;", "&"));
        }
        rest = after;
    }
}

/// A link as a path on the page's own host (RFC 3986, 5.2); `None` when it leads elsewhere.
fn resolve(link: &str, host: &str, base: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or_default();
    let fit = |c: u8| c.is_ascii_graphic();
    if link.is_empty() || !link.bytes().all(fit) {
        return None;
    }
    let path = if let Some(rest) = link
        .strip_prefix("http://")
        .or_else(|| link.strip_prefix("//"))
    {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        if !rest[..end].eq_ignore_ascii_case(host) {
            return None;
        }
        match &rest[end..] {
            "" => "/".to_string(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_string(),
        }
    } else if link
        .split(['/', '?'])
        .next()
        .is_some_and(|first| first.contains(':'))
    {
        return None;
    } else if link.starts_with('/') {
        link.to_string()
    } else {
        let base = base.split('?').next().unwrap_or("/");
        if link.starts_with('?') {
            format!("{base}{link}")
        } else {
            format!("{}{link}", &base[..=base.rfind('/')?])
        }
    };
    Some(without_dots(&path))
}

/// Removes `.` and `..` from a path (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let (path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let mut out: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            part => out.push(part),
        }
    }
    format!("/{}{query}", out.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_as_a_browser_finds_them() {
        let page = br#"<!doctype html><a href="two.html">x</a> <A HREF='/top?a=1&amp;b=2#part'>
            <img src=pic.png alt="a > b"><!-- <a href="no.html"> --><a
            class=x href = "../up.html"><a href="http://site:81/abs"><a href="//site:81">
            <a href="https://site:81/tls"><a href="mailto:a@b"><a href="http://other/"><a href="">
            <link href="./deep/./x/../y.css"><a name=q>text<a href="?page=2">"#;
        assert_eq!(
            links(page, "site:81", "/dir/one.html?z"),
            [
                "/dir/two.html",
                "/top?a=1&b=2",
                "/dir/pic.png",
                "/up.html",
                "/abs",
                "/",
                "/dir/deep/y.css",
                "/dir/one.html?page=2",
            ]
        );
    }

    #[test]
    fn broken_pages_end() {
        for page in [
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href=\"",
            "<!--",
            "<a =x>",
            "<a / / =",
            "< >",
        ] {
            assert!(links(page.as_bytes(), "h", "/").len() <= 1, "{page}");
        }
        assert!(links(&[0xff, b'<'], "h", "/").is_empty());
    }
}
