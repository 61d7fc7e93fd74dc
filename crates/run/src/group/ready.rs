//! Which subjects answer as expected, and as the baseline does.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use readings::FailureCause;

use crate::context::Context;
use crate::context::orders::{connection_close, host_of, request};
use crate::group::answers::{self, FirstAnswer};
use crate::group::result::GroupResult;
use crate::group::schemas;
use crate::testbed::chosen_addresses::Unresolved;
use crate::testbed::outside::Outside;
use crate::testbed::{BackEnds, ReadySubject, copies};
use agent::AgentError;
use agent::wire::{Answer, AnswerSummary, AwaitServer, Order};
use experiment::plan::{Group, PlannedTrial};
use experiment::{LoadBeside, ResolvedCondition, SubjectSpec, Target};

/// How long a subject may take to answer as expected once its servers are ready.
const SUBJECT_READY_MS: u64 = 5_000;
/// The same for one whose server ran before: it is not about to become ready. As long as one request
/// may take.
const RUNNING_SUBJECT_MS: u64 = 2_000;

/// Why a subject is not measured.
enum NotReady {
    Failed {
        reason: String,
        cause: FailureCause,
        /// Whether it would fail again for the same reason.
        is_lasting: bool,
    },
    Lost(AgentError),
}

impl NotReady {
    fn failed(reason: String, cause: FailureCause) -> Self {
        Self::Failed {
            reason,
            cause,
            is_lasting: false,
        }
    }
}

impl From<Unresolved> for NotReady {
    fn from(why: Unresolved) -> Self {
        Self::failed(why.reason, why.cause)
    }
}

impl From<AgentError> for NotReady {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Failed(reason) => Self::failed(reason, FailureCause::Subject),
            lost @ AgentError::Lost(_) => Self::Lost(lost),
        }
    }
}

/// The subjects that answer as expected, and as the baseline does; the others fail here.
pub(super) fn ready_subjects(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    addresses: &BTreeMap<String, SocketAddr>,
    result: &mut GroupResult,
) -> Result<Vec<ReadySubject>, AgentError> {
    let mut ready = Vec::new();
    for planned in &group.trials {
        let Some(subject) = copies::subject_of(resolved, planned) else {
            continue;
        };
        match ready_subject(cx, resolved, group, planned, subject, addresses, result) {
            Ok(one) => ready.push(one),
            Err(NotReady::Lost(lost)) => return Err(lost),
            Err(NotReady::Failed {
                reason,
                cause,
                is_lasting,
            }) => {
                let reason = format!("subject `{}`: {reason}", planned.subject);
                result.fail(planned, reason, cause);
                if is_lasting {
                    result.lasting.push(planned.clone());
                }
            }
        }
    }
    fail_those_that_differ(cx, resolved, &mut ready, result)?;
    Ok(ready)
}

fn ready_subject(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    planned: &PlannedTrial,
    subject: SubjectSpec,
    addresses: &BTreeMap<String, SocketAddr>,
    result: &mut GroupResult,
) -> Result<ReadySubject, NotReady> {
    let experiment = cx.options.experiment;
    let expect = &experiment.expect;
    let more = answers::repeats_needed(expect, &experiment.design.baseline, group);
    let reached = reach(cx, resolved, planned, subject, addresses, more);
    result
        .found
        .warnings
        .extend(cx.chosen_addresses.take_notes());
    let (mut one, seen) = reached?;
    if let Some(first) = seen.first()
        && cx.block == 1
        && !planned.baseline_copy
    {
        let (load, host) = (&resolved.load, host_of(&one.subject));
        let empty = answers::empty_page(expect, load, &one.subject.name, &host, first);
        result.found.warnings.extend(empty);
    }
    if let Some(reason) = answers::changing_answers_reason(expect, &seen) {
        return Err(NotReady::Failed {
            reason,
            cause: FailureCause::Subject,
            is_lasting: true,
        });
    }
    let mut seen = seen.into_iter();
    let first = seen.next().map(|answer| FirstAnswer {
        planned: planned.clone(),
        answer,
        later: seen.next(),
    });
    result.answers.extend(first);
    for beside in &resolved.beside {
        one.beside
            .push(ready_beside(cx, resolved, &one, beside, addresses)?);
    }
    one.outside = Outside::of(experiment, resolved, &one.subject, one.address, addresses);
    one.subject.through.extend(one.outside.names());
    Ok(one)
}

/// The subject for another load than the first one, after it has answered a request of that load;
/// `None` if that load is not made on it.
fn ready_beside(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    first: &ReadySubject,
    beside: &LoadBeside,
    addresses: &BTreeMap<String, SocketAddr>,
) -> Result<Option<ReadySubject>, NotReady> {
    let mut subjects = beside.subjects.iter();
    let Some(own) = subjects.find(|one| one.name == first.subject.name) else {
        return Ok(None);
    };
    // The servers of the baseline copy may be copies.
    let subject = SubjectSpec {
        target: first.subject.target.clone(),
        through: first.subject.through.clone(),
        ..own.clone()
    };
    let resolved = ResolvedCondition {
        load: beside.load.clone(),
        ..resolved.clone()
    };
    let expect = &cx.options.experiment.expect;
    let more = answers::repeats_for_same_body(expect);
    let failed = |why: String| {
        let reason = format!("load `{}`: {why}", beside.name);
        NotReady::failed(reason, FailureCause::Subject)
    };
    match reach(cx, &resolved, &first.planned, subject, addresses, more) {
        Ok((one, seen)) => match answers::changing_answers_reason(expect, &seen) {
            Some(why) => Err(failed(why)),
            None => Ok(Some(one)),
        },
        Err(NotReady::Failed { reason, .. }) => Err(failed(reason)),
        Err(lost) => Err(lost),
    }
}

