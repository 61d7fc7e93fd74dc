//! For tests: servers of which one runs.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::Servers;
use crate::protocol::wire::{AwaitServer, StartServer};

/// The name of the one that runs.
pub(super) const NAME: &str = "a";

/// Servers with one server: a shell that runs this script.
pub(super) fn servers(script: &str) -> Servers {
    let mut servers = Servers::new().unwrap();
    servers.make_folder(NAME, None).unwrap();
    let order = StartServer {
        server: NAME.into(),
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        ..StartServer::default()
    };
    servers.start(&order).unwrap();
    servers
}

/// Stops the server. [`Servers::kill_all`] would kill and reap the children of other tests.
pub(super) fn end(mut servers: Servers) {
    servers.stop(NAME, &[], &AtomicBool::new(true));
    servers.folders.clear();
    std::fs::remove_dir_all(servers.folder()).unwrap();
}

/// Waits until it answers with status 200.
pub(super) fn await_at(address: SocketAddr, timeout_ms: u64) -> AwaitServer {
    AwaitServer {
        server: Some(NAME.into()),
        address,
        request: "GET / HTTP/1.1\r\nHost: a\r\n\r\n".into(),
        raw: false,
        status: Some(200),
        contains: None,
        tls: None,
        http: readings::HttpVersion::default(),
        proxy_protocol: false,
        timeout_ms,
    }
}

/// Waits until the server has printed this, such as that it has set its trap.
pub(super) fn until_it_printed(servers: &Servers, text: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    while !servers.folders[NAME].output_since(0).contains(text) {
        assert!(Instant::now() < end, "nothing was printed");
        std::thread::sleep(Duration::from_millis(5));
    }
}
