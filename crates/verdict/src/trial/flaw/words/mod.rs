//! Why loads and trials cannot be used, as parts of a sentence.

use crate::steady::{Series, Unsteady};
use crate::{Flaw, FullQueue, HostFault, Loop, Overload, Reason, TrialFlaw};
use readings::text::{counted, fraction, grouped, number, percent, rate};
use readings::{AcceptQueue, ErrorCounts, Wrong, WrongKind};

use crate::trial::lag::words::late_client;

/// Why a load cannot be used, a part of a sentence each.
pub fn flaws(of: &[Flaw]) -> Vec<String> {
    of.iter().map(flaw).collect()
}

/// Which host of a load was lost or began late.
fn host_fault(fault: &HostFault) -> String {
    match fault {
        HostFault::Lost { host, why } => {
            format!("host `{host}` was lost, and its part of the load is missing: {why}")
        }
        HostFault::Late { host, late_us } => format!(
            "host `{host}` began its part of the load {:.1} ms late, so the hosts did not measure \
             at the same time",
            late_us / 1e3
        ),
    }
}

/// Why a load cannot be used.
pub fn flaw(flaw: &Flaw) -> String {
    match flaw {
        Flaw::WrongAnswers {
            wrong,
            answers,
            first,
        } => format!(
            "{} of {} answers were wrong{}",
            grouped(*wrong),
            grouped(*answers),
            expected(first.as_ref())
        ),
        Flaw::FailedRequests {
            errors,
            requests,
            first,
            queues,
            ..
        } => format!(
            "{}{}{}",
            failed(errors, *requests),
            expected(first.as_ref()),
            named(queues)
        ),
        Flaw::NoAnswer { queues } => format!("{NO_ANSWER}{}", named(queues)),
        Flaw::MissingConnections {
            open,
            asked,
            first,
            queues,
        } => format!(
            "only {} of {} connections were open at the end of a window{}{}",
            grouped(*open),
            grouped(*asked),
            expected(first.as_ref()),
            named(queues)
        ),
        Flaw::IdleEnded {
            ended,
            connections,
            after_s,
        } => format!(
            "the server ended {} of {} idle connections, the first after {} s: raise its idle \
             timeout and its connection limit, or hold fewer",
            grouped(*ended),
            grouped(*connections),
            number(*after_s, 1, false)
        ),
        Flaw::ClientBusy { rate_per_s } => client_busy(*rate_per_s),
        Flaw::ClientStalled { share, lag_us } => format!(
            "the client stalled: {} of its requests were sent late by {:.1} s and more",
            fraction(*share),
            lag_us / 1e6
        ),
        Flaw::LateEvent {
            what,
            target,
            late_s,
        } => format!("the event `{what}` on `{target}` was begun or undone {late_s:.1} s late"),
        Flaw::Host(fault) => host_fault(fault),
        Flaw::Overload(found) => overload(found),
        Flaw::LateClient(late) => late_client(late),
        Flaw::Unsteady(found) => unsteady(found),
        Flaw::ServerEnded { server } => format!("server `{server}` ended while it was measured"),
        Flaw::ServerRestarted { server, failed } => format!(
            "server `{server}` was started again while it was measured, and {} failed",
            counted(*failed as usize, "request")
        ),
        Flaw::Stolen { host, share } => format!(
            "{} was given less than its CPU time: {} of it was stolen",
            machine(host.as_deref()),
            percent(share * 100.0, 1, false)
        ),
        Flaw::Throttled {
            host,
            times,
            throttled_s,
            looked_s,
        } => format!(
            "a limit of CPU time throttled {} {} times, for {} s in {} s",
            machine(host.as_deref()),
            grouped(*times),
            number(*throttled_s, 2, false),
            number(*looked_s, 2, false)
        ),
        Flaw::Swapped {
            host,
            written_pages,
            read_pages,
        } => format!(
            "{} swapped: {} pages written, {} read",
            machine(host.as_deref()),
            grouped(*written_pages),
            grouped(*read_pages)
        ),
        Flaw::BodiesMissing {
            sent_bytes,
            received_bytes,
            requests,
            received,
        } => format!(
            "the back ends received {} bytes of request bodies in {}, but {} good answers stand \
             for {} bytes: a server answered without passing its requests on, or dropped their \
             bodies",
            grouped(*received_bytes),
            counted(*received as usize, "request"),
            grouped(*requests),
            grouped(*sent_bytes)
        ),
        Flaw::BodiesChanged { body_bytes, bodies } => format!(
            "request bodies were altered on the way: the back ends' checksum differs ({} of {} bytes)",
            match bodies {
                1 => "1 body".to_owned(),
                bodies => format!("{} bodies", grouped(*bodies)),
            },
            grouped(*body_bytes)
        ),
        Flaw::UsedUp { feed } => format!(
            "all rows of the feed `{feed}` were used before the end: give it more rows, or \
             order = \"in_turn\", which begins again"
        ),
        Flaw::Unasked {
            front,
            behind,
            requests,
        } => format!(
            "server `{front}` answered {} requests without {}, which took no CPU time: if it should \
             answer by itself, set expect.every_server = false",
            grouped(*requests),
            either(behind)
        ),
    }
}

