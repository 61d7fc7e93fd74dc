//! The link of a host that is a namespace, as its own agent switches it.

use std::io;

use crate::route::DEVICE;
use crate::route::Route;

/// Takes the host's link down, or up again. `routed` says that everything goes into it: that route
/// goes down with it, where the one to its own network comes back by itself.
pub(super) fn set(up: bool, routed: bool) -> io::Result<()> {
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
