//! The texts of `/proc` and `/sys`, parsed. Pure functions; what has another form gives `None`.

/// What CPUs did since the machine started, in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    /// Programs and the kernel, interrupts included.
    pub busy: u64,
    /// Nothing, or waiting for a disk.
    pub idle: u64,
    /// Taken by the host of a virtual machine.
    pub steal: u64,
}

impl CpuTicks {
    pub fn total(self) -> u64 {
        self.busy + self.idle + self.steal
    }
}

/// The first line of `/proc/stat`: all CPUs together.
pub(crate) fn cpu_ticks(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    // user nice system idle iowait irq softirq steal; what guests take is part of user and nice.
    let field = |at: usize| fields.get(at).copied().unwrap_or(0);
    (fields.len() >= 4).then(|| CpuTicks {
        busy: field(0) + field(1) + field(2) + field(5) + field(6),
        idle: field(3) + field(4),
        steal: field(7),
    })
}

/// A process and the CPU time it has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessTicks {
    pub pid: u32,
    pub name: String,
    /// Ticks of 10 ms, of all its threads.
    pub ticks: u64,
}

/// `/proc/PID/stat`.
pub(crate) fn process_ticks(stat: &str) -> Option<ProcessTicks> {
    // The name is in parentheses, and may contain spaces and parentheses.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let mut after = stat.get(close + 1..)?.split_whitespace().skip(11);
    let user: u64 = after.next()?.parse().ok()?;
    let system: u64 = after.next()?.parse().ok()?;
    Some(ProcessTicks {
        pid: stat[..open].trim().parse().ok()?,
        name: stat.get(open + 1..close)?.to_owned(),
        ticks: user + system,
    })
}

/// The first figure of `/proc/loadavg`: the average over a minute.
pub(crate) fn load_average(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Memory and swap, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub total_kib: u64,
    pub available_kib: u64,
    pub swap_total_kib: u64,
    pub swap_free_kib: u64,
}

impl Memory {
    pub fn swap_used_kib(self) -> u64 {
        self.swap_total_kib.saturating_sub(self.swap_free_kib)
    }
}

/// `/proc/meminfo`.
pub(crate) fn memory(text: &str) -> Option<Memory> {
    let field = |name: &str| -> Option<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Memory {
        total_kib: field("MemTotal")?,
        available_kib: field("MemAvailable")?,
        swap_total_kib: field("SwapTotal").unwrap_or(0),
        swap_free_kib: field("SwapFree").unwrap_or(0),
    })
}

/// The soft and the hard limit of open files, from `/proc/self/limits`; `u64::MAX` for no limit.
pub(crate) fn open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((words.next()??, words.next()??))
}

/// Lists of numbers such as `0-3,8`, as the kernel writes CPUs and ports. `None` for what is no
/// such list, or one of more than 100,000 numbers.
pub(crate) fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        if high < low || (high - low) as usize + all.len() >= 100_000 {
            return None;
        }
        all.extend(low..=high);
    }
    Some(all)
}

/// Two numbers, such as the ends of `ip_local_port_range`.
pub(crate) fn range(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// The CPUs that `cpu.max` of a control group allows, such as 1.5; `None` for no limit.
pub(crate) fn quota_cpus(cpu_max: &str) -> Option<f64> {
    let mut words = cpu_max.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (period > 0.0).then(|| quota / period)
}

/// Whether the CPU says that it is a virtual one, from `/proc/cpuinfo` (x86 only).
pub(crate) fn is_virtual(cpuinfo: &str) -> bool {
    cpuinfo
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Effective capabilities, as bits, from `/proc/self/status`.
pub(crate) fn capabilities(status: &str) -> Option<u64> {
    let hex = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_the_machine() {
        let stat = "cpu  53259 7 15489 875654 36706 11 231 42 5 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        let ticks = cpu_ticks(stat).unwrap();
        assert_eq!(
            ticks,
            CpuTicks {
                busy: 53_259 + 7 + 15_489 + 11 + 231,
                idle: 875_654 + 36_706,
                steal: 42,
            }
        );
        // Kernels before 2.6.11 had no steal.
        assert_eq!(cpu_ticks("cpu  1 2 3 4\n").unwrap().total(), 10);
        for bad in ["", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2", "cpu  a b c d"] {
            assert_eq!(cpu_ticks(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn cpu_time_of_a_process_with_any_name() {
        let rest = "S 1 42 42 0 -1 4194560 100 200 0 0 150 50 9 9 20 0 1 0 500 9000 100";
        for name in ["nginx", "Web Content", "a) b (c", ""] {
            assert_eq!(
                process_ticks(&format!("42 ({name}) {rest}\n")).unwrap(),
                ProcessTicks {
                    pid: 42,
                    name: name.into(),
                    ticks: 200
                }
            );
        }
        for bad in ["", "42 (x) S 1 2", "42 x S", ")x(", "x (y) S 1 2 3"] {
            assert_eq!(process_ticks(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn load_and_memory() {
        assert_eq!(load_average("0.03 0.18 0.33 1/81 10449\n"), Some(0.03));
        assert_eq!(load_average(""), None);
        let text = "MemTotal:       24684092 kB\nMemFree:        24279012 kB\n\
                    MemAvailable:   24314660 kB\nSwapCached:            0 kB\n\
                    SwapTotal:       1000 kB\nSwapFree:         400 kB\n";
        let memory = memory(text).unwrap();
        assert_eq!(memory.total_kib, 24_684_092);
        assert_eq!(memory.available_kib, 24_314_660);
        assert_eq!(memory.swap_used_kib(), 600);
        assert_eq!(super::memory("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn limits_of_open_files() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max open files            1024                 524288               files     \n";
        assert_eq!(open_files(text), Some((1024, 524_288)));
        let text = "Max open files            1024                 unlimited            files\n";
        assert_eq!(open_files(text), Some((1024, u64::MAX)));
        assert_eq!(open_files("Max processes 1 1\n"), None);
    }

    #[test]
    fn lists_and_ranges() {
        for (text, expected) in [
            ("0\n", Some(vec![0])),
            ("0,4\n", Some(vec![0, 4])),
            ("0-2,8-9", Some(vec![0, 1, 2, 8, 9])),
            ("\n", Some(vec![])),
            ("3-1", None),
            ("0-4294967295", None),
            ("a", None),
        ] {
            assert_eq!(numbers(text), expected, "{text:?}");
        }
        assert_eq!(range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(range("32768"), None);
    }

    #[test]
    fn quotas_and_capabilities() {
        assert_eq!(quota_cpus("150000 100000\n"), Some(1.5));
        assert_eq!(quota_cpus("max 100000\n"), None);
        assert_eq!(quota_cpus("1 0"), None);
        assert!(is_virtual("processor : 0\nflags\t\t: fpu hypervisor lm\n"));
        assert!(!is_virtual("flags\t\t: fpu lm\nbugs: hypervisor\n"));
        assert_eq!(
            capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n"),
            Some(0x1ff_ffff_ffff)
        );
        assert_eq!(capabilities("Name:\tx\n"), None);
    }
}
