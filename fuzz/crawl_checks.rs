//! What has to hold for any page that a crawl finds.

use load::page_links;

/// A page: its links are paths that can be requested as they are.
pub fn crawl_page(data: &[u8]) {
    for content_type in [None, Some(&b"application/xhtml+xml"[..])] {
        for (site, path) in [("http://site", "/"), ("https://[::1]:8080", "/a/b?c=/d")] {
            for link in page_links(data, content_type, site, path) {
                let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>#".contains(&byte);
                assert!(
                    link.starts_with('/') && link.bytes().all(is_plain),
                    "{link:?}"
                );
            }
        }
    }
}
