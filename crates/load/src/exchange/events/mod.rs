//! Answers that are streams of events, and WebSockets on which only the server sends.

mod split;

use net::http::{HttpError, Progress, ResponseParser, ResponsePart};
use readings::{HttpVersion, Wrong, WrongKind};

use super::sequence::Sequence;
use super::stamp::{CLOCK_FIELD, Stamp, is_own_clock};
use super::{Ending, Kind, Note, Times};
use crate::http::Http;
use crate::http::session::Fields;
use crate::job::expect::BodyCheck;
use crate::job::target::{Request, Target};
use crate::job::traffic::{self, EventFormat, Traffic};
use split::{Event, Splitter};

/// The type of the last event of a stamped stream of server-sent events, whose data is the number of
/// the others.
const END_KIND: &[u8] = b"end";
/// The status of a WebSocket's handshake (RFC 6455, 4.2.2).
const SWITCHING: u16 = 101;
/// Longer content types are none that are known.
const CONTENT_TYPE_MAX: usize = 64;

/// A stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    parser: ResponseParser,
    is_head: bool,
    keeps_connection: bool,
    stream: Stream,
}

/// What has come of a stream.
#[derive(Debug)]
struct Stream {
    format: EventFormat,
    status: u16,
    content_type: Option<Vec<u8>>,
    /// Of an open stream.
    splitter: Option<Splitter>,
    sequence: Sequence,
    /// How many events its end says there were.
    announced: Option<u64>,
    last_sign: u64,
    is_open: bool,
}

impl Stream {
    fn begin(&mut self) {
        (self.status, self.content_type, self.splitter) = (0, None, None);
        (self.announced, self.last_sign, self.is_open) = (None, 0, false);
        self.sequence.begin();
    }

    /// Takes a field of the head.
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("content-type") && value.len() <= CONTENT_TYPE_MAX {
            self.content_type = Some(value.to_vec());
        } else if is(CLOCK_FIELD) {
            self.sequence.set_own_clock(is_own_clock(value));
        }
    }

    /// The head is complete. A stream opens if the status is a success.
    fn head(&mut self, status: u16, arrived: u64, mut note: impl FnMut(Note)) {
        self.status = status;
        self.sequence.opened(arrived);
        if (200..300).contains(&status) {
            let content_type = self.content_type.as_deref();
            self.splitter = Some(Splitter::new(self.format, content_type));
            self.is_open = true;
            note(Note::Opened);
        }
    }

    /// A WebSocket has opened. Its messages need no splitting.
    fn socket(&mut self, is_own_clock: bool, arrived: u64, mut note: impl FnMut(Note)) {
        self.status = SWITCHING;
        self.splitter = Some(Splitter::new(EventFormat::Reads, None));
        self.sequence.set_own_clock(is_own_clock);
        self.sequence.opened(arrived);
        (self.is_open, self.last_sign) = (true, arrived);
        note(Note::Opened);
    }

    fn content(&mut self, bytes: &[u8], arrived: u64, note: impl FnMut(Note)) {
        self.last_sign = arrived;
        if let Some(splitter) = &mut self.splitter {
            let (sequence, announced) = (&mut self.sequence, &mut self.announced);
            splitter.feed(bytes, arrived, taking(sequence, announced, note));
        }
    }

    fn over(&mut self, times: Times, is_complete: bool, mut note: impl FnMut(Note)) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        if let Some(splitter) = &mut self.splitter {
            let (sequence, announced) = (&mut self.sequence, &mut self.announced);
            splitter.end(taking(sequence, announced, &mut note));
        }
        self.sequence.over(self.announced, times, is_complete, note);
    }

    /// Whether the format has an end, which did not come. That of server-sent events has none; those
    /// of a sender that stamps them do.
    fn lacks_end(&self) -> bool {
        let is_sse = self.splitter.as_ref().is_some_and(Splitter::is_sse);
        is_sse && self.sequence.is_stamped() && self.announced.is_none()
    }

    /// What is wrong with a stream that is complete.
    fn fault(&self) -> Option<Wrong> {
        if self.splitter.is_none() {
            return Some(Wrong {
                kind: WrongKind::Status,
                expected: "a stream of events, with a status from 200 to 299".to_owned(),
                found: format!("status {}", self.status),
            });
        }
        let came = self.sequence.count();
        let missing = self.sequence.missing(self.announced);
        let (expected, found) = if self.lacks_end() {
            (
                "the event `end`".to_owned(),
                format!("{came} events without it"),
            )
        } else if missing > 0 {
            let all = self.announced.unwrap_or(came.saturating_add(missing));
            (
                format!("{all} events"),
                format!("{missing} of them never came"),
            )
        } else {
            return None;
        };
        Some(Wrong {
            kind: WrongKind::Content,
            expected,
            found,
        })
    }
}

