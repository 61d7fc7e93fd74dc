//! Loads that outside load generators make: what is measured, kept and said, and what becomes of a
//! driver that is missing, fails, prints nonsense, hangs, or never stops printing.

use std::fs;
use std::time::Duration;
use testing::Text as _;

use crate::common::{
    DELAYED_PAGE, INT, KILL, Place, array, find, flat, has, number, skip, texts, trials, wait_until,
};
use serde_json::Value;

/// Whether a driver of the program is installed; says so otherwise.
fn is_there(place: &Place, driver: &str) -> bool {
    let listing = place.run("list --format json").expect(0).json();
    let one = find(array(&listing["drivers"]), "name", driver);
    match one["install_command"].as_str() {
        _ if one["can_run"] == true => {}
        Some(command) => skip(&format!("{driver}: {command}")),
        // A program that no package has counts neither as run nor as skipped.
        None => println!("not run: {driver} is not installed"),
    }
    one["can_run"] == true
}

/// An experiment over the origin: lines for subjects, for the load, and for the design.
fn experiment(place: &Place, subjects: &str, load: &str, design: &str) {
    place.write(
        "x.toml",
        &format!(
            "title = \"drivers\"\n[servers.origin]\nrecipe = \"origin\"\n\
             [subjects]\n{subjects}\n[load]\nconnections = 4\n{load}\n\
             [design]\nwarmup = \"0s\"\nbottleneck = false\n{design}\n"
        ),
    );
}

const CALL: &str = "run x.toml --drivers drivers --out r --format json";

fn run(place: &Place) -> crate::common::Done {
    fs::create_dir_all(place.path("drivers")).unwrap();
    let done = place.run(CALL);
    assert!(place.left().is_empty(), "{:?}", place.left());
    done
}

/// A driver of the test's own: a shell script that runs some lines.
fn script(place: &Place, name: &str, lines: &str) {
    place.write(&format!("drivers/{name}/script"), lines);
    let path = place.path(&format!("drivers/{name}/script"));
    place.write(
        &format!("drivers/{name}/driver.toml"),
        &format!(
            "title = \"a script\"\nreader = \"wrk\"\n[programs]\nsh = [\"sh\"]\n\
             [run]\ncommand = [\"{{{{ programs.sh }}}}\", \"{}\", \"{{{{ url }}}}\", \
             \"{{{{ duration_s }}}}\", \"{{{{ timeout_ms }}}}\"]\n",
            path.display()
        ),
    );
}

