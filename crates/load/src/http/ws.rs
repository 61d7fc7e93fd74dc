//! One WebSocket as a client that gets back what it sends, or only receives, without I/O.
//!
//! Each message that comes back has a number, which counts the messages of its connection, at its start: so that an
//! echo which is lost, comes twice or comes before another is told from one with wrong content.

use std::collections::VecDeque;

use net::http::{HEAD_BYTES_MAX, INTERIM_MAX, has_empty_line};
use net::ws::{CloseCode, Event, MessageKind, Reader, Role, Writer, handshake};
use readings::{SOCKET_MESSAGE_BYTES_MAX, Wrong, WrongKind};

use super::session::Overhead;
use crate::exchange::stamp::{CLOCK_FIELD, STAMP_MAX, Stamp, is_own_clock};
use crate::job::traffic::WebSocket;

/// Digits of a message's number, at most.
const DIGITS_MAX: usize = 20;
/// A message may be longer than what was sent by so much, and is then wrong; beyond that the
/// connection is given up.
const LONGER_MAX: usize = 64 << 10;
/// The place of a message that nobody waits for any more.
const GIVEN_UP: u32 = u32::MAX;

/// What arrived.
#[derive(Debug)]
pub(crate) enum Said {
    /// The handshake is complete; whether the server has this machine's clock.
    Opened { is_own_clock: bool },
    /// A message where none is an answer.
    Message { stamp: Option<Stamp>, bytes: u64 },
    /// The message of a place has come back, good or not.
    Echo {
        place: u32,
        bytes: u64,
        wrong: Option<Wrong>,
    },
    /// A message that nobody waits for.
    Unasked { wrong: Wrong, is_repeated: bool },
    /// So many messages that were given up will not come any more: a later one has come.
    Lost(u64),
    /// A message that was sent later than another has come before it.
    Reordered,
}

enum Phase {
    Handshake {
        key: String,
        head: Vec<u8>,
    },
    Open,
    /// This end has sent a close frame.
    Closing,
    /// The server has sent a close frame, with this code.
    Closed(Option<CloseCode>),
}

pub(crate) struct Session {
    reader: Reader,
    /// All but what reads.
    pub(crate) flow: Flow,
}

/// What is sent, and what has come of it.
pub(crate) struct Flow {
    phase: Phase,
    writer: Writer,
    seed: u64,
    settings: WebSocket,
    kind: MessageKind,
    /// Bytes to send.
    pub(crate) out: Vec<u8>,
    /// Messages that have not come back, by number, with their places.
    in_flight: VecDeque<(u64, u32)>,
    active: u32,
    is_ending: bool,
    /// The next message, and its number.
    next: Vec<u8>,
    next_number: u64,
    /// The message that should come back next, and its number.
    expected: Vec<u8>,
    expected_number: u64,
    overhead: Overhead,
    /// Answers to pings.
    pub(crate) pongs: u64,
}

