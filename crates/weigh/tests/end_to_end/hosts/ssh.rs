//! Hosts behind ssh: real connections to an sshd of the test's own on a host of the test's own, with
//! keys made for it.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hosts::Topology;
use serde_json::Value;

use crate::common::{
    CommandLine, DELAYED_PAGE, Done, KILL, LIMIT, Place, TERM, alive, array, descendants,
    free_port, hosts_or_skip, journal, key, only_blocks_failed, proxy_and_backend, replaced,
    run_with, skip, spec, trials, wait_until, with_text,
};
use crate::load::hosts::three_hosts_share_a_load;

/// So soon after its connection has ended nothing of a run is left on the far side.
const SOON: Duration = Duration::from_secs(1);

const DESIGN: &str = include_str!("ssh/design.toml");

/// All but the hosts. CPU time is compared, so the load is a full one.
fn parts() -> String {
    proxy_and_backend("vm", "vm").replace(DELAYED_PAGE, "/") + DESIGN
}

const HERE: &str = "title = \"the same\"\n[hosts.vm]\ncpus = [0]\n[hosts.client]\ncpus = [0]\n";

/// Where the program runs.
const DESK: &str = "desk";

/// A network with the machines that the program reaches, and the one that it runs on. An ordinary
/// user's sshd cannot live in namespaces; there all of it is on this machine's loopback.
struct Network {
    topology: Option<Topology>,
    place: Place,
}

impl Network {
    /// Makes it; `None` when it cannot be had here, which was said then.
    fn new() -> Option<Self> {
        if !can_run() {
            return None;
        }
        let place = Place::new();
        let topology = match net::os::is_root() {
            true => Some(hosts_or_skip(&[DESK, "vm", "client"].map(spec), None)?),
            false => None,
        };
        Some(Self { topology, place })
    }

    fn address(&self, host: &str) -> String {
        match &self.topology {
            Some(topology) => topology.address(DESK, host).unwrap().to_string(),
            None => "127.0.0.1".to_owned(),
        }
    }

    /// Makes a command one of a host, in this place's folder.
    fn put_on(&self, host: &str, command: &mut Command) {
        if let Some(topology) = &self.topology {
            let mut setup = topology.setup_in(host).unwrap().unwrap();
            let folder = self.place.path("");
            setup.folder = Some(CString::new(folder.as_os_str().as_bytes()).unwrap());
            net::os::set_up_child(command, setup);
        }
    }

    fn listens(&self, host: &str, port: u16) -> bool {
        let address = self.address(host);
        let connects = || std::net::TcpStream::connect((address.as_str(), port)).is_ok();
        match &self.topology {
            Some(topology) => {
                let desk = topology.host(DESK).unwrap();
                desk.on_its_network(connects).unwrap()
            }
            None => connects(),
        }
    }

    /// The hosts of an experiment, with its parts.
    fn far(&self) -> String {
        format!(
            "title = \"the same\"\n\
             [hosts.vm]\nssh = \"far-vm\"\naddress = \"{}\"\ncpus = [0]\n\
             [hosts.client]\nssh = \"far-client\"\ncpus = [0]\n{}",
            self.address("vm"),
            parts()
        )
    }

    /// A call of the program that finds the test's `ssh`.
    fn weigh(&self, line: &(impl CommandLine + ?Sized)) -> Command {
        let mut command = self.place.weigh_with_bin(line);
        self.put_on(DESK, &mut command);
        command
    }

    fn run(&self, line: &(impl CommandLine + ?Sized)) -> Done {
        self.place.start_command(self.weigh(line)).end()
    }
}

