//! Hosts of real engines: a Slurm controller with three nodes, and containers of podman, all on this
//! machine. What they need are large packages.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{
    Done, KILL, LIMIT, Origin, Place, Running, alive, descendants, free_port, is_installed,
    is_left_out, only_blocks_failed, signal, skip, trials, wait_until, with_text,
};
use crate::load::hosts::three_hosts_share_a_load;

const DESIGN: &str = r#"
[design]
blocks = 3
warmup = "200ms"
window = "600ms"
latency_window = "400ms"
retries = 0
bottleneck = false
apart = "never"
"#;

/// Whether programs of large packages are there, and this is root; says so where it is not.
pub(super) fn can_run(programs: &[&str], package: &str) -> bool {
    if is_left_out(package) {
        return false;
    }
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| !is_installed(program))
        .collect();
    if missing.is_empty() && net::os::is_root() {
        return true;
    }
    let why = match missing.is_empty() {
        true => "this is not root".to_owned(),
        false => format!("{} not installed", missing.join(", ")),
    };
    skip(&format!("{package}: {why}"));
    false
}

/// Two servers on two hosts and the load on a third.
pub(super) fn experiment(hosts: &str, names: [&str; 3]) -> String {
    let [one, two, load] = names;
    format!(
        "title = \"the same\"\n{hosts}\n\
         [servers.one]\nrecipe = \"origin\"\nhost = \"{one}\"\n\
         [servers.two]\nrecipe = \"origin\"\nhost = \"{two}\"\n\
         [subjects]\na = \"http://one/\"\nb = \"http://two/\"\n\
         [load]\nhost = \"{load}\"\nconnections = 4\n{DESIGN}"
    )
}

pub(super) fn is_measured(place: &Place, done: &Done) {
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let all = trials(&place.path("r"));
    assert_eq!(all.len(), 9, "{}", done.err);
    let good = |one: &Value| one["outcome"]["done"].is_object();
    assert!(all.iter().all(good), "{all:?}");
}

/// The trials of some of three blocks failed by the host's name, the others are measured.
pub(super) fn cost_blocks(place: &Place, done: &Done, host: &str, is_lost: impl Fn(u64) -> bool) {
    let all = trials(&place.path("r"));
    assert_eq!(all.len(), 9, "{}", done.err);
    only_blocks_failed(&all, is_lost, &[&format!("host `{host}`")]);
}

pub(super) fn costs_its_block(place: &Place, done: &Done, host: &str) {
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    cost_blocks(place, done, host, |block| block == 2);
}

/// Has three hosts put one load on a back end here.
fn make_one_load(place: &Place, hosts: &str, settle: impl Fn(&mut Command)) {
    let origin = Origin::start(place);
    place.write("hosts.toml", hosts);
    three_hosts_share_a_load(&origin.url, |line| {
        let mut command = place.weigh(line);
        settle(&mut command);
        place.start_command(command).end()
    });
}

pub(super) fn in_second_block(running: &mut Running<'_>) {
    running.until_said("block 2/3");
    running.go_on(Duration::from_millis(1_500));
}

const NODES: &str = "[hosts.n]\nslurm = { nodes = 3, partition = \"bench\" }";

/// A Slurm of the test's own: controller, three nodes and the authentication between them.
struct Cluster {
    place: Place,
    daemons: Vec<(String, Child)>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let text = self.place.path("slurm").display().to_string();
        for (_, daemon) in &mut self.daemons {
            let family = descendants(daemon.id());
            let _ = daemon.kill();
            let _ = daemon.wait();
            for one in family {
                let _ = net::os::kill(one.pid, KILL);
            }
        }
        for one in with_text(&text) {
            let _ = net::os::kill(one.pid, KILL);
        }
    }
}