impl Session {
    /// A session whose handshake, `request` with the fields that it needs, is in `out` behind
    /// `preamble`.
    pub(crate) fn new(request: &[u8], preamble: &[u8], seed: u64, settings: WebSocket) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let key = handshake::key(random.u128(..));
        let mut out = preamble.to_vec();
        out.extend_from_slice(request.strip_suffix(b"\r\n").unwrap_or(request));
        out.extend_from_slice(handshake::request_fields(&key, settings.deflate).as_bytes());
        out.extend_from_slice(b"\r\n");
        let content = content(settings.message_bytes as usize);
        let flow = Flow {
            phase: Phase::Handshake {
                key,
                head: Vec::new(),
            },
            writer: Writer::new(Role::Client, 0, None),
            seed,
            settings,
            kind: match settings.is_binary {
                true => MessageKind::Binary,
                false => MessageKind::Text,
            },
            out,
            in_flight: VecDeque::with_capacity(settings.in_flight.min(1024) as usize),
            active: 0,
            is_ending: false,
            expected: content.clone(),
            next: content,
            next_number: 0,
            expected_number: 0,
            overhead: Overhead::default(),
            pongs: 0,
        };
        Self {
            reader: Reader::new(Role::Client, 0, None),
            flow,
        }
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// When the connection has to be given up: why.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut said: impl FnMut(Said),
    ) -> Result<(), String> {
        let Self { reader, flow } = self;
        if let Phase::Handshake { key, head } = &mut flow.phase {
            let from = head.len();
            head.extend_from_slice(bytes);
            let Some(answer) = take_answer(head, from, key, flow.settings.deflate)? else {
                return Ok(());
            };
            let Answer {
                behind,
                deflate,
                is_own_clock,
            } = answer;
            bytes = &bytes[bytes.len() - behind..];
            let longest = match flow.settings.is_one_way() {
                true => SOCKET_MESSAGE_BYTES_MAX as usize,
                false => flow.settings.message_bytes as usize + LONGER_MAX,
            };
            *reader = Reader::new(Role::Client, longest, deflate);
            flow.writer = Writer::new(Role::Client, flow.seed, deflate);
            flow.phase = Phase::Open;
            said(Said::Opened { is_own_clock });
        }
        loop {
            match reader.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(Event::Message(_, content))) if flow.settings.is_one_way() => {
                    flow.overhead.offset();
                    let stamp = Stamp::read(&content[..content.len().min(STAMP_MAX)]);
                    let bytes = content.len() as u64;
                    said(Said::Message { stamp, bytes });
                }
                Ok(Some(Event::Message(kind, content))) => flow.echo(kind, content, &mut said),
                Ok(Some(control)) => flow.control(control)?,
                Err(error) => {
                    flow.close(error.close_code());
                    return Err(error.to_string());
                }
            }
        }
    }
}

