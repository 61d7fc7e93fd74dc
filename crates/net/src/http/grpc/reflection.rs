//! gRPC server reflection: what a client asks of a server's schema, and what it answers
//! (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>).

use super::protobuf::{Field, bytes, fields, number};

/// The names of the service, the newer one in front. Both versions have the same messages.
pub const SERVICES: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
pub const METHOD: &str = "ServerReflectionInfo";

/// A `ServerReflectionRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The host that the client asks about.
    pub host: String,
    /// `None` for a question that is not read here, such as one about extensions.
    pub question: Option<Question>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    File(String),
    /// The file that defines this symbol.
    Symbol(String),
    Services,
}

/// A `ServerReflectionResponse`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The host of the request.
    pub host: String,
    /// The request, encoded.
    pub request: Vec<u8>,
    /// `None` for an answer that is not read here.
    pub answer: Option<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Files: each an encoded `google.protobuf.FileDescriptorProto`.
    Files(Vec<Vec<u8>>),
    Services(Vec<String>),
    /// None of them.
    Error {
        /// A status of gRPC.
        code: i32,
        /// Why.
        message: String,
    },
}

impl Request {
    /// Reads it; `None` if the bytes are not such a message. Fields that it does not have are
    /// skipped.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let mut request = Self::default();
        each(message, |number, value| {
            match number {
                1 => request.host = text(value)?,
                3 => request.question = Some(Question::File(text(value)?)),
                4 => request.question = Some(Question::Symbol(text(value)?)),
                7 => request.question = Some(Question::Services),
                _ => {}
            }
            Some(())
        })?;
        Some(request)
    }

    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.host.is_empty() {
            bytes(1, self.host.as_bytes(), &mut out);
        }
        match &self.question {
            Some(Question::File(name)) => bytes(3, name.as_bytes(), &mut out),
            Some(Question::Symbol(name)) => bytes(4, name.as_bytes(), &mut out),
            Some(Question::Services) => bytes(7, b"", &mut out),
            None => {}
        }
        out
    }
}

impl Response {
    /// Reads it, as [`Request::decode`] does.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let mut response = Self::default();
        each(message, |number, value| {
            match number {
                1 => response.host = text(value)?,
                2 => response.request = value.to_vec(),
                4 => response.answer = Some(Answer::Files(all(value)?)),
                6 => {
                    let services = all(value)?;
                    let names = services.iter().map(|one| {
                        all(one)?
                            .last()
                            .map_or_else(|| Some(String::new()), |name| text(name))
                    });
                    response.answer = Some(Answer::Services(names.collect::<Option<_>>()?));
                }
                7 => response.answer = Some(error(value)?),
                _ => {}
            }
            Some(())
        })?;
        Some(response)
    }

    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let (mut out, mut inner) = (Vec::new(), Vec::new());
        if !self.host.is_empty() {
            bytes(1, self.host.as_bytes(), &mut out);
        }
        bytes(2, &self.request, &mut out);
        let field = match &self.answer {
            Some(Answer::Files(files)) => {
                files.iter().for_each(|file| bytes(1, file, &mut inner));
                4
            }
            Some(Answer::Services(names)) => {
                for name in names {
                    let mut service = Vec::new();
                    bytes(1, name.as_bytes(), &mut service);
                    bytes(1, &service, &mut inner);
                }
                6
            }
            Some(Answer::Error { code, message }) => {
                // A negative one has ten bytes, as that of an int64.
                number(1, i64::from(*code).cast_unsigned(), &mut inner);
                bytes(2, message.as_bytes(), &mut inner);
                7
            }
            None => return out,
        };
        bytes(field, &inner, &mut out);
        out
    }
}

/// Hands out the fields with bytes of a message; `None` if it is not one, or `take` refuses one.
fn each(message: &[u8], mut take: impl FnMut(u64, &[u8]) -> Option<()>) -> Option<()> {
    let mut taken = Some(());
    fields(message, |number, field| {
        if let (Some(()), Field::Bytes(value)) = (taken, field) {
            taken = take(number, value);
        }
    })?;
    taken
}

/// The values of the first field of a message, which is repeated.
fn all(message: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut values = Vec::new();
    each(message, |number, value| {
        if number == 1 {
            values.push(value.to_vec());
        }
        Some(())
    })?;
    Some(values)
}

fn error(message: &[u8]) -> Option<Answer> {
    let (mut code, mut why) = (0, Some(String::new()));
    fields(message, |number, field| match (number, field) {
        (1, Field::Varint(value)) => code = value as i32,
        (2, Field::Bytes(value)) => why = text(value),
        _ => {}
    })?;
    why.map(|message| Answer::Error { code, message })
}

fn text(value: &[u8]) -> Option<String> {
    String::from_utf8(value.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written() {
        for (question, encoded) in [
            (Some(Question::File("a".into())), &b"\x0a\x01h\x1a\x01a"[..]),
            (Some(Question::Symbol("b".into())), b"\x0a\x01h\x22\x01b"),
            (Some(Question::Services), b"\x0a\x01h\x3a\x00"),
            (None, b"\x0a\x01h"),
        ] {
            let host = "h".to_owned();
            let request = Request { host, question };
            assert_eq!(request.encode(), encoded);
            assert_eq!(Request::decode(encoded), Some(request));
        }
        let error = |code| Answer::Error {
            code,
            message: "no".into(),
        };
        for (answer, encoded) in [
            (
                Answer::Files(vec![b"x".to_vec(), Vec::new()]),
                &b"\x22\x05\x0a\x01x\x0a\x00"[..],
            ),
            (
                Answer::Services(vec!["s".into()]),
                b"\x32\x05\x0a\x03\x0a\x01s",
            ),
            (error(5), b"\x3a\x06\x08\x05\x12\x02no"),
        ] {
            let response = Response {
                answer: Some(answer),
                ..Response::default()
            };
            let mut bytes = b"\x12\x00".to_vec();
            bytes.extend(encoded);
            assert_eq!(response.encode(), bytes);
            assert_eq!(Response::decode(&bytes), Some(response));
        }
        let negative = Response {
            answer: Some(error(-1)),
            ..Response::default()
        };
        assert_eq!(Response::decode(&negative.encode()), Some(negative));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bad in [&b"\xff"[..], b"\x1a\x05ab", b"\x1a\x01\xff"] {
            assert_eq!(Request::decode(bad), None, "{}", bad.escape_ascii());
        }
        for bad in [
            &b"\xff"[..],
            b"\x22\x01\xff",
            b"\x32\x03\x0a\x01\xff",
            b"\x3a\x03\x12\x01\xff",
        ] {
            assert_eq!(Response::decode(bad), None, "{}", bad.escape_ascii());
        }
    }
}
