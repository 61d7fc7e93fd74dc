//! The namespaces of one host.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use net::namespace::{self, Namespace};
use net::tun;

use super::setting::{self, Machine, MakeError};
use agent::route::DEVICE;
use agent::route::Route;
use readings::{Access, HostSpec};

use crate::link::router::Addresses;

/// A TUN device drops what does not fit into its queue: a burst of many connections shall fit.
const QUEUE_PACKETS: u32 = 20_000;
/// Where programs look names up.
const NAMES: &str = "/etc/hosts";
/// A folder that every machine has. For a moment, and in the host's own mount namespace only,
/// something else is seen in its place.
const SOME_FOLDER: &str = "/tmp";

/// A host's namespaces; they live as long as these files are open.
pub(super) struct Inside {
    /// In the order in which they are entered.
    pub(super) namespaces: Vec<File>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
}

impl Inside {
    /// The namespace of the network.
    pub(super) fn net(&self) -> &File {
        &self.namespaces[0]
    }
}

/// Makes a host's namespaces, with `lo` up, names of all hosts, and the kernel's settings.
pub(super) fn make(
    host: &HostSpec,
    all: &[(String, Addresses)],
    machine: &Machine,
) -> Result<Inside, MakeError> {
    within(|| {
        let failed = |what: &'static str| {
            let name = host.name.clone();
            move |e: io::Error| format!("cannot {what} host `{name}`: {e}")
        };
        let kinds = [Namespace::Net, Namespace::Mount, Namespace::Uts];
        namespace::enter_new(&kinds).map_err(failed("make namespaces for"))?;
        namespace::keep_mounts_inside().map_err(failed("make a mount namespace for"))?;
        namespace::set_host_name(&host.name).map_err(failed("name"))?;
        let mut warnings = Vec::new();
        if let Err(e) = show_names(host, all) {
            warnings.push(format!(
                "programs on host `{}` do not know the others by name: {NAMES} cannot be \
                 replaced: {e}",
                host.name
            ));
        }
        switch_on("lo").map_err(failed("switch on `lo` of"))?;
        for (name, value) in &host.settings {
            setting::set(&host.name, name, value, machine)?;
        }
        let settings = setting::recorded(host);
        let namespaces = kinds
            .iter()
            .map(|kind| kind.current())
            .collect::<io::Result<Vec<_>>>()
            .map_err(failed("hold the namespaces of"))?;
        Ok(Inside {
            namespaces,
            settings,
            warnings,
        })
    })
}

/// Does something on a thread of its own: entering a namespace concerns the thread alone.
fn within<T: Send>(work: impl FnOnce() -> Result<T, MakeError> + Send) -> Result<T, MakeError> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(MakeError::Failed("a thread broke off".into())))
}

fn switch_on(device: &str) -> io::Result<()> {
    let mut route = Route::open()?;
    let index = route.index(device)?;
    route.up(index)
}

/// The text of `/etc/hosts` as a host sees it.
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

/// Shows the host's own `/etc/hosts`. The file is in memory and has no name anywhere else.
fn show_names(host: &HostSpec, all: &[(String, Addresses)]) -> io::Result<()> {
    let folder = Path::new(SOME_FOLDER);
    namespace::cover_with_memory(folder)?;
    let file = folder.join("hosts");
    let shown = fs::write(&file, names(host, all))
        .and_then(|()| namespace::show_in_place_of(&file, Path::new(NAMES)));
    namespace::uncover(folder)?;
    shown
}

/// Gives a host its TUN device; the file is the other end of it.
pub(super) fn add_tun(host: &Inside, addresses: Addresses) -> Result<File, io::Error> {
    on_the_inside(host, move || {
        let file = tun::open_tun(DEVICE)?;
        // The links carry IPv4 only. A kernel without IPv6 has no such file.
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

/// Sets up the host's end of a pair of virtual Ethernet devices.
pub(super) fn set_up_pair(
    host: &Inside,
    addresses: Addresses,
    shape: impl FnOnce(&mut Route, u32) -> io::Result<()> + Send,
) -> io::Result<()> {
    on_the_inside(host, move || {
        let mut route = Route::open()?;
        let index = route.index(DEVICE)?;
        route.address(index, addresses.internal, 24)?;
        shape(&mut route, index)?;
        route.up(index)
    })
}

/// Changes the host's end of such a pair.
pub(super) fn change_pair(
    host: &Inside,
    change: impl FnOnce(&mut Route, u32) -> io::Result<()> + Send,
) -> io::Result<()> {
    on_the_inside(host, move || {
        let mut route = Route::open()?;
        let index = route.index(DEVICE)?;
        change(&mut route, index)
    })
}

/// Does something on a thread in the host's network namespace.
fn on_the_inside<T: Send>(
    host: &Inside,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let namespace = host.net();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            namespace::enter(namespace)?;
            work()
        });
        thread.join()
    })
    .unwrap_or_else(|_| Err(io::Error::other("a thread broke off")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses;

    #[test]
    fn a_host_knows_the_others_by_the_addresses_that_it_reaches_them_by() {
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
        let inside = names(&host(Access::Internal), &all);
        assert!(inside.ends_with("\n10.77.0.1 one\n10.77.0.2 two\n"));
        let outside = names(&host(Access::External), &all);
        assert!(outside.ends_with("\n198.18.77.1 one\n10.77.0.2 two\n"));
    }
}
