//! A connection that carries streams.

use std::collections::{HashMap, VecDeque};

use net::h2::{ErrorCode, Incoming, ResetCause, Session, SessionLimits};
use net::{ConnId, FieldSection};

use super::CONNECTION_RESET;
use super::backend_connection::BackendConnection;
use super::stream::{Stream, Tunnel};
use super::table::Table;
use crate::engine::http::make_room;
use crate::h2::{
    asks_websocket, chunk, last_chunk, new_key, write_request, write_response, write_switch,
};

/// Limits of a client's connection. Each reset by the client counts as ten frames. So
/// `overhead_max` also limits how many resets it sends at once, and [`Carrier::FORGIVEN`] how many
/// per second.
const LIMITS: SessionLimits = SessionLimits {
    streams_max: 128,
    overhead_max: 2000,
    reset_cost: 10,
};
/// For a back end. Its resets count less: they may be caused by those of clients.
const BACKEND_LIMITS: SessionLimits = SessionLimits {
    streams_max: 0,
    overhead_max: 10_000,
    reset_cost: 1,
};
/// How many bytes of response heads may wait for a slow client: several interim responses and a
/// final one.
const HEADS_MAX: usize = 2 * net::http::HEAD_BYTES_MAX;
/// More than what frames a chunk, bytes.
const CHUNK_HEAD: usize = 32;
/// How many bytes are encoded before they are handed to the inner loop.
pub(super) const OUT_MAX: usize = 64 * 1024;

pub(super) struct Carrier {
    pub conn: ConnId,
    pub session: Session,
    /// `None` on a connection of a client.
    pub backend: Option<BackendConnection>,
    /// Slots of the open streams, by stream ID.
    pub slots: HashMap<u32, u32>,
    /// Slots of streams with something to send; they take turns.
    pub ring: VecDeque<u32>,
    /// Whether it is in the list of carriers to flush.
    pub is_dirty: bool,
    /// Whether nothing is read from the peer, as the peer does not read either.
    pub is_paused: bool,
    /// Whether its user has been told that it ends.
    pub is_over: bool,
    /// Malformed requests since its user last asked.
    pub malformed: u64,
}

impl Carrier {
    /// By how much the count of frames without requests is lowered each time the user looks at the
    /// connection, which is ten times a second.
    pub const FORGIVEN: u64 = 40;

    pub fn new(conn: ConnId) -> Self {
        Self {
            conn,
            session: Session::of_server(LIMITS).with_extended_connect(),
            backend: None,
            slots: HashMap::new(),
            ring: VecDeque::new(),
            is_dirty: false,
            is_paused: false,
            is_over: false,
            malformed: 0,
        }
    }

    pub fn to_server(conn: ConnId, backend: BackendConnection) -> Self {
        Self {
            session: Session::of_client(BACKEND_LIMITS),
            backend: Some(backend),
            ..Self::new(conn)
        }
    }

    /// Takes received bytes. False if the peer broke a rule of the connection.
    pub fn receive(&mut self, bytes: &[u8], table: &mut Table) -> bool {
        let Self {
            conn,
            session,
            slots,
            malformed,
            backend,
            ..
        } = self;
        let (mut touched, mut refused, mut too_long) = (Vec::new(), Vec::new(), Vec::new());
        let fed = session.feed(bytes, |incoming| match incoming {
            Incoming::Head {
                stream,
                head,
                is_complete,
            } if backend.is_some() => {
                if let Some((slot, one)) = table.by_stream_id(slots, stream) {
                    let is_head = one.is_head_request();
                    if let Some(key) = one.asked_key().filter(|_| head.status() / 100 == 2) {
                        let mut switch = Vec::new();
                        write_switch(head, key, &mut switch);
                        one.inbox.append(&mut switch);
                        one.tunnel = Tunnel::Open;
                    } else {
                        one.is_chunked = write_response(head, is_complete, is_head, &mut one.inbox);
                    }
                    one.is_complete = is_complete;
                    // Interim responses have no flow control.
                    if one.inbox.len() > HEADS_MAX {
                        slots.remove(&stream);
                        table.fail(slot, net::MALFORMED);
                        too_long.push(stream);
                    } else {
                        touched.push(slot);
                    }
                }
            }
            Incoming::Head {
                stream,
                head,
                is_complete,
            } => {
                let key = asks_websocket(head).then(new_key);
                let mut inbox = Vec::new();
                let is_chunked = write_request(head, is_complete, key.as_deref(), &mut inbox);
                let is_head = head.method() == b"HEAD";
                let mut one = Stream::of_client(*conn, stream, is_head, key);
                one.is_call = is_call(head);
                (one.inbox, one.is_chunked, one.is_complete) = (inbox, is_chunked, is_complete);
                match table.open(one) {
                    None => refused.push(stream),
                    Some(slot) => {
                        slots.insert(stream, slot);
                        touched.push(slot);
                    }
                }
            }
            Incoming::Data {
                stream,
                bytes,
                flow,
                is_complete,
            } => {
                let Some((slot, one)) = table.by_stream_id(slots, stream) else {
                    return;
                };
                let is_early = one.tunnel == Tunnel::Asked && backend.is_none();
                let inbox = match is_early {
                    true => &mut one.early,
                    false => &mut one.inbox,
                };
                make_room(inbox, bytes.len() + CHUNK_HEAD);
                match one.is_chunked {
                    true => one.open_chunk = chunk(bytes, one.open_chunk, inbox),
                    false => inbox.extend_from_slice(bytes),
                }
                if is_complete && one.is_chunked {
                    last_chunk(None, &mut one.inbox);
                }
                one.is_complete = is_complete;
                one.flow += flow;
                touched.push(slot);
            }
            Incoming::Trailers { stream, fields } => {
                let Some((slot, one)) = table.by_stream_id(slots, stream) else {
                    return;
                };
                one.is_complete = true;
                // Content with an announced length cannot have trailers in HTTP/1.1.
                if one.is_chunked {
                    last_chunk(Some(fields), &mut one.inbox);
                    touched.push(slot);
                }
            }
            Incoming::Reset { stream, cause } => {
                if let Some(slot) = slots.remove(&stream) {
                    // As much of the response as came before, in the same bytes. Of a request that
                    // is given up nothing is wanted.
                    if backend.is_some() {
                        table.deliver(slot, None);
                    }
                    table.fail(slot, errno(cause));
                }
            }
            Incoming::Malformed => *malformed += 1,
        });
        for stream in refused {
            session.reset(stream, ErrorCode::RefusedStream);
        }
        for stream in too_long {
            session.reset(stream, ErrorCode::EnhanceYourCalm);
        }
        for slot in touched {
            table.deliver(slot, Some(&mut *session));
        }
        fed.is_ok()
    }

