//! What already listens at an address of this machine: its processes, to be sampled like those of a
//! server that an agent started.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use crate::kernel::cgroup::hierarchy::Hierarchy;
use crate::kernel::cgroup::{inner_groups, processes_in};
use crate::kernel::netlink::socket_diag::SocketDiag;
use crate::kernel::proc_files::{Process, numbers_in, tree};
use crate::kernel::tcp_table;
use crate::protocol::wire::OtherServer;

/// Process 1, which may hold sockets for services that it starts.
const INIT: i32 = 1;

/// The server that listens at an address, named by program and port, such as `nginx:8080`. `None`
/// where the address is not this machine's, where nothing in this network namespace listens there,
/// where this user may not see who does, and where this process is one of the server's.
pub fn listening_at(address: SocketAddr) -> Option<OtherServer> {
    is_of_this_machine(address.ip()).then_some(())?;
    let roots = roots(&holders(&sockets_at(address)));
    let (&pid, also) = roots.split_first()?;
    let all: BTreeSet<i32> = roots.iter().flat_map(|root| tree(*root)).collect();
    if all.contains(&(std::process::id() as i32)) {
        return None;
    }
    let group = own_group(pid, &all);
    Some(OtherServer {
        server: format!("{}:{}", name_of(pid)?, address.port()),
        pid,
        counts: None,
        also: also.to_vec(),
        group: group.map(|folder| folder.display().to_string()),
    })
}

/// What listens at an address of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Number and name of a process that holds the socket, if this user may see it.
    pub process: Option<(i32, String)>,
}

/// What listens where a connection to this address arrives; `None` where nothing does.
pub fn listener_at(address: SocketAddr) -> Option<Listener> {
    let sockets = sockets_at(address);
    (!sockets.is_empty()).then_some(())?;
    let mut pids = numbers_in("/proc").into_iter();
    let process = pids.find(|pid| holds(*pid, &sockets));
    Some(Listener {
        process: process.and_then(|pid| Some((pid, name_of(pid)?))),
    })
}

