//! Revisions of a git repository, built in a cache: what a commit costs, and which one it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{CommandLine, Done, Place, Running, array, has, trials, words};
use crate::compare::own_servers::{all_measured, comparison, of_metric, there};

const BUILD: &str = "rustc server.rs -o server";
const START: &str = "./server {port}";

/// A server that does so much work for each request.
fn source(rounds: u32) -> String {
    format!(
        r##"use std::hint::black_box;
use std::io::{{Read, Write}};
use std::net::{{TcpListener, TcpStream}};

fn work() {{
    let mut x = 1u64;
    for i in 0..black_box({rounds}u64) {{
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(i));
    }}
    black_box(x);
}}

fn serve(mut client: TcpStream) {{
    let (mut buffer, mut have) = ([0; 4096], Vec::new());
    while let Ok(count @ 1..) = client.read(&mut buffer) {{
        have.extend_from_slice(&buffer[..count]);
        while let Some(end) = have.windows(4).position(|four| four == b"\r\n\r\n") {{
            have.drain(..end + 4);
            work();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
            if client.write_all(answer).is_err() {{
                return;
            }}
        }}
    }}
}}

fn main() {{
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    for client in listener.incoming() {{
        let client = client.unwrap();
        client.set_nodelay(true).unwrap();
        std::thread::spawn(move || serve(client));
    }}
}}
"##
    )
}

/// Calls git in a folder.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {text}{errors}");
    text.trim().to_owned()
}

/// Commits all files of a folder; makes it a repository first.
pub fn commit(folder: &Path, tag: &str) {
    if !folder.join(".git").exists() {
        git(folder, &["init", "--quiet"]);
    }
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message", tag]);
    git(folder, &["tag", tag]);
}

/// A place, where git is installed.
fn place() -> Option<Place> {
    there("git", "git").then(Place::new)
}

/// A repository of a server, with a tag for each commit, that does so much work.
struct Repository<'a> {
    place: &'a Place,
    folder: PathBuf,
}

impl<'a> Repository<'a> {
    fn new(place: &'a Place, commits: &[(&str, u32)]) -> Self {
        let folder = place.path("src");
        for (number, (tag, rounds)) in commits.iter().enumerate() {
            let text = format!("{}// {number}\n", source(*rounds));
            place.write("src/server.rs", &text);
            place.write("src/.gitignore", "/server\n/ignored\n");
            commit(&folder, tag);
        }
        Self { place, folder }
    }

    fn start(&self, line: &(impl CommandLine + ?Sized)) -> Running<'a> {
        let mut command = self.place.weigh(line);
        command.current_dir(&self.folder);
        self.place.start_command(command)
    }

    fn run(&self, line: &(impl CommandLine + ?Sized)) -> Done {
        self.start(line).end()
    }

    fn compare(&self, subjects: &[&str], build: &str, folder: &str) -> Done {
        let folder = format!("../{folder}");
        let own = ["--build", build, "--start", START];
        self.run(&comparison(subjects, &own, &folder))
    }

    /// The builds that the cache has.
    fn builds(&self) -> Vec<PathBuf> {
        let folder = self.place.path("home/.cache/weigh/builds");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect()
    }
}

/// Whether a commit makes a difference, by work that is counted: other tests may run meanwhile.
#[test]
fn a_slow_commit_is_found_and_a_commit_of_nothing_is_not() {
    let Some(place) = place() else { return };
    let commits = [("base", 20_000), ("nothing", 20_000), ("slow", 80_000)];
    let repository = Repository::new(&place, &commits);
    let subjects = ["base=@base", "nothing=@nothing", "slow=@slow"];
    let build = ["--build", BUILD, "--start", START];
    let more = ["--matters", "40%", "--blocks", "6", "--window", "300ms"];
    let rest = ["-c", "4", "--latency=false", "--bottleneck=false"];
    let out = ["--format", "json", "--out", "../r"];
    let call = [&["compare"], &subjects[..], &build, &more, &rest, &out].concat();
    let document = all_measured(&repository.run(&call), 24);
    let of_cpu = of_metric(&document, "server_cpu_us_per_request");
    let of = |all: &[Value], subject: &str| {
        let found = all.iter().find(|one| one["subject"] == subject);
        found.unwrap_or_else(|| panic!("{all:#?}")).clone()
    };
    assert_eq!(of(&of_cpu, "slow")["verdict"], "slower", "{of_cpu:#?}");
    for metric in ["server_cpu_us_per_request", "requests_per_s"] {
        let one = of(&of_metric(&document, metric), "nothing");
        assert!(
            one["verdict"] != "slower" && one["verdict"] != "faster",
            "{one:#}"
        );
    }
    let lengths: Vec<usize> = repository
        .builds()
        .iter()
        .map(|path| path.as_os_str().len())
        .collect();
    assert_eq!(lengths.len(), 3, "each revision is built once");
    assert!(lengths.iter().all(|length| *length == lengths[0]));
    let hosts = place.read("r/hosts.json");
    let commit = git(&repository.folder, &["rev-parse", "slow"]);
    assert!(hosts.contains(&commit), "the commit is recorded");
    assert_eq!(git(&repository.folder, &["status", "--short"]), "");
    assert_eq!(
        git(&repository.folder, &["worktree", "list"])
            .lines()
            .count(),
        1
    );
}

