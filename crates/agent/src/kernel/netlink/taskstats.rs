//! Usage of a thread by taskstats, laid out as in `linux/taskstats.h` (versions add to its end). A
//! query takes some 5 us, where reading the same from two files of `/proc` takes some 40. Only for
//! root: it needs `CAP_NET_ADMIN` in the initial user namespace. The kernel reports the same of each
//! thread that exits ([`crate::sampling::server::thread_exits`]).

use std::io;

use crate::kernel::netlink::{Message, Netlink, attribute, text};
use crate::kernel::proc_files::{Thread, ThreadUsage};

const NETLINK_GENERIC: i32 = 16;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
pub(crate) const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_PID: u16 = 1;
const TASKSTATS_TYPE_STATS: u16 = 3;
const TASKSTATS_TYPE_AGGR_PID: u16 = 4;

/// Command and version of the generic netlink, before the attributes.
const GENERIC_HEADER: usize = 4;

/// Offsets of fields in `struct taskstats`.
mod at {
    pub(crate) const VERSION: usize = 0;
    pub(crate) const RUN_NS: usize = 72;
    pub(crate) const NAME: usize = 80;
    pub(crate) const TID: usize = 128;
    pub(crate) const PARENT_PID: usize = 132;
    pub(crate) const USER_US: usize = 152;
    pub(crate) const SYSTEM_US: usize = 160;
    pub(crate) const FAULTS_MINOR: usize = 168;
    pub(crate) const FAULTS_MAJOR: usize = 176;
    pub(crate) const VOLUNTARY: usize = 272;
    pub(crate) const INVOLUNTARY: usize = 280;
    pub(crate) const END: usize = 288;
    /// Since version 12.
    pub(crate) const PID: usize = 368;
}
/// Version 15 moved the fields behind the first ones.
const VERSION_UNLIKE_OTHERS: u16 = 15;
const VERSION_WITH_PID: u16 = 12;
/// Including the terminating 0.
const NAME_BYTES: usize = 32;

pub(crate) struct TaskStats {
    netlink: Netlink,
    family: u16,
}

impl TaskStats {
    /// `None` where this kernel has no taskstats, or refuses this process, or counts no time.
    pub(crate) fn open() -> Option<Self> {
        let (netlink, family) = open()?;
        let mut stats = Self { netlink, family };
        let me = i32::try_from(std::process::id()).ok()?;
        let own = stats.thread(me, &Thread::default()).ok()?;
        (own.usage.user_ns + own.usage.system_ns > 0).then_some(stats)
    }

    /// Usage since the thread began. `last` is the answer of the last query: neither user nor system
    /// time decreases.
    ///
    /// # Errors
    /// `ESRCH` where there is no such thread; another one where the answer cannot be read.
    pub(crate) fn thread(&mut self, tid: i32, last: &Thread) -> io::Result<Thread> {
        let mut question = Message::question(self.family, &[TASKSTATS_CMD_GET, 1, 0, 0]);
        question.attribute(TASKSTATS_CMD_ATTR_PID, &tid.to_ne_bytes());
        let answer = self.netlink.ask(&mut question)?;
        read(answer, tid, last).ok_or_else(|| io::Error::other("unexpected form of taskstats"))
    }
}

/// A generic netlink socket, and the family of taskstats.
pub(crate) fn open() -> Option<(Netlink, u16)> {
    let mut netlink = Netlink::open(NETLINK_GENERIC).ok()?;
    let mut question = Message::question(GENL_ID_CTRL, &[CTRL_CMD_GETFAMILY, 1, 0, 0]);
    question.name(CTRL_ATTR_FAMILY_NAME, "TASKSTATS");
    let answer = netlink.ask(&mut question).ok()?;
    let family = attribute(answer.get(GENERIC_HEADER..)?, CTRL_ATTR_FAMILY_ID)?;
    let number = u16::from_ne_bytes(family.get(..2)?.try_into().ok()?);
    Some((netlink, number))
}

fn read(answer: &[u8], tid: i32, last: &Thread) -> Option<Thread> {
    let stats = Stats::of(answer)?;
    if stats.number(at::TID)? != tid {
        return None;
    }
    let name = stats.0.get(at::NAME..at::NAME + NAME_BYTES)?;
    Some(Thread {
        name: text(name),
        usage: stats.usage(last.usage)?,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadExit {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// The parent of its process, or the process that adopted it.
    pub(crate) parent_pid: i32,
    /// Usage over its whole life.
    pub(crate) usage: ThreadUsage,
}

impl ThreadExit {
    /// `None` where the kernel does not say whose thread it was.
    pub(crate) fn read(report: &[u8]) -> Option<Self> {
        let stats = Stats::of(report)?;
        if stats.version()? < VERSION_WITH_PID {
            return None;
        }
        Some(Self {
            tid: stats.number(at::TID)?,
            pid: stats.number(at::PID)?,
            parent_pid: stats.number(at::PARENT_PID)?,
            usage: stats.usage(ThreadUsage::default())?,
        })
    }
}

/// `struct taskstats`, of at least the fields that all versions have.
struct Stats<'a>(&'a [u8]);

impl<'a> Stats<'a> {
    fn of(answer: &'a [u8]) -> Option<Self> {
        let of_one = attribute(answer.get(GENERIC_HEADER..)?, TASKSTATS_TYPE_AGGR_PID)?;
        let stats = Self(attribute(of_one, TASKSTATS_TYPE_STATS)?);
        let is_known = stats.0.len() >= at::END && stats.version()? != VERSION_UNLIKE_OTHERS;
        is_known.then_some(stats)
    }

    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at + N)?.try_into().ok()
    }

    fn version(&self) -> Option<u16> {
        self.bytes(at::VERSION).map(u16::from_ne_bytes)
    }

    fn figure(&self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_ne_bytes)
    }

    fn number(&self, at: usize) -> Option<i32> {
        self.bytes(at).map(i32::from_ne_bytes)
    }

    fn usage(&self, last: ThreadUsage) -> Option<ThreadUsage> {
        let ran = RunTime {
            run_ns: self.figure(at::RUN_NS)?,
            user_us: self.figure(at::USER_US)?,
            system_us: self.figure(at::SYSTEM_US)?,
        };
        let (user_ns, system_ns) = ran.divided(last);
        Some(ThreadUsage {
            user_ns,
            system_ns,
            switches_voluntary: self.figure(at::VOLUNTARY)?,
            switches_involuntary: self.figure(at::INVOLUNTARY)?,
            faults_minor: self.figure(at::FAULTS_MINOR)?,
            faults_major: self.figure(at::FAULTS_MAJOR)?,
        })
    }
}

