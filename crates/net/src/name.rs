//! Which address of a name a load goes to.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long one address of several may take to accept a connection.
const LIMIT: Duration = Duration::from_secs(1);

/// How one address of several is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressSelection {
    /// The first that accepts a TCP connection from here.
    FirstAccepting,
    /// The first, because QUIC runs over UDP: no connection is accepted before a handshake.
    FirstForQuic,
    /// The first, because the load comes from another host, which may reach others than this one.
    FirstFromElsewhere,
}

/// The address of a name.
#[derive(Debug)]
pub struct ChosenAddress {
    pub address: SocketAddr,
    /// Number of addresses that the name has.
    count: usize,
    /// The addresses before it that did not accept a connection.
    refused: Vec<(SocketAddr, io::Error)>,
    selection: AddressSelection,
}

/// Why a name has no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    #[error("cannot be resolved: {0}")]
    Unresolved(io::Error),
    #[error("has no address")]
    NoAddress,
    /// It has several addresses, and none accepts a connection.
    #[error("none of its {} addresses accepts a connection: {}", .0.len(), Refused(.0))]
    NoneAccepts(Vec<(SocketAddr, io::Error)>),
}

/// Addresses, each with the reason against it.
struct Refused<'a>(&'a [(SocketAddr, io::Error)]);

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (address, why)) in self.0.iter().enumerate() {
            let between = if number == 0 { "" } else { "; " };
            write!(f, "{between}{address}: {why}")?;
        }
        Ok(())
    }
}

/// Resolves `NAME:PORT`, and chooses one of the addresses.
///
/// # Errors
/// When there is none, or several of which none accepts a connection.
pub fn resolve(name: &str, selection: AddressSelection) -> Result<ChosenAddress, NameError> {
    let found = name.to_socket_addrs().map_err(NameError::Unresolved)?;
    choose(found, selection)
}

/// Chooses one of several addresses. A single one is not tried: whoever connects to it finds out.
fn choose(
    found: impl IntoIterator<Item = SocketAddr>,
    selection: AddressSelection,
) -> Result<ChosenAddress, NameError> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let count = all.len();
    let chosen = |address, refused| ChosenAddress {
        address,
        count,
        refused,
        selection,
    };
    let first = *all.first().ok_or(NameError::NoAddress)?;
    if count == 1 || selection != AddressSelection::FirstAccepting {
        return Ok(chosen(first, Vec::new()));
    }
    let mut refused = Vec::new();
    for address in all {
        match TcpStream::connect_timeout(&address, LIMIT) {
            Ok(_) => return Ok(chosen(address, refused)),
            Err(why) => refused.push((address, why)),
        }
    }
    Err(NameError::NoneAccepts(refused))
}

impl ChosenAddress {
    /// Whether the name has other addresses too.
    pub fn is_of_several(&self) -> bool {
        self.count > 1
    }

    /// What to say of the choice; `None` if there was none.
    pub fn note(&self, name: &str) -> Option<String> {
        let Self { address, count, .. } = self;
        let why = match self.selection {
            AddressSelection::FirstAccepting if self.refused.is_empty() => {
                "the first, which accepts a connection".to_owned()
            }
            AddressSelection::FirstAccepting => format!(
                "the first that accepts a connection ({})",
                Refused(&self.refused)
            ),
            AddressSelection::FirstForQuic => {
                "the first; none was tried, because HTTP/3 runs over UDP".to_owned()
            }
            AddressSelection::FirstFromElsewhere => {
                "the first; none was tried, because the load comes from another host".to_owned()
            }
        };
        self.is_of_several()
            .then(|| format!("{name} has {count} addresses; the load goes to {address}, {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A port of 127.0.0.1 on which nothing listens.
    fn closed() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    }

    #[test]
    fn of_several_addresses_the_first_that_accepts_is_chosen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let v6_closed = SocketAddr::new("::1".parse().unwrap(), closed().port());
        let chosen = choose(
            [v6_closed, open, closed()],
            AddressSelection::FirstAccepting,
        )
        .unwrap();
        assert_eq!(chosen.address, open);
        let note = chosen.note("both.test:80").unwrap();
        let start = format!(
            "both.test:80 has 3 addresses; the load goes to {open}, the first that accepts a \
             connection ({v6_closed}: "
        );
        assert!(note.starts_with(&start), "{note}");
        let first = choose([open, v6_closed], AddressSelection::FirstAccepting).unwrap();
        assert_eq!(first.address, open);
        assert!(first.note("n").unwrap().ends_with("accepts a connection"));
        // IPv6 may be switched off.
        if let Ok(v6) = TcpListener::bind("[::1]:0") {
            let v6 = v6.local_addr().unwrap();
            let chosen = choose([closed(), v6, open], AddressSelection::FirstAccepting).unwrap();
            assert_eq!(chosen.address, v6);
        }
    }

    #[test]
    fn if_no_address_accepts_each_is_named_with_its_reason() {
        let (one, other) = (closed(), closed());
        let error = choose([one, other], AddressSelection::FirstAccepting).unwrap_err();
        let words = error.to_string();
        for part in [
            "none of its 2 addresses accepts",
            &format!("{one}: Connection refused"),
            &format!("; {other}: Connection refused"),
        ] {
            assert!(words.contains(part), "{words}");
        }
        let none = choose([], AddressSelection::FirstAccepting).unwrap_err();
        assert!(matches!(none, NameError::NoAddress), "{none}");
    }

    #[test]
    fn a_single_address_is_not_tried_and_neither_are_those_of_quic() {
        let (one, other) = (closed(), closed());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let open = listener.local_addr().unwrap();
        let single = choose([one, one], AddressSelection::FirstAccepting).unwrap();
        assert_eq!((single.address, single.note("n")), (one, None));
        assert_eq!(
            choose([open], AddressSelection::FirstAccepting)
                .unwrap()
                .address,
            open
        );
        for selection in [
            AddressSelection::FirstForQuic,
            AddressSelection::FirstFromElsewhere,
        ] {
            let first = choose([other, open], selection).unwrap();
            assert_eq!(first.address, other);
            assert!(first.note("n").unwrap().contains("none was tried"));
        }
        assert!(listener.accept().is_err(), "a connection was opened");
    }

    #[test]
    fn a_name_that_is_none_is_not_resolved() {
        let resolved = resolve("127.0.0.1:81", AddressSelection::FirstAccepting).unwrap();
        assert_eq!(resolved.address.to_string(), "127.0.0.1:81");
        let error = resolve("no port", AddressSelection::FirstAccepting).unwrap_err();
        assert!(error.to_string().starts_with("cannot be resolved: "));
    }
}
