//! Programs for which the system has too little locked memory, or too few descriptors or processes.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{
    Answering, Done, LIMIT, Place, Running, TERM, has, program, skip, wait_until, words,
};

/// Enough for the first event loop on io_uring, and not for four.
const LOCKED: &str = "--memlock=400000:400000";
/// The capabilities that let root exceed these limits.
const DROPPED: &str = "-ipc_lock,-sys_resource";

/// The program under a limit that holds for root as well; `None` if the limit cannot be set.
fn limited(place: &Place, limit: &str, line: &str) -> Option<Command> {
    let mut command = Command::new("setpriv");
    if net::os::is_root() {
        command.args(["--bounding-set", DROPPED, "--inh-caps", DROPPED]);
    }
    command.args(["prlimit", limit]);
    place.settle(&mut command);
    let mut tried = Command::new("setpriv");
    tried.args(command.get_args()).arg("true");
    if !tried.status().is_ok_and(|status| status.success()) {
        skip("setpriv and prlimit cannot limit a program here");
        return None;
    }
    command.arg(program()).args(words(line));
    Some(command)
}

/// The program as a user who may have so few processes, threads included. Root's are not limited, so it
/// becomes another user, of whom nothing else runs. `None` where that user may not start the program.
fn with_processes(place: &Place, most: u32, line: &str) -> Option<Command> {
    let limited = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        if net::os::is_root() {
            let user = 61_000 + most;
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
            command.args(["--clear-groups", "--inh-caps=-all"]);
        }
        command.args(["prlimit", &format!("--nproc={most}")]);
        place.settle(&mut command);
        command.current_dir("/").args(words);
        command
    };
    let path = program();
    let path = path.to_str().unwrap();
    let mut tried = limited(&[path, "--version"]);
    if !tried.output().is_ok_and(|tried| tried.status.success()) {
        skip("no other user may start the program here");
        return None;
    }
    let words: Vec<&str> = line.split(' ').collect();
    Some(limited(&[&[path], words.as_slice()].concat()))
}

/// A run with a server, as quick as can be.
const QUICK: &str = "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\n[subjects]\nx = \"http://o/\"\n\
                     y = \"http://o/bytes/9\"\n[load]\nconnections = 2\n[design]\nblocks = 2\n\
                     warmup = \"50ms\"\nwindow = \"100ms\"\nlatency_window = \"0s\"\n\
                     bottleneck = false\nretries = 0\n";

/// Lets any user write into the place and into its new folder `open`, and gives that folder.
fn opened(place: &Place) -> PathBuf {
    let out = place.path("open");
    std::fs::create_dir(&out).unwrap();
    for folder in [place.path(""), out.clone(), place.temp()] {
        std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    }
    out
}

#[test]
fn what_lacks_processes_says_so_and_does_not_panic() {
    let place = Place::new();
    let back_end = Answering::start(|_| 200);
    let config = place.path("b.toml");
    let text = format!(
        "threads = 4\n[services.web]\nlisten = \"127.0.0.1:0\"\n\
         [services.web.backends]\none = \"{}\"\n",
        back_end.address
    );
    place.write("b.toml", &text);
    let url = format!("http://{}/", back_end.address);
    let out = opened(&place).join("run");
    place.write("e.toml", QUICK);
    for file in ["b.toml", "e.toml"] {
        let mode = Permissions::from_mode(0o666);
        std::fs::set_permissions(place.path(file), mode).unwrap();
    }
    let lines = [
        "origin --listen 127.0.0.1:0 --threads 4".to_owned(),
        format!("balance {}", config.display()),
        format!("load {url} --threads 4 -c 4 -d 100ms"),
        format!(
            "compare a={url} b={url}?b --blocks 2 --window 100ms --warmup 50ms --latency=false \
             --bottleneck=false --out {}",
            out.display()
        ),
        format!(
            "run {} --out {}",
            place.path("e.toml").display(),
            out.display()
        ),
    ];
    for line in &lines {
        for most in 1..=4 {
            let Some(command) = with_processes(&place, most, line) else {
                return;
            };
            let done = place.start_command(command).end();
            assert!(
                !done.err.contains("panicked"),
                "{most}: {line}: {}",
                done.err
            );
            let done = done.expect(1);
            has(&done.err, &format!("RLIMIT_NPROC: {most}"));
            // The next one begins anew.
            let _ = std::fs::remove_dir_all(&out);
        }
    }
    // With more, some parts start and others do not, and from some number on all do.
    for line in &lines[2..] {
        for most in (6..=20).step_by(2) {
            let Some(command) = with_processes(&place, most, line) else {
                return;
            };
            let done = place.start_command(command).end();
            let said = format!("{most}: {line}: {}{}", done.out, done.err);
            assert!(!said.contains("panicked"), "{said}");
            assert!(matches!(done.status, 0 | 1 | 4), "{}: {said}", done.status);
            // A server may say so in its own log only.
            let why = [&format!("RLIMIT_NPROC: {most}"), "ended by itself"];
            let is_told = why.into_iter().any(|why| said.contains(why));
            assert!(is_told || done.status == 0, "{said}");
            let _ = std::fs::remove_dir_all(&out);
        }
    }
}

