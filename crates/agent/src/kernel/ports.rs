//! Ports of this host's network namespace: the range of outgoing ones, and which are taken.

use std::fs;

use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::socket_diag::SocketDiag;

const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The first and the last port of outgoing connections, in the network namespace of this thread.
pub fn port_range() -> Option<(u16, u16)> {
    parse_port_range(&fs::read_to_string(PORT_RANGE).ok()?)
}

/// `net.ipv4.tcp_tw_reuse`: whether a port in TIME_WAIT may be used again.
pub fn port_reuse() -> Option<String> {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").ok()
}

/// The first and the last port of a range such as `32768 60999`.
pub fn parse_port_range(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace();
    let low = words.next()?.parse().ok()?;
    let high = words.next()?.parse().ok()?;
    (high >= low).then_some((low, high))
}

/// Another range of outgoing ports, until this is dropped.
pub(crate) struct PortRangeGuard {
    before: String,
}

impl PortRangeGuard {
    pub(crate) fn set(low: u16, high: u16) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("{PORT_RANGE} cannot be changed: {e}");
        let before = fs::read_to_string(PORT_RANGE).map_err(failed)?;
        fs::write(PORT_RANGE, format!("{low} {high}")).map_err(failed)?;
        Ok(Self { before })
    }
}

impl Drop for PortRangeGuard {
    fn drop(&mut self) {
        let _ = fs::write(PORT_RANGE, self.before.trim());
    }
}

/// How many ports connections in TIME_WAIT hold.
pub(crate) fn ports_waiting(namespace: &Namespace) -> u64 {
    let listed = namespace.open(|| SocketDiag::open()?.ports_in_time_wait().ok());
    let ports = listed.unwrap_or_else(|| {
        let texts = ["tcp", "tcp6"].map(|name| namespace.read(name).unwrap_or_default());
        let sockets = texts
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(socket);
        let waiting = sockets.filter(|(_, state)| *state == TIME_WAIT);
        waiting.map(|(port, _)| port).collect()
    });
    ports.len() as u64
}

/// Connections of this network namespace that are open at a local port: ESTABLISHED or CLOSE_WAIT.
pub(crate) fn connections_at(port: u16) -> Option<u64> {
    let listed = SocketDiag::open().and_then(|mut diag| diag.open_at(port).ok());
    listed.or_else(|| {
        let own = fs::read_to_string("/proc/self/net/tcp").ok()?;
        // Without IPv6 there is no such file.
        let own6 = fs::read_to_string("/proc/self/net/tcp6").unwrap_or_default();
        Some(open_in(&own, port) + open_in(&own6, port))
    })
}

/// How many sockets of a table such as `/proc/net/tcp` are open at a local port.
fn open_in(table: &str, port: u16) -> u64 {
    let sockets = table.lines().filter_map(socket);
    let open = sockets.filter(|(at, state)| *at == port && OPEN.contains(state));
    open.count() as u64
}

const TIME_WAIT: &str = "06";
/// ESTABLISHED and CLOSE_WAIT.
const OPEN: [&str; 2] = ["01", "08"];

/// A line of `/proc/net/tcp`, `0: 0100007F:8CA0 0100007F:0050 06 ...`: number, local and remote
/// address, state (as in the kernel's `net/tcp_states.h`). Returns local port and state.
fn socket(line: &str) -> Option<(u16, &str)> {
    let mut words = line.split_whitespace().skip(1);
    let (_, port) = words.next()?.rsplit_once(':')?;
    let state = words.nth(1)?;
    Some((u16::from_str_radix(port, 16).ok()?, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert!(port_range().is_some());
        assert_eq!(parse_port_range("32768\t60999\n"), Some((32_768, 60_999)));
        let line = "   7: 0100007F:8CA0 0100007F:0050 06 00000000:00000000 03:00000A";
        assert_eq!(socket(line), Some((36_000, TIME_WAIT)));
        assert_eq!(socket("  sl  local_address rem_address   st"), None);
        let states = ["06", "01", "08"].map(|state| line.replace(" 06 ", &format!(" {state} ")));
        let other = states[1].replace(":8CA0", ":8CA1");
        let table = [&states[..], &[other]].concat().join("\n");
        assert_eq!(open_in(&table, 36_000), 2);
    }

    #[test]
    fn the_side_that_closes_first_holds_the_port() {
        use std::io::Read as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let open = || {
            let one = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            (one, listener.accept().unwrap().0)
        };
        let waiting = || {
            let text = fs::read_to_string("/proc/self/net/tcp").unwrap();
            let sockets = text.lines().filter_map(socket);
            sockets.filter(|one| *one == (port, TIME_WAIT)).count()
        };
        let mut both: Vec<_> = (0..3).map(|_| open()).collect();
        assert_eq!(waiting(), 0);
        assert!(connections_at(port).unwrap() >= 3);
        while let Some((mut one, accepted)) = both.pop() {
            drop(accepted);
            assert_eq!(one.read(&mut [0]).unwrap(), 0);
        }
        while waiting() < 3 {
            std::thread::yield_now();
        }
        // Other programs' ports wait here as well.
        assert!(ports_waiting(&Namespace::all(Vec::new(), &[])[0]) >= 1);
    }
}
