//! A program that lies where only its owner can enter, such as root's home.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::common::{Place, array, copy_program};

const EXPERIMENT: &str = r#"title = "a relay"

[servers.backend]
recipe = "origin"
[servers.proxy]
recipe = "balance"
upstreams = ["backend"]

[subjects]
direct = "http://backend/"
proxy = "http://proxy/"

[load]
connections = 2

[design]
blocks = 1
warmup = "50ms"
window = "200ms"
latency_window = "0s"
bottleneck = false
retries = 0
"#;

#[test]
fn servers_of_other_users_run_a_copy_of_a_program_that_only_root_can_reach() {
    let place = Place::new();
    let private = place.path("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    let program = private.join("weigh");
    copy_program(env!("CARGO_BIN_EXE_weigh").as_ref(), &program);
    place.write("x.toml", EXPERIMENT);
    let mut command = Command::new(&program);
    command.args(["run", "x.toml", "--out", "r", "--format", "json"]);
    place.settle(&mut command);
    let done = place.start_command(command).end();
    let document = done.none_failed();
    assert_eq!(array(&document["table"]).len(), 2, "{document}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}