/// A trial's flaw, after its load and its loop if it has them.
pub fn trial_flaw(of: &TrialFlaw) -> String {
    let load = of.load.as_ref().map(|load| format!("load `{load}`: "));
    let of_loop = of.load_loop.map(|one| match one {
        Loop::Closed => "throughput: ",
        Loop::Open => "latency: ",
    });
    let remedy = match &of.flaw {
        Flaw::WrongAnswers {
            first: Some(first), ..
        } if first.differs_from_first() => {
            "; if content may change by itself, set expect.body = \"varies\" (weigh compare: \
             --expect-body varies)"
        }
        _ => "",
    };
    format!(
        "{}{}{}{remedy}",
        load.unwrap_or_default(),
        of_loop.unwrap_or_default(),
        flaw(&of.flaw)
    )
}

/// Why a trial cannot be used.
pub fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Failed(recorded) => recorded.clone(),
        Reason::Flaw(flaw) => trial_flaw(flaw),
        Reason::Empty => "nothing was measured in its windows".to_owned(),
    }
}

/// [`reason`], or [`NO_REASON`].
pub fn reason_or_none(of: Option<&Reason>) -> String {
    of.map_or_else(|| NO_REASON.to_owned(), reason)
}

pub const NO_REASON: &str = "no reason was recorded";

pub const NO_ANSWER: &str = "no good answer came";

pub(crate) fn client_busy(rate_per_s: f64) -> String {
    format!(
        "the client was too busy to offer {} requests/s on time",
        rate(rate_per_s)
    )
}

fn failed(e: &ErrorCounts, requests: u64) -> String {
    let kinds = [
        (e.connect, "connect"),
        (e.read, "read"),
        (e.write, "write"),
        (e.timeout, "timeout"),
        (e.unexplained, "unexplained"),
    ];
    let all: u64 = kinds.iter().map(|(count, _)| count).sum();
    let way = match e.unexplained {
        0 => " on the way",
        _ => "",
    };
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", grouped(*count)))
        .collect();
    format!(
        "{} of {} requests failed{way} ({})",
        grouped(all),
        grouped(requests),
        kinds.join(", ")
    )
}

/// `: expected status 200, found 502`; empty where nothing was kept.
fn expected(first: Option<&Wrong>) -> String {
    let Some(wrong) = first else {
        return String::new();
    };
    let bare = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let expected = match wrong.kind {
        WrongKind::Status if bare(&wrong.expected) => format!("status {}", wrong.expected),
        WrongKind::Length if bare(&wrong.expected) => format!("a length of {}", wrong.expected),
        _ => wrong.expected.clone(),
    };
    let found = match wrong.kind {
        WrongKind::Status => wrong.found.strip_prefix("status "),
        _ => None,
    };
    let found = found.unwrap_or(&wrong.found);
    format!(": expected {expected}, found {found}")
}

fn named(queues: &[FullQueue]) -> String {
    let all = queues.iter().map(|queue| match queue {
        FullQueue::Known(queue) => full_queue(queue),
        FullQueue::Overflowed { servers, times } => format!(
            "the accept queue of {} was full {}",
            one_of(servers),
            often(*times)
        ),
        FullQueue::Dropped { servers, dropped } => format!(
            "the kernel dropped {} to {} while they were opened",
            counted(*dropped as usize, "connection"),
            one_of(servers)
        ),
    });
    all.map(|queue| format!("; {queue}")).collect()
}

/// An accept queue that was full.
pub fn full_queue(queue: &AcceptQueue) -> String {
    match &queue.server {
        Some(server) => {
            let backlog = queue.backlog.map(|backlog| format!(" (backlog {backlog})"));
            format!(
                "the accept queue of `{server}`{} was full {}",
                backlog.unwrap_or_default(),
                often(queue.full)
            )
        }
        None => format!(
            "the accept queue of an unknown server was full {} (ListenOverflows)",
            often(queue.full)
        ),
    }
}

fn often(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{} times", grouped(count)),
    }
}

fn one_of(servers: &[String]) -> String {
    match servers.is_empty() {
        true => "a server".to_owned(),
        false => either(servers),
    }
}

/// `` `a` or `b` ``.
fn either(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}

fn machine(host: Option<&str>) -> String {
    match host {
        None => "the machine".to_owned(),
        Some(host) => format!("the machine of host `{host}`"),
    }
}

fn overload(found: &Overload) -> String {
    let stage = found
        .stage
        .map_or_else(String::new, |stage| format!(" in stage {}", stage + 1));
    let offered = rate(found.offered_per_s);
    let answered = match found.carried_per_s {
        Some(per_s) => format!("of {offered}/s offered it answered about {}/s", rate(per_s)),
        None => format!("it was offered {offered}/s"),
    };
    format!(
        "it was overloaded{stage}: {answered}, and {} requests waited at the end; the latency is that of \
         the backlog, and grows with the length of the load",
        grouped(found.backlog_end)
    )
}

fn unsteady(found: &Unsteady) -> String {
    let what = match found.series {
        Series::Throughput => "throughput",
        Series::MedianLatency => "the median latency",
    };
    let moved = (found.before != 0.0).then(|| {
        let change = (found.after / found.before - 1.0) * 100.0;
        format!(": it moved by {}", percent(change, 1, true))
    });
    format!(
        "no steady state was reached: {what} still changed in the second half of {} values{}",
        found.values,
        moved.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
