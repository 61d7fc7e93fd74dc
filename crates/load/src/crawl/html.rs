//! The links of an HTML page.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer, naive_next_state};

use super::{LINK_BYTES_MAX, PATH_MAX, PATH_OVERHEAD};

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

/// The links of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// The `href` of the first `<base>` that has one: what links are relative to.
    pub(super) base: Option<String>,
    /// The values of `href` and `src` of all other elements, in the order of the page.
    pub(super) links: Vec<String>,
}

/// What the tokenizer finds in a page.
enum Found {
    Link(String),
    Base(String),
    /// The content of the element that has begun is no HTML.
    Raw(State),
}

/// Finds the links of a page.
pub(super) fn links(page: &[u8], kind: Kind) -> Links {
    let mut found = Links::default();
    if kind == Kind::Other {
        return found;
    }
    // End tags have attributes, too, which mean nothing.
    let (mut in_start_tag, mut in_base, mut is_link, mut raw) = (false, false, false, None);
    let emitter = CallbackEmitter::new(move |event: CallbackEvent<'_>, _: Span<()>| {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                in_start_tag = true;
                in_base = name == b"base";
                // Scripts are not run, so the content of `<noscript>` is read as HTML.
                raw = naive_next_state(name).filter(|_| name != b"noscript");
            }
            CallbackEvent::AttributeName { name } => {
                is_link = in_start_tag && (name == b"href" || name == b"src" && !in_base);
            }
            CallbackEvent::AttributeValue { value } if is_link => {
                is_link = false;
                let found = if in_base { Found::Base } else { Found::Link };
                return String::from_utf8(value.to_vec()).ok().map(found);
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                in_start_tag = false;
                return raw
                    .take()
                    .filter(|_| !(self_closing && kind == Kind::Xhtml))
                    .map(Found::Raw);
            }
            _ => {}
        }
        None
    });
    let mut tokenizer = Tokenizer::new_with_emitter(page, emitter);
    let mut bytes = 0;
    while let Some(Ok(one)) = tokenizer.next() {
        match one {
            Found::Link(link) | Found::Base(link) if link.len() > PATH_MAX => {}
            Found::Link(link) => {
                bytes += link.len() + PATH_OVERHEAD;
                if bytes > LINK_BYTES_MAX {
                    break;
                }
                found.links.push(link);
            }
            Found::Base(base) => {
                found.base.get_or_insert(base);
            }
            Found::Raw(state) => tokenizer.set_state(state),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(page: &[u8], kind: Kind) -> Vec<String> {
        super::links(page, kind).links
    }

    #[test]
    fn the_first_base_with_an_address_counts_and_is_no_link() {
        for (page, base, found) in [
            (
                "<a href=a><BASE target=x><base href=/b/><base href=/c/><a href=d>",
                Some("/b/"),
                2,
            ),
            ("<base src=x><a href=a></base href=/b/>", None, 1),
            ("<base href=''><a href=a>", None, 1),
        ] {
            let seen = super::links(page.as_bytes(), Kind::Html);
            assert_eq!(
                (seen.base.as_deref(), seen.links.len()),
                (base, found),
                "{page}"
            );
        }
    }

    #[test]
    fn character_references_are_resolved_once() {
        for (value, means) in [
            ("/x?a=1&#38;b=3#c", "/x?a=1&b=3#c"),
            ("&#x26;&#X2f;&amp;&quot;&apos;&lt;&gt;", "&/&\"'<>"),
            ("&amp;#38;&amp;amp;", "&#38;&amp;"),
            ("&b=1&none;&amp=2&", "&b=1&none;&amp=2&"),
            ("a&b;&eacute;&#233;", "a&b;\u{e9}\u{e9}"),
        ] {
            let page = format!("<a href='{}'>", value.replace('\'', "&apos;"));
            assert_eq!(links(page.as_bytes(), Kind::Html), [means]);
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
            <textarea><a href=no></textarea><noscript><a href=h></noscript>
            <script src=i /><a href=no>"#;
        let found = ["a.js", "b", "c", "d", "e", "f", "g", "h", "i"];
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