/// What a run of one block with one driver of the program has to show; returns the document.
fn one_block(place: &Place, driver: &str, load: &str, words: &[&str]) -> Value {
    experiment(
        place,
        "quick = \"http://origin/delay/constant/1ms\"\nslow = \"http://origin/delay/constant/4ms\"",
        &format!("driver = \"{driver}\"\n{load}"),
        "blocks = 1\nwindow = \"2s\"\nslice = \"1s\"",
    );
    let done = run(place);
    let document = done.result();
    assert_eq!(document["trials"]["done"], 3, "{}", done.err);
    assert_eq!(document["trials"]["failed"], 0);
    for trial in trials(&place.path("r")) {
        let reading = &trial["outcome"]["done"];
        let said = &reading["driver"];
        assert_eq!(said["driver"], driver);
        let version = said["version"].as_str().unwrap();
        assert!(version.contains(|c: char| c.is_ascii_digit()), "{version}");
        let runs = array(&said["runs"]);
        assert_eq!(runs.len(), 2, "two runs of a second each");
        let (mut requests, mut cpu_s) = (0, 0.0);
        for run in runs {
            let command: Vec<&str> = array(&run["command"])
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            for word in words {
                assert!(command.contains(word), "no {word} in {command:?}");
            }
            let duration_s = run["duration_s"].as_f64().unwrap();
            // Its own clock; on a busy machine it ends late.
            assert!((0.9..5.0).contains(&duration_s), "{duration_s}");
            assert!(run["max_rss_bytes"].as_u64().unwrap() > 500_000);
            requests += run["requests"].as_u64().unwrap();
            cpu_s += run["cpu_s"].as_f64().unwrap();
        }
        assert!(requests > 10 && cpu_s > 0.0, "{requests} {cpu_s}");
        let load = &reading["throughput"];
        assert_eq!(load["requests"], requests);
        let client_s = load["client"]["cpu_s"].as_f64().unwrap();
        assert!((client_s - cpu_s).abs() < 1e-9);
        assert_eq!(load["pacing"]["kind"], "closed");
        assert!(reading["servers"][0]["cpu_s"].as_f64().unwrap() > 0.0);
        assert!(reading["latency"].is_null());
        for number in 1..=2 {
            let file = format!("r/trials/{}/driver-closed-{number}.txt", trial["trial"]);
            let text = place.read(&file);
            assert!(text.starts_with("$ ") && text.contains("http://127.0.0.1:"));
            assert!(text.lines().count() > 5, "{text}");
        }
    }
    for row in array(&document["table"]) {
        assert_eq!(row["driver"], driver);
        assert!(row["requests_per_s"].as_f64().unwrap() > 0.0);
        assert!(row["driver_cpu_us_per_request"].as_f64().unwrap() > 0.0);
        assert!(row["driver_max_rss_bytes"].as_f64().unwrap() > 0.0);
        assert!(row["latency_us_p99"].is_null() || row["latency_us_p50"].is_number());
    }
    let hosts = place.read_json("r/hosts.json");
    assert!(hosts["local"]["drivers"][driver].is_string(), "{hosts}");
    let warnings = array(&document["warnings"]);
    let clock = format!("latency by `{driver}` is measured by its own clock");
    let said = |w: &&Value| w.as_str().unwrap().starts_with(&clock);
    assert_eq!(warnings.iter().filter(said).count(), 1, "{warnings:?}");
    let report = place.run("report r --verbose").expect(0).out;
    for part in ["driver us/req", "driver memory", driver] {
        assert!(report.contains(part), "no {part} in\n{report}");
    }
    let csv = place.run("report r --format csv").expect(0).out;
    for line in csv.lines().skip(1) {
        has(line, &format!(",{driver},"));
        assert!(!line.contains(",0,0,0,0,"), "no made-up latency: {line}");
    }
    document
}

#[test]
fn wrk_makes_the_load_and_its_median_is_compared_by_its_clock() {
    let place = Place::new();
    if !is_there(&place, "wrk") {
        return;
    }
    let headers = "headers = { X-Tag = \"a b\" }";
    let words = ["--connections", "4", "1s", "X-Tag: a b"];
    let document = one_block(&place, "wrk", headers, &words);
    let metrics = texts(array(&document["comparisons"]), "metric");
    // A busy machine leaves no time for so many answers that a median can be told.
    let rows = trials(&place.path("r"));
    let drivers = rows.iter().map(|row| &row["outcome"]["done"]["driver"]);
    let runs = drivers.flat_map(|driver| array(&driver["runs"]));
    let requests = runs.map(|run| number(&run["requests"]));
    if requests.fold(f64::MAX, f64::min) < 200.0 {
        return assert!(!metrics.contains(&"latency_us_p50"), "{metrics:?}");
    }
    assert!(
        metrics.starts_with(&["requests_per_s", "latency_us_p50"]),
        "{metrics:?}"
    );
    assert!(
        !metrics.contains(&"driver_cpu_us_per_request"),
        "one driver"
    );
    let latency = &document["comparisons"][1];
    let said = latency["sentence"].as_str().unwrap();
    has(said, "by the clock of wrk, in a closed loop");
    // The slower one waits longer, however busy the machine is.
    assert!(latency["subject_value"].as_f64() > latency["baseline_value"].as_f64());
}

#[test]
fn ab_makes_the_load_with_and_without_keep_alive() {
    let place = Place::new();
    if !is_there(&place, "ab") {
        return;
    }
    one_block(&place, "ab", "", &["-k", "-l", "-c", "-t"]);
    let document = {
        let place = Place::new();
        experiment(
            &place,
            "small = \"http://origin/\"",
            "driver = \"ab\"",
            "blocks = 1\nwindow = \"1s\"\n[factors]\nkeepalive = [true, false]",
        );
        run(&place).result()
    };
    assert_eq!(document["trials"]["done"], 4);
    let per_s = |keepalive: &str| {
        let rows = array(&document["table"]);
        let row = rows
            .iter()
            .find(|row| row["condition"]["keepalive"] == keepalive);
        row.unwrap()["requests_per_s"].as_f64().unwrap()
    };
    // Both are connections to this machine; one of them opens a connection for each request.
    assert!(per_s("true") > per_s("false"));
}

