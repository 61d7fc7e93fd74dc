//! Servers of the user's own: commands and programs in other languages, compared.

use serde_json::Value;

use crate::common::{
    DELAYED_PAGE, Done, Origin, Place, array, is_installed, is_left_out, skip, words,
};

/// The arguments of a short comparison.
const SHORT: &str =
    "-c 4 --blocks 1 --window 200ms --latency=false --bottleneck=false --format json --out";

/// The words that compare subjects shortly, into the folder `folder`.
pub fn comparison<'a>(subjects: &[&'a str], more: &[&'a str], folder: &'a str) -> Vec<&'a str> {
    [&["compare"], subjects, more, &words(SHORT), &[folder]].concat()
}

/// Compares subjects shortly, into the folder `folder`.
fn compare(place: &Place, subjects: &[&str], more: &[&str], folder: &str) -> Done {
    place.run(&comparison(subjects, more, folder))
}

/// All trials were measured, and each subject's CPU time was counted.
#[track_caller]
pub fn all_measured(done: &Done, trials: usize) -> Value {
    let document = done.made(trials);
    let cpu = of_metric(&document, "server_cpu_us_per_request");
    assert!(!cpu.is_empty(), "no CPU time was counted: {}", done.out);
    document
}

/// The comparisons in a metric.
pub fn of_metric(document: &Value, metric: &str) -> Vec<Value> {
    let mut found = array(&document["comparisons"]).clone();
    found.retain(|one| one["metric"] == metric);
    found
}

/// The built-in back end as a command.
fn origin(more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_weigh");
    format!("{program} origin --listen {{address}}:{{port}} {more}")
}

