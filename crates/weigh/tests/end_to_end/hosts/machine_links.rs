//! Links on hosts behind a pipe: network namespaces of the test stand for machines.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use agent::wire::{Order, PeerLink};
use agent::{Agent, PipeCommand, Program};
use readings::{Histogram, LinkSpec};
use serde_json::Value;

use crate::common::{
    Done, KILL, Place, TERM, array, find, is_installed, journal, signal, skip, trials, wait_until,
    with_text,
};

const SOON: Duration = Duration::from_secs(20);
const HOSTS: [(&str, &str, &str); 2] = [
    ("vm", "10.99.0.1", "fd99::1"),
    ("client", "10.99.0.2", "fd99::2"),
];

/// Two network namespaces that are joined by a pair of virtual Ethernet devices, `wire0` in each.
/// They have no names, so they end with the processes that are in them.
struct Machines {
    place: Place,
    holders: Vec<Child>,
}

impl Machines {
    /// Makes them; `None` where that is not possible, which was said then.
    fn new() -> Option<Self> {
        Self::in_place(Place::new)
    }

    fn in_place(place: impl FnOnce() -> Place) -> Option<Self> {
        let needed = ["ip", "tc", "nsenter", "unshare", "setpriv"];
        let missing = needed.into_iter().find(|name| !is_installed(name));
        if let Some(name) = missing {
            skip(&format!("{name} not installed"));
            return None;
        }
        if !net::os::is_root() {
            skip("links between machines need root");
            return None;
        }
        let place = place();
        let holders = HOSTS.map(|_| {
            let mut command = Command::new("unshare");
            command.args(["--net", "sleep", "1000"]);
            command.stdin(Stdio::null()).spawn().unwrap()
        });
        let machines = Self {
            place,
            holders: holders.into(),
        };
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        for holder in &machines.holders {
            let network = format!("/proc/{}/ns/net", holder.id());
            wait_until("it has a network", SOON, || {
                fs::read_link(&network).is_ok_and(|network| network != own)
            });
        }
        let client = machines.pid("client");
        let pair = format!("ip link add wire0 type veth peer name wire0 netns {client}");
        machines.on("vm", &pair);
        for (name, address, address6) in HOSTS {
            let set_up = format!(
                "ip link set lo up && ip address add {address}/24 dev wire0 && \
                 {{ ip address add {address6}/64 dev wire0 nodad || true; }} && \
                 ip link set wire0 up"
            );
            machines.on(name, &set_up);
        }
        Some(machines)
    }

    fn pid(&self, host: &str) -> u32 {
        let place = HOSTS.iter().position(|(name, ..)| *name == host);
        self.holders[place.unwrap()].id()
    }

    /// A command in a host's network.
    fn words(&self, host: &str) -> Vec<String> {
        let network = format!("--net=/proc/{}/ns/net", self.pid(host));
        vec!["nsenter".to_owned(), network]
    }

    /// What a script prints in a host's network.
    fn on(&self, host: &str, script: &str) -> String {
        let words = self.words(host);
        let output = Command::new(&words[0])
            .args(&words[1..])
            .args(["sh", "-c", script])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script} on {host}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The command of the pipe to a host's agent.
    fn pipe(&self, host: &str) -> Vec<String> {
        let weigh = env!("CARGO_BIN_EXE_weigh");
        [self.words(host), vec![weigh.into(), "agent".into()]].concat()
    }

    /// An agent on a host, and its process.
    fn agent(&self, host: &str) -> (Agent, u32) {
        let temp = format!("TMPDIR={}", self.place.temp().display());
        let words = [vec!["env".to_owned(), temp], self.pipe(host)].concat();
        let program = Program::read(&PathBuf::from(env!("CARGO_BIN_EXE_weigh"))).unwrap();
        let agent = Agent::open(&PipeCommand::agent(host, words), &program).unwrap();
        let name = agent.folder().file_name().unwrap().to_string_lossy();
        let pid = name.split(['-', '.']).nth(1).unwrap().parse().unwrap();
        (agent, pid)
    }

    /// An experiment with a link of the client's host, and what follows.
    fn write(&self, link: &str, rest: &str) {
        self.write_with(["vm", "client"].map(|host| self.pipe(host)), link, rest);
    }