/// Finds a subject and asks it for what the load asks for. Returns it, and up to `more` answers after
/// the first one: a later request may fail by chance.
fn reach(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    planned: &PlannedTrial,
    subject: SubjectSpec,
    addresses: &BTreeMap<String, SocketAddr>,
    more: usize,
) -> Result<(ReadySubject, Vec<AnswerSummary>), NotReady> {
    let load = &resolved.load;
    let tls = cx.authority.client(load, &subject);
    let mut one = ReadySubject {
        planned: planned.clone(),
        address: cx.resolve(load.host.as_deref(), &subject, addresses)?,
        from: load.host.clone(),
        also_from: cx.resolve_elsewhere(resolved, &subject, addresses)?,
        outside: Outside::default(),
        back_ends: BackEnds::of(resolved, &subject),
        tls: tls.map_err(|why| NotReady::failed(why, FailureCause::Other))?,
        call: None,
        beside: Vec::new(),
        subject,
    };
    if load.traffic.grpc.is_some() && load.traffic.call.is_none() {
        let asked = schemas::asked_call(cx, load, &one)?;
        let call = asked.map_err(|reason| NotReady::Failed {
            reason,
            cause: FailureCause::Subject,
            is_lasting: true,
        })?;
        one.call = Some(Arc::new(call));
    }
    let mut seen: Vec<AnswerSummary> = ask(cx, resolved, &one)?.into_iter().collect();
    while !seen.is_empty() && seen.len() <= more {
        let Some(answer) = ask_again(cx, resolved, &one)? else {
            break;
        };
        seen.push(answer);
    }
    Ok((one, seen))
}

/// Asks a subject once for what the load asks for.
fn ask(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    one: &ReadySubject,
) -> Result<Option<AnswerSummary>, AgentError> {
    if !resolved.load.traffic.kind().is_answers() {
        // A stream may have no end, and a plain request is not what a WebSocket or a method answers:
        // the warm-up shows whether they do.
        return Ok(None);
    }
    let subject = &one.subject;
    let expect = &cx.options.experiment.expect;
    let fields = [resolved.load.headers.as_slice(), &connection_close()].concat();
    let request = match subject.scheme.as_str() {
        "http" | "https" => request(subject, &resolved.load, &fields),
        _ => String::new(),
    };
    let timeout_ms = match subject.target {
        Target::Address(_) => RUNNING_SUBJECT_MS,
        Target::Server(_) => SUBJECT_READY_MS,
    };
    let order = Order::Await(AwaitServer {
        server: None,
        address: one.address,
        request,
        raw: false,
        status: Some(expect.status),
        contains: expect.contains.clone(),
        tls: one.tls.clone(),
        http: subject.http,
        proxy_protocol: false,
        timeout_ms,
    });
    let agent = cx.testbed.agent(resolved.load.host.as_deref())?;
    Ok(match agent.ask_unless(&order, cx.stop)? {
        Answer::Ready(answer) => Some(answer),
        _ => None,
    })
}

/// Asks a subject that has answered before. One that fails now has no answer.
fn ask_again(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    one: &ReadySubject,
) -> Result<Option<AnswerSummary>, AgentError> {
    match ask(cx, resolved, one) {
        Err(AgentError::Failed(_)) => Ok(None),
        other => other,
    }
}

/// Fails the subjects that do not answer as the baseline does. Before that the baseline is asked
/// again, since what changes by itself cannot be compared byte by byte; and so are these subjects,
/// since their first answer may have been an exception.
fn fail_those_that_differ(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    ready: &mut Vec<ReadySubject>,
    result: &mut GroupResult,
) -> Result<(), AgentError> {
    let experiment = cx.options.experiment;
    let (expect, baseline) = (&experiment.expect, &experiment.design.baseline);
    let seen = &mut result.answers;
    if answers::differing(expect, resolved, baseline, seen, None).is_empty() || cx.stopped() {
        return Ok(());
    }
    let mut again = None;
    if let Some(one) = ready.iter().find(|one| one.planned.subject == *baseline) {
        std::thread::sleep(answers::ASK_AGAIN_AFTER);
        again = ask_again(cx, resolved, one)?;
    }
    for one in answers::differing(expect, resolved, baseline, seen, again.as_ref()) {
        let trial = one.planned.trial;
        let mut subjects = ready.iter();
        let mut answers = seen.iter_mut();
        if let Some(subject) = subjects.find(|one| one.planned.trial == trial) {
            let later = ask_again(cx, resolved, subject)?;
            if let Some(first) = answers.find(|first| first.planned.trial == trial) {
                first.later = later;
            }
        }
    }
    let found = answers::differing(expect, resolved, baseline, seen, again.as_ref());
    let differs = |one: &ReadySubject| {
        let mut found = found.iter();
        found.any(|other| other.planned.trial == one.planned.trial)
    };
    ready.retain(|one| !differs(one));
    result.fail_differing(found);
    Ok(())
}