#[test]
fn drivers_are_weighed_against_each_other_with_the_engine_as_a_process_of_its_own() {
    let place = Place::new();
    experiment(
        &place,
        &format!(
            "many = {{ url = \"http://origin{DELAYED_PAGE}\", driver = \"weigh\", \
             with = {{ io = \"epoll\" }} }}\n\
             sleepy = {{ url = \"http://origin/\", driver = \"sleepy\" }}"
        ),
        "",
        "blocks = 5\nwindow = \"1s\"",
    );
    // It wastes CPU time, and says that it made a hundred requests of a second.
    script(
        &place,
        "sleepy",
        "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done\nsleep 0.2\n\
         echo \"Running 1s test @ $1\"\necho '  1 threads and 4 connections'\n\
         echo '  100 requests in 1.00s, 1.00KB read'\necho 'Requests/sec:    100.00'\necho 'Transfer/sec:      1.00KB'\n",
    );
    let document = run(&place).none_failed();
    let of = |metric: &str| {
        let all = array(&document["comparisons"]);
        let found = all.iter().find(|one| one["metric"] == metric);
        found.unwrap_or_else(|| panic!("no {metric}")).clone()
    };
    let cpu = of("driver_cpu_us_per_request");
    assert_eq!(cpu["verdict"], "slower", "{cpu}");
    assert!(cpu["subject_value"].as_f64() > cpu["baseline_value"].as_f64());
    let memory = of("driver_max_rss_bytes");
    assert_eq!(memory["verdict"], "faster", "a shell holds less: {memory}");
    let per_s = of("requests_per_s");
    assert_eq!(per_s["verdict"], "slower", "{per_s}");
    let table = array(&document["table"]);
    let labels = texts(table, "driver");
    assert_eq!(labels, ["weigh (io=epoll)", "sleepy"]);
    assert!(table[0]["latency_us_p50"].as_f64().unwrap() > 0.0);
    assert!(table[1]["latency_us_p50"].is_null(), "it told none");
}

#[test]
fn slow_answers_get_long_runs_and_a_warning_where_these_are_still_short() {
    let place = Place::new();
    fs::create_dir_all(place.path("drivers")).unwrap();
    // 20 requests a second on four connections: an answer takes 0.2 s.
    script(
        &place,
        "slow",
        "echo \"Running ${2}s test @ $1\"\necho '  1 threads and 4 connections'\n\
         echo \"  $((20 * $2)) requests in ${2}.00s, 1.00KB read\"\n\
         echo 'Requests/sec:     20.00'\necho 'Transfer/sec:      1.00KB'\n",
    );
    let warnings = |window: &str| {
        experiment(
            &place,
            "one = { url = \"http://origin/\", driver = \"slow\" }",
            "",
            &format!("blocks = 1\nwindow = \"{window}\"\n[factors]\nkeepalive = [true]"),
        );
        let text = place.read("x.toml");
        place.write("x.toml", &text.replace("\"0s\"", "\"1s\""));
        let _ = fs::remove_dir_all(place.path("r"));
        let document = run(&place).result();
        let rows = trials(&place.path("r"));
        let runs = &rows[0]["outcome"]["done"]["driver"]["runs"];
        (
            array(runs).len(),
            runs[0]["duration_s"].as_f64().unwrap(),
            document["warnings"].to_string(),
        )
    };
    let (count, duration_s, said) = warnings("3s");
    assert_eq!((count, duration_s), (1, 3.0));
    let few = "`one` at keepalive=true: a run of `slow` has fewer than 20 answers per connection";
    assert_eq!(said.matches(few).count(), 1, "{said}");
    let (count, duration_s, said) = warnings("10s");
    assert_eq!((count, duration_s), (2, 5.0));
    assert!(!said.contains("answers per connection"), "{said}");
    // No answer in the warm-up: the response time is at least its length.
    script(
        &place,
        "slow",
        "echo \"Running ${2}s test @ $1\"\necho '  1 threads and 4 connections'\n\
         if [ $2 = 1 ]; then echo '  0 requests in 1.00s, 0.00KB read'; else\n\
         echo \"  $((4 * $2)) requests in ${2}.00s, 1.00KB read\"; fi\n\
         echo 'Requests/sec:      4.00'\necho 'Transfer/sec:      1.00KB'\n",
    );
    let (count, duration_s, said) = warnings("10s");
    assert_eq!((count, duration_s), (1, 10.0));
    assert_eq!(said.matches(few).count(), 1, "{said}");
}