impl Cluster {
    fn start() -> Option<Self> {
        let programs = ["slurmctld", "slurmd", "munged", "srun", "salloc"];
        if !can_run(&programs, "slurm-wlm") {
            return None;
        }
        let place = Place::new();
        let dir = place.path("slurm");
        let folder = dir.display().to_string();
        for name in ["munge", "state", "n1", "n2", "n3"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        let key: Vec<u8> = (0..128).map(|_| fastrand::u8(..)).collect();
        fs::write(dir.join("munge/key"), key).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o400);
        fs::set_permissions(dir.join("munge/key"), private).unwrap();
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let name = name.trim().split('.').next().unwrap();
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\n\
             SlurmctldPort={}\nAuthType=auth/munge\nAuthInfo=socket={folder}/munge/socket\n\
             CredType=cred/munge\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/%n\n\
             SlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/%n.pid\n\
             SlurmctldLogFile={folder}/ctld.log\nSlurmdLogFile={folder}/%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMpiDefault=none\n\
             SwitchType=switch/none\nJobAcctGatherType=jobacct_gather/none\nReturnToService=2\n\
             MessageTimeout=3\nMailProg=/bin/true\n",
            free_port()
        );
        for node in ["n1", "n2", "n3"] {
            text += &format!(
                "NodeName={node} NodeHostname={name} NodeAddr=127.0.0.1 Port={} CPUs=1\n",
                free_port()
            );
        }
        text += "PartitionName=bench Nodes=n1,n2,n3 Default=YES MaxTime=INFINITE State=UP\n";
        place.write("slurm/slurm.conf", &text);
        let mut cluster = Self {
            place,
            daemons: Vec::new(),
        };
        let option = |name: &str, file: &str| format!("--{name}={folder}/munge/{file}");
        let munged = [
            "munged".to_owned(),
            "--foreground".to_owned(),
            "--force".to_owned(),
            option("key-file", "key"),
            option("socket", "socket"),
            option("pid-file", "pid"),
            option("log-file", "log"),
            option("seed-file", "seed"),
        ];
        cluster.daemon("munged", &munged);
        wait_until("munged listens", LIMIT, || {
            dir.join("munge/socket").exists()
        });
        cluster.daemon("slurmctld", &["slurmctld", "-D", "-i"].map(str::to_owned));
        for node in ["n1", "n2", "n3"] {
            cluster.daemon(node, &["slurmd", "-D", "-N", node].map(str::to_owned));
        }
        cluster.until_idle();
        Some(cluster)
    }

    fn until_idle(&self) {
        wait_until("all nodes are idle", LIMIT, || {
            let states = self.asks("sinfo", &["--noheader", "--format=%D %t"]);
            states.trim() == "3 idle"
        });
    }

    fn daemon(&mut self, name: &str, words: &[String]) {
        let mut command = Command::new(format!("/usr/sbin/{}", words[0]));
        command.args(&words[1..]);
        self.settle(&mut command);
        let log = self.place.path(&format!("slurm/{name}.out"));
        let log = fs::File::create(log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.daemons
            .push((name.to_owned(), command.spawn().unwrap()));
    }

    fn settle(&self, command: &mut Command) {
        command.env("SLURM_CONF", self.place.path("slurm/slurm.conf"));
        command.env("TMPDIR", self.place.temp());
        command.env("XDG_CACHE_HOME", self.place.path("cache"));
        // It needs no more than the tests' own.
        command.env_remove("SLURM_JOB_ID");
    }

    fn asks(&self, program: &str, words: &[&str]) -> String {
        let mut command = Command::new(program);
        self.settle(command.args(words));
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn run(&self) -> Running<'_> {
        self.place
            .write("x.toml", &experiment(NODES, ["n1", "n2", "n3"]));
        let mut command = self.place.weigh("run x.toml --out r");
        self.settle(&mut command);
        command.env("WEIGH_HEARTBEAT_LIMIT_S", "5");
        self.place.start_command(command)
    }

    /// The steps of a node: the processes of Slurm that hold them.
    fn steps(&self, node: &str) -> Vec<u32> {
        let jobs = self.asks("squeue", &["--noheader", "--steps", "--format=%i %N"]);
        let of_node = |line: &&str| line.split_whitespace().nth(1) == Some(node);
        let ids: Vec<&str> = jobs
            .lines()
            .filter(of_node)
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let found = ids
            .iter()
            .flat_map(|id| with_text(&format!("slurmstepd: [{id}]")));
        found.map(|one| one.pid.try_into().unwrap()).collect()
    }

    /// Neither processes, folders nor jobs.
    fn is_empty(&self) {
        let temp = self.place.temp().display().to_string();
        wait_until("nothing is left", LIMIT / 5, || {
            let jobs = self.asks(
                "squeue",
                &["--noheader", "--states=running,completing,pending"],
            );
            let agents = with_text(&format!("{} agent", env!("CARGO_PKG_NAME")));
            let ours = agents.into_iter().filter(|one| {
                let environment = fs::read(format!("/proc/{}/environ", one.pid));
                String::from_utf8_lossy(&environment.unwrap_or_default()).contains(&temp)
            });
            let folders = fs::read_dir(&temp).unwrap().count();
            jobs.trim().is_empty() && folders == 0 && ours.count() == 0
        });
    }
}

