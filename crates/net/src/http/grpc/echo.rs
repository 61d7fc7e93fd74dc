//! The gRPC service of the built-in back end, `weigh.v1.Echo`: its schema, and its messages as
//! Protocol Buffers encode them.

use super::protobuf::{Field, fields, number, varint};

/// The schema.
pub const PROTO: &str = include_str!("echo.proto");
/// `PROTO`, compiled: an encoded `google.protobuf.FileDescriptorProto`.
pub const FILE_DESCRIPTOR: &[u8] = include_bytes!("echo.bin");
pub const FILE_NAME: &str = "weigh/v1/echo.proto";
pub const SERVICE: &str = "weigh.v1.Echo";

/// What `Paced` is asked for. Fields that are missing are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacedRequest {
    /// Messages; 0 for a stream without an end.
    pub messages: u64,
    /// From one to the next, us.
    pub every_us: u64,
    /// Bytes of the payload of each.
    pub bytes: u32,
}

/// What `Collect` answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Messages that came.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl PacedRequest {
    /// Reads it; `None` if the bytes are not such a message. Fields that it does not have are
    /// skipped.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut request = Self::default();
        fields(bytes, |number, field| match (number, field) {
            (1, Field::Varint(value)) => request.messages = value,
            (2, Field::Varint(value)) => request.every_us = value,
            (3, Field::Varint(value)) => request.bytes = value as u32,
            _ => {}
        })?;
        Some(request)
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        number(1, self.messages, out);
        number(2, self.every_us, out);
        number(3, self.bytes.into(), out);
    }
}

impl Collected {
    /// Reads it, as [`PacedRequest::decode`] does.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut collected = Self::default();
        fields(bytes, |number, field| match (number, field) {
            (1, Field::Varint(value)) => collected.messages = value,
            (2, Field::Varint(value)) => collected.bytes = value,
            _ => {}
        })?;
        Some(collected)
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        number(1, self.messages, out);
        number(2, self.bytes, out);
    }
}

/// The payload of a `Message`: empty if it has none, `None` if the bytes are not such a message.
pub fn payload(message: &[u8]) -> Option<&[u8]> {
    let mut payload = &b""[..];
    fields(message, |number, field| {
        if let (1, Field::Bytes(bytes)) = (number, field) {
            payload = bytes;
        }
    })?;
    Some(payload)
}

/// Appends what stands before the payload of a `Message`, with one of this length; it ends with its
/// payload.
pub fn begin_message(payload_bytes: u32, out: &mut Vec<u8>) {
    out.push(1 << 3 | 2);
    varint(payload_bytes.into(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written() {
        let request = PacedRequest {
            messages: u64::MAX,
            every_us: 20_000,
            bytes: 300,
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        // An unknown field of each wire type is skipped.
        bytes.extend([
            0x20, 1, 0x29, 0, 0, 0, 0, 0, 0, 0, 0, 0x32, 1, 7, 0x3d, 0, 0, 0, 0,
        ]);
        assert_eq!(PacedRequest::decode(&bytes), Some(request));
        let collected = Collected {
            messages: 3,
            bytes: 0,
        };
        bytes.clear();
        collected.encode(&mut bytes);
        assert_eq!(bytes, [8, 3]);
        assert_eq!(Collected::decode(&bytes), Some(collected));
        bytes.clear();
        begin_message(200, &mut bytes);
        bytes.extend([7; 200]);
        assert_eq!(payload(&bytes), Some(&[7; 200][..]));
        assert_eq!(payload(b""), Some(&b""[..]));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let endless = [0x80; 20];
        for bad in [&b"\x0a"[..], b"\x0a\x05ab", b"\x0b", b"\x09\0", &endless] {
            assert_eq!(payload(bad), None, "{}", bad.escape_ascii());
        }
        let longest = [0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(payload(&longest), None);
    }
}