#[test]
fn commands_are_started_afresh_and_counted() {
    let place = Place::new();
    let subjects = [
        format!("one={}", origin("--threads 1")),
        format!("two=A=1 {}", origin("'--threads' \"2\"")),
    ];
    let subjects = subjects.each_ref().map(String::as_str);
    let done = compare(&place, &subjects, &["--ready", "/"], "r");
    let document = all_measured(&done, 3);
    let hosts = place.read_json("r/hosts.json");
    let command = &hosts["local"]["servers"]["two"]["command"];
    assert_eq!(command[4], "--threads", "{command}");
    assert_eq!(command[5], "2", "{command}");
    assert!(place.path("r/trials/1").exists(), "logs are kept");
    assert!(document["noise_floor"].is_array());
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_command_runs_in_the_callers_folder_and_has_one_of_its_own() {
    let place = Place::new();
    place.write_script(
        "bin/start",
        &format!(
            "#!/bin/sh\necho \"$MINE $PWD\" >\"$1/said\"; cat \"$1/said\"\n\
             exec {} origin --listen 127.0.0.1:$PORT\n",
            env!("CARGO_BIN_EXE_weigh")
        ),
    );
    let subject = |name: &str| format!("{name}=MINE='a b' PORT={{port}} bin/start {{dir}}");
    let (a, b) = (subject("a"), subject("b"));
    let done = compare(&place, &[&a, &b], &["--path", "bytes/9"], "r");
    all_measured(&done, 3);
    let said = place.read("r/trials/1/a-output.log");
    let here = std::fs::canonicalize(place.path(".")).unwrap();
    let first = said.lines().next().unwrap_or_default();
    assert_eq!(first, format!("a b {}", here.display()));
}

#[test]
fn a_command_stands_beside_a_url_and_before_an_upstream() {
    let place = Place::new();
    let running = Origin::start(&place);
    let program = env!("CARGO_BIN_EXE_weigh");
    // A front of one's own: a shell writes its configuration and starts it.
    let front = format!(
        "front=sh -c 'printf \"listen = \\\"%s\\\"\\nupstreams = [\\\"%s\\\"]\\n\" \
         127.0.0.1:{{port}} {{upstream}} >{{dir}}/b.toml; exec {program} balance {{dir}}/b.toml'"
    );
    let url = format!("url={}/", running.url);
    let done = compare(&place, &[&url, &front], &["--upstream"], "r");
    all_measured(&done, 3);
    let fixed = format!("--upstream={}", running.url.trim_start_matches("http://"));
    let mine = format!("mine={}", origin(""));
    all_measured(&compare(&place, &[&url, &mine], &[&fixed], "s"), 3);
    // The back end that runs already counts behind the front as it does alone.
    let document = all_measured(&compare(&place, &[&url, &front], &[&fixed], "t"), 3);
    let cpu_of = |subject: &str| {
        let mut rows = array(&document["table"]).iter();
        let row = rows.find(|row| row["subject"] == subject).unwrap();
        row["server_cpu_us_per_request"].clone()
    };
    let (direct, both) = (cpu_of("url"), cpu_of("front"));
    let (direct, both) = (direct.as_object().unwrap(), both.as_object().unwrap());
    let back = direct.keys().next().unwrap();
    assert_eq!(direct.len(), 1, "{direct:?}");
    let names: Vec<&str> = both.keys().map(String::as_str).collect();
    assert_eq!(names, ["front", back.as_str()]);
}

#[test]
fn what_is_no_subject_is_said() {
    let place = Place::new();
    let good = format!("good={}", origin(""));
    let says = |subjects: &[&str], more: &[&str], says: &str| {
        compare(&place, subjects, more, "r").expect(2).says(&[says]);
    };
    for (subject, why) in [
        ("a=./x", "no command with {port}"),
        ("a=127.0.0.1:80", "not a URL"),
        ("a=./x {port} | y", "sh -c"),
        ("a=./x {port} 'y", "quote"),
        ("a=@", "@main"),
        ("a=@v1", "--start"),
        ("a=./x {port} {upstream}", "--upstream"),
        ("a", "expected NAME=VALUE"),
    ] {
        says(&[subject, &good], &[], why);
    }
    says(&[&good], &[], "NAME=SUBJECT");
    says(
        &["a=@v1", &good],
        &["--start", "./x {port}"],
        "git repository",
    );
    let urls = ["a=http://127.0.0.1:1/", "b=http://127.0.0.1:2/"];
    says(&urls, &["--ready", "/x"], "--ready is for commands");
    says(&urls, &["--matters", "3"], "matters");
    assert!(!place.path("r").exists());
}

#[test]
fn a_command_that_cannot_start_is_said_with_its_last_output() {
    let place = Place::new();
    let good = format!("good={}", origin(""));
    let bad = "bad=sh -c 'echo out of cheese; exit 3' {port}";
    let done = compare(&place, &[&good, bad], &["--path", DELAYED_PAGE], "r");
    done.says(&["out of cheese", "status 3"]);
    for (absent, says) in [
        (
            "absent=./no/such/program {port}",
            "./no/such/program, which does not exist",
        ),
        (
            "absent=no-such-program {port}",
            "starts no-such-program, which is not in PATH",
        ),
    ] {
        compare(&place, &[&good, absent], &["--path", DELAYED_PAGE], "s")
            .expect(2)
            .says(&["this experiment cannot run here", says, "server `absent`"]);
        assert!(!place.path("s").exists());
    }
}

/// Whether a program is there. One of a package that only `./check --all` installs is not missed.
pub fn there(program: &str, package: &str) -> bool {
    if is_left_out(package) {
        return false;
    }
    let is_here = is_installed(program);
    if !is_here {
        skip(&format!(
            "{program} is missing; install it with: apt-get install {package}"
        ));
    }
    is_here
}

#[test]
fn a_server_in_node_reads_its_port_from_the_environment() {
    if !there("node", "nodejs") {
        return;
    }
    let place = Place::new();
    place.write(
        "server.js",
        "require('http').createServer((q, a) => a.end('hello\\n'))\
         .listen(process.env.PORT, '127.0.0.1')\n",
    );
    let subjects = [
        "a=PORT={port} node server.js",
        "b=PORT={port} node server.js",
    ];
    all_measured(&compare(&place, &subjects, &[], "r"), 3);
}

#[test]
fn servers_in_python_are_compared() {
    if !there("python3", "python3") {
        return;
    }
    let place = Place::new();
    place.write("index.html", "hello\n");
    place.write(
        "app.py",
        "import sys, http.server, socketserver\n\
         class Handler(http.server.BaseHTTPRequestHandler):\n\
         \x20   protocol_version = 'HTTP/1.1'\n\
         \x20   def do_GET(self):\n\
         \x20       self.send_response(200)\n\
         \x20       self.send_header('Content-Length', '6')\n\
         \x20       self.end_headers()\n\
         \x20       self.wfile.write(b'hello\\n')\n\
         \x20   def log_message(self, *_): pass\n\
         class Server(socketserver.ThreadingMixIn, http.server.HTTPServer): pass\n\
         Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n",
    );
    let files = "files=python3 -m http.server --bind {address} {port}";
    let app = "app=python3 app.py {port}";
    all_measured(&compare(&place, &[files, app], &["--ready", "/"], "r"), 3);
}

/// Without `net/http`, which takes three times as long to compile.
const SERVER_IN_GO: &str = include_str!("own_servers/main.go");

#[test]
fn a_server_in_go_is_built_from_the_working_tree() {
    if !there("go", "golang-go") || !there("git", "git") {
        return;
    }
    let place = Place::new();
    place.write("src/go.mod", "module srv\n\ngo 1.19\n");
    place.write("src/main.go", SERVER_IN_GO);
    crate::compare::revisions::commit(&place.path("src"), "one");
    let go = "PATH=$PATH:/usr/local/go/bin go build -o srv .";
    let more = ["--build", go, "--start", "./srv {port}"];
    let call = comparison(&["base=@HEAD", "head=@."], &more, "../r");
    let mut command = place.weigh(&call);
    command.current_dir(place.path("src"));
    all_measured(&place.start_command(command).end(), 3);
}
