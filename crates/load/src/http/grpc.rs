//! A gRPC call over HTTP/2: its answer is judged by its messages and by the status in its trailers.

use std::borrow::Cow;
use std::collections::VecDeque;

use net::grpc::{
    self, GrpcError, MESSAGE_BYTES_MAX, MessageReader, Part, decode_message, is_content_type,
    parse_status, status_name,
};
use net::http::HttpError;
use readings::{HttpVersion, Wrong, WrongKind};

use crate::exchange::sequence::Sequence;
use crate::exchange::stamp::{CLOCK_FIELD, STAMP_MAX, Stamp, is_own_clock};
use crate::exchange::{Ending, Kind, Note, Times};
use crate::http::session::Fields;
use crate::job::expect::BodyCheck;
use crate::job::target::{Request, Target};
use crate::job::traffic::{CallKind, Grpc, Traffic};
use crate::ns;

/// The tag and the length before the payload of a stamped message: `bytes payload = 1`.
const PAYLOAD_TAG: u8 = 1 << 3 | 2;
/// Bytes at the start of a message in which its stamp is: tag, length, stamp.
const START_BYTES: usize = 1 + 5 + STAMP_MAX;
/// Most bytes of a `grpc-message` that are kept.
const TEXT_BYTES_MAX: usize = 300;

#[derive(Debug)]
pub(crate) struct Call {
    /// ns.
    deadline: Option<u64>,
    reader: MessageReader,
    /// Messages so far.
    messages: u64,
    /// The status of HTTP.
    http: u16,
    is_grpc: bool,
    status: Option<u32>,
    /// `grpc-message`, as it came.
    text: Vec<u8>,
    /// What is wrong with the answer, whatever its status is.
    fault: Option<Fault>,
    /// Whether something came after the deadline.
    is_late: bool,
    check: BodyCheck,
    /// Where the server sends a stream.
    stream: Option<Box<Stream>>,
    /// Where both do, and each message is answered.
    turns: Option<Box<Turns>>,
}

/// The messages of the client's in a call in which each is answered.
#[derive(Debug)]
struct Turns {
    all: u32,
    /// Those that are sent at first.
    first: u32,
    sent: u32,
    /// When the others were sent that are not answered.
    sent_at: VecDeque<u64>,
}

impl Turns {
    fn of(grpc: &Grpc) -> Self {
        let first = grpc.sent_first();
        Self {
            all: grpc.sent(),
            first,
            sent: first,
            sent_at: VecDeque::new(),
        }
    }

    /// When the message was sent which the answer with this number, from 1, is for.
    fn answered(&mut self, number: u64, first_sent: u64) -> Option<u64> {
        match number <= u64::from(self.first) {
            true => Some(first_sent),
            false => self.sent_at.pop_front(),
        }
    }
}

/// A stream of the server's messages.
#[derive(Debug)]
struct Stream {
    sequence: Sequence,
    /// The start of the current message, and its length.
    start: Vec<u8>,
    length: u32,
    is_open: bool,
    last_sign: u64,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Messages(GrpcError),
    /// A `grpc-status` that is none.
    Status,
    /// Content or trailers after the status.
    BehindStatus,
}

impl Call {
    pub(crate) fn of(target: &Target) -> Self {
        let grpc = match &target.traffic {
            Traffic::Grpc(grpc) => *grpc,
            _ => Grpc::default(),
        };
        let has_stream = matches!(grpc.call, CallKind::ServerStream | CallKind::Both);
        Self {
            deadline: grpc.deadline.map(ns),
            reader: MessageReader::new(MESSAGE_BYTES_MAX),
            messages: 0,
            http: 0,
            is_grpc: false,
            status: None,
            text: Vec::new(),
            fault: None,
            is_late: false,
            check: BodyCheck::default(),
            stream: has_stream.then(|| Box::new(Stream::new())),
            turns: (grpc.call == CallKind::Both).then(|| Box::new(Turns::of(&grpc))),
        }
    }

    fn lacks_answers(&self, turns: &Turns) -> bool {
        self.messages != u64::from(turns.all)
    }

    fn look_at_time(&mut self, times: Times) {
        if let Some(deadline) = self.deadline {
            self.is_late |= times.arrived.saturating_sub(times.sent) > deadline;
        }
        if let Some(stream) = &mut self.stream {
            stream.last_sign = times.arrived;
        }
    }

    /// Takes the status, which is in the trailers, or in the head of an answer that has nothing else.
    fn take_status(&mut self, fields: &Fields) {
        for (name, value) in fields.iter() {
            match name {
                b"grpc-status" => {
                    self.status = parse_status(value);
                    if self.status.is_none() {
                        self.fault.get_or_insert(Fault::Status);
                    }
                }
                b"grpc-message" => {
                    self.text.clear();
                    let kept = value.len().min(TEXT_BYTES_MAX);
                    self.text.extend_from_slice(&value[..kept]);
                }
                _ => {}
            }
        }
    }

