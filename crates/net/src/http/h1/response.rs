//! Answers, as a client reads them.

use super::framing::{Framing, HeadFields, may_have_content};
use super::head::PartialHead;
use super::known::KnownHead;
use super::syntax::as_known_version;
use super::{HEADERS_MAX, HttpError, MessageBody};

/// Most interim (1xx) answers that are accepted before the final one.
pub const INTERIM_MAX: u8 = 16;

/// What the head of an answer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    pub status: u16,
    /// Whether the connection can be used again after this answer.
    pub keep_alive: bool,
}

/// A part of an answer, as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponsePart<'a> {
    /// A field of the head, of an interim answer too: name and value.
    Field(&'a str, &'a [u8]),
    /// The head of the final answer is complete.
    Head(ResponseHead),
    /// A piece of the body.
    Content(&'a [u8]),
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed; all that were given were taken.
    More,
    /// The answer is complete; so many bytes of the input belong to it.
    Done {
        /// Bytes taken from the input.
        taken: usize,
    },
}

/// Reads one answer after the other from a connection.
///
/// It holds no memory beyond itself unless a head comes in pieces.
#[derive(Debug)]
pub struct ResponseParser {
    state: State,
    head: ResponseHead,
    /// The answer has no body, whatever its head says: the request was HEAD.
    bodiless: bool,
    interim: u8,
    /// Whether an interim answer has ended since that was last asked.
    interim_ended: bool,
    partial: PartialHead,
    known: KnownHead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Body(MessageBody),
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new(false)
    }
}

impl ResponseParser {
    /// A parser for the answers to requests; `head_request` when they are HEAD requests.
    pub fn new(head_request: bool) -> Self {
        Self {
            state: State::Head,
            head: ResponseHead::default(),
            bodiless: head_request,
            interim: 0,
            interim_ended: false,
            partial: PartialHead::default(),
            known: KnownHead::default(),
        }
    }

    /// Tells whether the next answer is to a HEAD request.
    pub fn set_head_request(&mut self, head_request: bool) {
        self.bodiless = head_request;
    }

    /// Resets the parser for a new connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        (self.interim, self.interim_ended) = (0, false);
        self.partial.clear();
    }

    /// Whether an interim answer has ended since this was last asked, and if so, whether the part of
    /// another answer has come behind it.
    #[inline]
    pub fn take_interim_end(&mut self) -> Option<bool> {
        let has_more = self.state != State::Head || !self.partial.is_empty();
        std::mem::take(&mut self.interim_ended).then_some(has_more)
    }

    /// The head of the answer that is complete, or whose body is under way.
    pub fn head(&self) -> ResponseHead {
        self.head
    }

    /// Whether it is between two answers.
    pub fn at_start(&self) -> bool {
        self.state == State::Head && self.partial.is_empty() && self.interim == 0
    }

    /// Takes bytes; content of the body goes to `content` piece by piece. After
    /// [`Progress::Done`] the parser stands at the start of the next answer.
    ///
    /// # Errors
    /// When the bytes are no acceptable HTTP/1.1; the connection must be closed then.
    pub fn feed(
        &mut self,
        input: &[u8],
        mut content: impl FnMut(&[u8]),
    ) -> Result<Progress, HttpError> {
        self.feed_parts(input, false, |part| {
            if let ResponsePart::Content(bytes) = part {
                content(bytes);
            }
        })
    }

    /// As [`ResponseParser::feed`], with the heads, and their fields if `with_fields`: without, some
    /// may come all the same.
    #[inline]
    pub fn feed_parts(
        &mut self,
        input: &[u8],
        with_fields: bool,
        mut each: impl FnMut(ResponsePart<'_>),
    ) -> Result<Progress, HttpError> {
        let mut at = 0;
        loop {
            match &mut self.state {
                State::Head => match self.take_head(&input[at..], with_fields, &mut each)? {
                    None => return Ok(Progress::More),
                    Some(n) => at += n,
                },
                State::Body(body) => {
                    let mut content = |bytes: &[u8]| each(ResponsePart::Content(bytes));
                    let (n, complete) = body.take(&input[at..], &mut content)?;
                    at += n;
                    if !complete {
                        return Ok(Progress::More);
                    }
                    self.state = State::Head;
                    self.interim = 0;
                    return Ok(Progress::Done { taken: at });
                }
            }
        }
    }

    /// Ends the input. True if that completes the answer, whose body lasts until the connection
    /// closes.
    pub fn end(&mut self) -> bool {
        let complete = matches!(self.state, State::Body(body) if body.ends_with_connection());
        self.reset();
        complete
    }

    /// Takes a head from the front of the input; `None` when it is not complete.
    #[inline]
    fn take_head(
        &mut self,
        input: &[u8],
        with_fields: bool,
        each: &mut impl FnMut(ResponsePart<'_>),
    ) -> Result<Option<usize>, HttpError> {
        let bodiless = self.bodiless;
        let is_whole = self.partial.is_empty();
        let known = match is_whole && !with_fields {
            true => self.known.find(input, bodiless),
            false => None,
        };
        let (taken, parsed) = match known {
            Some(known) => known,
            None => {
                let parse = |bytes: &[u8]| parse(bytes, bodiless, each);
                let Some((taken, parsed)) = self.partial.take(input, parse)? else {
                    return Ok(None);
                };
                if is_whole && !with_fields && parsed.is_final() {
                    self.known.keep(&input[..taken], bodiless, parsed);
                }
                (taken, parsed)
            }
        };
        self.begin(parsed)?;
        if self.state != State::Head {
            each(ResponsePart::Head(self.head));
        }
        Ok(Some(taken))
    }

    fn begin(&mut self, parsed: Parsed) -> Result<(), HttpError> {
        if !parsed.is_final() {
            self.interim += 1;
            self.interim_ended = true;
            if self.interim > INTERIM_MAX {
                return Err(HttpError::Interim);
            }
            return Ok(());
        }
        self.head = parsed.head;
        self.state = State::Body(parsed.body);
        Ok(())
    }
}

/// What was read of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    head: ResponseHead,
    body: MessageBody,
}