    /// Queues a stream to send, in turn with others.
    pub fn queue(&mut self, slot: u32, stream: &mut Stream) {
        if !stream.is_waiting {
            stream.is_waiting = true;
            self.ring.push_back(slot);
        }
    }

    /// Encodes what the streams have to send, one frame of each in turn, as far as the windows and
    /// [`OUT_MAX`] allow.
    pub fn encode(&mut self, table: &mut Table) {
        let mut is_moving = true;
        while std::mem::take(&mut is_moving) {
            for _ in 0..self.ring.len() {
                if self.session.out.len() >= OUT_MAX {
                    return;
                }
                let Some(slot) = self.ring.pop_front() else {
                    return;
                };
                let Some(stream) = table.at(slot) else {
                    continue;
                };
                stream.is_waiting = false;
                if stream.is_over {
                    continue;
                }
                let before = stream.queued();
                is_moving |= stream.send_frame(&mut self.session) && stream.has_unsent();
                let (id, after) = (stream.id, stream.queued());
                let is_of_client = stream.outgoing.is_none();
                if stream.has_unsent() {
                    stream.is_waiting = true;
                    self.ring.push_back(slot);
                }
                table.count(slot);
                if is_of_client && !self.session.is_open(id) {
                    self.slots.remove(&id);
                    table.end(slot);
                } else if before > 0 && after == 0 {
                    table.drained(slot);
                }
            }
        }
    }
}

/// Whether a request is a gRPC call.
fn is_call(head: &FieldSection) -> bool {
    let mut fields = head.fields();
    let field = fields.find(|(name, _)| *name == b"content-type");
    field.is_some_and(|(_, value)| net::grpc::is_content_type(value))
}

/// The `errno` of [`net::Event::Failed`] for a reset.
fn errno(cause: ResetCause) -> i32 {
    match cause {
        ResetCause::Peer(code) => match ErrorCode::of(code) {
            Some(ErrorCode::Cancel) => net::CANCELLED,
            Some(ErrorCode::EnhanceYourCalm) => net::ENHANCE_YOUR_CALM,
            _ => CONNECTION_RESET,
        },
        ResetCause::NotProcessed => net::NOT_PROCESSED,
        ResetCause::Fault => net::MALFORMED,
    }
}

#[cfg(test)]
mod tests {
    use net::TargetId;
    use net::h2::{frame, hpack};

    use super::*;

    #[test]
    fn interim_responses_do_not_pile_up_in_a_paused_stream() {
        let (conn, target) = (ConnId::new(1, 0), TargetId::new(0));
        let mut table = Table::new(4, 10, 10);
        let slot = table.open(Stream::to_server(target, false)).unwrap();
        let mut carrier = Carrier::to_server(conn, BackendConnection::new(target, 0));
        let stream = table.at(slot).unwrap();
        stream.is_paused = true;
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.take(request, &mut carrier.session).unwrap();
        let id = stream.id;
        carrier.slots.insert(id, slot);

        let (mut bytes, mut block) = (Vec::new(), Vec::new());
        frame::settings(&mut bytes, &[]);
        hpack::encode(&mut block, b":status", b"103");
        hpack::encode(&mut block, b"link", &[b'x'; 8000]);
        for _ in 0..100 {
            frame::headers(&mut bytes, id, &block, false, 16_384);
        }
        assert!(carrier.receive(&bytes, &mut table));
        let stream = table.at(slot).unwrap();
        assert!(stream.is_over);
        assert!(stream.inbox.len() < HEADS_MAX + 10_000);
        assert!(!carrier.session.is_open(id) && carrier.slots.is_empty());
    }
}