    /// What is wrong with a complete answer that is not good.
    #[cold]
    fn wrong(&self, request: &Request) -> Wrong {
        let of = |kind, expected: &str, found: String| Wrong {
            kind,
            expected: expected.to_owned(),
            found,
        };
        let (status, protocol) = (WrongKind::Status, WrongKind::Protocol);
        if let Some(code) = self.status.filter(|code| *code != grpc::OK) {
            return of(status, "grpc-status 0", describe_status(code, &self.text));
        }
        if self.http != 200 && self.status.is_none() {
            let found = format!("status {} without a grpc-status", self.http);
            return of(status, "status 200 and grpc-status 0", found);
        }
        if !self.is_grpc {
            let found = "another content-type".to_owned();
            return of(protocol, "the content-type application/grpc", found);
        }
        match self.fault {
            Some(Fault::Messages(error)) => {
                return of(protocol, "messages of gRPC", error.to_string());
            }
            Some(Fault::Status) => {
                return of(
                    protocol,
                    "a grpc-status",
                    "one that is not a number".to_owned(),
                );
            }
            Some(Fault::BehindStatus) => {
                return of(protocol, "nothing behind the status", "more".to_owned());
            }
            None => {}
        }
        if self.status.is_none() {
            return of(protocol, "trailers with a grpc-status", "none".to_owned());
        }
        if let (true, Some(deadline)) = (self.is_late, self.deadline) {
            let expected = format!("the answer within {} ms", deadline as f64 / 1e6);
            return of(status, &expected, "it after the deadline".to_owned());
        }
        if self.stream.is_none() && self.messages != 1 {
            let found = format!("{} messages", self.messages);
            return of(WrongKind::Length, "one message", found);
        }
        if let Some(turns) = self
            .turns
            .as_ref()
            .filter(|turns| self.lacks_answers(turns))
        {
            let expected = format!("{} answers", turns.all);
            let found = format!("{} messages", self.messages);
            return of(WrongKind::Length, &expected, found);
        }
        let by_content = request.expect.judge(self.http, false, &self.check);
        by_content.unwrap_or_else(|| of(protocol, "a good answer", "another".to_owned()))
    }
}

/// A status that is not OK, in words.
pub(crate) fn describe_status(status: u32, text: &[u8]) -> String {
    let name = status_name(status).map_or(String::new(), |name| format!(" ({name})"));
    let text = match decode_message(text) {
        empty if empty.is_empty() => empty,
        text => format!(": {text}"),
    };
    format!("grpc-status {status}{name}{text}")
}

impl Stream {
    fn new() -> Self {
        Self {
            sequence: Sequence::new(None, None),
            start: Vec::with_capacity(START_BYTES),
            length: 0,
            is_open: false,
            last_sign: 0,
        }
    }

    /// Takes a part of the stream that arrived at this time.
    fn take(&mut self, part: Part<'_>, arrived: u64, note: impl FnMut(Note)) {
        match part {
            Part::Start(length) => {
                self.start.clear();
                self.length = length;
            }
            Part::Content(bytes) => {
                let kept = bytes.len().min(START_BYTES - self.start.len());
                self.start.extend_from_slice(&bytes[..kept]);
            }
            Part::End => {
                let stamp = stamp(&self.start);
                let bytes = self.length.into();
                self.sequence.take(stamp, bytes, arrived, note);
            }
        }
    }
}

/// The stamp of a message, at the start of its payload.
fn stamp(message: &[u8]) -> Option<Stamp> {
    let rest = message.strip_prefix(&[PAYLOAD_TAG])?;
    let end = rest.iter().take(5).position(|byte| byte & 0x80 == 0)?;
    Stamp::read(&rest[end + 1..])
}

impl Kind for Call {
    type Error = HttpError;

    const HAS_MESSAGES: bool = true;

    fn new(target: &Target) -> Self {
        Self::of(target)
    }

    fn expected(_: HttpVersion) -> String {
        "a gRPC answer".to_owned()
    }

    fn is_repeatable(_: &Request) -> bool {
        false
    }

    #[inline]
    fn begin(&mut self, _: &Request) {
        self.reader.reset();
        self.messages = 0;
        self.http = 0;
        self.is_grpc = false;
        self.status = None;
        self.text.clear();
        self.fault = None;
        self.is_late = false;
        self.check.reset();
        if let Some(turns) = &mut self.turns {
            turns.sent = turns.first;
            turns.sent_at.clear();
        }
        if let Some(stream) = &mut self.stream {
            stream.sequence.begin();
            (stream.is_open, stream.last_sign) = (false, 0);
        }
    }

    fn reset(&mut self) {}

    /// A job with calls and without HTTP/2 is refused.
    fn take(
        &mut self,
        _: &Request,
        _: Times,
        _: &[u8],
        _: impl FnMut(Note),
    ) -> Result<bool, HttpError> {
        Err(HttpError::Unasked)
    }

    fn end(&mut self) -> bool {
        false
    }

