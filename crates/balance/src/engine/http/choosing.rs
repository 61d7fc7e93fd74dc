//! Which back end takes a request, and what of the request goes there.

use net::ConnId;

use super::Front;
use super::edits::filled;
use super::places::{HttpPlace, HttpPost};
use super::pool::take_idle;
use crate::config::Facts;
use crate::engine::events::RequestLine;
use crate::engine::external::Wish;
use crate::engine::post::{Choice, Post};
use crate::engine::side::{Client, Side};
use crate::engine::state::ServiceState;
use crate::http::{
    Asked, BodyTracker, Direction, Framing, Refusal, RequestHead, Rewritten, ToUpstream,
    read_request, rewrite_request,
};

/// What is to be done with a request whose head was read.
pub(super) struct Plan {
    /// Where its head begins and ends, and where what is sent of it ends.
    pub(super) begin: usize,
    pub(super) head_end: usize,
    pub(super) end: usize,
    pub(super) choice: Choice,
    /// A connection that was kept, and how the head goes there.
    pub(super) kept: Option<(ConnId, Rewritten)>,
}

/// What is needed to choose a back end for a request, beside the client.
pub(super) struct Chooser<'w> {
    pub(super) post: &'w mut Post,
    pub(super) state: &'w ServiceState,
    pub(super) sides: &'w [Side],
    pub(super) rng: &'w mut fastrand::Rng,
    pub(super) now_ns: u64,
    pub(super) scratch: &'w mut Vec<u8>,
    pub(super) values: &'w mut Vec<u8>,
}

impl Chooser<'_> {
    /// Reads a request, keeps what is needed of it later, and says what is to be done; `None` when
    /// its head is not complete.
    pub(super) fn plan(
        &mut self,
        front: &mut Front,
        known: &mut Client,
        bytes: &[u8],
    ) -> Result<Option<Plan>, Refusal> {
        let Some(head) = read_request(bytes)? else {
            return Ok(None);
        };
        let Some(http) = &self.post.http else {
            return Ok(None);
        };
        let raw = !http.every;
        let framing = match raw {
            true => Framing::None,
            false => head.framing(),
        };
        let mut body = BodyTracker::new(Direction::Request, framing);
        let (begin, head_end) = (head.skipped(), head.len());
        let end = match raw {
            true => bytes.len(),
            false => head_end + body.take(&bytes[head_end..])?.bytes,
        };
        front.scan.reset();
        front.request.clear();
        front.request.extend_from_slice(&bytes[begin..end]);
        front.whole = true;
        front.method = head.method();
        front.minor_version = head.minor_version();
        front.keep_alive = head.keep_alive();
        front.asked = Asked {
            head: front.method == crate::http::Method::Head,
            upgrade: head.asks_upgrade(),
        };
        (front.body, front.raw) = (body, raw);
        (front.begun, front.failed, front.status) = (false, false, 0);
        front.answer_bytes = 0;
        front.sticky = http.bound(&head);
        if self.post.wanted {
            front.line = Some(logged_line(&head, self.post.combined));
        }
        known.tried.clear();
        known.again = 0;
        known.wish = Wish::None;
        let waits = !self.post.queue.is_empty() && self.post.program.is_none();
        let choice = match !waits {
            // Those who wait already go first.
            false => Choice::Full,
            true => choose(
                self.post,
                self.state,
                front,
                known,
                Some(&head),
                self.now_ns,
                self.rng,
            ),
        };
        let mut kept = None;
        self.scratch.clear();
        if let (Choice::Backend(at), Some(http)) = (choice, &mut self.post.http)
            && http.places[at].shares
        {
            let moves = self.state.backends[at].moves();
            let repeat = front.method.is_idempotent();
            let idle = &mut http.places[at].idle;
            if let Some(conn) = take_idle(self.sides, idle, moves, repeat, self.now_ns) {
                let place = &http.places[at];
                let how = rewrite(http, place, known, &head, self.scratch, self.values);
                kept = Some((conn, how));
            }
        }
        Ok(Some(Plan {
            begin,
            head_end,
            end,
            choice,
            kept,
        }))
    }
}

/// A request's head, as far as it is logged.
fn logged_line(head: &RequestHead<'_>, combined: bool) -> Box<RequestLine> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_boxed_str();
    let field = |name: &[u8]| head.value(name).filter(|_| combined).map(text);
    Box::new(RequestLine {
        method: text(head.method_name()),
        target: text(head.path_and_query()),
        minor_version: head.minor_version(),
        referer: field(b"referer"),
        user_agent: field(b"user-agent"),
    })
}

/// Chooses a back end for a request, and takes a place there.
pub(super) fn choose(
    post: &mut Post,
    state: &ServiceState,
    front: &Front,
    known: &Client,
    head: Option<&RequestHead<'_>>,
    now_ns: u64,
    rng: &mut fastrand::Rng,
) -> Choice {
    if let Some(at) = front.sticky
        && !known.tried.contains(&at)
        && state.backends[at as usize].usable()
    {
        // It waits for its own back end rather than go to another one.
        return match state.backends[at as usize].reserve(post.places[at as usize].most) {
            true => Choice::Backend(at as usize),
            false => Choice::Full,
        };
    }
    let key = match (&post.http, head) {
        (Some(http), Some(head)) => http.key(head),
        _ => None,
    };
    post.choose(state, known, key, now_ns, rng)
}

/// Says how a request's head goes to a back end, appending it to `scratch` where it is changed.
pub(super) fn rewrite(
    http: &HttpPost,
    place: &HttpPlace,
    known: &Client,
    head: &RequestHead<'_>,
    scratch: &mut Vec<u8>,
    values: &mut Vec<u8>,
) -> Rewritten {
    let facts = Facts {
        client: known.address.ip(),
        backend: &place.name,
        service: &http.name,
    };
    filled(place.to_server.iter(), &facts, values, |edits| {
        let to = ToUpstream {
            edits,
            keep_alive: match http.every {
                true => place.shares,
                false => head.keep_alive(),
            },
            upgrade: true,
            host: &place.host,
            via: None,
        };
        rewrite_request(head, &to, scratch)
    })
}