/// A machine behind ssh: an sshd that gives its sessions folders of their own.
struct Sshd {
    child: Child,
    /// Where it keeps what agents leave in temporary folders.
    temp: PathBuf,
    cache: PathBuf,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // The sessions first: they are processes of their own.
        for session in descendants(self.child.id()) {
            let _ = net::os::kill(session.pid, KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sshd {
    /// Starts one that `ssh NAME` reaches; `more` are further lines of its configuration.
    fn start(network: &Network, name: &str, more: &str) -> Self {
        let place = &network.place;
        let dir = place.path(name);
        let (temp, cache) = (dir.join("temp"), dir.join("cache"));
        fs::create_dir_all(&temp).unwrap();
        for key in ["host", "user"] {
            keygen(&dir.join(key));
        }
        let (address, port) = (network.address(name), free_port());
        let shown = dir.display();
        place.write(
            &format!("{name}/sshd_config"),
            &format!(
                "Port {port}\nListenAddress {address}\nHostKey {shown}/host\n\
                 AuthorizedKeysFile {shown}/user.pub\nPidFile none\nUsePAM no\nStrictModes no\n\
                 PermitRootLogin yes\nPasswordAuthentication no\nLogLevel ERROR\n\
                 KbdInteractiveAuthentication no\n{more}\n\
                 SetEnv TMPDIR={shown}/temp XDG_CACHE_HOME={shown}/cache\n"
            ),
        );
        let host_key = fs::read_to_string(dir.join("host.pub")).unwrap();
        place.write(
            &format!("{name}/known"),
            &format!("[{address}]:{port} {host_key}"),
        );
        let user = Command::new("id").arg("-un").output().unwrap();
        let user = String::from_utf8(user.stdout).unwrap();
        let before = fs::read_to_string(place.path("ssh_config")).unwrap_or_default();
        place.write(
            "ssh_config",
            &format!(
                "{before}Host far-{name}\nHostName {address}\nPort {port}\nUser {user}\
                 IdentityFile {shown}/user\nIdentitiesOnly yes\nUserKnownHostsFile {shown}/known\n"
            ),
        );
        // `ssh` looks for its configuration where the user's is and nowhere else.
        let ssh = place.path("bin/ssh");
        let config = place.path("ssh_config");
        let script = format!(
            "#!/bin/sh\nexec {} -F {} \"$@\"\n",
            found("ssh").unwrap().display(),
            config.display()
        );
        if !ssh.exists() {
            place.write_script("bin/ssh", &script);
        }
        let child = daemon(network, name, &dir.join("sshd_config"));
        let sshd = Self { child, temp, cache };
        wait_until("sshd listens", LIMIT, || network.listens(name, port));
        sshd
    }

    fn text(&self) -> String {
        self.temp.display().to_string()
    }

    /// What agents have left there.
    fn left(&self) -> Vec<String> {
        let names = fs::read_dir(&self.temp).unwrap();
        let names = names.map(|entry| entry.unwrap().path().display().to_string());
        let processes = with_text(&self.text());
        processes
            .iter()
            .map(ToString::to_string)
            .chain(names)
            .collect()
    }

    /// The programs that were put there.
    fn programs(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.cache.join("weigh"));
        let folders = folders.into_iter().flatten().flatten();
        folders
            .flat_map(|folder| fs::read_dir(folder.path()).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(program))
        .find(|path| path.exists())
}

fn keygen(file: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(file)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
}

/// Starts sshd. For root it wants a folder in /run that a package makes only when it starts it: it
/// gets one of its own, in a mount namespace.
fn daemon(network: &Network, host: &str, config: &Path) -> Child {
    let sshd = found("sshd").unwrap();
    let start = format!("exec {} -D -e -f {}", sshd.display(), config.display());
    let mut command = match net::os::is_root() {
        true => {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c"]);
            command.arg(format!(
                "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && {start}"
            ));
            command
        }
        false => {
            let mut command = Command::new("sh");
            command.args(["-c", &start]);
            command
        }
    };
    let log = fs::File::create(config.with_file_name("log")).unwrap();
    network.put_on(host, &mut command);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(log).spawn().unwrap()
}

/// Whether this machine has ssh; says so when it has not.
fn can_run() -> bool {
    let missing: Vec<&str> = ["ssh", "sshd", "ssh-keygen"]
        .into_iter()
        .filter(|program| found(program).is_none())
        .collect();
    if !missing.is_empty() {
        skip(&format!("{} not installed", missing.join(", ")));
    }
    missing.is_empty()
}

fn folder_of(place: &Place, name: &str) -> Vec<Value> {
    trials(&place.path(name))
}

/// The kinds of a journal's rows, warnings aside, which differ from place to place.
fn kinds(rows: &[Value]) -> Vec<String> {
    rows.iter()
        .map(|row| row["row"].to_string())
        .filter(|kind| kind != "\"warning\"")
        .collect()
}

/// The names of all that a trial has measured.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    if let Value::Object(fields_of) = value {
        // CPU pauses are reported only if there were any.
        for (name, inner) in fields_of.iter().filter(|(name, _)| *name != "pauses") {
            fields(inner, &format!("{path}.{name}"), found);
        }
    }
    found.insert(path.to_owned());
}

#[test]
fn hosts_behind_ssh_make_the_same_trials() {
    let Some(network) = Network::new() else {
        return;
    };
    let place = &network.place;
    let vm = Sshd::start(&network, "vm", "");
    // A login shell that prints, as those do that were never meant to be spoken to.
    let greets = "ForceCommand echo welcome; eval \"$SSH_ORIGINAL_COMMAND\"";
    let client = Sshd::start(&network, "client", greets);
    place.write("here.toml", &format!("{HERE}{}", parts()));
    place.write("far.toml", &network.far());
    for name in ["here", "far"] {
        let file = format!("{name}.toml");
        let call = [
            "run", &file, "--seed", "7", "--out", name, "--format", "json",
        ];
        let two_blocks = ["--set", "design.blocks=2"];
        let document = network.run(&[&call[..], &two_blocks].concat()).result();
        assert_eq!(document["trials"]["done"], 6, "{document}");
        assert_eq!(document["trials"]["failed"], 0, "{document}");
    }
    let (here, far) = (folder_of(place, "here"), folder_of(place, "far"));
    let keys = |trials: &[Value]| trials.iter().map(key).collect::<Vec<_>>();
    assert_eq!(keys(&here), keys(&far));
    let rows = |name: &str| kinds(&journal(&place.path(name)));
    assert_eq!(rows("here"), rows("far"));
    let (mut exact_s, mut sampled_s) = (0.0, 0.0);
    for (near, far) in here.iter().zip(&far) {
        let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
        fields(near, "", &mut ours);
        fields(far, "", &mut theirs);
        // Back ends are read between segments only where the load is made.
        ours.retain(|field| !field.contains(".received"));
        assert_eq!(ours, theirs);
        let reading = &far["outcome"]["done"];
        // Counted there, in the load's windows.
        for server in array(&reading["servers"]) {
            let cpu_s = server["cpu_s"].as_f64().unwrap();
            assert!(cpu_s > 0.01 && cpu_s < 0.7, "{server}");
            // The same by full samples, which know the ends of each window less well.
            let seen = &reading["probed"]["servers"][server["server"].as_str().unwrap()];
            let user_s = seen["user_s"].as_f64().unwrap();
            exact_s += cpu_s;
            sampled_s += user_s + seen["system_s"].as_f64().unwrap();
            assert!(seen["threads_max"].as_u64() >= Some(1), "{seen}");
        }
        // Of a path without upstreams there is none.
        let opened = &reading["upstream_connections_per_request"];
        assert!(
            opened.as_f64().is_none_or(|opened| opened < 0.5),
            "{opened}"
        );
    }
    assert!(
        (sampled_s / exact_s - 1.0).abs() < 0.25,
        "{sampled_s} of {exact_s}"
    );
    let hosts = place.read_json("far/hosts.json");
    for name in ["vm", "client"] {
        let host = &hosts["machines"][name];
        assert_eq!(host["ssh"], format!("far-{name}"));
        // It is one machine, so what is measured is the measuring.
        let ahead_s = host["clock_ahead_s"].as_f64().unwrap();
        let trip_s = host["clock_round_trip_s"].as_f64().unwrap();
        assert!(trip_s > 0.0 && trip_s < 1.0, "{host}");
        assert!(ahead_s.abs() <= trip_s, "{host}");
        assert_eq!(host["machine"]["kernel"], hosts["local"]["kernel"]);
    }
    assert!(hosts["local"]["versions"]["origin"].is_string(), "{hosts}");
    let command = hosts["local"]["servers"]["backend"]["command"][0].as_str();
    let command = PathBuf::from(command.unwrap());
    // Sent once to each, and found there by every later run.
    assert_eq!(vm.programs(), std::slice::from_ref(&command));
    assert_eq!(client.programs().len(), 1);
    let age = fs::metadata(&command).unwrap().modified().unwrap();
    let call = "run far.toml --out again --set design.blocks=1 --set design.window=100ms --set \
         design.latency_window=0s";
    assert!([0, 4].contains(&network.run(call).status));
    assert_eq!(fs::metadata(&command).unwrap().modified().unwrap(), age);
    make_one_load(&network);
    nothing_is_left(place, &[vm, client]);
}

fn nothing_is_left(place: &Place, machines: &[Sshd]) {
    let left = machines.iter().map(Sshd::left).chain([place.left()]);
    assert_eq!(left.flatten().collect::<Vec<_>>(), [""; 0]);
}

/// Has both machines and this one put one load on a back end here.
fn make_one_load(network: &Network) {
    let place = &network.place;
    let address = match &network.topology {
        Some(topology) => topology.address("vm", DESK).unwrap().to_string(),
        None => "127.0.0.1".to_owned(),
    };
    let listen = format!("{address}:{}", free_port());
    let origin = network.weigh(&format!("origin --listen {listen}"));
    let mut origin = place.start_command(origin);
    origin.until_said("/status/N");
    let text = "[hosts.here]\n[hosts.vm]\nssh = \"far-vm\"\n[hosts.client]\nssh = \"far-client\"\n";
    place.write("hosts.toml", text);
    let url = format!("http://{listen}/");
    three_hosts_share_a_load(&url, |line| network.run(line));
    origin.signal(TERM);
    origin.end().expect(0);
}

/// Cuts the connection to a host in the second of three blocks, by ending a process of it.
fn cut(host: &str, victim: impl Fn(u32, &Sshd) -> i32) {
    let Some(network) = Network::new() else {
        return;
    };
    let place = &network.place;
    let machines = ["vm", "client"].map(|name| Sshd::start(&network, name, ""));
    let mut text = network.far();
    for server in ["backend", "proxy"] {
        let url = format!("http://{server}");
        text = replaced(&text, &format!("{url}/"), &format!("{url}{DELAYED_PAGE}"));
    }
    place.write("x.toml", &text);
    let sets = ["design.window=400ms", "design.latency_window=200ms"];
    let mut running = place.start_command(network.weigh(&run_with("x.toml", &sets, "r")));
    running.until_said("block 2/3");
    // In the middle of what is measured.
    running.go_on(Duration::from_millis(1_500));
    let machine = &machines[usize::from(host == "client")];
    let family = with_text(&machine.text());
    assert!(!family.is_empty());
    net::os::kill(victim(running.pid(), machine), KILL).unwrap();
    wait_until("the far side is empty", SOON, || alive(&family).is_empty());
    let done = running.end();
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let trials = trials(&place.path("r"));
    assert_eq!(trials.len(), 9);
    let lost = format!("lost the agent: host `{host}`");
    only_blocks_failed(&trials, |block| block == 2, &[&lost]);
    nothing_is_left(place, &machines);
    network.run("run --resume r --format json").none_failed();
}

#[test]
fn a_connection_that_breaks_here_costs_its_block_alone() {
    cut("client", |pid, _| {
        let all = descendants(pid);
        let found = all.iter().find(|it| it.to_string().contains("far-client"));
        found.unwrap().pid
    });
}

#[test]
fn a_connection_that_breaks_there_costs_its_block_alone() {
    // Of what sshd has started, the process that speaks to the network is the nearest.
    cut("vm", |_, sshd| descendants(sshd.child.id())[0].pid);
}

#[test]
fn events_and_bottlenecks_of_servers_behind_ssh() {
    let Some(network) = Network::new() else {
        return;
    };
    let place = &network.place;
    let machines = ["vm", "client"].map(|name| Sshd::start(&network, name, ""));
    let design = "[load]\nhost = \"client\"\nconnections = 20\n[design]\nblocks = 1\n\
                  warmup = \"200ms\"\nretries = 0\n";
    let hosts = network.far().replace(&parts(), "");
    let servers = proxy_and_backend("vm", "vm");
    let event = "[[events]]\nat = \"500ms\"\nserver = \"backend\"\nwhat = \"kill\"\n\
                 until = \"1500ms\"\n";
    let design_of_events = design.replace("[design]", "rate = \"100/s\"\n[design]");
    place.write(
        "events.toml",
        &format!("{hosts}{servers}{event}{design_of_events}latency_window = \"4s\"\n"),
    );
    let call = "run events.toml --out e --format json";
    network.run(call).none_failed();
    for trial in folder_of(place, "e") {
        let events = &trial["outcome"]["done"]["events"];
        let event = &events["events"][0];
        assert!(event["at_s"].as_f64() >= Some(0.5), "{event}");
        assert!(event["back_s"].as_f64() >= Some(1.5), "{event}");
        if trial["subject"] == "direct" {
            // It is gone for a second, at 100 requests a second.
            assert!(events["failed"].as_u64() > Some(50), "{events}");
        }
    }
    // A few connections do not saturate the CPUs.
    let design_of_search = replaced(design, "connections = 20", "connections = 2");
    place.write(
        "search.toml",
        &format!(
            "{hosts}{servers}{design_of_search}window = \"300ms\"\nlatency_window = \"0s\"\n\
             bottleneck = true\napart = \"never\"\n"
        ),
    );
    let call = "run search.toml --out s --format json";
    let document = network.run(call).result();
    let found = array(&document["bottlenecks"]);
    let subjects: BTreeSet<&str> = found
        .iter()
        .map(|it| it["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["direct", "proxy"].into(), "{document}");
    let rows = journal(&place.path("s"));
    let searches = rows.iter().filter(|row| row["row"] == "bottleneck");
    for search in searches {
        assert!(search["failed"].is_null(), "{search}");
        for probe in array(&search["probes"]) {
            let server = &probe["seen"]["servers"]["backend"];
            assert!(server["cpus"].as_f64() > Some(0.0), "{probe}");
        }
    }
    nothing_is_left(place, &machines);
}

#[test]
fn a_machine_that_cannot_be_used_is_named_with_the_reason() {
    let Some(network) = Network::new() else {
        return;
    };
    let place = &network.place;
    let tools = place.path("tools");
    place.write_script(
        "tools/uname",
        "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo s390y\n",
    );
    place.write_script(
        "sums/sha256sum",
        &format!("#!/bin/sh\necho {}\n", "0".repeat(64)),
    );
    let first = |tools: &Path| {
        format!(
            "ForceCommand PATH={}:$PATH; eval \"$SSH_ORIGINAL_COMMAND\"",
            tools.display()
        )
    };
    let other = Sshd::start(&network, "client", &first(&tools));
    let broken = Sshd::start(&network, "vm", &first(&place.path("sums")));
    let text = network.far();
    place.write("sum.toml", &text);
    place.write("kind.toml", &text.replace("far-vm", "far-client"));
    place.write("nobody.toml", &text.replace("far-vm", "closed"));
    let config = place.read("ssh_config");
    let port = free_port();
    place.write(
        "ssh_config",
        &format!("{config}Host closed\nHostName 127.0.0.1\nPort {port}\n"),
    );
    let says = |file: &str, texts: &[&str]| {
        let out = file.trim_end_matches(".toml");
        let done = network.run(&format!("run {file} --out {out}"));
        done.expect(1).says(texts);
    };
    says(
        "sum.toml",
        &["host `vm`", "could not be put there", "checksum"],
    );
    says("kind.toml", &["host `vm`", "s390y", "binary = "]);
    says("nobody.toml", &["host `vm`", "Connection refused"]);
    assert!(broken.programs().is_empty() && other.programs().is_empty());
    assert!(broken.left().is_empty() && other.left().is_empty());
}
