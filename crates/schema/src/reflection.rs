//! The schema from the server: gRPC server reflection
//! (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>).

use std::collections::BTreeSet;

use config::nearest::suggestion;
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;

use crate::{Method, MethodName, SchemaError};

/// The versions of the service, the one to be asked first in front.
const SERVICES: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
/// The status of a method that a server does not have, and of a name that it does not know.
const UNIMPLEMENTED: u32 = 12;
const NOT_FOUND: u32 = 5;
/// Most files of a schema.
const FILES_MAX: usize = 10_000;

/// The answer of a call: the messages, or why there are none.
pub type Asked = Result<Vec<Vec<u8>>, NotAsked>;

/// Why the server did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    /// With another status than 0.
    #[error("it answers with grpc-status {status}{}", text(.message))]
    Status {
        /// The status.
        status: u32,
        /// Its text, which may be empty.
        message: String,
    },
    /// Not at all, or not as gRPC.
    #[error("{0}")]
    Other(String),
}

fn text(message: &str) -> String {
    match message {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

/// The method by the schema that its server gives. `ask` calls a method by its path with one message.
///
/// # Errors
/// When the server gives no schema, or a wrong one, or there is no such method.
pub fn from_server(
    name: &MethodName,
    mut ask: impl FnMut(&str, &[u8]) -> Asked,
) -> Result<Method, SchemaError> {
    let mut refusal = None;
    for service in SERVICES {
        let path = format!("/{service}/ServerReflectionInfo");
        let mut server = Server(|message: &[u8]| ask(&path, message));
        match server.method(name) {
            Err(SchemaError::Reflection(why)) if is_unknown(&why) => {
                refusal.get_or_insert(why);
            }
            found => return found,
        }
    }
    let none = NotAsked::Other("it has no reflection".to_owned());
    Err(refusal.unwrap_or(none).into())
}

/// Whether it may be that the server has the service in another version. Servers that do not speak
/// gRPC at other paths answer without a status.
fn is_unknown(why: &NotAsked) -> bool {
    matches!(why, NotAsked::Status { status, .. } if *status == UNIMPLEMENTED)
}

struct Server<F>(F);

impl<F: FnMut(&[u8]) -> Asked> Server<F> {
    fn method(&mut self, name: &MethodName) -> Result<Method, SchemaError> {
        let first = self.ask(Question::Symbol(name.service.clone()));
        let files = match first {
            Ok(response) if response.error.is_none() => response.files,
            Ok(response) => return Err(self.no_service(name, response.error)),
            Err(why) => return Err(why.into()),
        };
        let mut found: Vec<FileDescriptorProto> = Vec::new();
        let mut wanted = BTreeSet::new();
        // Names of files that came, and of those that were asked for.
        let (mut known, mut asked) = (BTreeSet::new(), BTreeSet::new());
        let mut encoded = files.map(|files| files.files).unwrap_or_default();
        loop {
            for bytes in encoded {
                let file = FileDescriptorProto::decode(bytes.as_slice()).map_err(wrong)?;
                if known.insert(file.name().to_owned()) {
                    wanted.extend(file.dependency.iter().cloned());
                    found.push(file);
                }
            }
            if found.len() > FILES_MAX {
                return Err(wrong(format!("more than {FILES_MAX} files")));
            }
            let next = loop {
                match wanted.pop_first() {
                    Some(name) if known.contains(&name) || asked.contains(&name) => {}
                    next => break next,
                }
            };
            let Some(file) = next else { break };
            let response = self.ask(Question::File(file.clone()))?;
            encoded = response.files.map(|files| files.files).unwrap_or_default();
            asked.insert(file);
        }
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(found).map_err(wrong)?;
        Method::find(&pool, name)
    }

    /// What is wrong where the server does not know a service.
    fn no_service(&mut self, name: &MethodName, error: Option<ErrorResponse>) -> SchemaError {
        let error = error.unwrap_or_default();
        let status = error.code.try_into().unwrap_or_default();
        if status != NOT_FOUND {
            let message = error.message;
            return NotAsked::Status { status, message }.into();
        }
        let listed = self.ask(Question::Services(String::new()));
        let services = listed.ok().and_then(|response| response.services);
        let services = services.unwrap_or_default().services;
        let names = services.iter().map(|one| one.name.as_str());
        SchemaError::Service {
            name: name.service.clone(),
            help: suggestion(&name.service, "services", names),
        }
    }

    fn ask(&mut self, question: Question) -> Result<Response, NotAsked> {
        let question = Some(question);
        let messages = self.0(&Request { question }.encode_to_vec())?;
        let other = |why: String| NotAsked::Other(why);
        let [message] = &messages[..] else {
            let count = messages.len();
            return Err(other(format!("expected one message, found {count}")));
        };
        Response::decode(message.as_slice()).map_err(|error| other(error.to_string()))
    }
}

fn wrong(error: impl ToString) -> SchemaError {
    SchemaError::WrongReflection(error.to_string())
}

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, Message)]
struct Request {
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
