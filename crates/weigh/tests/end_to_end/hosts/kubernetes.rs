//! Pods of a real Kubernetes of two nodes on this machine (`tests/kubernetes`). The tests share it,
//! one at a time, and each has a namespace of its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use testing::Text as _;

use serde_json::Value;

use super::engines::{can_run, costs_its_block, experiment, in_second_block, is_measured};
use crate::common::{
    Done, KILL, LIMIT, Place, Running, descendants, journal, only_blocks_failed, signal, skip,
    trials, wait_until, with_text,
};
use crate::load::hosts::three_hosts_share_a_load;

const STOP: i32 = 19;
const CONTINUE: i32 = 18;
const IMAGE: &str = "weigh-test:1";

/// It ends with the test program, whose end closes its standard input.
struct Cluster {
    folder: PathBuf,
    turn: Mutex<()>,
}

impl Cluster {
    /// The cluster; `None` where it cannot run, which was said then.
    fn shared() -> Option<&'static Self> {
        static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
        CLUSTER.get_or_init(Self::start).as_ref()
    }

    fn start() -> Option<Self> {
        if !can_run(&["python3", "containerd"], "containerd") {
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kubernetes/cluster");
        let missing = Command::new(&script).arg("missing").output().unwrap();
        let missing = String::from_utf8(missing.stdout).unwrap();
        if !missing.trim().is_empty() {
            skip(&format!("kubernetes: {}", missing.trim()));
            return None;
        }
        let folder = std::env::temp_dir().join(format!("we-kubernetes-{}", std::process::id()));
        let said = folder.with_extension("log");
        let mut child = Command::new(&script)
            .arg("run")
            .args([folder.as_os_str(), env!("CARGO_BIN_EXE_weigh").as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let why = fs::read_to_string(&said).unwrap();
        fs::remove_file(&said).unwrap();
        assert_eq!(line.trim(), "ready", "{why}");
        // Its standard input stays open until this program ends.
        std::mem::forget(child);
        let turn = Mutex::default();
        Some(Self { folder, turn })
    }
}

/// A namespace of the cluster.
struct Bench {
    place: Place,
    cluster: &'static Cluster,
    turn: Option<MutexGuard<'static, ()>>,
}

impl Bench {
    fn new() -> Option<Self> {
        let cluster = Cluster::shared()?;
        let turn = cluster.turn.lock();
        let turn = Some(turn.unwrap_or_else(PoisonError::into_inner));
        let place = Place::new();
        fs::create_dir(place.path("bin")).unwrap();
        symlink(cluster.folder.join("kubectl"), place.path("bin/kubectl")).unwrap();
        let bench = Self {
            place,
            cluster,
            turn,
        };
        bench.kubectl(&["create", "namespace", &bench.name()]);
        Some(bench)
    }

    fn name(&self) -> String {
        let folder = self.place.path("");
        folder.file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// In the environment of every process of its pods.
    fn mark(&self) -> String {
        format!("BENCH={}.", self.name())
    }

    fn call(&self, words: &[&str]) -> std::process::Output {
        let mut command = Command::new(self.place.path("bin/kubectl"));
        self.place.settle(&mut command);
        let namespace = format!("--namespace={}", self.name());
        command.arg(namespace).args(words).output().unwrap()
    }

    fn kubectl(&self, words: &[&str]) -> String {
        let output = self.call(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn hosts(&self) -> String {
        let name = self.name();
        let option = format!("--env={}", self.mark());
        format!(
            "[hosts.n]\nkubernetes = {{ image = \"{IMAGE}\", namespace = \"{name}\", \
             replicas = 3, options = [\"{option}\"] }}\n"
        )
    }

    fn weigh(&self, line: &str) -> Running<'_> {
        self.place.start_command(self.place.weigh_with_bin(line))
    }

    fn run(&self) -> Running<'_> {
        let text = experiment(&self.hosts(), ["n1", "n2", "n3"]);
        self.place.write("x.toml", &text);
        self.weigh("run x.toml --out r")
    }

    /// The pods of hosts, with their nodes and phases.
    fn pods(&self) -> Vec<[String; 3]> {
        let columns = "--output=custom-columns=:metadata.name,:spec.nodeName,:status.phase";
        let listed = self.kubectl(&["get", "pods", "--selector=weigh=host", columns]);
        let fields = |line: &str| {
            let mut fields = line.split_whitespace().map(str::to_owned);
            std::array::from_fn(|_| fields.next().unwrap_or_default())
        };
        let lines = listed.lines().filter(|line| !line.trim().is_empty());
        lines.map(fields).collect()
    }

    fn pod(&self, host: &str) -> [String; 3] {
        let start = format!("weigh-{host}-");
        let mut pods = self.pods().into_iter();
        pods.find(|[name, ..]| name.starts_with(&start)).unwrap()
    }

    /// Waits until a trial has failed, and tells how long it took.
    fn until_failed(&self, running: &mut Running<'_>, what: &str) {
        let begun = Instant::now();
        running.until("a trial has failed", || {
            let rows = journal(&self.place.path("r"));
            let failed = |row: &Value| row["outcome"]["failed"].is_object();
            rows.iter().any(failed)
        });
        println!("{what}: failed after {:.1?}", begun.elapsed());
    }

    /// Ends the run, in which only this host was lost, and that for one block.
    fn costs_its_block(&self, mut running: Running<'_>, what: &str, host: &str) {
        self.until_failed(&mut running, what);
        let done = running.end();
        costs_its_block(&self.place, &done, host);
        self.is_empty(what);
    }

    /// Neither pods, processes nor folders.
    fn is_empty(&self, what: &str) {
        let begun = Instant::now();
        wait_until("no pod is left", LIMIT / 2, || self.pods().is_empty());
        wait_until("no process is left", LIMIT / 10, || {
            with_text(&self.mark()).is_empty()
        });
        println!("{what}: nothing left after {:.1?}", begun.elapsed());
        assert!(self.place.left().is_empty(), "{:?}", self.place.left());
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let name = self.name();
        self.call(&["delete", "pod", "--all", "--force", "--grace-period=0"]);
        self.call(&["delete", "namespace", &name, "--wait=false"]);
    }
}

/// A process of a host's pod by its last words.
fn process_in(pod: &str, is_it: impl Fn(&str) -> bool) -> u32 {
    let all = with_text(&format!("HOSTNAME={pod}"));
    let mut found = all.iter().filter(|one| is_it(&one.to_string()));
    let found = found.next().unwrap_or_else(|| panic!("{all:?}"));
    found.pid.try_into().unwrap()
}

#[test]
fn pods_of_kubernetes_are_hosts() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let done = bench.run().end();
    is_measured(&bench.place, &done);
    let hosts = bench.place.read_json("r/hosts.json");
    for host in ["n1", "n2", "n3"] {
        let about = &hosts["machines"][host];
        assert_eq!(about["kubernetes"]["image"], IMAGE, "{about}");
        let address = about["address"].as_str().unwrap();
        assert!(address.starts_with("10.77."), "{about}");
    }
    bench.is_empty("a run");
    // One load of three pods on a server in another.
    let image = format!("--image={IMAGE}");
    let run = ["run", "origin", &image, "--restart=Never", "--command"];
    let origin = ["--", "weigh", "origin", "--listen", "0.0.0.0:8000"];
    bench.kubectl(&[&run[..], &origin[..]].concat());
    bench.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "pod/origin",
        "--timeout=60s",
    ]);
    let address = "--output=jsonpath={.status.podIP}";
    let address = bench.kubectl(&["get", "pod", "origin", address]);
    bench.place.write("hosts.toml", &bench.hosts());
    three_hosts_share_a_load(&format!("http://{address}:8000/"), |line| {
        bench.weigh(line).end()
    });
    bench.is_empty("a load");
}

