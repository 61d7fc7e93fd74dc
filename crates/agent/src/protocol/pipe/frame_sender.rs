//! Sends frames from a thread of its own, and heartbeats when there is nothing else to send. A
//! caller never waits for a pipe that nobody reads.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use net::os::{StartThreadError, start_thread};

use super::frame::{Kind, Side, encode};

/// The sending end of a pipe. Dropping it closes the pipe once all queued frames are sent.
pub(crate) struct FrameSender {
    frames: Sender<(Kind, Vec<u8>)>,
    done: Receiver<()>,
    /// Time between heartbeats, ms.
    interval_ms: Arc<AtomicU64>,
}

impl FrameSender {
    /// `failed` is called when the pipe can no longer take frames.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(
        output: impl Write + Send + 'static,
        from: Side,
        interval: Duration,
        failed: impl FnOnce() + Send + 'static,
    ) -> Result<Self, StartThreadError> {
        let (frames, queue) = mpsc::channel();
        let (ended, done) = mpsc::channel();
        let interval_ms = Arc::new(AtomicU64::new(interval.as_millis() as u64));
        let interval = interval_ms.clone();
        start_thread("which sends on a pipe", move || {
            if send_frames(output, from, &interval, &queue).is_err() {
                failed();
            }
            // Fails if nobody waits for it any more.
            let _ = ended.send(());
        })?;
        Ok(Self {
            frames,
            done,
            interval_ms,
        })
    }

    /// Changes the time between heartbeats.
    pub(crate) fn beat_every(&self, interval: Duration) {
        let interval_ms = interval.as_millis() as u64;
        self.interval_ms.store(interval_ms, Ordering::Relaxed);
    }

    /// Queues a frame.
    ///
    /// # Errors
    /// When the pipe has already failed.
    pub(crate) fn send(&self, kind: Kind, payload: Vec<u8>) -> io::Result<()> {
        let sent = self.frames.send((kind, payload));
        sent.map_err(|_| io::Error::other("the pipe is closed"))
    }

    /// Closes the pipe once everything is sent, or gives up after a time.
    pub(crate) fn finish(self, wait: Duration) {
        drop(self.frames);
        // Waiting for a pipe that nobody reads would never end.
        let _ = self.done.recv_timeout(wait);
    }
}

fn send_frames(
    mut output: impl Write,
    from: Side,
    interval_ms: &AtomicU64,
    queue: &Receiver<(Kind, Vec<u8>)>,
) -> io::Result<()> {
    let mut number = 0;
    loop {
        let interval = Duration::from_millis(interval_ms.load(Ordering::Relaxed));
        let (kind, payload) = match queue.recv_timeout(interval) {
            Ok(frame) => frame,
            Err(RecvTimeoutError::Timeout) => (Kind::Heartbeat, Vec::new()),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        output.write_all(&encode(from, kind, number, &payload))?;
        output.flush()?;
        number += 1;
        if matches!(kind, Kind::End | Kind::Fault) {
            return Ok(());
        }
    }
}
