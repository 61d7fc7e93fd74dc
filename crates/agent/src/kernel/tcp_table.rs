//! TCP sockets as `/proc/net/tcp` lists them, where sock_diag does not.

use std::fs;
use std::net::{IpAddr, SocketAddr};

// States, as in the kernel's `net/tcp_states.h`.
pub(crate) const ESTABLISHED: u8 = 1;
pub(crate) const TIME_WAIT: u8 = 6;
pub(crate) const CLOSE_WAIT: u8 = 8;
pub(crate) const LISTEN: u8 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpSocket {
    pub(crate) local: SocketAddr,
    pub(crate) state: u8,
    pub(crate) inode: u64,
}

/// The sockets of the network namespace of a process, which may be `self`.
pub(crate) fn sockets(process: &str) -> Option<Vec<TcpSocket>> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}"));
    // Without IPv6 there is no second file.
    let texts = [read("tcp").ok()?, read("tcp6").unwrap_or_default()];
    let lines = texts.iter().flat_map(|text| text.lines());
    Some(lines.filter_map(parse).collect())
}

/// A line has number, local and remote address, state, and after five others the inode.
fn parse(line: &str) -> Option<TcpSocket> {
    let mut fields = line.split_whitespace().skip(1);
    let (ip, port) = fields.next()?.split_once(':')?;
    Some(TcpSocket {
        local: SocketAddr::new(parse_ip(ip)?, u16::from_str_radix(port, 16).ok()?),
        state: u8::from_str_radix(fields.nth(1)?, 16).ok()?,
        inode: fields.nth(5)?.parse().ok()?,
    })
}

/// 32-bit words in hexadecimal, each in the machine's byte order.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(8 * at..8 * at + 8)?, 16).ok();
    match text.len() {
        8 => Some(word(0)?.to_ne_bytes().into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].map(u32::to_ne_bytes);
            let octets: [u8; 16] = words.concat().try_into().ok()?;
            Some(octets.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_kernel_are_read() {
        let socket = |local: &str, state: &str| {
            parse(&format!(
                "   7: {local} 0100007F:0050 {state} 00000000:00000000 00:00000000 00000000     0   \
                 0 4711 1 00000000d192f3a7 100 0 0 10 0\n"
            ))
        };
        let read = |local: &str| socket(local, "06").unwrap().local.to_string();
        assert_eq!(read("0100007F:8CA0"), "127.0.0.1:36000");
        assert_eq!(read(&format!("{:032}:0050", 0)), "[::]:80");
        assert_eq!(
            read("0000000000000000FFFF00000100007F:0050"),
            "[::ffff:127.0.0.1]:80"
        );
        let found = socket("0100007F:0050", "0A").unwrap();
        assert_eq!((found.state, found.inode), (LISTEN, 4711));
        assert_eq!(socket("0100:0050", "0A"), None);
        assert_eq!(parse("  sl  local_address rem_address   st tx_queue"), None);
    }
}
