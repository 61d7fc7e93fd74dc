//! Planning what to do with a request whose head was read.

use net::{ConnId, Io};

use super::Downstream;
use super::backend_slot::{HttpBackendSlot, HttpServiceWorker};
use super::edits::filled;
use super::pool::take_idle;
use crate::config::Placeholders;
use crate::engine::external::ExternalChoice;
use crate::engine::shared::events::RequestLine;
use crate::engine::shared::state::ServiceState;
use crate::engine::worker::connection::{Client, Connection};
use crate::engine::worker::service_worker::{Choice, ServiceWorker};
use crate::http::{
    BodyTracker, Direction, Framing, Refusal, RequestContext, RequestHead, Rewritten, ToUpstream,
    read_request, rewrite_request,
};

pub(super) struct Plan {
    /// Where the request's head begins and ends, and where the part ends that is sent now.
    pub(super) begin: usize,
    pub(super) head_end: usize,
    pub(super) end: usize,
    pub(super) choice: Choice,
    /// A pooled connection, and how the head is sent there.
    pub(super) kept: Option<(ConnId, Rewritten)>,
}

/// What planning needs, besides the client.
pub(super) struct Chooser<'w, I: Io> {
    pub(super) io: &'w I,
    pub(super) service_worker: &'w mut ServiceWorker,
    pub(super) state: &'w ServiceState,
    pub(super) connections: &'w [Connection],
    pub(super) rng: &'w mut fastrand::Rng,
    pub(super) now_ns: u64,
    pub(super) scratch: &'w mut Vec<u8>,
    pub(super) values: &'w mut Vec<u8>,
}

impl<I: Io> Chooser<'_, I> {
    /// Parses a request, keeps what is needed later, and plans. `None`: the head is not complete.
    pub(super) fn plan(
        &mut self,
        downstream: &mut Downstream,
        client_state: &mut Client,
        bytes: &[u8],
    ) -> Result<Option<Plan>, Refusal> {
        let Some(head) = read_request(bytes)? else {
            return Ok(None);
        };
        let Some(http) = &self.service_worker.http else {
            return Ok(None);
        };
        let raw = !http.inspect_all;
        let framing = match raw {
            true => Framing::None,
            false => head.framing(),
        };
        let mut body = BodyTracker::new(Direction::Request, framing);
        let has_body = !body.is_complete();
        let (begin, head_end) = (head.skipped(), head.len());
        let end = match raw {
            true => bytes.len(),
            false => head_end + body.take_guarded(&bytes[head_end..], &http.guarded)?.bytes,
        };
        downstream.scan.reset();
        downstream.request.clear();
        downstream.request.extend_from_slice(&bytes[begin..end]);
        // After the first message there may be uninspected requests, which must not be sent twice.
        downstream.whole = !raw || end == head_end;
        downstream.method = head.method();
        downstream.minor_version = head.minor_version();
        downstream.keep_alive = head.keep_alive();
        downstream.context = RequestContext {
            head: downstream.method == crate::http::Method::Head,
            upgrade: head.asks_upgrade(),
        };
        (downstream.body, downstream.has_body, downstream.raw) = (body, has_body, raw);
        (
            downstream.response_sent,
            downstream.failed,
            downstream.status,
        ) = (false, false, 0);
        downstream.response_bytes = 0;
        downstream.resends_left = http.resends;
        downstream.body_wait = None;
        downstream.sticky = http.bound(&head);
        if self.service_worker.emits_events {
            let is_stream = client_state.carrier.is_some();
            downstream.line = Some(logged_line(&head, is_stream, self.service_worker.combined));
        }
        client_state.tried.clear();
        client_state.again = 0;
        client_state.external_choice = ExternalChoice::NotAsked;
        let waits = !self.service_worker.queue.is_empty() && self.service_worker.program.is_none();
        let choice = match waits {
            _ if head.is_at_last_hop() => Choice::LastHop,
            // First come, first served.
            true => Choice::Full,
            false => choose(
                self.service_worker,
                self.state,
                downstream,
                client_state,
                Some(&head),
                self.now_ns,
                self.rng,
            ),
        };
        let mut kept = None;
        self.scratch.clear();
        if let (Choice::Backend(at), Some(http)) = (choice, &mut self.service_worker.http)
            && http.backends[at].reusable
        {
            let address_version = self.state.backends[at].address_version();
            let repeat = downstream.may_repeat();
            let idle = &mut http.backends[at].idle;
            if let Some(conn) = take_idle(
                self.io,
                self.connections,
                idle,
                address_version,
                repeat,
                self.now_ns,
            ) {
                let backend_slot = &http.backends[at];
                let how = rewrite(
                    http,
                    backend_slot,
                    client_state,
                    &head,
                    self.scratch,
                    self.values,
                );
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

fn logged_line(head: &RequestHead<'_>, is_stream: bool, combined: bool) -> Box<RequestLine> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_boxed_str();
    let field = |name: &[u8]| head.value(name).filter(|_| combined).map(text);
    Box::new(RequestLine {
        method: text(head.method_name()),
        target: text(head.path_and_query()),
        version: match (is_stream, head.minor_version()) {
            (true, _) => "2.0",
            (false, 0) => "1.0",
            (false, _) => "1.1",
        },
        referer: field(b"referer"),
        user_agent: field(b"user-agent"),
    })
}

/// Chooses a back end for a held request and reserves capacity.
pub(in crate::engine) fn choose_held(
    service_worker: &mut ServiceWorker,
    state: &ServiceState,
    held: &Downstream,
    client_state: &Client,
    now_ns: u64,
    rng: &mut fastrand::Rng,
) -> Choice {
    let head = read_request(&held.request).ok().flatten();
    let head = head.as_ref();
    choose(service_worker, state, held, client_state, head, now_ns, rng)
}

/// Chooses a back end for a request and reserves capacity.
fn choose(
    service_worker: &mut ServiceWorker,
    state: &ServiceState,
    downstream: &Downstream,
    client_state: &Client,
    head: Option<&RequestHead<'_>>,
    now_ns: u64,
    rng: &mut fastrand::Rng,
) -> Choice {
    if let Some(at) = downstream.sticky
        && !client_state.tried.contains(&at)
        && state.backends[at as usize].usable()
    {
        // A sticky request waits rather than go elsewhere.
        return match service_worker.reserve(state, at as usize) {
            true => Choice::Backend(at as usize),
            false => Choice::Full,
        };
    }
    let key = match (&service_worker.http, head) {
        (Some(http), Some(head)) => http.key(head),
        _ => None,
    };
    service_worker.choose(state, client_state, key, now_ns, rng)
}

/// Rewrites the head for a back end; a changed one is appended to `scratch`.
pub(super) fn rewrite(
    http: &HttpServiceWorker,
    backend_slot: &HttpBackendSlot,
    client_state: &Client,
    head: &RequestHead<'_>,
    scratch: &mut Vec<u8>,
    values: &mut Vec<u8>,
) -> Rewritten {
    let placeholders = Placeholders {
        client: client_state.address.ip(),
        backend: &backend_slot.name,
        service: &http.name,
    };
    filled(
        backend_slot.to_server.iter(),
        &placeholders,
        values,
        |edits| {
            let to = ToUpstream {
                edits,
                keep_alive: match http.inspect_all {
                    true => backend_slot.reusable || backend_slot.speaks_http_2,
                    false => head.keep_alive(),
                },
                // On a stream, the loop makes an extended CONNECT of it, or drops it.
                upgrade: true,
                trusted: client_state.trusted,
                host: &backend_slot.host,
            };
            rewrite_request(head, &to, scratch)
        },
    )
}
