//! Network namespaces that a load passes through.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::tcp_table::{self, TcpSocket};
use crate::protocol::wire::OtherServer;

/// A network namespace that a load passes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// A process in it, or `self`.
    process: String,
    pub(crate) servers: Vec<String>,
    /// Whether the load is made in it.
    pub(crate) load: bool,
}

impl Namespace {
    /// This process's own first, then those of other agents' servers, each once.
    pub(crate) fn all(own: Vec<String>, others: &[OtherServer]) -> Vec<Self> {
        let mut all = vec![Self {
            process: "self".to_owned(),
            servers: own,
            load: true,
        }];
        let mut inodes = vec![inode("self")];
        for other in others {
            let process = other.pid.to_string();
            let its = inode(&process);
            match inodes.iter().position(|one| *one == its) {
                Some(at) => all[at].servers.push(other.server.clone()),
                None => {
                    inodes.push(its);
                    all.push(Self {
                        process,
                        servers: vec![other.server.clone()],
                        load: false,
                    });
                }
            }
        }
        all
    }

    /// A file of `/proc/PID/net`.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/net/{name}", self.process)).ok()
    }

    pub(crate) fn tcp_sockets(&self) -> Option<Vec<TcpSocket>> {
        tcp_table::sockets(&self.process)
    }

    /// Opens something in this namespace, such as a socket, which belongs to the network namespace of
    /// the thread that opens it. `None` where this process may not enter the namespace.
    pub(crate) fn open<T: Send>(&self, open: impl FnOnce() -> Option<T> + Send) -> Option<T> {
        if self.process == "self" {
            return open();
        }
        let namespace = fs::File::open(format!("/proc/{}/ns/net", self.process)).ok()?;
        std::thread::scope(|scope| {
            let inside = net::os::start_scoped(scope, "in another namespace", move || {
                net::namespace::enter(&namespace).ok()?;
                open()
            });
            inside.ok()?.join().ok().flatten()
        })
    }

    /// Connections that found a full accept queue so far.
    pub(crate) fn listen_overflows(&self) -> Option<u64> {
        column(&self.read("netstat")?, "TcpExt:", "ListenOverflows")
    }

    /// Connections accepted so far. `None` where that cannot be read.
    pub(crate) fn accepted(&self) -> Option<u64> {
        column(&self.read("snmp")?, "Tcp:", "PassiveOpens")
    }
}

fn inode(process: &str) -> Option<u64> {
    let namespace = fs::metadata(format!("/proc/{process}/ns/net")).ok()?;
    Some(namespace.ino())
}

/// Identifies this process's network namespace, across machines: boot ID and inode.
pub fn namespace_id() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{}/{}", boot.trim(), inode("self").unwrap_or(0))
}

/// A value of a file that has a line of names and a line of values for each group.
pub(crate) fn column(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let names = lines.next()?.split_whitespace();
    let mut columns = names.zip(lines.next()?.split_whitespace());
    columns.find(|(one, _)| *one == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_group_and_its_name() {
        let netstat = "TcpExt: A ListenOverflows B\nTcpExt: 1 17 3\nIpExt: X\nIpExt: 9\n";
        assert_eq!(column(netstat, "TcpExt:", "ListenOverflows"), Some(17));
        assert_eq!(column(netstat, "TcpExt:", "Nothing"), None);
    }
}
