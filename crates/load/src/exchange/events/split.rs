//! How content is cut into events. Of each event the start is kept, so that neither lines nor events
//! without an end take memory.

use net::http::{DATA_KEPT, SseParser};

use crate::exchange::stamp::{STAMP, STAMP_MAX, Stamp};
use crate::job::traffic::EventFormat;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    /// The type that server-sent events may have.
    pub(super) kind: &'a [u8],
    /// Its first bytes.
    pub(super) start: &'a [u8],
    /// All its bytes, framing excluded.
    pub(super) bytes: u64,
    /// When it was complete, or began if the next one ends it; ns of the worker's clock.
    pub(super) arrived: u64,
}

#[derive(Debug)]
pub(super) enum Splitter {
    Sse(Box<SseParser>),
    Lines(Lines),
    Reads(Reads),
}

impl Splitter {
    /// For an answer with this content type, if it has one.
    pub(super) fn new(format: EventFormat, content_type: Option<&[u8]>) -> Self {
        match format {
            EventFormat::Auto => match content_type.map_or(EventFormat::Reads, format_of) {
                EventFormat::Auto => Splitter::Reads(Reads::default()),
                known => Self::new(known, None),
            },
            EventFormat::Sse => Splitter::Sse(Box::default()),
            EventFormat::Lines => Splitter::Lines(Lines::default()),
            EventFormat::Reads => Splitter::Reads(Reads::default()),
        }
    }

    pub(super) fn is_sse(&self) -> bool {
        matches!(self, Splitter::Sse(_))
    }

