//! What the origin bears over HTTP/3.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use net::h3::{ErrorCode, frame, qpack, settings};
use net::os;
use quic::{Client, ConnectionError, Dir, Event, Scratch, StreamId, VarInt};
use tls::ClientTls;

use crate::http3::origin_with;
use crate::support::LONG;

/// A client that sends what a test wants.
struct Raw {
    client: Client,
    scratch: Scratch,
    end: Instant,
    is_connected: bool,
    lost: Option<ConnectionError>,
    resets: Vec<(StreamId, u64)>,
    answers: usize,
}

impl Raw {
    fn open(address: SocketAddr, settings: &tls::ClientSettings) -> Self {
        let tls = ClientTls::new(settings).unwrap();
        let settings = quic::ClientSettings::new(&tls, quic::congestion(None), 1).unwrap();
        let scratch = Scratch::new(os::now_ns(), 4);
        let now = os::now_ns();
        let client = Client::open(&settings, address, None, false, now, &scratch).unwrap();
        let mut raw = Self {
            client,
            scratch,
            end: Instant::now() + LONG,
            is_connected: false,
            lost: None,
            resets: Vec::new(),
            answers: 0,
        };
        raw.until(|raw| raw.is_connected);
        raw
    }

    fn until(&mut self, is: impl Fn(&Self) -> bool) {
        while !is(self) {
            assert!(Instant::now() < self.end, "it never came: {:?}", self.lost);
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.client.flush(os::now_ns(), &mut self.scratch);
        self.client.socket().wait(Duration::from_millis(5)).unwrap();
        let now = os::now_ns();
        let _ = self.client.receive(now, &mut self.scratch, |_, _| {});
        self.client.expire(now, &self.scratch);
        while let Some(event) = self.client.connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(quic::StreamEvent::Readable { id }) => self.read(id),
                _ => {}
            }
        }
    }

    fn read(&mut self, id: StreamId) {
        let mut stream = self.client.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.answers += 1;
                    break;
                }
                Err(quic::ReadError::Reset(code)) => {
                    self.resets.push((id, code.into()));
                    break;
                }
                Err(_) => break,
            }
        }
        let _ = chunks.finalize();
    }

    /// Sends bytes on a new stream.
    fn send(&mut self, dir: Dir, bytes: &[u8], is_whole: bool) -> StreamId {
        let id = loop {
            if let Some(id) = self.client.connection.streams().open(dir) {
                break id;
            }
            assert!(Instant::now() < self.end && self.lost.is_none());
            self.turn();
        };
        let mut stream = self.client.connection.send_stream(id);
        let mut chunks = [Bytes::copy_from_slice(bytes)];
        stream.write_chunks(&mut chunks).unwrap();
        if is_whole {
            stream.finish().unwrap();
        }
        id
    }

    fn lost_code(&mut self) -> u64 {
        self.until(|raw| raw.lost.is_some());
        match self.lost.take().unwrap() {
            ConnectionError::ApplicationClosed(close) => close.error_code.into(),
            other => panic!("{other}"),
        }
    }
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    qpack::begin(&mut section);
    for (name, value) in fields {
        qpack::encode(&mut section, name.as_bytes(), value.as_bytes());
    }
    section
}

fn request(more: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = vec![
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/"),
    ];
    fields.extend(more);
    let mut out = Vec::new();
    frame::headers(&mut out, &section(&fields));
    out
}

fn control(more: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::control(&mut out, &[(settings::MAX_FIELD_SECTION_SIZE, 10_000)]);
    out.extend_from_slice(more);
    out
}

#[test]
fn faults_of_the_connection_end_it_with_their_codes() {
    use ErrorCode::*;
    let (origin, client) = origin_with(true, net::IoKind::best());
    let bomb = {
        let mut section = vec![0, 0];
        section.resize(1500, 0xc1);
        let mut out = Vec::new();
        frame::headers(&mut out, &section);
        out
    };
    let long = [1, 0x80, 0, 0x90, 0, 0, 0];
    let bi = [
        (vec![0, 1, 9], FrameUnexpected),
        (vec![4, 0], FrameUnexpected),
        (vec![6, 0], FrameUnexpected),
        (vec![1, 9, 0, 0], FrameError),
        (vec![1, 3, 2, 0, 0x80], QpackDecompressionFailed),
        (vec![1, 3, 0, 0, 0x80], QpackDecompressionFailed),
        (long.to_vec(), ExcessiveLoad),
        (bomb, ExcessiveLoad),
    ];
    for (bytes, code) in bi {
        let mut raw = Raw::open(origin.address(), &client);
        raw.send(Dir::Bi, &bytes, true);
        assert_eq!(ErrorCode::of(raw.lost_code()), Some(code), "{bytes:?}");
    }
    let uni = [
        (vec![0, 7, 1, 0], MissingSettings),
        (control(&[4, 0]), FrameUnexpected),
        (control(&[0, 0]), FrameUnexpected),
        (control(&[3, 1, 0]), IdError),
        (vec![0, 4, 2, 2, 0], SettingsError),
        (vec![1, 0], StreamCreationError),
        (vec![2, 0x3f, 0x20], QpackEncoderStreamError),
        (vec![3, 0x80], QpackDecoderStreamError),
    ];
    for (bytes, code) in uni {
        let mut raw = Raw::open(origin.address(), &client);
        raw.send(Dir::Uni, &bytes, false);
        assert_eq!(ErrorCode::of(raw.lost_code()), Some(code), "{bytes:?}");
    }
    // Two control streams, and the end of one.
    let mut raw = Raw::open(origin.address(), &client);
    raw.send(Dir::Uni, &control(&[]), false);
    raw.send(Dir::Uni, &control(&[]), false);
    assert_eq!(raw.lost_code(), StreamCreationError as u64);
    let mut raw = Raw::open(origin.address(), &client);
    raw.send(Dir::Uni, &control(&[]), true);
    assert_eq!(raw.lost_code(), ClosedCriticalStream as u64);
}

