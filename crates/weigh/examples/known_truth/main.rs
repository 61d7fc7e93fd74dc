//! What verdicts say on this machine where the truth is known: a back end compared with itself,
//! and with one that is slower by a known share.
//!
//! ```sh
//! cargo build --release -p weigh
//! cargo run --release -p weigh --example known_truth               # 40, 20 and 20 runs
//! cargo run --release -p weigh --example known_truth -- equal=2 slowed=1 blocks=5 window=300ms
//! ```
//!
//! The built-in back end burns CPU time by `/burn/N`: N turns of a loop. Two loads say what a
//! request costs without it and what a turn costs; from these follows how many turns make a
//! request dearer by 3% or 10%. The server is what limits these loads, so its throughput is lower
//! by as much. Differences from 1% on matter here, so that 3% is one to be found.
//!
//! Where wrk is installed, what two and ten rounds of it say of the same pair stands beside it.

mod rounds;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use net::os::{ChildSetup, set_up_child};
use rounds::Missed;
use serde_json::Value;

/// CPU time that a request burns, us: much more than the rest of it, so that the client is idle.
const BURN_US: f64 = 200.0;
/// So many runs of each kind are followed by rounds of wrk, which take as long.
const WITH_ROUNDS: usize = 5;

/// What is asked for on the command line, as KEY=VALUE.
struct Wanted {
    /// Runs of the back end against itself.
    equal: usize,
    /// Runs of each of the slowed ones.
    slowed: usize,
    /// Blocks of a run; 30 looks after 10, 20 and 30.
    blocks: u32,
    /// Closed loop per subject and block.
    window: String,
    /// Open loop per subject and block.
    latency_window: String,
    /// The first run's seed; each run has the next.
    seed: u64,
    /// The program.
    weigh: PathBuf,
}

impl Wanted {
    fn of(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        // An example lies in a folder beside the program.
        let weigh = own.parent().and_then(Path::parent);
        let mut wanted = Self {
            equal: 40,
            slowed: 20,
            blocks: 30,
            window: "1s".into(),
            latency_window: "0s".into(),
            seed: 1,
            weigh: weigh.unwrap_or(Path::new(".")).join("weigh"),
        };
        for argument in arguments {
            let (key, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("expected KEY=VALUE, found `{argument}`"))?;
            let wrong = |_| format!("expected a number after `{key}=`, found `{value}`");
            match key {
                "equal" => wanted.equal = value.parse().map_err(wrong)?,
                "slowed" => wanted.slowed = value.parse().map_err(wrong)?,
                "blocks" => wanted.blocks = value.parse().map_err(wrong)?,
                "seed" => wanted.seed = value.parse().map_err(wrong)?,
                "window" => wanted.window = value.to_owned(),
                "latency_window" => wanted.latency_window = value.to_owned(),
                "weigh" => wanted.weigh = value.into(),
                _ => {
                    return Err(format!(
                        "`{key}` is unknown; known are equal, slowed, blocks, window, \
                         latency_window, seed and weigh"
                    ));
                }
            }
        }
        Ok(wanted)
    }

