//! The recipe of the real Crossroads, which no package has: its configuration as the built-in
//! balancer reads it, its start and stop with a stand-in, and itself where it is installed.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use experiment::Recipes;
use experiment::recipe::{Behind, RenderContext};

use crate::common::started::{LARGE_BYTES, Started, Upstream, ask, params};
use crate::common::{INT, Place, array, free_port, has, skip, wait_until};

const BOTH: [&str; 2] = ["crossroads", "crossroads-daemon"];

/// An experiment with one server of the recipe, over two back ends.
const EXPERIMENT: &str = include_str!("crossroads/experiment.toml");

/// The configuration that the recipe gives.
fn configuration(listen: SocketAddr, behind: &[SocketAddr], params: &str) -> String {
    let recipes = Recipes::embedded().unwrap();
    let upstreams = behind.iter().map(|&addr| Behind {
        name: "behind".to_owned(),
        addr,
        dir: None,
        tls: false,
    });
    let rendered = recipes
        .get("crossroads")
        .unwrap()
        .render(&RenderContext {
            name: "balancer".to_owned(),
            dir: PathBuf::from("/d"),
            listen_addr: listen,
            upstreams: upstreams.collect(),
            params: self::params(params),
            programs: BTreeMap::new(),
            weigh: PathBuf::from("weigh"),
            cpus: 1,
            certificates: None,
            reload: Default::default(),
            checkout: None,
        })
        .unwrap();
    let file = rendered
        .files
        .into_iter()
        .find(|file| file.path == "crossroads.conf");
    String::from_utf8(file.unwrap().bytes).unwrap()
}

/// Answers come from both in turn, and a large one comes whole.
fn passes_on(address: SocketAddr) {
    let mut bodies: Vec<String> = (0..4).map(|_| ask(address, "/").body).collect();
    bodies.sort();
    assert_eq!(bodies, ["one", "one", "two", "two"]);
    let large = ask(address, "/large");
    assert_eq!((large.status, large.body.len()), (200, LARGE_BYTES));
}

#[test]
fn its_configuration_is_one_that_the_built_in_balancer_carries_out() {
    let (one, two) = (Upstream::start("one"), Upstream::start("two"));
    let behind = [one.address, two.address];
    let place = Place::new();
    // The file of an experiment, with words in the place of addresses.
    let own = "service s {\n bindto LISTEN_IP;\n port LISTEN_PORT;\n \
               backend a { server SERVER1; port PORT1; }\n \
               backend b { server SERVER2; port PORT2; }\n}\n";
    for params in ["", "mode = http", &format!("crossroads = {own}")] {
        let listen: SocketAddr = format!("127.0.0.1:{}", free_port()).parse().unwrap();
        place.write("c.conf", &configuration(listen, &behind, params));
        let running = place.start("balance c.conf");
        wait_until("it accepts", crate::common::LIMIT, || {
            std::net::TcpStream::connect(listen).is_ok()
        });
        passes_on(listen);
        running.signal(INT);
        running.end().expect(0);
    }
}

#[test]
fn every_parameter_is_in_the_configuration_as_it_is_meant() {
    let place = Place::new();
    let behind: Vec<SocketAddr> = (1..=12)
        .map(|last| format!("127.0.0.{last}:80{last:02}").parse().unwrap())
        .collect();
    let listen = "127.0.0.1:8080".parse().unwrap();
    let checked = |params: &str| {
        place.write("c.conf", &configuration(listen, &behind, params));
        place.run("balance --check c.conf").expect(0).out
    };
    let all = checked(
        "mode = http, dispatch_mode = bysize, over = 7, reviving_interval_s = 9, \
         max_connections = 300, listen_backlog = 77, retries = 3, shmkey = 4711, \
         header_inspection = false, verbosity = true",
    );
    for wanted in [
        "kind = \"http\"",
        "mode = \"by-size\"",
        "over = 7",
        "reviving_interval = \"9s\"",
        "connections_max = 300",
        "inspect = \"first\"",
        "backlog = 77",
        "retries = 3",
    ] {
        assert!(all.contains(wanted), "no {wanted} in\n{all}");
    }
    for (word, native) in [
        ("roundrobin", "round-robin"),
        ("random", "random"),
        ("byduration", "by-duration"),
        ("byconnections", "by-connections"),
        ("byorder", "by-order"),
        ("byclientip", "by-client-ip"),
    ] {
        let service = checked(&format!("dispatch_mode = {word}"));
        assert!(
            service.contains(&format!("\"{native}\"")),
            "{word}: {service}"
        );
    }
    // The twelfth is not the first with a 2 behind it.
    let own = "service s { port LISTEN_PORT; backend a { server SERVER12; port PORT12; } }";
    let own = checked(&format!("crossroads = {own}"));
    has(&own, "127.0.0.12:8012");
}