    fn write_with(&self, [vm, client]: [Vec<String>; 2], link: &str, rest: &str) {
        let [at, from] = [HOSTS[0].1, HOSTS[1].1];
        self.place.write(
            "x.toml",
            &format!(
                "title = \"a link between machines\"\n\
                 [hosts.vm]\nexec = {vm:?}\naddress = \"{at}\"\n\
                 [hosts.client]\nexec = {client:?}\naddress = \"{from}\"\nlink = {link}\n\
                 [servers.o]\nrecipe = \"origin\"\nhost = \"vm\"\n[subjects]\no = \"http://o/\"\n\
                 {rest}"
            ),
        );
    }

    fn run(&self, out: &str) -> Done {
        self.place
            .run(&format!("run x.toml --out {out} --format json"))
    }

    /// Whether the devices are as they were made.
    fn are_unchanged(&self) -> bool {
        HOSTS.iter().all(|(host, ..)| {
            let shown = self.on(host, "ip -d link show wire0");
            shown.contains("qdisc noqueue") && shown.contains("gso_max_segs 65535")
        })
    }

    fn has_netem(&self, host: &str) -> bool {
        self.on(host, "tc qdisc show dev wire0").contains("netem")
    }

    /// TCP segments that a host has sent again so far.
    fn retransmits(&self, host: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/net/snmp", self.pid(host))).unwrap();
        let mut rows = text.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
        let mut both = names.split(' ').zip(values.split(' '));
        let found = both.find(|(name, _)| *name == "RetransSegs").unwrap();
        found.1.parse().unwrap()
    }

    fn nothing_is_left(&self) {
        assert!(self.are_unchanged());
        assert!(self.place.left().is_empty(), "{:?}", self.place.left());
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// Whether the kernel has what links between machines need, tried once.
fn kernel_has_netem(machines: &Machines) -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let tried = "tc qdisc add dev wire0 root handle 1: prio && \
                     tc qdisc add dev wire0 parent 1:1 netem && echo both; \
                     tc qdisc del dev wire0 root; true";
        machines.on("vm", tried).contains("both")
    })
}

/// Machines whose kernel can have links between them.
fn with_links(place: impl FnOnce() -> Place) -> Option<Machines> {
    Machines::in_place(place).filter(kernel_has_netem)
}

const CLOSED: &str = "[load]\nhost = \"client\"\nconnections = 4\nkeepalive = false\n\
                      [design]\nblocks = 1\nwarmup = \"200ms\"\nwindow = \"1s\"\n\
                      latency_window = \"0s\"\nretries = 0\nbottleneck = false\n";

/// The times of new connections in the closed loops of all trials.
fn connects_ms(folder: &std::path::Path) -> Histogram {
    let mut all = Histogram::empty();
    for trial in trials(folder) {
        let text = &trial["outcome"]["done"]["throughput"]["connect"];
        let text = text.as_str().unwrap_or_else(|| panic!("{trial}"));
        all.merge(&Histogram::from_base64(text).unwrap());
    }
    all
}

fn links_of(folder: &std::path::Path) -> [Value; 2] {
    let hosts = fs::read_to_string(folder.join("hosts.json")).unwrap();
    let hosts: Value = serde_json::from_str(&hosts).unwrap();
    ["vm", "client"].map(|host| hosts["machines"][host]["link"].clone())
}

