//! What is done to a server or a host when an event begins, and how that is undone.

use std::sync::atomic::Ordering;

use super::moments::{AT_ONCE, Means, Moment, TICK, here_at};
use super::time::{now_ns, sleep};
use crate::context::orders::ready_request;
use crate::testbed::{StartedServer, to_write};
use agent::AgentError;
use agent::wire::{Answer, AwaitServer, FileToWrite, Order, ReloadProbe, ReloadServer, ReloadSign};
use experiment::recipe::{self, Recipe};
use experiment::{EventKind, EventSpec, Recipes};
use readings::LinkSpec;

/// What an event happens to.
#[derive(Clone, Copy)]
pub(super) enum Target<'s> {
    Server(&'s StartedServer),
    Host(&'s str),
}

pub(super) struct Action<'s> {
    pub(super) event: &'s EventSpec,
    pub(super) target: Target<'s>,
    reload: Option<Reload>,
}

/// What beginning or undoing an event comes to.
enum Step {
    /// An order to the agent of its host.
    Order(Box<Order>),
    /// Starting the server.
    Start,
    /// Another link of its host; `None` for the declared one.
    Link(Option<LinkSpec>),
    /// CPUs that it may use; `None` for no limit.
    Quota(Option<f64>),
    Nothing,
}

impl Step {
    fn of(order: Order) -> Self {
        Self::Order(Box::new(order))
    }
}

/// The orders of a reload.
struct Reload {
    begin: ReloadServer,
    /// Restores the files that the server was started with.
    undo: ReloadServer,
    probe: ReloadProbe,
}

impl<'s> Action<'s> {
    /// `number` counts the reloads of a server, from 1.
    ///
    /// # Errors
    /// When the configuration of a reload cannot be rendered.
    pub(super) fn new(
        event: &'s EventSpec,
        target: Target<'s>,
        recipes: &Recipes,
        number: u32,
    ) -> Result<Self, AgentError> {
        let reload = match target {
            Target::Server(server) if event.kind == EventKind::Reload => {
                let recipe = recipes.get(&server.recipe);
                let reload = recipe.map(|recipe| Reload::of(server, recipe, event, number));
                reload.transpose()?
            }
            _ => None,
        };
        Ok(Self {
            event,
            target,
            reload,
        })
    }

