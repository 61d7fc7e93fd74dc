//! Checks what this machine lacks for namespaces and links.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use net::namespace::{self, Namespace};

use crate::namespaces::groups::Groups;
use readings::{Access, HostSpec};

const TUN: &str = "/dev/net/tun";

/// What this machine lacks to create these separate hosts, a sentence each.
///
/// Everything tried is undone at once. User namespaces are not tried, which needs a process of one
/// thread; sysctls are read instead.
pub fn lacking(hosts: &[HostSpec]) -> Vec<String> {
    let mut sentences = Vec::new();
    if !may_make_namespaces() {
        sentences.push(
            "its hosts are network namespaces, which this user may not make here: run it as root, \
             or allow user namespaces (sysctl user.max_user_namespaces, and on some systems \
             kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns)"
                .to_owned(),
        );
    }
    let shaped = |host: &HostSpec| host.link.is_some() || host.access == Access::External;
    if hosts.iter().any(shaped)
        && let Err(e) = OpenOptions::new().read(true).write(true).open(TUN)
    {
        let help = match e.kind() {
            ErrorKind::PermissionDenied => "run it as root",
            _ => "as root: modprobe tun",
        };
        sentences.push(format!(
            "its links need {TUN}, which cannot be opened: {e}; {help}"
        ));
    }
    if let Some(host) = hosts.iter().find(|host| host.quota.is_some()) {
        // Without a cpuset, CPUs are bound by affinity.
        let alone = HostSpec {
            cpus: Vec::new(),
            ..host.clone()
        };
        sentences.extend(Groups::make(&alone).err());
    }
    sentences
}

fn may_make_namespaces() -> bool {
    let may = || namespace::enter_new(&[Namespace::Net]).is_ok();
    let on_a_thread = net::os::start_thread("which enters a namespace", may);
    if on_a_thread.is_ok_and(|thread| thread.join().unwrap_or(false)) {
        return true;
    }
    let is_off = |name: &str, off: &str| {
        let path = Path::new("/proc/sys").join(name);
        fs::read_to_string(path).is_ok_and(|text| text.trim() == off)
    };
    Path::new("/proc/self/ns/user").exists()
        && !is_off("user/max_user_namespaces", "0")
        && !is_off("kernel/unprivileged_userns_clone", "0")
        && !is_off("kernel/apparmor_restrict_unprivileged_userns", "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_cannot_be_set_is_reported_with_its_host() {
        let small = |quota| HostSpec {
            name: "small".to_owned(),
            quota,
            ..HostSpec::default()
        };
        let without = lacking(&[small(None)]);
        // An invalid folder name.
        let mut odd = small(Some(0.5));
        odd.name = "a/b".to_owned();
        let with = lacking(&[odd]);
        assert_eq!(with.len(), without.len() + 1, "{with:?}");
        assert!(with.last().unwrap().contains("host `a/b`"), "{with:?}");
    }

    #[test]
    fn root_lacks_no_namespaces() {
        if net::os::is_root() {
            let text = lacking(&[HostSpec::default()]).join(" ");
            assert!(!text.contains("user namespaces"), "{text}");
        }
    }
}
