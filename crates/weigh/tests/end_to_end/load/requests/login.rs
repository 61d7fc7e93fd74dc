//! Users of an application that others have written: a login whose cookie and token the next requests
//! carry.

use std::net::TcpStream;
use std::process::Command;

use crate::common::{
    LIMIT, Place, TERM, array, counts, free_port, is_installed, is_left_out, load, no_errors, skip,
    texts, wait_until,
};

const PROGRAM: &str = "jupyter-server";
/// Of `open sesame`.
const HASHED: &str =
    "sha256:722d5e804a34:d8b98c932fef807ca2a16c711470ebd89bbfbbab1ec905f1ef2414f52cdaedcb";

/// The example of the documentation.
const STEPS: &str = include_str!("../../../../../../docs/src/reference/jupyter.toml");

#[test]
fn two_hundred_users_log_in_to_a_notebook_server() {
    if !is_installed(PROGRAM) {
        if !is_left_out(PROGRAM) {
            skip("jupyter-server is not installed: apt-get install jupyter-server");
        }
        return;
    }
    let place = Place::new();
    let (port, root) = (free_port(), place.path("notes"));
    std::fs::create_dir(&root).unwrap();
    let config = format!(
        "c = get_config()\nc.ServerApp.ip = '127.0.0.1'\nc.ServerApp.port = {port}\n\
         c.ServerApp.port_retries = 0\nc.ServerApp.open_browser = False\n\
         c.ServerApp.allow_root = True\nc.ServerApp.password = '{HASHED}'\n\
         c.ServerApp.root_dir = {root:?}\nc.ServerApp.log_level = 'WARN'\n"
    );
    let config = place.write("config.py", &config);
    let mut command = Command::new(PROGRAM);
    place.settle(command.arg(format!("--config={}", config.display())));
    let mut server = place.start_command(command);
    server.until("it listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let rows: String = (0..200).map(|at| format!("user {at}\n")).collect();
    place.write("account.csv", &format!("name\n{rows}"));
    place.write("users.toml", STEPS);
    let url = format!("http://127.0.0.1:{port}/");
    let (_, document) = load(
        &place,
        &url,
        "--requests users.toml --rate 10 -d 60s -c 64 --timeout 20s",
    );
    no_errors(&document);
    assert_eq!(document["used_up"], "account");
    let steps = array(&document["per_request"]);
    assert_eq!(texts(steps, "name"), ["form", "login", "save", "read"]);
    assert_eq!(counts(steps, "requests"), [200; 4]);
    assert_eq!(document["users"]["arrived"], 200);
    assert_eq!(document["users"]["rounds"], 200);
    // The server's own view: one note of each.
    let mut notes: Vec<String> = std::fs::read_dir(&root)
        .unwrap()
        .map(|note| std::fs::read_to_string(note.unwrap().path()).unwrap())
        .collect();
    notes.sort();
    let mut expected: Vec<String> = (0..200).map(|at| format!("of user {at}")).collect();
    expected.sort();
    assert_eq!(notes, expected);
    server.signal(TERM);
    wait_until("it has ended", LIMIT, || server.has_ended());
}
