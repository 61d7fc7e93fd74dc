//! The pages of a site, found by following links from one of them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::Address;
use net::fetch::{Answer, FetchError};
use readings::url::encoded_path;
use tls::ClientTls;

use html::Kind;

mod html;
mod link;
#[cfg(test)]
mod tests;

const PAGE_BYTES_MAX: usize = 64 << 20;
/// Most bytes of a path: more than servers take in a request line.
const PATH_MAX: usize = 16 << 10;
/// Most bytes of the paths that one page links to, and of all that are known, with [`PATH_OVERHEAD`]
/// for each.
const LINK_BYTES_MAX: usize = 32 << 20;
/// What a path takes besides its bytes.
const PATH_OVERHEAD: usize = 128;
/// Most redirects one after the other; as many as wget follows.
const REDIRECTS_MAX: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlLimits {
    /// Most pages; separately, most refused pages.
    pub pages: usize,
    /// Most bytes of all pages together.
    pub bytes: usize,
    /// Most links between the first page and any other.
    pub depth: usize,
    /// Longest wait for a page.
    pub timeout: Duration,
}

/// A page that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Path and query.
    pub path: String,
    pub status: u16,
    pub body: Vec<u8>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The pages that answered with a success, in the order in which they were found.
    pub pages: Vec<Page>,
    /// Pages that answered with another status.
    pub refused: Vec<(String, u16)>,
    /// Links that were not followed because of `limit`.
    pub left: usize,
    /// The limit that ended the crawl, or kept links from being followed.
    pub limit: Option<CrawlLimit>,
}

/// A limit that ends a crawl, or keeps links from being followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrawlLimit {
    /// [`CrawlLimits::pages`].
    Pages,
    /// [`CrawlLimits::bytes`].
    Bytes,
    /// [`CrawlLimits::pages`] refused pages.
    Refused,
    /// The paths of all links take too much memory.
    Links,
}

/// Why a site could not be crawled.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// No answer.
    #[error("{path} does not answer: {source}")]
    Fetch {
        /// The page.
        path: String,
        /// Why.
        source: FetchError,
    },
    /// The status of the first page is no success.
    #[error("{path} answers with status {status}: there is nothing to crawl")]
    Start {
        /// The page.
        path: String,
        status: u16,
    },
}

/// A page to fetch.
struct Next {
    path: String,
    /// How many links lead to it from the first page.
    depth: usize,
    /// The pages that led here, each by a redirect to the next.
    from: Vec<String>,
}