#[test]
fn where_it_is_missing_its_two_programs_are_named_and_no_package() {
    let place = Place::new();
    let path = place.path("nothing");
    let says = |words: &[&str]| {
        let mut command = place.weigh(words);
        command.env("PATH", &path);
        place.start_command(command).end()
    };
    let listing = says(&["list", "--format", "json"]).expect(0).json();
    let recipes = array(&listing["recipes"]);
    let ours = recipes.iter().find(|one| one["name"] == "crossroads");
    let ours = ours.unwrap();
    // What lies in /usr/local/sbin is found without PATH.
    if ours["missing"] != serde_json::json!(BOTH) {
        println!("not run: it is installed here");
        return;
    }
    assert_eq!(ours["can_run"], false);
    assert!(ours["install_command"].is_null(), "{ours}");
    assert_eq!(ours["homepage"], "http://crossroads.e-tunity.com/");
    let list = says(&["list"]).expect(0).out;
    let from = list.find("missing: crossroads, crossroads-daemon");
    let after: Vec<&str> = list[from.unwrap()..].lines().take(2).collect();
    assert_eq!(
        after[1].trim(),
        "no package is known: see http://crossroads.e-tunity.com/"
    );
    place.experiment(EXPERIMENT);
    let run = says(&["run", "x.toml", "--out", "r"]);
    assert_ne!(run.status, 0);
    run.says(&[
        "crossroads, crossroads-daemon are not installed",
        "no package is known: see http://crossroads.e-tunity.com/",
    ]);
    assert!(!run.err.contains("apt-get"), "{}", run.err);
}

/// Programs of the names of the real ones that take the words of its manual and go into the
/// background as it does. What they run there is the built-in balancer. The words go to
/// `told/words`.
fn stand_in(place: &Place) {
    let weigh = env!("CARGO_BIN_EXE_weigh");
    let told = place.path("told");
    let words = place.write("told/words", "");
    // The server runs as another user at each start, and still has to write the file.
    fs::set_permissions(words, fs::Permissions::from_mode(0o666)).unwrap();
    let told = told.display();
    let start = format!(
        "#!/bin/sh\necho \"$*\" >>'{told}/words'\nwhile getopts ac: flag; do [ $flag = c ] && file=$OPTARG; done\n\
         shift $((OPTIND - 1))\ncase $1 in\n\
         start) '{weigh}' balance --check \"$file\" >&2 || exit 2\n\
         setsid crossroads-daemon \"$file\" </dev/null >/dev/null 2>&1 & ;;\n\
         stop) exec '{weigh}' balance stop \"$file\" ;;\n\
         *) exit 2 ;;\nesac\n"
    );
    let daemon = format!("#!/bin/sh\nexec '{weigh}' balance \"$1\"\n");
    for (name, script) in BOTH.into_iter().zip([start, daemon]) {
        place.write_script(&format!("bin/{name}"), &script);
    }
}

/// Whether control groups can be made here.
fn control_groups() -> bool {
    net::os::is_root()
        && ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"]
            .iter()
            .any(|base| {
                let name = format!("we-probe-{}", std::process::id());
                let folder = Path::new(base).join(name);
                fs::create_dir(&folder).is_ok() && fs::remove_dir(&folder).is_ok()
            })
}

#[test]
fn what_it_starts_in_the_background_is_counted_and_stopped() {
    let place = Place::new();
    stand_in(&place);
    place.experiment(EXPERIMENT);
    let command = place.weigh_with_bin("run x.toml --out r --format json");
    let done = place.start_command(command).end();
    if !control_groups() {
        done.says(&["only a control group finds it again"]);
        return;
    }
    let document = done.none_failed();
    let rows = array(&document["table"]);
    let row = rows.iter().find(|row| row["subject"] == "balanced");
    let cpu = &row.unwrap()["server_cpu_us_per_request"]["balancer"];
    assert!(cpu.as_f64().unwrap() > 1.0, "{cpu}");
    let told = place.read("told/words");
    let words: Vec<&str> = told.lines().collect();
    assert!(
        words.len() >= 2 && words.len().is_multiple_of(2),
        "{words:?}"
    );
    for (number, word) in words.iter().enumerate() {
        let last = ["start", "stop"][number % 2];
        let file = word
            .strip_prefix("-a -c ")
            .and_then(|rest| rest.strip_suffix(last));
        let file = file.unwrap_or_else(|| panic!("{words:?}"));
        assert!(file.trim_end().ends_with("/balancer/crossroads.conf"));
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_start_that_fails_is_told_with_its_reason() {
    let place = Place::new();
    stand_in(&place);
    place.experiment(EXPERIMENT);
    if !control_groups() {
        return;
    }
    let wrong = "servers.balancer.with.crossroads=\"service s { prt LISTEN_PORT; }\"";
    let command = place.weigh_with_bin(&format!("run x.toml --out r --set '{wrong}'"));
    let done = place.start_command(command).end();
    assert_ne!(done.status, 0);
    done.says(&["`balancer` ended by itself", "did you mean `port`"]);
}

#[test]
fn the_real_one_passes_requests_on() {
    if !control_groups() {
        let recipes = Recipes::embedded().unwrap();
        if recipes.get("crossroads").unwrap().available().is_complete() {
            skip("crossroads needs control groups");
        }
        return;
    }
    for mode in ["tcp", "http"] {
        let (one, two) = (Upstream::start("one"), Upstream::start("two"));
        let params = format!("mode = {mode}");
        let Some(server) = Started::start("crossroads", &params, &[&one, &two]) else {
            return;
        };
        passes_on(server.address);
        server.stop();
    }
}
