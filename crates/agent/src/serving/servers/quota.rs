//! A limit on the CPU time of one server.

use std::path::PathBuf;

use crate::kernel::cgroup::Cgroup;
use crate::kernel::cgroup::cpu_quota;
use crate::serving::quota::Quota;
use crate::serving::servers::Servers;

/// A limit that ends when this is dropped.
pub(crate) enum ServerQuota {
    /// Set on the server's own control group, which has the `cpu` controller.
    Own(PathBuf),
    /// Set on a new group, to which the server's processes were moved.
    Moved { _quota: Quota },
}

impl ServerQuota {
    /// Limits a server with these processes; `name` is that of the new group, if one is needed.
    fn set(name: &str, group: Option<&Cgroup>, pids: &[i32], cpus: f64) -> Result<Self, String> {
        if let Some(folder) = group.map(Cgroup::folder)
            && cpu_quota::set(folder, Some(cpus)).is_ok()
        {
            return Ok(Self::Own(folder.to_owned()));
        }
        Quota::set(name, pids, cpus).map(|quota| Self::Moved { _quota: quota })
    }
}

impl Drop for ServerQuota {
    fn drop(&mut self) {
        if let Self::Own(folder) = self {
            // Fails only if the group is gone.
            let _ = cpu_quota::set(folder, None);
        }
    }
}

impl Servers {
    /// Limits the CPU time of a server; `None` ends the limit.
    pub(crate) fn set_quota(&mut self, server: &str, cpus: Option<f64>) -> Result<(), String> {
        let name = format!("{}-limit-{server}", self.folder_name());
        let pids = self.watched(server).pids();
        let Some(one) = self.running.get_mut(server) else {
            return match cpus {
                None => Ok(()),
                Some(_) => Err(format!("`{server}` does not run")),
            };
        };
        // The old limit ends first: both may need the same group.
        one.quota = None;
        if let Some(cpus) = cpus {
            let quota = ServerQuota::set(&name, one.group.as_ref(), &pids, cpus);
            one.quota = Some(quota.map_err(|why| format!("`{server}` cannot be limited: {why}"))?);
        }
        Ok(())
    }
}