#[test]
fn a_bisection_names_the_slow_commit() {
    let Some(place) = place() else { return };
    let commits = [
        ("good", 20_000),
        ("a", 20_000),
        ("slow", 60_000),
        ("b", 60_000),
        ("c", 60_000),
    ];
    let repository = Repository::new(&place, &commits);
    git(&repository.folder, &["bisect", "start", "HEAD", "good"]);
    let program = env!("CARGO_BIN_EXE_weigh");
    let line = "bisect --good good -c 4 --metric cpu --more-than 60% --window 300ms --within 40s";
    let own = ["--build", BUILD, "--start", START, "--out", "../steps"];
    let mut command = Command::new("git");
    command.args(["bisect", "run", program]);
    command.args(words(line)).args(own);
    place.settle(&mut command);
    command.current_dir(&repository.folder);
    let done = place.start_command(command).end().expect(0);
    let slow = git(&repository.folder, &["rev-parse", "slow"]);
    let expected = format!("{slow} is the first bad commit");
    assert!(done.out.contains(&expected), "{}\n{}", done.out, done.err);
    has(&done.out, "not slower than good");
    let steps = std::fs::read_dir(repository.folder.join("../steps")).unwrap();
    for step in steps {
        let name = step.unwrap().file_name();
        let commit = name.to_str().unwrap();
        git(&repository.folder, &["rev-parse", "--verify", commit]);
    }
}

#[test]
fn a_step_that_cannot_say_has_its_own_statuses() {
    let Some(place) = place() else { return };
    let repository = Repository::new(&place, &[("good", 1000)]);
    let step = |good: &str, build: &str| {
        repository.run(&["bisect", "--good", good, "--build", build, "--start", START])
    };
    place.write("src/server.rs", "this is not Rust");
    let done = step("good", BUILD).expect(125);
    done.says(&["the build of `.`", "status 1", "server.rs"]);
    step("no-such-tag", BUILD)
        .expect(128)
        .says(&["no-such-tag"]);
    step("good", "false")
        .expect(128)
        .says(&["the build of `good`"]);
    let never = "false {port}";
    repository
        .run(&["bisect", "--good", "good", "--start", never])
        .expect(128)
        .says(&["`good` was never measured"]);
    repository.run(&["bisect", "--start", START]).expect(128);
    repository
        .run(&[
            "bisect",
            "--good",
            "good",
            "--more-than",
            "3",
            "--start",
            START,
        ])
        .expect(128);
}

#[test]
fn a_revision_is_built_once_and_the_working_tree_at_each_change() {
    let Some(place) = place() else { return };
    let repository = Repository::new(&place, &[("one", 1000)]);
    let run = |folder: &str| {
        let done = repository.compare(&["base=@one", "head=@."], BUILD, folder);
        done.made(3);
        done.err.matches("weigh: building").count()
    };
    assert_eq!(run("r"), 1, "an unchanged working tree is its commit");
    assert_eq!(run("s"), 0);
    place.write("src/server.rs", &source(2000));
    place.write("src/new.rs", "// not tracked\n");
    place.write("src/ignored", "by .gitignore\n");
    assert_eq!(run("t"), 1, "what is not committed counts");
    place.write("src/ignored", "other\n");
    assert_eq!(run("u"), 0, "what is ignored does not");
    let with_new = |path: &PathBuf| path.join("new.rs").exists();
    assert_eq!(
        repository
            .builds()
            .iter()
            .filter(|path| with_new(path))
            .count(),
        1
    );
    let clean = repository.run("compare --clean").expect(0);
    clean.says(&["2 builds removed"]);
    assert!(repository.builds().is_empty());
    assert_eq!(place.read("src/new.rs"), "// not tracked\n");
}

