//! What targets answer before a load: the reference for all later answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use net::Address;
use net::fetch::FetchError;
use readings::NO_PORT;

use crate::http::{self, CallError, Fetcher, FetcherError};
use crate::job::Job;
use crate::job::expect::{BodyRule, Expect, StatusRule};
use crate::job::target::{Request, Target};
use crate::job::traffic::Traffic;

/// Largest body that answers are compared with byte by byte.
const REFERENCE_BYTES_MAX: usize = 64 << 20;
/// Answers that are fetched of each request.
const FETCHES: usize = 3;
/// Pause before the next attempt when no local port is free, or a rate limit has refused.
const PAUSE: Duration = Duration::from_millis(50);
/// Interval at which the stop flag is read while an answer is awaited.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// A request with different bodies from answer to answer, so that content is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Varying {
    /// Number of the target.
    pub target: usize,
    /// Number of the request.
    pub request: usize,
}

/// A target that cannot be loaded, and why.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {request} {cause}")]
pub struct PrepareError {
    /// The target.
    pub address: Address,
    /// The name of the request.
    pub request: String,
    /// Why.
    #[source]
    pub cause: ReferenceError,
}

/// Why there is no reference for a request's answers.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// No answer.
    #[error("does not answer: {}", describe_fetch(.0))]
    Fetch(#[from] FetchError),
    /// The request cannot be sent.
    #[error("cannot be sent: {0}")]
    Fetcher(#[from] FetcherError),
    /// An error status that is not expected.
    #[error(
        "answers with status {0}, which is no success; give --expect-status {0} if that is intended"
    )]
    Status(u16),
    /// A gRPC call that does not succeed.
    #[error("does not succeed: {0}")]
    Call(#[from] CallError),
    /// Bodies that should be the same differ.
    #[error(
        "should have the same body each time, but its bodies differ; if that is intended, set \
         expect.body = \"varies\" (weigh compare: --expect-body varies)"
    )]
    Varies,
    /// The stop flag was set.
    #[error("was not answered before the load was stopped")]
    Stopped,
    /// The thread that fetches cannot be started.
    #[error("was not sent: {0}")]
    NoThread(#[from] net::os::StartThreadError),
    /// The thread that fetched died.
    #[error("was sent by a thread that panicked; this is a defect of the program")]
    Thread,
}

/// Tries again while no local port is free, or the answer is a refusal, for as long as an answer may
/// take: ports of connections that an earlier load closed become free, with `tcp_tw_reuse` within a
/// second.
fn retry<T>(
    ask: impl Fn() -> Result<T, FetchError>,
    is_refusal: impl Fn(&T) -> bool,
    limit: Duration,
) -> Result<T, FetchError> {
    let end = Instant::now() + limit;
    loop {
        let answer = ask();
        let is_transient = match &answer {
            Err(FetchError::Io(error)) => error.kind() == io::ErrorKind::AddrNotAvailable,
            Err(_) => false,
            Ok(answer) => is_refusal(answer),
        };
        if !is_transient || Instant::now() >= end {
            return answer;
        }
        std::thread::sleep(PAUSE);
    }
}

pub(crate) fn describe_fetch(error: &FetchError) -> String {
    match error {
        FetchError::Io(error) => describe_connect_error(error),
        other => other.to_string(),
    }
}

/// Why a connection could not be opened; with a remedy if no local port was free.
pub(crate) fn describe_connect_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => format!(
            "{error}: {NO_PORT}; widen net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, \
             or give several source addresses"
        ),
        _ => error.to_string(),
    }
}

/// Fetches each request of a job a few times where its rules depend on what the target answers, and
/// fills these rules in: the status, and the body or `Any`. [`run`](crate::run()) does it for jobs
/// that are not prepared. What may last without end has no reference, nor have requests whose answers are
/// looked into. Returns the requests whose bodies differ and are allowed to.
///
/// If `stop` is set, the thread that waits for an answer is abandoned; its time limit ends it.
///
/// # Errors
/// When a target does not answer, answers with an unexpected error status, or sends different bodies
/// where they should be the same; and when `stop` is set.
pub fn prepare(job: &mut Job, stop: &AtomicBool) -> Result<Vec<Varying>, PrepareError> {
    let timeout = job.timeout;
    let mut varying = Vec::new();
    for (number, target) in job.targets.iter_mut().enumerate() {
        let has_users = matches!(target.traffic, Traffic::Users(_));
        if has_users {
            // A step out of its session, such as a login, would not be answered as in one.
            for request in &mut target.requests {
                if matches!(request.expect.body, BodyRule::Same | BodyRule::Auto) {
                    request.expect.body = BodyRule::Any;
                }
            }
            continue;
        }
        if target.traffic.may_last() {
            // What lasts has no body to compare with, and may have no end to wait for.
            for request in &mut target.requests {
                request.expect.body = BodyRule::Any;
            }
            continue;
        }
        for request in 0..target.requests.len() {
            if target.template(request).is_some() {
                // Each differs, so none is the reference for the others.
                let expect = &mut target.requests[request].expect;
                if matches!(expect.body, BodyRule::Same | BodyRule::Auto) {
                    expect.body = BodyRule::Any;
                }
                continue;
            }
            if !target.requests[request].expect.needs_reference() {
                continue;
            }
            let (expect, varies) =
                fetch_unless_stopped(target, request, timeout, stop).map_err(|cause| {
                    PrepareError {
                        address: target.address.clone(),
                        request: target.requests[request].name.clone(),
                        cause,
                    }
                })?;
            target.requests[request].expect = expect;
            if varies {
                let target = number;
                varying.push(Varying { target, request });
            }
        }
    }
    Ok(varying)
}

