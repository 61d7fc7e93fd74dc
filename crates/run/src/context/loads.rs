//! Makes loads: one, or several on the same subjects at the same time.
//!
//! Several loads have the same segments: a subject gets all of its loads in the same windows. The
//! gap between two segments, in which the last answers arrive, is derived from what earlier loads
//! needed.

use std::time::Duration;

use experiment::{Experiment, LoadBeside, LoadRole, Rate, ResolvedCondition};
use load::{Arrivals, Segment, Wait};
use readings::Pacing;

use crate::context::Context;
use crate::context::segments::{opening, opening_pacing};
use crate::context::slice_times::SliceTimes;
use crate::event::RunEvent;
use crate::fleet::at_once;
use crate::fleet::orders::{self, LoadOrders};
use crate::fleet::timing::{NeededTimes, Timing, is_late, planned_window};
use crate::testbed::ReadySubject;
use agent::AgentError;
use agent::wire::{LoadOrder, Loaded};

/// Pause of several loads after connections are opened over links that lose packets: a lost SYN is
/// sent again after a second.
const AFTER_OPENING: Duration = Duration::from_millis(1_500);

/// The loads of a group. The first compared load is in front.
pub(crate) struct Loads {
    pub(crate) all: Vec<OneLoad>,
    /// Whether the experiment declares several loads. Then all begin at the same time.
    pub(crate) are_several: bool,
}

/// A load and the subjects that it is made on.
pub(crate) struct OneLoad {
    pub(crate) name: String,
    pub(crate) role: LoadRole,
    /// The group's condition with this as its only load.
    pub(crate) resolved: ResolvedCondition,
    pub(crate) ready: Vec<ReadySubject>,
    /// Of each of its subjects the index among those of the first load.
    numbers: Vec<usize>,
}

impl OneLoad {
    /// The index among this load's subjects of a subject of the first load, given by its index
    /// there.
    pub(crate) fn place_of(&self, number: usize) -> Option<usize> {
        self.numbers.iter().position(|one| *one == number)
    }

    /// Whether a segment is on one of its subjects.
    fn has_part_in(&self, segments: &[Segment]) -> bool {
        let mut targets = segments.iter().map(|one| one.target);
        targets.any(|target| self.place_of(target).is_some())
    }

    /// The pacing while the first load has this one. A background load with a declared rate always
    /// keeps to it.
    fn pacing_beside(&self, first: Pacing) -> Pacing {
        match (self.role, first, self.resolved.load.rate) {
            (LoadRole::Compared, Pacing::Closed, _) | (_, _, Rate::Auto) => Pacing::Closed,
            (_, _, Rate::PerSecond(rate_per_s)) => Pacing::Open { rate_per_s },
        }
    }

    /// The segments of this load, at the times of those of the first one.
    fn segments(&self, first: &[Segment], pacing: Pacing, gap: Duration) -> Vec<Segment> {
        let mut idle = Duration::ZERO;
        let mut own = Vec::new();
        for segment in first {
            idle += segment.idle_before;
            let Some(place) = self.place_of(segment.target) else {
                idle += segment.ramp_up + planned_window(segment) + gap;
                continue;
            };
            let pacing = match segment.reading {
                Some(_) => pacing,
                None => opening_pacing(self.resolved.load.connections, pacing),
            };
            own.push(Segment {
                target: place,
                reading: segment.reading.map(|_| place),
                pacing,
                idle_before: std::mem::take(&mut idle),
                ..segment.clone()
            });
        }
        own
    }
}

impl Loads {
    /// The loads of a condition, on these subjects.
    pub(crate) fn of(resolved: &ResolvedCondition, ready: &[ReadySubject]) -> Self {
        let first = OneLoad {
            name: resolved.load_name.clone().unwrap_or_default(),
            role: LoadRole::Compared,
            resolved: resolved.clone(),
            ready: ready.to_vec(),
            numbers: (0..ready.len()).collect(),
        };
        let beside = resolved.beside.iter().enumerate().map(|(at, beside)| {
            let own = ready.iter().enumerate();
            let own = own.filter_map(|(number, one)| Some((number, one.beside[at].clone()?)));
            let (numbers, ready) = own.unzip();
            OneLoad {
                name: beside.name.clone(),
                role: beside.role,
                resolved: alone(resolved, beside),
                ready,
                numbers,
            }
        });
        Self {
            all: [first].into_iter().chain(beside).collect(),
            are_several: resolved.load_name.is_some(),
        }
    }

