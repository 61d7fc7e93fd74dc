//! What must hold of gRPC's messages and fields for any bytes at all.

use net::grpc::{
    self, MessageReader, Part, decode_message, echo, encode_message, parse_status, parse_timeout,
    prefix, timeout,
};

use super::{Cuts, same_in_any_pieces};

/// Longest message that is allowed, bytes.
const MESSAGE_MAX: u32 = 300;

/// The bytes are the content of a call, and the values of its fields: the messages are the same
/// however the content is split, and what was read is written and read again.
pub fn grpc(data: &[u8], cuts: Cuts) {
    let (messages, error) = same_in_any_pieces(data, cuts, read);
    let mut written = Vec::new();
    for message in &messages {
        assert!(message.len() <= MESSAGE_MAX as usize);
        written.extend(prefix(message.len() as u32));
        written.extend(message);
        let _ = (echo::payload(message), echo::Collected::decode(message));
        if let Some(request) = echo::PacedRequest::decode(message) {
            let mut again = Vec::new();
            request.encode(&mut again);
            assert_eq!(echo::PacedRequest::decode(&again), Some(request));
        }
    }
    assert!(data.starts_with(&written));
    assert!(error.is_some() || data == written);
    assert_eq!(read(&[&written]), (messages, None));

    let text = decode_message(data);
    assert_eq!(decode_message(encode_message(&text).as_bytes()), text);
    if let Some(status) = parse_status(data) {
        assert_eq!(parse_status(status.to_string().as_bytes()), Some(status));
    }
    if let Some(limit) = parse_timeout(data) {
        assert!(parse_timeout(timeout(limit).as_bytes()) >= Some(limit));
    }
    let _ = grpc::is_content_type(data);
}

/// Whole messages, and what is wrong.
fn read(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Option<String>) {
    let mut reader = MessageReader::new(MESSAGE_MAX);
    let (mut messages, mut current) = (Vec::new(), Vec::new());
    for piece in pieces {
        let fed = reader.feed(piece, |part| match part {
            Part::Start(length) => assert!(current.is_empty() && length <= MESSAGE_MAX),
            Part::Content(bytes) => current.extend_from_slice(bytes),
            Part::End => messages.push(std::mem::take(&mut current)),
        });
        if let Err(error) = fed {
            return (messages, Some(error.to_string()));
        }
    }
    let error = reader.end().err().map(|error| error.to_string());
    (messages, error)
}
