//! The servers themselves accept the configurations that their recipes give.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::rules::context;
use crate::support::recipes;
use experiment::manifest::Value;
use experiment::recipe::{
    Behind, Certificates, Recipe, RenderContext, Upstreams, certificate_name,
};
use installed::Availability;

/// Asks the program of each recipe with these names in `tests/accepted.toml` whether it can start
/// with the configurations of its cases.
///
/// Where the program is not installed the test says so and passes.
fn accept(names: &str) {
    let all: toml::Table = include_str!("../../accepted.toml").parse().unwrap();
    for name in names.split(' ') {
        let about = &all[name];
        let recipe = about
            .get("recipe")
            .map_or(name, |recipe| recipe.as_str().unwrap());
        let check: Vec<&str> = about["check"].as_str().unwrap().split(' ').collect();
        for case in about["cases"].as_array().unwrap() {
            let is_so = |key: &str| case.get(key).is_some_and(|value| value.as_bool().unwrap());
            for params in combinations(case) {
                let certificates = is_so("tls").then(certificates);
                accepted_with(recipe, &params, is_so("proxy"), certificates, &check);
            }
        }
    }
}

/// The parameters of a case, in all combinations.
fn combinations(case: &toml::Value) -> Vec<Vec<(&str, Value)>> {
    let table = |key: &str| case.get(key).and_then(toml::Value::as_table);
    let with = table("with").into_iter().flatten();
    let with = with.map(|(name, value)| (name.as_str(), value_of(value)));
    let mut all = vec![with.collect::<Vec<_>>()];
    for (name, values) in table("each").into_iter().flatten() {
        let values = values.as_array().unwrap();
        let one_more = |one: &Vec<(_, Value)>, value| {
            let more = [(name.as_str(), value_of(value))];
            one.iter().cloned().chain(more).collect()
        };
        let each = all
            .iter()
            .flat_map(|one| values.iter().map(move |value| one_more(one, value)));
        all = each.collect();
    }
    all
}

fn value_of(value: &toml::Value) -> Value {
    match value {
        toml::Value::Boolean(on) => Value::Boolean(*on),
        toml::Value::Integer(number) => Value::Integer(*number),
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Array(items) => {
            let items = items.iter().map(|item| item.as_str().unwrap().to_owned());
            Value::List(items.collect())
        }
        other => panic!("{other} is no parameter"),
    }
}

fn certificates() -> Certificates {
    let authority = tls::Authority::new().unwrap();
    let issue = |name: String| {
        let issued = authority.issue(&[name], tls::KeyType::EcdsaP256);
        issued.unwrap().identity
    };
    Certificates {
        authority: authority.certificate(),
        own: Some(issue("web".to_owned())),
        extra: (1..=MORE)
            .map(|number| issue(certificate_name(number)))
            .collect(),
    }
}

/// Renders a recipe into a folder and asks its program. In the words of `check`, `DIR` is the folder.
fn accepted_with(
    recipe: &str,
    params: &[(&str, Value)],
    proxy: bool,
    certificates: Option<Certificates>,
    check: &[&str],
) {
    let recipes = recipes();
    let recipe = recipes.get(recipe).unwrap();
    // What `./check` installs: Debian's, and the first version of a registry.
    let pinned = recipe.packages.pinned.first();
    let pinned = pinned.filter(|_| recipe.packages.has_versions());
    let mut versions = vec![recipe.packages.usual_version()];
    // Modules are Debian's, for Debian's program.
    if !params.iter().any(|(name, _)| *name == "modsecurity") {
        versions.extend(pinned.map(|package| Some(package.version.as_str())));
    }
    versions.dedup();
    for version in versions {
        let certificates = certificates.clone();
        accepted_in(recipe, version, params, proxy, certificates, check);
    }
}

