//! The links of an HTML page.

/// Elements whose content is no HTML.
const RAW: [&str; 2] = ["script", "style"];
/// Longest character reference.
const REFERENCE_BYTES_MAX: usize = 16;

/// What a page is, by its Content-Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// HTML, or a page that does not say what it is.
    Html,
    /// HTML as XML, where `<script/>` is a whole element.
    Xhtml,
    /// It has no links.
    Other,
}

impl Kind {
    /// By the value of a Content-Type field.
    pub(super) fn of(content_type: Option<&[u8]>) -> Self {
        let Some(said) = content_type else {
            return Kind::Html;
        };
        let end = said.iter().position(|byte| *byte == b';');
        let name = said[..end.unwrap_or(said.len())].trim_ascii();
        if name.eq_ignore_ascii_case(b"text/html") {
            Kind::Html
        } else if name.eq_ignore_ascii_case(b"application/xhtml+xml") {
            Kind::Xhtml
        } else {
            Kind::Other
        }
    }
}

/// The values of `href` and `src` of all elements, in their order.
pub(super) fn links(page: &[u8], kind: Kind) -> Vec<String> {
    let mut found = Vec::new();
    if kind == Kind::Other {
        return found;
    }
    // Only text has links.
    let Ok(mut rest) = std::str::from_utf8(page) else {
        return found;
    };
    while let Some(open) = rest.find('<') {
        rest = &rest[open + 1..];
        if rest.starts_with("!--") {
            // `<!-->` is a whole comment.
            rest = after(&rest[1..], "-->");
        } else if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let (tag, behind) = tag(rest);
            found.extend(tag.links);
            rest = behind;
            let raw = RAW.iter().find(|raw| tag.name.eq_ignore_ascii_case(raw));
            if let Some(raw) = raw
                && !(tag.closed && kind == Kind::Xhtml)
            {
                rest = behind_raw(rest, raw);
            }
        }
    }
    found
}

/// What comes after the first `end`.
fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// The end tag of an element that holds no others, and all behind it.
fn behind_raw<'a>(mut text: &'a str, name: &str) -> &'a str {
    let ends = |c: char| c.is_whitespace() || c == '/' || c == '>';
    while !text.is_empty() {
        text = after(text, "</");
        if let Some((found, rest)) = text.split_at_checked(name.len())
            && found.eq_ignore_ascii_case(name)
            && rest.starts_with(ends)
        {
            return rest;
        }
    }
    ""
}

/// A tag that begins an element.
struct Tag<'a> {
    name: &'a str,
    /// The values of `href` and `src`.
    links: Vec<String>,
    /// Whether it ends with `/>`.
    closed: bool,
}

/// Reads the tag whose name begins here. Returns it and what comes after it.
fn tag(text: &str) -> (Tag<'_>, &str) {
    let name_end = text
        .find(|c: char| c.is_whitespace() || c == '/' || c == '>')
        .unwrap_or(text.len());
    let (name, mut rest) = text.split_at(name_end);
    let mut tag = Tag {
        name,
        links: Vec::new(),
        closed: false,
    };
    loop {
        let before = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        tag.closed = rest[..rest.len() - before.len()].ends_with('/');
        rest = before;
        if rest.is_empty() {
            return (tag, rest);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (tag, after);
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
            tag.links.push(decoded(value));
        }
        rest = after;
    }
}

/// The value of an attribute: its character references are resolved. What is none stays as it is.
fn decoded(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest
            .bytes()
            .take(REFERENCE_BYTES_MAX)
            .position(|b| b == b';');
        let found = end.and_then(|end| {
            let character = character(&rest[1..end])?;
            Some((character, &rest[end + 1..]))
        });
        let (character, behind) = found.unwrap_or(('&', &rest[1..]));
        out.push(character);
        rest = behind;
    }
    out + rest
}

/// The character that a reference names, without its `&` and `;`.
fn character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return match name {
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "lt" => Some('<'),
            "gt" => Some('>'),
            _ => None,
        };
    };
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    // A sign is none of the digits.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    char::from_u32(u32::from_str_radix(digits, radix).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_references_are_resolved_once() {
        for (value, means) in [
            ("/x?a=1&#38;b=3#c", "/x?a=1&b=3#c"),
            ("&#x26;&#X2f;&amp;&quot;&apos;&lt;&gt;", "&/&\"'<>"),
            ("&amp;#38;&amp;amp;", "&#38;&amp;"),
            (
                "&b=1&amp&;&#;&#x;&#xd800;&none;&#9999999999;&#+38;&",
                "&b=1&amp&;&#;&#x;&#xd800;&none;&#9999999999;&#+38;&",
            ),
            ("a&b;&#233;", "a&b;\u{e9}"),
        ] {
            assert_eq!(decoded(value), means);
        }
    }

    #[test]
    fn what_is_no_html_has_no_links() {
        let page = b"<a href=x>";
        for (said, kind) in [
            (None, Kind::Html),
            (Some("text/html"), Kind::Html),
            (Some(" Text/HTML ; charset=utf-8"), Kind::Html),
            (Some("application/xhtml+xml;x"), Kind::Xhtml),
            (Some("text/javascript"), Kind::Other),
            (Some("text/plain; text/html"), Kind::Other),
            (Some("text/htmlx"), Kind::Other),
            (Some(""), Kind::Other),
        ] {
            assert_eq!(Kind::of(said.map(str::as_bytes)), kind, "{said:?}");
            let found = usize::from(kind != Kind::Other);
            assert_eq!(links(page, kind).len(), found, "{said:?}");
        }
    }

    #[test]
    fn scripts_styles_and_comments_have_no_links() {
        let page = r#"<SCRIPT src=a.js>s = "<a href=no>" + '<img src="no">'; '</scripted>'
            </Script ><a href=b><style>/* <a href=no> </script> */</style x><a href=c>
            <!-- <a href=no> --><a href=d><!--><a href=e><!-- <script> --><a href=f></a href=no>
            1 < 2 href=no > <script>"</ééé" <a href=no></script><a href=g>
            <script src=h /><a href=no>"#;
        let found = ["a.js", "b", "c", "d", "e", "f", "g", "h"];
        assert_eq!(links(page.as_bytes(), Kind::Html), found);
        let page = b"<script src=a /><a href=b /><style/><a href=c>";
        assert_eq!(links(page, Kind::Xhtml), ["a", "b", "c"]);
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
            "<!-",
            "<a =x>",
            "<a / / =",
            "< >",
            "<script",
            "<script>",
            "<script></",
            "<style></sty",
            "<style></styl\u{e9}",
        ] {
            assert!(links(page.as_bytes(), Kind::Html).len() <= 1, "{page}");
        }
        assert!(links(&[0xff, b'<'], Kind::Html).is_empty());
    }
}