#[test]
fn a_link_that_cannot_be_is_refused_before_anything_is_measured() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let refused = |out: &str, says: &[&str]| {
        let done = machines.run(out);
        done.expect(1).says(says);
        assert!(!machines.place.path(out).exists());
    };
    // Without the capability.
    let weak = |host| {
        let all = machines.pipe(host);
        let mut words = all[..2].to_vec();
        let drop = [
            "setpriv",
            "--bounding-set=-net_admin",
            "--inh-caps=-net_admin",
        ];
        words.extend(drop.map(str::to_owned));
        words.extend_from_slice(&all[2..]);
        words
    };
    machines.write_with([weak("vm"), machines.pipe("client")], "{}", CLOSED);
    refused("weak", &["host `vm`", "CAP_NET_ADMIN"]);
    machines.nothing_is_left();
    // On one machine.
    machines.write_with(["vm", "vm"].map(|host| machines.pipe(host)), "{}", CLOSED);
    machines.on("vm", "ip address add 10.99.0.2/32 dev lo");
    refused("one", &["host `", "is at an address of the same machine"]);
    machines.on("vm", "ip address del 10.99.0.2/32 dev lo");
    // From another address than the declared one.
    let only = |last: u8| {
        let add = format!("ip address add 10.99.0.{last}/24 dev wire0");
        format!("ip -4 address flush dev wire0 && {add}")
    };
    machines.write("{}", CLOSED);
    let other = format!("{} && ip address add 10.99.0.1/24 dev wire0", only(4));
    machines.on("vm", &other);
    refused("other", &["host `vm`", "come from 10.99.0.4, not from its"]);
    machines.on("vm", &only(1));
    // A kernel may lack tbf as well.
    machines.write("{}", CLOSED);
    let tbf = "tc qdisc add dev wire0 root tbf rate 1gbit burst 1mb latency 9ms && echo yes; true";
    if machines.on("vm", tbf).contains("yes") {
        refused(
            "tbf",
            &["host `vm`", "somebody has configured (tbf", "tc qdisc del"],
        );
        assert!(machines.on("vm", "tc qdisc show dev wire0").contains("tbf"));
        machines.on("vm", "tc qdisc del dev wire0 root");
    }
    if !kernel_has_netem(&machines) {
        refused(
            "none",
            &["host `", "its kernel has no netem (module sch_netem)"],
        );
    }
    machines.nothing_is_left();
}

#[test]
fn a_killed_agents_links_are_removed_by_the_next_run() {
    let Some(machines) = with_links(Place::new) else {
        return;
    };
    let [(_, at, at6), (_, from, from6)] = HOSTS;
    let order = |own: &str, address: &str| Order::PeerLinks {
        address: own.parse().unwrap(),
        peers: vec![PeerLink {
            host: "vm".to_owned(),
            address: address.parse().unwrap(),
            link: LinkSpec {
                rtt_ns: 20_000_000,
                ..LinkSpec::default()
            },
        }],
    };
    // One that survives the signal removes them itself.
    for (own, address) in [(from, at), (from6, at6)] {
        let (mut agent, pid) = machines.agent("client");
        agent.ask(&order(own, address)).unwrap();
        assert!(machines.has_netem("client") && !machines.has_netem("vm"));
        signal(pid, TERM);
        wait_until("the link is gone", SOON, || machines.are_unchanged());
    }
    let (mut agent, pid) = machines.agent("client");
    agent.ask(&order(from, at)).unwrap();
    signal(pid, KILL);
    drop(agent);
    assert!(machines.has_netem("client"));
    // A run in another network does not find it, and one there does.
    let (mut other, _) = machines.agent("vm");
    other.ask(&Order::Sweep).unwrap();
    assert!(machines.has_netem("client"));
    let (mut next, _) = machines.agent("client");
    next.ask(&Order::Sweep).unwrap();
    assert!(machines.are_unchanged());
    drop((other, next));
    wait_until("nothing is left", SOON, || machines.place.left().is_empty());
}

#[test]
fn a_run_goes_on_after_an_agent_with_a_link_was_killed() {
    let Some(machines) = with_links(Place::new) else {
        return;
    };
    let two = CLOSED.replace("blocks = 1", "blocks = 2");
    machines.write("{ rtt = \"20ms\" }", &two);
    let mut running = machines.place.start("run x.toml --out r");
    running.until_said("block 1/2");
    running.go_on(Duration::from_secs(1));
    let network = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let there = network(machines.pid("client") as i32);
    let all = with_text(&machines.place.temp().display().to_string());
    for agent in all.iter().filter(|it| network(it.pid) == there) {
        // One may end because another did.
        let _ = net::os::kill(agent.pid, KILL);
    }
    let done = running.end();
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let second = trials(&machines.place.path("r"));
    let mut second = second.iter().filter(|trial| trial["block"] == 2);
    assert!(second.all(|trial| trial["outcome"]["done"].is_object()));
    machines.nothing_is_left();
}

#[test]
fn a_link_between_machines_loses_packets() {
    let Some(machines) = with_links(Place::new) else {
        return;
    };
    let retransmits = || ["vm", "client"].map(|host| machines.retransmits(host));
    machines.write("{ rtt = \"2ms\" }", CLOSED);
    machines.run("whole").result();
    let [vm, client] = retransmits();
    assert!(vm + client <= 2, "{vm} and {client} without loss");
    machines.write("{ rtt = \"2ms\", loss = \"5%\" }", CLOSED);
    machines.run("lossy").result();
    let [vm, client] = retransmits();
    // Lost in both directions.
    assert!(vm > 5 && client > 5, "{vm} and {client}");
    machines.nothing_is_left();
}

