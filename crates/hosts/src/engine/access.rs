//! How an engine reaches a host.

use std::net::IpAddr;
use std::rc::Rc;

use agent::PipeCommand;
use serde_json::Value;

/// What an engine created for a host. Dropping it releases that.
pub(crate) trait Lease {}

/// How to reach a host.
pub(crate) struct HostAccess {
    pub(crate) command: PipeCommand,
    /// The address by which the engine knows the host.
    pub(crate) address: Option<IpAddr>,
    /// What is held for the host.
    #[expect(dead_code, reason = "dropping it gives it back")]
    pub(crate) lease: Option<Rc<dyn Lease>>,
    /// Its description for `hosts.json`.
    pub(crate) about: Value,
}

impl HostAccess {
    pub(crate) fn of(command: PipeCommand) -> Self {
        Self {
            command,
            address: None,
            lease: None,
            about: Value::Null,
        }
    }
    pub(crate) fn held_by(self, lease: Rc<impl Lease + 'static>) -> Self {
        Self {
            lease: Some(lease),
            ..self
        }
    }
}
