//! Buffers for received datagrams.

use std::net::{IpAddr, SocketAddr};

use super::control::{self, LONGS};
use crate::address::from_raw;
use crate::io::stamps;
use crate::os;

/// The most bytes of one receive, including joined datagrams.
const BUFFER_BYTES: usize = 64 * 1024;
/// The most receives in one call.
const MESSAGES_MAX: usize = 16;

/// Datagrams that arrived together from one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// The sender; `None` on a client's socket, which has only one.
    pub from: Option<SocketAddr>,
    /// The address that they were sent to, if the socket listens on all addresses.
    pub to: Option<IpAddr>,
    /// The kernel's timestamp, ns of CLOCK_MONOTONIC; `None` if there is none.
    pub arrived_ns: Option<u64>,
    /// The size of each datagram; the last one may be shorter.
    pub segment: usize,
    pub bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    len: usize,
    from: Option<SocketAddr>,
    said: control::Said,
}

/// Buffers for the datagrams of one call; the default has none.
#[derive(Debug, Default)]
pub struct Received {
    bytes: Box<[u8]>,
    places: Vec<Place>,
    count: usize,
}

impl Received {
    /// Buffers for this many receives per call, at most 16. Each takes all datagrams that the
    /// kernel has joined.
    pub fn new(messages: usize) -> Self {
        let messages = messages.clamp(1, MESSAGES_MAX);
        Self {
            bytes: vec![0; messages * BUFFER_BYTES].into_boxed_slice(),
            places: vec![Place::default(); messages],
            count: 0,
        }
    }

    /// What the last call received.
    pub fn arrivals(&self) -> impl Iterator<Item = Arrival<'_>> {
        let both = self.places.iter().zip(self.bytes.chunks(BUFFER_BYTES));
        both.take(self.count).map(|(place, buffer)| Arrival {
            from: place.from,
            to: place.said.to,
            arrived_ns: (place.said.arrived_ns > 0).then_some(place.said.arrived_ns),
            segment: place.said.segment.unwrap_or(place.len).max(1),
            bytes: &buffer[..place.len],
        })
    }

    pub(super) fn receive(&mut self, fd: i32, has_stamps: bool) -> Result<bool, i32> {
        let wanted = self.places.len();
        self.count = 0;
        // SAFETY: plain bytes, numbers and pointers: all zero is valid.
        let mut names: [libc::sockaddr_storage; MESSAGES_MAX] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; MESSAGES_MAX] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut pieces: [libc::iovec; MESSAGES_MAX] = unsafe { std::mem::zeroed() };
        let mut controls = [[0_u64; LONGS]; MESSAGES_MAX];
        for (at, buffer) in self.bytes.chunks_mut(BUFFER_BYTES).enumerate() {
            pieces[at].iov_base = buffer.as_mut_ptr().cast();
            pieces[at].iov_len = buffer.len();
            let head = &mut messages[at].msg_hdr;
            head.msg_name = (&raw mut names[at]).cast();
            head.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            head.msg_iov = &raw mut pieces[at];
            head.msg_iovlen = 1;
            head.msg_control = controls[at].as_mut_ptr().cast();
            head.msg_controllen = size_of_val(&controls[at]) as _;
        }
        let count = os::again(|| {
            // SAFETY: the first `wanted` messages describe buffers, names and control messages of
            // their own, which outlive the call.
            let count = unsafe {
                libc::recvmmsg(
                    fd,
                    messages.as_mut_ptr(),
                    wanted as u32,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            count as isize
        });
        let count = match count {
            Ok(count) => count,
            Err(libc::EAGAIN) => return Ok(false),
            Err(errno) => return Err(errno),
        };
        let ahead_ns = if has_stamps { stamps::ahead_ns() } else { 0 };
        for at in 0..count {
            let head = &messages[at].msg_hdr;
            let control = controls[at].map(u64::to_ne_bytes);
            let control = control.as_flattened();
            let len = (head.msg_controllen as usize).min(control.len());
            self.places[at] = Place {
                len: (messages[at].msg_len as usize).min(BUFFER_BYTES),
                from: from_raw(&names[at]),
                said: control::read(&control[..len], ahead_ns),
            };
        }
        self.count = count;
        Ok(count == wanted)
    }
}
