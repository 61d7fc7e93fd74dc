//! A program that lies where only its owner can enter, such as root's home.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::common::{Place, array, copy_program};

#[test]
fn servers_of_other_users_run_a_copy_of_a_program_that_only_root_can_reach() {
    let place = Place::new();
    let private = place.path("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    let program = private.join("weigh");
    copy_program(env!("CARGO_BIN_EXE_weigh").as_ref(), &program);
    place.experiment(
        "[servers.backend]\nrecipe = \"origin\"\n\
         [servers.proxy]\nrecipe = \"balance\"\nupstreams = [\"backend\"]\n\
         [subjects]\ndirect = \"http://backend/\"\nproxy = \"http://proxy/\"\n\
         [load]\nconnections = 2\n",
    );
    let mut command = Command::new(&program);
    command.args(["run", "x.toml", "--out", "r", "--format", "json"]);
    place.settle(&mut command);
    let done = place.start_command(command).end();
    let document = done.none_failed();
    assert_eq!(array(&document["table"]).len(), 2, "{document}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}