/// CPU time of a thread: exact, and by the scheduler's ticks divided into user and system time.
struct RunTime {
    run_ns: u64,
    user_us: u64,
    system_us: u64,
}

impl RunTime {
    /// The exact time, divided as the ticks are: as in `/proc/PID/stat`, but to the ns.
    fn divided(&self, last: ThreadUsage) -> (u64, u64) {
        let usage = last.user_ns + last.system_ns;
        let (user_ns, system_ns) = match self.run_ns < usage {
            // The tid is another thread's now.
            true => (0, 0),
            false => (last.user_ns, last.system_ns),
        };
        let ticks = u128::from(self.user_us) + u128::from(self.system_us);
        let share_ns = u128::from(self.run_ns) * u128::from(self.system_us) / ticks.max(1);
        // No more than the run time, as its factor is at most 1.
        let share_ns = u64::try_from(share_ns).unwrap_or(self.run_ns);
        let system_ns = share_ns.clamp(system_ns, self.run_ns - user_ns);
        (self.run_ns - system_ns, system_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::{shell, tell};

    fn opened() -> Option<TaskStats> {
        let stats = TaskStats::open();
        let must = std::env::var_os("CI").is_some() && net::os::is_root();
        assert!(stats.is_some() || !must, "the kernel refuses root");
        stats
    }

    #[test]
    fn the_kernel_says_the_same_as_its_files() {
        let Some(mut stats) = opened() else { return };
        let mut shell = shell();
        let pid = shell.pid();
        tell(
            &mut shell,
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
        );
        tell(
            &mut shell,
            "j=0; while [ $j -lt 2000 ]; do j=$((j+1)); read -r k < /proc/uptime; done",
        );
        // It waits for its next line; that it has begun to wait may take a moment.
        let same = (0..2000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let (file, _) = Thread::read(pid, pid).unwrap();
            let told = stats.thread(pid, &Thread::default()).unwrap();
            assert_eq!(told.name, file.name);
            let near = |a: u64, b: u64| a.abs_diff(b) <= 20_000_000;
            let counts = |usage: ThreadUsage| ThreadUsage {
                user_ns: 0,
                system_ns: 0,
                ..usage
            };
            let (told, file) = (told.usage, file.usage);
            counts(told) == counts(file)
                && near(told.user_ns, file.user_ns)
                && near(told.system_ns, file.system_ns)
                && told.user_ns > 50_000_000
                && told.faults_minor > 50
        });
        assert!(same, "{:?}", stats.thread(pid, &Thread::default()));
        drop(shell);
        let gone = stats.thread(pid, &Thread::default()).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(3));
    }

    #[test]
    fn time_is_divided_as_the_ticks_are_and_never_taken_back() {
        let divided = |run_ns, user_us, system_us, last: (u64, u64)| {
            let last = ThreadUsage {
                user_ns: last.0,
                system_ns: last.1,
                ..ThreadUsage::default()
            };
            let ran = RunTime {
                run_ns,
                user_us,
                system_us,
            };
            ran.divided(last)
        };
        assert_eq!(divided(900, 2, 1, (0, 0)), (600, 300));
        // Before the first tick all is user time, as the kernel has it.
        assert_eq!(divided(900, 0, 0, (0, 0)), (900, 0));
        assert_eq!(divided(900, 0, 5, (0, 0)), (0, 900));
        // A tick of user time would make system time less than it was.
        assert_eq!(divided(900, 7, 1, (500, 300)), (600, 300));
        assert_eq!(divided(900, 1, 7, (500, 300)), (500, 400));
        assert_eq!(divided(100, 1, 1, (500, 300)), (50, 50));
        let most = u64::MAX;
        assert_eq!(divided(most, most, 0, (0, 0)), (most, 0));
    }

    #[test]
    fn an_answer_that_is_cut_off_or_of_another_thread_is_none() {
        let mut stats = Message::question(0, &[TASKSTATS_CMD_GET, 1, 0, 0]);
        let mut figures = vec![0; at::PID + 4];
        figures[at::VERSION] = 14;
        figures[at::TID] = 9;
        figures[at::PID] = 7;
        figures[at::NAME..at::NAME + 2].copy_from_slice(b"ab");
        stats.nest(TASKSTATS_TYPE_AGGR_PID, |of_one| {
            of_one
                .number(1, 9)
                .attribute(TASKSTATS_TYPE_STATS, &figures);
        });
        let bytes = &stats.finish()[16..];
        let last = Thread::default();
        assert_eq!(read(bytes, 9, &last).unwrap().name, "ab");
        assert!(read(bytes, 8, &last).is_none());
        let exit = ThreadExit::read(bytes).unwrap();
        assert_eq!((exit.tid, exit.pid, exit.parent_pid), (9, 7, 0));
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], 9, &last).is_none());
            assert!(ThreadExit::read(&bytes[..end]).is_none());
        }
    }
}
