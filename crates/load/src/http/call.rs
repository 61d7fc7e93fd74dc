//! A single gRPC call, blocking.

use std::time::Duration;

use net::fetch;
use net::grpc::{self, MESSAGE_BYTES_MAX, MessageReader, Part, parse_status};

use super::fetcher::{Fetcher, FetcherError};
use super::grpc::describe_status;
use crate::job::target::{Request, Target};
use crate::job::traffic::{Grpc, Traffic};
use crate::prepare::describe_fetch;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// It ended with another status than 0.
    #[error("{}", describe_status(*.status, .message))]
    Status {
        /// `grpc-status`.
        status: u32,
        /// `grpc-message`, as it came.
        message: Vec<u8>,
    },
    /// It has no answer of gRPC.
    #[error("{0}")]
    Other(String),
}

impl From<FetcherError> for CallError {
    fn from(error: FetcherError) -> Self {
        CallError::Other(error.to_string())
    }
}

/// Calls the method at a path of a target's server with one message, on a connection of its own, with
/// the fields of the target's first request. Returns the messages of the answer.
///
/// # Errors
/// When the call does not succeed within the limit.
pub fn call(
    target: &Target,
    path: &str,
    message: &[u8],
    limit: Duration,
) -> Result<Vec<Vec<u8>>, CallError> {
    let other = |why: &str| CallError::Other(why.to_owned());
    let first = target.requests.first();
    let first = first.ok_or_else(|| other("the target has no request"))?;
    let mut target = target.clone();
    target.traffic = Traffic::Grpc(Grpc::default());
    let head = memchr::memmem::find(&first.bytes, b"\r\n")
        .zip(memchr::memmem::find(&first.bytes, b"\r\n\r\n"));
    let (line, end) = head.ok_or_else(|| other("the target's request is none of HTTP"))?;
    let fields = &first.bytes[line..end + 4];
    let mut bytes = format!("POST {path} HTTP/1.1").into_bytes();
    bytes.extend_from_slice(fields);
    bytes.extend_from_slice(message);
    let request = Request {
        bytes,
        ..first.clone()
    };
    let bytes = target.wire(&request).into_owned();
    let fetcher = Fetcher::new(target.http(), target.tls.as_ref(), bytes)?;
    let mut preamble = Vec::new();
    target.preamble(0, &mut preamble);
    let most = MESSAGE_BYTES_MAX as usize;
    let answer = fetcher.fetch(&target.address, &preamble, limit, most);
    messages(&answer.map_err(|error| CallError::Other(describe_fetch(&error)))?)
}

/// The messages of an answer.
///
/// # Errors
/// When it is none of gRPC, or the status is not 0.
pub(crate) fn messages(answer: &fetch::Answer) -> Result<Vec<Vec<u8>>, CallError> {
    let in_trailers = |name: &str| answer.trailers.iter().find(|one| one.0 == name);
    let value = |name: &str| match in_trailers(name) {
        Some((_, value)) => Some(value.as_slice()),
        None => answer.field(name),
    };
    let other = |why: String| CallError::Other(why);
    let Some(status) = value("grpc-status").and_then(parse_status) else {
        let found = answer.status;
        return Err(other(format!("status {found} without a grpc-status")));
    };
    if status != grpc::OK {
        let message = value("grpc-message").unwrap_or_default().to_vec();
        return Err(CallError::Status { status, message });
    }
    let mut reader = MessageReader::new(MESSAGE_BYTES_MAX);
    let mut messages = Vec::new();
    let fed = reader.feed(&answer.body, |part| match part {
        Part::Start(_) => messages.push(Vec::new()),
        Part::Content(bytes) => messages
            .last_mut()
            .map_or((), |last| last.extend_from_slice(bytes)),
        Part::End => {}
    });
    let read = fed.and_then(|()| reader.end());
    read.map_err(|error| other(error.to_string()))?;
    Ok(messages)
}
