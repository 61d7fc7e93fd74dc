//! The service's schema for clients that ask for it: gRPC server reflection
//! (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>).

use net::grpc::echo;
use prost::Message;

/// The names of the service, whose versions have the same messages.
pub(super) const SERVICES: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
/// Its only method.
pub(super) const METHOD: &str = "ServerReflectionInfo";

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
    let question = Request::decode(request).ok()?;
    let mut response = Response {
        host: question.host.clone(),
        request: Some(question.clone()),
        ..Response::default()
    };
    let is_known = match &question.question {
        Some(Question::File(name)) => Some(name == echo::FILE_NAME),
        Some(Question::Symbol(name)) => Some(has_symbol(name)),
        Some(Question::Services(_)) => {
            let names = [echo::SERVICE, SERVICES[0], SERVICES[1]];
            let services = names.map(|name| Service { name: name.into() });
            response.services = Some(Services {
                services: services.into(),
            });
            return Some(response.encode_to_vec());
        }
        None => None,
    };
    match is_known {
        Some(true) => {
            response.files = Some(Files {
                files: vec![echo::FILE_DESCRIPTOR.to_vec()],
            });
        }
        Some(false) => response.error = Some(error(NOT_FOUND, "no such file or symbol")),
        None => response.error = Some(error(UNIMPLEMENTED, "expected a file, symbol or list")),
    }
    Some(response.encode_to_vec())
}

fn has_symbol(name: &str) -> bool {
    let method = name.strip_prefix(echo::SERVICE);
    let method = method.and_then(|rest| rest.strip_prefix('.'));
    SYMBOLS.contains(&name) || method.is_some_and(|name| super::call::METHODS.contains(&name))
}

fn error(code: i32, message: &str) -> ErrorResponse {
    ErrorResponse {
        code,
        message: message.to_owned(),
    }
}

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "Question", tags = "3, 4, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Question {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    Symbol(String),
    #[prost(string, tag = "7")]
    Services(String),
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(message, optional, tag = "2")]
    request: Option<Request>,
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<ErrorResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorResponse {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}
