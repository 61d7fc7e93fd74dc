//! gRPC calls: the service `weigh.v1.Echo`, and reflection.

use net::grpc::echo::{self, Collected, PacedRequest};
use net::grpc::reflection::{METHOD, SERVICES};
use net::grpc::{
    GrpcError, MessageReader, OK, Part, encode_message, is_content_type, parse_timeout, prefix,
};
use net::http::Request;

use super::paced::{Paced, PacedPlan};
use super::{Step, Taken, reflection};

/// The methods of the service.
pub(super) const METHODS: [&str; 4] = ["Unary", "Paced", "Collect", "Both"];

/// The most bytes of a message, as other servers have it by default.
const MESSAGE_MAX: u32 = 4 << 20;

const INVALID_ARGUMENT: u32 = 3;
const DEADLINE_EXCEEDED: u32 = 4;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const INTERNAL: u32 = 13;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Unary,
    Paced,
    Collect,
    Both,
    Reflection,
}

impl Method {
    fn of(path: &str) -> Option<Self> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        match (service, method) {
            (echo::SERVICE, "Unary") => Some(Method::Unary),
            (echo::SERVICE, "Paced") => Some(Method::Paced),
            (echo::SERVICE, "Collect") => Some(Method::Collect),
            (echo::SERVICE, "Both") => Some(Method::Both),
            (service, METHOD) if SERVICES.contains(&service) => Some(Method::Reflection),
            _ => None,
        }
    }
}

/// A call that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct CallPlan {
    /// `None` for a method that there is not.
    method: Option<Method>,
    timeout_ns: Option<u64>,
    /// What is wrong with the head.
    mistake: Option<(u32, String)>,
}

impl CallPlan {
    /// The call that a request makes; `None` if it is none of gRPC.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let kind = request.field("content-type")?;
        if request.method != "POST" || !is_content_type(kind.as_bytes()) {
            return None;
        }
        let method = Method::of(&request.target);
        let timeout = request.field("grpc-timeout");
        let time = timeout.map(|text| parse_timeout(text.as_bytes()));
        let mistake = match (method, time) {
            (None, _) => Some((UNIMPLEMENTED, format!("no method {}", request.target))),
            (_, Some(None)) => Some((INVALID_ARGUMENT, "grpc-timeout: expected a time".into())),
            _ => None,
        };
        Some(Self {
            method,
            timeout_ns: time
                .flatten()
                .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            mistake,
        })
    }

    pub(super) fn begin(self, arrived_ns: u64) -> Call {
        Call {
            method: self.method,
            arrived_ns,
            deadline_ns: self.timeout_ns.map(|ns| arrived_ns.saturating_add(ns)),
            reader: MessageReader::new(MESSAGE_MAX),
            content: Vec::new(),
            collected: Collected::default(),
            paced: None,
            status: self.mistake,
        }
    }
}

/// A call. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Call {
    method: Option<Method>,
    arrived_ns: u64,
    deadline_ns: Option<u64>,
    reader: MessageReader,
    /// The message under way.
    content: Vec<u8>,
    /// What has come.
    collected: Collected,
    paced: Option<Paced>,
    /// How it has ended, and why.
    status: Option<(u32, String)>,
}

