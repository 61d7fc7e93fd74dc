//! What is known and said before a run begins: what its plan can decide, what was chosen to fit into a
//! time, and what on this machine is in its way.

use std::path::Path;
use std::time::Duration;

use doctor::Finding;
use experiment::Experiment;
use experiment::plan::Plan;
use experiment::within::Fit;
use serde_json::{Value, json};
use verdict::plan::{Decides, Noise};

use crate::failure::Failure;
use crate::measure::former;
use crate::show::doctor::line;

/// What is known before a run begins.
pub struct Before {
    /// How much blocks vary here.
    pub noise: Noise,
    fit: Option<Fit>,
    decides: Option<Decides>,
    /// The warm-up, and the most that the run may make of it, where that is more.
    warmup: Option<(Duration, Duration)>,
    /// Whether there is nothing to compare, and nothing else is asked than figures.
    is_alone: bool,
    blockers: Vec<Finding>,
}

impl Before {
    /// Chooses blocks and windows that fit into a time, if one is given. `folder` is that of the new
    /// run: former runs lie beside it.
    ///
    /// # Errors
    /// When no design fits into the time.
    pub fn of(
        experiment: &mut Experiment,
        within: Option<Duration>,
        bottleneck: Option<bool>,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let noise = former::noise(folder, experiment);
        let fit = match within {
            None => None,
            Some(within) => {
                let declared = experiment.clone();
                let decides = |blocks: u32, window: Duration| {
                    run::smallest_decided(&declared, &noise, blocks, window)
                };
                let kept_search = bottleneck == Some(true);
                let fit = experiment.fit(within, kept_search, &decides);
                Some(fit.map_err(Failure::words)?)
            }
        };
        Ok(Self {
            noise,
            fit,
            decides: run::decides(experiment, &noise),
            warmup: warmup_of(experiment),
            is_alone: is_alone(experiment),
            blockers: doctor::blockers(experiment),
        })
    }

    /// The lines for the terminal.
    pub fn lines(&self) -> Vec<String> {
        let fit = self.fit.as_ref().map(fit_words);
        let decides = self.decides.as_ref().map(report::decides);
        let blockers = self.blockers.iter();
        let blockers = blockers.map(|one| format!("warning: {}", line(one)));
        let warmup = self.warmup.map(warmup_words);
        let lines = fit.into_iter().chain(decides).chain(warmup);
        lines.chain(blockers).collect()
    }

    /// Says it on standard error.
    ///
    /// # Errors
    /// When a run would surely fail.
    pub fn say(&self) -> Result<(), Failure> {
        for line in self.lines() {
            eprintln!("weigh: {line}");
        }
        if self.is_alone {
            eprintln!(
                "weigh: nothing is compared: there is one subject, and no factor with two levels; \
                 its figures are shown"
            );
        }
        match self.blockers.iter().find(|one| one.is_certain) {
            Some(blocker) => Err(Failure::failed(format!(
                "this experiment cannot run here: {}",
                blocker.why
            ))),
            None => Ok(()),
        }
    }

    /// For the document of a plan: the keys `within`, `decides` and `blockers`.
    pub fn json(&self) -> [(&'static str, Value); 3] {
        let within = self.fit.map(|fit| {
            json!({
                "within_s": fit.within.as_secs_f64(),
                "blocks": fit.blocks,
                "window_s": fit.window.as_secs_f64(),
                "latency_window_s": fit.latency_window.as_secs_f64(),
                "without_bottlenecks": fit.without_bottlenecks,
                "sentence": fit_words(&fit),
            })
        });
        let decides = self.decides.map(|one| {
            json!({
                "metric": one.metric,
                "difference": one.difference,
                "sd": one.sd,
                "sentence": report::decides(&one),
            })
        });
        let blockers: Vec<String> = self.blockers.iter().map(line).collect();
        [
            ("within", json!(within)),
            ("decides", json!(decides)),
            ("blockers", json!(blockers)),
        ]
    }
}

/// The warm-up of a run that may make it longer, and the most of it.
fn warmup_of(experiment: &Experiment) -> Option<(Duration, Duration)> {
    let design = &experiment.design;
    let may_grow = experiment.events.is_empty()
        && experiment.loads.is_empty()
        && experiment.drivers().iter().all(|one| one.is_engine());
    let (warmup, most) = (design.warmup, design.warmup_max);
    (may_grow && !warmup.is_zero() && most > warmup).then_some((warmup, most))
}

fn warmup_words((warmup, most): (Duration, Duration)) -> String {
    format!(
        "warm-up of {} s, up to {} s if the first block shows that a server is not warm",
        warmup.as_secs_f64(),
        most.as_secs_f64()
    )
}

fn is_alone(experiment: &Experiment) -> bool {
    Plan::new(experiment, 0).compared.is_empty()
        && experiment.events.is_empty()
        && experiment.gates.is_empty()
        && experiment.load.curve.is_none()
}

/// What was chosen, in a line.
fn fit_words(fit: &Fit) -> String {
    let s = |time: Duration| time.as_secs_f64();
    let latency = match fit.latency_window.is_zero() {
        true => String::new(),
        false => format!(" and {:.1} s of latency", s(fit.latency_window)),
    };
    let warmup = match fit.warmup {
        Some(warmup) => format!(", after {:.1} s of warm-up", s(warmup)),
        None => String::new(),
    };
    let without = match fit.without_bottlenecks {
        true => "; no search for bottlenecks",
        false => "",
    };
    format!(
        "within {:.0} s: {} blocks, {:.1} s of throughput{latency} per subject and block{warmup}, about \
         {:.0} s{without}",
        s(fit.within),
        fit.blocks,
        s(fit.window),
        s(fit.estimated)
    )
}
