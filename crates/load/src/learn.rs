//! What a target answers when nothing presses it: the measure for all later answers.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::fetch::{FetchError, fetch_after};
use readings::NO_PORT;

use crate::check::{BodyRule, Expect, StatusRule};
use crate::job::Target;

/// Largest body that answers are compared with byte by byte.
const REFERENCE_BYTES_MAX: usize = 64 << 20;
/// How often the target is asked.
const TRIES: usize = 3;
/// How long to wait before it is asked again where no port is free.
const PORT_PAUSE: Duration = Duration::from_millis(50);

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
    let request = &target.requests[number];
    let mut greeting = Vec::new();
    target.greeting(number as u64, &mut greeting);
    let mut bodies = Vec::new();
    let mut expect = request.expect.clone();
    for _ in 0..TRIES {
        let ask = || {
            fetch_after(
                &target.address,
                &greeting,
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

    const LIMIT: Duration = Duration::from_secs(60);
}
