//! Answers to requests on streams, in HTTP/2 and HTTP/3.

use std::collections::HashMap;

use net::Io;
use net::http::Request;

use super::{AnswerKey, AnswerTo, Worker};
use crate::body::Body;
use crate::pages::{BLOCK, ConnectionReuse, Page, StreamPage, answer, page_with, sized_body};

/// Fixed pages, by method and target.
pub(super) type StreamPages<P> = HashMap<String, P>;

impl<I: Io> Worker<I> {
    /// Passes the page for a request to `give`; a delayed answer is held for `to` instead.
    /// `arrived_ns` is the kernel timestamp of the request, if there is one.
    pub(super) fn with_page<P: StreamPage>(
        &mut self,
        pages: &mut StreamPages<P>,
        request: &Request,
        arrived_ns: Option<u64>,
        to: AnswerTo,
        give: impl FnOnce(&mut Self, &P),
    ) {
        let key = format!("{} {}", request.method, request.target);
        if let Some(known) = pages.get(&key) {
            return give(self, known);
        }
        let persist = ConnectionReuse::Kept;
        let is_head = request.method == "HEAD";
        let page = match page_with(self.always, request) {
            Page::Own(bytes) => P::of(&bytes),
            Page::Fixed(bytes) => self.cached(pages, key, bytes.len(), P::of(&bytes)),
            Page::Long(head, size) => {
                let block = self
                    .stream_block
                    .get_or_insert_with(|| sized_body(BLOCK).into());
                let body = Body::repeated(block.clone(), size);
                self.cached(pages, key, head.len(), P::with_body(&head, body))
            }
            Page::Delayed(delay) => {
                let key = AnswerKey {
                    to,
                    persist,
                    head_only: is_head,
                };
                return self.hold(key, delay, arrived_ns);
            }
            // HTTP/2 begins exchanges before this.
            Page::Lasting(_) => {
                let text = b"only over HTTP/1.1 and HTTP/2\n";
                P::of(&answer(501, "text/plain", text, is_head, persist))
            }
            Page::Asked(asked) => {
                let (kind, body) = self.find_out(asked);
                P::of(&answer(200, kind, body.as_bytes(), is_head, persist))
            }
        };
        give(self, &page);
    }

    /// Caches a page that takes `size` bytes, if it fits, and returns it.
    fn cached<P: StreamPage>(
        &mut self,
        pages: &mut StreamPages<P>,
        key: String,
        size: usize,
        page: P,
    ) -> P {
        if self.reserve_cache(pages.len(), size) {
            pages.insert(key, page.clone());
        }
        page
    }
}
