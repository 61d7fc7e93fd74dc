//! What the end-to-end tests share: a folder of their own, the program with a time limit, and a
//! look at what it left behind.

#![allow(missing_docs)]

mod command_line;
mod experiments;
mod left;
mod loads;
mod screen;
pub mod started;
mod topologies;
mod turn;
mod upstream;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use command_line::{CommandLine, words};
pub use experiments::{
    DELAYED_PAGE, RUN, can_run, only_blocks_failed, proxy_and_backend, quickly, replaced, run_with,
    write_light_proxy_cost,
};
pub use left::{alive, control_groups, descendants, devices, groups_of_hosts, with_text};
pub use loads::{histogram, load, measured, no_errors, number, sum};
pub use screen::{Shown, shown};
pub use testing::skip;
pub use topologies::{
    BackEnd, PROGRAM, command_on, copy_program, far, hosts_or_skip, load_on, program, run_on, spec,
    topology,
};
pub use turn::Turn;
pub use upstream::{Answering, Origin, Talk, free_port, serve_tcp, serve_unix};

/// No single call may take longer; it is far more than any needs.
pub const LIMIT: Duration = Duration::from_secs(300);
pub const HUP: i32 = 1;
pub const INT: i32 = 2;
pub const KILL: i32 = 9;
pub const TERM: i32 = 15;

/// Whether a program is on the path or where Debian has it for root.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/go/bin", "/usr/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .any(|dir| dir.join(program).exists())
}

/// Whether a package belongs to those that only `./check --all` tests.
pub fn is_left_out(package: &str) -> bool {
    let left_out = std::env::var("WEIGH_LEFT_OUT").unwrap_or_default();
    left_out.split(' ').any(|one| one == package)
}

