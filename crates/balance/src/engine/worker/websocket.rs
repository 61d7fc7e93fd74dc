//! WebSockets that the balancer ends: where the next frame of the back end would begin, their clients
//! are told by a Close frame.

use net::{ConnId, Io};

use super::Worker;
use super::connection::{Connection, Role};

/// A Close frame with the status 1001, going away (RFC 6455 7.4.1).
const GOING_AWAY: [u8; 4] = [0x88, 2, 0x03, 0xe9];
const CLOSE: u8 = 8;
/// The longest head of a frame: two bytes, the length, the mask.
const HEAD_BYTES_MAX: usize = 2 + 8 + 4;

/// Where the frames end that a back end sends. Whether they are valid is their receiver's concern.
#[derive(Debug, Default)]
pub(in crate::engine) struct FrameEnds {
    /// The head of the current frame so far.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    /// Bytes of its payload that have not come.
    left: u64,
    has_closed: bool,
}

impl FrameEnds {
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = self.left.min(bytes.len() as u64);
            self.left -= count;
            bytes = &bytes[count as usize..];
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            self.head[self.head_bytes] = byte;
            self.head_bytes += 1;
            bytes = rest;
            if let Some(length) = self.payload_length() {
                self.has_closed |= self.head[0] & 0xf == CLOSE;
                (self.head_bytes, self.left) = (0, length);
            }
        }
    }

    /// Once the head is complete.
    fn payload_length(&self) -> Option<u64> {
        let (more, short) = match self.head[1] & 0x7f {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        let mask = if self.head[1] & 0x80 == 0 { 0 } else { 4 };
        if self.head_bytes < 2 || self.head_bytes < 2 + more + mask {
            return None;
        }
        let bytes = self.head[2..2 + more].iter();
        Some(bytes.fold(short, |length, byte| length << 8 | u64::from(*byte)))
    }

    /// Whether a frame can be sent here: between two frames, and before a Close.
    fn has_room(&self) -> bool {
        self.head_bytes == 0 && self.left == 0 && !self.has_closed
    }
}

impl<I: Io> Worker<I> {
    /// Ends a WebSocket with 1001 to its client, and closes the connection to the back end. False, and
    /// nothing happens, if it is none or no frame can be sent now. `cut`: the time limit that ends it.
    pub(in crate::engine) fn close_websocket(
        &mut self,
        client: ConnId,
        cut: Option<&'static str>,
    ) -> bool {
        let Some(server) = self.connection(client).peer else {
            return false;
        };
        let frames = self.connection(server).frames.as_deref();
        if !frames.is_some_and(FrameEnds::has_room) {
            return false;
        }
        let connection = self.connection(client);
        let (service, paused) = (connection.service, connection.paused);
        let Some(state) = self.settle_pair(client, cut) else {
            return false;
        };
        self.io.close(server);
        self.io.send_copy(client, &GOING_AWAY);
        *self.connection(client) = Connection {
            conn: Some(client),
            service,
            sends: 1,
            // It is resumed: a client that waits until what it sends is taken would not read the frame.
            paused,
            client: Some(state),
            ..Connection::default()
        };
        self.http_close(client);
        true
    }

    /// Tells the clients of all WebSockets that the balancer stops.
    pub(in crate::engine) fn close_websockets(&mut self) {
        for slot in 0..self.used {
            let connection = &self.connections[slot];
            let is_client = connection.role == Role::Relaying && connection.client.is_some();
            if let Some(conn) = connection.conn.filter(|_| is_client) {
                self.close_websocket(conn, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_end_where_their_heads_say() {
        let long = |first: u8, length: usize| {
            let mut frame = vec![first];
            match length {
                ..126 => frame.push(length as u8),
                126..65_536 => {
                    frame.push(126);
                    frame.extend((length as u16).to_be_bytes());
                }
                _ => {
                    frame.push(127);
                    frame.extend((length as u64).to_be_bytes());
                }
            }
            // Payload that looks like a Close frame.
            frame.extend((0..length).map(|at| GOING_AWAY[at % 4]));
            frame
        };
        let masked = [0x81, 0x82, 1, 2, 3, 4, 5, 6];
        for frame in [
            long(0x81, 0),
            long(0x01, 5),
            long(0x82, 125),
            long(0x82, 126),
            long(0x80, 65_535),
            long(0x82, 70_000),
            long(0x89, 3),
            masked.to_vec(),
        ] {
            for size in [1, 2, 3, 7, 1000, frame.len()] {
                let mut ends = FrameEnds::default();
                assert!(ends.has_room());
                let (body, last) = frame.split_at(frame.len() - 1);
                for piece in body.chunks(size) {
                    ends.pass(piece);
                    assert!(!ends.has_room(), "{} {size}", frame.len());
                }
                ends.pass(last);
                assert!(ends.has_room(), "{} {size}", frame.len());
                // Two in one piece.
                ends.pass(&[&frame[..], &frame[..]].concat());
                assert!(ends.has_room());
                ends.pass(&GOING_AWAY);
                assert!(!ends.has_room(), "after a Close nothing follows");
            }
        }
    }
}
