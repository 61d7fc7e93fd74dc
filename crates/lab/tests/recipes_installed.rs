//! The servers themselves accept the configurations that their recipes give.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use lab::recipe::{RenderContext, Value};
use support::recipes;

/// Renders a recipe into a folder and asks its program whether it can start with it.
///
/// Where the program is not installed the test says so and passes.
fn accepted(recipe: &str, params: &[(&str, Value)], proxy: bool, check: &[&str]) {
    let recipes = recipes();
    let recipe = recipes.get(recipe).unwrap();
    let available = recipe.available();
    if let Some(sentence) = available.sentence() {
        skip(&sentence);
        return;
    }
    let dir = short_folder();
    let upstreams = if proxy {
        vec![("backend".to_owned(), "127.0.0.1:8081".parse().unwrap())]
    } else {
        Vec::new()
    };
    let program = available.programs.values().next().unwrap().clone();
    let out = recipe
        .render(&RenderContext {
            name: "web".to_owned(),
            dir: dir.clone(),
            listen_addr: "127.0.0.1:8080".parse().unwrap(),
            upstreams,
            params: params
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect::<BTreeMap<_, _>>(),
            programs: available.programs.clone(),
            weigh: PathBuf::from("weigh"),
            cpus: 1,
        })
        .unwrap();
    for folder in &out.dirs {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    for file in &out.files {
        let path = dir.join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &file.bytes).unwrap();
    }
    let config = dir.join(check[check.len() - 1]);
    let ran = run(&program, &check[..check.len() - 1], &config);
    fs::remove_dir_all(&dir).unwrap();
    assert!(
        ran.0,
        "{} refuses its configuration:\n{}",
        recipe.name, ran.1
    );
    let version = out.version_command.unwrap();
    let printed = Command::new(&version[0])
        .args(&version[1..])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(recipe.version_in(&printed).is_some(), "{printed}");
}

/// Says that a test cannot run here, as `CONTRIBUTING.md` describes it.
fn skip(reason: &str) {
    use std::io::Write as _;
    let Some(path) = std::env::var_os("WEIGH_SKIPPED") else {
        println!("SKIPPED: {reason}");
        return;
    };
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    writeln!(file, "{reason}").unwrap();
}

/// A folder of the test's own with a short path: not every server bears the build folder's.
fn short_folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("weigh-recipe-{}-{number}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn run(program: &Path, options: &[&str], config: &Path) -> (bool, String) {
    let out = Command::new(program)
        .args(options)
        .arg(config)
        .output()
        .unwrap();
    let said = [out.stdout, out.stderr].concat();
    (
        out.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn apache_accepts_every_mpm_with_and_without_scripts() {
    for mpm in ["event", "worker", "prefork"] {
        let mpm = ("mpm", Value::Text(mpm.to_owned()));
        let cgi = ("cgi", Value::List(vec!["second.pl".to_owned()]));
        let log = ("access_log", Value::Boolean(true));
        accepted(
            "apache",
            std::slice::from_ref(&mpm),
            false,
            &["-t", "-f", "apache.conf"],
        );
        accepted(
            "apache",
            &[mpm, cgi, log],
            false,
            &["-t", "-f", "apache.conf"],
        );
    }
}

#[test]
fn lighttpd_accepts_both_of_its_parts() {
    accepted("lighttpd", &[], false, &["-tt", "-f", "lighttpd.conf"]);
    let log = ("access_log", Value::Boolean(true));
    accepted("lighttpd", &[log], true, &["-tt", "-f", "lighttpd.conf"]);
}