impl Parsed {
    /// Whether no other answer to the same request follows.
    fn is_final(&self) -> bool {
        self.head.status == 101 || !(100..200).contains(&self.head.status)
    }
}

/// The header fields of the first answer in `input` that is not interim, in order; none when its
/// head is not whole.
pub fn response_fields(mut input: &[u8]) -> Vec<(String, Vec<u8>)> {
    loop {
        let known = as_known_version(input, 0);
        let bytes = known.as_deref().unwrap_or(input);
        let mut fields = [const { std::mem::MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let Ok(httparse::Status::Complete(len)) =
            lenient().parse_response_with_uninit_headers(&mut response, bytes, &mut fields)
        else {
            return Vec::new();
        };
        let interim = response.code.is_some_and(|code| code < 200 && code != 101);
        if !interim {
            let field = |field: &httparse::Header<'_>| (field.name.into(), field.value.into());
            return response.headers.iter().map(field).collect();
        }
        input = &input[len..];
    }
}

fn lenient() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    // A client has to accept folded lines (RFC 9112 5.2).
    config.allow_obsolete_multiline_headers_in_responses(true);
    config
}

/// Reads a head: its length and what it says. `input` is at most as long as a head may be. A head
/// that is complete is read once, unless it is refused.
fn parse(
    input: &[u8],
    bodiless: bool,
    each: &mut impl FnMut(ResponsePart<'_>),
) -> Result<Option<(usize, Parsed)>, HttpError> {
    if matches!(input.first(), Some(b'\r' | b'\n')) {
        // Empty lines may stand before requests only (RFC 9112 2.2).
        return Err(HttpError::Head);
    }
    let mut fields = [const { std::mem::MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let len = match lenient().parse_response_with_uninit_headers(&mut response, input, &mut fields)
    {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::Version) => {
            let known = as_known_version(input, 0).ok_or(HttpError::Head)?;
            return parse(&known, bodiless, each);
        }
        Err(httparse::Error::TooManyHeaders) => return Err(HttpError::HeadTooLarge),
        Err(_) => return Err(HttpError::Head),
    };
    let (Some(status @ 100..), Some(version)) = (response.code, response.version) else {
        return Err(HttpError::Head);
    };
    let mut seen = HeadFields::default();
    // RFC 9112 6.3: the head ends such an answer, regardless of its framing fields.
    let is_framed = may_have_content(status, bodiless);
    for field in response.headers.iter() {
        each(ResponsePart::Field(field.name, field.value));
        match seen.field(field.name, field.value) {
            Err(fault) if is_framed => return Err(fault),
            _ => {}
        }
    }
    let framing = Framing::of_response(status, bodiless, seen.chunked, seen.length);
    let framing = seen.settled(framing)?;
    let keep_alive = seen.keeps_alive(version) && framing != Framing::UntilClose && status != 101;
    let body = MessageBody::new(framing);
    let head = ResponseHead { status, keep_alive };
    Ok(Some((len, Parsed { head, body })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::HEAD_BYTES_MAX;
    use super::*;

    type Answers = Vec<(u16, bool, Vec<u8>)>;

    /// Everything that a connection's bytes mean: per answer its status and content, and how it
    /// ended.
    fn read(pieces: &[&[u8]]) -> (Answers, Option<HttpError>, bool) {
        read_with(pieces, false)
    }

    fn read_with(pieces: &[&[u8]], with_fields: bool) -> (Answers, Option<HttpError>, bool) {
        let mut parser = ResponseParser::new(false);
        let mut answers = Vec::new();
        let mut body = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let progress = parser.feed_parts(rest, with_fields, |part| {
                    if let ResponsePart::Content(bytes) = part {
                        body.extend_from_slice(bytes);
                    }
                });
                match progress {
                    Ok(Progress::More) => break,
                    Ok(Progress::Done { taken }) => {
                        let head = parser.head();
                        answers.push((head.status, head.keep_alive, std::mem::take(&mut body)));
                        rest = &rest[taken..];
                    }
                    Err(e) => return (answers, Some(e), false),
                }
            }
        }
        let complete = parser.end();
        if complete {
            answers.push((parser.head().status, false, body));
        }
        (answers, None, complete)
    }

    fn one(text: &str) -> Result<(u16, bool, String), HttpError> {
        let (answers, error, _) = read(&[text.as_bytes()]);
        match error {
            Some(e) => Err(e),
            None => {
                let (status, keep, body) = answers.into_iter().next().expect("one answer");
                Ok((status, keep, String::from_utf8(body).unwrap()))
            }
        }
    }

    #[test]
    fn lengths_chunks_and_endings() {
        let table = r"
200 true abc | 1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc
200 true abc0123456789 | 1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n
200 false until the end | 1.0 200 OK\r\n\r\nuntil the end
200 false  | 1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n
200 true x | 1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx
304 true  | 1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n
200 true y | 1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny";
        for row in table.lines().skip(1) {
            let (expected, text) = row.split_once(" | ").unwrap();
            let text = text.replace(r"\r", "\r").replace(r"\n", "\n");
            let (status, keep, body) = one(&format!("HTTP/{text}")).unwrap();
            assert_eq!(format!("{status} {keep} {body}"), expected, "{text}");
        }
    }

    #[test]
    fn decisions_that_rfc_9112_asks_for() {
        use HttpError::*;
        let ok = |s: &str| Ok((200, true, s.to_string()));
        // 5.2: a client bears folded lines; a length that spans lines is no number.
        let folded =
            "HTTP/1.1 200 OK\r\nX: a\r\n\tb\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(one(folded), ok(""));
        let split = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\nx";
        assert_eq!(one(split), Err(ContentLength));
        // 6.1: chunks from HTTP/1.0 are read, and the connection ends.
        let old = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        assert_eq!(one(old), Ok((200, false, "x".into())));
        // 6.3: the same length twice is one; a HEAD's, 204's or 304's fields frame nothing.
        let twice = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx";
        assert_eq!(one(twice), ok("x"));
        let both = "HTTP/1.1 204 No\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(one(both), Ok((204, true, String::new())));
        // 2.2: a line may end with a line feed alone; nothing stands before a status line.
        assert_eq!(one("HTTP/1.1 200 OK\nContent-Length: 1\n\nx"), ok("x"));
        assert_eq!(one("\r\nHTTP/1.1 200 OK\r\n\r\n"), Err(Head));
        // 15 of RFC 9110: no status is below 100.
        assert_eq!(one("HTTP/1.1 099 Odd\r\n\r\n"), Err(Head));
        // 7.1: lines of the coding end with CR and LF, and what is behind a size is an extension.
        for chunks in [
            "1\nx\n0\n\n",
            "1 x\r\n",
            "1;\0\r\n",
            "0\r\nA: b\n\r\n",
            "0\r\n\n",
        ] {
            let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
            assert_eq!(one(&text), Err(Chunk), "{chunks:?}");
        }
    }

    #[test]
    fn hostile_answers_are_errors() {
        use HttpError::*;
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(70_000));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(101));
        let storm = "HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
        for (text, error) in [
            ("nonsense\r\n\r\n", Head),
            (long.as_str(), HeadTooLarge),
            (many.as_str(), HeadTooLarge),
            (storm.as_str(), Interim),
        ] {
            assert_eq!(read(&[text.as_bytes()]).1, Some(error), "{:.80}", text);
        }
        for (fields, error) in [
            (
                "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                ContentLength,
            ),
            ("Content-Length: -1\r\n\r\n", ContentLength),
            (
                "Content-Length: 99999999999999999999\r\n\r\n",
                ContentLength,
            ),
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                ContentLength,
            ),
            ("Transfer-Encoding: gzip, chunked\r\n\r\n", TransferEncoding),
            (
                "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
                Chunk,
            ),
            ("Transfer-Encoding: chunked\r\n\r\nx\r\n", Chunk),
            ("Transfer-Encoding: chunked\r\n\r\n1\r\nabc", Chunk),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}");
            assert_eq!(read(&[text.as_bytes()]).1, Some(error), "{text}");
        }
    }

    #[test]
    fn an_endless_head_is_refused_and_bounded() {
        let mut parser = ResponseParser::new(false);
        let mut result = parser.feed(b"HTTP/1.1 200 OK\r\n", |_| {});
        let mut fed = 0;
        while result.is_ok() && fed < 1_000_000 {
            result = parser.feed(b"A: b\r\nC", |_| {});
            fed += 7;
        }
        assert_eq!(result, Err(HttpError::HeadTooLarge));
        assert!(fed <= HEAD_BYTES_MAX + 64);
    }

    #[test]
    fn a_head_that_comes_again_is_read_once_and_another_one_anew() {
        let answer = |length: usize, close: bool| {
            let close = if close { "Connection: close\r\n" } else { "" };
            let body = "x".repeat(length);
            format!("HTTP/1.1 200 OK\r\n{close}Content-Length: {length}\r\n\r\n{body}")
        };
        let mut parser = ResponseParser::new(false);
        // The second is kept, the third is known; then come another length, and the end.
        for (length, close, fields_read) in [
            (2, false, 1),
            (2, false, 1),
            (2, false, 0),
            (3, false, 1),
            (3, false, 0),
            (3, true, 2),
        ] {
            let text = answer(length, close);
            let (mut fields, mut content) = (0, 0);
            let progress = parser.feed_parts(text.as_bytes(), false, |part| match part {
                ResponsePart::Field(..) => fields += 1,
                ResponsePart::Head(_) => {}
                ResponsePart::Content(bytes) => content += bytes.len(),
            });
            assert_eq!(progress, Ok(Progress::Done { taken: text.len() }));
            assert_eq!((fields, content), (fields_read, length), "{text}");
            assert_eq!(parser.head().keep_alive, !close);
        }
        // The same head says something else where the request was HEAD.
        let text = answer(3, true);
        parser.set_head_request(true);
        let head = text.len() - 3;
        assert_eq!(
            parser.feed(text.as_bytes(), |_| {}),
            Ok(Progress::Done { taken: head })
        );
    }

    #[test]
    fn a_head_request_has_no_body() {
        let mut parser = ResponseParser::new(true);
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
        assert_eq!(
            parser.feed(text, |_| {}),
            Ok(Progress::Done { taken: text.len() })
        );
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let answer = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(|body| {
                let mut text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())
                    .into_bytes();
                text.extend(body);
                text
            }),
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..4)
                .prop_map(|chunks| {
                    let mut text = b"HTTP/1.1 203 X\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
                    for chunk in chunks {
                        text.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                        text.extend(chunk);
                        text.extend(b"\r\n");
                    }
                    text.extend(b"0\r\n\r\n");
                    text
                }),
            Just(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
            Just(b"HTTP/1.0 200 OK\r\n\r\nrest".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..30),
        ];
        proptest::collection::vec(answer, 0..5).prop_map(|answers| answers.concat())
    }

    proptest! {
        #[test]
        fn heads_that_come_again_say_the_same(answers in stream(), times in 1usize..5) {
            let bytes = answers.repeat(times);
            prop_assert_eq!(read_with(&[&bytes], false), read_with(&[&bytes], true));
        }

        #[test]
        fn any_split_reads_the_same(bytes in stream(), cuts in proptest::collection::vec(0usize..200, 0..8)) {
            let whole = read(&[&bytes]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces: Vec<&[u8]> = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(&read(&pieces), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&read(&single), &whole);
        }
    }
}
