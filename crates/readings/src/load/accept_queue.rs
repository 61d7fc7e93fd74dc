//! Accept queues that connections found full.

use serde::{Deserialize, Serialize};

/// An accept queue that was full when a connection arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptQueue {
    /// The server whose queue it is; absent where the kernel counted it for the network namespace
    /// and did not tell the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How many connections may wait in it: the backlog of `listen(2)`, limited by
    /// `net.core.somaxconn`. Absent where the socket is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u32>,
    /// How often it was full when a connection arrived. A SYN that is sent again counts again.
    pub full: u64,
}
