//! From a link to the path that it asks for.

/// A link as a path on the page's own host (RFC 3986, 5.2); `None` when it leads elsewhere.
pub(super) fn resolve(link: &str, host: &str, base: &str) -> Option<String> {
    let link = link.trim().split('#').next().unwrap_or_default();
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