#[test]
fn malformed_requests_are_refused_and_others_answered() {
    let (origin, client) = origin_with(true, net::IoKind::best());
    let mut raw = Raw::open(origin.address(), &client);
    let mut without_path = Vec::new();
    frame::headers(&mut without_path, &section(&[(":method", "GET")]));
    let malformed = [
        without_path,
        request(&[("Upper", "x")]),
        request(&[("connection", "close")]),
        request(&[("transfer-encoding", "chunked")]),
        request(&[("content-length", "5")]),
        request(&[("host", "another")]),
        request(&[("x", "a\r\nb: c")]),
        request(&[(":path", "/twice")]),
    ];
    for (number, bytes) in malformed.iter().enumerate() {
        let id = raw.send(Dir::Bi, bytes, true);
        raw.until(|raw| raw.resets.len() > number);
        assert_eq!(raw.resets[number], (id, ErrorCode::MessageError as u64));
    }
    // None of the bytes of a request.
    let id = raw.send(Dir::Bi, &[], true);
    raw.until(|raw| raw.resets.len() > malformed.len());
    let incomplete = ErrorCode::RequestIncomplete as u64;
    assert_eq!(raw.resets.last(), Some(&(id, incomplete)));
    // An unknown stream is not read, and does no harm.
    raw.send(Dir::Uni, &[0x21, 1, 2, 3], false);
    raw.send(Dir::Bi, &request(&[]), true);
    raw.until(|raw| raw.answers == 1);
    assert!(raw.lost.is_none());
}

#[test]
fn a_flood_of_resets_ends_the_connection() {
    let (origin, client) = origin_with(true, net::IoKind::best());
    let mut raw = Raw::open(origin.address(), &client);
    let cancelled = VarInt::from_u32(ErrorCode::RequestCancelled as u32);
    // The beginning of a request, which the origin has to keep.
    let part = &request(&[])[..5];
    while raw.lost.is_none() {
        assert!(Instant::now() < raw.end, "{:?}", origin.stats());
        let mut opened = Vec::new();
        while let Some(id) = raw.client.connection.streams().open(Dir::Bi) {
            let mut stream = raw.client.connection.send_stream(id);
            stream.write(part).unwrap();
            opened.push(id);
        }
        raw.turn();
        for id in opened {
            let _ = raw.client.connection.send_stream(id).reset(cancelled);
            let _ = raw.client.connection.recv_stream(id).stop(cancelled);
        }
        raw.turn();
    }
    assert_eq!(raw.lost_code(), ErrorCode::ExcessiveLoad as u64);
    // Others are served.
    let mut other = Raw::open(origin.address(), &client);
    other.send(Dir::Bi, &request(&[]), true);
    other.until(|raw| raw.answers == 1);
}

#[test]
fn a_flood_of_frames_without_meaning_ends_the_connection() {
    let (origin, client) = origin_with(true, net::IoKind::best());
    let mut raw = Raw::open(origin.address(), &client);
    let mut flood = request(&[]);
    for _ in 0..12_000 {
        // Empty DATA, and a frame of unknown type.
        flood.extend_from_slice(&[0, 0, 0x21, 0]);
    }
    raw.send(Dir::Bi, &flood, false);
    assert_eq!(raw.lost_code(), ErrorCode::ExcessiveLoad as u64);
}

#[test]
fn more_streams_than_allowed_wait() {
    let (origin, client) = origin_with(true, net::IoKind::best());
    let mut raw = Raw::open(origin.address(), &client);
    let streams = std::iter::from_fn(|| raw.client.connection.streams().open(Dir::Bi));
    assert_eq!(streams.count(), 256);
}
