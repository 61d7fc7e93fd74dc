//! Recipes with TLS: the run's own certificates before clients and between servers.

use std::fmt::Write as _;
use std::path::Path;

use experiment::Recipes;
use experiment::recipe::Recipe;
use tls::{Authority, KeyType};

use crate::common::{Place, skip};
use crate::started::installed;

/// What lighttpd loads for TLS; the server works without it.
const LIGHTTPD_MODULE: &str = "/usr/lib/lighttpd/mod_openssl.so";
const SHORT: &str = "[load]\nconnections = 2\n[expect]\nsame = false\n\
    [design]\nblocks = 1\nwarmup = \"100ms\"\nwindow = \"300ms\"\nslice = \"150ms\"\n\
    latency_window = \"0s\"\nbottleneck = false\nretries = 0\n";

/// Whether a recipe's server is here and can speak TLS.
fn can_speak_tls(recipe: &Recipe) -> bool {
    if recipe.param("tls_key").is_none() || installed(recipe).is_none() {
        return false;
    }
    let module = recipe.name != "lighttpd" || Path::new(LIGHTTPD_MODULE).exists();
    if !module {
        skip("lighttpd-mod-openssl is not installed");
    }
    module
}

/// Runs an experiment of which no trial may fail.
fn runs_well(experiment: &str, trials: usize) {
    let place = Place::new();
    place.write("x.toml", &format!("title = \"TLS\"\n{experiment}{SHORT}"));
    let done = place.run(&["run", "x.toml", "--out", "r", "--format", "json"]);
    let document = done.result();
    assert_eq!(document["trials"]["failed"], 0, "{}", done.err);
    assert_eq!(document["trials"]["done"], trials, "{}", done.err);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn every_server_with_tls_shows_the_certificate_of_the_run() {
    let recipes = Recipes::embedded().unwrap();
    let recipes: Vec<&Recipe> = recipes
        .names()
        .filter_map(|name| recipes.get(name))
        .filter(|recipe| can_speak_tls(recipe))
        .collect();
    for key in ["ecdsa-p256", "rsa-2048"] {
        let mut text = String::from("[servers.plain]\nrecipe = \"origin\"\n");
        let mut subjects = String::from("[subjects]\n");
        for recipe in &recipes {
            let name = &recipe.name;
            let on = recipe.param("tls").map_or("", |_| "tls = true, ");
            let behind = match recipe.upstreams.takes(0) {
                true => "",
                false => "upstreams = [\"plain\"]\n",
            };
            writeln!(
                text,
                "[servers.{name}]\nrecipe = \"{name}\"\n{behind}with = {{ {on}tls_key = \"{key}\" }}"
            )
            .unwrap();
            writeln!(subjects, "{name} = \"https://{name}/\"").unwrap();
        }
        // The baseline is measured twice.
        runs_well(&(text + &subjects), recipes.len() + 1);
    }
}

/// Those that speak TLS to upstreams.
const PROXIES: [&str; 5] = ["nginx", "haproxy", "caddy", "apache", "balance"];

/// Servers over an upstream, and subjects that reach it through them.
fn proxies_over(upstream: &str) -> (String, usize) {
    let recipes = Recipes::embedded().unwrap();
    let there = |name: &&str| installed(recipes.get(name).unwrap()).is_some();
    let there: Vec<&str> = PROXIES.into_iter().filter(there).collect();
    let mut text = String::new();
    for name in &there {
        writeln!(
            text,
            "[servers.{name}]\nrecipe = \"{name}\"\nupstreams = [\"{upstream}\"]"
        )
        .unwrap();
    }
    text.push_str("[subjects]\n");
    for name in &there {
        writeln!(text, "{name} = \"http://{name}/\"").unwrap();
    }
    (text, there.len())
}

#[test]
fn proxies_speak_tls_to_their_upstreams() {
    let (proxies, count) = proxies_over("back");
    let back =
        "[servers.back]\nrecipe = \"origin\"\nwith = { tls = true, tls_key = \"rsa-2048\" }\n";
    if count > 0 {
        runs_well(&format!("{back}{proxies}"), count + 1);
    }
}

#[test]
fn proxies_refuse_an_upstream_with_the_certificate_of_another_authority() {
    let place = Place::new();
    let other = Authority::new().unwrap();
    let names = ["impostor", "localhost", "127.0.0.1"].map(str::to_owned);
    let identity = other.issue(&names, KeyType::EcdsaP256).unwrap().identity;
    place.write("recipes/impostor/chain.pem", &identity.chain);
    place.write("recipes/impostor/key.pem", &identity.key);
    // The run itself does not ask it by TLS: it would refuse it, too.
    place.recipe(
        "impostor",
        "summary = \"an origin with a certificate of its own\"\n\
         [tls]\nenabled = \"true\"\n\
         [copy]\n\"own/chain.pem\" = \"chain.pem\"\n\"own/key.pem\" = \"key.pem\"\n\
         [start]\ncommand = [\"{{ weigh }}\", \"origin\", \"--listen\", \"{{ listen.addr }}\", \
         \"--tls-cert\", \"{{ dir }}/own/chain.pem\", \"--tls-key\", \"{{ dir }}/own/key.pem\"]\n\
         [ready]\nsend = \"x\"\n",
    );
    let (proxies, count) = proxies_over("impostor");
    let impostor = "title = \"TLS\"\n[servers.impostor]\nrecipe = \"impostor\"\n";
    place.write(
        "x.toml",
        &format!("{impostor}{proxies}{SHORT}apart = \"always\"\n"),
    );
    let mut call = vec!["run", "x.toml", "--recipes", "recipes", "--out", "r"];
    call.extend(["--format", "json"]);
    let done = place.run(&call);
    if count == 0 {
        return;
    }
    assert_eq!(done.status, 1, "{}", done.err);
    let document = done.json();
    assert_eq!(document["trials"]["done"], 0, "{}", done.err);
    // It runs, and answers with an error of its own, or tries its upstream again.
    let told = done.err.matches("did not answer as expected").count();
    assert!(told >= count, "{}", done.err);
    assert!(place.left().is_empty(), "{:?}", place.left());
}
