//! Carries out orders.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use installed::{Need, PackageKind, Packages, PinnedPackage};
use readings::BottleneckSample;

use super::profile::{self, Profiler};
use super::quota::Quota;
use super::servers::Servers;
use super::{drive, leftovers, load, schemas};
use crate::kernel::namespace::namespace_id;
use crate::kernel::ports::{PortRangeGuard, connections_at};
use crate::kernel::{clock, machine};
use crate::links::{own, peers};
use crate::protocol::wire::{AHEAD_MAX, Answer, LoadOrder, Loaded, Order, QuotaOrder};
use crate::sampling::instructions;
use crate::sampling::sample::{Parts, SampleReader};
use crate::sampling::system_counters::SystemSources;
use crate::sampling::timeline::Timeline;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How often a wait for a timed order's moment checks whether the conversation has ended.
const WAIT: Duration = Duration::from_millis(10);

pub(super) fn carry_out(
    order: Order,
    servers: &mut Servers,
    stop: &Arc<AtomicBool>,
    ended: &AtomicBool,
    tell: &mut impl FnMut(Answer),
) -> Result<Answer, String> {
    match order {
        Order::Hello { version, .. } if version != VERSION => Err(format!(
            "its weigh is version {VERSION}; expected {version}"
        )),
        Order::Hello { .. } => Ok(Answer::Hello {
            version: VERSION.to_owned(),
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
        Order::AwaitEnd { folder, within_ms } => {
            let within = Duration::from_millis(within_ms);
            match leftovers::await_end(&folder, within, stop) {
                true => Ok(Answer::Done),
                false => Err("an agent of an earlier connection still runs there".to_owned()),
            }
        }
        Order::Describe => Ok(Answer::Machine {
            machine: machine::describe(),
        }),
        Order::Find(order) => {
            let needs: Vec<Need> = order
                .files
                .into_iter()
                .map(|(file, package)| Need { file, package })
                .collect();
            let pinned: Option<PinnedPackage> = order.pinned.and_then(|package| {
                Some(PinnedPackage {
                    kind: PackageKind::of_folder(&package.kind)?,
                    name: package.name,
                    version: package.version,
                    install: package.install,
                })
            });
            let version = match &pinned {
                Some(package) if !package.kind.is_source => Some(package.version.clone()),
                _ => None,
            };
            let packages = Packages {
                debian: order.packages,
                pinned: pinned.into_iter().collect(),
            };
            let found = installed::look(
                &order.programs,
                &needs,
                &packages,
                version.as_deref(),
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
        Order::Schema(order) => schemas::schema(&order),
        Order::Timed { at_ns, of } => {
            if matches!(*of, Order::Timed { .. } | Order::Load(_) | Order::Drive(_)) {
                return Err("a load, a driver or a timed order cannot be timed".to_owned());
            }
            wait_until(at_ns, ended)?;
            let began_ns = clock::monotonic_ns();
            let answer = carry_out(*of, servers, stop, ended, tell)?;
            Ok(Answer::Timed {
                began_ns,
                ended_ns: clock::monotonic_ns(),
                of: Box::new(answer),
            })
        }
        Order::StartSampling {
            servers: of,
            scheduling,
        } => {
            servers
                .start_sampling(of.as_ref(), scheduling)
                .map_err(|error| error.to_string())?;
            Ok(Answer::Done)
        }
        Order::StopSampling { readings } => {
            let (readings, seen) = servers.stop_sampling(readings);
            let seen = seen.map(Box::new);
            Ok(Answer::Measured { readings, seen })
        }
        Order::InstructionScope => Ok(Answer::InstructionScope {
            scope: instructions::scope().ok(),
        }),
        Order::StartCounting {
            servers: own,
            others,
            scope,
        } => {
            servers.start_counting(&own, &others, scope)?;
            Ok(Answer::Done)
        }
        Order::StopCounting { loads } => Ok(Answer::Counted {
            loads: servers.stop_counting(&loads),
        }),
        Order::Folder { server, user } => {
            let path = servers.make_folder(&server, user.as_deref())?;
            let weigh = servers.program_of(&server)?;
            Ok(Answer::Folder {
                path: path.display().to_string(),
                weigh: weigh.map(|path| path.display().to_string()),
            })
        }
        Order::Start(order) => servers.start(&order).map(|pid| Answer::Started {
            pid,
            group: servers.group_of(&order.server),
            counts: servers.counts_of(&order.server),
            tcp_congestion: net::os::tcp_congestion(),
        }),
        Order::Await(order) => {
            let summary = servers.wait_until_ready(&order, stop)?;
            let start = order.server.as_deref();
            Ok(match start.and_then(|server| servers.start_of(server)) {
                Some(start) => Answer::Up(start),
                None => summary.map_or(Answer::Done, Answer::Ready),
            })
        }
        Order::IsReady(order) => servers
            .is_ready(&order)
            .map(|at_ns| Answer::Observed { at_ns }),
        Order::BeginStop {
            server,
            signal: name,
        } => {
            servers.begin_stop(&server, signal(&name)?);
            Ok(Answer::Done)
        }
        Order::PollStop { server, signals } => {
            let is_over = servers.poll_stop(&server, &numbers(&signals)?);
            Ok(Answer::Observed {
                at_ns: is_over.then(clock::monotonic_ns),
            })
        }
        Order::Stop { server, signals } => {
            let signals = numbers(&signals)?;
            servers
                .stop(&server, &signals, ended)
                .map(|(killed, ended_before)| Answer::Stopped {
                    killed,
                    ended_before,
                })
                .ok_or_else(|| format!("`{server}` does not run"))
        }
        Order::Suspend { server, suspended } => {
            servers.suspend(&server, suspended).map(|()| Answer::Done)
        }
        Order::Reload(order) => {
            let signal = order.signal.as_deref().map(signal).transpose()?;
            servers.reload(&order, signal).map(|()| Answer::Done)
        }
        Order::IsReloaded(probe) => servers
            .is_reloaded(&probe)
            .map(|at_ns| Answer::Observed { at_ns }),
        Order::Quota { server, cpus } => servers.set_quota(&server, cpus).map(|()| Answer::Done),
        Order::Link { up, routed } => own::set(up, routed)
            .map(|()| Answer::Done)
            .map_err(|e| format!("cannot switch the link of this host: {e}")),
        Order::PeerLinks { address, peers } => {
            peers::set(&mut servers.peer_links, address, peers).map(|()| Answer::Done)
        }
        Order::Usage {
            server,
            port,
            memory,
        } => Ok(Answer::Usage {
            cpu_s: servers.cpu_s(&server)?,
            connections: port.and_then(connections_at),
            memory_bytes: match memory {
                true => servers.memory_bytes(&server),
                false => None,
            },
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
        Order::Load(order) => make_load(&order, servers, stop, tell),
        Order::Drive(order) => {
            let driven = drive::carry_out(&order, servers, stop, |pid| {
                tell(Answer::Started {
                    pid,
                    group: None,
                    counts: None,
                    tcp_congestion: None,
                });
            })?;
            match servers.ended() {
                Some(reason) => Err(reason),
                None => Ok(Answer::Driven(Box::new(driven))),
            }
        }
        Order::Cancel => Ok(Answer::Done),
    }
}

/// Makes a load with its limits, and the profiles that it is for.
fn make_load(
    order: &LoadOrder,
    servers: &mut Servers,
    stop: &Arc<AtomicBool>,
    tell: &mut impl FnMut(Answer),
) -> Result<Answer, String> {
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
    let ports = match order.ports {
        Some((low, high)) => Some(PortRangeGuard::set(low, high)?),
        None => None,
    };
    let mut profiler = match &order.profile {
        Some(profile) => {
            let folder = servers
                .make_own_folder(profile::FOLDER)
                .map_err(|e| format!("cannot make a folder for perf: {e}"))?;
            Some(Profiler::start(profile, &watched, &folder))
        }
        None => None,
    };
    // A load for profiles has no other use, so without a recording it is not made. But a
    // part of a load over several hosts is made, because the other hosts wait for it.
    if order.job.part.is_none()
        && let Some(in_vain) = profiler.take_if(|one| one.is_in_vain())
    {
        return Ok(Answer::Loaded(Box::new(Loaded {
            profiles: in_vain.end(),
            ..Loaded::default()
        })));
    }
    let mut loaded = load::carry_out(order, watched, stop, tell)?;
    loaded.profiles = profiler.map_or_else(Vec::new, Profiler::end);
    drop((quota, ports));
    match servers.ended() {
        Some(reason) => Err(reason),
        None => Ok(Answer::Loaded(Box::new(loaded))),
    }
}

/// Signals by their numbers, each with how long to wait after it.
fn numbers(signals: &[(String, u64)]) -> Result<Vec<(i32, Duration)>, String> {
    let number =
        |(name, wait_ms): &(String, u64)| Ok((signal(name)?, Duration::from_millis(*wait_ms)));
    signals.iter().map(number).collect()
}

/// Waits until a moment of CLOCK_MONOTONIC.
fn wait_until(at_ns: i64, ended: &AtomicBool) -> Result<(), String> {
    let left_ns = || at_ns.saturating_sub(clock::monotonic_ns());
    if left_ns() > AHEAD_MAX.as_nanos() as i64 {
        let seconds = AHEAD_MAX.as_secs();
        return Err(format!("expected a moment within the next {seconds} s"));
    }
    while let Ok(left_ns @ 1..) = u64::try_from(left_ns()) {
        if ended.load(Ordering::Relaxed) {
            return Err("the conversation has ended".to_owned());
        }
        std::thread::sleep(WAIT.min(Duration::from_nanos(left_ns)));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(order: Order) -> Result<Answer, String> {
        let mut servers = Servers::new().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ended = AtomicBool::new(false);
        let answer = carry_out(order, &mut servers, &stop, &ended, &mut |_| ());
        // No server was started. `kill_all` would kill the processes of other tests.
        std::fs::remove_dir_all(servers.folder()).unwrap();
        answer
    }

    #[test]
    fn a_timed_order_begins_at_its_moment_and_not_before() {
        let timed = |at_ns, of| {
            let of = Box::new(of);
            ask(Order::Timed { at_ns, of })
        };
        let at_ns = clock::monotonic_ns() + 30_000_000;
        let Ok(Answer::Timed {
            began_ns,
            ended_ns,
            of,
        }) = timed(at_ns, Order::Clock)
        else {
            panic!("it was not timed");
        };
        assert!(began_ns >= at_ns && ended_ns >= began_ns);
        assert!(matches!(*of, Answer::Clock { monotonic_ns, .. }
            if (began_ns..=ended_ns).contains(&monotonic_ns)));
        // What is late is done at once.
        assert!(timed(0, Order::Clock).is_ok());
        let far_ns = clock::monotonic_ns() + 2 * AHEAD_MAX.as_nanos() as i64;
        assert!(timed(far_ns, Order::Clock).is_err());
        let of = Box::new(Order::Clock);
        assert!(timed(0, Order::Timed { at_ns: 0, of }).is_err());
    }

    #[test]
    fn a_failure_of_a_timed_order_is_that_of_the_order() {
        let of = Box::new(Order::Suspend {
            server: "nobody".into(),
            suspended: true,
        });
        let answer = ask(Order::Timed { at_ns: 0, of });
        assert_eq!(answer.unwrap_err(), "`nobody` does not run");
    }
}
