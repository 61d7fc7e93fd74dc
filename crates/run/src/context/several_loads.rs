//! Several loads that are made on the same subjects at the same time.
//!
//! All loads have the same segments: a subject gets all of its loads in the same windows. The gap
//! between two segments, in which the last answers arrive, is derived from what earlier loads
//! needed.

use std::time::Duration;

use experiment::{Experiment, LoadBeside, LoadRole, Rate, ResolvedCondition};
use load::{Arrivals, Segment, Stop, Wait};
use readings::Pacing;

use crate::context::Context;
use crate::context::slice_times::SliceTimes;
use crate::event::RunEvent;
use crate::fleet::at_once::{self, LoadOrders, NeededTimes, Timing};
use crate::group::ReadySubject;
use crate::measure::schedule;
use agent::AgentError;
use agent::wire::{LoadOrder, Loaded};

/// Pause after connections are opened over links that lose packets: a lost SYN is sent again after
/// a second.
const AFTER_OPENING: Duration = Duration::from_millis(1_500);

/// The loads of a group. The first compared load is in front.
pub(crate) struct SeveralLoads {
    pub(crate) all: Vec<OneLoad>,
    needed: NeededTimes,
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

    /// The pacing while the first load is a closed loop. A background load with a declared rate
    /// keeps to it.
    pub(crate) fn closed_pacing(&self) -> Pacing {
        match self.role {
            LoadRole::Background => self.open_pacing(),
            LoadRole::Compared => Pacing::Closed,
        }
    }

    /// The pacing while the first load is an open loop.
    pub(crate) fn open_pacing(&self) -> Pacing {
        match self.resolved.load.rate {
            Rate::PerSecond(rate_per_s) => Pacing::Open { rate_per_s },
            Rate::Auto => Pacing::Closed,
        }
    }

