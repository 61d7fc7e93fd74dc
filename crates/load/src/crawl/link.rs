//! From a link to the path that it asks for.

use readings::url::encoded_path;

/// A link as a path on the page's own site, such as `http://name:81` (RFC 3986, 5.2); `None` when it
/// leads elsewhere.
pub(super) fn resolve(link: &str, site: &str, base: &str) -> Option<String> {
    let (scheme, host) = site.split_once("://")?;
    // As browsers do: nothing at the ends, and no line breaks within.
    let mut link = link
        .trim_matches(|c: char| c <= ' ')
        .replace(['\t', '\n', '\r'], "");
    link.truncate(link.find('#').unwrap_or(link.len()));
    if link.is_empty() {
        return None;
    }
    let path = if let Some(rest) = behind_scheme(&link, scheme) {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let own = without_usual_port(host, scheme);
        if !without_usual_port(&rest[..end], scheme).eq_ignore_ascii_case(own) {
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
        link
    } else {
        let base = base.split('?').next().unwrap_or("/");
        if link.starts_with('?') {
            format!("{base}{link}")
        } else {
            format!("{}{link}", &base[..=base.rfind('/')?])
        }
    };
    Some(encoded_path(&without_dots(&path)))
}

/// Whether a link is empty or only a fragment, so that it means its own page.
pub(super) fn is_of_the_page(link: &str) -> bool {
    let link = link.trim_matches(|c: char| c <= ' ');
    link.is_empty() || link.starts_with('#')
}

/// Whether a link names a host, so that its base does not matter.
pub(super) fn names_a_host(link: &str, site: &str) -> bool {
    let scheme = site.split("://").next().unwrap_or_default();
    let link = link
        .trim_matches(|c: char| c <= ' ')
        .replace(['\t', '\n', '\r'], "");
    behind_scheme(&link, scheme).is_some()
}

/// What comes after the site's scheme and `//`, or after `//` alone; schemes may be written in
/// capitals.
fn behind_scheme<'l>(link: &'l str, scheme: &str) -> Option<&'l str> {
    let rest = match link.split_at_checked(scheme.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(scheme) => rest.strip_prefix(':')?,
        _ => link,
    };
    rest.strip_prefix("//")
}

/// A host without the port that it has where it names none.
fn without_usual_port<'h>(host: &'h str, scheme: &str) -> &'h str {
    let usual = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(usual).unwrap_or(host)
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
    fn what_a_browser_would_ask_for_is_asked_for() {
        for (link, path) in [
            (" a b.html ", "/dir/a%20b.html"),
            ("\n/a\r\n\tb?c d\u{1}#e f", "/ab?c%20d%01"),
            ("/caf\u{e9}/%C3%A9?\u{20ac}", "/caf%C3%A9/%C3%A9?%E2%82%AC"),
            ("/\"<x>\"?{a}", "/%22%3Cx%3E%22?{a}"),
            ("/{a}", "/%7Ba%7D"),
            ("HTTP://SITE:81/x", "/x"),
            ("hTTp://site:81?Q", "/?Q"),
            ("//Site:81/\u{e9}", "/%C3%A9"),
            ("\u{a0}", "/dir/%C2%A0"),
        ] {
            assert_eq!(
                resolve(link, "http://site:81", "/dir/one").as_deref(),
                Some(path),
                "{link}"
            );
        }
        for link in [
            "HTTPS://site:81/x",
            "http:x",
            "http:/x",
            "http://site/x",
            "http://site:81 /x",
            "http://sit\u{e9}:81/x",
            "MAILTO:a@b",
            " #x",
            " ",
        ] {
            assert_eq!(resolve(link, "http://site:81", "/dir/one"), None, "{link}");
        }
    }

    #[test]
    fn the_usual_port_need_not_be_said() {
        for (link, site) in [
            ("http://a/x", "http://A:80"),
            ("//A:80/x", "http://a"),
            ("//[::1]:80/x", "http://[::1]"),
            ("HTTPS://a:443/x", "https://a"),
        ] {
            assert_eq!(resolve(link, site, "/").as_deref(), Some("/x"), "{link}");
        }
        for (link, site) in [
            ("http://[::80]/x", "http://[::]"),
            ("http://a/x", "https://a"),
            ("//a:80/x", "https://a"),
        ] {
            assert_eq!(resolve(link, site, "/"), None, "{link}");
        }
    }
}
