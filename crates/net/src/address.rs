//! Where a connection goes.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The kernel's form of an address, and its length in bytes.
pub(crate) type RawAddress = (libc::sockaddr_storage, libc::socklen_t);

/// An address to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// A Unix stream socket.
    Unix(UnixPath),
}

/// Text that is no address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// It is neither `IP:PORT` nor `unix:PATH`.
    #[error("expected IP:PORT or unix:PATH, found `{0}`")]
    Form(String),
    /// It is `unix:PATH`, and no Unix socket can have that path.
    #[error(transparent)]
    Path(#[from] UnixPathError),
}

/// The path of a Unix socket, short enough for the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnixPath(PathBuf);

/// A path that no Unix socket can have.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the path of a Unix socket has 1 to {max} bytes, none of them zero; `{path}` has {len}")]
pub struct UnixPathError {
    path: String,
    len: usize,
    max: usize,
}

/// Bytes of a Unix socket's path, without the zero at its end.
const PATH_BYTES_MAX: usize = std::mem::size_of::<libc::sockaddr_un>()
    - std::mem::offset_of!(libc::sockaddr_un, sun_path)
    - 1;

impl UnixPath {
    /// Takes a path.
    ///
    /// # Errors
    /// When it is empty, too long for the kernel (107 bytes), or has a zero byte.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, UnixPathError> {
        let path = path.into();
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() || bytes.len() > PATH_BYTES_MAX || bytes.contains(&0) {
            return Err(UnixPathError {
                path: path.display().to_string(),
                len: bytes.len(),
                max: PATH_BYTES_MAX,
            });
        }
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Address {
    /// The IP address and port, if it has one.
    pub fn inet(&self) -> Option<SocketAddr> {
        match self {
            Address::Inet(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    pub(crate) fn family(&self) -> i32 {
        match self {
            Address::Inet(SocketAddr::V4(_)) => libc::AF_INET,
            Address::Inet(SocketAddr::V6(_)) => libc::AF_INET6,
            Address::Unix(_) => libc::AF_UNIX,
        }
    }

    pub(crate) fn raw(&self) -> RawAddress {
        match self {
            Address::Inet(address) => inet(address),
            Address::Unix(path) => unix(path),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Inet(address)
    }
}

impl From<UnixPath> for Address {
    fn from(path: UnixPath) -> Self {
        Address::Unix(path)
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.strip_prefix("unix:") {
            Some(path) => Ok(UnixPath::new(path)?.into()),
            None => text
                .parse()
                .map(Address::Inet)
                .map_err(|_| AddressError::Form(text)),
        }
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.0.display()),
        }
    }
}

/// The kernel's form of an IP address and port.
pub(crate) fn inet(address: &SocketAddr) -> RawAddress {
    // SAFETY: a sockaddr_storage is plain bytes, all zero is valid.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let len = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: a sockaddr_storage is large and aligned enough for every address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            std::mem::size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            std::mem::size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, len as libc::socklen_t)
}

/// The IP address and port in the kernel's form, if it is one.
pub(crate) fn from_raw(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is what the storage holds.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), u16::from_be(raw.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let port = u16::from_be(raw.sin6_port);
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}

fn unix(path: &UnixPath) -> RawAddress {
    // SAFETY: a sockaddr_storage is plain bytes, all zero is valid.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let bytes = path.0.as_os_str().as_bytes();
    let at = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    // SAFETY: a sockaddr_storage is large and aligned enough for every address, and the path was
    // found short enough when it was made.
    unsafe {
        let raw = (&raw mut storage).cast::<libc::sockaddr_un>();
        (*raw).sun_family = libc::AF_UNIX as libc::sa_family_t;
        let to = (&raw mut storage).cast::<u8>().add(at);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
    }
    (storage, (at + bytes.len() + 1) as libc::socklen_t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_kernel_cannot_hold_is_refused() {
        assert!(UnixPath::new("").is_err());
        assert!(UnixPath::new("/tmp/a\0b").is_err());
        assert!(UnixPath::new("a".repeat(107)).is_ok());
        let error = UnixPath::new("a".repeat(108)).unwrap_err().to_string();
        assert!(error.contains("1 to 107 bytes"), "{error}");
        let unix = Address::from(UnixPath::new("/run/x").unwrap());
        assert_eq!(unix.to_string(), "unix:/run/x");
    }
}