#[test]
fn a_driver_that_fails_is_a_failed_trial_with_its_last_output_and_the_others_go_on() {
    let place = Place::new();
    let kinds = ["status", "nonsense", "hangs", "talks", "silent"];
    let page = format!("http://origin{DELAYED_PAGE}");
    let mut subjects = format!("good = {{ url = \"{page}\", driver = \"weigh\" }}\n");
    for kind in kinds {
        subjects.push_str(&format!(
            "{kind} = {{ url = \"http://origin/\", driver = \"{kind}\" }}\n"
        ));
    }
    experiment(
        &place,
        &subjects,
        "timeout = \"1s\"",
        "blocks = 1\nwindow = \"1s\"\nretries = 0",
    );
    script(&place, "status", "echo one; echo out of luck >&2; exit 3\n");
    script(&place, "nonsense", "echo how do you do\n");
    script(
        &place,
        "hangs",
        "echo still here\nsetsid sleep 1000 &\nsleep 1000 &\ntrap '' TERM INT\nwait\nsleep 1000\n",
    );
    script(&place, "talks", "exec yes 'and another thing'\n");
    script(&place, "silent", "kill -9 $$\n");
    // The scripts cannot be told a time limit, and a hanging one is waited for as long.
    let done = run(&place);
    let document = done.result();
    assert_eq!(
        document["trials"]["done"], 2,
        "the good one, twice: {}",
        done.err
    );
    assert_eq!(document["trials"]["failed"], kinds.len());
    let rows = trials(&place.path("r"));
    let reason = |kind: &str| {
        let row = find(&rows, "subject", kind);
        row["outcome"]["failed"]["reason"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (kind, parts) in [
        (
            "status",
            ["driver `status` ended with status 3", "out of luck"],
        ),
        ("nonsense", ["printed no readable result", "how do you do"]),
        ("hangs", ["did not end within", "still here"]),
        (
            "talks",
            ["printed without end and was killed", "and another thing"],
        ),
        ("silent", ["was ended by signal 9", "it printed nothing"]),
    ] {
        let reason = reason(kind);
        for part in parts {
            assert!(reason.contains(part), "{kind}: no `{part}` in {reason}");
        }
        assert!(reason.len() < 6000, "{kind}: {} bytes", reason.len());
        assert!(flat(&done.err).contains(parts[0]), "{}", done.err);
    }
    let number = &find(&rows, "subject", "status")["trial"];
    let folder = place.path(&format!("r/trials/{number}"));
    let errors = fs::read_to_string(folder.join("driver-closed-1-errors.txt")).unwrap();
    assert_eq!(errors, "out of luck\n");
    let number = &find(&rows, "subject", "talks")["trial"];
    let kept = place.path(&format!("r/trials/{number}/driver-closed-1.txt"));
    assert!(fs::metadata(kept).unwrap().len() < 1_000_000);
}

#[test]
fn a_driver_that_is_not_installed_is_named_with_the_command_that_installs_it() {
    let place = Place::new();
    place.write(
        "drivers/tiny/driver.toml",
        "title = \"tiny\"\nreader = \"wrk\"\n[packages]\ndebian = [\"tiny-load\"]\n\
         [programs]\ntiny = [\"no-such-program-here\"]\n\
         [run]\ncommand = [\"{{ programs.tiny }}\", \"{{ url }}\"]\n",
    );
    experiment(
        &place,
        "a = \"http://origin/\"",
        "driver = \"tiny\"",
        "blocks = 1",
    );
    let said = "no-such-program-here is not installed: `apt-get install --no-install-recommends \
                tiny-load`";
    let done = run(&place).expect(2);
    done.says(&["cannot run here", said]);
    let dry = place.run("run x.toml --drivers drivers --dry-run");
    let dry = dry.expect(0).out;
    assert!(
        flat(&dry).contains(said) && dry.contains("driver: tiny\n"),
        "{dry}"
    );
    let doctor = place.run("doctor x.toml --drivers drivers").expect(0);
    flat(&doctor.out).has("no-such-program-here is not installed");
    let list = place.run("list --drivers drivers").expect(0).out;
    has(&list, "missing: no-such-program-here");
    // A driver is found in the environment's folders, too, and the nearest name is told.
    let mut command = place.weigh("run x.toml --set load.driver=tinny --dry-run");
    command.env("WEIGH_DRIVERS", place.path("drivers"));
    let done = place.start_command(command).end().expect(2);
    done.says(&["no driver is called `tinny`", "did you mean `tiny`?"]);
}

/// Starts a run whose driver hangs, and waits until it does.
fn hanging(place: &Place) -> crate::common::Running<'_> {
    experiment(
        place,
        "a = \"http://origin/\"",
        "driver = \"hangs\"",
        "blocks = 1\nwindow = \"300s\"\nslice = \"100s\"",
    );
    script(
        place,
        "hangs",
        "setsid sleep 1000 &\ntrap '' TERM INT\necho > ../../hangs\nsleep 1000\n",
    );
    let mut running = place.start(CALL);
    // Its folder is the agent's, and that one's the place's.
    let mark = place.temp().join("hangs");
    running.until("its driver hangs", || mark.exists());
    fs::remove_file(mark).unwrap();
    running
}

#[test]
fn a_run_is_stopped_at_once_while_a_driver_runs() {
    let place = Place::new();
    let running = hanging(&place);
    running.signal(INT);
    let done = running.end_within(Duration::from_secs(15)).expect(130);
    let document = done.json();
    assert_eq!(document["trials"]["done"], 0);
    assert_eq!(document["trials"]["failed"], 0);
    assert!(place.left().is_empty(), "{:?}", place.left());
    assert!(crate::common::control_groups(&done.agents).is_empty());
}

#[test]
fn a_driver_does_not_outlive_the_program() {
    let place = Place::new();
    let mut running = hanging(&place);
    let agents = running.look().clone();
    running.signal(KILL);
    running.end().expect(-KILL);
    wait_until("all is gone", Duration::from_secs(5), || {
        place.left().is_empty() && crate::common::control_groups(&agents).is_empty()
    });
}

/// Has each of these drivers that is installed load an encrypted server.
fn all_load(load: &str, known: &[&str]) {
    let place = Place::new();
    let mut there = known.to_vec();
    there.retain(|one| is_there(&place, one));
    let subject = |name: &&str| {
        format!("{name} = {{ url = \"https://origin{DELAYED_PAGE}\", driver = \"{name}\" }}\n")
    };
    place.experiment(&format!(
        "[servers.origin]\nrecipe = \"origin\"\nwith = {{ tls = true }}\n\
         [subjects]\n{}[load]\n{load}\n",
        there.iter().map(subject).collect::<String>()
    ));
    // A driver runs for a second at least, and the baseline is measured twice.
    let line = "run x.toml --out r --format json --set design.warmup=0s --set design.window=1s";
    place.run(line).made(there.len() + 1);
    for trial in trials(&place.path("r")) {
        let reading = &trial["outcome"]["done"]["throughput"];
        assert!(reading["requests"].as_u64().unwrap() > 10, "{trial}");
        let errors = reading["errors"].as_object().unwrap();
        assert!(errors.values().all(|count| count == 0), "{trial}");
    }
}

#[test]
fn drivers_load_a_server_over_tls() {
    let known = ["wrk", "ab", "h2load", "httperf", "weigh"];
    all_load("connections = 4", &known);
}

#[test]
fn drivers_load_a_server_over_http2_and_http3() {
    let load = "connections = 2\nstreams = 5\nhttp";
    all_load(&format!("{load} = \"2\""), &["h2load", "weigh", "oha"]);
    all_load(&format!("{load} = \"3\""), &["weigh"]);
}
