//! The frames that have come from an agent and wait for this program.

use std::io::{BufReader, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use net::os::{StartThreadError, start_thread};

use crate::protocol::pipe::{FrameReader, Incoming, Liveness, PipeFault, Side};

/// The longest frame. A load's result may have reference bodies of 64 MiB each, in base64.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 20;
/// The most frames that wait; then the agent has to wait before it sends more.
pub(crate) const ANSWERS_MAX: usize = 64;
/// The most bytes that wait, unless a single frame has more.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// A frame, or the fault after which nothing more comes.
type Frame = Result<Incoming, PipeFault>;

/// The bytes of all frames that wait.
#[derive(Debug, Default)]
struct WaitingBytes {
    sum: Mutex<usize>,
    has_shrunk: Condvar,
}

impl WaitingBytes {
    /// Waits until there is room for so many more.
    fn add(self: &Arc<Self>, bytes: usize) -> Share {
        let is_full = |sum: &mut usize| *sum > 0 && *sum + bytes > WAITING_BYTES_MAX;
        let sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.has_shrunk.wait_while(sum, is_full);
        *free.unwrap_or_else(PoisonError::into_inner) += bytes;
        Share {
            of: self.clone(),
            bytes,
        }
    }
}

/// What one frame adds, until it is taken.
struct Share {
    of: Arc<WaitingBytes>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let sum = self.of.sum.lock();
        *sum.unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.of.has_shrunk.notify_one();
    }
}

/// The frames of an agent, bounded in number and bytes.
pub(crate) struct FrameQueue(Receiver<(Frame, Share)>);

impl FrameQueue {
    /// Reads frames on a thread of its own. Heartbeats are counted, not queued. After a fault nothing
    /// more comes.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn read(
        output: impl Read + Send + 'static,
        liveness: Arc<Liveness>,
    ) -> Result<Self, StartThreadError> {
        let (sender, receiver) = mpsc::sync_channel(ANSWERS_MAX);
        let waiting = Arc::new(WaitingBytes::default());
        start_thread("which reads from an agent", move || {
            let input = BufReader::new(output);
            let mut frames = FrameReader::new(input, Side::Agent, ANSWER_BYTES_MAX);
            loop {
                let frame = frames.read();
                liveness.frame_came();
                if frame == Ok(Incoming::Heartbeat) {
                    continue;
                }
                if frame == Ok(Incoming::End) {
                    liveness.end_came();
                }
                let is_last = frame.is_err();
                liveness.hold_up(true);
                let share = waiting.add(frame.as_ref().map_or(0, Incoming::bytes));
                let sent = sender.send((frame, share));
                liveness.hold_up(false);
                if sent.is_err() || is_last {
                    break;
                }
            }
        })?;
        Ok(Self(receiver))
    }

    /// The next frame, if one comes in `wait`. Where nothing more comes, that is an end.
    pub(crate) fn next_within(&self, wait: Duration) -> Option<Frame> {
        match self.0.recv_timeout(wait) {
            Ok((frame, _)) => Some(frame),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(PipeFault::Ended { status: None })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::protocol::pipe::{Kind, encode};

    /// Frames without end, and how many bytes of them were read.
    struct Endless {
        number: u32,
        rest: Vec<u8>,
        read: Arc<AtomicUsize>,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.rest.is_empty() {
                // The first one is a greeting.
                let bytes = if self.number == 0 { 1 } else { 4 << 20 };
                self.rest = encode(Side::Agent, Kind::Message, self.number, &vec![b'x'; bytes]);
                self.number += 1;
            }
            let count = buffer.len().min(self.rest.len());
            buffer[..count].copy_from_slice(&self.rest[..count]);
            self.rest.drain(..count);
            self.read.fetch_add(count, Ordering::Relaxed);
            Ok(count)
        }
    }

    #[test]
    fn the_bytes_that_wait_are_bounded() {
        let read = Arc::new(AtomicUsize::new(0));
        let output = BufReader::with_capacity(
            1 << 20,
            Endless {
                number: 0,
                rest: vec![],
                read: read.clone(),
            },
        );
        let frames = FrameQueue::read(output, Arc::default()).unwrap();
        let taken = frames.next_within(Duration::from_secs(10));
        assert!(matches!(taken, Some(Ok(Incoming::Message(_)))));
        let mut before = 0;
        while before != read.load(Ordering::Relaxed) {
            before = read.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(300));
        }
        // Those that wait, the one that has no room, and what is buffered of the next.
        assert!(before < WAITING_BYTES_MAX + (6 << 20), "{before}");
        assert!(matches!(frames.next_within(Duration::ZERO), Some(Ok(_))));
    }
}