    /// The segments of this load, at the times of those of the first one.
    fn segments(&self, first: &[Segment], pacing: Pacing, gap: Duration) -> Vec<Segment> {
        let mut idle = Duration::ZERO;
        let mut own = Vec::new();
        for segment in first {
            idle += segment.idle_before;
            let Some(place) = self.place_of(segment.target) else {
                let window = match segment.stop {
                    Stop::After(window) => window,
                    Stop::Requests(_) | Stop::EachConnection(_) => Duration::ZERO,
                };
                idle += segment.ramp_up + window + gap;
                continue;
            };
            let pacing = match segment.reading {
                Some(_) => pacing,
                None => schedule::opening_pacing(self.resolved.load.connections, pacing),
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

impl SeveralLoads {
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
            needed: NeededTimes::default(),
        }
    }

    /// Carries out the warm-up. Loads may be late in it, since what they need is not known yet.
    pub(crate) fn warm_up(
        &mut self,
        cx: &mut Context<'_>,
        segments: &[Segment],
    ) -> Result<Vec<Loaded>, AgentError> {
        let mut timing = Timing::of(segments);
        timing.may_be_late = true;
        let pacings = self.all.iter().map(OneLoad::closed_pacing).collect();
        let loaded = self.carry_out(cx, segments, pacings, timing)?;
        self.learn(&loaded);
        Ok(loaded)
    }

    /// Carries out the segments of the first load with all loads; `pacings` has one for each load.
    ///
    /// If a load is late, all are made once more, with the time between segments that it needed.
    ///
    /// # Errors
    /// When a load fails or is late again; the message has its name.
    pub(crate) fn measure(
        &mut self,
        cx: &mut Context<'_>,
        segments: &[Segment],
        pacings: Vec<Pacing>,
    ) -> Result<Vec<Loaded>, AgentError> {
        let mut timing = self.needed.timing(segments);
        timing.may_be_late = true;
        let loaded = self.carry_out(cx, segments, pacings.clone(), timing)?;
        self.learn(&loaded);
        if !loaded.iter().any(at_once::is_late) || cx.stopped() {
            return Ok(loaded);
        }
        let timing = self.needed.timing(segments);
        self.carry_out(cx, segments, pacings, timing)
    }

    fn learn(&mut self, loaded: &[Loaded]) {
        loaded.iter().for_each(|one| self.needed.learn(one));
    }

    fn carry_out(
        &self,
        cx: &mut Context<'_>,
        segments: &[Segment],
        pacings: Vec<Pacing>,
        timing: Timing,
    ) -> Result<Vec<Loaded>, AgentError> {
        let segments = self.opened(cx, segments);
        let declared = &cx.options.experiment.hosts;
        let mut started = Vec::new();
        let mut places = Vec::new();
        for (at, (one, pacing)) in self.all.iter().zip(pacings).enumerate() {
            let own = one.segments(&segments, pacing, timing.gap);
            // No subject that is ready has this load.
            if own.is_empty() {
                continue;
            }
            let order = order_of(cx, at, one, own);
            places.push(at);
            started.push(LoadOrders {
                name: Some(one.name.clone()),
                hosts: at_once::parts(order, &one.ready, declared, timing.gap),
            });
        }
        let subjects = segments
            .iter()
            .map(|segment| &self.all[0].ready[segment.target]);
        let subjects: Vec<String> = subjects.map(|one| one.planned.subject.clone()).collect();
        let from = self.all[0].resolved.load.host.as_deref();
        let remote = cx.testbed.start_remote_sampling(from)?;
        let emit = &mut *cx.emit;
        let mut times = SliceTimes::of(&segments);
        let mut progress = |segment: usize, requests: u64, errors: u64| {
            times.begins(segment).into_iter().for_each(&mut *emit);
            emit(RunEvent::Load {
                subject: subjects.get(segment).cloned().unwrap_or_default(),
                requests,
                errors,
            });
        };
        let made = at_once::carry_out(cx.testbed, started, timing, cx.stop, &mut progress)?;
        times.ends().into_iter().for_each(&mut *cx.emit);
        let mut all = vec![Loaded::default(); self.all.len()];
        for (at, loaded) in places.into_iter().zip(made) {
            all[at] = loaded;
        }
        cx.testbed
            .add_remote_samples(from, remote, &mut all[0].measured)?;
        Ok(all)
    }

    /// The segments. If links lose packets, segments that open the connections come first.
    fn opened(&self, cx: &Context<'_>, segments: &[Segment]) -> Vec<Segment> {
        let hosts = cx.options.experiment.hosts.iter();
        let mut links = hosts.filter_map(|host| host.link);
        let mut segments = segments.to_vec();
        if links.any(|link| link.loss > 0.0)
            && let Some(first) = segments.first_mut()
        {
            first.idle_before = AFTER_OPENING;
            let load = &self.all[0];
            let connections = load.resolved.load.connections;
            let opening = schedule::opening(load.ready.len(), connections, first.pacing);
            segments = [opening, segments].concat();
        }
        segments
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
    let mut order = at_once::unwatched(order);
    let experiment = cx.options.experiment;
    let host = one.resolved.load.host.as_deref();
    let own = host.map(|host| at_once::cpus_of(host, &experiment.hosts));
    order.job.cpus = match own {
        Some(cpus) if !cpus.is_empty() || experiment.hosts_are_machines() => cpus,
        _ => order.job.cpus,
    };
    let load = &one.resolved.load;
    let threads = load.threads.unwrap_or(order.job.cpus.len().max(1) as u32);
    order.job.threads = threads.clamp(1, load.connections) as usize;
    // At equal intervals their requests would be in step with those of the first load.
    order.job.arrivals = Arrivals::Poisson;
    order.job.seed ^= (at as u64) << 32;
    order
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let segment = |target: usize, window_ms: f64| {
            schedule::segment(target, Pacing::Closed, 10.0, window_ms, Some(target))
        };
        let first = [
            segment(0, 100.0),
            segment(1, 200.0),
            segment(0, 50.0),
            segment(0, 40.0),
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
