//! The link of a host that is a network namespace, set up and down by the host's agent.

use std::io;

use crate::kernel::netlink::route::{DEVICE, Route};

/// Sets the host's link up or down. `routed` says that it has the default route, which is lost when
/// it goes down; the route to its own network comes back by itself.
pub(crate) fn set(up: bool, routed: bool) -> io::Result<()> {
    let mut route = Route::open()?;
    let index = route.index(DEVICE)?;
    if !up {
        return route.down(index);
    }
    route.up(index)?;
    match routed {
        true => match route.default_route(index) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => Ok(()),
        },
        false => Ok(()),
    }
}
