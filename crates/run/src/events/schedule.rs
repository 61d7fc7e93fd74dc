//! When events begin and end, and what is observed of their servers meanwhile.

use std::time::Duration;

use readings::EventReading;

use super::action::{Action, Target};
use super::moments::{AT_ONCE, Means, Moment};
use super::time::now_ns;
use crate::testbed::StartedServer;
use agent::AgentError;
use agent::wire::{Answer, Order};
use experiment::{EventKind, EventSpec, EventTarget, Recipes, ResolvedCondition};

/// Interval at which a server with an event is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);
/// Interval at which it is checked whether a reload is in effect.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Consecutive samples that must show a server back in rotation: queued requests arrive in a burst,
/// and starting a server takes CPU time as well.
const SAMPLES_IN_A_ROW: usize = 5;
/// A server counts as back in rotation at this share of its CPU time per second before the event.
const IN_ROTATION: f64 = 0.5;

pub(super) struct EventSchedule<'s> {
    events: Vec<ScheduledEvent<'s>>,
    /// When the window opened.
    opened_ns: Option<i64>,
    window: Duration,
    failure: Option<AgentError>,
}

struct ScheduledEvent<'s> {
    action: Action<'s>,
    state: State,
    /// When it is undone; `None` if only after the window.
    until: Option<Duration>,
    /// Of a rolling restart: the number of the event that has to be over first.
    after: Option<usize>,
    reading: EventReading,
    /// When the server was sampled last, and its CPU time then.
    before: Option<(i64, f64)>,
    /// CPU time per second before the event.
    usual_per_s: Option<f64>,
    /// When this event was last held back by another one of the same server, which is stopping or
    /// starting. That wait is not lateness: the server cannot do both.
    held_ns: i64,
    /// The current series of samples that show the server in rotation: its start, in s since the
    /// event was undone, and the number of samples.
    since: Option<(f64, usize)>,
    /// When it was last checked whether a reload is in effect.
    checked_ns: Option<i64>,
}

/// Moments that concern each event.
#[derive(Clone, Copy)]
struct Moments {
    /// When the window opened.
    opened_ns: i64,
    /// When the next event is due to begin or to be undone.
    next_ns: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    /// In a rolling restart: the server was sent the first stop signal, and has not ended yet.
    Stopping,
    Active,
    /// A server that was killed or stopped has been started again, and is not ready yet.
    Starting,
    Undone,
}

