//! The agent's side of the pipe: carries out orders.

use std::io::{self, BufRead, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::clock;
use super::drive;
use super::link;
use super::load;
use super::ports::{PortRangeGuard, connections_at};
use super::quota_guard::Quota;
use super::servers::Servers;
use super::wire::{Answer, Order, QuotaOrder};
use crate::leftovers;
use crate::sampling::network_counters::namespace_id;
use crate::sampling::sample::{Parts, SampleReader};
use crate::sampling::system_counters::SystemSources;
use crate::sampling::timeline::Timeline;
use installed::Need;
use readings::BottleneckSample;

/// Carries orders out until the input ends; then kills everything that was started.
///
/// # Errors
/// When its folder cannot be made, or its output is closed.
pub fn serve(input: impl BufRead + Send + 'static, mut output: impl Write) -> io::Result<()> {
    net::os::adopt_orphans();
    net::os::raise_open_files();
    let mut servers = Servers::new()?;
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::new(AtomicBool::new(false));
    let orders = read_orders(input, stop.clone(), ended.clone());
    let result = work(&orders, &mut servers, &stop, &ended, &mut output);
    servers.kill_all();
    result
}

/// Reads orders on a thread of its own. [`Order::Cancel`] sets `stop`, which cuts a load short; the
/// end of the input sets `ended` as well, and then nothing is waited for.
fn read_orders(
    input: impl BufRead + Send + 'static,
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
) -> Receiver<Result<Order, String>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in input.lines() {
            let Ok(line) = line else { break };
            let order = serde_json::from_str::<Order>(&line).map_err(|e| e.to_string());
            if order == Ok(Order::Cancel) {
                stop.store(true, Ordering::Relaxed);
            } else if sender.send(order).is_err() {
                break;
            }
        }
        ended.store(true, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    });
    receiver
}

fn work(
    orders: &Receiver<Result<Order, String>>,
    servers: &mut Servers,
    stop: &Arc<AtomicBool>,
    ended: &AtomicBool,
    output: &mut impl Write,
) -> io::Result<()> {
    for order in orders {
        let mut lost = None;
        let answer = match order {
            Err(e) => Answer::Failed {
                reason: format!("not an order: {e}"),
            },
            Ok(order) => carry_out(order, servers, stop, ended, &mut |answer| {
                if let Err(e) = write_answer(output, &answer) {
                    lost = Some(e);
                    stop.store(true, Ordering::Relaxed);
                }
            })
            .unwrap_or_else(|reason| Answer::Failed { reason }),
        };
        if let Some(e) = lost {
            return Err(e);
        }
        write_answer(output, &answer)?;
    }
    Ok(())
}

fn write_answer(output: &mut impl Write, answer: &Answer) -> io::Result<()> {
    serde_json::to_writer(&mut *output, answer)?;
    output.write_all(b"\n")?;
    output.flush()
}

