//! netlink(7) messages, with the numbers of `linux/netlink.h`.

pub mod netem;
pub mod route;
pub(crate) mod socket_diag;
pub(crate) mod taskstats;
pub(crate) mod traffic_control;

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;

use socket2::{Domain, Protocol, Socket, Type};

const AF_NETLINK: i32 = 16;
const SOCK_RAW: i32 = 3;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
/// Of a request to create something that is not there yet.
pub(crate) const NEW: u16 = 0x200 | 0x400;

pub(crate) const AF_INET: u8 = 2;
pub(crate) const AF_INET6: u8 = 10;

/// Length, kind, flags, sequence number and sender.
const HEADER: usize = 16;

/// A request; attributes are added at its end.
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request that is answered by one message.
    pub fn question(kind: u16, header: &[u8]) -> Self {
        Self::new(kind, 0, header)
    }

    /// A request that the kernel acknowledges or refuses.
    pub fn acknowledged(kind: u16, flags: u16, header: &[u8]) -> Self {
        Self::new(kind, flags | NLM_F_ACK, header)
    }

    /// A request for a list, which comes in any number of messages.
    pub fn dump(kind: u16, header: &[u8]) -> Self {
        Self::new(kind, NLM_F_DUMP, header)
    }

    fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | NLM_F_REQUEST).to_ne_bytes());
        // Sequence number and sender; each socket has one request under way.
        bytes.extend([0; 8]);
        bytes.extend(header);
        Self { bytes }
    }

    /// Appends an attribute.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = (4 + value.len()) as u16;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a zero-terminated text.
    pub fn name(&mut self, kind: u16, name: &str) -> &mut Self {
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Appends a 32-bit number.
    pub fn number(&mut self, kind: u16, number: u32) -> &mut Self {
        self.attribute(kind, &number.to_ne_bytes())
    }

    /// Appends an attribute that `fill` adds others to.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let at = self.bytes.len();
        self.attribute(kind, &[]);
        fill(self);
        let length = (self.bytes.len() - at) as u16;
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// Writes the length into the header and returns the message.
    pub fn finish(&mut self) -> &[u8] {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        &self.bytes
    }
}

/// A socket to a part of the kernel, in the network namespace that it was opened in.
pub struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket of a netlink family.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(protocol: i32) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::from(AF_NETLINK),
            Type::from(SOCK_RAW),
            Some(Protocol::from(protocol)),
        )?;
        Ok(Self {
            socket,
            buffer: vec![0; 32 * 1024],
        })
    }

    pub(crate) fn send(&mut self, message: &mut Message) -> io::Result<()> {
        (&self.socket).write_all(message.finish())
    }

    /// Sends a request that is to be acknowledged; returns the body of the first answer that is
    /// no acknowledgement.
    pub fn request(&mut self, mut message: Message) -> io::Result<Vec<u8>> {
        self.send(&mut message)?;
        let mut answer = Vec::new();
        loop {
            let length = self.receive()?;
            for (kind, body) in messages(&self.buffer[..length]) {
                if kind == NLMSG_ERROR {
                    return refusal(body).map_or(Ok(answer), Err);
                }
                if answer.is_empty() {
                    answer = body.to_vec();
                }
            }
        }
    }

    /// From now on, queues messages that the kernel sends by itself until they are
    /// [drained](Self::drain), in a buffer of at least this many bytes where that is allowed.
    pub fn listen(&mut self, bytes: usize) -> io::Result<()> {
        if net::os::force_receive_buffer(self.socket.as_raw_fd(), bytes).is_err() {
            self.socket.set_recv_buffer_size(bytes)?;
        }
        self.socket.set_nonblocking(true)
    }

    /// Takes all queued messages. Some may have been lost because the queue was full.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        const ENOBUFS: i32 = 105;
        loop {
            match self.receive() {
                Ok(length) => {
                    let queued = messages(&self.buffer[..length]);
                    queued.for_each(|(_, body)| take(body));
                }
                // Reported once after messages were lost; the others are still queued.
                Err(error) if error.raw_os_error() == Some(ENOBUFS) => {}
                Err(_) => return,
            }
        }
    }

    /// Asks a question; returns the body of its answer.
    pub fn ask(&mut self, question: &mut Message) -> io::Result<&[u8]> {
        self.send(question)?;
        let length = self.receive()?;
        let none = || io::Error::other("the kernel's answer has no body");
        let (kind, body) = messages(&self.buffer[..length]).next().ok_or_else(none)?;
        match kind {
            NLMSG_ERROR => Err(refusal(body).unwrap_or_else(none)),
            _ => Ok(body),
        }
    }

    /// Asks for a list; `take` gets the body of each of its messages.
    pub fn list(&mut self, request: &mut Message, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.send(request)?;
        loop {
            let length = self.receive()?;
            for (kind, body) in messages(&self.buffer[..length]) {
                match kind {
                    // The message that ends a list can report an error, too.
                    NLMSG_DONE | NLMSG_ERROR => return refusal(body).map_or(Ok(()), Err),
                    _ => take(body),
                }
            }
        }
    }

    /// Fills the buffer with the next message; returns its length.
    fn receive(&mut self) -> io::Result<usize> {
        loop {
            match (&self.socket).read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// The error in the body of an `NLMSG_ERROR` or `NLMSG_DONE`; `None` if there is none.
fn refusal(body: &[u8]) -> Option<io::Error> {
    let errno = body.get(..4).map_or(0, |_| -(u32_at(body, 0) as i32));
    (errno != 0).then(|| io::Error::from_raw_os_error(errno))
}

/// The messages in what was received: kind and body.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let size = u32_at(rest.get(..HEADER)?, 0) as usize;
        let kind = u16::from_ne_bytes([rest[4], rest[5]]);
        let body = rest.get(HEADER..size)?;
        rest = &rest[size.next_multiple_of(4).min(rest.len())..];
        Some((kind, body))
    })
}

/// The attributes in a body: kind and value.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let header = rest.get(..4)?;
        let size = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        // The two highest bits are flags.
        let kind = u16::from_ne_bytes([header[2], header[3]]) & 0x3fff;
        let value = rest.get(4..size)?;
        rest = &rest[size.next_multiple_of(4).min(rest.len())..];
        Some((kind, value))
    })
}

/// The value of the first attribute of a kind.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(one, value)| (one == kind).then_some(value))
}

/// The number that begins at a byte.
///
/// # Panics
///
/// Where the bytes end before it does.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A zero-terminated text.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written_and_no_further() {
        let mut message = Message::question(7, &[]);
        message.name(1, "ab").nest(2, |inner| {
            inner.number(3, 9);
        });
        let bytes = message.finish();
        let (kind, body) = messages(bytes).next().unwrap();
        let read: Vec<_> = attributes(body).collect();
        let nine = [8, 0, 3, 0, 9, 0, 0, 0];
        assert_eq!(
            (kind, read.as_slice()),
            (7, [(1, &b"ab\0"[..]), (2, &nine[..])].as_slice())
        );
        // Cut off anywhere, what is whole is read and nothing else.
        for end in 0..body.len() {
            assert!(attributes(&body[..end]).count() <= 1);
            assert_eq!(messages(&bytes[..end]).count(), 0);
        }
        assert_eq!(
            attributes(&[0, 0, 1, 0]).count(),
            0,
            "shorter than its head"
        );
    }
}
