//! The bytes of gRPC calls.

use std::borrow::Cow;

use net::grpc::{CONTENT_TYPE, prefix, timeout};

use super::target::{Request, Target};
use super::traffic::{CallKind, Grpc, Traffic};

/// Most bytes of all messages that a call sends.
pub const CALL_BYTES_MAX: u64 = 256 << 20;

impl Target {
    /// The bytes of a request as HTTP/1.1 would send it, with what the kind of traffic adds.
    pub(crate) fn wire<'r>(&self, request: &'r Request) -> Cow<'r, [u8]> {
        match &self.traffic {
            Traffic::Grpc(grpc) => Cow::Owned(grpc.call_bytes(&request.bytes)),
            _ => Cow::Borrowed(&request.bytes),
        }
    }
}

impl Grpc {
    /// Messages that the client sends in a call.
    pub(crate) fn sent(&self) -> u32 {
        match self.call {
            CallKind::Unary | CallKind::ServerStream => 1,
            CallKind::ClientStream | CallKind::Both => self.messages.max(1),
        }
    }

    /// Messages that a call sends at its beginning.
    pub(crate) fn sent_first(&self) -> u32 {
        match self.call {
            CallKind::Both => self.sent().min(self.in_flight.max(1)),
            _ => self.sent(),
        }
    }

    /// Bytes of a message with its prefix.
    pub(crate) fn message_bytes(request: &Request) -> usize {
        prefix(0).len() + parts(&request.bytes).1.len()
    }

    /// Bytes of the messages of a call whose request is this.
    pub(crate) fn bytes(&self, request: &Request) -> u64 {
        u64::from(self.sent()) * Self::message_bytes(request) as u64
    }

    /// A request with a message as its body, made a call: with the fields of gRPC, and with the
    /// message as often as it is sent, each behind its prefix.
    fn call_bytes(&self, request: &[u8]) -> Vec<u8> {
        let (head, message) = parts(request);
        let mut bytes = Vec::with_capacity(request.len() + 200);
        let mut has_type = false;
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            has_type |= is("content-type");
            // That of the message alone.
            if !is("content-length") && !is("te") {
                bytes.extend_from_slice(line);
            }
        }
        bytes.extend_from_slice(b"TE: trailers\r\n");
        if !has_type {
            bytes.extend_from_slice(format!("Content-Type: {CONTENT_TYPE}\r\n").as_bytes());
        }
        if let Some(deadline) = self.deadline {
            bytes.extend_from_slice(format!("grpc-timeout: {}\r\n", timeout(deadline)).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        // `Job::validate` has seen that it is not longer.
        let prefix = prefix(message.len() as u32);
        for _ in 0..self.sent() {
            bytes.extend_from_slice(&prefix);
            bytes.extend_from_slice(message);
        }
        bytes
    }
}

/// The lines of a request's head, without the empty one, and its body.
fn parts(request: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memmem::find(request, b"\r\n\r\n") {
        Some(at) => (&request[..at + 2], &request[at + 4..]),
        None => (request, b""),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_call_has_the_fields_of_grpc_and_its_messages_prefixes() {
        let request = b"POST /a.B/C HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
        let grpc = Grpc {
            call: CallKind::ClientStream,
            messages: 2,
            in_flight: 1,
            deadline: Some(Duration::from_millis(50)),
        };
        let bytes = grpc.call_bytes(request);
        assert_eq!(
            bytes.escape_ascii().to_string(),
            "POST /a.B/C HTTP/1.1\\r\\nHost: x\\r\\nTE: trailers\\r\\n\
             Content-Type: application/grpc\\r\\ngrpc-timeout: 50000000n\\r\\n\\r\\n\
             \\x00\\x00\\x00\\x00\\x02hi\\x00\\x00\\x00\\x00\\x02hi"
        );
        let unary = Grpc {
            call: CallKind::Unary,
            ..grpc
        };
        assert_eq!(unary.sent(), 1);
    }
}
