//! Ports of this host's network namespace: the range of outgoing ones, and which are taken.

use std::fs;

use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::socket_diag::SocketDiag;
use crate::kernel::tcp_table::{self, CLOSE_WAIT, ESTABLISHED, TIME_WAIT};

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
        let sockets = namespace.tcp_sockets().unwrap_or_default().into_iter();
        let waiting = sockets.filter(|one| one.state == TIME_WAIT);
        waiting.map(|one| one.local.port()).collect()
    });
    ports.len() as u64
}

/// Connections of this network namespace that are open at a local port: ESTABLISHED or CLOSE_WAIT.
pub(crate) fn connections_at(port: u16) -> Option<u64> {
    let listed = SocketDiag::open().and_then(|mut diag| diag.open_at(port).ok());
    listed.or_else(|| {
        let sockets = tcp_table::sockets("self")?.into_iter();
        let open = sockets.filter(|one| {
            one.local.port() == port && [ESTABLISHED, CLOSE_WAIT].contains(&one.state)
        });
        Some(open.count() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert!(port_range().is_some());
        assert_eq!(parse_port_range("32768\t60999\n"), Some((32_768, 60_999)));
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
            let sockets = tcp_table::sockets("self").unwrap().into_iter();
            let own = sockets.filter(|one| one.local.port() == port && one.state == TIME_WAIT);
            own.count()
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