fn name_of(pid: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// The inodes of the sockets that a connection to `address` may reach.
pub(crate) fn sockets_at(address: SocketAddr) -> BTreeSet<u64> {
    reached(&listeners(), address)
}

/// The same, and the other listeners at its port with their addresses.
pub(crate) fn at_port(address: SocketAddr) -> (BTreeSet<u64>, Vec<(SocketAddr, u64)>) {
    let mut all = listeners();
    all.retain(|(at, _)| at.port() == address.port());
    let there = reached(&all, address);
    all.retain(|(_, inode)| !there.contains(inode));
    (there, all)
}

/// Addresses and inodes of all listening sockets.
fn listeners() -> Vec<(SocketAddr, u64)> {
    let listed = SocketDiag::open().and_then(|mut diag| diag.listening().ok());
    match listed {
        Some(all) => all.iter().map(|one| (one.address, one.inode)).collect(),
        None => in_table(),
    }
}

/// An address of this machine is one that a socket can be bound to.
pub(crate) fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// The inodes of those listeners, each with its address, that a connection to `address` may reach. A
/// socket of the address itself is preferred to one of all addresses, as the kernel does.
fn reached(listeners: &[(SocketAddr, u64)], address: SocketAddr) -> BTreeSet<u64> {
    let of = |wanted: &dyn Fn(IpAddr) -> bool| -> BTreeSet<u64> {
        let matching = listeners
            .iter()
            .filter(|(at, _)| at.port() == address.port() && wanted(at.ip()));
        matching.map(|(_, inode)| *inode).collect()
    };
    let exact = of(&|ip| ip.to_canonical() == address.ip().to_canonical());
    match exact.is_empty() {
        // A socket of all IPv6 addresses takes IPv4 as well, unless it was told not to.
        true => of(&|ip| ip.is_unspecified() && (ip.is_ipv6() || address.is_ipv4())),
        false => exact,
    }
}

/// Addresses and inodes of the listening sockets in the kernel's table.
fn in_table() -> Vec<(SocketAddr, u64)> {
    let sockets = tcp_table::sockets("self").unwrap_or_default().into_iter();
    let listening = sockets.filter(|one| one.state == tcp_table::LISTEN);
    listening.map(|one| (one.local, one.inode)).collect()
}

/// The processes that hold one of the sockets, as far as this user may see.
fn holders(inodes: &BTreeSet<u64>) -> Vec<Process> {
    if inodes.is_empty() {
        return Vec::new();
    }
    let pids = numbers_in("/proc").into_iter();
    pids.filter(|pid| *pid != INIT && holds(*pid, inodes))
        .filter_map(Process::read)
        .collect()
}

pub(crate) fn holds(pid: i32, inodes: &BTreeSet<u64>) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut targets = files.into_iter().flatten().flatten().filter_map(|file| {
        let target = fs::read_link(file.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse::<u64>().ok()
    });
    targets.any(|inode| inodes.contains(&inode))
}

/// Those of them that none of the others has started, ascending.
fn roots(holders: &[Process]) -> Vec<i32> {
    let mut roots: Vec<i32> = holders
        .iter()
        .filter(|one| holders.iter().all(|other| other.pid != one.parent))
        .map(|one| one.pid)
        .collect();
    roots.sort_unstable();
    roots
}

/// The control group of a process, if these processes and no others are in it: then it counts what
/// `/proc` loses when a thread or a process ends.
fn own_group(pid: i32, all: &BTreeSet<i32>) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    Hierarchy::OF_TIME.iter().find_map(|hierarchy| {
        let path = hierarchy.path(&text).filter(|path| !path.is_empty())?;
        let folder = hierarchy.base().join(path);
        let inside: BTreeSet<i32> = processes_in(&folder).into_iter().collect();
        (inside == *all && inner_groups(&folder).is_empty()).then_some(folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn the_listener_of_the_address_is_preferred() {
        let found = |listeners: &[&str], at: &str| {
            let parsed = listeners.iter().map(|one| one.parse().unwrap());
            let listeners: Vec<(SocketAddr, u64)> = parsed.zip(1..).collect();
            let found = reached(&listeners, at.parse().unwrap());
            found.into_iter().collect::<Vec<u64>>()
        };
        let (own, all, other) = ("127.0.0.1:80", "0.0.0.0:80", "10.0.0.1:80");
        let (port, six) = ("127.0.0.1:81", "[::]:80");
        assert_eq!(found(&[all, own, other, port], own), [2]);
        assert_eq!(found(&[all, other, port], own), [1]);
        assert!(found(&[other, port], own).is_empty());
        assert_eq!(found(&[six], own), [1], "it takes IPv4 as well");
        assert_eq!(found(&[own, six], own), [1]);
        assert!(found(&[all], "[::1]:80").is_empty());
        assert_eq!(found(&["[::ffff:127.0.0.1]:80"], own), [1]);
    }

    #[test]
    fn sock_diag_and_the_kernels_table_have_the_same_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let all = SocketDiag::open().unwrap().listening().unwrap();
        let listed: Vec<_> = all.iter().map(|one| (one.address, one.inode)).collect();
        assert_eq!(reached(&listed, address).len(), 1);
        assert_eq!(reached(&in_table(), address), reached(&listed, address));
    }

    struct Server(Child);

    impl Drop for Server {
        fn drop(&mut self) {
            // Ends its child, too, which reads from the same pipe.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A program that listens, with a child that holds the socket as well.
    fn server() -> (Server, u16) {
        let program = "import os, socket, sys\n\
             s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n\
             child = os.fork()\n\
             if child:\n    print(s.getsockname()[1], flush=True)\n\
             sys.stdin.read()\n";
        let mut command = Command::new("python3");
        command.args(["-c", program]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = Server(command.spawn().unwrap());
        let mut first = String::new();
        let output = server.0.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut first).unwrap();
        (server, first.trim().parse().unwrap())
    }

    #[test]
    fn the_process_that_listens_is_found_with_its_tree() {
        let (server, port) = server();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let found = listening_at(address).unwrap();
        assert_eq!(found.pid, server.0.id() as i32, "not its child: {found:?}");
        assert!(found.also.is_empty(), "{found:?}");
        assert!(found.server.starts_with("python3"), "{found:?}");
        assert!(found.server.ends_with(&format!(":{port}")), "{found:?}");
        assert_eq!(tree(found.pid).len(), 2);
    }

    #[test]
    fn nothing_is_claimed_of_this_process_of_free_ports_and_of_other_machines() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = own.local_addr().unwrap();
        assert_eq!(listening_at(address), None, "it is this process");
        drop(own);
        assert_eq!(listening_at(address), None);
        // Reserved for documentation.
        let far = SocketAddr::from(([192, 0, 2, 1], address.port()));
        assert_eq!(listening_at(far), None);
    }
}
