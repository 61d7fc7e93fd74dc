//! For tests: processes that do what they are told, and are killed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

pub(super) struct Killed(pub(super) Child);

impl Killed {
    pub(super) fn pid(&self) -> i32 {
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

/// A process that does nothing.
pub(super) fn idler() -> Killed {
    let mut command = Command::new("sleep");
    command.arg("600").process_group(0);
    Killed(command.spawn().unwrap())
}

/// A shell that does what it is told, a line at a time, and says `done` after each.
pub(super) fn shell() -> Killed {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "while read -r line; do eval \"$line\"; echo done; done",
    ]);
    told(command)
}

/// A process that starts as many children as it is told, at once, and is done when all have ended.
/// It ignores their ends, so the kernel adds what they had to nobody.
pub(super) fn careless_parent() -> Killed {
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
    told(command)
}

fn told(mut command: Command) -> Killed {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null());
    command.process_group(0);
    Killed(command.spawn().unwrap())
}

pub(super) fn tell(shell: &mut Killed, line: &str) {
    writeln!(shell.0.stdin.as_mut().unwrap(), "{line}").unwrap();
    let mut said = String::new();
    let mut output = BufReader::with_capacity(1, shell.0.stdout.as_mut().unwrap());
    output.read_line(&mut said).unwrap();
    assert_eq!(said, "done\n");
}
