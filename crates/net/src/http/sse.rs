//! Server-sent events (HTML Living Standard, 9.2.6), as a client reads them.

/// Bytes of an event's data that are kept.
pub const DATA_KEPT: usize = 64;
/// Bytes of an event's type that are kept.
const KIND_KEPT: usize = 32;
/// The longest name of a field that means something.
const NAME_MAX: usize = 5;
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its type, up to 32 bytes of it; empty for a `message`.
    pub kind: &'a [u8],
    /// The first [`DATA_KEPT`] bytes of its data: its lines, with a line feed between them.
    pub data: &'a [u8],
    /// Bytes of its data.
    pub bytes: u64,
}

/// The start of a text of any length.
#[derive(Clone, Copy, Debug)]
struct Kept<const N: usize> {
    start: [u8; N],
    bytes: u64,
}

impl<const N: usize> Kept<N> {
    const EMPTY: Self = Self {
        start: [0; N],
        bytes: 0,
    };

    fn push(&mut self, more: &[u8]) {
        let at = self.bytes.min(N as u64) as usize;
        let fits = more.len().min(N - at);
        self.start[at..at + fits].copy_from_slice(&more[..fits]);
        self.bytes = self.bytes.saturating_add(more.len() as u64);
    }

    /// The start of its first `bytes`.
    fn up_to(&self, bytes: u64) -> &[u8] {
        &self.start[..bytes.min(N as u64) as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Kind,
    /// A comment, or a field that no event shows.
    Other,
}

#[derive(Clone, Copy, Debug)]
enum Line {
    /// The name of the field, so far.
    Name(Kept<{ NAME_MAX + 1 }>),
    /// The value; a space at its start is left out.
    Value { field: Field, is_start: bool },
}

const NEW_LINE: Line = Line::Name(Kept::EMPTY);

/// Reads events from the bytes of a stream, wherever they are cut. It holds no memory beyond itself,
/// however long lines are and however many belong to an event.
#[derive(Clone, Debug)]
pub struct SseParser {
    line: Line,
    /// A line feed that follows belongs to the line's end before it.
    after_return: bool,
    /// Bytes of a byte order mark so far, at the start of the stream; its length behind that.
    mark: usize,
    data: Kept<DATA_KEPT>,
    kind: Kept<KIND_KEPT>,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl SseParser {
    /// At the start of a stream.
    pub fn new() -> Self {
        Self {
            line: NEW_LINE,
            after_return: false,
            mark: 0,
            data: Kept::EMPTY,
            kind: Kept::EMPTY,
        }
    }

    /// Takes bytes, and passes on each event once the empty line behind it has come. What the end of
    /// the stream leaves unfinished is no event.
    pub fn feed(&mut self, bytes: &[u8], mut event: impl FnMut(SseEvent<'_>)) {
        let mut rest = self.after_mark(bytes);
        if std::mem::take(&mut self.after_return) {
            match rest {
                [] => self.after_return = true,
                [b'\n', after @ ..] => rest = after,
                _ => {}
            }
        }
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.piece(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { return };
            self.end_line(&mut event);
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_return {
                match rest {
                    [] => self.after_return = true,
                    [b'\n', after @ ..] => rest = after,
                    _ => {}
                }
            }
        }
    }

    /// Leaves out a byte order mark at the start of the stream.
    fn after_mark<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while self.mark < BYTE_ORDER_MARK.len() {
            let Some((first, after)) = rest.split_first() else {
                break;
            };
            if *first != BYTE_ORDER_MARK[self.mark] {
                // What began like one is part of the first name.
                let begun = std::mem::replace(&mut self.mark, BYTE_ORDER_MARK.len());
                self.piece(&BYTE_ORDER_MARK[..begun]);
                break;
            }
            self.mark += 1;
            rest = after;
        }
        rest
    }

    /// Takes a piece of a line.
    fn piece(&mut self, mut piece: &[u8]) {
        if let Line::Name(name) = &mut self.line {
            let colon = piece.iter().position(|byte| *byte == b':');
            name.push(&piece[..colon.unwrap_or(piece.len())]);
            let Some(colon) = colon else { return };
            let field = field(name);
            self.begin_value(field);
            piece = &piece[colon + 1..];
        }
        let Line::Value { field, is_start } = &mut self.line else {
            return;
        };
        if *is_start && !piece.is_empty() {
            *is_start = false;
            piece = piece.strip_prefix(b" ").unwrap_or(piece);
        }
        match field {
            Field::Data => self.data.push(piece),
            Field::Kind => self.kind.push(piece),
            Field::Other => {}
        }
    }

    fn begin_value(&mut self, field: Field) {
        if field == Field::Kind {
            self.kind = Kept::EMPTY;
        }
        let is_start = true;
        self.line = Line::Value { field, is_start };
    }

    fn end_line(&mut self, event: &mut impl FnMut(SseEvent<'_>)) {
        if let Line::Name(name) = &self.line {
            if name.bytes == 0 {
                return self.dispatch(event);
            }
            // A name alone has an empty value.
            let field = field(name);
            self.begin_value(field);
        }
        if let Line::Value { field, .. } = self.line
            && field == Field::Data
        {
            self.data.push(b"\n");
        }
        self.line = NEW_LINE;
    }

    /// An empty line ends the event, if it has data.
    fn dispatch(&mut self, event: &mut impl FnMut(SseEvent<'_>)) {
        // The line feed behind the last line does not belong to the data.
        if let Some(bytes) = self.data.bytes.checked_sub(1) {
            event(SseEvent {
                kind: self.kind.up_to(self.kind.bytes),
                data: self.data.up_to(bytes),
                bytes,
            });
        }
        (self.data, self.kind) = (Kept::EMPTY, Kept::EMPTY);
    }
}

fn field(name: &Kept<{ NAME_MAX + 1 }>) -> Field {
    match name.up_to(name.bytes) {
        b"data" => Field::Data,
        b"event" => Field::Kind,
        // `id` and `retry` matter to who connects again; an empty name is that of a comment.
        _ => Field::Other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Event = (String, String, u64);

    fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        let mut parser = SseParser::new();
        let mut events = Vec::new();
        for piece in pieces {
            parser.feed(piece, |event| {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                events.push((text(event.kind), text(event.data), event.bytes));
            });
        }
        events
    }

    /// The types and data of a stream's events.
    fn of(stream: &str) -> Vec<(String, String)> {
        let all = events([stream.as_bytes()]);
        all.into_iter()
            .map(|(kind, data, _)| (kind, data))
            .collect()
    }

    fn data(stream: &str) -> Vec<String> {
        of(stream).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn the_examples_of_the_standard() {
        // 9.2.6.
        assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
        let stream = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n\
                      data:  third event\n\n";
        assert_eq!(
            data(stream),
            ["first event", "second event", " third event"]
        );
        // The last block is discarded, because it is not followed by an empty line.
        assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
        assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
        let stream = "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n";
        let expected = [("add", "73857293"), ("remove", "2153")];
        assert_eq!(of(stream), expected.map(|(a, b)| (a.into(), b.into())));
    }

    #[test]
    fn lines_end_in_three_ways_and_a_mark_may_stand_before_them() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = "\u{feff}data: a|data: b||: x|event: e|data: c|||data: d||";
            let expected = [("", "a\nb"), ("e", "c"), ("", "d")];
            let expected = expected.map(|(kind, data)| (kind.to_owned(), data.to_owned()));
            assert_eq!(of(&stream.replace('|', end)), expected, "{end:?}");
        }
        // Only the first mark is left out, and part of one is part of the line.
        assert_eq!(data("\u{feff}\u{feff}data: a\n\n"), [""; 0]);
        let cut = events([b"\xef\xbb".as_slice(), b"data: a\n\n", b"data: b\n\n"]);
        assert_eq!(cut, [(String::new(), "b".to_owned(), 1)]);
    }

    #[test]
    fn fields_that_mean_nothing_are_left_out() {
        for line in [
            "Data: a", "data : a", " data: a", "dataa: a", ":data: a", "dat", "id: 4", "retry: 1",
        ] {
            assert_eq!(data(&format!("{line}\n\ndata: b\n\n")), ["b"], "{line}");
        }
        // A type without data is forgotten, and the last of several counts.
        assert_eq!(
            of("event: a\n\ndata: b\n\n"),
            [(String::new(), "b".to_owned())]
        );
        let stream = "event: a\nevent\ndata: b\n\nevent: c\nevent: d\ndata\n\n";
        assert_eq!(
            of(stream),
            [("", "b"), ("d", "")].map(|(a, b)| (a.into(), b.into()))
        );
    }

    #[test]
    fn a_long_event_is_counted_and_its_start_kept() {
        let mut stream = b"data: weigh 1 2 ".to_vec();
        stream.extend(vec![b'x'; 1_000_000]);
        stream.extend(b"\ndata: y\n\n");
        let (kind, start, bytes) = events(stream.chunks(16_000)).remove(0);
        assert_eq!((kind.as_str(), bytes), ("", 1_000_012));
        assert_eq!((&start[..11], start.len()), ("weigh 1 2 x", DATA_KEPT));
        // Neither lines nor events without an end take memory: nothing of the parser is on the heap.
        const { assert!(size_of::<SseParser>() < 256) };
    }

    proptest! {
        #[test]
        fn any_cut_reads_the_same(
            stream in "(data|event|id|:|: |x|\r|\n|\r\n|\u{feff}|\u{ef}){0,60}",
            size in 1_usize..9,
        ) {
            let bytes = stream.as_bytes();
            prop_assert_eq!(events(bytes.chunks(size)), events([bytes]));
            prop_assert_eq!(events(bytes.chunks(1)), events([bytes]));
        }
    }
}