impl Call {
    /// When it is due first, if the client sends nothing more.
    pub(super) fn first_ns(&self) -> Option<u64> {
        match self.status {
            Some(_) => Some(0),
            None => self.deadline_ns,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.content.capacity()
    }

    /// The fields of its trailers.
    pub(super) fn trailers(&self) -> Vec<(&'static str, String)> {
        let (status, text) = match &self.status {
            Some((status, text)) => (*status, text.as_str()),
            None => (INTERNAL, "the call was not complete"),
        };
        let mut fields = vec![("grpc-status", status.to_string())];
        if !text.is_empty() {
            fields.push(("grpc-message", encode_message(text)));
        }
        fields
    }

    pub(super) fn step(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Step {
        if self.status.is_some() {
            return Step::End;
        }
        let deadline_ns = self.deadline_ns.unwrap_or(u64::MAX);
        if now_ns >= deadline_ns {
            self.end(DEADLINE_EXCEEDED, "the deadline has passed");
            return Step::End;
        }
        match self.paced.as_mut().map(|paced| paced.step(now_ns, out)) {
            Some(Step::End) => {
                self.end(OK, "");
                Step::End
            }
            Some(Step::Until(next_ns)) => Step::Until(next_ns.min(deadline_ns)),
            Some(step) => step,
            None if deadline_ns < u64::MAX => Step::Until(deadline_ns),
            None => Step::Idle,
        }
    }

    fn end(&mut self, status: u32, text: &str) {
        self.status.get_or_insert_with(|| (status, text.to_owned()));
    }

    /// Takes bytes of the request; `ends` is whether nothing follows.
    pub(super) fn take(&mut self, bytes: &[u8], ends: bool, out: &mut Vec<u8>) -> Taken {
        let mut taken = Taken::default();
        let mut reader = std::mem::replace(&mut self.reader, MessageReader::new(0));
        let fed = reader.feed(bytes, |part| match part {
            Part::Start(_) => self.content.clear(),
            Part::Content(piece) => self.content.extend_from_slice(piece),
            Part::End if self.status.is_none() => {
                let content = std::mem::take(&mut self.content);
                taken.messages += u64::from(self.message(&content, out));
                self.content = content;
            }
            Part::End => {}
        });
        let fed = fed.and_then(|()| if ends { reader.end() } else { Ok(()) });
        self.reader = reader;
        if let Err(error) = fed {
            let status = match error {
                GrpcError::TooLong { .. } => RESOURCE_EXHAUSTED,
                GrpcError::Compressed => UNIMPLEMENTED,
                GrpcError::Flag(_) | GrpcError::Cut { .. } => INTERNAL,
            };
            self.end(status, &error.to_string());
        }
        if ends {
            taken.messages += u64::from(self.client_ended(out));
        }
        taken.is_over = self.status.is_some();
        taken.is_due = self.paced.is_some();
        taken
    }

    /// Takes a message; returns whether one was written.
    fn message(&mut self, content: &[u8], out: &mut Vec<u8>) -> bool {
        self.collected.messages += 1;
        match self.method {
            Some(Method::Unary | Method::Paced) if self.collected.messages > 1 => {
                self.end(INTERNAL, "expected one message, found more");
            }
            Some(Method::Unary | Method::Both) => {
                write(content, out);
                return true;
            }
            Some(Method::Paced) => self.begin_paced(content),
            Some(Method::Collect) => match echo::payload(content) {
                Some(payload) => self.collected.bytes += payload.len() as u64,
                None => self.end(INVALID_ARGUMENT, "expected a weigh.v1.Message"),
            },
            Some(Method::Reflection) => match reflection::answer(content) {
                Some(answer) => {
                    write(&answer, out);
                    return true;
                }
                None => self.end(INVALID_ARGUMENT, "expected a ServerReflectionRequest"),
            },
            None => {}
        }
        false
    }

    fn begin_paced(&mut self, content: &[u8]) {
        let plan = match PacedRequest::decode(content) {
            Some(request) => PacedPlan::of_call(request),
            None => Err("expected a weigh.v1.PacedRequest".to_owned()),
        };
        match plan {
            Ok(plan) => self.paced = Some(Paced::new(plan, self.arrived_ns)),
            Err(mistake) => self.end(INVALID_ARGUMENT, &mistake),
        }
    }

    /// The client sends no more; returns whether a message was written.
    fn client_ended(&mut self, out: &mut Vec<u8>) -> bool {
        let is_missing = self.collected.messages == 0;
        match self.method {
            Some(Method::Unary | Method::Paced) if is_missing => {
                self.end(INTERNAL, "expected one message, found none");
            }
            Some(Method::Paced) | None => {}
            Some(Method::Collect) if self.status.is_none() => {
                let mut content = Vec::new();
                self.collected.encode(&mut content);
                write(&content, out);
                self.end(OK, "");
                return true;
            }
            Some(_) => self.end(OK, ""),
        }
        false
    }
}

/// Appends a message with its prefix.
fn write(content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&prefix(content.len() as u32));
    out.extend_from_slice(content);
}
