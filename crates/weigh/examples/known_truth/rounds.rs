//! What rounds of wrk would have said of the same pair: by hand one looks at the means of two
//! rounds, or of ten.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use net::os::{ChildSetup, set_up_child};
use tools::{Tool, read_output};

/// Length of a round, s.
const ROUND_S: u32 = 1;
/// Rounds of each back end, in turns.
const ROUNDS: usize = 10;

/// A built-in back end; it is gone when this is dropped.
struct BackEnd {
    child: Child,
    url: String,
}

impl Drop for BackEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does something while this thread, and what it starts, is kept to a CPU.
fn on_cpu<T>(cpus: &[u32], work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let before = net::os::allowed_cpus().map_err(|e| e.to_string())?;
    net::os::bind_to_cpus(cpus).map_err(|e| e.to_string())?;
    let done = work();
    net::os::bind_to_cpus(&before).map_err(|e| e.to_string())?;
    done
}

impl BackEnd {
    fn start(weigh: &Path, path: &str) -> Result<Self, String> {
        let mut command = Command::new(weigh);
        command
            .args(["origin", "--listen", "127.0.0.1:0", "--threads", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        set_up_child(&mut command, ChildSetup::dying_with_parent());
        let mut child = command
            .spawn()
            .map_err(|e| format!("{}: {e}", weigh.display()))?;
        let mut line = String::new();
        if let Some(errors) = child.stderr.take() {
            let _ = BufReader::new(errors).read_line(&mut line);
        }
        let base = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        let url = format!("{}{path}", base.unwrap_or_default().trim_end_matches('/'));
        let back_end = Self { child, url };
        match base {
            Some(_) => Ok(back_end),
            None => Err(format!("no address in `{line}`")),
        }
    }

    /// Requests per second that one round of wrk says.
    fn round(&self) -> Result<f64, String> {
        let mut command = Command::new("wrk");
        command.args(["-t1", "-c16", &format!("-d{ROUND_S}s"), &self.url]);
        set_up_child(&mut command, ChildSetup::dying_with_parent());
        let output = command.output().map_err(|e| format!("wrk: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let readings = read_output(Tool::Wrk, &text).map_err(|e| e.to_string())?;
        let rate = readings.first().and_then(|one| one.requests_per_s);
        rate.ok_or_else(|| format!("no rate in `{text}`"))
    }
}

/// The second back end's throughput over the first's, as the means of two and of ten rounds have
/// it; `None` where wrk is not installed.
pub fn compare(weigh: &Path, paths: (&str, &str)) -> Result<Option<[f64; 2]>, String> {
    if Command::new("wrk").arg("-v").output().is_err() {
        return Ok(None);
    }
    let cpus = net::os::allowed_cpus().map_err(|e| e.to_string())?;
    let (server, client) = match cpus[..] {
        [first, .., last] => (first, last),
        [only] => (only, only),
        [] => return Err("no CPU is allowed".into()),
    };
    let (a, b) = on_cpu(&[server], || {
        let a = BackEnd::start(weigh, paths.0)?;
        Ok((a, BackEnd::start(weigh, paths.1)?))
    })?;
    on_cpu(&[client], || {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (rates, back_end) in rates.iter_mut().zip([&a, &b]) {
                rates.push(back_end.round()?);
            }
        }
        let ratio = |rounds: usize| {
            let sum = |rates: &[f64]| rates[..rounds].iter().sum::<f64>();
            sum(&rates[1]) / sum(&rates[0])
        };
        Ok(Some([ratio(2), ratio(ROUNDS)]))
    })
}

/// How far rounds were from the truth.
#[derive(Default)]
pub struct Missed {
    /// Of two and of ten rounds, each comparison's error in percent of the first one's throughput.
    errors: [Vec<f64>; 2],
    wrong_sign: [usize; 2],
}

impl Missed {
    /// Takes what a comparison said.
    pub fn take(&mut self, said: [f64; 2], truth: f64) {
        for (at, ratio) in said.into_iter().enumerate() {
            self.errors[at].push((ratio - truth).abs() * 100.0);
            self.wrong_sign[at] += usize::from((ratio - 1.0) * (truth - 1.0) < 0.0);
        }
    }

    /// Prints it.
    pub fn show(&mut self, name: &str) {
        for (at, rounds) in ["two rounds", "ten rounds"].into_iter().enumerate() {
            let errors = &mut self.errors[at];
            errors.sort_by(f64::total_cmp);
            let (Some(worst), Some(middle)) = (errors.last(), errors.get(errors.len() / 2)) else {
                continue;
            };
            println!(
                "{name}, {rounds} of wrk: off by {middle:.1}% in the middle and {worst:.1}% at \
                 worst; {} of {} had the wrong sign",
                self.wrong_sign[at],
                errors.len()
            );
        }
    }
}
