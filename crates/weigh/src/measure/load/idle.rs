//! `--idle`: connections that are held open, and what a server of this machine holds meanwhile.

use std::thread::sleep;
use std::time::{Duration, Instant};

use agent::wire::OtherServer;
use load::{IdleHolder, Job, Target};
use readings::{IdleHeld, IdleStage};
use serde_json::json;

use super::target::{self, Called};
use super::{INVALID, extra, job, tcp_address};
use crate::cli::{Format, LoadArgs};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::output::{note_fallback, print_json, print_text};

/// The parts of the connections after whose opening the server is looked at.
const PARTS: [f64; 4] = [0.0, 0.25, 0.5, 1.0];
/// Pause in which nothing is asked, before each look.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval at which a stop is noticed.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// Idle connections that are open.
pub(super) struct Held {
    holder: IdleHolder,
    server: Option<OtherServer>,
    stages: Vec<IdleStage>,
    opened_at: Instant,
    own_bytes: f64,
}

impl Held {
    /// Opens the idle connections of a job in parts, with a look at the server after each; `None`
    /// for a job without them.
    pub(super) fn open(job: &Job, signals: &Signals) -> Result<Option<Self>, Failure> {
        let Some(holder) = IdleHolder::start(job).map_err(Failure::failed)? else {
            return Ok(None);
        };
        let mut held = Self {
            holder,
            server: tcp_address(job).and_then(agent::listening_at),
            stages: Vec::new(),
            opened_at: Instant::now(),
            own_bytes: 0.0,
        };
        let mut own = Vec::new();
        for part in PARTS {
            let opened = held.holder.open(part, &signals.stop);
            opened.map_err(Failure::failed)?;
            signals.go_on()?;
            held.look(signals, false);
            own.extend(own_memory().map(|bytes| (held.holder.open_now() as f64, bytes)));
        }
        held.own_bytes = verdict::slope(&own).unwrap_or(0.0).max(0.0);
        held.opened_at = Instant::now();
        Ok(Some(held))
    }

    /// Looks at the server after a pause.
    fn look(&mut self, signals: &Signals, is_after: bool) {
        let state = |server: &Option<OtherServer>| server.as_ref().and_then(agent::server_state);
        let (began, before) = (Instant::now(), state(&self.server));
        if before.is_some() {
            pause(PAUSE, signals);
        }
        if let Some((before, server)) = before.zip(state(&self.server)) {
            let used_s = (server.cpu_s - before.cpu_s).max(0.0);
            self.stages.push(IdleStage {
                connections: if is_after { 0 } else { self.holder.open_now() },
                is_after,
                server,
                cpu_share: used_s / began.elapsed().as_secs_f64(),
            });
        }
    }

    /// Closes them, and looks at the server once more.
    pub(super) fn close(mut self, signals: &Signals) -> Result<IdleHeld, Failure> {
        let held_s = self.opened_at.elapsed().as_secs_f64();
        let readings = self.holder.end().map_err(Failure::failed)?;
        self.look(signals, true);
        Ok(IdleHeld {
            reading: readings.into_iter().flatten().next().unwrap_or_default(),
            held_s,
            server: self.server.map(|one| one.server),
            stages: self.stages,
            own_bytes_per_connection: self.own_bytes,
        })
    }
}

/// Holds idle connections without a load beside them.
pub(super) fn alone(
    args: &LoadArgs,
    target: Target,
    called: &Called,
    signals: &Signals,
) -> Result<u8, Failure> {
    let mut job = job(args, target);
    target::prepare(&mut job, signals)?;
    let Some(held) = Held::open(&job, signals)? else {
        return Ok(0);
    };
    pause(
        args.length.duration.unwrap_or(Duration::from_secs(10)),
        signals,
    );
    let held = held.close(signals)?;
    note_fallback();
    let shown = called.to_string();
    match args.output.format {
        Format::Json => {
            let mut document = extra(called, false);
            document.remove("content_compared");
            document.insert("stopped".into(), json!(signals.stopped()));
            document.insert("idle".into(), report::idle_json(&held));
            print_json(&document.into());
        }
        Format::Text => print_text(&report::idle_terminal(&held, &shown)),
    }
    if let Some(status) = signals.status() {
        return Ok(status);
    }
    Ok(match verdict::idle_flaw(&held.reading) {
        Some(_) => INVALID,
        None => 0,
    })
}

fn pause(time: Duration, signals: &Signals) {
    let began = Instant::now();
    while let Some(left) = time.checked_sub(began.elapsed())
        && !left.is_zero()
        && !signals.stopped()
    {
        sleep(left.min(STOP_CHECK));
    }
}

/// Resident memory of this program, bytes.
fn own_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * net::os::page_bytes() as f64)
}
