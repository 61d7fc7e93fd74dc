//! What a target answers when nothing presses it: the measure for all later answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use net::fetch::{FetchError, fetch_after};
use readings::NO_PORT;

use crate::check::{BodyRule, Expect, StatusRule};
use crate::job::Target;

/// Largest body that answers are compared with byte by byte.
const REFERENCE_BYTES_MAX: usize = 64 << 20;
/// How often the target is asked.
const TRIES: usize = 3;

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
        let answer = fetch_after(
            &target.address,
            &greeting,
            &request.bytes,
            limit,
            REFERENCE_BYTES_MAX,
        )?;
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