#[test]
fn twice_the_rate_of_a_link_is_the_bottleneck() {
    let Some(machines) = with_links(Place::new) else {
        return;
    };
    let rest = CLOSED
        .replace("bottleneck = false", "bottleneck = true")
        .replace("keepalive = false\n", "");
    machines.write("{ rate = \"4Mbit/s\" }", &rest);
    let text = machines.place.read("x.toml");
    machines
        .place
        .write("x.toml", &text.replace("http://o/", "http://o/bytes/20000"));
    let document = machines.run("r").result();
    let found = &document["bottlenecks"][0];
    assert_eq!(found["bottleneck"], "network", "{document}");
    assert_eq!(found["standing"], "confirmed", "{document}");
    let rows = journal(&machines.place.path("r"));
    let row = find(&rows, "row", "bottleneck");
    assert_eq!(row["link_bits_per_s"], 4e6);
    machines.nothing_is_left();
}

mod alone {
    use super::*;

    #[test]
    fn a_round_trip_between_machines_is_what_it_shall_be() {
        let Some(machines) = with_links(Place::alone) else {
            return;
        };
        machines.write("{ rtt = \"0ms\" }", CLOSED);
        machines.run("near").result();
        let near = connects_ms(&machines.place.path("near")).quantiles();
        machines.write("{ rtt = \"20ms\" }", CLOSED);
        let done = machines.run("far");
        done.result();
        done.says(&["links are the kernel's netem"]);
        let folder = machines.place.path("far");
        let far = connects_ms(&folder).quantiles();
        println!("connect: near {near:?}, far {far:?}");
        // Whatever else the machine does makes it longer only, with and without a link.
        assert!(far.min > 19_990.0, "{far:?}");
        assert!(far.min - near.min < 25_000.0, "{far:?} {near:?}");
        let [vm, client] = links_of(&folder);
        assert_eq!((vm, &client["rtt_ns"]), (Value::Null, &20_000_000.into()));
        machines.nothing_is_left();
    }

    #[test]
    fn events_change_a_link_between_machines() {
        let Some(machines) = with_links(Place::alone) else {
            return;
        };
        let events = "[[events]]\nat = \"1s\"\nserver = \"o\"\nwhat = \"slow\"\ndelay = \"300ms\"\n\
                      until = \"2s\"\n\
                      [[events]]\nat = \"4s\"\nserver = \"o\"\nwhat = \"cut\"\nuntil = \"5s\"\n\
                      [load]\nhost = \"client\"\nrate = \"50/s\"\nconnections = 40\n\
                      [design]\nblocks = 1\nwarmup = \"200ms\"\nlatency_window = \"8s\"\nretries = 0\n";
        machines.write("{ rtt = \"20ms\" }", events);
        let text = machines.place.read("x.toml");
        let vm = "[hosts.client]";
        let text = text.replacen(vm, &format!("link = {{}}\n{vm}"), 1);
        machines.place.write("x.toml", &text);
        let done = machines.run("r");
        assert!(done.status == 0 || done.status == 4, "{}", done.err);
        for trial in trials(&machines.place.path("r")) {
            let reading = &trial["outcome"]["done"];
            let s = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{trial}"));
            let events = array(&reading["events"]["events"]);
            for (event, (at_s, back_s)) in events.iter().zip([(1.0, 2.0), (4.0, 5.0)]) {
                assert!((at_s..at_s + 0.5).contains(&s(&event["at_s"])), "{event}");
                assert!(
                    (back_s..back_s + 0.5).contains(&s(&event["back_s"])),
                    "{event}"
                );
            }
            println!("events: {}", reading["events"]);
            let slowest_s = s(&events[0]["during"]["response_us_max"]) / 1e6;
            assert!((0.32..0.9).contains(&slowest_s), "{}", events[0]);
            // Nothing passes while it is cut.
            let silence_s = s(&reading["events"]["longest_silence_s"]);
            assert!(silence_s > 0.9, "{silence_s}");
            assert_eq!(reading["events"]["failed"], 0);
        }
        machines.nothing_is_left();
    }
}