    /// Takes content that arrived at this time.
    pub(super) fn feed(&mut self, bytes: &[u8], arrived: u64, mut event: impl FnMut(Event<'_>)) {
        match self {
            Splitter::Sse(parser) => parser.feed(bytes, |one| {
                event(Event {
                    kind: one.kind,
                    start: one.data,
                    bytes: one.bytes,
                    arrived,
                });
            }),
            Splitter::Lines(lines) => lines.feed(bytes, arrived, event),
            Splitter::Reads(reads) => reads.feed(bytes, arrived, event),
        }
    }

    /// Passes on what the end of the content completes.
    pub(super) fn end(&mut self, arrived: u64, event: impl FnMut(Event<'_>)) {
        match self {
            Splitter::Sse(_) => {}
            Splitter::Lines(lines) => lines.end(arrived, event),
            Splitter::Reads(reads) => reads.end(event),
        }
    }
}

/// The format of a content type.
fn format_of(content_type: &[u8]) -> EventFormat {
    let essence = content_type.split(|byte| *byte == b';').next();
    let essence = essence.unwrap_or_default().trim_ascii();
    let is = |name: &str| essence.eq_ignore_ascii_case(name.as_bytes());
    const LINES: [&str; 7] = [
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonl",
        "application/jsonlines",
        "application/x-jsonlines",
        "application/stream+json",
    ];
    match is("text/event-stream") {
        true => EventFormat::Sse,
        false if LINES.into_iter().any(is) => EventFormat::Lines,
        false => EventFormat::Reads,
    }
}

/// The start and the length of what has come of an event.
#[derive(Debug, Default)]
struct Begun {
    start: Vec<u8>,
    bytes: u64,
}

impl Begun {
    fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(DATA_KEPT - self.start.len());
        self.start.extend_from_slice(&bytes[..fits]);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
    }

    fn finish(&mut self, arrived: u64, mut event: impl FnMut(Event<'_>)) {
        event(Event {
            kind: b"",
            start: &self.start,
            bytes: self.bytes,
            arrived,
        });
        self.start.clear();
        self.bytes = 0;
    }
}

/// Lines that are not empty, each an event.
#[derive(Debug, Default)]
pub(super) struct Lines(Begun);

impl Lines {
    fn feed(&mut self, mut bytes: &[u8], arrived: u64, mut event: impl FnMut(Event<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.0.push(&bytes[..end]);
            self.finish(arrived, &mut event);
            bytes = &bytes[end + 1..];
        }
        self.0.push(bytes);
    }

    fn finish(&mut self, arrived: u64, event: impl FnMut(Event<'_>)) {
        match (self.0.bytes, self.0.start.as_slice()) {
            (0, _) | (1, b"\r") => self.0 = Begun::default(),
            _ => self.0.finish(arrived, event),
        }
    }

    fn end(&mut self, arrived: u64, event: impl FnMut(Event<'_>)) {
        self.finish(arrived, event);
    }
}

/// Content without a known format. If it begins with a stamp, each stamp begins an event, however
/// the content is cut on its way; otherwise what arrives at one time is one event. An event is passed
/// on when the next one begins.
#[derive(Debug, Default)]
pub(super) struct Reads {
    begun: Begun,
    /// When the event under way arrived.
    arrived: Option<u64>,
    /// Whether events are stamped, once so much has come that it is known.
    is_stamped: Option<bool>,
    /// The start of the content until then; later, bytes that may begin a stamp.
    held: Vec<u8>,
}

impl Reads {
    fn feed(&mut self, bytes: &[u8], arrived: u64, mut event: impl FnMut(Event<'_>)) {
        if bytes.is_empty() {
            return;
        }
        if self.is_stamped.is_none() {
            self.arrived = self.arrived.or(Some(arrived));
            self.held
                .extend_from_slice(&bytes[..bytes.len().min(STAMP_MAX)]);
            let begins = &self.held[..self.held.len().min(STAMP.len())];
            self.is_stamped = match STAMP.starts_with(begins) {
                true if begins.len() < STAMP.len() => None,
                is_stamped => Some(is_stamped),
            };
            self.held
                .truncate(self.held.len() - bytes.len().min(STAMP_MAX));
        }
        match self.is_stamped {
            Some(true) => self.stamped(bytes, arrived, event),
            Some(false) => {
                let held = std::mem::take(&mut self.held);
                self.begun.push(&held);
                if self.arrived.is_some_and(|before| before != arrived) && self.begun.bytes > 0 {
                    self.finish(&mut event);
                }
                self.arrived = Some(arrived);
                self.begun.push(bytes);
            }
            None => self.held.extend_from_slice(bytes),
        }
    }

    fn stamped(&mut self, bytes: &[u8], arrived: u64, mut event: impl FnMut(Event<'_>)) {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (mut from, mut at) = (0, 0);
        while let Some(found) = memchr::memmem::find(&all[at..], STAMP) {
            let start = at + found;
            let rest = &all[start..];
            if Stamp::read(&rest[..rest.len().min(STAMP_MAX)]).is_some() {
                self.begun.push(&all[from..start]);
                if self.begun.bytes > 0 {
                    self.finish(&mut event);
                }
                self.arrived = Some(arrived);
                from = start;
            } else if Stamp::is_begun(rest) {
                // The rest of it may follow.
                self.begun.push(&all[from..start]);
                all.drain(..start);
                self.held = all;
                return;
            }
            at = start + STAMP.len();
        }
        let last = (0..STAMP.len()).rev();
        let mut begins = last.filter(|len| all[at..].ends_with(&STAMP[..*len]));
        let keep = all.len() - begins.next().unwrap_or(0);
        self.begun.push(&all[from..keep]);
        all.drain(..keep);
        self.held = all;
    }

    fn finish(&mut self, event: impl FnMut(Event<'_>)) {
        self.begun.finish(self.arrived.unwrap_or_default(), event);
    }

    fn end(&mut self, event: impl FnMut(Event<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.begun.push(&held);
        if self.begun.bytes > 0 {
            self.finish(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The starts, lengths and arrivals of events; each piece arrives at its number.
    fn split(format: EventFormat, pieces: &[&[u8]]) -> Vec<(String, u64, u64)> {
        let mut splitter = Splitter::new(format, None);
        let mut events = Vec::new();
        let mut take = |event: Event<'_>| {
            let start = String::from_utf8_lossy(event.start).into_owned();
            events.push((start, event.bytes, event.arrived));
        };
        for (piece, arrived) in pieces.iter().zip(0..) {
            splitter.feed(piece, arrived, &mut take);
        }
        splitter.end(pieces.len() as u64, &mut take);
        events
    }

    fn event(start: &str, arrived: u64) -> (String, u64, u64) {
        (start.to_owned(), start.len() as u64, arrived)
    }

    #[test]
    fn a_content_type_says_the_format() {
        for (text, format) in [
            ("text/event-stream", EventFormat::Sse),
            ("Text/Event-Stream;charset=utf-8", EventFormat::Sse),
            ("application/x-ndjson", EventFormat::Lines),
            ("application/jsonl ; a=b", EventFormat::Lines),
            ("application/json", EventFormat::Reads),
            ("text/event-streams", EventFormat::Reads),
            ("", EventFormat::Reads),
        ] {
            assert_eq!(format_of(text.as_bytes()), format, "{text}");
        }
    }

    #[test]
    fn lines_are_events_unless_they_are_empty() {
        let pieces: [&[u8]; 4] = [b"{\"a\":1}\n\n{", b"}\r\n\r\n", b"[1", b"]"];
        let expected = [event("{\"a\":1}", 0), event("{}\r", 1), event("[1]", 4)];
        assert_eq!(split(EventFormat::Lines, &pieces), expected);
        let long = vec![b'x'; 1_000_000];
        let one = &split(EventFormat::Lines, &[&long, &long, b"\n"])[0];
        assert_eq!((one.0.len(), one.1, one.2), (DATA_KEPT, 2_000_000, 2));
    }

    #[test]
    fn content_that_is_not_stamped_is_told_apart_by_its_arrivals() {
        let pieces: [&[u8]; 4] = [b"wei", b"rd", b"", b"more"];
        let expected = [event("wei", 0), event("rd", 1), event("more", 3)];
        assert_eq!(split(EventFormat::Reads, &pieces), expected);
        assert_eq!(split(EventFormat::Reads, &[b"weigh"]), [event("weigh", 0)]);
        assert!(split(EventFormat::Reads, &[]).is_empty());
        // Frames that arrive together are one read.
        let mut splitter = Splitter::new(EventFormat::Auto, None);
        let mut bytes = Vec::new();
        for (piece, arrived) in [(b"ab", 1), (b"cd", 1), (b"ef", 2)] {
            splitter.feed(piece, arrived, |event| bytes.push(event.bytes));
        }
        splitter.end(3, |event| bytes.push(event.bytes));
        assert_eq!(bytes, [4, 2]);
    }

    #[test]
    fn stamps_begin_events_however_they_are_cut() {
        let stream = b"weigh 0 1000 abcweigh 1 2000 weigh 2 3000 weigh xweigh 3 9 wei";
        let starts = |size: usize| {
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            let events = split(EventFormat::Reads, &pieces);
            let starts = events.into_iter().map(|(start, bytes, _)| (start, bytes));
            starts.collect::<Vec<_>>()
        };
        let expected = [
            "weigh 0 1000 abc",
            "weigh 1 2000 ",
            "weigh 2 3000 weigh x",
            "weigh 3 9 wei",
        ];
        let expected = expected.map(|text| (text.to_owned(), text.len() as u64));
        for size in 1..=stream.len() {
            assert_eq!(starts(size), expected, "{size}");
        }
        // One arrives when its stamp is complete, not when the one before it is passed on.
        let pieces: [&[u8]; 3] = [b"weigh 0 1 aaa", b"weigh 1", b" 2 weigh 2 3 "];
        let arrivals: Vec<u64> = split(EventFormat::Reads, &pieces)
            .iter()
            .map(|one| one.2)
            .collect();
        assert_eq!(arrivals, [0, 2, 2]);
    }

    proptest! {
        #[test]
        fn no_byte_of_the_content_is_lost(
            stream in "(weigh |weigh 1 2 |w|we|weigh 99999999999999999999999999999999999999999999|x){1,30}",
            size in 1_usize..50,
            lines in any::<bool>(),
        ) {
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            let format = if lines { EventFormat::Lines } else { EventFormat::Reads };
            let events = split(format, &pieces);
            let sum: u64 = events.iter().map(|one| one.1).sum();
            prop_assert_eq!(sum, stream.len() as u64);
        }
    }
}