#[test]
fn nodes_of_slurm_are_hosts() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let done = cluster.run().end();
    is_measured(&cluster.place, &done);
    let hosts = cluster.place.read_json("r/hosts.json");
    for node in ["n1", "n2", "n3"] {
        let host = &hosts["machines"][node];
        assert_eq!(host["slurm"]["node"], node, "{host}");
        assert_eq!(host["address"], "127.0.0.1", "{host}");
    }
    make_one_load(&cluster.place, NODES, |command| cluster.settle(command));
    cluster.is_empty();
}

/// While others have the nodes, a request waits in the queue.
#[test]
fn a_wait_for_nodes_ends_with_the_first_signal_and_leaves_no_request() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut others = Command::new("salloc");
    cluster.settle(others.args(["--nodes=3", "--quiet", "cat"]));
    others
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut others = others.spawn().unwrap();
    let states = || cluster.asks("squeue", &["--noheader", "--format=%T"]);
    wait_until("others have the nodes", LIMIT, || {
        states().contains("RUNNING")
    });
    let text = experiment(NODES, ["n1", "n2", "n3"]);
    cluster.place.write("x.toml", &text);
    cluster.place.write("hosts.toml", NODES);
    let run = ["run", "x.toml", "--out", "r"];
    let load = ["load", "http://127.0.0.1:1/", "--hosts", "hosts.toml"];
    for words in [run, load] {
        let mut command = cluster.place.weigh(&words);
        cluster.settle(&mut command);
        let mut waiting = cluster.place.start_command(command);
        waiting.until("its request waits", || states().contains("PENDING"));
        waiting.signal(2);
        waiting.end().expect(130);
        wait_until("its request is withdrawn", LIMIT, || {
            !states().contains("PENDING")
        });
    }
    drop(others.stdin.take());
    others.wait().unwrap();
    cluster.is_empty();
}

#[test]
fn an_srun_that_is_killed_costs_its_block_alone() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut running = cluster.run();
    in_second_block(&mut running);
    let all = descendants(running.pid());
    let mut all = all.iter();
    let srun = all.find(|one| one.to_string().contains("--nodelist=n3"));
    signal(srun.unwrap().pid.try_into().unwrap(), KILL);
    costs_its_block(&cluster.place, &running.end(), "n3");
    cluster.is_empty();
}

#[test]
fn a_step_that_is_killed_costs_its_block_alone() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut running = cluster.run();
    in_second_block(&mut running);
    let mut steps = Vec::new();
    running.until("the step of n2 is listed", || {
        steps = cluster.steps("n2");
        !steps.is_empty()
    });
    steps.iter().for_each(|pid| signal(*pid, KILL));
    costs_its_block(&cluster.place, &running.end(), "n2");
    cluster.is_empty();
}

#[test]
fn a_node_that_dies_is_named_and_what_was_measured_is_kept() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let mut running = cluster.run();
    in_second_block(&mut running);
    let steps = cluster.steps("n2");
    let slurmd = cluster
        .daemons
        .iter()
        .find(|(name, _)| name == "n2")
        .unwrap();
    signal(slurmd.1.id(), KILL);
    steps.iter().for_each(|pid| signal(*pid, KILL));
    let done = running.end();
    cost_blocks(&cluster.place, &done, "n2", |block| block > 1);
    // The node comes back, and the rest is measured.
    cluster.daemon("n2", &["slurmd", "-D", "-N", "n2"].map(str::to_owned));
    cluster.until_idle();
    let mut command = cluster.place.weigh("run --resume r --format json");
    cluster.settle(&mut command);
    cluster.place.start_command(command).end().none_failed();
    cluster.is_empty();
}

/// Calls podman with storage of the test's own.
struct Podman {
    place: Place,
}