    /// Makes the warm-up. Several loads may be late in it, since what they need is not known yet.
    pub(crate) fn warm_up(
        &self,
        cx: &mut Context<'_>,
        segments: Vec<Segment>,
    ) -> Result<Vec<Loaded>, AgentError> {
        if !self.are_several {
            let first = &self.all[0];
            let mut resolved = first.resolved.clone();
            // They are opened for what is measured.
            resolved.load.idle = 0;
            return Ok(vec![cx.load(&resolved, &first.ready, segments)?]);
        }
        let segments = self.opened(cx, segments);
        let timing = Timing {
            may_be_late: true,
            ..Timing::of(&segments)
        };
        let made = cx.carry_out(self.ordered(cx, &segments, timing.gap), Some(timing))?;
        cx.needed = NeededTimes::default();
        made.iter().for_each(|one| cx.needed.learn(one));
        Ok(self.placed(&segments, made))
    }

    /// Makes all loads in the segments of the first one. Returns what each load measured.
    ///
    /// If one of several loads is late, all are made once more, with the time between segments that
    /// it needed.
    ///
    /// # Errors
    /// When a load fails or is late again; the message has its name.
    pub(crate) fn make(
        &self,
        cx: &mut Context<'_>,
        segments: Vec<Segment>,
    ) -> Result<Vec<Loaded>, AgentError> {
        let first = &self.all[0];
        if !self.are_several {
            return Ok(vec![cx.load(&first.resolved, &first.ready, segments)?]);
        }
        let segments = self.opened(cx, segments);
        let made = cx.in_time(
            |needed| needed.timing(&segments),
            |cx, gap| self.ordered(cx, &segments, gap),
        )?;
        Ok(self.placed(&segments, made))
    }

    /// The loads that have a part in these segments.
    fn ordered(&self, cx: &Context<'_>, segments: &[Segment], gap: Duration) -> Vec<Ordered<'_>> {
        let of_first = segments.last().map_or(Pacing::Closed, |one| one.pacing);
        let mut all = Vec::new();
        for (at, one) in self.all.iter().enumerate() {
            // No subject that is ready may have this load.
            if !one.has_part_in(segments) {
                continue;
            }
            let pacing = match at {
                0 => of_first,
                _ => one.pacing_beside(of_first),
            };
            all.push(Ordered {
                name: Some(one.name.clone()),
                order: order_of(cx, at, one, one.segments(segments, pacing, gap)),
                ready: &one.ready,
            });
        }
        all
    }

    /// What each load measured: nothing where it has no part in the segments.
    fn placed(&self, segments: &[Segment], made: Vec<Loaded>) -> Vec<Loaded> {
        let mut made = made.into_iter();
        let of_load = |one: &OneLoad| match one.has_part_in(segments) {
            true => made.next().unwrap_or_default(),
            false => Loaded::default(),
        };
        self.all.iter().map(of_load).collect()
    }

    fn opened(&self, cx: &Context<'_>, segments: Vec<Segment>) -> Vec<Segment> {
        let first = &self.all[0];
        cx.opened(&first.resolved, first.ready.len(), segments, AFTER_OPENING)
    }
}

/// Says which loads are recorded and not compared.
pub(crate) fn background_notice(experiment: &Experiment) -> Option<String> {
    let background = experiment.loads.iter();
    let background = background.filter(|one| one.role == LoadRole::Background);
    let names: Vec<String> = background.map(|one| format!("`{}`", one.name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "background loads, whose figures are shown but not compared: {}",
            names.join(", ")
        )
    })
}

/// The condition with one of its loads as its only load.
fn alone(resolved: &ResolvedCondition, beside: &LoadBeside) -> ResolvedCondition {
    ResolvedCondition {
        load: beside.load.clone(),
        beside: Vec::new(),
        ..resolved.clone()
    }
}