    #[inline]
    fn take_head(
        &mut self,
        status: u16,
        fields: &Fields,
        times: Times,
        mut note: impl FnMut(Note),
    ) {
        self.http = status;
        self.look_at_time(times);
        let of = |name| fields.get(name);
        self.is_grpc = of("content-type").is_some_and(is_content_type);
        self.take_status(fields);
        if let Some(stream) = &mut self.stream
            && self.status.is_none()
        {
            stream.is_open = true;
            let is_own = of(CLOCK_FIELD).is_some_and(is_own_clock);
            stream.sequence.set_own_clock(is_own);
            stream.sequence.opened(times.arrived);
            note(Note::Opened);
        }
    }

    #[inline]
    fn take_content(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
        mut note: impl FnMut(Note),
    ) {
        self.look_at_time(times);
        if self.status.is_some() {
            self.fault.get_or_insert(Fault::BehindStatus);
        }
        if self.fault.is_some() {
            return;
        }
        self.check.take(&request.expect.body, bytes);
        let (messages, stream) = (&mut self.messages, &mut self.stream);
        let turns = &mut self.turns;
        let fed = self.reader.feed(bytes, |part| {
            *messages += u64::from(part == Part::End);
            if let Some(stream) = stream {
                stream.take(part, times.arrived, &mut note);
            }
            if part == Part::End
                && let Some(turns) = turns
                && let Some(sent) = turns.answered(*messages, times.sent)
            {
                let (arrived, after) = (times.arrived, times.arrived.saturating_sub(sent));
                note(Note::Answer { arrived, after });
            }
        });
        if let Err(error) = fed {
            self.fault = Some(Fault::Messages(error));
        }
    }

    fn more_to_send(&mut self, now: u64) -> u32 {
        let Some(turns) = &mut self.turns else {
            return 0;
        };
        let answered = u32::try_from(self.messages).unwrap_or(u32::MAX);
        let may_be_sent = answered.saturating_add(turns.first).min(turns.all);
        let more = may_be_sent.saturating_sub(turns.sent);
        turns.sent += more;
        turns.sent_at.extend((0..more).map(|_| now));
        more
    }

    #[inline]
    fn take_trailers(&mut self, fields: &Fields, times: Times) {
        self.look_at_time(times);
        match self.status {
            Some(_) => {
                self.fault.get_or_insert(Fault::BehindStatus);
            }
            None => self.take_status(fields),
        }
        if let Err(error) = self.reader.end() {
            self.fault.get_or_insert(Fault::Messages(error));
        }
    }

    fn is_open(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_open)
    }

    fn last_sign(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.last_sign)
    }

    fn over(&mut self, times: Times, is_complete: bool, note: impl FnMut(Note)) {
        if let Some(stream) = &mut self.stream
            && std::mem::take(&mut stream.is_open)
        {
            // How many there are to be is known to the server only.
            stream.sequence.over(None, times, is_complete, note);
        }
    }

    #[inline]
    fn ending(&self) -> Option<Ending> {
        let how = match self.status {
            Some(grpc::OK) => Cow::Borrowed("grpc-status 0"),
            Some(status) => Cow::Owned(format!("grpc-status {status}")),
            None => Cow::Borrowed("no grpc-status"),
        };
        let is_cut = self.status.is_none();
        Some(Ending { how, is_cut })
    }

    fn status(&self) -> Option<u16> {
        Some(self.http)
    }

    #[inline]
    fn judge(&self, request: &Request) -> Option<Wrong> {
        let is_good = self.status == Some(grpc::OK)
            && self.http == 200
            && self.is_grpc
            && self.fault.is_none()
            && !self.is_late
            && (self.messages == 1 || self.stream.is_some())
            && !self
                .turns
                .as_ref()
                .is_some_and(|turns| self.lacks_answers(turns));
        match is_good {
            true => request.expect.judge(self.http, false, &self.check),
            false => Some(self.wrong(request)),
        }
    }

    fn keeps_connection(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::expect::Expect;

    #[test]
    fn the_status_has_to_come_before_the_deadline_too() {
        let address: std::net::SocketAddr = "127.0.0.1:80".parse().unwrap();
        let mut target = Target::new(
            address,
            b"POST / HTTP/1.1\r\n\r\n".to_vec(),
            Expect::default(),
        );
        target.traffic = Traffic::Grpc(Grpc {
            deadline: Some(Duration::from_nanos(1_000)),
            ..Grpc::default()
        });
        let request = &target.requests[0];
        let mut head = Fields::default();
        head.push(b"content-type", b"application/grpc");
        let mut trailers = Fields::default();
        trailers.push(b"grpc-status", b"0");
        for (arrived, is_good) in [(1_000, true), (1_001, false)] {
            let at = |arrived| Times {
                intended: 0,
                sent: 0,
                arrived,
            };
            let mut call = Call::of(&target);
            call.begin(request);
            call.take_head(200, &head, at(10), |_| {});
            call.take_content(request, at(20), &[0, 0, 0, 0, 0], |_| {});
            call.take_trailers(&trailers, at(arrived));
            call.over(at(arrived), true, |_| {});
            let wrong = call.judge(request);
            assert_eq!(wrong.is_none(), is_good, "{wrong:?}");
        }
    }
}
