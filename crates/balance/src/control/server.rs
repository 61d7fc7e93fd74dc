//! A small threaded server for occasional requests.

use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::os::{Waker, start_thread};
use net::wait::{Watch, wait};

/// Concurrent connections. With so many, a new one takes the place of an idle one.
const IN_FLIGHT_MAX: usize = 8;
/// How long a connection may have its place without a complete request while others wait for it.
const REQUEST_GRACE: Duration = Duration::from_millis(20);
/// How long a client of TCP may take an answer while others wait for its place.
const ANSWER_GRACE: Duration = Duration::from_secs(1);
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
    threads: AtomicUsize,
    /// The connections, the oldest first.
    places: Mutex<Vec<Place>>,
    /// A place became free, or it is stopped.
    freed: Condvar,
    next: AtomicU64,
    /// How long an answer may take while others wait; `None`: it is never cut off.
    answer_grace: Option<Duration>,
}

/// A connection.
struct Place {
    number: u64,
    /// Ends the connection, so that its thread does not wait for it any longer.
    end: Box<dyn Fn() + Send>,
    /// When it came, or its request was complete.
    since: Instant,
    answered: bool,
}

/// A connection's socket.
pub(super) trait Stream: Read + Send + Sized + 'static {
    fn duplicate(&self) -> io::Result<Self>;
    fn limit_reads(&self, limit: Duration) -> io::Result<()>;
    fn end(&self);
}

macro_rules! streams {
    ($($socket:ty)*) => {$(
        impl Stream for $socket {
            fn duplicate(&self) -> io::Result<Self> {
                self.try_clone()
            }

            fn limit_reads(&self, limit: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(limit))
            }

            fn end(&self) {
                let _ = self.shutdown(Shutdown::Both);
            }
        }
    )*};
}

streams!(TcpStream UnixStream);

