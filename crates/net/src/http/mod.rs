//! HTTP without I/O: [HTTP/1.1](RequestParser), [HTTP/2](h2), [HTTP/3](h3), and what goes over it,
//! [gRPC](grpc), [WebSocket](ws) and streams of events ([`SseParser`]); and one blocking request
//! ([`fetch`]).

pub mod fetch;
mod field_section;
pub mod grpc;
mod h1;
pub mod h2;
pub mod h3;
mod sse;
pub mod ws;

pub use field_section::FieldSection;
pub use h1::{
    BodySink, Framing, HEAD_BYTES_MAX, HEADERS_MAX, HttpError, INTERIM_MAX, MessageBody, Progress,
    Request, RequestParser, ResponseHead, ResponseParser, ResponsePart, content_length,
    has_empty_line, is_control, is_token, is_token_byte, list, may_have_content, response_fields,
};
pub use sse::{DATA_KEPT, SseEvent, SseParser};