    pub(super) fn server(&self) -> Option<&'s StartedServer> {
        match self.target {
            Target::Server(server) => Some(server),
            Target::Host(_) => None,
        }
    }

    /// The host that the event happens to; for an event on a server, the server's host.
    pub(super) fn host(&self) -> Option<&'s str> {
        match self.target {
            Target::Server(server) => server.host.as_deref(),
            Target::Host(host) => Some(host),
        }
    }

    /// The bytes of the files that go with its orders.
    pub(super) fn bytes(&self) -> usize {
        let files = self.reload.iter().flat_map(|reload| &reload.begin.files);
        files.map(|file| file.content.len()).sum()
    }

    /// Has the agent of its host carry an order out at once.
    pub(super) fn ask(
        &self,
        means: &mut Means<'_>,
        order: Order,
    ) -> Result<(Moment, Answer), AgentError> {
        means.ask(self.host(), order, AT_ONCE)
    }

    /// The name of the server; empty for a host, for which orders with a server's name are not
    /// used.
    fn name(&self) -> String {
        self.server()
            .map_or_else(String::new, |one| one.name.clone())
    }

    fn signals(&self) -> Vec<(String, u64)> {
        self.server()
            .map_or_else(Vec::new, |one| one.signals.clone())
    }

    fn poll_stop(&self) -> Order {
        Order::PollStop {
            server: self.name(),
            signals: self.signals(),
        }
    }

    /// Begins the event at a moment. For a rolling restart, sends the first stop signal;
    /// [`Self::is_stopped`] goes on from there.
    pub(super) fn begin(&self, means: &mut Means<'_>, at_ns: i64) -> Result<Moment, AgentError> {
        let settings = &self.event.settings;
        let step = match self.event.kind {
            // Without signals, the server's control group is killed at once.
            EventKind::Kill => Step::of(Order::Stop {
                server: self.name(),
                signals: Vec::new(),
            }),
            EventKind::Stop => self.suspend(true),
            EventKind::Cut => match means.testbed.hosts.at(self.host())?.link_order(false) {
                Some(order) => Step::of(order),
                None => Step::Link(Some(LinkSpec {
                    loss: 1.0,
                    ..self.declared_link(means)?
                })),
            },
            EventKind::Reload => match &self.reload {
                Some(reload) => Step::of(Order::Reload(reload.begin.clone())),
                None => return Err(failed("its recipe cannot reload it")),
            },
            EventKind::Rolling => Step::of(self.poll_stop()),
            EventKind::Quota => Step::Quota(settings.quota),
            EventKind::Slow | EventKind::Loss => {
                let declared = self.declared_link(means)?;
                let delay = settings.delay.unwrap_or_default();
                Step::Link(Some(LinkSpec {
                    rtt_ns: declared.rtt_ns + delay.as_nanos() as u64,
                    loss: settings.loss.unwrap_or(declared.loss),
                    ..declared
                }))
            }
        };
        self.carry_out(step, means, at_ns)
    }

    /// Undoes the event at a moment. For a rolling restart, starts the stopped server.
    pub(super) fn undo(&self, means: &mut Means<'_>, at_ns: i64) -> Result<Moment, AgentError> {
        let step = match self.event.kind {
            EventKind::Kill | EventKind::Rolling => Step::Start,
            EventKind::Stop => self.suspend(false),
            EventKind::Cut => match means.testbed.hosts.at(self.host())?.link_order(true) {
                Some(order) => Step::of(order),
                None => Step::Link(None),
            },
            EventKind::Reload => match &self.reload {
                Some(reload) => Step::of(Order::Reload(reload.undo.clone())),
                None => Step::Nothing,
            },
            EventKind::Quota => Step::Quota(None),
            EventKind::Slow | EventKind::Loss => Step::Link(None),
        };
        self.carry_out(step, means, at_ns)
    }

    fn carry_out(
        &self,
        step: Step,
        means: &mut Means<'_>,
        at_ns: i64,
    ) -> Result<Moment, AgentError> {
        let order = match (step, self.target) {
            (Step::Order(order), _) => *order,
            (Step::Quota(cpus), Target::Server(server)) => Order::Quota {
                server: server.name.clone(),
                cpus,
            },
            (Step::Quota(cpus), Target::Host(host)) => {
                let host = means.testbed.hosts.at(Some(host))?;
                return here_at(at_ns, || host.set_cpu_quota(cpus).map_err(failed));
            }
            (Step::Link(link), _) => {
                let host = self.host().unwrap_or_default();
                return here_at(at_ns, || means.testbed.hosts.change_link(host, link));
            }
            (Step::Start, Target::Server(server)) => Order::Start(server.start.clone()),
            (Step::Start, Target::Host(_)) | (Step::Nothing, _) => {
                return here_at(at_ns, || Ok(()));
            }
        };
        let (moment, answer) = means.ask(self.host(), order, at_ns)?;
        if let (Answer::Started { .. }, Some(server)) = (&answer, self.server()) {
            means
                .testbed
                .record_start(server.host.as_deref(), &server.name, answer);
        }
        Ok(moment)
    }

    fn suspend(&self, suspended: bool) -> Step {
        Step::of(Order::Suspend {
            server: self.name(),
            suspended,
        })
    }

    /// Whether the server of a rolling restart is stopped. Sends the signals that are due.
    pub(super) fn is_stopped(&self, means: &mut Means<'_>) -> Result<bool, AgentError> {
        let stopped = means.poll(self.host(), &self.poll_stop())?;
        Ok(stopped.is_some())
    }

    /// Waits until it is.
    pub(super) fn await_stop(&self, means: &mut Means<'_>) -> Result<(), AgentError> {
        let order = Order::Stop {
            server: self.name(),
            signals: self.signals(),
        };
        self.ask(means, order).map(drop)
    }

    /// When a reload was seen to be in effect; `None` if it is not, and for other events.
    pub(super) fn in_effect(&self, means: &mut Means<'_>) -> Result<Option<i64>, AgentError> {
        let Some(reload) = &self.reload else {
            return Ok(None);
        };
        let order = Order::IsReloaded(reload.probe.clone());
        means.poll(self.host(), &order)
    }

    /// When the server was ready; `None` if it is not yet.
    pub(super) fn ready(&self, means: &mut Means<'_>) -> Result<Option<i64>, AgentError> {
        let Some(server) = self.server() else {
            return Ok(Some(now_ns()));
        };
        let order = Order::IsReady(server.ready.clone());
        means.poll(self.host(), &order)
    }

    /// Waits until the server is ready; when it was.
    pub(super) fn await_ready(&self, means: &mut Means<'_>) -> Result<i64, AgentError> {
        while !means.stop.load(Ordering::Relaxed) {
            if let Some(ready_ns) = self.ready(means)? {
                return Ok(ready_ns);
            }
            sleep(TICK);
        }
        Err(failed("the run was stopped"))
    }

    fn declared_link(&self, means: &mut Means<'_>) -> Result<LinkSpec, AgentError> {
        let link = means.testbed.hosts.at(self.host())?.link();
        Ok(link.unwrap_or_default())
    }
}

impl Reload {
    fn of(
        server: &StartedServer,
        recipe: &Recipe,
        event: &EventSpec,
        number: u32,
    ) -> Result<Self, AgentError> {
        let params = &event.settings.params;
        let rendered = recipe.render_reload(&server.context, params, number);
        let rendered = rendered.map_err(failed)?;
        let how = rendered.reload.ok_or_else(|| {
            let name = &recipe.name;
            failed(format!("the recipe `{name}` cannot be reloaded"))
        })?;
        let mut ask = server.ready.clone();
        // What the new configuration is asked for: the last of its routes, such as one that is new.
        if is_http(&ask) && !rendered.ready.path.is_empty() {
            ask.request = ready_request(&server.name, &rendered.ready.path);
        }
        let before = &server.start.files;
        let new = rendered.files.iter().map(to_write);
        let files: Vec<FileToWrite> = new.filter(|file| !before.contains(file)).collect();
        let is_changed = |old: &&FileToWrite| files.iter().any(|file| file.path == old.path);
        let original = before.iter().filter(is_changed).cloned().collect();
        let order = |files| ReloadServer {
            server: server.name.clone(),
            files,
            signal: how.signal.clone(),
            command: how.command.clone(),
        };
        Ok(Self {
            undo: order(original),
            begin: order(files),
            probe: ReloadProbe {
                server: server.name.clone(),
                ask,
                sign: match how.sign {
                    recipe::ReloadSign::Answer(text) => ReloadSign::Answer(text),
                    recipe::ReloadSign::Output(text) => ReloadSign::Output(text),
                    recipe::ReloadSign::NewProcess => ReloadSign::NewProcess,
                },
            },
        })
    }
}

/// Whether a server is asked by HTTP, and not by its port or other bytes.
fn is_http(ask: &AwaitServer) -> bool {
    !ask.raw && !ask.request.is_empty()
}

fn failed(why: impl std::fmt::Display) -> AgentError {
    AgentError::Failed(why.to_string())
}
