//! The schema from the server: gRPC server reflection
//! (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>).

use std::collections::BTreeSet;

use config::nearest::suggestion;
use net::grpc::reflection::{Answer, METHOD, Question, Request, Response, SERVICES};
use prost_reflect::DescriptorPool;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::FileDescriptorProto;

use crate::{Method, MethodName, SchemaError};

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
        let path = format!("/{service}/{METHOD}");
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
        let mut encoded = match first? {
            Some(Answer::Error { code, message }) => {
                return Err(self.no_service(name, code, message));
            }
            answer => files(answer),
        };
        let mut found: Vec<FileDescriptorProto> = Vec::new();
        let mut wanted = BTreeSet::new();
        // Names of files that came, and of those that were asked for.
        let (mut known, mut asked) = (BTreeSet::new(), BTreeSet::new());
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
            encoded = files(self.ask(Question::File(file.clone()))?);
            asked.insert(file);
        }
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(found).map_err(wrong)?;
        Method::find(&pool, name)
    }

    /// What is wrong where the server does not know a service.
    fn no_service(&mut self, name: &MethodName, code: i32, message: String) -> SchemaError {
        let status = code.try_into().unwrap_or_default();
        if status != NOT_FOUND {
            return NotAsked::Status { status, message }.into();
        }
        let services = match self.ask(Question::Services) {
            Ok(Some(Answer::Services(names))) => names,
            _ => Vec::new(),
        };
        SchemaError::Service {
            name: name.service.clone(),
            help: suggestion(
                &name.service,
                "services",
                services.iter().map(String::as_str),
            ),
        }
    }

    fn ask(&mut self, question: Question) -> Result<Option<Answer>, NotAsked> {
        let request = Request {
            host: String::new(),
            question: Some(question),
        };
        let messages = self.0(&request.encode())?;
        let other = |why: String| NotAsked::Other(why);
        let [message] = &messages[..] else {
            let count = messages.len();
            return Err(other(format!("expected one message, found {count}")));
        };
        match Response::decode(message) {
            Some(response) => Ok(response.answer),
            None => Err(other("expected a ServerReflectionResponse".to_owned())),
        }
    }
}

fn files(answer: Option<Answer>) -> Vec<Vec<u8>> {
    match answer {
        Some(Answer::Files(files)) => files,
        _ => Vec::new(),
    }
}

fn wrong(error: impl ToString) -> SchemaError {
    SchemaError::WrongReflection(error.to_string())
}