/// Takes events: all but the last one of a stamped stream are messages.
fn taking<'a>(
    sequence: &'a mut Sequence,
    announced: &'a mut Option<u64>,
    mut note: impl FnMut(Note) + 'a,
) -> impl FnMut(Event<'_>) + 'a {
    move |event| {
        let is_end = event.kind == END_KIND && (sequence.is_stamped() || sequence.count() == 0);
        if is_end && let Some(all) = number(event.start) {
            *announced = Some(all);
            return;
        }
        let stamp = Stamp::read(event.start);
        sequence.take(stamp, event.bytes, event.arrived, &mut note);
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl Kind for Events {
    type Error = HttpError;

    const HAS_MESSAGES: bool = true;

    fn new(target: &Target) -> Self {
        let settings = match target.traffic {
            Traffic::Events(settings) => settings,
            _ => traffic::Events::default(),
        };
        Self {
            parser: ResponseParser::new(false),
            is_head: false,
            keeps_connection: true,
            stream: Stream {
                format: settings.format,
                status: 0,
                content_type: None,
                splitter: None,
                sequence: Sequence::new(settings.pace, settings.stall),
                announced: None,
                last_sign: 0,
                is_open: false,
            },
        }
    }

    fn expected(http: HttpVersion) -> String {
        Http::expected(http)
    }

    fn is_repeatable(request: &Request) -> bool {
        Http::is_repeatable(request)
    }

    fn begin(&mut self, request: &Request) {
        self.is_head = request.is_head();
        self.parser.set_head_request(self.is_head);
        self.keeps_connection = true;
        self.stream.begin();
    }

    fn reset(&mut self) {
        self.parser.reset();
    }

    fn take(
        &mut self,
        _: &Request,
        times: Times,
        bytes: &[u8],
        mut note: impl FnMut(Note),
    ) -> Result<bool, HttpError> {
        let stream = &mut self.stream;
        stream.last_sign = times.arrived;
        let progress = self.parser.feed_parts(bytes, true, |part| match part {
            ResponsePart::Field(name, value) => stream.field(name.as_bytes(), value),
            ResponsePart::Head(head) => stream.head(head.status, times.arrived, &mut note),
            ResponsePart::Content(bytes) => stream.content(bytes, times.arrived, &mut note),
        })?;
        match progress {
            Progress::More => Ok(false),
            Progress::Done { taken } if taken < bytes.len() => Err(HttpError::Unasked),
            Progress::Done { .. } => {
                self.keeps_connection = self.parser.head().keep_alive;
                Ok(true)
            }
        }
    }

    fn interim_ended(&mut self) -> Option<bool> {
        self.parser.take_interim_end()
    }

    fn end(&mut self) -> bool {
        self.keeps_connection = false;
        self.parser.end()
    }

    fn take_head(&mut self, status: u16, fields: &Fields, times: Times, note: impl FnMut(Note)) {
        self.stream.last_sign = times.arrived;
        for (name, value) in fields.iter() {
            self.stream.field(name, value);
        }
        self.stream.head(status, times.arrived, note);
    }

    fn take_content(&mut self, _: &Request, times: Times, bytes: &[u8], note: impl FnMut(Note)) {
        self.stream.content(bytes, times.arrived, note);
    }

    fn socket_opened(&mut self, is_own_clock: bool, times: Times, note: impl FnMut(Note)) {
        self.stream.socket(is_own_clock, times.arrived, note);
    }

    fn take_message(
        &mut self,
        stamp: Option<Stamp>,
        bytes: u64,
        times: Times,
        note: impl FnMut(Note),
    ) {
        let stream = &mut self.stream;
        stream.last_sign = times.arrived;
        stream.sequence.take(stamp, bytes, times.arrived, note);
    }

    fn is_open(&self) -> bool {
        self.stream.is_open
    }

    fn last_sign(&self) -> u64 {
        self.stream.last_sign
    }

    fn over(&mut self, times: Times, is_complete: bool, note: impl FnMut(Note)) {
        self.stream.over(times, is_complete, note);
    }

    fn ending(&self) -> Option<Ending> {
        let is_cut = self.stream.lacks_end();
        self.stream.splitter.as_ref().map(|_| Ending {
            how: if is_cut { "unfinished" } else { "end" }.into(),
            is_cut,
        })
    }

    fn status(&self) -> Option<u16> {
        Some(self.stream.status)
    }

    fn judge(&self, request: &Request) -> Option<Wrong> {
        let (status, check) = (self.stream.status, BodyCheck::default());
        let wrong = request.expect.judge(status, self.is_head, &check);
        wrong.or_else(|| self.stream.fault())
    }

    fn keeps_connection(&self) -> bool {
        self.keeps_connection
    }
}
