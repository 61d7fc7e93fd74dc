//! How servers are stopped.

use super::*;
use crate::protocol::wire::StartServer;

const TERM: i32 = 15;

#[test]
fn a_server_that_ended_while_others_were_waited_for_was_not_killed() {
    let mut servers = Servers::new().unwrap();
    servers.make_folder("a", None).unwrap();
    let order = StartServer {
        server: "a".into(),
        command: ["/bin/sleep", "600"].map(str::to_owned).to_vec(),
        ..StartServer::default()
    };
    let pid = servers.start(&order).unwrap();
    servers.begin_stop("a", TERM);
    // A zombie until its status is asked for: /proc has no command line of it then.
    let end = Instant::now() + Duration::from_secs(10);
    let command_line = || std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    while !command_line().is_empty() {
        assert!(Instant::now() < end, "it goes on");
        sleep(Duration::from_millis(5));
    }
    // Its time has gone by.
    let signals = [(TERM, Duration::ZERO)];
    let stopped = servers.stop("a", &signals, &AtomicBool::new(false));
    assert_eq!(stopped, Some((false, false)));
    let _ = std::fs::remove_dir_all(servers.folder());
}