    /// Runs two back ends against each other, `a` with so many turns and `b` with others.
    fn run(&self, folder: &Path, turns: (u64, u64), seed: u64) -> Result<Value, String> {
        let text = format!(
            "title = \"known truth\"\n[servers.a]\nrecipe = \"origin\"\n[servers.b]\n\
             recipe = \"origin\"\n[subjects]\na = \"http://a{}\"\nb = \"http://b{}\"\n\
             [load]\nconnections = 16\n[expect]\nbody = \"same\"\n[design]\nblocks = {}\n\
             matters = \"1%\"\nwarmup = \"300ms\"\nwindow = \"{}\"\nlatency_window = \"{}\"\nbottleneck = false\n",
            page(turns.0),
            page(turns.1),
            self.blocks,
            self.window,
            self.latency_window
        );
        let file = folder.join("known-truth.toml");
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        let out = folder.join(format!("run-{seed}"));
        let mut command = Command::new(&self.weigh);
        command
            .arg("run")
            .arg(&file)
            .args(["--format", "json", "--seed", &seed.to_string(), "--out"])
            .arg(&out);
        set_up_child(&mut command, ChildSetup::dying_with_parent());
        let output = command
            .output()
            .map_err(|e| format!("{}: {e}; build it first", self.weigh.display()))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("{e}\n{}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// The page that burns so many turns.
fn page(turns: u64) -> String {
    match turns {
        0 => "/".to_owned(),
        n => format!("/burn/{n}"),
    }
}

/// What a subject's request costs its server, us.
fn cost_us(document: &Value, subject: &str) -> Result<f64, String> {
    let rows = document["table"].as_array();
    let row = rows.and_then(|rows| rows.iter().find(|row| row["subject"] == subject));
    row.and_then(|row| row["server_cpu_us_per_request"][subject].as_f64())
        .ok_or_else(|| format!("no CPU time of {subject} in {document}"))
}

/// What became of some runs.
#[derive(Default)]
struct Tally {
    comparisons: usize,
    called_different: usize,
    called_same: usize,
    held_the_truth: usize,
    blocks: f64,
    /// Comparisons without an interval.
    without: usize,
}

impl Tally {
    /// Takes a run's comparisons, prints a line for each.
    fn take(&mut self, name: &str, document: &Value, truth: f64, took_s: f64) {
        for one in document["comparisons"].as_array().into_iter().flatten() {
            // The truth is known for the throughput; latency has one only where nothing differs.
            if truth != 1.0 && one["metric"] != "requests_per_s" {
                continue;
            }
            if one["low"].is_null() {
                println!("{name}, {}: {}", one["metric"], one["sentence"]);
                self.without += 1;
                continue;
            }
            let figure = |key: &str| one[key].as_f64().unwrap_or(f64::NAN);
            let (low, high) = (figure("low"), figure("high"));
            let verdict = one["verdict"].as_str().unwrap_or_default();
            let holds = low <= truth && truth <= high;
            self.comparisons += 1;
            self.called_different += usize::from(verdict == "faster" || verdict == "slower");
            self.called_same += usize::from(verdict == "same");
            self.held_the_truth += usize::from(holds);
            self.blocks += figure("blocks");
            println!(
                "{name}, {}: {verdict}, {:+.2}% [{:+.2}%, {:+.2}%], truth {:+.2}% {}, {} blocks, {took_s:.0} s",
                one["metric"].as_str().unwrap_or_default(),
                (figure("ratio") - 1.0) * 100.0,
                (low - 1.0) * 100.0,
                (high - 1.0) * 100.0,
                (truth - 1.0) * 100.0,
                if holds { "inside" } else { "OUTSIDE" },
                one["blocks"]
            );
        }
    }

    fn show(&self, name: &str) {
        println!(
            "\n{name}: of {} comparisons {} were called different, {} the same; {} intervals hold \
             the truth; {:.1} blocks on average; {} more without an interval\n",
            self.comparisons,
            self.called_different,
            self.called_same,
            self.held_the_truth,
            self.blocks / self.comparisons.max(1) as f64,
            self.without
        );
    }
}

fn carry_out(wanted: &Wanted, folder: &Path) -> Result<(), String> {
    let mut seed = wanted.seed;
    let mut runs = |name: &str, count: usize, turns: (u64, u64), truth: f64| {
        let (mut tally, mut missed) = (Tally::default(), Missed::default());
        for number in 1..=count {
            let start = Instant::now();
            let document = wanted.run(folder, turns, seed)?;
            seed += 1;
            let took_s = start.elapsed().as_secs_f64();
            tally.take(&format!("{name} {number}"), &document, truth, took_s);
            let pages = (page(turns.0), page(turns.1));
            if number > WITH_ROUNDS {
                continue;
            }
            if let Some(said) = rounds::compare(&wanted.weigh, (&pages.0, &pages.1))? {
                missed.take(said, truth);
            }
        }
        tally.show(name);
        missed.show(name);
        Ok::<(), String>(())
    };
    runs("equal", wanted.equal, (0, 0), 1.0)?;
    if wanted.slowed == 0 {
        return Ok(());
    }
    const TURNS: u64 = 200_000;
    let calibration = Wanted {
        blocks: 3,
        weigh: wanted.weigh.clone(),
        window: wanted.window.clone(),
        latency_window: "0s".into(),
        ..*wanted
    };
    let document = calibration.run(folder, (0, TURNS), 0)?;
    let (plain_us, burnt_us) = (cost_us(&document, "a")?, cost_us(&document, "b")?);
    let turn_us = (burnt_us - plain_us) / TURNS as f64;
    let base = (BURN_US / turn_us) as u64;
    println!(
        "a request costs {plain_us:.1} us of CPU time, a turn {:.3} ns: {base} turns burn {BURN_US} us\n",
        turn_us * 1e3
    );
    for slower in [0.03, 0.10] {
        let more = slower * (plain_us + BURN_US) / turn_us;
        let name = format!("slowed by {:.0}%", slower * 100.0);
        let turns = (base, base + more as u64);
        runs(&name, wanted.slowed, turns, 1.0 / (1.0 + slower))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let folder = std::env::temp_dir().join(format!("known-truth-{}", std::process::id()));
    let done = Wanted::of(std::env::args().skip(1)).and_then(|wanted| {
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        carry_out(&wanted, &folder)
    });
    let _ = std::fs::remove_dir_all(&folder);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
