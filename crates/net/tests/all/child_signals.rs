//! The signals of child processes.
#![allow(unsafe_code)]

use std::process::Command;

use net::os::{ChildSetup, set_up_child};

#[test]
fn a_child_with_a_session_of_its_own_ignores_no_signal_that_its_parent_ignores() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: takes numbers only, and no test of this program relies on these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let ignored = |own_session| {
        let mut command = Command::new("/bin/cat");
        command.arg("/proc/self/status");
        let setup = ChildSetup {
            own_session,
            ..ChildSetup::default()
        };
        set_up_child(&mut command, setup);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let field = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        u64::from_str_radix(field.unwrap().trim(), 16).unwrap() & 0b111
    };
    // Bit 0 is signal 1.
    assert_eq!(ignored(false), 0b111);
    assert_eq!(ignored(true), 0);
}
