//! What a target answers when nothing presses it: the measure for all later answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use net::Address;
use net::fetch::{FetchError, fetch_after};
use readings::NO_PORT;

use crate::check::{BodyRule, Expect, StatusRule};
use crate::job::{Request, Target};

/// Largest body that answers are compared with byte by byte.
const REFERENCE_BYTES_MAX: usize = 64 << 20;
/// How often the target is asked.
const TRIES: usize = 3;
/// How long to wait before it is asked again where no port is free.
const PORT_PAUSE: Duration = Duration::from_millis(50);
/// How often it is looked whether to stop while an answer is awaited.
const TURN: Duration = Duration::from_millis(20);

/// What a target answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The answers that count as good from now on.
    pub expect: Expect,
    /// Whether the bodies differed, so that content cannot be compared.
    pub varies: bool,
    /// Bytes of the first body.
    pub body_bytes: usize,
}

/// Why nothing was learned.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// No answer.
    #[error("{}", why_not_fetched(.0))]
    Fetch(#[from] FetchError),
    /// A status that is no success, and none was asked for.
    #[error("it answers with status {0}; give the expected status if that is intended")]
    Status(u16),
    /// Nobody wants to know any more.
    #[error("it was stopped")]
    Stopped,
    /// The thread that asked died.
    #[error("the thread that asked died; this is a defect of the program")]
    Thread,
}

/// Asks again where no local port is free, for as long as an answer may take: those of connections
/// that an earlier load has closed may become free, with `tcp_tw_reuse` within a second.
fn once_there_is_a_port<T>(
    ask: impl Fn() -> Result<T, FetchError>,
    limit: Duration,
) -> Result<T, FetchError> {
    let end = Instant::now() + limit;
    loop {
        match ask() {
            Err(FetchError::Io(error))
                if error.kind() == io::ErrorKind::AddrNotAvailable && Instant::now() < end =>
            {
                std::thread::sleep(PORT_PAUSE);
            }
            other => return other,
        }
    }
}

fn why_not_fetched(error: &FetchError) -> String {
    match error {
        FetchError::Io(error) => why_not_connected(error),
        other => other.to_string(),
    }
}

/// Why a connection could not be opened, and what to do where it is for want of a port.
pub(crate) fn why_not_connected(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => format!(
            "{error}: {NO_PORT}; widen net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, \
             or give several source addresses"
        ),
        _ => error.to_string(),
    }
}

/// Asks a target for one of its requests a few times and turns `BodyRule::Any` into the strictest
/// rule that the answers bear: the same bytes, or none when they differ. A rule that was given is
/// left alone.
///
/// # Errors
/// When it does not answer, or with an error status while none is expected.
///
/// # Panics
/// When the target has no request of that number.
pub fn learn(target: &Target, number: usize, limit: Duration) -> Result<Learned, LearnError> {
    let greeting = greeting(target, number);
    ask(&target.address, &greeting, &target.requests[number], limit)
}

/// As [`learn`], and does not wait for an answer any longer when `stop` is set. The thread that
/// waits is left alone then, until its time limit ends it.
///
/// # Errors
/// As [`learn`], and when it was stopped.
///
/// # Panics
/// As [`learn`].
pub fn learn_unless_stopped(
    target: &Target,
    number: usize,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Learned, LearnError> {
    if stop.load(Ordering::Relaxed) {
        return Err(LearnError::Stopped);
    }
    let (address, request) = (target.address.clone(), target.requests[number].clone());
    let greeting = greeting(target, number);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody listens any more when it was stopped.
        let _ = tell.send(ask(&address, &greeting, &request, limit));
    });
    loop {
        match told.recv_timeout(TURN) {
            Ok(learned) => return learned,
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(RecvTimeoutError::Timeout) => return Err(LearnError::Stopped),
            Err(RecvTimeoutError::Disconnected) => return Err(LearnError::Thread),
        }
    }
}

fn greeting(target: &Target, number: usize) -> Vec<u8> {
    let mut greeting = Vec::new();
    target.greeting(number as u64, &mut greeting);
    greeting
}

fn ask(
    address: &Address,
    greeting: &[u8],
    request: &Request,
    limit: Duration,
) -> Result<Learned, LearnError> {
    let mut bodies = Vec::new();
    let mut expect = request.expect.clone();
    for _ in 0..TRIES {
        let ask = || {
            fetch_after(
                address,
                greeting,
                &request.bytes,
                limit,
                REFERENCE_BYTES_MAX,
            )
        };
        let answer = once_there_is_a_port(ask, limit)?;
        if expect.status == StatusRule::Success {
            if !(200..400).contains(&answer.status) {
                return Err(LearnError::Status(answer.status));
            }
            expect.status = StatusRule::Exactly(answer.status);
        }
        bodies.push(answer.body);
    }
    let varies = bodies.windows(2).any(|pair| pair[0] != pair[1]);
    let body_bytes = bodies[0].len();
    if expect.body == BodyRule::Any && !varies && !request.is_head() {
        expect.body = BodyRule::Same(Arc::from(bodies.swap_remove(0)));
    }
    Ok(Learned {
        expect,
        varies,
        body_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_waited_for_and_nothing_else() {
        let none_free = || FetchError::Io(io::ErrorKind::AddrNotAvailable.into());
        let asked = std::cell::Cell::new(0);
        let third = || {
            asked.set(asked.get() + 1);
            match asked.get() {
                3 => Ok(()),
                _ => Err(none_free()),
            }
        };
        once_there_is_a_port(third, Duration::from_secs(60)).unwrap();
        assert_eq!(asked.get(), 3);
        let never = once_there_is_a_port(|| Err::<(), _>(none_free()), Duration::ZERO);
        let text = LearnError::from(never.unwrap_err()).to_string();
        assert!(text.contains(NO_PORT), "{text}");
        let once = std::cell::Cell::new(0);
        let refused = || {
            once.set(once.get() + 1);
            Err::<(), _>(FetchError::Io(io::ErrorKind::ConnectionRefused.into()))
        };
        let text = LearnError::from(once_there_is_a_port(refused, LIMIT).unwrap_err());
        assert!(!text.to_string().contains(NO_PORT), "{text}");
        assert_eq!(once.get(), 1);
    }

    #[test]
    fn an_answer_that_does_not_come_is_not_awaited_after_a_stop() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
        let target = Target::new(listener.local_addr().unwrap(), request, Expect::default());
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let learned = std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let asked = listener.accept();
                stop.store(true, Ordering::Relaxed);
                asked
            });
            let learned = learn_unless_stopped(&target, 0, LIMIT, &stop);
            // Until then it is open, and says nothing.
            drop(asked.join().unwrap());
            learned
        });
        assert!(matches!(learned, Err(LearnError::Stopped)), "{learned:?}");
        assert!(began.elapsed() < LIMIT / 2);
    }

    const LIMIT: Duration = Duration::from_secs(60);
}