impl Flow {
    /// Messages that have not come back.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// Whether no further message can be sent.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Sends no further messages.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Whether this end has begun to close the connection.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing)
    }

    /// Whether the server has sent a close frame, and its code.
    pub(crate) fn closed(&self) -> Option<Option<CloseCode>> {
        match self.phase {
            Phase::Closed(code) => Some(code),
            _ => None,
        }
    }

    /// Sends a ping, whose answer costs nothing of what the server may send besides messages.
    pub(crate) fn ping(&mut self) {
        if matches!(self.phase, Phase::Open) {
            self.overhead.offset();
            self.writer.ping(&mut self.out, b"");
        }
    }

    /// Begins to close the connection.
    pub(crate) fn close(&mut self, code: CloseCode) {
        if matches!(self.phase, Phase::Open) {
            self.writer.close(&mut self.out, Some(code), "");
            self.phase = Phase::Closing;
        }
        self.is_ending = true;
    }

    /// Sends the next message, of a place that has none under way. Returns false if it cannot.
    #[inline]
    pub(crate) fn request(&mut self, place: u32) -> bool {
        if self.settings.is_one_way() {
            // The handshake was the request. What came with its answer may have ended the WebSocket.
            return !matches!(self.phase, Phase::Handshake { .. });
        }
        if self.is_ending || !matches!(self.phase, Phase::Open) {
            return false;
        }
        self.writer.message(&mut self.out, self.kind, &self.next);
        self.in_flight.push_back((self.next_number, place));
        self.active += 1;
        self.next_number += 1;
        count_up(&mut self.next);
        true
    }

    /// Sends a stamped message to a topic. Returns false if it cannot.
    pub(crate) fn publish(&mut self, stamp: Stamp) -> bool {
        if self.is_ending || !matches!(self.phase, Phase::Open) {
            return false;
        }
        self.next.clear();
        stamp.write(&mut self.next);
        let letters = self.expected.get(self.next.len()..).unwrap_or_default();
        self.next.extend_from_slice(letters);
        self.writer.message(&mut self.out, self.kind, &self.next);
        true
    }

    /// Messages that are not waited for any more, and have not come back.
    pub(crate) fn given_up(&self) -> usize {
        self.in_flight.len().saturating_sub(self.active as usize)
    }

    /// The message of a place is not waited for any more.
    pub(crate) fn cancel(&mut self, place: u32) {
        if let Some(one) = self.in_flight.iter_mut().find(|one| one.1 == place) {
            one.1 = GIVEN_UP;
            self.active -= 1;
        }
    }

    fn control(&mut self, control: Event<'_>) -> Result<(), String> {
        match control {
            Event::Close(code, _) => {
                if !self.is_closing() {
                    self.writer.close(&mut self.out, code, "");
                }
                self.phase = Phase::Closed(code);
                self.is_ending = true;
                return Ok(());
            }
            Event::Ping(payload) if !self.is_closing() => {
                self.writer.pong(&mut self.out, payload);
            }
            Event::Pong(_) => self.pongs += 1,
            _ => {}
        }
        if self.overhead.add(1) {
            self.close(CloseCode(1008));
            return Err("too many pings and pongs".to_owned());
        }
        Ok(())
    }

    #[inline]
    fn echo(&mut self, kind: MessageKind, content: &[u8], said: &mut impl FnMut(Said)) {
        self.overhead.offset();
        match self.in_flight.front() {
            Some(&(_, place))
                if place != GIVEN_UP && kind == self.kind && content == self.expected =>
            {
                self.in_flight.pop_front();
                self.active -= 1;
                self.expected_number += 1;
                count_up(&mut self.expected);
                // Later ones came before.
                if let Some(&(number, _)) = self.in_flight.front()
                    && number != self.expected_number
                {
                    self.expect(number);
                }
                said(Said::Echo {
                    place,
                    bytes: content.len() as u64,
                    wrong: None,
                });
            }
            _ => self.odd(kind, content, said),
        }
    }

    /// A message that is not the one which should come next.
    #[cold]
    fn odd(&mut self, kind: MessageKind, content: &[u8], said: &mut impl FnMut(Said)) {
        let bytes = content.len() as u64;
        let number = self.number_of(kind, content);
        let is_own = |one: &(u64, u32)| number.is_some_and(|number| self.is_same(one.0, number));
        let position = self.in_flight.iter().position(is_own);
        let Some(at) = position else {
            let wrong = self.describe(kind, content, number);
            let waiting = self.in_flight.iter().position(|one| one.1 != GIVEN_UP);
            // One that has come before.
            let is_repeated = number.is_some() && self.next_number > 0;
            if let Some(at) = waiting.filter(|_| !is_repeated)
                && let Some((_, place)) = self.in_flight.remove(at)
            {
                self.active -= 1;
                self.expect_front();
                let wrong = Some(wrong);
                return said(Said::Echo {
                    place,
                    bytes,
                    wrong,
                });
            }
            return said(Said::Unasked { wrong, is_repeated });
        };
        // Those that were given up and are passed over are lost.
        let before = self.in_flight.iter().take(at);
        let lost = before.filter(|one| one.1 == GIVEN_UP).count();
        let front = self.in_flight.iter().find(|one| one.1 != GIVEN_UP);
        let expected = front.map(|one| one.0);
        let Some((number, place)) = self.in_flight.remove(at) else {
            return;
        };
        let mut position = 0;
        self.in_flight.retain(|one| {
            position += 1;
            position > at || one.1 != GIVEN_UP
        });
        if lost > 0 {
            said(Said::Lost(lost as u64));
        }
        self.expect_front();
        if place == GIVEN_UP {
            return;
        }
        self.active -= 1;
        let wrong = match expected {
            Some(expected) if expected != number => {
                said(Said::Reordered);
                Some(Wrong {
                    kind: WrongKind::Content,
                    expected: format!("message {expected} of its connection"),
                    found: format!("message {number}"),
                })
            }
            _ => None,
        };
        said(Said::Echo {
            place,
            bytes,
            wrong,
        });
    }

    /// The number of a message that is like those that were sent.
    fn number_of(&self, kind: MessageKind, content: &[u8]) -> Option<u64> {
        let width = width(&self.expected);
        let is_like = kind == self.kind
            && content.len() == self.expected.len()
            && content[width..] == self.expected[width..];
        let digits = std::str::from_utf8(content.get(..width)?).ok()?;
        is_like.then(|| digits.parse().ok()).flatten()
    }

    /// Whether a message's number is written like this.
    fn is_same(&self, number: u64, written: u64) -> bool {
        match 10_u64.checked_pow(width(&self.expected) as u32) {
            Some(end) => number % end == written,
            None => number == written,
        }
    }

    fn describe(&self, kind: MessageKind, content: &[u8], number: Option<u64>) -> Wrong {
        let expected = match self.in_flight.is_empty() {
            true => "no message, since none was sent".to_owned(),
            false => format!(
                "message {} of its connection, {:?} of {} bytes",
                self.expected_number,
                self.kind,
                self.expected.len()
            ),
        };
        let found = match number {
            Some(number) => format!("message {number}, which had come back before"),
            None => format!("{kind:?} of {} bytes, which was not sent", content.len()),
        };
        let kind = match content.len() == self.expected.len() {
            true => WrongKind::Content,
            false => WrongKind::Length,
        };
        Wrong {
            kind,
            expected,
            found,
        }
    }

    fn expect_front(&mut self) {
        let front = self.in_flight.front();
        self.expect(front.map_or(self.next_number, |one| one.0));
    }

    /// The next message that should come back is this one.
    fn expect(&mut self, number: u64) {
        self.expected_number = number;
        let width = width(&self.expected);
        let mut rest = number;
        for digit in self.expected[..width].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

/// A handshake's request for one of several topics: with its number behind the path.
pub(crate) fn of_topic(request: &[u8], topic: usize) -> Vec<u8> {
    let target = memchr::memchr(b' ', request).map_or(0, |at| at + 1);
    let ends = request[target..].iter();
    let end = ends.take_while(|byte| !matches!(byte, b' ' | b'?')).count();
    let (before, behind) = request.split_at(target + end);
    [before, format!("-{topic}").as_bytes(), behind].concat()
}

/// The digits of a message's number.
fn width(content: &[u8]) -> usize {
    content.len().min(DIGITS_MAX)
}

/// Message 0: its number, and letters that are always the same.
fn content(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(6455);
    let padding = bytes.saturating_sub(DIGITS_MAX);
    let mut content = vec![b'0'; bytes - padding];
    content.extend((0..padding).map(|_| random.alphanumeric() as u8));
    content
}

/// Adds 1 to the number of a message.
#[inline]
fn count_up(content: &mut [u8]) {
    let width = width(content);
    for digit in content[..width].iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
}

/// The server's answer to the handshake.
struct Answer {
    /// Bytes of what was read that are behind it.
    behind: usize,
    deflate: Option<net::ws::Deflate>,
    is_own_clock: bool,
}

/// Takes the server's answer to the handshake; `None` while it is not complete. `from` bytes of `head` were looked at before.
fn take_answer(
    head: &[u8],
    from: usize,
    key: &str,
    offers_deflate: bool,
) -> Result<Option<Answer>, String> {
    if !has_empty_line(head, from) {
        return match head.len() {
            ..=HEAD_BYTES_MAX => Ok(None),
            _ => Err("a longer answer to the handshake than is accepted".to_owned()),
        };
    }
    let mut at = 0;
    for _ in 0..=INTERIM_MAX {
        let mut fields = [httparse::EMPTY_HEADER; 128];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response
            .parse(&head[at..])
            .map_err(|error| format!("no answer of HTTP/1.1 to the handshake: {error}"))?;
        let httparse::Status::Complete(taken) = parsed else {
            return Ok(None);
        };
        at += taken;
        let status = response.code.unwrap_or_default();
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let fields = || response.headers.iter();
        let fields_of = fields().map(|field| (field.name, field.value));
        let agreed = handshake::check_answer(status, fields_of, key, offers_deflate);
        let clock = fields().find(|field| field.name.eq_ignore_ascii_case(CLOCK_FIELD));
        return Ok(Some(Answer {
            behind: head.len() - at,
            deflate: agreed.map_err(|error| error.to_string())?,
            is_own_clock: clock.is_some_and(|field| is_own_clock(field.value)),
        }));
    }
    Err("more interim answers to the handshake than are accepted".to_owned())
}