impl<'s> EventSchedule<'s> {
    /// Schedules the events of hosts and of the servers that are up, which are those that the
    /// subject uses.
    ///
    /// # Errors
    /// When the configuration of a reload cannot be rendered.
    pub(super) fn of(
        recipes: &Recipes,
        resolved: &'s ResolvedCondition,
        up: &'s [StartedServer],
        window: Duration,
    ) -> Result<Self, AgentError> {
        let mut events: Vec<ScheduledEvent<'s>> = Vec::new();
        for event in &resolved.events {
            let targets: Vec<Target<'s>> = match &event.target {
                EventTarget::Host(host) => vec![Target::Host(host)],
                EventTarget::Servers(names) => {
                    let server = |name: &String| up.iter().find(|one| one.name == *name);
                    let servers = names.iter().filter_map(server);
                    servers.map(Target::Server).collect()
                }
            };
            for (number, target) in targets.into_iter().enumerate() {
                let after = (number > 0).then(|| events.len() - 1);
                let reloads = events.iter().filter(|other| {
                    other.action.event.kind == EventKind::Reload && other.is_of(target)
                });
                let reload = 1 + reloads.count() as u32;
                let action = Action::new(event, target, recipes, reload)?;
                events.push(ScheduledEvent::new(action, after, window));
            }
        }
        Ok(Self {
            events,
            opened_ns: None,
            window,
            failure: None,
        })
    }

    /// The hosts that the events happen on.
    pub(super) fn hosts(&self) -> impl Iterator<Item = Option<&'s str>> {
        self.events.iter().map(|scheduled| scheduled.action.host())
    }

    /// Begins and undoes what is due. `opened_ns` is when the window opened, once it has.
    pub(super) fn advance(&mut self, means: &mut Means<'_>, opened_ns: Option<i64>) {
        self.opened_ns = self.opened_ns.or(opened_ns);
        let Some(opened_ns) = self.opened_ns else {
            return;
        };
        for number in 0..self.events.len() {
            if self.failure.is_some() {
                return;
            }
            // The window is over: active events are undone when the last answers are here. When a
            // server is ready that was started again still counts.
            let is_over = now_ns() - opened_ns >= self.window.as_nanos() as i64;
            if is_over && self.events[number].state != State::Starting {
                continue;
            }
            if self.is_held(number) {
                self.events[number].held_ns = now_ns();
                continue;
            }
            let due = self.due(number);
            let moments = Moments {
                opened_ns,
                next_ns: self.next_ns(opened_ns),
            };
            if let Err(e) = self.events[number].advance(means, moments, due) {
                self.failure = Some(e);
            }
        }
    }

    /// Whether an event waits to begin, or to be undone, while its server is stopping or starting for
    /// another one.
    fn is_held(&self, number: usize) -> bool {
        let own = &self.events[number];
        let is_busy = |other: &ScheduledEvent<'_>| {
            matches!(other.state, State::Stopping | State::Starting)
                && !own.reading.server.is_empty()
                && own.reading.server == other.reading.server
        };
        matches!(own.state, State::Pending | State::Active) && self.events.iter().any(is_busy)
    }

    /// When the next event is due to begin or to be undone.
    fn next_ns(&self, opened_ns: i64) -> Option<i64> {
        let due = |number: usize| match self.events[number].state {
            State::Pending => self.due(number),
            State::Active => self.events[number].until,
            State::Stopping | State::Starting | State::Undone => None,
        };
        let free = (0..self.events.len()).filter(|number| !self.is_held(*number));
        let next = free.filter_map(due).min()?;
        Some(after(opened_ns, next))
    }

    /// When an event begins, since the window opened; `None` while it waits for another one to end.
    fn due(&self, number: usize) -> Option<Duration> {
        let scheduled = &self.events[number];
        let event = scheduled.action.event;
        let Some(before) = scheduled.after.map(|before| &self.events[before]) else {
            return Some(event.at);
        };
        let back_s = before.reading.back_s?;
        let pause = event.settings.pause.unwrap_or_default();
        Some(Duration::try_from_secs_f64(back_s).ok()? + pause)
    }

    /// The names, in backquotes, of the servers that rolling restarts did not reach within the
    /// window.
    pub(super) fn not_begun(&self) -> Vec<String> {
        let waits = |scheduled: &&ScheduledEvent<'_>| {
            scheduled.state == State::Pending && scheduled.after.is_some() && self.failure.is_none()
        };
        let names = self.events.iter().filter(waits);
        names.map(|it| format!("`{}`", it.reading.server)).collect()
    }

    /// Undoes active events and waits until all servers are ready. If a server cannot be restored,
    /// the agents are reported lost, so that everything is restarted.
    pub(super) fn undo_all(self, means: &mut Means<'_>) -> Result<Vec<EventReading>, AgentError> {
        let mut readings = Vec::new();
        let lost = |scheduled: &ScheduledEvent<'_>, e: AgentError| {
            AgentError::Lost(format!("{} could not be restored: {e}", scheduled.target()))
        };
        let mut result = self.failure.map_or(Ok(()), Err);
        let (opened_ns, window) = (self.opened_ns, self.window);
        for mut scheduled in self.events {
            if let Some(opened_ns) = opened_ns {
                scheduled.record_missed(opened_ns, window);
            }
            let undone = match scheduled.state {
                State::Stopping => scheduled
                    .action
                    .await_stop(means)
                    .and_then(|()| scheduled.action.undo(means, AT_ONCE))
                    .map(drop),
                State::Active => scheduled.action.undo(means, AT_ONCE).map(drop),
                State::Pending | State::Starting | State::Undone => Ok(()),
            };
            if let Err(e) = undone {
                result = Err(lost(&scheduled, e));
            } else if scheduled.state != State::Pending {
                match (scheduled.action.await_ready(means), opened_ns) {
                    // It was started again in the window.
                    (Ok(ready_ns), Some(opened_ns)) if scheduled.state == State::Starting => {
                        scheduled.reading.back_s = Some(since_s(opened_ns, ready_ns));
                    }
                    (ready, _) => result = result.and(ready.map(drop)),
                }
            }
            if scheduled.state != State::Pending || scheduled.after.is_none() {
                readings.push(scheduled.reading);
            }
        }
        result.map(|()| readings)
    }
}

impl<'s> ScheduledEvent<'s> {
    fn new(action: Action<'s>, after: Option<usize>, window: Duration) -> Self {
        let event: &EventSpec = action.event;
        let (server, host) = match action.target {
            Target::Server(server) => (server.name.clone(), None),
            Target::Host(host) => (String::new(), Some(host.to_owned())),
        };
        Self {
            reading: EventReading {
                server,
                host,
                what: event.kind.word().to_owned(),
                ..EventReading::default()
            },
            until: event.until.filter(|until| *until < window),
            action,
            state: State::Pending,
            after,
            before: None,
            usual_per_s: None,
            held_ns: i64::MIN,
            since: None,
            checked_ns: None,
        }
    }

