//! The service's schema for clients that ask for it: gRPC server reflection
//! (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>).

use net::grpc::echo;
use net::grpc::reflection::{Answer, Question, Request, Response, SERVICES};

/// What the schema defines, besides the methods of its service.
const SYMBOLS: [&str; 5] = [
    echo::SERVICE,
    "weigh.v1",
    "weigh.v1.Message",
    "weigh.v1.PacedRequest",
    "weigh.v1.Collected",
];
const NOT_FOUND: i32 = 5;
const UNIMPLEMENTED: i32 = 12;

/// The answer to a `ServerReflectionRequest`; `None` if the bytes are none.
pub(super) fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let question = Request::decode(request)?;
    let file = |is_known| match is_known {
        true => Answer::Files(vec![echo::FILE_DESCRIPTOR.to_vec()]),
        false => error(NOT_FOUND, "no such file or symbol"),
    };
    let answer = match question.question {
        Some(Question::File(name)) => file(name == echo::FILE_NAME),
        Some(Question::Symbol(name)) => file(has_symbol(&name)),
        Some(Question::Services) => {
            let names = [echo::SERVICE, SERVICES[0], SERVICES[1]];
            Answer::Services(names.map(str::to_owned).into())
        }
        None => error(UNIMPLEMENTED, "expected a file, symbol or list"),
    };
    let response = Response {
        host: question.host,
        request: request.to_vec(),
        answer: Some(answer),
    };
    Some(response.encode())
}

fn has_symbol(name: &str) -> bool {
    let method = name.strip_prefix(echo::SERVICE);
    let method = method.and_then(|rest| rest.strip_prefix('.'));
    SYMBOLS.contains(&name) || method.is_some_and(|name| super::call::METHODS.contains(&name))
}

fn error(code: i32, message: &str) -> Answer {
    let message = message.to_owned();
    Answer::Error { code, message }
}
