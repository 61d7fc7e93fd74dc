//! What is seen of servers and machine while they are measured, against what others count.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::common::{
    KILL, LIMIT, Place, RUN, array, find, free_port, journal, signal, skip, wait_until, with_text,
};

const DESIGN: &str =
    "[design]\nblocks = 1\nlatency_window = \"0s\"\nretries = 0\nbottleneck = false\n";

fn design(warmup: &str, window: &str) -> String {
    format!("{DESIGN}warmup = \"{warmup}\"\nwindow = \"{window}\"\n")
}

fn unix_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs_f64()
}

/// A program that prints a line or more each second, and when each of its lines came.
struct Beside {
    child: Child,
    lines: std::sync::mpsc::Receiver<(f64, String)>,
}

impl Beside {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new("stdbuf")
            .arg("-oL")
            .args(arguments)
            .env("LC_ALL", "C")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send((unix_s(), line));
            }
        });
        Self { child, lines }
    }

    fn end(mut self) -> Vec<(f64, String)> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.lines.iter().collect()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Rates, each with the time at which the second ended that it is the mean of.
type Rates = Vec<(f64, f64)>;

/// The least and the most that the mean of rates between two times can be. Of the second at either end
/// only a part lies between them: what is steady falls into it by its length, and what exceeds that, a
/// burst, on either side.
fn mean_between(rates: &Rates, from: f64, to: f64) -> (f64, f64) {
    let mut covered = 0.0;
    let seconds: Vec<(f64, f64)> = rates
        .iter()
        .zip(std::iter::once(rates[0].0 - 1.0).chain(rates.iter().map(|one| one.0)))
        .map(|((end, rate), begin)| {
            let overlap = (end.min(to) - begin.max(from)).max(0.0);
            covered += overlap;
            (overlap / (end - begin), rate * (end - begin))
        })
        .collect();
    let mut within: Vec<f64> = seconds.iter().filter(|s| s.0 > 0.99).map(|s| s.1).collect();
    assert!(
        covered > 0.99 * (to - from) && !within.is_empty(),
        "{rates:?} do not cover {from} to {to}"
    );
    within.sort_by(f64::total_cmp);
    let steady = within[within.len() / 2];
    let (mut least, mut most) = (0.0, 0.0);
    for (part, count) in seconds {
        match part > 0.99 {
            true => {
                least += count;
                most += count;
            }
            false if part > 0.0 => {
                least += count.min(steady) * part;
                most += count.min(steady * part + (count - steady).max(0.0));
            }
            false => {}
        }
    }
    (least / covered, most / covered)
}

