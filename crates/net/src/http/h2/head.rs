//! The header of a frame, RFC 9113 section 4.1, and what stands for what; *head* in this module's names, since HEADERS is a frame.

/// The connection preface: what a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of a frame header.
pub const FRAME_HEAD: usize = 9;

/// Identifiers of SETTINGS, RFC 9113 section 6.5.2.
pub mod settings {
    /// Bytes of the dynamic table of the peer's HPACK encoder; 4096 unless announced.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the server may push, 0 or 1.
    pub const ENABLE_PUSH: u16 = 2;
    /// Most streams that the peer may have open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Initial flow-control window of each stream; 65535 unless announced.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Most bytes of a frame's payload; 16384 unless announced.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// Most bytes of a decoded header list, 32 added per field.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    /// Whether the server takes extended CONNECT, 0 or 1 (RFC 8441 section 3).
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

pub(super) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

pub(super) mod flag {
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Clears the reserved bit of a stream identifier or an increment.
pub(super) const LOW_31: u32 = 0x7fff_ffff;
/// The length field has 24 bits.
pub(super) const LENGTH_MAX: usize = 0xff_ffff;

#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub length: u32,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    #[inline]
    pub fn of(bytes: &[u8; FRAME_HEAD]) -> Head {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Head {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & LOW_31,
        }
    }

    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
