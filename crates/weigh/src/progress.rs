//! The progress bar: one consumer of the run's events.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::run::RunEvent;
use readings::Outcome;

/// Shows how a run goes on: a bar on a terminal, a line per step elsewhere.
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    started: Instant,
    estimated_s: f64,
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
            estimated_s: 0.0,
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
                estimated_s,
                folder,
                ..
            } => {
                self.estimated_s = estimated_s.max(1.0);
                self.line(&format!(
                    "{trials} trials, about {}, kept in {}",
                    time(*estimated_s),
                    folder.display()
                ));
            }
            RunEvent::GroupBegins {
                block,
                blocks,
                condition,
            } => {
                let condition: Vec<String> =
                    condition.iter().map(|(k, v)| format!("{k}={v}")).collect();
                self.step = format!("block {block}/{blocks} {}", condition.join(" "));
                if !self.terminal {
                    eprintln!("{}", self.step.trim_end());
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
            RunEvent::TrialEnds { trial } => {
                if let Outcome::Failed { reason } = &trial.outcome {
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
                    choice.rate_per_s,
                    condition.join("")
                ));
            }
            RunEvent::Warning { text } => self.line(&format!("warning: {text}")),
            RunEvent::GroupEnds => self.show(""),
        }
    }

    fn show(&self, more: &str) {
        if !self.terminal {
            return;
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        let share = (elapsed / self.estimated_s.max(1.0)).min(0.99);
        self.bar.set_position((share * 1000.0) as u64);
        let left = (self.estimated_s - elapsed).max(0.0);
        self.bar.set_message(format!(
            "{} left  {} {}{more}",
            time(left),
            self.step.trim_end(),
            self.what
        ));
    }

    fn line(&self, text: &str) {
        if self.terminal {
            self.bar.suspend(|| eprintln!("{text}"));
        } else {
            eprintln!("{text}");
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A rough time for people.
fn time(seconds: f64) -> String {
    let duration = Duration::from_secs_f64(seconds.clamp(0.0, 1e7));
    match duration.as_secs() {
        s @ 0..90 => format!("{s} s"),
        s @ 90..5_400 => format!("{} min", (s + 30) / 60),
        s => format!("{:.1} h", s as f64 / 3_600.0),
    }
}