/// Reads as long as what has come is partial; less if the stream ends.
pub(super) fn read_while<S: Stream>(
    stream: &mut S,
    limit: Duration,
    is_partial: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let end = Instant::now() + limit;
    let mut all = Vec::new();
    let mut bytes = [0; 1024];
    while is_partial(&all) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.limit_reads(left)?;
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(n) => all.extend_from_slice(&bytes[..n]),
            // A signal interrupts a read that has a time limit, even with SA_RESTART: signal(7).
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

impl Server {
    /// Serves requests that each have to be carried out: no answer is cut off.
    pub fn unix<R>(
        listener: UnixListener,
        read: impl Fn(&mut UnixStream) -> Option<R> + Send + Sync + 'static,
        answer: impl Fn(UnixStream, R) + Send + Sync + 'static,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let accept = |listener: &UnixListener| Ok(listener.accept()?.0);
        Server::start(listener, None, accept, (read, answer))
    }

    pub fn tcp<R>(
        listener: TcpListener,
        read: impl Fn(&mut TcpStream) -> Option<R> + Send + Sync + 'static,
        answer: impl Fn(TcpStream, R) + Send + Sync + 'static,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let accept = |listener: &TcpListener| Ok(listener.accept()?.0);
        Server::start(listener, Some(ANSWER_GRACE), accept, (read, answer))
    }

    fn start<L: AsFd + Send + 'static, S: Stream, R>(
        listener: L,
        answer_grace: Option<Duration>,
        accept: impl Fn(&L) -> io::Result<S> + Send + 'static,
        (read, answer): (
            impl Fn(&mut S) -> Option<R> + Send + Sync + 'static,
            impl Fn(S, R) + Send + Sync + 'static,
        ),
    ) -> io::Result<Server> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            waker: Waker::new(),
            threads: AtomicUsize::new(0),
            places: Mutex::new(Vec::new()),
            freed: Condvar::new(),
            next: AtomicU64::new(0),
            answer_grace,
        });
        let (own, serve) = (shared.clone(), Arc::new((read, answer)));
        let thread = start_thread("which serves control connections", move || {
            while !own.stop.load(Ordering::Acquire) {
                own.sleep(listener.as_fd());
                while let Ok(stream) = accept(&listener) {
                    let Some(place) = own.place(&stream) else {
                        continue;
                    };
                    let serve = serve.clone();
                    // If the thread does not start, this closes the connection.
                    let _ = start_thread("of a control connection", move || {
                        let mut stream = stream;
                        if let Some(request) = (serve.0)(&mut stream)
                            && place.begins_answer()
                        {
                            (serve.1)(stream, request);
                        }
                    });
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

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a connection has its place even if others wait for it; `None`: until its end.
    fn grace(&self, place: &Place) -> Option<Duration> {
        match place.answered {
            true => self.answer_grace,
            false => Some(REQUEST_GRACE),
        }
    }

    /// A place for a connection. If there is none, the connection whose time is over first is ended
    /// once it is over; meanwhile others wait to be accepted. `None` if all have to be answered.
    fn place<S: Stream>(self: &Arc<Self>, stream: &S) -> Option<InFlight> {
        let other = stream.duplicate().ok()?;
        let mut places = self.places();
        while places.len() >= IN_FLIGHT_MAX {
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            let ends = |place: &Place| Some(place.since + self.grace(place)?);
            let numbered = places.iter().enumerate();
            let (end, first) = numbered
                .filter_map(|(at, place)| Some((ends(place)?, at)))
                .min()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                (places.remove(first).end)();
            } else {
                let waited = self.freed.wait_timeout(places, left);
                places = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        places.push(Place {
            number,
            end: Box::new(move || other.end()),
            since: Instant::now(),
            answered: false,
        });
        self.threads.fetch_add(1, Ordering::AcqRel);
        let shared = self.clone();
        Some(InFlight { shared, number })
    }
}

/// A connection's place, which becomes free even if answering panics or the thread did not start.
struct InFlight {
    shared: Arc<Shared>,
    number: u64,
}

impl InFlight {
    /// Whether the connection still has its place, now that its request is complete. The request of
    /// one that was ended may be cut off.
    fn begins_answer(&self) -> bool {
        let mut places = self.shared.places();
        let own = places.iter_mut().find(|place| place.number == self.number);
        let Some(own) = own else {
            return false;
        };
        (own.answered, own.since) = (true, Instant::now());
        true
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.shared
            .places()
            .retain(|place| place.number != self.number);
        self.shared.freed.notify_one();
        self.shared.threads.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        {
            // While it is locked, so that no one begins to wait in between.
            let _places = self.shared.places();
            self.shared.stop.store(true, Ordering::Release);
        }
        self.shared.freed.notify_all();
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let end = Instant::now() + SHUTDOWN_LIMIT;
        while self.shared.threads.load(Ordering::Acquire) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::SocketAddr;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Answers each byte with the same; `n` never.
    fn serve() -> (Server, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let read = |stream: &mut TcpStream| {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            Some(byte)
        };
        let server = Server::tcp(listener, read, |mut stream, byte: [u8; 1]| {
            match byte {
                // Until it is ended.
                [b'n'] => drop(stream.read(&mut [0])),
                byte => drop(stream.write_all(&byte)),
            }
        });
        (server.unwrap(), address)
    }

    fn connected(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    fn asked(address: SocketAddr) -> bool {
        let mut stream = connected(address);
        let mut byte = [0];
        stream.write_all(b"a").is_ok() && stream.read_exact(&mut byte).is_ok() && byte == *b"a"
    }

    #[test]
    fn idle_connections_make_room_for_those_with_a_request() {
        let (server, address) = serve();
        let idle: Vec<TcpStream> = (0..IN_FLIGHT_MAX).map(|_| connected(address)).collect();
        for _ in 0..3 {
            assert!(asked(address));
        }
        // The oldest was ended, and none that is younger than those that asked.
        assert_eq!((&idle[0]).read(&mut [0]).unwrap(), 0);
        (&idle[IN_FLIGHT_MAX - 1]).write_all(b"b").unwrap();
        let mut byte = [0];
        (&idle[IN_FLIGHT_MAX - 1]).read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"b");
        drop(server);
    }

    #[test]
    fn clients_that_do_not_take_their_answers_make_room() {
        let (_server, address) = serve();
        let mut slow: Vec<TcpStream> = (0..IN_FLIGHT_MAX).map(|_| connected(address)).collect();
        for stream in &mut slow {
            stream.write_all(b"n").unwrap();
        }
        assert!(asked(address));
    }

    #[test]
    fn idle_clients_that_connect_again_keep_none_from_its_answer() {
        let (_server, address) = serve();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 * IN_FLIGHT_MAX {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let mut stream = TcpStream::connect(address).unwrap();
                        stream.set_read_timeout(Some(ANSWER_GRACE)).unwrap();
                        let _ = stream.read(&mut [0]);
                    }
                });
            }
            let answers = (0..20).filter(|_| asked(address)).count();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(answers, 20);
        });
    }

    #[test]
    fn a_request_of_the_control_socket_is_carried_out() {
        let path = std::env::temp_dir().join(format!("weigh-server-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let carried_out = Arc::new(AtomicUsize::new(0));
        let counted = carried_out.clone();
        let read = |stream: &mut UnixStream| {
            let mut line = Vec::new();
            // As a request may, it ends with the stream.
            stream.take(2).read_to_end(&mut line).ok()?;
            Some(line)
        };
        let server = Server::unix(listener, read, move |_, line: Vec<u8>| {
            assert_eq!(line, b"ab");
            std::thread::sleep(5 * REQUEST_GRACE);
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let connected = || UnixStream::connect(&path).unwrap();
        let half: Vec<UnixStream> = (0..2).map(|_| connected()).collect();
        for mut stream in &half {
            stream.write_all(b"a").unwrap();
        }
        let whole: Vec<UnixStream> = (0..IN_FLIGHT_MAX).map(|_| connected()).collect();
        for mut stream in &whole {
            stream.write_all(b"ab").unwrap();
        }
        let end = Instant::now() + LIMIT;
        while carried_out.load(Ordering::Relaxed) < IN_FLIGHT_MAX && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(carried_out.load(Ordering::Relaxed), IN_FLIGHT_MAX);
        drop(server);
        std::fs::remove_file(&path).unwrap();
    }
}
