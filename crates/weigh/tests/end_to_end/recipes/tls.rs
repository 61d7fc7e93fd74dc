//! Recipes with TLS: the run's own certificates before clients and between servers.

use std::path::Path;

use experiment::Recipes;
use experiment::recipe::Recipe;
use tls::{Authority, KeyType};

use crate::common::started::installed;
use crate::common::{Origin, Place, has, skip};

/// What lighttpd loads for TLS; the server works without it.
const LIGHTTPD_MODULE: &str = "/usr/lib/lighttpd/mod_openssl.so";
const SHORT: &str = "[load]\nconnections = 2\n[expect]\nsame = false\n\
    [design]\nblocks = 1\nwarmup = \"100ms\"\nwindow = \"150ms\"\nslice = \"150ms\"\n\
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
    runs_well_with(experiment, "", trials);
}

/// The same with a further line of `[load]`.
fn runs_well_with(experiment: &str, load: &str, trials: usize) {
    let place = Place::new();
    let rest = SHORT.replace("[load]\n", &format!("[load]\n{load}\n"));
    place.write("x.toml", &format!("title = \"TLS\"\n{experiment}{rest}"));
    place.run("run x.toml --out r --format json").made(trials);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

/// Servers of these recipes and subjects that reach them by TLS; `with` is said of each server.
fn servers(recipes: &[&Recipe], with: &str) -> String {
    servers_over(recipes, with, "1.1")
}

/// The same, asked by this version of HTTP.
fn servers_over(recipes: &[&Recipe], with: &str, http: &str) -> String {
    let mut text = String::from("[servers.plain]\nrecipe = \"origin\"\n");
    let mut subjects = String::from("[subjects]\n");
    for recipe in recipes {
        let name = &recipe.name;
        let on = recipe.param("tls").map_or("", |_| "tls = true, ");
        // By default it relays bytes, whatever they are.
        let mode = match (name.as_str(), http) {
            ("balance", "2") => "mode = \"http\", ",
            _ => "",
        };
        let behind = match recipe.upstreams.takes(0) {
            true => "",
            false => "upstreams = [\"plain\"]\n",
        };
        text += &format!(
            "[servers.{name}]\nrecipe = \"{name}\"\n{behind}with = {{ {on}{mode}{with} }}\n"
        );
        let http = if name == "nghttpd" { "2" } else { http };
        subjects += &format!("{name} = {{ url = \"https://{name}/\", http = \"{http}\" }}\n");
    }
    text + &subjects
}

/// The recipes whose servers are here, can speak TLS, and have a parameter.
fn with_param<'r>(recipes: &'r Recipes, param: &str) -> Vec<&'r Recipe> {
    let all = recipes.names().filter_map(|name| recipes.get(name));
    all.filter(|recipe| recipe.param(param).is_some() && can_speak_tls(recipe))
        .collect()
}

#[test]
fn every_server_with_tls_shows_the_certificate_of_the_run() {
    let recipes = Recipes::embedded().unwrap();
    let recipes = with_param(&recipes, "tls_key");
    std::thread::scope(|scope| {
        for key in ["ecdsa-p256", "rsa-2048"] {
            let text = servers(&recipes, &format!("tls_key = \"{key}\""));
            // The baseline is measured twice.
            let trials = recipes.len() + 1;
            scope.spawn(move || runs_well(&text, trials));
        }
    });
}

#[test]
fn every_server_that_offers_http2_speaks_it() {
    let recipes = Recipes::embedded().unwrap();
    let recipes = with_param(&recipes, "http2");
    let text = servers_over(&recipes, "http2 = true", "2");
    runs_well(&text, recipes.len() + 1);
}

#[test]
fn servers_set_to_one_version_of_tls_speak_it() {
    let all = Recipes::embedded().unwrap();
    let all = with_param(&all, "tls_version");
    std::thread::scope(|scope| {
        for version in ["1.2", "1.3"] {
            let takes = |recipe: &&&Recipe| {
                let param = recipe.param("tls_version").unwrap();
                param.one_of.iter().any(|one| one == version)
            };
            let recipes: Vec<&Recipe> = all.iter().filter(takes).copied().collect();
            let version = format!("tls_version = \"{version}\"");
            let text = servers(&recipes, &version);
            let trials = recipes.len() + 1;
            scope.spawn(move || runs_well_with(&text, &version, trials));
        }
    });
}

/// Those that speak TLS to upstreams.
const PROXIES: [&str; 10] = [
    "nginx",
    "haproxy",
    "caddy",
    "apache",
    "balance",
    "envoy",
    "traefik",
    "nghttpx",
    "trafficserver",
    "pingora",
];

