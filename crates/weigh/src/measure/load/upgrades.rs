//! Upgrades to another protocol, after which the load closes the connection.

use readings::LoadReading;

/// A note where answers are upgrades: what then follows on a connection is not measured.
pub(super) fn note(reading: &LoadReading) -> Option<&'static str> {
    verdict::is_of_handshakes(reading).then_some(
        "every answer was an upgrade (status 101), after which the connection is closed: these are \
         handshakes per second and their latency, not messages over the upgraded connection",
    )
}