/// Fetches the page at `start` and, page by page in the order of discovery, all that it links to
/// on the same host and below the folder of `start`. `host` is the name with its port as links
/// spell it; an https site has `tls`; `request` makes the bytes of a request for a path. Once `stop`
/// is set no further page is fetched, and what was found until then is returned.
///
/// Redirects on the same host are followed, and the page at their end counts as found. If the first
/// page is redirected out of the folder of `start`, the folder at the end of the redirects counts.
///
/// Links are the `href` and `src` of any element of an HTML page, resolved as RFC 3986 says,
/// against the page's `<base href>` if it has one.
///
/// # Errors
/// When a page does not answer at all, or the status of the first one is no success.
pub fn crawl(
    address: &Address,
    tls: Option<&ClientTls>,
    host: &str,
    start: &str,
    limits: CrawlLimits,
    mut request: impl FnMut(&str) -> Vec<u8>,
    stop: &AtomicBool,
) -> Result<Site, CrawlError> {
    let start = &encoded_path(start);
    let own = format!("{}://{host}", if tls.is_some() { "https" } else { "http" });
    let mut below = folder(start).to_string();
    let mut site = Site::default();
    let mut known = Known::default();
    known.insert(start);
    let mut bytes = 0;
    let mut next = VecDeque::from([Next {
        path: start.to_string(),
        depth: 0,
        from: Vec::new(),
    }]);
    while let Some(Next {
        path,
        depth,
        mut from,
    }) = next.pop_front()
    {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let limit = match (site.pages.len(), site.refused.len()) {
            (pages, _) if pages == limits.pages => Some(CrawlLimit::Pages),
            (_, refused) if refused == limits.pages => Some(CrawlLimit::Refused),
            _ => None,
        };
        if limit.is_some() {
            (site.left, site.limit) = (next.len() + 1, limit);
            break;
        }
        let answer = match tls::fetch(
            address,
            tls,
            &[],
            &request(&path),
            limits.timeout,
            PAGE_BYTES_MAX,
        ) {
            Ok(answer) => answer,
            // The answer is no longer needed.
            Err(_) if stop.load(Ordering::SeqCst) => break,
            Err(source) => return Err(CrawlError::Fetch { path, source }),
        };
        if let Some(to) = redirect(&answer, &own, &path) {
            let is_loop = to == path || from.contains(&to);
            if !is_loop && known.paths.contains(&to) {
                // It is found under its own path.
                continue;
            }
            if !is_loop && from.len() < REDIRECTS_MAX {
                known.paths.insert(to.clone());
                from.push(path);
                next.push_front(Next {
                    path: to,
                    depth,
                    from,
                });
                continue;
            }
        }
        if !(200..300).contains(&answer.status) {
            if site.pages.is_empty() {
                let status = answer.status;
                return Err(CrawlError::Start { path, status });
            }
            site.refused.push((path, answer.status));
            continue;
        }
        if site.pages.is_empty() && !path.starts_with(&below) {
            below = folder(&path).to_string();
        }
        bytes += answer.body.len();
        if bytes > limits.bytes {
            (site.left, site.limit) = (next.len() + 1, Some(CrawlLimit::Bytes));
            break;
        }
        if depth < limits.depth {
            let content_type = answer.field("Content-Type");
            for link in page_links(&answer.body, content_type, &own, &path) {
                if link.starts_with(&below) && known.insert(&link) {
                    next.push_back(Next {
                        path: link,
                        depth: depth + 1,
                        from: Vec::new(),
                    });
                }
            }
        }
        site.pages.push(Page {
            path,
            status: answer.status,
            body: answer.body,
        });
    }
    site.left += known.left;
    if known.left > 0 {
        site.limit = site.limit.or(Some(CrawlLimit::Links));
    }
    Ok(site)
}

/// The paths that were found.
#[derive(Default)]
struct Known {
    paths: BTreeSet<String>,
    bytes: usize,
    /// Paths that were left out since there was no room for them; repeated ones count each time.
    left: usize,
}

impl Known {
    /// Whether the path is new, and there is room for it.
    fn insert(&mut self, path: &str) -> bool {
        if self.paths.contains(path) {
            return false;
        }
        // It is kept once more until it is fetched.
        let cost = 2 * path.len() + PATH_OVERHEAD;
        if self.bytes + cost > LINK_BYTES_MAX {
            self.left += 1;
            return false;
        }
        self.bytes += cost;
        self.paths.insert(path.to_owned())
    }
}

/// The folder that a page is in, with its slash.
fn folder(path: &str) -> &str {
    let end = path.split('?').next().and_then(|path| path.rfind('/'));
    &path[..=end.unwrap_or(0)]
}

/// The path that an answer redirects to on the same host.
fn redirect(answer: &Answer, site: &str, base: &str) -> Option<String> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let to = std::str::from_utf8(answer.field("Location")?).ok()?;
    link::resolve(to, site, base).filter(|path| path.len() <= PATH_MAX)
}

/// The links of the page at `path` that stay on its site, such as `http://name:81`, as paths, in the
/// order of the page. Paths of more than 16 KiB are left out, and links behind the first 32 MiB.
pub fn page_links(page: &[u8], content_type: Option<&[u8]>, site: &str, path: &str) -> Vec<String> {
    let found = html::links(page, Kind::of(content_type));
    let base = match &found.base {
        // An empty base, or one that is only a fragment, means the page itself.
        Some(base) if link::is_of_the_page(base) => Some(path.to_string()),
        Some(base) => link::resolve(base, site, path),
        None => Some(path.to_string()),
    };
    // With a base on another host, only links that name this host stay on it.
    let links = found.links.iter();
    let links = links.filter_map(|link| match &base {
        Some(base) => link::resolve(link, site, base),
        None => link::names_a_host(link, site)
            .then(|| link::resolve(link, site, path))
            .flatten(),
    });
    let mut bytes = 0;
    let fits = |path: &String| {
        bytes += path.len() + PATH_OVERHEAD;
        bytes <= LINK_BYTES_MAX
    };
    let links = links.filter(|path| path.len() <= PATH_MAX);
    links.take_while(fits).collect()
}