/// The order of a load's first host. Only the first load samples the servers.
fn order_of(cx: &Context<'_>, at: usize, one: &OneLoad, segments: Vec<Segment>) -> LoadOrder {
    let mut order = cx.order(&one.resolved, &one.ready, segments);
    // Loads may have CPUs in common.
    order.job.wait = Wait::Sleep;
    if at == 0 {
        return order;
    }
    let mut order = orders::unwatched(order);
    let experiment = cx.options.experiment;
    let host = one.resolved.load.host.as_deref();
    let own = host.map(|host| orders::cpus_of(host, &experiment.hosts));
    order.job.cpus = match own {
        Some(cpus) if !cpus.is_empty() || experiment.hosts_are_machines() => cpus,
        _ => order.job.cpus,
    };
    let load = &one.resolved.load;
    let threads = load.threads.unwrap_or(order.job.cpus.len().max(1) as u32);
    let threads = threads.clamp(1, load.connections);
    let fit = |threads, target: &load::Target| target.threads(threads);
    order.job.threads = order.job.targets.iter().fold(threads, fit) as usize;
    // At equal intervals their requests would be in step with those of the first load.
    order.job.arrivals = Arrivals::Poisson;
    order.job.seed ^= (at as u64) << 32;
    order
}

/// A load to be made: the order of its first host, and its subjects.
struct Ordered<'r> {
    /// Its name, if there are several loads.
    name: Option<String>,
    order: LoadOrder,
    ready: &'r [ReadySubject],
}