#[test]
fn a_pod_that_is_deleted_costs_its_block_alone() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let mut running = bench.run();
    in_second_block(&mut running);
    let [pod, ..] = bench.pod("n3");
    bench.kubectl(&["delete", "pod", &pod, "--grace-period=0", "--force"]);
    bench.costs_its_block(running, "kubectl delete", "n3");
}

#[test]
fn a_container_that_is_killed_costs_its_block_alone() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let mut running = bench.run();
    in_second_block(&mut running);
    let [pod, ..] = bench.pod("n3");
    signal(process_in(&pod, |words| words.contains("sh -c trap")), KILL);
    bench.costs_its_block(running, "kill of a container", "n3");
}

#[test]
fn an_agent_that_is_killed_costs_its_block_alone_and_keeps_its_pod() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let mut running = bench.run();
    in_second_block(&mut running);
    let [pod, ..] = bench.pod("n2");
    signal(
        process_in(&pod, |words| words.contains("weigh agent")),
        KILL,
    );
    bench.until_failed(&mut running, "kill of an agent");
    running.until_said("block 3/3");
    assert_eq!(bench.pod("n2")[0], pod);
    bench.costs_its_block(running, "kill of an agent", "n2");
}

#[test]
fn a_kubectl_that_is_killed_costs_its_block_alone() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let mut running = bench.run();
    in_second_block(&mut running);
    let all = descendants(running.pid());
    let is_pipe = |words: &str| words.contains("exec -i weigh-n3-");
    let kubectl = all.iter().find(|one| is_pipe(&one.to_string())).unwrap();
    signal(kubectl.pid.try_into().unwrap(), KILL);
    bench.costs_its_block(running, "kill of kubectl exec", "n3");
}

