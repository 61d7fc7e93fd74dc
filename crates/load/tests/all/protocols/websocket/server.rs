//! A WebSocket server that does what a test says.

use std::io::Read;

use net::http::RequestParser;
use net::ws::{Event, MessageKind, Reader, Role, Writer, handshake};

use crate::support::Peer;

/// What a client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>),
}

/// The server's end of a WebSocket.
pub struct Socket<'p> {
    pub peer: &'p mut Peer,
    reader: Reader,
    pub writer: Writer,
    /// Bytes that were read and not looked at.
    bytes: Vec<u8>,
    at: usize,
}

impl<'p> Socket<'p> {
    /// Takes the client's handshake and answers it; `None` when the client has gone.
    pub fn accept(peer: &'p mut Peer) -> Option<Self> {
        Self::accept_with(peer, &[])
    }

    /// The same, with the answer and these bytes in one piece.
    pub fn accept_with(peer: &'p mut Peer, bytes_behind: &[u8]) -> Option<Self> {
        let mut parser = RequestParser::default();
        let mut bytes = Vec::new();
        let taken = loop {
            let mut piece = [0; 4096];
            let n = peer.stream.read(&mut piece).ok().filter(|n| *n > 0)?;
            let (taken, is_whole) = parser.feed(&piece[..n]).unwrap();
            if is_whole {
                bytes.extend_from_slice(&piece[taken..n]);
                break parser.request().clone();
            }
        };
        let fields = taken.fields.iter();
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_bytes()));
        let accepted = handshake::accept_request(&taken.method, fields, true).unwrap();
        let deflate = accepted.deflate;
        let answer = [accepted.answer("").as_bytes(), bytes_behind].concat();
        peer.send(&answer).then_some(())?;
        Some(Self {
            peer,
            reader: Reader::new(Role::Server, 1 << 20, deflate),
            writer: Writer::new(Role::Server, 0, deflate),
            bytes,
            at: 0,
        })
    }

    /// The next message or control frame; `None` when the client has gone.
    pub fn read(&mut self) -> Option<Got> {
        loop {
            let mut input = &self.bytes[self.at..];
            let before = input.len();
            let event = self.reader.next(&mut input).unwrap();
            let got = event.map(|event| match event {
                Event::Message(kind, content) => Got::Message(kind, content.into()),
                Event::Ping(payload) => Got::Ping(payload.into()),
                Event::Pong(payload) => Got::Pong(payload.into()),
                Event::Close(code, _) => Got::Close(code.map(|code| code.0)),
            });
            self.at += before - input.len();
            if got.is_some() {
                return got;
            }
            self.at = 0;
            self.bytes.resize(64 << 10, 0);
            let n = self.peer.stream.read(&mut self.bytes).ok()?;
            self.bytes.truncate(n);
            if n == 0 {
                return None;
            }
        }
    }

    /// The next message; `None` when the client has closed or gone. A close frame is answered.
    pub fn message(&mut self) -> Option<(MessageKind, Vec<u8>)> {
        loop {
            match self.read()? {
                Got::Message(kind, content) => return Some((kind, content)),
                Got::Close(_) => {
                    let mut out = Vec::new();
                    self.writer.close(&mut out, None, "");
                    self.peer.send(&out);
                    return None;
                }
                _ => {}
            }
        }
    }

    pub fn send(&mut self, kind: MessageKind, content: &[u8]) -> bool {
        let mut out = Vec::new();
        self.writer.message(&mut out, kind, content);
        self.peer.send(&out)
    }

    /// Sends a message back; false when there is none more.
    pub fn echo(&mut self) -> bool {
        match self.message() {
            Some((kind, content)) => self.send(kind, &content),
            None => false,
        }
    }

    pub fn close(&mut self, code: u16) {
        let mut out = Vec::new();
        self.writer
            .close(&mut out, Some(net::ws::CloseCode(code)), "");
        self.peer.send(&out);
    }
}
