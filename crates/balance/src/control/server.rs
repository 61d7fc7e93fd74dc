//! A small threaded server for occasional requests.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::wait::{Watch, wait};

use crate::engine::waker::Waker;

/// Concurrent connections; more are closed.
const IN_FLIGHT_MAX: usize = 8;
/// Pause after an error of accept or poll.
const PAUSE: Duration = Duration::from_millis(50);
/// How long dropping waits for requests in flight.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);

/// Serves until it is dropped.
pub(super) struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    waker: Waker,
    in_flight: AtomicUsize,
}

impl Server {
    pub fn unix(
        listener: UnixListener,
        answer: impl Fn(UnixStream) + Send + Sync + 'static,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let accept = |listener: &UnixListener| Ok(listener.accept()?.0);
        Server::start(listener, accept, answer)
    }

    pub fn tcp(
        listener: TcpListener,
        answer: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let accept = |listener: &TcpListener| Ok(listener.accept()?.0);
        Server::start(listener, accept, answer)
    }

    fn start<L: AsFd + Send + 'static, S: Send + 'static>(
        listener: L,
        accept: impl Fn(&L) -> io::Result<S> + Send + 'static,
        answer: impl Fn(S) + Send + Sync + 'static,
    ) -> io::Result<Server> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            waker: Waker::new(),
            in_flight: AtomicUsize::new(0),
        });
        let (own, answer) = (shared.clone(), Arc::new(answer));
        let thread = std::thread::Builder::new().spawn(move || {
            while !own.stop.load(Ordering::Acquire) {
                own.sleep(listener.as_fd());
                while let Ok(stream) = accept(&listener) {
                    own.answer(stream, &answer);
                }
            }
        })?;
        Ok(Server {
            shared,
            thread: Some(thread),
        })
    }
}

impl Shared {
    fn sleep(&self, listener: BorrowedFd<'_>) {
        let mut watches = vec![Watch::read(listener)];
        let bell = self.waker.descriptor();
        watches.extend(bell.map(Watch::read));
        let limit = bell.is_none().then_some(PAUSE);
        if wait(&mut watches, limit).is_err() {
            std::thread::sleep(PAUSE);
        }
        self.waker.drain();
    }

    fn answer<S: Send + 'static>(
        self: &Arc<Self>,
        stream: S,
        answer: &Arc<impl Fn(S) + Send + Sync + 'static>,
    ) {
        if self.in_flight.fetch_add(1, Ordering::AcqRel) >= IN_FLIGHT_MAX {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let (counted, answer) = (InFlight(self.clone()), answer.clone());
        let started = std::thread::Builder::new().spawn(move || {
            answer(stream);
            drop(counted);
        });
        // If the thread did not start, this closes the connection.
        drop(started);
    }
}

/// Decrements the count even if answering panics or the thread did not start.
struct InFlight(Arc<Shared>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let end = Instant::now() + SHUTDOWN_LIMIT;
        while self.shared.in_flight.load(Ordering::Acquire) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