#[test]
fn a_node_whose_kubelet_stops_is_left_for_another() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let mut running = bench.run();
    in_second_block(&mut running);
    let [_, node, _] = bench.pod("n3");
    let config = format!(
        "--config={}/{node}/kubelet.json",
        bench.cluster.folder.display()
    );
    let kubelet = with_text(&config).first().unwrap().pid;
    let kubelet = Resumed(kubelet.try_into().unwrap());
    signal(kubelet.0, STOP);
    bench.until_failed(&mut running, "stop of a kubelet");
    let begun = Instant::now();
    let done: Done = running.end();
    println!("stop of a kubelet: the rest took {:.1?}", begun.elapsed());
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let all = trials(&bench.place.path("r"));
    assert_eq!(all.len(), 9, "{}", done.err);
    // A node may have had several of the hosts.
    only_blocks_failed(&all, |block| block == 2, &["host `n"]);
    drop(kubelet);
    bench.is_empty("stop of a kubelet");
}

/// A stopped process that goes on in any case.
struct Resumed(u32);

impl Drop for Resumed {
    fn drop(&mut self) {
        signal(self.0, CONTINUE);
    }
}

#[test]
fn pods_end_within_five_minutes_of_a_killed_run_and_the_next_removes_them() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let mut running = bench.run();
    in_second_block(&mut running);
    running.signal(KILL);
    let killed = Instant::now();
    running.end().expect(-KILL);
    // Others may use the cluster meanwhile.
    bench.turn = None;
    wait_until("no agent is left", LIMIT / 10, || {
        let all = with_text(&bench.mark());
        let is_agent = |one: &str| one.contains("weigh agent");
        !all.iter().any(|one| is_agent(&one.to_string()))
    });
    println!("kill of weigh: agents ended after {:.1?}", killed.elapsed());
    let end = Duration::from_secs(300);
    wait_until("its pods have ended", end, || {
        let pods = bench.pods();
        assert_eq!(pods.len(), 3, "{pods:?}");
        pods.iter().all(|[.., phase]| phase == "Succeeded")
    });
    println!("kill of weigh: pods ended after {:.1?}", killed.elapsed());
    fs::remove_dir_all(bench.place.path("r")).unwrap();
    let done = bench.run().end();
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    bench.is_empty("the next run");
}

/// For clusters that forbid `kubectl exec`.
#[test]
fn the_job_that_ships_compares_servers_in_containers_beside_it() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/kubernetes-job.yaml");
    let manifest = fs::read_to_string(shipped).unwrap();
    let shipped = concat!("image: weigh:", env!("CARGO_PKG_VERSION"));
    let manifest = manifest
        .replace(shipped, &format!("image: {IMAGE}"))
        .replace("--blocks=10", "--blocks=3")
        .replace("--window=1s", "--window=500ms");
    assert_eq!(manifest.matches(IMAGE).count(), 3, "{manifest}");
    let file = bench.place.write("job.yaml", &manifest);
    let file = file.to_str().unwrap();
    bench.kubectl(&["apply", "--filename", file]);
    let pod = |path: &str| {
        let path = format!("--output=jsonpath={{.items[*].status{path}}}");
        bench.kubectl(&["get", "pods", "--selector=job-name=weigh", &path])
    };
    let status = ".containerStatuses[0].state.terminated.exitCode";
    wait_until("weigh has ended", LIMIT, || !pod(status).is_empty());
    let said = bench.kubectl(&["logs", "job/weigh", "--container=weigh"]);
    // Measured; on a busy machine not always validly.
    assert!(["0", "4"].contains(&pod(status).as_str()), "{said}");
    said.has("proxied");
    said.has("against direct");
    // The servers end with it.
    wait_until("the pod has ended", LIMIT / 5, || {
        ["Succeeded", "Failed"].contains(&pod(".phase").as_str())
    });
    bench.kubectl(&["delete", "--filename", file]);
    wait_until("no pod is left", LIMIT / 5, || pod(".phase").is_empty());
}
