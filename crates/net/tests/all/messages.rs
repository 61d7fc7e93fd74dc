//! Messages that were written by known rules are read as what they were written from.

use net::http::{Progress, Request, RequestParser, ResponseParser};
use proptest::collection::vec;
use proptest::prelude::*;

/// How a body is sent.
#[derive(Clone, Debug)]
enum Framing {
    Length,
    /// Sizes of the chunks (the last takes the rest), an extension, trailer lines.
    Chunks {
        sizes: Vec<usize>,
        extension: String,
        capitals: bool,
        trailers: Vec<String>,
    },
}

#[derive(Clone, Debug)]
struct Message {
    /// Interim answers before it; nothing in a request.
    interim: Vec<u16>,
    status: u16,
    fields: Vec<String>,
    close: bool,
    body: Vec<u8>,
    framing: Framing,
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        Just(Framing::Length),
        (
            vec(1usize..50, 0..6),
            prop_oneof![
                Just(String::new()),
                "[ \t]{0,3};[a-z]{1,8}=[a-z0-9]{1,8}",
                ";[a-z]{1,8}=\"[ -!#-~]{0,20}\"",
            ],
            any::<bool>(),
            vec("X-[A-Za-z]{1,10}: [!-~]{1,20}", 0..4),
        )
            .prop_map(|(sizes, extension, capitals, trailers)| Framing::Chunks {
                sizes,
                extension,
                capitals,
                trailers,
            }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    // Values that span lines as well (RFC 9112 5.2).
    let field = prop_oneof![
        "X-[A-Za-z]{1,10}:[ \t]{0,2}[!-~]{1,30}",
        "X-[A-Za-z]{1,10}: [!-~]{1,10}\r\n[ \t][!-~]{1,10}",
    ];
    (
        vec(prop_oneof![Just(100u16), Just(102), Just(103)], 0..4),
        prop_oneof![Just(200u16), Just(404), Just(503), Just(204), Just(304)],
        vec(field, 0..6),
        any::<bool>(),
        vec(any::<u8>(), 0..200),
        framing(),
    )
        .prop_map(|(interim, status, fields, close, body, framing)| Message {
            interim,
            status,
            fields,
            close,
            body,
            framing,
        })
}

impl Message {
    fn fields(&self, text: &mut Vec<u8>) {
        for field in &self.fields {
            text.extend(format!("{field}\r\n").into_bytes());
        }
        if self.close {
            text.extend(b"Connection: x, Close\r\n");
        }
        match &self.framing {
            Framing::Length => {
                text.extend(format!("content-LENGTH: {} \r\n", self.body.len()).into_bytes());
            }
            Framing::Chunks { .. } => text.extend(b"Transfer-Encoding: Chunked\r\n"),
        }
        text.extend(b"\r\n");
    }

    fn body(&self, text: &mut Vec<u8>) {
        let Framing::Chunks {
            sizes,
            extension,
            capitals,
            trailers,
        } = &self.framing
        else {
            text.extend(&self.body);
            return;
        };
        let mut rest = self.body.as_slice();
        let mut sizes = sizes.iter();
        while !rest.is_empty() {
            let size = sizes.next().copied().unwrap_or(rest.len()).min(rest.len());
            let (chunk, behind) = rest.split_at(size);
            let digits = if *capitals {
                format!("{size:04X}")
            } else {
                format!("{size:x}")
            };
            text.extend(format!("{digits}{extension}\r\n").into_bytes());
            text.extend(chunk);
            text.extend(b"\r\n");
            rest = behind;
        }
        text.extend(format!("0{extension}\r\n").into_bytes());
        for line in trailers {
            text.extend(format!("{line}\r\n").into_bytes());
        }
        text.extend(b"\r\n");
    }

    fn is_bodiless(&self) -> bool {
        matches!(self.status, 204 | 304)
    }

    fn answer(&self, to_head: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for status in &self.interim {
            text.extend(format!("HTTP/1.1 {status} Wait\r\nLink: </x>\r\n\r\n").into_bytes());
        }
        text.extend(format!("HTTP/1.1 {} Reason\r\n", self.status).into_bytes());
        self.fields(&mut text);
        if !to_head && !self.is_bodiless() {
            self.body(&mut text);
        }
        text
    }

    fn request(&self) -> Vec<u8> {
        let mut text = b"PUT /place HTTP/1.1\r\nHost: x\r\n".to_vec();
        self.fields(&mut text);
        self.body(&mut text);
        text
    }
}

type Read = (u16, bool, Vec<u8>);

fn read_answers(bytes: &[u8], piece: usize, to_head: bool) -> Vec<Read> {
    let mut parser = ResponseParser::new(to_head);
    let (mut answers, mut content) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            let progress = parser.feed(rest, |b| content.extend_from_slice(b));
            match progress.expect("a well-formed answer") {
                Progress::More => break,
                Progress::Done { taken } => {
                    let head = parser.head();
                    let content = std::mem::take(&mut content);
                    answers.push((head.status, head.keep_alive, content));
                    rest = &rest[taken..];
                }
            }
        }
    }
    assert!(parser.at_start(), "an answer is missing its end");
    answers
}

fn read_requests(bytes: &[u8], piece: usize) -> Vec<Request> {
    let mut parser = RequestParser::default();
    let mut requests = Vec::new();
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (taken, complete) = parser.feed(rest).expect("a well-formed request");
            rest = &rest[taken..];
            if complete {
                requests.push(parser.request().clone());
            }
        }
    }
    requests
}

proptest! {
    #[test]
    fn answers_one_behind_the_other(
        messages in vec(message(), 1..4),
        to_head in any::<bool>(),
        piece in 1usize..300,
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|m| m.answer(to_head)).collect();
        let expected: Vec<Read> = messages
            .iter()
            .map(|m| {
                let bodiless = to_head || m.is_bodiless();
                let content = if bodiless { Vec::new() } else { m.body.clone() };
                (m.status, !m.close, content)
            })
            .collect();
        prop_assert_eq!(read_answers(&bytes, piece, to_head), expected);
    }

    #[test]
    fn requests_one_behind_the_other(messages in vec(message(), 1..4), piece in 1usize..300) {
        let mut messages = messages;
        for message in &mut messages {
            // Lines that are folded are for answers only.
            message.fields.retain(|field| !field.contains('\n'));
        }
        let bytes: Vec<u8> = messages.iter().flat_map(Message::request).collect();
        let requests = read_requests(&bytes, piece);
        prop_assert_eq!(requests.len(), messages.len());
        for (request, message) in requests.iter().zip(&messages) {
            prop_assert_eq!(request.body_bytes, message.body.len() as u64);
            prop_assert_eq!(request.keep_alive, !message.close);
            for field in &message.fields {
                let (name, value) = field.split_once(':').expect("a field has a colon");
                let same = |(n, v): &(String, String)| n == name && v == value.trim();
                prop_assert!(request.fields.iter().any(same), "{} in {:?}", field, request);
            }
        }
    }

    #[test]
    fn a_cut_answer_is_never_complete(message in message(), cut in 0usize..4096) {
        let bytes = message.answer(false);
        let cut = cut % bytes.len();
        let mut parser = ResponseParser::new(false);
        let progress = parser.feed(&bytes[..cut], |_| {});
        prop_assert_eq!(progress, Ok(Progress::More));
        prop_assert!(!parser.end());
    }
}
