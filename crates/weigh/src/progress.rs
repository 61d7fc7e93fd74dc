//! The progress bar: one consumer of the run's events.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use readings::Outcome;
use run::RunEvent;
use verdict::Looks;

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
                    made: 0,
                    made_s: 0.0,
                    estimated_s: estimated_s / (*groups).max(1) as f64,
                    after_s: *after_s,
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
            } => {
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
                    choice.rate_per_s,
                    condition.join("")
                ));
            }
            RunEvent::Warning { text } => self.line(&format!("warning: {text}")),
            RunEvent::GroupEnds => {
                self.to_go.groups = self.to_go.groups.saturating_sub(1);
                self.to_go.made += 1;
                self.to_go.made_s = self.started.elapsed().as_secs_f64();
                self.show("");
            }
            RunEvent::Retry { reasons, left } => {
                self.to_go.groups += 1;
                for reason in reasons {
                    self.line(reason);
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

/// How long a run still takes. Where it may stop early that is a span: to its next look, and to
/// its end.
struct ToGo {
    looks: Looks,
    /// Groups that are left, including the current one.
    groups: usize,
    groups_per_block: usize,
    /// Groups that are done.
    made: usize,
    /// When the last of them was done, since the start, s.
    made_s: f64,
    /// Duration of one group by the plan, s.
    estimated_s: f64,
    /// Duration of what comes after the last group by the plan, s.
    after_s: f64,
}

impl Default for ToGo {
    fn default() -> Self {
        Self {
            looks: Looks::of(1),
            groups: 0,
            groups_per_block: 1,
            made: 0,
            made_s: 0.0,
            estimated_s: 0.0,
            after_s: 0.0,
        }
    }
}

impl ToGo {
    /// Estimated duration of one group: the mean of those that are done, once there are some.
    fn group_s(&self) -> f64 {
        match self.made {
            0 => self.estimated_s,
            made => self.made_s / made as f64,
        }
    }

    /// To the end, if nothing settles before, s.
    fn most_s(&self, elapsed_s: f64) -> f64 {
        let under_way = (elapsed_s - self.made_s).clamp(0.0, self.group_s());
        self.groups as f64 * self.group_s() - under_way + self.after_s
    }

    /// Blocks to the next look, and to the end.
    fn next_look(&self) -> Option<u32> {
        let per_block = self.groups_per_block.max(1);
        let blocks_left = self.groups.div_ceil(per_block) as u32;
        let done = self.looks.planned().saturating_sub(blocks_left);
        self.looks.next_look(done)
    }

    fn words(&self, elapsed_s: f64) -> String {
        let most_s = self.most_s(elapsed_s).max(0.0);
        let after = self.next_look().unwrap_or(self.looks.planned());
        let beyond = (self.looks.planned() - after) as usize * self.groups_per_block;
        let least_s = (most_s - beyond as f64 * self.group_s()).max(0.0);
        if beyond == 0 || self.groups == 0 {
            return time(most_s);
        }
        format!(
            "{} (look after block {after}) to {}",
            time(least_s),
            time(most_s)
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_go_is_that_to_the_next_look_and_to_the_end() {
        let mut to_go = ToGo {
            looks: Looks::of(30),
            groups: 60,
            groups_per_block: 2,
            made: 0,
            made_s: 0.0,
            estimated_s: 6.0,
            after_s: 0.0,
        };
        assert_eq!(to_go.words(0.0), "2 min (look after block 10) to 6 min");
        // Each group took twice as long as planned: 18 blocks are done.
        (to_go.groups, to_go.made, to_go.made_s) = (24, 36, 432.0);
        assert_eq!(to_go.words(432.0), "48 s (look after block 20) to 5 min");
        (to_go.groups, to_go.made, to_go.made_s) = (4, 56, 672.0);
        assert_eq!(to_go.words(672.0), "48 s");
        assert_eq!(
            to_go.words(676.0),
            "44 s",
            "4 s of the current one are over"
        );
        to_go.looks = Looks::of(5);
        (to_go.groups, to_go.groups_per_block) = (5, 1);
        (to_go.made, to_go.made_s) = (0, 0.0);
        assert_eq!(to_go.words(0.0), "30 s");
        to_go.after_s = 15.0;
        assert_eq!(to_go.words(0.0), "45 s", "with a search for a bottleneck");
    }
}