impl Podman {
    /// Makes an image of the program and its libraries.
    fn start() -> Option<Self> {
        if !can_run(&["podman", "runc"], "podman") {
            return None;
        }
        let podman = Self {
            place: Place::new(),
        };
        let root = podman.place.path("root");
        let weigh = Path::new(env!("CARGO_BIN_EXE_weigh"));
        for folder in ["tmp", "proc", "sys", "dev", "etc"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in libraries(weigh) {
            let to = root.join(file.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&file, to).unwrap();
        }
        let tar = podman.place.path("root.tar");
        let made = Command::new("tar")
            .arg("-cf")
            .arg(&tar)
            .arg("-C")
            .arg(&root)
            .arg(".")
            .status();
        assert!(made.unwrap().success());
        podman.call(&["import", "--quiet", tar.to_str().unwrap(), "weigh-test"]);
        Some(podman)
    }

    fn settle(&self, command: &mut Command) {
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\nrunroot = \"{0}/run\"\ngraphroot = \"{0}/graph\"\n",
            self.place.path("podman").display()
        );
        let file = self.place.write("storage.conf", &storage);
        command.env("CONTAINERS_STORAGE_CONF", file);
        command.env("STORAGE_DRIVER", "vfs");
        command.env("WEIGH_HEARTBEAT_LIMIT_S", "5");
    }

    fn call(&self, words: &[&str]) -> String {
        let mut command = Command::new("podman");
        self.settle(command.args(words));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "podman {words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn hosts() -> String {
        let options = "[\"--runtime\", \"runc\", \"--ulimit\", \"nofile=20000:20000\", \
                       \"--ulimit\", \"nproc=1000:1000\"]";
        let host = |name: &str| {
            format!("[hosts.{name}]\npodman = {{ image = \"weigh-test\", options = {options} }}\n")
        };
        ["vm", "near", "client"].map(host).concat()
    }

    fn run(&self) -> Running<'_> {
        let text = experiment(&Self::hosts(), ["vm", "near", "client"]);
        self.place.write("x.toml", &text);
        let mut command = self.place.weigh("run x.toml --out r");
        self.settle(&mut command);
        self.place.start_command(command)
    }

    fn is_empty(&self) {
        wait_until("no container is left", LIMIT / 5, || {
            self.call(&["ps", "--all", "--quiet"]).trim().is_empty()
        });
        assert!(self.place.left().is_empty(), "{:?}", self.place.left());
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        for words in [["rm", "--all", "--force"], ["rmi", "--all", "--force"]] {
            let mut command = Command::new("podman");
            self.settle(command.args(words));
            let _ = command.stdin(Stdio::null()).output();
        }
    }
}

/// The files that the dynamic loader maps for a program.
fn libraries(program: &Path) -> Vec<String> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let words = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    words.map(str::to_owned).collect()
}

#[test]
fn containers_of_podman_are_hosts() {
    let Some(podman) = Podman::start() else {
        return;
    };
    let done = podman.run().end();
    is_measured(&podman.place, &done);
    make_one_load(&podman.place, &Podman::hosts(), |command| {
        podman.settle(command);
    });
    podman.is_empty();
}

#[test]
fn a_container_that_is_killed_costs_its_block_alone() {
    let Some(podman) = Podman::start() else {
        return;
    };
    let mut running = podman.run();
    in_second_block(&mut running);
    let names = podman.call(&["ps", "--format", "{{.Names}}"]);
    let name = names
        .lines()
        .find(|name| name.starts_with("weigh-vm-"))
        .unwrap()
        .to_owned();
    podman.call(&["kill", &name]);
    costs_its_block(&podman.place, &running.end(), "vm");
    podman.is_empty();
}

#[test]
fn a_podman_that_is_killed_costs_its_block_alone() {
    let Some(podman) = Podman::start() else {
        return;
    };
    let mut running = podman.run();
    in_second_block(&mut running);
    let all = descendants(running.pid());
    let mut all = all.iter();
    let client = all.find(|one| one.to_string().contains("weigh-client-"));
    signal(client.unwrap().pid.try_into().unwrap(), KILL);
    let family = with_text("weigh-client-");
    let done = running.end();
    costs_its_block(&podman.place, &done, "client");
    podman.is_empty();
    // conmon ends a moment after its container.
    wait_until("its processes have ended", LIMIT / 10, || {
        alive(&family).is_empty()
    });
}
