//! For tests: child processes and folders that are gone when they are dropped.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

pub(crate) struct Killed(pub(crate) Child);

impl Killed {
    pub(crate) fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // Its process group: what it has started goes with it.
        let _ = net::os::kill(-self.pid(), 9);
        let _ = self.0.wait();
    }
}

/// A process that always wants a CPU.
pub(crate) fn busy() -> Killed {
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do :; done"]).process_group(0);
    Killed(command.spawn().unwrap())
}

/// A process that does nothing.
pub(crate) fn idler() -> Killed {
    let mut command = Command::new("sleep");
    command.arg("600").process_group(0);
    Killed(command.spawn().unwrap())
}

/// A shell that runs each line that [`tell`] sends.
pub(crate) fn shell() -> Killed {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "while read -r line; do eval \"$line\"; echo done; done",
    ]);
    with_pipes(command)
}

/// A process that starts as many children at once as [`tell`] says, and waits for all of them. It
/// ignores SIGCHLD, so the kernel discards their usage.
pub(crate) fn careless_parent() -> Killed {
    let mut command = Command::new("perl");
    command.args([
        "-e",
        r#"$| = 1; $SIG{CHLD} = "IGNORE";
           while (<STDIN>) {
               for (1 .. $_) { fork or exec "true" }
               wait;
               print "done\n";
           }"#,
    ]);
    with_pipes(command)
}

fn with_pipes(mut command: Command) -> Killed {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null());
    command.process_group(0);
    Killed(command.spawn().unwrap())
}

/// Sends a line and waits until it was carried out.
pub(crate) fn tell(shell: &mut Killed, line: &str) {
    writeln!(shell.0.stdin.as_mut().unwrap(), "{line}").unwrap();
    let mut said = String::new();
    let mut output = BufReader::with_capacity(1, shell.0.stdout.as_mut().unwrap());
    output.read_line(&mut said).unwrap();
    assert_eq!(said, "done\n");
}

/// Waits until a process waits for something.
pub(crate) fn wait_until_asleep(process: &Killed) {
    let path = format!("/proc/{}/stat", process.pid());
    for _ in 0..10_000 {
        let stat = std::fs::read_to_string(&path).unwrap();
        // The state follows the name, which is in parentheses.
        if stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('S'))
        {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("it never waits");
}

/// An empty folder.
pub(crate) struct TemporaryFolder(pub(crate) PathBuf);

impl TemporaryFolder {
    pub(crate) fn new() -> Self {
        let name = format!("weigh-test-{:x}", fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// How much is in it.
    pub(crate) fn count(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
