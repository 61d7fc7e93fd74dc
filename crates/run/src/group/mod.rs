//! Measures one condition in one block: start servers, measure, stop servers.

mod answers;
pub(crate) mod bottleneck;
pub(crate) mod profile;
mod ready_wait;
pub(crate) mod sequential;
pub(crate) mod servers;
mod start_failures;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use readings::{CurveChoice, FailureCause, Outcome, RateChoice, Reading};

use crate::context::{Context, connection_close, host_of, request};
use crate::group::answers::{Differing, FirstAnswer};
use crate::group::servers::{broken_servers, start_servers, stop_servers};
use crate::group::start_failures::GroupFailure;
use crate::measure::upstream_connections;
use crate::measure::{GroupSetup, measurer};
use crate::testbed::chosen_addresses::Unresolved;
use crate::testbed::copies;
use crate::testbed::outside::Outside;
use agent::AgentError;
use agent::wire::{Answer, AnswerSummary, AwaitServer, Order};
use experiment::plan::{Group, PlannedTrial};
use experiment::{ResolvedCondition, ServerSpec, SubjectSpec, Target, Upstream};
use tls::ClientSettings;

/// How long a subject may take to answer as expected once its servers are ready.
const SUBJECT_READY_MS: u64 = 5_000;
/// The same for one whose server ran before: it is not about to become ready. As long as one request
/// may take.
const RUNNING_SUBJECT_MS: u64 = 2_000;

/// The result of a group; empty when the run was stopped during it.
#[derive(Default)]
pub(crate) struct GroupResult {
    pub(crate) outcomes: Vec<(PlannedTrial, Outcome)>,
    pub(crate) rate: Option<RateChoice>,
    /// The rates of the condition's curve, if they were chosen here.
    pub(crate) curve: Option<CurveChoice>,
    pub(crate) logs: Vec<(u32, BTreeMap<String, String>)>,
    pub(crate) warnings: Vec<String>,
    pub(crate) agent_lost: bool,
    /// Why the subjects cannot be measured side by side; nothing was measured then.
    pub(crate) disturbed: Option<String>,
    /// Whether the baseline's second copy cannot have servers of its own: they disturb the others,
    /// or do not start beside them. Nothing was measured then.
    pub(crate) no_copies: bool,
    /// The first answers.
    pub(crate) answers: Vec<FirstAnswer>,
    /// The failed trials that would fail again for the same reason.
    pub(crate) lasting: Vec<PlannedTrial>,
}

impl GroupResult {
    fn has_failures(&self) -> bool {
        let is_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
        self.disturbed.is_some()
            || self.no_copies
            || self.outcomes.iter().any(|(_, one)| is_failed(one))
    }

    /// Fails all trials of a group after a loss that affects all of them: which of them were
    /// complete is unknown.
    fn fail_all(&mut self, group: &Group, reason: &str) {
        let failed = |planned: &PlannedTrial| {
            let reason = reason.to_owned();
            let cause = FailureCause::Other;
            (planned.clone(), Outcome::Failed { reason, cause })
        };
        self.outcomes = group.trials.iter().map(failed).collect();
        self.rate = None;
        self.lasting.clear();
        (self.disturbed, self.no_copies) = (None, false);
        self.curve = None;
        self.agent_lost = true;
    }

    /// Fails the trials that have no outcome yet.
    pub(crate) fn fail_remaining(
        &mut self,
        group: &Group,
        reason: &str,
        cause_of: impl Fn(&PlannedTrial) -> FailureCause,
    ) {
        for planned in &group.trials {
            let has_outcome = |(one, _): &(PlannedTrial, _)| one.trial == planned.trial;
            if !self.outcomes.iter().any(has_outcome) {
                let (reason, cause) = (reason.to_owned(), cause_of(planned));
                let failed = Outcome::Failed { reason, cause };
                self.outcomes.push((planned.clone(), failed));
            }
        }
    }

    /// Fails the trials whose first answers differ from the baseline's, also those that were
    /// measured.
    pub(crate) fn fail_differing(&mut self, differing: Vec<Differing>) {
        for one in differing {
            let planned = one.planned;
            self.outcomes
                .retain(|(other, _)| other.trial != planned.trial);
            if one.is_lasting {
                self.lasting.push(planned.clone());
            }
            let (reason, cause) = (one.reason, FailureCause::Subject);
            let failed = Outcome::Failed { reason, cause };
            self.outcomes.push((planned, failed));
        }
    }
}

