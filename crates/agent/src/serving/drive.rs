//! Runs an outside driver once, and measures what that costs.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::os::{self, ChildSetup};
use net::process::status_unreaped;

use crate::kernel::cgroup::Cgroup;
use crate::kernel::proc_files::{peak_rss_bytes, tree};
use crate::protocol::wire::{DriveEnd, DriveOrder, Driven, Measured, Spans, Window};
use crate::sampling::sample::Parts;
use crate::sampling::sampler::Sampler;
use crate::sampling::system_counters::SystemSources;
use crate::serving::load::keep_off;
use crate::serving::servers::Servers;
use crate::serving::servers::folder::read_end_of;
use crate::serving::servers::stop::kill_family;

/// The driver's folder. It is among those of the servers, and cannot clash with them: their names
/// have no dots.
const FOLDER: &str = "load.driver";
const OUTPUT: &str = "output";
const ERRORS: &str = "errors";
/// A driver that writes more than this is stopped. The result of any driver is shorter.
const OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How often memory and the time limit are checked.
const POLL: Duration = Duration::from_millis(10);

/// Runs a driver to its end, its time limit, or until `stop` is set. The driver leads a process
/// group of its own; `started` gets its pid.
pub(crate) fn carry_out(
    order: &DriveOrder,
    servers: &Servers,
    stop: &AtomicBool,
    started: impl FnOnce(i32),
) -> Result<Driven, String> {
    keep_off(&order.cpus);
    let watched = servers.all_watched(&order.watch, &order.watch_others);
    let folder = servers
        .make_own_folder(FOLDER)
        .map_err(|e| format!("cannot make a folder for the driver: {e}"))?;
    let group = Cgroup::make(&format!("{}-{FOLDER}", servers.folder_name()));
    let command = command(order, &folder, group.as_ref())?;
    let system = SystemSources::of(order.watch.clone(), &order.watch_others);
    let sampler = Sampler::in_windows(watched, system).map_err(|error| error.to_string())?;
    let mut driven = run(
        order,
        command,
        &folder,
        group.as_ref(),
        &sampler,
        stop,
        started,
    )?;
    driven.measured = sampler.end().cut(driven.measured.spans);
    Ok(driven)
}

fn run(
    order: &DriveOrder,
    mut command: Command,
    folder: &Path,
    group: Option<&Cgroup>,
    sampler: &Sampler,
    stop: &AtomicBool,
    started: impl FnOnce(i32),
) -> Result<Driven, String> {
    // All of the run is one window.
    let parts = Parts {
        accepted: true,
        cpu: true,
        ..Parts::default()
    };
    let open = sampler.open(parts);
    let children_before = os::children_cpu_ns();
    let begin = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|e| format!("cannot start {}: {e}{}", order.command[0], os::Lacking(&e)))?;
    let pid = child.id() as i32;
    started(pid);
    // A group that the driver could not enter counts nothing.
    let group = group.filter(|group| group.has_taken(pid));
    let limit = Duration::from_millis(order.limit_ms);
    let mut memory = 0;
    let end = loop {
        memory = memory.max(peak_memory_bytes(group, pid));
        if let Some(status) = status_unreaped(pid).map_err(|e| e.to_string())? {
            break ended(status);
        }
        if stop.load(Ordering::Relaxed) {
            break DriveEnd::Stopped;
        }
        if begin.elapsed() >= limit {
            break DriveEnd::TimedOut;
        }
        if [OUTPUT, ERRORS]
            .iter()
            .any(|name| size(&folder.join(name)) > OUTPUT_BYTES_MAX)
        {
            break DriveEnd::TooMuchOutput;
        }
        sleep(POLL);
    };
    let wall_s = begin.elapsed().as_secs_f64();
    let close = sampler.close(parts);
    let window = Window {
        from_ns: open.at_ns,
        to_ns: close.at_ns,
    };
    let spans = Spans::of_one(window, open.is_full && close.is_full);
    let family = match group {
        None => tree(pid),
        Some(_) => Vec::new(),
    };
    kill_family(&mut child, group, family);
    let cpu_s = group.and_then(Cgroup::usage_s);
    Ok(Driven {
        output: read_start(&folder.join(OUTPUT)),
        errors: read_end_of(&folder.join(ERRORS)).unwrap_or_default(),
        end,
        wall_s,
        // Without a group, all children that ended meanwhile count: this driver, and the processes
        // that it waited for.
        cpu_s: cpu_s.unwrap_or_else(|| (os::children_cpu_ns() - children_before) as f64 / 1e9),
        max_rss_bytes: (memory > 0).then_some(memory),
        measured: Measured {
            spans,
            ..Measured::default()
        },
    })
}

fn command(order: &DriveOrder, folder: &Path, group: Option<&Cgroup>) -> Result<Command, String> {
    let (program, arguments) = order
        .command
        .split_first()
        .ok_or("the driver names no program")?;
    let file = |name: &str| {
        File::create(folder.join(name))
            .map_err(|e| format!("cannot write the driver's {name}: {e}"))
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(order.env.iter().map(|(k, v)| (k, v)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file(OUTPUT)?)
        .stderr(file(ERRORS)?);
    let setup = ChildSetup {
        enter: group.and_then(Cgroup::entrance),
        cpus: order.cpus.clone(),
        own_session: true,
        die_with_parent: true,
        ..ChildSetup::default()
    };
    os::set_up_child(&mut command, setup);
    Ok(command)
}

fn ended(status: ExitStatus) -> DriveEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => DriveEnd::Status(code),
        (None, signal) => DriveEnd::Signal(signal.unwrap_or(0)),
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// The peak resident memory of a driver's largest process so far. Unlike `ru_maxrss` of a child
/// that has ended, it does not count what the parent held at the fork.
fn peak_memory_bytes(group: Option<&Cgroup>, pid: i32) -> u64 {
    let processes = match group {
        Some(group) => group.processes(),
        None => tree(pid),
    };
    processes
        .into_iter()
        .filter_map(peak_rss_bytes)
        .max()
        .unwrap_or(0)
}

fn read_start(path: &Path) -> String {
    let mut bytes = Vec::new();
    // What cannot be read is left out.
    let _ = File::open(path).and_then(|file| file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