fn carry_out(
    order: Order,
    servers: &mut Servers,
    stop: &Arc<AtomicBool>,
    ended: &AtomicBool,
    tell: &mut impl FnMut(Answer),
) -> Result<Answer, String> {
    match order {
        Order::Hello => Ok(Answer::Hello {
            version: env!("CARGO_PKG_VERSION").to_string(),
            pid: std::process::id() as i32,
            folder: servers.folder().display().to_string(),
            program: std::env::current_exe()
                .map_or_else(|_| String::new(), |path| path.display().to_string()),
            network: namespace_id(),
        }),
        Order::Clock => Ok(Answer::Clock {
            wall_ns: clock::wall_ns(),
            monotonic_ns: clock::monotonic_ns(),
        }),
        Order::Sweep => {
            leftovers::sweep();
            Ok(Answer::Done)
        }
        Order::Describe => Ok(Answer::Machine {
            machine: crate::machine::describe(),
        }),
        Order::Find(order) => {
            let needs: Vec<Need> = order
                .files
                .into_iter()
                .map(|(file, package)| Need { file, package })
                .collect();
            let found = installed::look(
                &order.programs,
                &needs,
                &order.packages,
                order.homepage.as_deref(),
            );
            Ok(Answer::Found {
                missing: found.sentence(),
                programs: found.programs,
            })
        }
        Order::IsFree { address } => Ok(Answer::Free {
            free: TcpListener::bind(address).is_ok(),
        }),
        Order::StartSampling => {
            servers.start_sampling();
            Ok(Answer::Done)
        }
        Order::StopSampling { readings } => Ok(Answer::Measured {
            readings: servers.stop_sampling(readings),
        }),
        Order::Folder { server, user } => {
            servers
                .make_folder(&server, user.as_deref())
                .map(|path| Answer::Folder {
                    path: path.display().to_string(),
                })
        }
        Order::Start(order) => servers.start(&order).map(|pid| Answer::Started {
            pid,
            group: servers.group_of(&order.server),
        }),
        Order::Await(order) => servers
            .wait_until_ready(&order, stop)
            .map(|summary| summary.map_or(Answer::Done, Answer::Ready)),
        Order::Stop { server, signals } => {
            let signals = signals
                .iter()
                .map(|(name, wait_ms)| Ok((signal(name)?, Duration::from_millis(*wait_ms))))
                .collect::<Result<Vec<_>, String>>()?;
            servers
                .stop(&server, &signals, ended)
                .map(|(killed, ended_before)| Answer::Stopped {
                    killed,
                    ended_before,
                })
                .ok_or_else(|| format!("`{server}` does not run"))
        }
        Order::Freeze { server, frozen } => servers.freeze(&server, frozen).map(|()| Answer::Done),
        Order::Link { up, routed } => link::set(up, routed)
            .map(|()| Answer::Done)
            .map_err(|e| format!("cannot switch the link of this host: {e}")),
        Order::Usage { server, port } => Ok(Answer::Usage {
            cpu_s: servers.cpu_s(&server)?,
            connections: port.and_then(connections_at),
        }),
        Order::Logs { server } => Ok(Answer::Logs {
            files: servers.logs(&server),
        }),
        Order::SampleScheduling {
            servers: names,
            others,
            duration_ms,
        } => {
            let watched = servers.all_watched(&names, &others);
            let reader = SampleReader::new(watched, SystemSources::of(names, &others));
            let seen = sample_scheduling(reader, Duration::from_millis(duration_ms), stop);
            Ok(Answer::Scheduling(Box::new(seen)))
        }
        Order::Load(order) => {
            let watched = servers.all_watched(&order.watch, &order.watch_others);
            let quota = match &order.quota {
                Some(QuotaOrder { servers: of, cpus }) => {
                    let of = watched.iter().filter(|(server, _)| of.contains(*server));
                    let pids: Vec<i32> = of.flat_map(|(_, one)| one.pids()).collect();
                    let name = format!("{}-limit", servers.folder_name());
                    Some(Quota::set(&name, &pids, *cpus)?)
                }
                None => None,
            };
            let ports = order
                .ports
                .map(|(low, high)| PortRangeGuard::set(low, high));
            let ports = ports.transpose()?;
            let loaded = load::carry_out(&order, watched, stop, tell)?;
            drop((quota, ports));
            match servers.ended() {
                Some(reason) => Err(reason),
                None => Ok(Answer::Loaded(Box::new(loaded))),
            }
        }
        Order::Drive(order) => {
            let driven = drive::carry_out(&order, servers, stop, |pid| {
                tell(Answer::Started { pid, group: None });
            })?;
            match servers.ended() {
                Some(reason) => Err(reason),
                None => Ok(Answer::Driven(Box::new(driven))),
            }
        }
        Order::Cancel => Ok(Answer::Done),
    }
}

/// Samples scheduling at the beginning and at the end of a time.
fn sample_scheduling(
    mut reader: SampleReader,
    time: Duration,
    stop: &AtomicBool,
) -> BottleneckSample {
    let mut timeline = Timeline::of(&reader);
    let parts = Parts {
        cpu: true,
        scheduling: true,
        ..Parts::default()
    };
    timeline.append(reader.read(parts));
    let end = Instant::now() + time;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
    }
    timeline.append(reader.read(Parts {
        ports: true,
        ..parts
    }));
    timeline.bottleneck().unwrap_or_default()
}

/// The number of a signal; the same on every Linux that Rust knows, MIPS aside.
fn signal(name: &str) -> Result<i32, String> {
    Ok(match name.trim_start_matches("SIG") {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "KILL" => 9,
        "USR1" => 10,
        "USR2" => 12,
        "TERM" => 15,
        "WINCH" => 28,
        other => {
            return Err(format!(
                "expected a signal such as TERM, INT, QUIT, USR1 or WINCH, found `{other}`"
            ));
        }
    })
}