fn fetch_unless_stopped(
    target: &Target,
    number: usize,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<(Expect, bool), ReferenceError> {
    if stop.load(Ordering::Relaxed) {
        return Err(ReferenceError::Stopped);
    }
    let (address, request) = (target.address.clone(), target.requests[number].clone());
    let mut preamble = Vec::new();
    target.preamble(number as u64, &mut preamble);
    let fetcher = Fetcher::new(
        target.http(),
        target.tls.as_ref(),
        target.wire(&request).into_owned(),
    )?;
    let is_call = matches!(target.traffic, Traffic::Grpc(_));
    let (sender, receiver) = mpsc::channel();
    net::os::start_thread("which asks for the reference answer", move || {
        // There is no receiver after a stop.
        let _ = sender.send(reference(
            &address, &fetcher, &preamble, &request, is_call, limit,
        ));
    })?;
    loop {
        match receiver.recv_timeout(STOP_CHECK) {
            Ok(reference) => return reference,
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(RecvTimeoutError::Timeout) => return Err(ReferenceError::Stopped),
            Err(RecvTimeoutError::Disconnected) => return Err(ReferenceError::Thread),
        }
    }
}

/// The rules for a request's answers, and whether its bodies differ although they are compared.
fn reference(
    address: &Address,
    fetcher: &Fetcher,
    preamble: &[u8],
    request: &Request,
    is_call: bool,
    limit: Duration,
) -> Result<(Expect, bool), ReferenceError> {
    let mut bodies = Vec::new();
    let mut expect = request.expect.clone();
    for _ in 0..FETCHES {
        let fetch = || fetcher.fetch(address, preamble, limit, REFERENCE_BYTES_MAX);
        let rule = request.expect.status;
        let answer = retry(fetch, |answer| rule.is_refusal(answer.status), limit)?;
        if rule.is_refusal(answer.status) {
            return Err(ReferenceError::Status(answer.status));
        }
        if is_call {
            http::messages(&answer)?;
        }
        if expect.status == StatusRule::Success {
            if !(200..400).contains(&answer.status) {
                return Err(ReferenceError::Status(answer.status));
            }
            expect.status = StatusRule::Exactly(answer.status);
        }
        bodies.push(answer.body);
    }
    let is_compared = matches!(expect.body, BodyRule::Same | BodyRule::Auto);
    let varies = is_compared && bodies.windows(2).any(|pair| pair[0] != pair[1]);
    if varies && expect.body == BodyRule::Same {
        return Err(ReferenceError::Varies);
    }
    if is_compared {
        expect.body = match varies || request.is_head() {
            true => BodyRule::Any,
            false => BodyRule::Bytes(Arc::from(bodies.swap_remove(0))),
        };
    }
    Ok((expect, varies))
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
        retry(third, |()| false, Duration::from_secs(60)).unwrap();
        assert_eq!(asked.get(), 3);
        let never = retry(|| Err::<(), _>(none_free()), |()| false, Duration::ZERO);
        let text = ReferenceError::from(never.unwrap_err()).to_string();
        assert!(text.contains(NO_PORT), "{text}");
        let once = std::cell::Cell::new(0);
        let refused = || {
            once.set(once.get() + 1);
            Err::<(), _>(FetchError::Io(io::ErrorKind::ConnectionRefused.into()))
        };
        let text = ReferenceError::from(retry(refused, |()| false, LIMIT).unwrap_err());
        assert!(!text.to_string().contains(NO_PORT), "{text}");
        assert_eq!(once.get(), 1);
        let statuses = std::cell::RefCell::new([429, 503, 200].into_iter());
        let ask = || Ok(statuses.borrow_mut().next().unwrap());
        let rule = StatusRule::OrRefused(200);
        let answer = retry(ask, |status| rule.is_refusal(*status), LIMIT);
        assert_eq!(answer.unwrap(), 200);
    }

    #[test]
    fn an_answer_that_does_not_come_is_not_awaited_after_a_stop() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
        let mut target = Target::new(listener.local_addr().unwrap(), request, Expect::default());
        target.requests[0].expect.body = BodyRule::Auto;
        let mut job = Job::to(target);
        job.timeout = LIMIT;
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let prepared = std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let asked = listener.accept();
                stop.store(true, Ordering::Relaxed);
                asked
            });
            let prepared = prepare(&mut job, &stop);
            // Until then it is open, and says nothing.
            drop(asked.join().unwrap());
            prepared
        });
        let cause = prepared.unwrap_err().cause;
        assert!(matches!(cause, ReferenceError::Stopped), "{cause:?}");
        assert!(began.elapsed() < LIMIT / 2);
    }

    const LIMIT: Duration = Duration::from_secs(60);
}