/// Waits until something holds; fails with what was waited for when it takes too long.
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !holds() {
        assert!(
            Instant::now() < end,
            "waited {limit:?} in vain until {what}"
        );
        sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process that the test has started.
pub fn signal(pid: u32, number: i32) {
    net::os::kill(i32::try_from(pid).unwrap(), number).unwrap();
}

/// A folder of a test's own. Programs that the test starts keep their temporary files in it, by
/// which they are known.
pub struct Place {
    _turn: turn::Turn,
    dir: PathBuf,
    calls: AtomicU32,
    /// The CPU that [`weigh`](Self::weigh) pins programs to.
    cpu: Option<u32>,
}

impl Place {
    pub fn new() -> Self {
        Self::with(turn::Turn::shared())
    }

    /// For a test that measures times and takes next to no CPU time: it runs beside such tests only.
    /// [`weigh`](Self::weigh) pins programs to one CPU: on several, the load generator would busy-poll.
    pub fn quiet() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let cpus = net::os::allowed_cpus().unwrap();
        let mut place = Self::with(turn::Turn::quiet());
        place.cpu = Some(cpus[COUNT.fetch_add(1, Ordering::Relaxed) % cpus.len()]);
        place
    }

    /// For a test that no other may disturb: it runs alone.
    pub fn alone() -> Self {
        Self::with(turn::Turn::alone())
    }

    fn with(turn: turn::Turn) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // A short name: a server's socket may lie below it.
        let dir = std::env::temp_dir().join(format!("we-{}-{number}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(dir.join("t")).unwrap();
        fs::create_dir(dir.join("home")).unwrap();
        Self {
            _turn: turn,
            dir,
            calls: AtomicU32::new(0),
            cpu: None,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Where agents make their folders.
    pub fn temp(&self) -> PathBuf {
        self.path("t")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a script that can be run.
    pub fn write_script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The text of a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(name));
        text.unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The document in a file.
    #[track_caller]
    pub fn read_json(&self, name: &str) -> Value {
        let text = self.read(name);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"))
    }

    /// Writes `x.toml`: these servers, subjects and load in one brief block.
    pub fn experiment(&self, text: &str) {
        let design = "[design]\nblocks = 1\nwarmup = \"50ms\"\nwindow = \"200ms\"\n\
                      latency_window = \"0s\"\nbottleneck = false\nretries = 0\n";
        self.write("x.toml", &format!("title = \"t\"\n{text}{design}"));
    }

    /// Writes a recipe into the folder `recipes`.
    pub fn recipe(&self, name: &str, text: &str) {
        self.write(&format!("recipes/{name}/recipe.toml"), text);
    }

    /// Writes a recipe of the built-in back end with these options.
    pub fn origin_recipe(&self, name: &str, options: &[&str], more: &str) {
        let words = ["{{ weigh }}", "origin", "--listen", "{{ listen.addr }}"];
        let command = [&words, options].concat();
        self.recipe(
            name,
            &format!(
                "summary = \"{name}\"\n{more}[start]\ncommand = {command:?}\n\
                 [ready]\npath = \"/\"\nstatus = 200\ntimeout = \"20s\"\n"
            ),
        );
    }

    /// Names in the folder, those that the helpers make left out.
    pub fn names(&self) -> BTreeSet<String> {
        fs::read_dir(&self.dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !["t", "home"].contains(&name.as_str()))
            .filter(|name| !name.starts_with("call-"))
            .collect()
    }

    /// The program with arguments, to be started.
    pub fn weigh(&self, line: &(impl CommandLine + ?Sized)) -> Command {
        const WEIGH: &str = env!("CARGO_BIN_EXE_weigh");
        let mut command = match self.cpu {
            None => Command::new(WEIGH),
            Some(cpu) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cpu.to_string(), WEIGH]);
                command
            }
        };
        command.args(line.words());
        self.settle(&mut command);
        command
    }

    /// The same, finding the programs in this place's `bin` before others.
    pub fn weigh_with_bin(&self, line: &(impl CommandLine + ?Sized)) -> Command {
        let mut command = self.weigh(line);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command
    }

    /// Gives a command this place's environment.
    pub fn settle(&self, command: &mut Command) {
        command
            .current_dir(&self.dir)
            .env("TMPDIR", self.temp())
            .env("HOME", self.path("home"))
            .env("COLUMNS", "100")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("WEIGH_RECIPES")
            .env_remove("WEIGH_DRIVERS")
            .stdin(Stdio::null());
    }

    /// Starts the program.
    pub fn start(&self, line: &(impl CommandLine + ?Sized)) -> Running<'_> {
        self.start_command(self.weigh(line))
    }

    /// Starts a command, its output going to files.
    pub fn start_command(&self, mut command: Command) -> Running<'_> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let out = self.path(&format!("call-{call}-out"));
        let err = self.path(&format!("call-{call}-err"));
        let child = command
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        Running {
            child,
            out,
            err,
            place: self,
            agents: BTreeSet::new(),
            words: format!("{command:?}"),
        }
    }

    /// Runs the program to its end.
    pub fn run(&self, line: &(impl CommandLine + ?Sized)) -> Done {
        self.start(line).end()
    }

    /// What programs of this place have left: processes, and agents' folders.
    pub fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = left::with_text(&self.temp().display().to_string())
            .into_iter()
            .map(|process| process.to_string())
            .collect();
        left.extend(names_in(&self.temp()));
        left
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let text = self.temp().display().to_string();
        // After a failed test the agents clean up by themselves; they have a moment to do it.
        let end = Instant::now() + Duration::from_secs(3);
        while !left::with_text(&text).is_empty() && Instant::now() < end {
            sleep(Duration::from_millis(50));
        }
        for process in left::with_text(&text) {
            // Known by this place's name, so it was started here.
            let _ = net::os::kill(process.pid, KILL);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .map(|entries| {
            entries
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect()
        })
        .unwrap_or_default()
}

/// A program that runs; it is killed when the test fails.
pub struct Running<'a> {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    place: &'a Place,
    /// Names of the agents' folders that were seen.
    agents: BTreeSet<String>,
    words: String,
}

