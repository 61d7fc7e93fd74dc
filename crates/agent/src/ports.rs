//! Another range of ports for outgoing connections, for a time: of a host that has its own.

use std::fs;

use super::probe::PORT_RANGE;

/// A range that holds until this is dropped.
pub(super) struct Ports {
    before: String,
}

impl Ports {
    /// Sets the range of this network namespace.
    pub(super) fn set(low: u16, high: u16) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("{PORT_RANGE} cannot be changed: {e}");
        let before = fs::read_to_string(PORT_RANGE).map_err(failed)?;
        fs::write(PORT_RANGE, format!("{low} {high}")).map_err(failed)?;
        Ok(Self { before })
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        let _ = fs::write(PORT_RANGE, self.before.trim());
    }
}