#[test]
fn a_build_that_fails_ends_the_run_before_it_begins() {
    let Some(place) = place() else { return };
    let repository = Repository::new(&place, &[("one", 1000)]);
    let build = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo line $i; done; exit 7";
    let done = repository
        .compare(&["base=@one", "head=@."], build, "r")
        .expect(2);
    done.says(&["the build of `one`", "status 7", "line 100", "line 81"]);
    assert!(!done.err.contains("line 80\n"), "{}", done.err);
    assert!(!place.path("r").exists());
    repository
        .compare(&["base=@two", "head=@."], BUILD, "r")
        .expect(2)
        .says(&["no revision `two`"]);
}

#[test]
fn two_runs_at_once_build_once() {
    let Some(place) = place() else { return };
    let repository = Repository::new(&place, &[("one", 1000)]);
    let count = place.path("count");
    let build = format!("sleep 1; echo built >>{}; {BUILD}", count.display());
    let call = |folder| {
        let own = ["--build", &build, "--start", START];
        comparison(&["a=@one", "b=@one"], &own, folder)
    };
    let first = repository.start(&call("../r"));
    let second = repository.start(&call("../s"));
    let both = [first.end(), second.end()];
    for done in &both {
        done.made(3);
    }
    assert_eq!(fs::read_to_string(&count).unwrap(), "built\n");
    let waited = |done: &Done| done.err.contains("waiting for another run");
    assert!(both.iter().any(waited));
}

#[test]
fn a_resumed_run_measures_the_same_commits() {
    let Some(place) = place() else { return };
    let repository = Repository::new(&place, &[("one", 1000)]);
    let own = ["--build", BUILD, "--start", START];
    let subjects = ["compare", "base=@one", "head=@main"];
    let call = [&subjects, &own[..], &["--blocks", "3", "--window", "300ms"]].concat();
    let rest = ["--latency=false", "--bottleneck=false", "--out", "../r"];
    let mut running = repository.start(&[&call[..], &rest].concat());
    running.until("a block was measured", || {
        !trials(&place.path("r")).is_empty()
    });
    running.signal(crate::common::INT);
    running.end_within(Duration::from_secs(60)).expect(130);
    let recorded = || place.read("r/builds/revisions.json");
    let before = recorded();
    place.write("src/server.rs", &source(9000));
    commit(&repository.folder, "two");
    let done = repository.run("run --resume ../r --format json");
    assert!(!done.err.contains("building"), "{}", done.err);
    assert_eq!(done.result()["trials"]["done"], 9);
    assert_eq!(recorded(), before);
}

#[test]
fn a_revision_is_a_factor_like_others() {
    let Some(place) = place() else { return };
    Repository::new(&place, &[("v1", 1000), ("v2", 2000)]);
    place.experiment(&format!("[servers.app]\nrevision = \"v1\"\nrepository = \"src\"\nbuild = \"{BUILD}\"\n\
             command = \"{START}\"\n\
             [servers.beside]\ncommand = [\"{}\", \"origin\", \"--listen\", \"127.0.0.1:{{port}}\"]\n\
             ready = \"/\"\nenv = {{ A = \"b\" }}\n\
             [subjects]\nbeside = \"http://beside/\"\napp = \"http://app/\"\n\
             [factors]\napp.revision = [\"v1\", \"v2\"]\n\
             [load]\nconnections = 4\n\
             [expect]\nsame = false\n",
            env!("CARGO_BIN_EXE_weigh")
        ),
    );
    let done = place.run("run x.toml --format json --out r");
    let document = done.made(6);
    assert_eq!(
        done.err.matches("weigh: building").count(),
        2,
        "{}",
        done.err
    );
    let conditions: Vec<&str> = array(&document["comparisons"])
        .iter()
        .filter_map(|one| one["condition"]["app.revision"].as_str())
        .collect();
    assert!(conditions.contains(&"v1") && conditions.contains(&"v2"));
    // What was written out is read again.
    let again = "run r/experiment.toml --dry-run";
    place.run(again).expect(0);
}
