//! Numbers of frame types, stream types and settings.

/// Frame types, RFC 9114 section 7.2.
pub(crate) mod kind {
    pub const DATA: u64 = 0;
    pub const HEADERS: u64 = 1;
    pub const CANCEL_PUSH: u64 = 3;
    pub const SETTINGS: u64 = 4;
    pub const PUSH_PROMISE: u64 = 5;
    pub const GOAWAY: u64 = 7;
    pub const MAX_PUSH_ID: u64 = 0xd;

    /// Whether it is a frame type of HTTP/2 that HTTP/3 forbids.
    pub fn is_reserved(kind: u64) -> bool {
        matches!(kind, 2 | 6 | 8 | 9)
    }
}

/// Types of unidirectional streams: RFC 9114 section 6.2 and RFC 9204 section 4.2.
pub mod stream {
    /// The control stream; each side has one.
    pub const CONTROL: u64 = 0;
    /// A push stream of a server.
    pub const PUSH: u64 = 1;
    /// Instructions of a QPACK encoder.
    pub const QPACK_ENCODER: u64 = 2;
    /// Instructions of a QPACK decoder.
    pub const QPACK_DECODER: u64 = 3;
}

/// Identifiers of SETTINGS, RFC 9114 section 7.2.4.1 and RFC 9204 section 5.
pub mod settings {
    /// The most bytes of a decoded field section, counting 32 more per field.
    pub const MAX_FIELD_SECTION_SIZE: u64 = 6;

    /// Whether it is a setting of HTTP/2 that HTTP/3 forbids.
    pub(crate) fn is_reserved(id: u64) -> bool {
        matches!(id, 2..=5)
    }
}
