//! Measures throughput and timing of links on this machine:
//!
//! ```sh
//! cargo build --release && cargo run --release -p weigh-hosts --example link -- target/release/weigh
//! ```
//!
//! It needs hosts, so root, or user namespaces and access to `/dev/net/tun`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hosts::{Topology, TopologyOptions};
use net::os::{ChildSetup, set_up_child};
use readings::{HostSpec, LinkKind, LinkSpec};
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const URL: &str = "http://server:8080/";

fn main() -> Result<()> {
    let program = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("expected the path of the program `weigh`")?
        .canonicalize()?;
    let rtt_ms = |ms: u64| LinkSpec {
        rtt_ns: ms * 1_000_000,
        ..LinkSpec::default()
    };
    let slow = LinkSpec {
        rate_bits_per_s: Some(100_000_000),
        ..rtt_ms(1)
    };
    let jittery = LinkSpec {
        jitter_ns: 4_000_000,
        ..rtt_ms(20)
    };
    let cases = [
        ("bridge", LinkKind::Direct, LinkSpec::default()),
        ("user space, 0 ms", LinkKind::UserSpace, rtt_ms(0)),
        ("user space, 20 ms", LinkKind::UserSpace, rtt_ms(20)),
        ("user space, 20 ms +- 4 ms", LinkKind::UserSpace, jittery),
        ("user space, 100 Mbit/s", LinkKind::UserSpace, slow),
        ("netem, 0 ms", LinkKind::Netem, rtt_ms(0)),
        ("netem, 20 ms", LinkKind::Netem, rtt_ms(20)),
        ("netem, 100 Mbit/s", LinkKind::Netem, slow),
    ];
    println!(
        "{:26} {:>11} {:>20} {:>10} {:>12} {:>8}",
        "link", "requests/s", "connect p50, p90 ms", "Mbit/s", "late, max us", "dropped"
    );
    for (name, kind, link) in cases {
        match measure(&program, kind, link) {
            Ok(line) => println!("{name:26} {line}"),
            Err(e) => println!("{name:26} {e}"),
        }
    }
    Ok(())
}

fn measure(program: &Path, kind: LinkKind, link: LinkSpec) -> Result<String> {
    let host = |name: &str, link| HostSpec {
        name: name.to_string(),
        link,
        ..HostSpec::default()
    };
    let hosts = [host("client", Some(link)), host("server", None)];
    let options = TopologyOptions {
        kind: Some(kind),
        seed: 1,
        ..TopologyOptions::default()
    };
    let mut topology = Topology::build(program, &hosts, &options)?;
    let server = Server::start(&topology, program)?;
    let small = load(&topology, program, &[URL, "-c", "64", "-d", "3s"])?;
    let paced = ["--rate", "1000", "--no-keepalive", "-c", "200", "-d", "3s"];
    let connects = load(&topology, program, &[&[URL], &paced[..]].concat())?;
    // Only whole answers count, so one has to be small against what the window carries.
    let bytes = match link.rate_bits_per_s {
        Some(_) => 20_000,
        None => 1_000_000,
    };
    let large = format!("{URL}bytes/{bytes}");
    let bulk = ["-c", "8", "--warmup", "500ms", "-d", "3s"];
    let bulk = load(&topology, program, &[&[large.as_str()][..], &bulk].concat())?;
    drop(server);
    let ms = |which: &str| number(&connects["connect_us"][which]) / 1e3;
    // 1448 bytes of an IP packet of 1500 are payload.
    let bits = number(&bulk["bytes_read"]) * 8.0 * 1_500.0 / 1_448.0;
    let counters = topology.counters()?;
    let of_all =
        |count: fn(&readings::LinkCounters) -> u64| counters.iter().map(count).sum::<u64>();
    let late_ns = of_all(|link| link.late_ns_sum) / of_all(|link| link.delivered).max(1);
    let latest_ns = counters.iter().map(|link| link.late_ns_max).max();
    Ok(format!(
        "{:11.0} {:10.3} {:9.3} {:10.1} {:5} {:6} {:8}",
        number(&small["requests_per_s"]),
        ms("p50"),
        ms("p90"),
        bits / number(&bulk["duration_s"]) / 1e6,
        late_ns / 1_000,
        latest_ns.unwrap_or(0) / 1_000,
        of_all(|link| link.up.dropped + link.down.dropped),
    ))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn command(topology: &Topology, host: &str, program: &Path) -> Result<Command> {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    let setup = ChildSetup {
        die_with_parent: true,
        ..topology.setup_in(host)??
    };
    set_up_child(&mut command, setup);
    Ok(command)
}

fn load(topology: &Topology, program: &Path, arguments: &[&str]) -> Result<Value> {
    let mut command = command(topology, "client", program)?;
    command.arg("load").args(arguments);
    let output = command.args(["--format", "json"]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

struct Server(Child);

impl Server {
    fn start(topology: &Topology, program: &Path) -> Result<Self> {
        let mut command = command(topology, "server", program)?;
        command.args(["origin", "--listen", "0.0.0.0:8080"]);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Self(child);
        let end = Instant::now() + Duration::from_secs(10);
        while load(topology, program, &[URL, "-n", "1"]).is_err() {
            if Instant::now() > end {
                return Err("the back end does not answer".into());
            }
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
