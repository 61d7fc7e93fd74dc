//! The namespaces of one host.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use net::namespace::{self, Namespace};
use net::os::start_scoped;
use net::tun;

use super::setting::{self, Machine, MakeError};
use agent::route::{DEVICE, Route};
use readings::{Access, HostSpec};

use crate::namespaces::link::router::Addresses;

/// Queue of a TUN device, which drops what does not fit: large enough for a burst of many
/// connections.
const QUEUE_PACKETS: u32 = 20_000;
const NAMES: &str = "/etc/hosts";
/// A folder that every machine has, covered briefly by a tmpfs in the host's own mount namespace.
const SOME_FOLDER: &str = "/tmp";

/// A host's namespaces; they exist as long as these files are open.
pub(crate) struct HostNamespaces {
    /// In order of entering.
    pub(crate) namespaces: Vec<File>,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) warnings: Vec<String>,
}

impl HostNamespaces {
    pub(crate) fn net(&self) -> &File {
        &self.namespaces[0]
    }
}

/// Creates a host's namespaces, with `lo` up, all hosts' names, and the sysctls set.
pub(crate) fn make(
    host: &HostSpec,
    all: &[(String, Addresses)],
    machine: &Machine,
) -> Result<HostNamespaces, MakeError> {
    on_new_thread(|| {
        let failed = |what: &'static str| {
            let name = host.name.clone();
            move |e: io::Error| format!("cannot {what} host `{name}`: {e}")
        };
        let kinds = [Namespace::Net, Namespace::Mount, Namespace::Uts];
        namespace::enter_new(&kinds).map_err(failed("make namespaces for"))?;
        namespace::keep_mounts_inside().map_err(failed("make a mount namespace for"))?;
        namespace::set_host_name(&host.name).map_err(failed("name"))?;
        let mut warnings = Vec::new();
        if let Err(e) = mount_hosts_file(host, all) {
            warnings.push(format!(
                "programs on host `{}` do not know the others by name: {NAMES} cannot be \
                 replaced: {e}",
                host.name
            ));
        }
        bring_up("lo").map_err(failed("bring up `lo` of"))?;
        for (name, value) in &host.settings {
            setting::set(&host.name, name, value, machine)?;
        }
        let settings = setting::recorded(host);
        let namespaces = kinds
            .iter()
            .map(|kind| kind.current())
            .collect::<io::Result<Vec<_>>>()
            .map_err(failed("hold the namespaces of"))?;
        Ok(HostNamespaces {
            namespaces,
            settings,
            warnings,
        })
    })
}

/// Runs `work` on a new thread, since namespaces are per thread.
fn on_new_thread<T: Send>(
    work: impl FnOnce() -> Result<T, MakeError> + Send,
) -> Result<T, MakeError> {
    std::thread::scope(|scope| {
        let thread = start_scoped(scope, "which makes namespaces", work);
        let thread = thread.map_err(|error| MakeError::Failed(error.to_string()))?;
        let panicked = |_| Err(MakeError::Failed("a thread panicked".into()));
        thread.join().unwrap_or_else(panicked)
    })
}

fn bring_up(device: &str) -> io::Result<()> {
    let mut route = Route::open()?;
    let index = route.index(device)?;
    route.up(index)
}

fn names(host: &HostSpec, all: &[(String, Addresses)]) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n".to_string();
    for (name, addresses) in all {
        let address = match host.access {
            Access::External if *name != host.name => addresses.external,
            _ => addresses.internal,
        };
        text.push_str(&format!("{address} {name}\n"));
    }
    text
}

/// Bind-mounts the host's own `/etc/hosts`, a file in memory that is visible nowhere else.
fn mount_hosts_file(host: &HostSpec, all: &[(String, Addresses)]) -> io::Result<()> {
    let folder = Path::new(SOME_FOLDER);
    namespace::cover_with_memory(folder)?;
    let file = folder.join("hosts");
    let shown = fs::write(&file, names(host, all))
        .and_then(|()| namespace::show_in_place_of(&file, Path::new(NAMES)));
    namespace::uncover(folder)?;
    shown
}

/// Adds a host's TUN device; the file reads and writes its packets.
pub(crate) fn add_tun(host: &HostNamespaces, addresses: Addresses) -> Result<File, io::Error> {
    in_network_of(host, move || {
        let file = tun::open_tun(DEVICE)?;
        // Links carry IPv4 only. Fails on a kernel without IPv6.
        let _ = fs::write(
            setting::path_of(&format!("net.ipv6.conf.{DEVICE}.disable_ipv6")),
            "1",
        );
        let mut route = Route::open()?;
        let index = route.index(DEVICE)?;
        route.queue(index, QUEUE_PACKETS)?;
        route.address(index, addresses.internal, 32)?;
        route.up(index)?;
        route.default_route(index)?;
        Ok(file)
    })
}

/// Configures the host's end of a veth pair.
pub(crate) fn set_up_pair(
    host: &HostNamespaces,
    addresses: Addresses,
    shape: impl FnOnce(&mut Route, u32) -> io::Result<()> + Send,
) -> io::Result<()> {
    in_network_of(host, move || {
        let mut route = Route::open()?;
        let index = route.index(DEVICE)?;
        route.address(index, addresses.internal, 24)?;
        shape(&mut route, index)?;
        route.up(index)
    })
}

/// Changes the host's end of its veth pair.
pub(crate) fn change_pair(
    host: &HostNamespaces,
    change: impl FnOnce(&mut Route, u32) -> io::Result<()> + Send,
) -> io::Result<()> {
    in_network_of(host, move || {
        let mut route = Route::open()?;
        let index = route.index(DEVICE)?;
        change(&mut route, index)
    })
}

/// Runs `work` on a thread in the host's network namespace.
fn in_network_of<T: Send>(
    host: &HostNamespaces,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let namespace = host.net();
    std::thread::scope(|scope| {
        let thread = start_scoped(scope, "in the network of a host", move || {
            namespace::enter(namespace)?;
            work()
        })?;
        let panicked = |_| Err(io::Error::other("a thread panicked"));
        thread.join().unwrap_or_else(panicked)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses;

    #[test]
    fn names_resolve_to_the_addresses_of_the_hosts_access() {
        let all: Vec<_> = ["one", "two"]
            .iter()
            .enumerate()
            .map(|(number, name)| (name.to_string(), addresses(number)))
            .collect();
        let host = |access| HostSpec {
            name: "two".into(),
            access,
            ..HostSpec::default()
        };
        let internal = names(&host(Access::Internal), &all);
        assert!(internal.ends_with("\n10.77.0.1 one\n10.77.0.2 two\n"));
        let external = names(&host(Access::External), &all);
        assert!(external.ends_with("\n198.18.77.1 one\n10.77.0.2 two\n"));
    }
}
