//! What an ordinary user's runs know of CPU time, and what they say where they do not know it.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use crate::common::{Place, array, can_run, skip};
use serde_json::Value;

const NOBODY: u32 = 65_534;

/// Apache's daemon for CGI scripts ignores its children's ends.
const SCRIPT: &str = include_str!("ordinary_user/experiment.toml");

/// A control group that belongs to an ordinary user, as the service manager makes them.
struct OwnGroup(PathBuf);

impl OwnGroup {
    fn make() -> Option<Self> {
        let bases = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"].map(Path::new);
        let base = bases
            .iter()
            .find(|base| base.join("cgroup.procs").exists())?;
        let own = Self(base.join(format!("we-own-{}", std::process::id())));
        fs::create_dir(&own.0).ok()?;
        for path in [own.0.clone(), own.0.join("cgroup.procs")] {
            chown(path, Some(NOBODY), Some(NOBODY)).ok()?;
        }
        Some(own)
    }

    fn entrance(&self) -> fs::File {
        let path = self.0.join("cgroup.procs");
        fs::OpenOptions::new().write(true).open(path).unwrap()
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cpu_time_of_scripts_is_counted_in_an_own_group_and_said_to_be_missing_without() {
    let place = Place::new();
    if !can_run(&place, "lighttpd-proxy") {
        return;
    }
    if !net::os::is_root() {
        return skip("only root gives a control group to another user");
    }
    let Some(own) = OwnGroup::make() else {
        return skip("no control group can be made");
    };
    // Where that user may read it.
    let weigh = place.path("weigh");
    crate::common::copy_program(&crate::common::program(), &weigh);
    place.write("x.toml", SCRIPT);
    for name in ["", "t", "home"] {
        chown(place.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let run = |out: &str, group: Option<&OwnGroup>| -> (Value, String) {
        let mut command = std::process::Command::new(&weigh);
        command.args(["run", "x.toml", "--format", "json", "--out", out]);
        place.settle(&mut command);
        command.uid(NOBODY).gid(NOBODY);
        let setup = net::os::ChildSetup {
            confine: group.map(OwnGroup::entrance).into_iter().collect(),
            ..Default::default()
        };
        net::os::set_up_child(&mut command, setup);
        let document = place.start_command(command).end().result();
        let warnings = array(&document["warnings"]);
        let missing = warnings
            .iter()
            .filter_map(Value::as_str)
            .find(|text| text.starts_with("CPU time of `backend` may be incomplete"));
        let missing = missing.unwrap_or_default().to_owned();
        (document, missing)
    };
    let cpu_us = |document: &Value| {
        let row = &array(&document["table"])[0];
        row["server_cpu_us_per_request"]["backend"]
            .as_f64()
            .unwrap()
    };
    let (without, missing) = run("without", None);
    assert!(missing.contains("systemd-run --user"), "{without:#}");
    let (with, missing) = run("with", Some(&own));
    assert_eq!(missing, "");
    // Starting perl takes several times what Apache itself does.
    let (all, part) = (cpu_us(&with), cpu_us(&without));
    assert!(all > 2.0 * part, "{all} {part}");
    assert!(place.left().is_empty(), "{:?}", place.left());
    let entries = fs::read_dir(&own.0).unwrap().flatten();
    let groups = entries.filter(|entry| entry.path().is_dir()).count();
    assert_eq!(groups, 0, "left in {:?}", own.0);
}
