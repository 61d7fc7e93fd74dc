//! Images of containers as servers. They are made here `FROM scratch`, without any network.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{KILL, Place, array, control_groups, skip, trials, wait_until};
use crate::compare::own_servers::{all_measured, there};

/// A server without any library, that ends at SIGTERM also as the first process of a container.
const SOURCE: &str = include_str!("images/server.c");

/// What podman needs where it runs inside a sandbox: version 1 of control groups needs runc, and
/// limits may be low.
const OPTIONS: &str = "[\"--ulimit=nofile=1024:1024\", \"--ulimit=nproc=1000:1000\"]";

fn podman(place: &Place, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new("podman");
    place.settle(&mut command);
    settings(&mut command, place);
    let output = command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// The runtime that works with this kernel's control groups, and a store of the test's own.
fn settings(command: &mut Command, place: &Place) {
    let v1 = !Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let runtime = if v1 { "runc" } else { "crun" };
    let containers = format!("[engine]\nruntime = \"{runtime}\"\ncgroup_manager = \"cgroupfs\"\n");
    let storage = format!(
        "[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}/store\"\nrunroot = \"{0}/storerun\"\n",
        place.path("home").display()
    );
    command
        .env(
            "CONTAINERS_CONF",
            place.write("home/containers.conf", &containers),
        )
        .env(
            "CONTAINERS_STORAGE_CONF",
            place.write("home/storage.conf", &storage),
        );
}

/// Makes the images `weigh-test:1` and `weigh-test:2`; `None` where containers cannot run here.
fn images(place: &Place) -> Option<()> {
    if !there("podman", "podman") {
        return None;
    }
    place.write("image/server.c", SOURCE);
    place.write(
        "image/Dockerfile",
        "FROM scratch\nCOPY server /server\nENTRYPOINT [\"/server\"]\n",
    );
    let folder = place.path("image");
    let status = Command::new("cc")
        .args(["-static", "-O2", "-pthread", "-o", "server", "server.c"])
        .current_dir(&folder)
        .status();
    assert!(status.unwrap().success());
    for version in ["1", "2"] {
        let label = format!("version={version}");
        let tag = format!("weigh-test:{version}");
        let folder = folder.display().to_string();
        let (made, text) = podman(
            place,
            &["build", "-q", "--label", &label, "-t", &tag, &folder],
        );
        assert!(made, "{text}");
    }
    let run = ["run", "--rm", "--network=host", "--ulimit=nproc=1000:1000"];
    let more = [
        "--ulimit=nofile=1024:1024",
        "--entrypoint=/none",
        "weigh-test:1",
    ];
    let (_, text) = podman(place, &[&run[..], &more].concat());
    // That there is no such program is what the runtime says where it can start one.
    if !text.contains("/none") {
        skip(&format!("podman starts no container here: {text}"));
        return None;
    }
    Some(())
}

fn experiment(place: &Place, blocks: u32, host: &str) {
    place.write(
        "x.toml",
        &format!(
            "title = \"images\"\n{host}\
             [servers.app]\nimage = \"weigh-test:1\"\ncommand = [\"{{port}}\"]\n\
             options = {OPTIONS}\n\
             [servers.beside]\nimage = \"weigh-test:1\"\noptions = {OPTIONS}\n\
             env = {{ A = \"b c\" }}\n\
             [subjects]\nbeside = \"http://beside/\"\napp = \"http://app/\"\n\
             [factors]\napp.image = [\"weigh-test:1\", \"weigh-test:2\"]\n\
             [load]\nconnections = 4\n\
             [design]\nblocks = {blocks}\nwarmup = \"200ms\"\nwindow = \"300ms\"\n\
             latency_window = \"0s\"\nbottleneck = false\nretries = 0\n"
        ),
    );
}

/// Control groups that an agent's name begins, in any hierarchy.
fn groups(agents: &std::collections::BTreeSet<String>) -> Vec<String> {
    let mut found: Vec<String> = control_groups(agents);
    for hierarchy in fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten()
    {
        for group in fs::read_dir(hierarchy.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = group.file_name().to_string_lossy().into_owned();
            if agents.iter().any(|agent| name.starts_with(agent.as_str())) {
                found.push(group.path().display().to_string());
            }
        }
    }
    found
}

#[test]
fn images_are_started_counted_and_stopped() {
    let place = Place::new();
    if images(&place).is_none() {
        return;
    }
    experiment(&place, 3, "");
    let mut command = place.weigh("run x.toml --format json --out r");
    settings(&mut command, &place);
    let done = place.start_command(command).end();
    let document = all_measured(&done, 18);
    let conditions = array(&document["comparisons"]);
    let has = |image: &str| {
        let mut all = conditions.iter();
        all.any(|one| one["condition"]["app.image"] == image)
    };
    assert!(has("weigh-test:1") && has("weigh-test:2"));
    assert!(!done.err.contains("did not stop"), "{}", done.err);
    let hosts = place.read_json("r/hosts.json");
    let digest = &hosts["local"]["servers"]["app"]["image"]["digest"];
    assert!(digest.as_str().unwrap().starts_with("sha256:"), "{digest}");
    // What the container itself took was counted, not only podman.
    let cpu = crate::compare::own_servers::of_metric(&document, "server_cpu_us_per_request");
    assert!(cpu[0]["baseline"].is_string());
    assert!(place.left().is_empty(), "{:?}", place.left());
    assert!(
        groups(&done.agents).is_empty(),
        "{:?}",
        groups(&done.agents)
    );
    let (_, left) = podman(&place, &["ps", "--all", "--quiet"]);
    assert_eq!(left.trim(), "");
}

#[test]
fn a_killed_run_leaves_no_container() {
    let place = Place::new();
    if images(&place).is_none() {
        return;
    }
    experiment(&place, 30, "");
    let mut command = place.weigh("run x.toml --out r");
    settings(&mut command, &place);
    let mut running = place.start_command(command);
    running.until("a trial was measured", || {
        !trials(&place.path("r")).is_empty()
    });
    let agents = running.look().clone();
    running.signal(KILL);
    running.end().expect(-KILL);
    wait_until("nothing is left", Duration::from_secs(10), || {
        place.left().is_empty()
    });
    let (_, left) = podman(&place, &["ps", "--all", "--quiet"]);
    assert_eq!(left.trim(), "");
    // Groups in hierarchies that weigh does not use itself are removed by the next run.
    place.run(&[
        "compare",
        "a=sh -c 'exit 1' {port}",
        "b=false {port}",
        "--blocks",
        "3",
    ]);
    assert!(groups(&agents).is_empty(), "{:?}", groups(&agents));
}

#[test]
fn an_image_that_is_nowhere_is_said() {
    let place = Place::new();
    if !there("podman", "podman") {
        return;
    }
    place.write(
        "x.toml",
        "title = \"x\"\n[servers.a]\nimage = \"localhost:1/no-such:1\"\n[subjects]\na = \"http://a/\"\n",
    );
    let mut command = place.weigh("run x.toml --out r");
    settings(&mut command, &place);
    let done = place.start_command(command).end().expect(2);
    done.says(&["the image `localhost:1/no-such:1`", "cannot be pulled"]);
    assert!(!place.path("r").exists());
}