impl Context<'_> {
    /// Makes one load.
    pub(crate) fn load(
        &mut self,
        resolved: &ResolvedCondition,
        ready: &[ReadySubject],
        segments: Vec<Segment>,
    ) -> Result<Loaded, AgentError> {
        let segments = self.opened(resolved, ready.len(), segments, Duration::ZERO);
        self.load_order(self.order(resolved, ready, segments), ready)
    }

    /// An open loop whose requests are due at exponentially distributed intervals. Loads of
    /// different `salt` have other intervals.
    pub(crate) fn load_poisson(
        &mut self,
        resolved: &ResolvedCondition,
        ready: &[ReadySubject],
        segments: Vec<Segment>,
        salt: u64,
    ) -> Result<Loaded, AgentError> {
        let segments = self.opened(resolved, ready.len(), segments, Duration::ZERO);
        let mut order = self.order(resolved, ready, segments);
        order.job.arrivals = Arrivals::Poisson;
        order.job.seed ^= salt;
        self.load_order(order, ready)
    }

    /// The segments, after such that open the connections where packets may be lost, and a pause.
    fn opened(
        &self,
        resolved: &ResolvedCondition,
        targets: usize,
        mut segments: Vec<Segment>,
        pause: Duration,
    ) -> Vec<Segment> {
        let hosts = self.options.experiment.hosts.iter();
        let mut links = hosts.filter_map(|host| host.link);
        match segments.first_mut() {
            // A lost SYN is retransmitted after 1 s, which would span several slices.
            Some(first) if links.any(|link| link.loss > 0.0) => {
                first.idle_before += pause;
                let pacing = match resolved.load.replay {
                    // Requests of an open loop would be the log's first.
                    Some(_) => Pacing::Closed,
                    None => first.pacing,
                };
                let opening = opening(targets, resolved.load.connections, pacing);
                [opening, segments].concat()
            }
            _ => segments,
        }
    }

    /// Carries the order of one load out. If several hosts make the load and one of them is late,
    /// it is made once more.
    ///
    /// # Errors
    /// When an agent is lost, the load fails, or a host is late again.
    pub(crate) fn load_order(
        &mut self,
        order: LoadOrder,
        ready: &[ReadySubject],
    ) -> Result<Loaded, AgentError> {
        let ordered = |order| {
            let name = None;
            vec![Ordered { name, order, ready }]
        };
        let made = match ready.first() {
            Some(one) if !one.also_from.is_empty() => {
                let segments = &order.job.segments;
                let timing = |needed: &NeededTimes| {
                    let needed = needed.timing(segments);
                    let gap = Timing::of(segments).gap.max(needed.gap);
                    Timing { gap, ..needed }
                };
                self.in_time(timing, |_, _| ordered(order.clone()))?
            }
            _ => self.carry_out(ordered(order), None)?,
        };
        Ok(made.into_iter().next().unwrap_or_default())
    }

    /// Makes loads that begin at the same time; they depend on the gap between segments. If one is
    /// late, all are made once more, with the time between segments that they needed: answers may
    /// take longer than was known before.
    fn in_time<'r>(
        &mut self,
        timing: impl Fn(&NeededTimes) -> Timing,
        ordered: impl Fn(&Self, Duration) -> Vec<Ordered<'r>>,
    ) -> Result<Vec<Loaded>, AgentError> {
        let first = Timing {
            may_be_late: true,
            ..timing(&self.needed)
        };
        let made = self.carry_out(ordered(self, first.gap), Some(first))?;
        made.iter().for_each(|one| self.needed.learn(one));
        if !made.iter().any(is_late) || self.stopped() {
            return Ok(made);
        }
        let second = timing(&self.needed);
        self.carry_out(ordered(self, second.gap), Some(second))
    }

    /// Makes loads. `timing` is that of loads that begin at the same time; without it one host makes
    /// one load.
    fn carry_out(
        &mut self,
        loads: Vec<Ordered<'_>>,
        timing: Option<Timing>,
    ) -> Result<Vec<Loaded>, AgentError> {
        let Some(first) = loads.first() else {
            return Ok(Vec::new());
        };
        let segments = &first.order.job.segments;
        let subject = |segment: &Segment| first.ready[segment.target].planned.subject.clone();
        let subjects: Vec<String> = segments.iter().map(subject).collect();
        let mut times = SliceTimes::of(segments);
        let from = first.ready.first().and_then(|one| one.from.as_deref());
        let scheduling = first.order.sample_scheduling;
        let remote = self.testbed.start_remote_sampling(from, scheduling)?;
        let emit = &mut *self.emit;
        let mut progress = |segment: usize, requests: u64, errors: u64| {
            times.begins(segment).into_iter().for_each(&mut *emit);
            emit(RunEvent::Load {
                subject: subjects.get(segment).cloned().unwrap_or_default(),
                requests,
                errors,
            });
        };
        let mut made = Vec::new();
        match timing {
            Some(timing) => {
                let declared = &self.options.experiment.hosts;
                let of_load = |one: Ordered<'_>| LoadOrders {
                    name: one.name,
                    hosts: orders::parts(one.order, one.ready, declared, timing.gap),
                };
                let loads = loads.into_iter().map(of_load).collect();
                made = at_once::carry_out(self.testbed, loads, timing, self.stop, &mut progress)?;
            }
            None => {
                for one in loads {
                    let agent = self.testbed.agent(from)?;
                    made.push(agent.load(one.order, self.stop, &mut progress)?);
                }
            }
        }
        times.ends().into_iter().for_each(&mut *self.emit);
        if let Some(first) = made.first_mut() {
            let there = self
                .testbed
                .add_remote_samples(from, remote, &mut first.measured)?;
            if let Some(seen) = &mut first.seen {
                there.into_iter().for_each(|one| one.add_to(seen));
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::segments::segment;
    use experiment::Recipes;

    #[test]
    fn a_load_that_a_subject_does_not_have_is_idle_meanwhile() {
        let text = "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n";
        let recipes = Recipes::embedded().unwrap();
        let experiment = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        let load = OneLoad {
            name: "slow".into(),
            role: LoadRole::Background,
            resolved: experiment.under(&Default::default()),
            ready: Vec::new(),
            numbers: vec![1],
        };
        let slice = |target: usize, window_ms: f64| {
            segment(target, Pacing::Closed, 10.0, window_ms, Some(target))
        };
        let first = [
            slice(0, 100.0),
            slice(1, 200.0),
            slice(0, 50.0),
            slice(0, 40.0),
        ];
        let gap = Duration::from_millis(5);
        let rate = Pacing::Open { rate_per_s: 7.0 };
        let own = load.segments(&first, rate, gap);
        assert_eq!(own.len(), 1);
        assert_eq!((own[0].target, own[0].reading), (0, Some(0)));
        assert_eq!((own[0].pacing, own[0].stop), (rate, first[1].stop));
        assert_eq!(own[0].idle_before, Duration::from_millis(115));
        let own = load.segments(&[first.as_slice(), &first].concat(), rate, gap);
        let between = own[1].idle_before;
        assert_eq!(between, Duration::from_millis(65 + 55 + 115));
    }
}