#[test]
fn a_run_names_the_temporary_folder_that_it_cannot_use() {
    let place = Place::new();
    let out = opened(&place).join("run");
    place.write("e.toml", QUICK);
    let line = format!(
        "run {} --out {}",
        place.path("e.toml").display(),
        out.display()
    );
    let locked = place.path("locked");
    std::fs::create_dir(&locked).unwrap();
    for (path, mode) in [(&locked, 0o555), (&place.path("e.toml"), 0o644)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    for (folder, why) in [
        (place.path("absent"), "No such file or directory"),
        (locked, "Permission denied"),
    ] {
        // As an ordinary user: root may write anywhere.
        let Some(mut command) = with_processes(&place, 100, &line) else {
            return;
        };
        command.env("TMPDIR", &folder);
        let done = place.start_command(command).end().expect(1);
        let said = format!("cannot make a folder in {}: {why}", folder.display());
        has(&done.err, &said);
        has(&done.err, "set TMPDIR to another");
        let _ = std::fs::remove_dir_all(&out);
    }
}

#[test]
fn a_huge_limit_of_stacks_is_no_size_of_one() {
    let place = Place::new();
    place.write("e.toml", QUICK);
    for limit in ["--stack=unlimited", "--stack=8796093022208"] {
        let Some(command) = limited(&place, limit, "run e.toml --out huge") else {
            return;
        };
        let done = place.start_command(command).end();
        // Whatever the figures are worth.
        assert!(matches!(done.status, 0 | 4), "{limit}: {}", done.err);
        std::fs::remove_dir_all(place.path("huge")).unwrap();
    }
}

fn stopped(running: Running<'_>) -> Done {
    running.signal(TERM);
    running.end().expect(0)
}

#[test]
fn epoll_takes_the_place_of_an_io_uring_without_locked_memory() {
    if net::uring_unavailable().is_some() {
        return skip("io_uring is forbidden here");
    }
    let place = Place::new();
    let back_end = Answering::start(|_| 200);
    let url = format!("http://{}/", back_end.address);
    place.write(
        "b.toml",
        &format!(
            "threads = 4\n[services.web]\nlisten = \"127.0.0.1:0\"\n\
             [services.web.backends]\none = \"{}\"\n",
            back_end.address
        ),
    );
    let origin = "origin --listen 127.0.0.1:0 --threads 4";
    let note =
        "weigh: io_uring gets no memory, so epoll is used: locked memory is limited to 390 KiB";
    for (line, said) in [
        (origin, "(epoll, threads: 4)"),
        ("balance b.toml", "balancer: epoll, threads: 4"),
    ] {
        let Some(command) = limited(&place, LOCKED, line) else {
            return;
        };
        let mut running = place.start_command(command);
        running.until_said(said);
        assert!(running.errors().contains(note), "{}", running.errors());
        stopped(running);
    }
    let load = format!("load {url} --threads 4 --connections 4 --duration 300ms --format json");
    let Some(command) = limited(&place, LOCKED, &load) else {
        return;
    };
    let done = place.start_command(command).end();
    has(&done.err, note);
    assert_eq!(done.json()["client"]["io"], "epoll");

    // With `--io uring` there is no fallback.
    let Some(command) = limited(&place, LOCKED, &format!("{origin} --io uring")) else {
        return;
    };
    let done = place.start_command(command).end().expect(1);
    has(&done.err, "cannot open an event loop");
}

/// CPU time of a process, in clock ticks.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_balancer_without_descriptors_says_so_waits_and_goes_on() {
    let place = Place::new();
    let back_end = Answering::start(|_| 200);
    place.write(
        "b.toml",
        &format!(
            "[services.web]\nlisten = \"127.0.0.1:0\"\n[services.web.backends]\none = \"{}\"\n",
            back_end.address
        ),
    );
    // A client and its back end take two descriptors. So one of two successive limits leaves a last
    // client without any.
    let place = &place;
    std::thread::scope(|scope| {
        for (io, limit) in [("uring", 40), ("uring", 41), ("epoll", 40), ("epoll", 41)] {
            scope.spawn(move || goes_on_with(place, io, limit));
        }
    });
}

/// Opens more connections to a balancer than it may have descriptors, and closes them again.
fn goes_on_with(place: &Place, io: &str, limit: u32) {
    let socket = format!("{io}-{limit}.sock");
    let limit = format!("--nofile={limit}:{limit}");
    let line = format!("balance b.toml --io {io} --socket {socket}");
    let Some(command) = limited(place, &limit, &line) else {
        return;
    };
    let mut running = place.start_command(command);
    running.until_said("back ends: ");
    let said = running.errors();
    let address = said.split("service web on ").nth(1).unwrap();
    let address = address.split(',').next().unwrap().to_owned();
    let mut held = Vec::new();
    for _ in 0..60 {
        held.push(TcpStream::connect(&address).unwrap());
        running.go_on(Duration::from_millis(2));
    }
    running.go_on(Duration::from_millis(300));
    let before = cpu_ticks(running.pid());
    running.go_on(Duration::from_secs(1));
    let ticks = cpu_ticks(running.pid()) - before;
    assert!(ticks < 15, "{io}: {ticks} of about 100 ticks at idle");

    drop(held);
    wait_until("a client is answered", Duration::from_secs(20), || {
        answered(&address)
    });
    let done = stopped(running);
    let told = done.err.matches("cannot accept clients").count();
    assert!(told <= 1, "{}", done.err);
}

fn answered(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    stream
        .set_read_timeout(Some(LIMIT.min(Duration::from_secs(5))))
        .unwrap();
    let begun = Instant::now();
    let mut answer = [0; 12];
    let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let answered = asked.is_ok() && stream.read_exact(&mut answer).is_ok();
    assert!(begun.elapsed() < Duration::from_secs(5), "no answer");
    answered && &answer == b"HTTP/1.1 200"
}