#[derive(Clone)]
pub(crate) struct ReadySubject {
    pub(crate) planned: PlannedTrial,
    pub(crate) subject: SubjectSpec,
    pub(crate) address: SocketAddr,
    /// The host of the load.
    pub(crate) from: Option<String>,
    /// The other hosts that make the load together with it, and its address as they see it.
    pub(crate) also_from: Vec<(String, SocketAddr)>,
    /// What is on its path and is reached by an address.
    pub(crate) outside: Outside,
    /// How it is spoken to, if its URL is an https URL.
    pub(crate) tls: Option<ClientSettings>,
    /// The subject for each other load of the condition; `None` if that load is not made on it.
    pub(crate) beside: Vec<Option<ReadySubject>>,
}

/// Measures the trials of a group with all its servers up at once. `rate` is the common rate, if
/// known.
pub(crate) fn side_by_side(cx: &mut Context<'_>, group: &Group, rate: Option<f64>) -> GroupResult {
    let mut resolved = sequential::resolve_group(cx.options.experiment, group);
    if cx.sequential.has_copies(&group.condition) {
        copies::add(&mut resolved, group);
    }
    let mut result = GroupResult::default();
    let mut up = Vec::new();
    // Uses other ports than the block's other trials: connection state that IPVS or a socket in
    // TIME_WAIT keeps for an old port would affect this trial.
    let first = group.trials.iter().map(|planned| planned.trial).min();
    let salt = u64::from(first.unwrap_or(0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = fastrand::Rng::with_seed(cx.seed ^ salt);
    cx.phase("starting servers");
    let failure = match start_servers(cx, &resolved, &mut up, &mut random) {
        Ok(addresses) => {
            let setup = GroupSetup {
                resolved: &resolved,
                group,
                up: &up,
                rate,
            };
            let measured = measure(cx, &setup, &addresses, &mut random, &mut result);
            measured.err().map(|error| GroupFailure {
                servers: match error {
                    AgentError::Failed(_) if !cx.stopped() => broken_servers(cx, &up),
                    _ => Vec::new(),
                },
                ..error.into()
            })
        }
        Err(mut failure) => {
            if failure.servers.iter().any(|server| copies::is_copy(server)) {
                result.no_copies = true;
            } else if !cx.stopped() {
                let design = &cx.options.experiment.design;
                sequential::note_start_failure(design, group, &resolved, &failure, &mut result);
                let start = up.last().map(|server| &server.start);
                if result.disturbed.is_none() {
                    start_failures::tell(cx, &mut failure, start, &mut result);
                }
            }
            Some(failure)
        }
    };
    let failed = failure.is_some() || result.has_failures();
    let lost = cx.testbed.hosts.lost(failed);
    if cx.stopped() {
        result.outcomes.clear();
    } else if let Some(reason) = lost {
        result.fail_all(group, &reason);
    } else if result.disturbed.is_some() || result.no_copies {
        result.outcomes.clear();
    } else if let Some(failure) = failure {
        let cause_of = |planned: &PlannedTrial| {
            let subject = copies::subject_of(&resolved, planned);
            let path = subject.map(|one| one.through).unwrap_or_default();
            match path.iter().any(|server| failure.servers.contains(server)) {
                true => FailureCause::Subject,
                false => FailureCause::Other,
            }
        };
        result.fail_remaining(group, &failure.reason(), cause_of);
        result.agent_lost = matches!(failure.error, AgentError::Lost(_));
    }
    for (planned, outcome) in &mut result.outcomes {
        if let Outcome::Done(reading) = outcome {
            add_path(cx, &resolved, group, planned, reading);
            let warning = upstream_connections::warning(cx, &resolved, planned, reading);
            result.warnings.extend(warning);
        }
    }
    cx.phase("stopping servers");
    stop_servers(cx, group, &up, &mut result);
    result.agent_lost |= cx.testbed.hosts.lost(false).is_some();
    result
}

/// Adds what is known of the servers of a trial's path.
fn add_path(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    planned: &PlannedTrial,
    reading: &mut Reading,
) {
    reading.separate_copy = copies::is_separate(resolved, group, planned);
    let subject = resolved.subjects.iter().find(|s| s.name == planned.subject);
    let Some(subject) = subject.filter(|_| cx.options.experiment.expect.every_server) else {
        return;
    };
    let spec = |name: &String| resolved.servers.iter().find(|one| one.name == *name);
    let asks_always = |server: &&ServerSpec| {
        let settings = cx.configurations.get(&server.name);
        let caching = settings.and_then(|one| one["settings"]["caching"].as_str());
        // What caches answers to requests has `on`; `scripts` and the like are other caches.
        caching.is_none_or(|caching| caching != "on")
    };
    for front in subject.through.iter().filter_map(spec).filter(asks_always) {
        for upstream in &front.upstreams {
            if let Upstream::Server(name) = upstream {
                reading.asked_by.insert(name.clone(), front.name.clone());
            }
        }
    }
}

fn measure(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    addresses: &BTreeMap<String, SocketAddr>,
    random: &mut fastrand::Rng,
    result: &mut GroupResult,
) -> Result<(), AgentError> {
    let ready = ready_subjects(cx, setup.resolved, setup.group, addresses, result)?;
    if ready.is_empty() {
        return Ok(());
    }
    measurer(setup.resolved, &ready).measure(cx, setup, &ready, random, result)
}

/// The subjects that answer as expected, and as the baseline does; the others fail here.
pub(crate) fn ready_subjects(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    group: &Group,
    addresses: &BTreeMap<String, SocketAddr>,
    result: &mut GroupResult,
) -> Result<Vec<ReadySubject>, AgentError> {
    let experiment = cx.options.experiment;
    let mut ready = Vec::new();
    for planned in &group.trials {
        let Some(mut subject) = copies::subject_of(resolved, planned) else {
            continue;
        };
        let from = resolved.load.host.as_deref();
        let address = match cx.resolve(from, &subject, addresses) {
            Ok(address) => address,
            Err(Unresolved { reason, cause }) => {
                fail(result, planned, &reason, cause);
                continue;
            }
        };
        result.warnings.extend(cx.chosen_addresses.take_notes());
        let tls = match cx.authority.client(&resolved.load, &subject) {
            Ok(tls) => tls,
            Err(reason) => {
                fail(result, planned, &reason, FailureCause::Other);
                continue;
            }
        };
        let first = match ask(cx, resolved, &subject, address, &tls) {
            Ok(answer) => answer,
            Err(AgentError::Failed(reason)) => {
                fail(result, planned, &reason, FailureCause::Subject);
                continue;
            }
            Err(lost) => return Err(lost),
        };
        if let Some(first) = first {
            let expect = &experiment.expect;
            if cx.block == 1 && !planned.baseline_copy {
                let (load, host) = (&resolved.load, host_of(&subject));
                let empty = answers::empty_page(expect, load, &subject.name, &host, &first);
                result.warnings.extend(empty);
            }
            let more = answers::repeats_needed(expect, &experiment.design.baseline, group);
            let answers = ask_again(cx, resolved, &subject, address, &tls, first, more)?;
            if let Some(reason) = answers::changing_answers_reason(expect, &answers) {
                fail(result, planned, &reason, FailureCause::Subject);
                result.lasting.push(planned.clone());
                continue;
            }
            let mut answers = answers.into_iter();
            result
                .answers
                .extend(answers.next().map(|answer| FirstAnswer {
                    planned: planned.clone(),
                    answer,
                    later: answers.next(),
                }));
        }
        let also_from = match cx.resolve_elsewhere(resolved, &subject, addresses) {
            Ok(also_from) => also_from,
            Err(Unresolved { reason, cause }) => {
                fail(result, planned, &reason, cause);
                continue;
            }
        };
        let beside = match ready_beside(cx, resolved, planned, &subject, addresses) {
            Ok(beside) => beside,
            Err(AgentError::Failed(reason)) => {
                fail(result, planned, &reason, FailureCause::Subject);
                continue;
            }
            Err(lost) => return Err(lost),
        };
        let outside = Outside::of(experiment, resolved, &subject, address, addresses);
        subject.through.extend(outside.names());
        ready.push(ReadySubject {
            planned: planned.clone(),
            subject,
            address,
            from: resolved.load.host.clone(),
            also_from,
            outside,
            tls,
            beside,
        });
    }
    fail_those_that_differ(cx, resolved, &mut ready, result)?;
    Ok(ready)
}

/// A subject for each load other than the first one, after it has answered a request of that load.
fn ready_beside(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    planned: &PlannedTrial,
    subject: &SubjectSpec,
    addresses: &BTreeMap<String, SocketAddr>,
) -> Result<Vec<Option<ReadySubject>>, AgentError> {
    let mut all = Vec::new();
    for beside in &resolved.beside {
        let own = beside.subjects.iter().find(|one| one.name == subject.name);
        let Some(own) = own else {
            all.push(None);
            continue;
        };
        let failed = |why: String| AgentError::Failed(format!("load `{}`: {why}", beside.name));
        // The servers of the baseline copy may be copies.
        let subject = SubjectSpec {
            target: subject.target.clone(),
            through: subject.through.clone(),
            ..own.clone()
        };
        let resolved = ResolvedCondition {
            load: beside.load.clone(),
            ..resolved.clone()
        };
        let from = beside.load.host.as_deref();
        let address = cx
            .resolve(from, &subject, addresses)
            .map_err(|e| failed(e.reason))?;
        let also_from = cx
            .resolve_elsewhere(&resolved, &subject, addresses)
            .map_err(|e| failed(e.reason))?;
        let tls = cx
            .authority
            .client(&beside.load, &subject)
            .map_err(failed)?;
        let first = match ask(cx, &resolved, &subject, address, &tls) {
            Err(AgentError::Failed(why)) => return Err(failed(why)),
            other => other?,
        };
        if let Some(first) = first {
            let expect = &cx.options.experiment.expect;
            let more = answers::repeats_for_same_body(expect);
            let answers = ask_again(cx, &resolved, &subject, address, &tls, first, more)?;
            if let Some(why) = answers::changing_answers_reason(expect, &answers) {
                return Err(failed(why));
            }
        }
        all.push(Some(ReadySubject {
            planned: planned.clone(),
            subject,
            address,
            from: beside.load.host.clone(),
            also_from,
            outside: Outside::default(),
            tls,
            beside: Vec::new(),
        }));
    }
    Ok(all)
}

fn fail(result: &mut GroupResult, planned: &PlannedTrial, reason: &str, cause: FailureCause) {
    let reason = format!("subject `{}`: {reason}", planned.subject);
    let failed = Outcome::Failed { reason, cause };
    result.outcomes.push((planned.clone(), failed));
}

/// Asks a subject once for what the load asks for.
fn ask(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    subject: &SubjectSpec,
    address: SocketAddr,
    tls: &Option<ClientSettings>,
) -> Result<Option<AnswerSummary>, AgentError> {
    let expect = &cx.options.experiment.expect;
    let fields = [resolved.load.headers.as_slice(), &connection_close()].concat();
    let request = match subject.scheme.as_str() {
        "http" | "https" => request(subject, &resolved.load, &fields),
        _ => String::new(),
    };
    let timeout_ms = match subject.target {
        Target::Address(_) => RUNNING_SUBJECT_MS,
        _ => SUBJECT_READY_MS,
    };
    let order = Order::Await(AwaitServer {
        server: None,
        address,
        request,
        raw: false,
        status: Some(expect.status),
        contains: expect.contains.clone(),
        tls: tls.clone(),
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

/// Asks a subject for more answers, and returns all in order. A later request may fail by chance;
/// then there are fewer.
fn ask_again(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    subject: &SubjectSpec,
    address: SocketAddr,
    tls: &Option<ClientSettings>,
    first: AnswerSummary,
    more: usize,
) -> Result<Vec<AnswerSummary>, AgentError> {
    let mut answers = vec![first];
    for _ in 0..more {
        match ask(cx, resolved, subject, address, tls) {
            Ok(answer) => answers.extend(answer),
            Err(AgentError::Failed(_)) => break,
            Err(lost) => return Err(lost),
        }
    }
    Ok(answers)
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
    let seen = &result.answers;
    if answers::differing(expect, resolved, baseline, seen, None).is_empty() || cx.stopped() {
        return Ok(());
    }
    let mut again = None;
    if let Some(one) = ready.iter().find(|one| one.planned.subject == *baseline) {
        std::thread::sleep(answers::ASK_AGAIN_AFTER);
        again = match ask(cx, resolved, &one.subject, one.address, &one.tls) {
            Ok(answer) => answer,
            Err(AgentError::Failed(_)) => None,
            Err(lost) => return Err(lost),
        };
    }
    let mut found = answers::differing(expect, resolved, baseline, seen, again.as_ref());
    for one in &found {
        let is_it = |other: &&ReadySubject| other.planned.trial == one.planned.trial;
        let Some(subject) = ready.iter().find(is_it) else {
            continue;
        };
        let (spec, address, tls) = (&subject.subject, subject.address, &subject.tls);
        let later = match ask(cx, resolved, spec, address, tls) {
            Ok(answer) => answer,
            Err(AgentError::Failed(_)) => None,
            Err(lost) => return Err(lost),
        };
        let mut seen = result.answers.iter_mut();
        if let Some(first) = seen.find(|first| first.planned.trial == one.planned.trial) {
            first.later = later;
        }
    }
    if !found.is_empty() {
        let seen = &result.answers;
        found = answers::differing(expect, resolved, baseline, seen, again.as_ref());
    }
    let differs = |one: &ReadySubject| {
        let mut found = found.iter();
        found.any(|other| other.planned.trial == one.planned.trial)
    };
    ready.retain(|one| !differs(one));
    result.fail_differing(found);
    Ok(())
}
