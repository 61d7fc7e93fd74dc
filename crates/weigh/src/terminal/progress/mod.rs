//! The progress bar: one consumer of the run's events.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use readings::Outcome;
use readings::text::{listed, rate};
use run::{RetryReason, RunEvent, StartsTake, UnusableTrial, WhyRetry};
use verdict::Looks;

mod to_go;

use to_go::ToGo;

/// Shows the progress of a run: a bar on a terminal, a line per step elsewhere.
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    started: Instant,
    to_go: ToGo,
    step: String,
    what: String,
    requests: u64,
    since: Instant,
}

impl Progress {
    /// Shows on standard error.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24.cyan/dim} {percent:>3}%  {wide_msg}")
        {
            bar.set_style(style);
        }
        Self {
            bar,
            terminal,
            started: Instant::now(),
            to_go: ToGo::default(),
            step: String::new(),
            what: String::new(),
            requests: 0,
            since: Instant::now(),
        }
    }

    /// Takes an event.
    pub fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Begins {
                trials,
                groups,
                groups_per_block,
                blocks,
                estimated_s,
                after_s,
                folder,
            } => {
                self.to_go = ToGo {
                    looks: Looks::of(*blocks),
                    groups: *groups,
                    groups_per_block: *groups_per_block,
                    estimated_s: estimated_s / (*groups).max(1) as f64,
                    after_s: *after_s,
                    ..ToGo::default()
                };
                let how_many = match self.to_go.looks.is_fixed() {
                    true => format!("{trials} trials"),
                    false => format!("at most {trials} trials"),
                };
                self.line(&format!(
                    "{how_many}, about {}, kept in {}",
                    self.to_go.words(0.0),
                    folder.display()
                ));
            }
            RunEvent::GroupBegins {
                block,
                blocks,
                condition,
                left,
            } => {
                self.to_go.groups = *left;
                let condition: Vec<String> =
                    condition.iter().map(|(k, v)| format!("{k}={v}")).collect();
                self.step = format!("block {block}/{blocks} {}", condition.join(" "));
                if !self.terminal {
                    let left = self.to_go.words(self.started.elapsed().as_secs_f64());
                    eprintln!("{}, {left} to go", self.step.trim_end());
                }
            }
            RunEvent::Phase { what } => {
                self.what.clone_from(what);
                (self.requests, self.since) = (0, Instant::now());
                self.show("");
            }
            RunEvent::Load {
                subject, requests, ..
            } => {
                self.requests += requests;
                let since = self.since.elapsed().as_secs_f64();
                if since > 0.2 {
                    let rate = self.requests as f64 / since;
                    self.show(&format!(": {subject}, {rate:.0} requests/s"));
                }
            }
            RunEvent::SlicesEnd { planned_s, took_s } => {
                self.to_go.slices_end(*planned_s, *took_s);
            }
            RunEvent::TrialEnds { trial } => {
                if let Outcome::Failed { reason, .. } = &trial.outcome {
                    self.line(&format!("trial {} failed: {reason}", trial.trial));
                }
            }
            RunEvent::RateChosen(choice) => {
                let condition: Vec<String> = choice
                    .condition
                    .iter()
                    .map(|(k, v)| format!(" {k}={v}"))
                    .collect();
                self.line(&format!(
                    "latency is compared at {} requests/s{}",
                    rate(choice.rate_per_s),
                    condition.join("")
                ));
            }
            RunEvent::WarmUpChosen(choice) => self.line(&verdict::words::warm_up(choice)),
            RunEvent::StartsTake(take) => self.line(&starts_words(take)),
            RunEvent::Note { text } => self.line(text),
            RunEvent::Warning { text } => self.line(&format!("warning: {text}")),
            RunEvent::Decides(decides) => self.line(&report::decides(decides)),
            RunEvent::Unusable { trials, again } => {
                self.line(&unusable_words(trials, *again));
            }
            RunEvent::GroupEnds => {
                let elapsed_s = self.started.elapsed().as_secs_f64();
                self.to_go.group_ends(elapsed_s);
                self.show("");
            }
            RunEvent::Retry { reasons, left } => {
                for reason in reasons {
                    self.line(&retry_words(reason));
                }
                self.line(&format!(
                    "the condition is repeated ({left} {} left, including this one)",
                    if *left == 1 { "retry" } else { "retries" }
                ));
            }
            RunEvent::BottleneckBegins {
                condition,
                subject,
                left,
            } => {
                let condition: Vec<String> =
                    condition.iter().map(|(k, v)| format!(" {k}={v}")).collect();
                self.step = format!(
                    "searching for the bottleneck of {subject}{}, {left} left",
                    condition.join("")
                );
                if !self.terminal {
                    eprintln!("{}", self.step);
                }
            }
            RunEvent::Settled { block, blocks } => self.line(&format!(
                "everything is settled after {block} of at most {blocks} blocks"
            )),
        }
    }

    fn show(&self, more: &str) {
        if !self.terminal {
            return;
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        let share = elapsed / (elapsed + self.to_go.most_s(elapsed)).max(1.0);
        self.bar.set_position((share.min(0.99) * 1000.0) as u64);
        let message = format!(
            "{} to go  {} {}{more}",
            self.to_go.words(elapsed),
            self.step.trim_end(),
            self.what
        );
        self.bar.set_message(report::visible(&message).into_owned());
    }

    fn line(&self, text: &str) {
        if self.terminal {
            self.bar.suspend(|| eprintln!("{text}"));
        } else {
            eprintln!("{text}");
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// What starting servers takes, and the run with it.
fn starts_words(take: &StartsTake) -> String {
    format!(
        "starting servers takes {:.0} s per block, not {:.0} s as planned: the run of {} blocks takes \
         about {:.0} s",
        take.starts_s, take.planned_s, take.blocks, take.run_s
    )
}

fn retry_words(reason: &RetryReason) -> String {
    let why = why_words(&reason.why);
    format!("trial {}, {}: {why}", reason.trial, reason.subject)
}

fn why_words(why: &WhyRetry) -> String {
    match why {
        WhyRetry::Failed(why) => why.clone(),
        WhyRetry::Flawed(flaws) => {
            let flaws: Vec<String> = flaws.iter().map(report::trial_flaw).collect();
            flaws.join("; ")
        }
    }
}

/// Which blocks cannot be used and why, in a line: the blocks of each subject together, with the reason
/// of the last.
fn unusable_words(trials: &[UnusableTrial], again: usize) -> String {
    let mut all: Vec<(String, Vec<String>, String)> = Vec::new();
    for one in trials {
        let condition: Vec<String> = one
            .condition
            .iter()
            .map(|(k, v)| format!(" {k}={v}"))
            .collect();
        let who = format!("{}{}", one.subject, condition.join(""));
        let at = all.iter().position(|(known, ..)| *known == who);
        let at = at.unwrap_or_else(|| {
            all.push((who, Vec::new(), String::new()));
            all.len() - 1
        });
        all[at].1.push(one.block.to_string());
        all[at].2 = why_words(&one.why);
    }
    let all = all.into_iter().map(|(who, blocks, why)| {
        let plural = if blocks.len() == 1 { "" } else { "s" };
        format!("block{plural} {} of {who} ({why})", listed(&blocks))
    });
    let all: Vec<String> = all.collect();
    let then = match again {
        0 => "",
        _ => "; they are measured again",
    };
    format!("not usable: {}{then}", all.join(", "))
}