/// Those of [`PROXIES`] that are installed.
fn installed_proxies() -> Vec<&'static str> {
    let recipes = Recipes::embedded().unwrap();
    let is_there = |name: &&str| installed(recipes.get(name).unwrap()).is_some();
    PROXIES.into_iter().filter(is_there).collect()
}

/// Servers over an upstream, and subjects that reach it through them.
fn proxies_over(upstream: &str, proxies: &[&str]) -> String {
    let server = |name: &&str| {
        format!("[servers.{name}]\nrecipe = \"{name}\"\nupstreams = [\"{upstream}\"]\n")
    };
    let subject = |name: &&str| format!("{name} = \"http://{name}/\"\n");
    let servers: String = proxies.iter().map(server).collect();
    let subjects: String = proxies.iter().map(subject).collect();
    format!("{servers}[subjects]\n{subjects}")
}

#[test]
fn proxies_speak_tls_to_their_upstreams() {
    let there = installed_proxies();
    let proxies = proxies_over("back", &there);
    let back =
        "[servers.back]\nrecipe = \"origin\"\nwith = { tls = true, tls_key = \"rsa-2048\" }\n";
    if !there.is_empty() {
        runs_well(&format!("{back}{proxies}"), there.len() + 1);
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
    let impostor = "title = \"TLS\"\n[servers.impostor]\nrecipe = \"impostor\"\n";
    // All wait for an answer at once.
    let there = installed_proxies();
    let running: Vec<_> = there
        .iter()
        .map(|name| {
            let (file, out) = (format!("{name}.toml"), format!("r-{name}"));
            let proxy = proxies_over("impostor", &[*name]);
            place.write(&file, &format!("{impostor}{proxy}{SHORT}"));
            place.start(&format!(
                "run {file} --recipes recipes --out {out} --format json"
            ))
        })
        .collect();
    for one in running {
        let done = one.end().expect(1);
        assert_eq!(done.json()["trials"]["done"], 0, "{}", done.err);
        // It runs, and answers with an error of its own, or tries its upstream again.
        done.says(&["did not answer as expected"]);
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn servers_that_ask_for_a_certificate_get_the_loads_and_refuse_a_load_without() {
    let recipes = Recipes::embedded().unwrap();
    let recipes = with_param(&recipes, "tls_client_certs");
    let text = servers(&recipes, "tls_client_certs = true");
    let place = Place::new();
    let keys = "[factors]\nkeepalive = [true, false]\n";
    let text = format!("title = \"TLS\"\n{text}{keys}{SHORT}");
    let with_key = text.replace("[load]\n", "[load]\ntls_client_key = \"rsa-2048\"\n");
    place.write("x.toml", &with_key);
    let trials = 2 * (recipes.len() + 1);
    place.run("run x.toml --out r --format json").made(trials);
    // Without a certificate for the load, the file is refused, at the subject that needs one.
    place.write("x.toml", &text);
    let refused = place.run("run x.toml --out none").expect(2);
    refused.says(&["asks clients for a certificate", "tls_client_key"]);
    // The servers themselves refuse a client without a certificate.
    let _first = Origin::encrypted(&place, "");
    let origin = Origin::with(&place, "--tls --tls-client-ca ca.pem");
    let url = &origin.url;
    let done = place.run(&format!("load {url} --insecure -n 5")).expect(1);
    has(&done.err, "client's certificate");
}

#[test]
fn varnish_behind_hitch_gets_the_proxy_protocol_and_http2() {
    let recipes = Recipes::embedded().unwrap();
    for name in ["hitch", "varnish"] {
        if installed(recipes.get(name).unwrap()).is_none() {
            return;
        }
    }
    let mut text = String::from("[servers.plain]\nrecipe = \"origin\"\n");
    let mut subjects = String::from("[subjects]\n");
    for (name, header, http) in [("one", "v1", "1.1"), ("two", "v2", "2")] {
        text += &format!(
            "[servers.{name}]\nrecipe = \"varnish\"\nupstreams = [\"plain\"]\n\
             with = {{ proxy_protocol = true, http2 = true, cache = false, threads_min = 10 }}\n\
             [servers.hitch-{name}]\nrecipe = \"hitch\"\nupstreams = [\"{name}\"]\n\
             with = {{ proxy_protocol = \"{header}\", http2 = true }}\n"
        );
        let url = format!("https://hitch-{name}/");
        subjects += &format!("{name} = {{ url = \"{url}\", http = \"{http}\" }}\n");
    }
    runs_well(&(text + &subjects), 3);
}
