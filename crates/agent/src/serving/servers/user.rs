//! The user that a server runs as.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;

use net::os;

use crate::kernel::proc_files::numbers_in;

/// The user IDs for servers. systemd's list of user IDs leaves the first range unused. The second
/// is for containers with only 65,536 IDs: systemd uses it for dynamic users of services.
const RANGES: [RangeInclusive<u32>; 2] = [1_879_048_192..=2_147_352_575, 61_184..=65_519];
const ATTEMPTS: usize = 1_000;

/// A user and its group, by ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerUser {
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// Whether nothing else runs as this user.
    pub(crate) is_own: bool,
}

impl ServerUser {
    /// The user for a recipe's `run_as`. Without `run_as`, it is one that nothing else runs as and
    /// that is not in `taken`. `None` means the user of this process: an ordinary user cannot
    /// choose another, and neither can root of a user namespace that maps no other.
    pub(crate) fn choose(
        run_as: Option<&str>,
        taken: &BTreeSet<u32>,
    ) -> Result<Option<Self>, String> {
        match run_as {
            _ if !os::is_root() => Ok(None),
            Some("root") => Ok(None),
            Some(name) => match os::user_ids(name) {
                Some((user, group)) => Ok(Some(Self {
                    user,
                    group,
                    is_own: false,
                })),
                None => Err(format!(
                    "this machine has no user `{name}`: leave `run_as` out of the recipe for a user \
                     of the server's own, or name one of /etc/passwd"
                )),
            },
            None => {
                let maps = ["uid_map", "gid_map"].map(|name| {
                    fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default()
                });
                let Some(range) = usable_range(&maps) else {
                    return Ok(None);
                };
                let mut used = users_of_processes();
                used.extend(numbers_of_databases());
                used.extend(taken);
                let user = draw(range, &used).ok_or("no free user ID was found for it")?;
                Ok(Some(Self {
                    user,
                    group: user,
                    is_own: true,
                }))
            }
        }
    }
}

/// The first range whose IDs are all mapped in this user namespace, as users and as groups.
fn usable_range(maps: &[String; 2]) -> Option<RangeInclusive<u32>> {
    RANGES
        .into_iter()
        .find(|range| maps.iter().all(|map| is_mapped(map, range)))
}

/// Whether a line of `/proc/PID/uid_map` covers a range. A line has the first ID inside the
/// namespace, the first outside, and the number of IDs.
fn is_mapped(map: &str, range: &RangeInclusive<u32>) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        let [inside, _, count] = numbers[..] else {
            return false;
        };
        inside <= u64::from(*range.start()) && u64::from(*range.end()) < inside + count
    })
}

fn draw(range: RangeInclusive<u32>, used: &BTreeSet<u32>) -> Option<u32> {
    (0..ATTEMPTS)
        .map(|_| fastrand::u32(range.clone()))
        .find(|user| !used.contains(user))
}

/// The users that processes of this machine run as.
fn users_of_processes() -> BTreeSet<u32> {
    let folders = numbers_in("/proc").into_iter();
    folders
        .filter_map(|pid| Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid()))
        .collect()
}

/// The IDs of all users and groups in `/etc/passwd` and `/etc/group`.
fn numbers_of_databases() -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    for file in ["/etc/passwd", "/etc/group"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        let third = text.lines().filter_map(|line| line.split(':').nth(2));
        numbers.extend(third.filter_map(|number| number.parse::<u32>().ok()));
    }
    numbers
}

/// The most processes and threads for a server with a user of its own: half of what the machine
/// allows.
pub(crate) fn processes_max() -> Option<u64> {
    let files = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    let texts = files
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    let limits = texts.filter_map(|text| text.trim().parse::<u64>().ok());
    limits.min().map(|all| all / 2)
}

/// What to do about a program that could not be started as a user; empty where nothing is known.
pub(crate) fn start_advice(error: &std::io::Error, user: Option<ServerUser>) -> String {
    match (error.kind(), user) {
        (std::io::ErrorKind::PermissionDenied, Some(_)) => {
            "; the server runs as another user, who may not run this file: check the modes of the file \
             and of the folders above it, or set `run_as` in the recipe"
                .to_owned()
        }
        _ => net::os::Lacking(error).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_of_the_first_range_that_this_namespace_has() {
        let whole = "         0          0 4294967295\n";
        let container = "         0     100000      65536\n";
        let rootless = "         0       1000          1\n         1     100000      65536\n";
        let one = "         0       1000          1\n";
        let range = |users: &str, groups: &str| usable_range(&[users.into(), groups.into()]);
        assert_eq!(range(whole, whole), Some(RANGES[0].clone()));
        assert_eq!(range(container, container), Some(RANGES[1].clone()));
        assert_eq!(range(rootless, rootless), Some(RANGES[1].clone()));
        assert_eq!(range(whole, container), Some(RANGES[1].clone()));
        assert_eq!(range(one, one), None);
        assert_eq!(range(whole, one), None);
        assert_eq!(range("", ""), None);
    }

    #[test]
    fn a_number_in_use_is_not_drawn() {
        let used = (10..20).collect();
        assert_eq!(draw(10..=20, &used), Some(20));
        assert_eq!(draw(10..=19, &used), None);
    }

    #[test]
    fn servers_of_root_have_users_of_their_own() {
        let first = ServerUser::choose(None, &BTreeSet::new()).unwrap();
        let Some(first) = first else {
            // Not root, or root of a user namespace that maps neither range.
            return;
        };
        assert!(first.is_own && first.user > 60_000 && first.group == first.user);
        assert!(users_of_processes().contains(&os::user_id()));
        assert_eq!(ServerUser::choose(Some("root"), &BTreeSet::new()), Ok(None));
        let unknown = ServerUser::choose(Some("no-such-user"), &BTreeSet::new());
        assert!(unknown.unwrap_err().contains("no user `no-such-user`"));
    }
}