impl Running<'_> {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, number: i32) {
        signal(self.pid(), number);
    }

    /// Its standard input, where the command has made it a pipe.
    pub fn input(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Where its standard output goes.
    pub fn output_file(&self) -> PathBuf {
        self.out.clone()
    }

    /// What it has written on standard output so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    /// Looks which agents there are.
    pub fn look(&mut self) -> &BTreeSet<String> {
        self.agents.extend(names_in(&self.place.temp()));
        &self.agents
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until something holds while the program runs.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + LIMIT;
        while !holds() {
            self.look();
            let ended = self.has_ended();
            assert!(
                !ended && Instant::now() < end,
                "{} {} before {what}:\n{}",
                self.words,
                if ended { "ended" } else { "took too long" },
                self.errors()
            );
            sleep(Duration::from_millis(10));
        }
        self.look();
    }

    /// Waits until the program has said something.
    pub fn until_said(&mut self, text: &str) {
        let err = self.err.clone();
        self.until(&format!("it said `{text}`"), || {
            String::from_utf8_lossy(&fs::read(&err).unwrap()).contains(text)
        });
    }

    /// Lets the program run for a time.
    pub fn go_on(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.until("its time was over", || Instant::now() >= end);
    }

    /// Waits for the end.
    pub fn end(self) -> Done {
        self.end_within(LIMIT)
    }

    /// Waits for the end, for which there is so much time.
    pub fn end_within(mut self, limit: Duration) -> Done {
        use std::os::unix::process::ExitStatusExt as _;
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            self.look();
            assert!(
                Instant::now() < end,
                "{} did not end within {limit:?}:\n{}",
                self.words,
                self.errors()
            );
            sleep(Duration::from_millis(5));
        };
        Done {
            status: status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or(0)),
            out: String::from_utf8(fs::read(&self.out).unwrap()).unwrap(),
            err: self.errors(),
            agents: std::mem::take(&mut self.agents),
            words: self.words.clone(),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Done {
    /// Its exit status; the negative number of the signal that killed it.
    pub status: i32,
    pub out: String,
    pub err: String,
    /// Names of the agents' folders that were seen.
    pub agents: BTreeSet<String>,
    words: String,
}

impl Done {
    /// Fails unless the exit status is this one.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(
            self.status, status,
            "{}\n--- standard output\n{}\n--- standard error\n{}",
            self.words, self.out, self.err
        );
        self
    }

    /// All of standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| {
            panic!(
                "{}: standard output is no JSON document: {e}\n{}\n{}",
                self.words, self.out, self.err
            )
        })
    }

    /// The document of a run; its exit status has to say what the document says. That a machine
    /// was too busy to make open-loop load on time is no failure of these tests.
    #[track_caller]
    pub fn result(&self) -> Value {
        let document = self.json();
        // The far tail alone makes no run invalid.
        let invalid = array(&document["comparisons"]).iter().any(|comparison| {
            comparison["verdict"] == "invalid" && comparison["metric"] != "latency_us_p99"
        });
        let nothing = document["trials"]["done"] == 0 && document["trials"]["failed"] != 0;
        let status = match (nothing, invalid) {
            (true, _) => 1,
            (false, true) => 4,
            (false, false) => 0,
        };
        assert_eq!(self.status, status, "{}\n{}", self.out, self.err);
        document
    }

    /// The document of a run of which no trial failed.
    #[track_caller]
    pub fn none_failed(&self) -> Value {
        let document = self.result();
        let trials = &document["trials"];
        assert_eq!(trials["failed"], 0, "{trials}\n{}", self.err);
        document
    }

    /// The same of a run with so many trials.
    #[track_caller]
    pub fn made(&self, trials: usize) -> Value {
        let document = self.none_failed();
        assert_eq!(document["trials"]["done"], trials, "{}", self.err);
        document
    }

    /// Fails unless every text is on standard error.
    #[track_caller]
    pub fn says(&self, texts: &[&str]) -> &Self {
        let said = flat(&self.err);
        for text in texts {
            assert!(
                said.contains(text),
                "{} does not say `{text}`:\n{}",
                self.words,
                self.err
            );
        }
        self
    }
}

/// Text without line breaks and frames, so that a message is found wherever it was wrapped.
pub fn flat(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if matches!(c, '|' | '│') { ' ' } else { c })
        .collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fails unless a text has a part.
#[track_caller]
pub fn has(text: impl AsRef<str>, part: &str) {
    let text = text.as_ref();
    assert!(text.contains(part), "no {part:?} in\n{text}");
}

#[track_caller]
pub fn array(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("expected an array, found {value}"))
}

/// A text of each of some objects.
#[track_caller]
pub fn texts<'v>(values: &'v [Value], key: &str) -> Vec<&'v str> {
    let text = |value: &'v Value| value[key].as_str().unwrap_or_else(|| panic!("{value}"));
    values.iter().map(text).collect()
}

/// A count of each of some objects.
#[track_caller]
pub fn counts(values: &[Value], key: &str) -> Vec<u64> {
    let count = |value: &Value| value[key].as_u64().unwrap_or_else(|| panic!("{value}"));
    values.iter().map(count).collect()
}

/// The first of some objects that has a text at a key.
#[track_caller]
pub fn find<'v>(values: &'v [Value], key: &str, text: &str) -> &'v Value {
    let found = values.iter().find(|value| value[key] == text);
    found.unwrap_or_else(|| panic!("no {key} {text} in {values:#?}"))
}

/// The rows of a run's journal; every line has to be whole, but a last one that was cut off.
pub fn journal(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("journal.jsonl")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// The trials of a run's journal.
pub fn trials(folder: &Path) -> Vec<Value> {
    let mut rows = journal(folder);
    rows.retain(|row| row["row"] == "trial");
    rows
}

/// What a trial is: block, condition, subject, copy.
pub fn key(trial: &Value) -> String {
    format!(
        "{} {} {} {}",
        trial["block"], trial["condition"], trial["subject"], trial["baseline_copy"]
    )
}