fn accepted_in(
    recipe: &Recipe,
    version: Option<&str>,
    params: &[(&str, Value)],
    proxy: bool,
    certificates: Option<Certificates>,
    check: &[&str],
) {
    let Some(available) = found(recipe, version) else {
        return;
    };
    let dir = short_folder();
    let upstreams = if proxy {
        vec![Behind {
            name: "backend".to_owned(),
            addr: "127.0.0.1:8081".parse().unwrap(),
            dir: Some(PathBuf::from("/behind")),
            tls: certificates.is_some() && recipe.upstreams != Upstreams::One,
        }]
    } else {
        Vec::new()
    };
    // The server itself is the program that a recipe names first.
    let program = available.programs[&recipe.programs[0].0].clone();
    let out = recipe
        .render(&RenderContext {
            upstreams,
            programs: available.programs.clone(),
            weigh: PathBuf::from("weigh"),
            cpus: 1,
            certificates,
            ..context(recipe, &dir, params)
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
    let folder = dir.display().to_string();
    let words: Vec<String> = check
        .iter()
        .map(|word| word.replace("DIR", &folder))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = run(&program, &words);
    fs::remove_dir_all(&dir).unwrap();
    assert!(
        ran.0,
        "{} refuses its configuration:\n{}",
        recipe.name, ran.1
    );
    // Not every program tells its version.
    let Some(version) = out.version_command else {
        return;
    };
    let options: Vec<&str> = version[1..].iter().map(String::as_str).collect();
    let (_, printed) = run(Path::new(&version[0]), &options);
    assert!(recipe.version_in(&printed).is_some(), "{printed}");
}

/// The recipe's programs; where one is not installed, `None`, and the test says so.
fn found(recipe: &Recipe, version: Option<&str>) -> Option<Availability> {
    let available = recipe.available_in(version);
    let Some(sentence) = available.sentence() else {
        return Some(available);
    };
    // What nobody wanted installed is not skipped, nor what no package has.
    let left_out = std::env::var("WEIGH_LEFT_OUT").unwrap_or_default();
    let left_out: Vec<&str> = left_out.split(' ').collect();
    match available.install_command {
        None => println!("not run: {sentence}"),
        Some(wanted) if wanted.split(' ').any(|package| left_out.contains(&package)) => {}
        // `./check` installs it: anybody can.
        Some(wanted) if wanted.starts_with("weigh install") => panic!("{sentence}"),
        Some(_) => testing::skip(&sentence),
    }
    None
}

/// A folder of the test's own with a short path: not every server bears the build folder's.
fn short_folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("weigh-recipe-{}-{number}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Whether a command ended well, and what it said.
fn run(program: &Path, options: &[&str]) -> (bool, String) {
    let out = Command::new(program).args(options).output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    (
        out.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// Further certificates of each server with TLS.
const MORE: usize = 2;

#[test]
fn apache_and_its_php_accept_all_that_they_can_be() {
    accept("apache apache-php mediawiki-apache php-fpm mediawiki-fpm");
}

#[test]
fn nginx_accepts_all_that_it_can_be() {
    accept("nginx nginx-stream");
}

#[test]
fn lighttpd_accepts_all_that_it_can_be() {
    accept("lighttpd");
    match Path::new("/usr/lib/lighttpd/mod_openssl.so").exists() {
        true => accept("lighttpd-tls"),
        false => testing::skip("lighttpd-mod-openssl is not installed"),
    }
}

#[test]
fn relays_and_caches_accept_all_that_they_can_be() {
    accept("crossroads haproxy hitch squid varnish");
}

#[test]
fn proxies_of_today_accept_all_that_they_can_be() {
    // Traefik and nghttpx check a configuration only at their start: the end-to-end tests start them.
    accept("caddy envoy h2o trafficserver pingora");
}

#[test]
fn nftables_accepts_its_rules() {
    match net::os::is_root() {
        true => accept("nft-dnat"),
        false => testing::skip("nft-dnat: the kernel checks rules for root only"),
    }
}

#[test]
#[should_panic(expected = "nginx refuses its configuration")]
fn a_line_that_the_server_does_not_know_is_refused_by_it() {
    let extra = Value::List(vec!["no_such_directive on;".to_owned()]);
    let check = ["-t", "-c", "DIR/nginx.conf"];
    accepted_with("nginx", &[("extra", extra)], false, None, &check);
    assert!(
        recipes()
            .get("nginx")
            .unwrap()
            .available()
            .sentence()
            .is_none(),
        "nginx refuses its configuration: it is not installed"
    );
}
