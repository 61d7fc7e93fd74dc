//! What is read from this machine, as values to judge.

pub(crate) mod activity;
pub(crate) mod pauses;
pub(crate) mod proc;
pub(crate) mod runner;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use self::activity::Activity;
use self::pauses::Pauses;
use self::proc::Memory;
use self::runner::Runner;
use agent::cgroup_hierarchy::Hierarchy;
use agent::instructions::NotCounted;
use readings::InstructionScope;

const CPU_DIR: &str = "/sys/devices/system/cpu";
const CLOCK_DIR: &str = "/sys/devices/system/clocksource/clocksource0";

/// Bits of the capabilities in `/proc/self/status`.
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_SYS_RESOURCE: u64 = 1 << 24;

/// All that the judgements are made from. `None` and empty for what could not be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub root: bool,
    /// Why io_uring cannot be used.
    pub uring_refused: Option<String>,
    /// CPUs that this process may use.
    pub cpus: Vec<u32>,
    /// CPUs of one core, for each core that has several.
    pub cores: Vec<Vec<u32>>,
    /// CPU time that the control group allows.
    pub quota_cpus: Option<f64>,
    /// Frequency governors and the CPUs that they govern.
    pub governors: BTreeMap<String, Vec<u32>>,
    pub turbo: Option<Turbo>,
    pub is_virtual: bool,
    /// The runner of continuous integration that this is.
    pub runner: Option<Runner>,
    pub activity: Option<Activity>,
    pub pauses: Option<Pauses>,
    pub load_average: Option<f64>,
    pub memory: Option<Memory>,
    pub clock: Option<Clock>,
    /// Which instructions are counted, or why none are.
    pub instructions: Option<Result<InstructionScope, NotCounted>>,
    /// Soft and hard limit of open files.
    pub open_files: Option<(u64, u64)>,
    /// Whether this process may raise its own hard limits.
    pub may_raise_limits: bool,
    pub may_make_namespaces: bool,
    pub has_tun: bool,
    /// Kernel settings that the judgements ask for, or the experiment.
    pub sysctls: Sysctls,
}

/// Whether the CPUs may clock above their rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turbo {
    pub on: bool,
    /// The file, and what turns it off.
    pub path: &'static str,
    pub off: &'static str,
}

/// What the kernel reads the time from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    pub current: String,
    pub available: Vec<String>,
}

/// Where kernel settings are read from: `/proc/sys`, or a test's table.
#[derive(Clone, Debug, Default)]
pub(crate) enum Sysctls {
    #[default]
    Kernel,
    #[cfg(test)]
    Table(BTreeMap<String, String>),
}

impl Sysctls {
    /// A kernel setting's text with single spaces; `None` when there is none of that name.
    pub fn text(&self, name: &str) -> Option<String> {
        let raw = match self {
            Self::Kernel => {
                fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()
            }
            #[cfg(test)]
            Self::Table(table) => table.get(name).cloned(),
        }?;
        Some(raw.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// A kernel setting that is one number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

impl Machine {
    /// Reads this machine. Takes a little more than a second, and changes nothing.
    pub fn read() -> Self {
        let limits = Self::read_limits();
        Self {
            // The second look keeps CPUs busy, which the first would see.
            activity: Activity::measure(),
            pauses: Pauses::measure(&limits.cpus),
            instructions: Some(agent::instructions::scope()),
            ..limits
        }
    }

    /// Reads what stands in files.
    pub fn read_limits() -> Self {
        let cpus = net::os::allowed_cpus().unwrap_or_default();
        let status = text("/proc/self/status").unwrap_or_default();
        let capabilities = proc::capabilities(&status).unwrap_or(0);
        let sysctls = Sysctls::Kernel;
        // Debian's own switch, and the kernel's: either can keep users from making namespaces.
        let users_may = sysctls.number("kernel.unprivileged_userns_clone") != Some(0)
            && sysctls.number("user.max_user_namespaces") != Some(0);
        let has = |bits: u64| capabilities & bits == bits;
        Self {
            root: net::os::is_root(),
            uring_refused: net::uring_unavailable().map(str::to_owned),
            cores: cores(&cpus),
            quota_cpus: quota(),
            governors: governors(&cpus),
            turbo: turbo(),
            runner: Runner::of(|name| std::env::var(name).ok()),
            is_virtual: text("/proc/cpuinfo").is_some_and(|text| proc::is_virtual(&text)),
            load_average: text("/proc/loadavg").and_then(|text| proc::load_average(&text)),
            memory: text("/proc/meminfo").and_then(|text| proc::memory(&text)),
            clock: clock(),
            open_files: text("/proc/self/limits").and_then(|text| proc::open_files(&text)),
            may_raise_limits: has(CAP_SYS_RESOURCE),
            may_make_namespaces: Path::new("/proc/self/ns/net").exists()
                && (has(CAP_SYS_ADMIN | CAP_NET_ADMIN) || users_may),
            has_tun: Path::new("/dev/net/tun").exists(),
            sysctls,
            cpus,
            ..Self::default()
        }
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The cores of which several hardware threads are among `cpus`.
fn cores(cpus: &[u32]) -> Vec<Vec<u32>> {
    let mut cores: Vec<Vec<u32>> = cpus
        .iter()
        .filter_map(|cpu| text(format!("{CPU_DIR}/cpu{cpu}/topology/thread_siblings_list")))
        .filter_map(|list| proc::numbers(&list))
        .map(|mut core| {
            core.retain(|cpu| cpus.contains(cpu));
            core
        })
        .filter(|core| core.len() > 1)
        .collect();
    cores.sort();
    cores.dedup();
    cores
}

/// The tightest limit of CPU time of this process's control group and those above it.
fn quota() -> Option<f64> {
    let group = text("/proc/self/cgroup")?;
    let root = Hierarchy::V2.base();
    let mut dir = root.join(Hierarchy::V2.path(&group)?);
    let mut least: Option<f64> = None;
    loop {
        if let Some(cpus) = text(dir.join("cpu.max")).and_then(|text| proc::quota_cpus(&text)) {
            least = Some(least.map_or(cpus, |least| least.min(cpus)));
        }
        if dir == root || !dir.pop() {
            return least;
        }
    }
}

fn governors(cpus: &[u32]) -> BTreeMap<String, Vec<u32>> {
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for &cpu in cpus {
        if let Some(name) = text(format!("{CPU_DIR}/cpu{cpu}/cpufreq/scaling_governor")) {
            found.entry(name.trim().to_owned()).or_default().push(cpu);
        }
    }
    found
}

fn turbo() -> Option<Turbo> {
    [
        // The file, what it holds when turbo is on, and what turns it off.
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0", "1"),
        ("/sys/devices/system/cpu/cpufreq/boost", "1", "0"),
    ]
    .into_iter()
    .find_map(|(path, on, off)| {
        let found = text(path)?;
        Some(Turbo {
            on: found.trim() == on,
            path,
            off,
        })
    })
}

fn clock() -> Option<Clock> {
    let available = text(format!("{CLOCK_DIR}/available_clocksource")).unwrap_or_default();
    Some(Clock {
        current: text(format!("{CLOCK_DIR}/current_clocksource"))?
            .trim()
            .to_owned(),
        available: available.split_whitespace().map(str::to_owned).collect(),
    })
}
