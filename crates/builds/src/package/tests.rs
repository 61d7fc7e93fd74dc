//! Tests of installations, without registries.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use installed::{KINDS, PackageKind};

use super::*;

fn installation(key: &str, cache: &str) -> Installation {
    let kind = PackageKind::of_registry(key).unwrap();
    Installation {
        package: PinnedPackage::parse(kind, "tiny-bin==1.2", "weigh install tiny").unwrap(),
        programs: vec![vec!["tiny".to_owned()]],
        sources: Sources::default(),
        cache: PathBuf::from(cache),
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weigh-{name}-{}", std::process::id()));
    make_folder(&folder).unwrap();
    folder
}

#[test]
fn it_is_planned_without_the_network() {
    for (key, planned) in [
        (
            "pip",
            "PIP_ROOT_USER_ACTION=ignore python3 -m pip download --disable-pip-version-check \
             --no-deps --quiet --only-binary=:all: --dest /t/download tiny-bin==1.2",
        ),
        (
            "npm",
            "npm install --ignore-scripts --no-audit --no-fund --no-update-notifier --prefix \
             /t/files tiny-bin@1.2",
        ),
        (
            "cargo",
            "cargo install --locked --root /t/files --target-dir /t/download --version =1.2 \
             tiny-bin",
        ),
        ("go", "GOBIN=/t/files/bin go install tiny-bin@1.2"),
    ] {
        let shown = installation(key, "/c").shown(Path::new("/t"));
        assert_eq!(shown[0], planned);
    }
    let pip = installation("pip", "/c").shown(Path::new("/t"));
    assert_eq!(
        pip[1],
        "PIP_ROOT_USER_ACTION=ignore python3 -m pip install --disable-pip-version-check \
         --no-deps --quiet --no-index --no-compile --target /t/files /t/download/FILE"
    );
}

#[test]
fn the_program_is_the_one_in_elf_format_and_not_its_script() {
    let files = folder("wheel");
    make_folder(&files.join("bin")).unwrap();
    make_folder(&files.join("tiny/_bin")).unwrap();
    fs::write(files.join("bin/tiny"), "#!/bin/sh\n").unwrap();
    let found = installation("pip", "/c").find_program(&files);
    assert!(matches!(found, Err(InstallError::NoProgram { .. })));
    let program = files.join("tiny/_bin/tiny");
    fs::write(&program, "\x7fELF...").unwrap();
    let found = installation("pip", "/c").find_program(&files).unwrap();
    assert_eq!(found, ("tiny".to_owned(), program));
    fs::remove_dir_all(&files).unwrap();
}

#[test]
fn a_program_that_needs_its_files_stays_beside_them() {
    let whole = folder("linked");
    let bin = whole.join("files/node_modules/.bin");
    make_folder(&bin).unwrap();
    make_folder(&whole.join("programs")).unwrap();
    fs::write(
        whole.join("files/node_modules/tiny.js"),
        "#!/usr/bin/env node\n",
    )
    .unwrap();
    let npm = installation("npm", "/c");
    let none = npm.place_program(&whole);
    assert!(matches!(none, Err(InstallError::NoProgram { .. })));
    symlink("../tiny.js", bin.join("tiny")).unwrap();
    assert_eq!(npm.place_program(&whole).unwrap(), "tiny");
    let program = fs::canonicalize(whole.join("programs/tiny")).unwrap();
    assert!(program.ends_with("files/node_modules/tiny.js"));
    assert!(installed::is_executable(&program));
    fs::remove_dir_all(&whole).unwrap();
}

#[test]
fn a_program_that_was_changed_is_not_installed() {
    let cache = folder("changed");
    let tiny = installation("pip", &cache.to_string_lossy());
    let programs = tiny.package.programs(&cache);
    make_folder(&programs).unwrap();
    let program = programs.join("tiny");
    fs::write(&program, "\x7fELF1").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let record = Record {
        package_sha256: String::new(),
        program_sha256: sha256(&program).unwrap(),
        bytes: 5,
        recipe: None,
    };
    record.write(&tiny.folder()).unwrap();
    assert_eq!(tiny.installed(), Some(program.clone()));
    fs::write(&program, "\x7fELF2").unwrap();
    assert_eq!(tiny.installed(), None);
    fs::remove_dir_all(&cache).unwrap();
}

/// A client that is a shell script.
fn client(script: &'static str) -> Result<(), InstallError> {
    let mut tiny = installation("cargo", "/c");
    let cargo = PackageKind::of_registry("cargo").unwrap();
    let words: &'static [&'static str] = Vec::from(["sh", "-c", script]).leak();
    let steps: &'static [&'static [&'static str]] = Vec::from([words]).leak();
    tiny.package.kind = Box::leak(Box::new(PackageKind {
        steps,
        env: &[],
        ..*cargo
    }));
    tiny.run(steps[0], &std::env::temp_dir(), Path::new(""))
}

#[test]
fn what_went_wrong_is_told_apart() {
    let said = |script: &'static str| client(script).unwrap_err().to_string();
    assert!(client("true").is_ok());
    let offline = said("echo \"[6] Couldn't resolve host name: Could not resolve host\"; exit 101");
    assert!(offline.contains("crates.io cannot be reached"), "{offline}");
    let sum = said("echo 'checksum for `tiny-bin v1.2` changed' >&2; exit 101");
    assert!(sum.contains("failed (exit status: 101)"), "{sum}");
    assert!(sum.contains("checksum for"), "{sum}");
    assert!(!sum.contains("reached"), "{sum}");
    let none = said("echo 'error: rustup could not choose a version of cargo to run'; exit 1");
    assert!(none.contains("install it with: rustup"), "{none}");
}

#[test]
fn each_client_that_is_missing_says_where_it_is_from() {
    for kind in &KINDS {
        let mut tiny = installation("pip", "/c");
        tiny.package.kind = kind;
        let missing = tiny.run(&["no-such-client"], &std::env::temp_dir(), Path::new(""));
        let said = missing.unwrap_err().to_string();
        assert!(said.contains(kind.client), "{said}");
        assert!(said.contains(kind.client_from), "{said}");
    }
}

#[test]
fn builds_of_other_sources_of_the_same_recipe_are_removed() {
    let cache = folder("former");
    let mut tiny = installation("pip", &cache.to_string_lossy());
    tiny.package = PinnedPackage {
        kind: PackageKind::of_sources("cargo").unwrap(),
        name: "tiny/program".to_owned(),
        version: "0123456789abcdef".to_owned(),
        install: String::new(),
    };
    tiny.sources.recipe = Some(PathBuf::from("/project/one/tiny"));
    let record = |recipe: Option<&str>| Record {
        package_sha256: String::new(),
        program_sha256: String::new(),
        bytes: 5,
        recipe: recipe.map(str::to_owned),
    };
    let (own, other) = (Some("/project/one/tiny"), Some("/project/two/tiny"));
    let of = [
        ("tiny!program-0123456789abcdef", own),
        ("tiny!program-fedcba9876543210", own),
        ("tiny!program-two-fedcba9876543210", own),
        ("tiny!program-fedcba9876543210.new-7", own),
        ("tiny!program-aaaaaaaaaaaaaaaa", other),
        ("tiny!program-bbbbbbbbbbbbbbbb", None),
        ("tiny!program-cccccccccccccccc", Some("-")),
    ];
    for (name, recipe) in of {
        let folder = cache.join("source").join(name);
        make_folder(&folder).unwrap();
        record(recipe).write(&folder).unwrap();
    }
    tiny.remove_former_builds();
    let left = of.map(|(name, _)| cache.join("source").join(name).exists());
    assert_eq!(left, [true, false, true, true, true, true, true]);
    tiny.sources.recipe = None;
    tiny.remove_former_builds();
    let left = of.map(|(name, _)| cache.join("source").join(name).exists());
    assert_eq!(left, [true, false, true, true, true, true, false]);
    fs::remove_dir_all(&cache).unwrap();
}

#[test]
fn folders_of_installations_that_were_cut_off_are_removed() {
    let cache = folder("cut-off");
    let tiny = installation("pip", &cache.to_string_lossy());
    // Larger than the number of any process.
    let names = [
        "tiny-bin-1.2.new-4294967295".to_owned(),
        format!("tiny-bin-1.2.new-{}", std::process::id()),
        "tiny-bin-1.2".to_owned(),
        "tiny-bin-1.2.new-x".to_owned(),
    ];
    let paths = names.map(|name| cache.join("pip").join(name));
    for path in &paths {
        make_folder(&path.join("download")).unwrap();
    }
    tiny.remove_cut_off();
    let left = paths.map(|path| path.exists());
    assert_eq!(left, [false, true, true, true]);
    fs::remove_dir_all(&cache).unwrap();
}