/// What pidstat prints of a process: switches of both kinds and CPU seconds, per second. The
/// process's own line has the CPU time of all its threads; switches stand in the threads' lines.
fn of_pidstat(lines: &[(f64, String)], pid: u32) -> (Rates, Rates) {
    let (mut switches, mut cpu): (Rates, Rates) = (Vec::new(), Vec::new());
    let mut head: Vec<&str> = Vec::new();
    let mut mine = false;
    for (at, line) in lines {
        if let Some(names) = line.strip_prefix("# ") {
            head = names.split_whitespace().collect();
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let field = |name: &str| fields[head.iter().position(|one| *one == name).unwrap()];
        let figure = |name: &str| -> f64 { field(name).parse().unwrap() };
        if fields.len() < head.len() || head.is_empty() {
            continue;
        }
        match field("TGID") {
            "-" if mine => {
                switches.last_mut().unwrap().1 += figure("cswch/s") + figure("nvcswch/s");
            }
            "-" => {}
            number => {
                mine = number == pid.to_string();
                if mine {
                    switches.push((*at, 0.0));
                    cpu.push((*at, (figure("%usr") + figure("%system")) / 100.0));
                }
            }
        }
    }
    (switches, cpu)
}

/// The machine's context switches per second, as vmstat prints them; its first line is the mean
/// since the machine was started.
fn of_vmstat(lines: &[(f64, String)]) -> Rates {
    let head = lines
        .iter()
        .find(|(_, line)| line.contains(" cs "))
        .unwrap();
    let at = head
        .1
        .split_whitespace()
        .position(|name| name == "cs")
        .unwrap();
    let rates = lines.iter().filter_map(|(time, line)| {
        let rate = line.split_whitespace().nth(at)?.parse().ok()?;
        Some((*time, rate))
    });
    rates.skip(1).collect()
}

/// The process that runs a verb of the program here.
fn server(place: &Place, verb: &str) -> Option<u32> {
    let all = with_text(&place.temp().display().to_string());
    let one = all
        .iter()
        .find(|process| process.to_string().contains(verb))?;
    u32::try_from(one.pid).ok()
}

/// What was counted here, and the least and the most that it is there.
type Pairs = BTreeMap<String, (f64, (f64, f64))>;

#[test]
fn switches_and_cpu_per_request_are_what_pidstat_and_vmstat_count() {
    let missing = ["pidstat", "vmstat", "stdbuf"].into_iter().find(|program| {
        let run = Command::new(program).arg("--help").output();
        run.is_err()
    });
    if let Some(program) = missing {
        return skip(&format!(
            "context switches and CPU time against pidstat and vmstat: {program} is not installed \
             (apt-get install sysstat procps)"
        ));
    }
    let pairs = against_others();
    println!("{pairs:#.4?}");
    let off =
        |(ours, (least, most)): &(f64, (f64, f64))| *ours < least * 0.95 || *ours > most * 1.05;
    let failures: Pairs = pairs.into_iter().filter(|(_, pair)| off(pair)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

fn against_others() -> Pairs {
    let mut pairs = Pairs::new();
    let place = Place::alone();
    // With a port of its own there is one back end, and none for the baseline's second copy.
    let text = format!(
        "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\nport = {}\n[servers.b]\n\
         recipe = \"balance\"\nupstreams = [\"o\"]\n[subjects]\ndirect = \"http://o/\"\n\
         balance = \"http://b/\"\n[load]\nconnections = 16\nrate = \"200/s\"\n",
        free_port()
    );
    // One slice for each subject: a look per second cannot tell shorter ones apart.
    let design = design("500ms", "6s") + "slice = \"6s\"\nbaseline = \"direct\"\n";
    // The open loops keep the servers alive behind the last window, so that pidstat prints all of it.
    let design = design.replace("latency_window = \"0s\"", "latency_window = \"1s\"");
    place.write("x.toml", &format!("{text}{design}"));
    let mut run = place.start("run x.toml --format json --out r");
    run.until("both servers run", || {
        server(&place, " origin --listen").is_some() && server(&place, " balance ").is_some()
    });
    let origin = server(&place, " origin --listen").unwrap();
    let balance = server(&place, " balance ").unwrap();
    let both = format!("{origin},{balance}");
    let pidstat = Beside::start(&["pidstat", "-h", "-H", "-t", "-u", "-w", "-p", &both, "1"]);
    let vmstat = Beside::start(&["vmstat", "-n", "1"]);
    let document = run.end_within(LIMIT).result();
    let (pidstat, vmstat) = (pidstat.end(), vmstat.end());
    for (subject, servers) in [
        ("direct", vec![("o", origin)]),
        ("balance", vec![("o", origin), ("b", balance)]),
    ] {
        let rows = journal(&place.path("r"));
        let trial = rows
            .iter()
            .find(|row| row["subject"] == subject && row["baseline_copy"] == false)
            .unwrap();
        let probed = &trial["outcome"]["done"]["probed"];
        let number = |name: &str| probed[name].as_f64().unwrap();
        let (from, to) = (number("from_unix_s"), number("to_unix_s"));
        assert!(
            (to - from - number("looked_s")).abs() < 0.1,
            "one window: {probed}"
        );
        assert!(
            number("looks") >= 5.0 * number("looked_s") * 0.8,
            "{probed}"
        );
        let per_s = number("requests") / number("looked_s");
        for (name, pid) in servers {
            let (switches, cpu) = of_pidstat(&pidstat, pid);
            let per_request = |rates: &Rates, times: f64| {
                let (least, most) = mean_between(rates, from, to);
                (least / per_s * times, most / per_s * times)
            };
            // From the journal, which has them also where the machine has made the trial invalid.
            let sampled = |key: &str| probed["servers"][name][key].as_f64().unwrap();
            let each = 1.0 / number("requests");
            pairs.insert(
                format!("switches per request of {name} for {subject}"),
                (
                    (sampled("switches_voluntary") + sampled("switches_involuntary")) * each,
                    per_request(&switches, 1.0),
                ),
            );
            let (user, system) = (
                sampled("user_s") * 1e6 * each,
                sampled("system_s") * 1e6 * each,
            );
            pairs.insert(
                format!("CPU us per request of {name} for {subject}"),
                (user + system, per_request(&cpu, 1e6)),
            );
            let row = find(array(&document["table"]), "subject", subject);
            // Its trial counts unless the machine has spoilt it.
            if let Some(shown) = row["server_cpu_us_per_request"][name].as_f64() {
                let (of_user, of_system) = (
                    row["server_cpu_user_us_per_request"][name]
                        .as_f64()
                        .unwrap(),
                    row["server_cpu_system_us_per_request"][name]
                        .as_f64()
                        .unwrap(),
                );
                assert!((shown / (of_user + of_system) - 1.0).abs() < 1e-6);
            }
        }
        let machine = probed["machine"]["context_switches"].as_f64().unwrap();
        pairs.insert(
            format!("switches per second of the machine for {subject}"),
            (
                machine / number("looked_s"),
                mean_between(&of_vmstat(&vmstat), from, to),
            ),
        );
    }
    let cost = document["probes"]["share_of_core"].as_f64().unwrap();
    println!("looking took {:.2}% of a core", cost * 100.0);
    assert!(cost > 0.0 && cost < 0.1, "{}", document["probes"]);
    pairs
}

/// The CPU time that a process has had, s.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Why the trials of a run are invalid, together.
fn reasons(document: &Value) -> String {
    let trials = array(&document["trials"]["invalid_trials"]).iter();
    let reasons = trials.flat_map(|trial| array(&trial["reasons"]).clone());
    reasons
        .map(|one| one.as_str().unwrap().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_server_that_was_started_again_while_it_was_measured_makes_its_trial_invalid() {
    let place = Place::alone();
    // A parent that starts the server again when it has ended.
    place.recipe(
        "again",
        "summary = \"it comes back\"\n[start]\n\
         command = [\"sh\", \"-c\", \"while :; do {{ weigh }} origin --listen {{ listen.addr }}; done\"]\n\
         [ready]\npath = \"/\"\nstatus = 200\n",
    );
    let text = format!(
        "title = \"t\"\n[servers.o]\nrecipe = \"again\"\n[subjects]\nx = \"http://o/\"\n[load]\n\
         connections = 32\n{}slice = \"2s\"\n",
        design("200ms", "2s")
    );
    place.write("x.toml", &text);
    let mut run = place.start(RUN);
    let origin = " origin --listen";
    let of_server = || {
        let all = with_text(&place.temp().display().to_string());
        let one = all.iter().find(|process| {
            let words = process.to_string();
            words.contains(origin) && !words.contains("while :")
        });
        one.and_then(|process| u32::try_from(process.pid).ok())
    };
    // More CPU time than the warm-up can take: it is being measured. There is one slice, since a restart
    // between two slices fails no request, and spoils nothing.
    run.until("the server is measured", || {
        of_server().is_some_and(|pid| cpu_s(pid) > 0.35)
    });
    signal(of_server().unwrap(), KILL);
    let document = run.end_within(LIMIT).json();
    let reasons = reasons(&document);
    assert!(
        reasons.contains("server `o` was started again while it was measured"),
        "{reasons}\n{document:#}"
    );
}

/// A control group with a limit of CPU time, as a container has one; removed at the end. It is so
/// low that a run comes to it also on a machine that is busy with other things.
struct Limited(std::path::PathBuf);

impl Limited {
    fn make() -> Option<Self> {
        let name = format!("we-limit-{}", std::process::id());
        let (v1, v2) = (
            std::path::Path::new("/sys/fs/cgroup/cpu"),
            std::path::Path::new("/sys/fs/cgroup"),
        );
        let is_v1 = v1.join("cpu.cfs_quota_us").exists() || v1.join("cpu.shares").exists();
        let folder = if is_v1 { v1 } else { v2 }.join(name);
        std::fs::create_dir(&folder).ok()?;
        let limited = Self(folder);
        let files = match is_v1 {
            true => [
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "8000"),
            ],
            false => {
                let _ = std::fs::write(v2.join("cgroup.subtree_control"), "+cpu");
                [("cpu.max", "8000 100000"), ("cpu.max", "8000 100000")]
            }
        };
        let written = files
            .iter()
            .all(|(file, text)| std::fs::write(limited.0.join(file), text).is_ok());
        written.then_some(limited)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let folder = self.0.clone();
        wait_until("the group is empty", Duration::from_secs(10), || {
            std::fs::remove_dir(&folder).is_ok() || !folder.exists()
        });
    }
}

#[test]
fn a_limit_of_cpu_time_that_throttles_a_run_makes_its_trials_invalid() {
    let Some(limited) = Limited::make() else {
        return skip("a limit of CPU time that throttles a run: no control group can be made");
    };
    let place = Place::alone();
    let text = format!(
        "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\n[subjects]\nx = \"http://o/burn/300000\"\n[load]\n\
         connections = 16\n{}",
        design("200ms", "1s")
    );
    place.write("x.toml", &text);
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "echo 0 > \"$1/cgroup.procs\" && shift && exec \"$@\"",
        "sh",
    ]);
    command.arg(&limited.0).arg(env!("CARGO_BIN_EXE_weigh"));
    command.args(["run", "x.toml", "--format", "json", "--out", "r"]);
    place.settle(&mut command);
    let document = place.start_command(command).end().json();
    let reasons = reasons(&document);
    assert!(
        reasons.contains("a limit of CPU time throttled the machine"),
        "{reasons}\n{document:#}"
    );
}