    fn is_of(&self, target: Target<'_>) -> bool {
        match target {
            Target::Server(server) => self.reading.server == server.name,
            Target::Host(host) => self.reading.host.as_deref() == Some(host),
        }
    }

    /// The server or host, in words.
    fn target(&self) -> String {
        match self.action.target {
            Target::Server(server) => format!("server `{}`", server.name),
            Target::Host(host) => format!("host `{host}`"),
        }
    }

    fn advance(
        &mut self,
        means: &mut Means<'_>,
        moments: Moments,
        due: Option<Duration>,
    ) -> Result<(), AgentError> {
        let opened_ns = moments.opened_ns;
        // An order takes time to arrive, so it is given before it is due.
        let lead_ns = means.lead_ns(self.action.host(), self.action.bytes());
        let soon_ns = now_ns() + lead_ns;
        // Orders are given in the order in which they are due: each one waits for its moment.
        let is_next = |due_ns: i64| moments.next_ns.is_none_or(|next_ns| due_ns <= next_ns);
        let is_due = |due: &Duration| {
            let due_ns = after(opened_ns, *due);
            soon_ns >= due_ns && is_next(due_ns)
        };
        let event = self.action.event;
        let (due, until) = (due.filter(is_due), self.until.filter(is_due));
        match (self.state, due, until) {
            (State::Pending, Some(due), _) => {
                let first = self.before;
                self.sample_cpu(means);
                self.usual_per_s = first.zip(self.before).and_then(per_s);
                self.begin(means, moments, after(opened_ns, due))?;
            }
            (State::Pending, ..) if self.before.is_none() => self.sample_cpu(means),
            (State::Active, _, Some(until)) => {
                let due_ns = after(opened_ns, until);
                let undone = self.action.undo(means, due_ns)?;
                self.record_lateness(due_ns, undone.began_ns);
                self.after_undo(means, opened_ns, undone);
            }
            (State::Stopping, ..) => {
                if self.action.is_stopped(means)? {
                    // Set first: it has to be started again also if that fails now.
                    self.state = State::Active;
                    let started = self.action.undo(means, AT_ONCE)?;
                    self.after_undo(means, opened_ns, started);
                }
            }
            (State::Starting, ..) => {
                if let Some(ready_ns) = self.action.ready(means)? {
                    self.record_undone(means, opened_ns, ready_ns);
                }
            }
            (State::Active, ..) if event.kind == EventKind::Stop => {
                // With very many connections a sample takes long, and the agent carries out one order
                // at a time.
                let sampled_ns = now_ns() + SAMPLE_INTERVAL.as_nanos() as i64;
                if moments.next_ns.is_none_or(|next_ns| sampled_ns < next_ns) {
                    self.sample_connections(means);
                }
            }
            (State::Active, ..) if event.kind == EventKind::Reload => {
                self.check_effect(means, opened_ns)?
            }
            (State::Undone, ..) => self.sample_share(means, opened_ns),
            (State::Pending | State::Active, ..) => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        means: &mut Means<'_>,
        moments: Moments,
        due_ns: i64,
    ) -> Result<(), AgentError> {
        let opened_ns = moments.opened_ns;
        let kind = self.action.event.kind;
        // Set first: an event that has partly begun is undone too.
        self.state = match kind {
            EventKind::Rolling => State::Stopping,
            _ => State::Active,
        };
        let begun = self.action.begin(means, due_ns)?;
        self.reading.at_s = match kind {
            // A reload or rolling restart goes on after its order, so the order's start counts.
            EventKind::Reload | EventKind::Rolling => since_s(opened_ns, begun.began_ns),
            _ => since_s(opened_ns, begun.ended_ns),
        };
        // One that follows another is due when that is over.
        if self.after.is_none() {
            self.record_lateness(due_ns, begun.began_ns);
        }
        self.before = None;
        Ok(())
    }

    /// Records how late it was begun, or its undoing. What it takes then is part of the event.
    fn record_lateness(&mut self, due_ns: i64, began_ns: i64) {
        let late_s = self.reading.late_s.get_or_insert(0.0);
        *late_s = late_s.max(since_s(due_ns.max(self.held_ns), began_ns));
    }

    /// Records how late an event was at the window's end that was due before and was not begun, or not
    /// undone.
    fn record_missed(&mut self, opened_ns: i64, window: Duration) {
        let missed = match self.state {
            State::Pending if self.after.is_none() => {
                Some(self.action.event.at).filter(|at| *at < window)
            }
            State::Active => self.until,
            _ => None,
        };
        if let Some(missed) = missed {
            // Also of one that was held back: it did not happen.
            self.held_ns = i64::MIN;
            self.record_lateness(after(opened_ns, missed), after(opened_ns, window));
        }
    }

    /// A restarted server now has to become ready; other events are over.
    fn after_undo(&mut self, means: &mut Means<'_>, opened_ns: i64, undone: Moment) {
        match self.action.event.kind {
            EventKind::Kill | EventKind::Rolling => self.state = State::Starting,
            _ => self.record_undone(means, opened_ns, undone.ended_ns),
        }
    }

    /// Records when the event was undone.
    fn record_undone(&mut self, means: &mut Means<'_>, opened_ns: i64, back_ns: i64) {
        self.state = State::Undone;
        self.reading.back_s = Some(since_s(opened_ns, back_ns));
        self.before = None;
        self.sample_cpu(means);
    }

    /// Checks whether a reload is in effect, unless it was seen to be already.
    fn check_effect(&mut self, means: &mut Means<'_>, opened_ns: i64) -> Result<(), AgentError> {
        let is_recent = |ns: i64| now_ns() - ns < CHECK_INTERVAL.as_nanos() as i64;
        if self.reading.in_effect_after_s.is_some() || self.checked_ns.is_some_and(is_recent) {
            return Ok(());
        }
        self.checked_ns = Some(now_ns());
        if let Some(seen_ns) = self.action.in_effect(means)? {
            let after_s = since_s(opened_ns, seen_ns) - self.reading.at_s;
            self.reading.in_effect_after_s = Some(after_s);
        }
        Ok(())
    }

    /// Samples the server's CPU time, at most once per interval. Errors are ignored: another event
    /// may have stopped the server.
    fn sample_usage(
        &mut self,
        means: &mut Means<'_>,
        port: Option<u16>,
    ) -> Option<(f64, Option<u64>)> {
        let server = self.action.server()?;
        let is_recent = |(ns, _): (i64, f64)| now_ns() - ns < SAMPLE_INTERVAL.as_nanos() as i64;
        if !self.reading.has_rotation() || self.before.is_some_and(is_recent) {
            return None;
        }
        let order = Order::Usage {
            server: server.name.clone(),
            port,
            memory: false,
        };
        match self.action.ask(means, order) {
            Ok((
                moment,
                Answer::Usage {
                    cpu_s, connections, ..
                },
            )) => {
                self.before = Some((moment.began_ns, cpu_s));
                Some((cpu_s, connections))
            }
            _ => None,
        }
    }

    fn sample_cpu(&mut self, means: &mut Means<'_>) {
        let _ = self.sample_usage(means, None);
    }

    fn sample_connections(&mut self, means: &mut Means<'_>) {
        let port = self.action.server().map(|one| one.ready.address.port());
        if let Some((_, Some(open))) = self.sample_usage(means, port) {
            let most = self.reading.connections_max.get_or_insert(open);
            *most = open.max(*most);
        }
    }

    /// Checks whether the server is back in rotation.
    fn sample_share(&mut self, means: &mut Means<'_>, opened_ns: i64) {
        let (None, Some(back_s)) = (self.reading.in_rotation_after_s, self.reading.back_s) else {
            return;
        };
        let first = self.before;
        if self.sample_usage(means, None).is_none() {
            return;
        }
        // Where nothing is usual, there is nothing to look for.
        let Some(usual_per_s) = self.usual_per_s.filter(|usual_per_s| *usual_per_s > 0.0) else {
            return;
        };
        let share = first.zip(self.before).and_then(per_s);
        let has_share = share.is_some_and(|now| now >= IN_ROTATION * usual_per_s);
        self.reading.looked_for_s = since_s(opened_ns, now_ns()) - back_s;
        if !has_share {
            self.since = None;
            return;
        }
        let begin_ns = first.map_or(opened_ns, |(ns, _)| ns);
        let begin_s = since_s(opened_ns, begin_ns) - back_s;
        let (since_s, samples) = self.since.unwrap_or((begin_s.max(0.0), 0));
        self.since = Some((since_s, samples + 1));
        if samples + 1 >= SAMPLES_IN_A_ROW {
            self.reading.in_rotation_after_s = Some(since_s);
        }
    }
}

fn after(opened_ns: i64, time: Duration) -> i64 {
    opened_ns.saturating_add(time.as_nanos() as i64)
}

fn since_s(from_ns: i64, to_ns: i64) -> f64 {
    (to_ns - from_ns) as f64 / 1e9
}

fn per_s(((begin_ns, before), (end_ns, after)): ((i64, f64), (i64, f64))) -> Option<f64> {
    let took_s = since_s(begin_ns, end_ns);
    (took_s > 0.0).then(|| (after - before).max(0.0) / took_s)
}
