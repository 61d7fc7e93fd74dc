//! The servers themselves accept the configurations that their recipes give.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::recipes;
use experiment::manifest::Value;
use experiment::recipe::{
    Behind, Certificates, Recipe, RenderContext, Upstreams, certificate_name,
};
use installed::Availability;

/// Renders a recipe into a folder and asks its program whether it can start with it. In the words
/// of `check`, `DIR` is the folder.
///
/// Where the program is not installed the test says so and passes.
pub(super) fn accepted(recipe: &str, params: &[(&str, Value)], proxy: bool, check: &[&str]) {
    accepted_with(recipe, params, proxy, None, check);
}

/// The same with TLS, and towards the upstream, too, where there is one.
pub(super) fn accepted_with_tls(
    recipe: &str,
    params: &[(&str, Value)],
    proxy: bool,
    check: &[&str],
) {
    let authority = tls::Authority::new().unwrap();
    let issued = authority.issue(&["web".to_owned()], tls::KeyType::EcdsaP256);
    let certificates = Certificates {
        authority: authority.certificate(),
        own: Some(issued.unwrap().identity),
        extra: (1..=MORE)
            .map(|number| {
                let issued = authority.issue(&[certificate_name(number)], tls::KeyType::EcdsaP256);
                issued.unwrap().identity
            })
            .collect(),
    };
    accepted_with(recipe, params, proxy, Some(certificates), check);
}

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
    let Some(available) = found_in(recipe, version) else {
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
            certificates,
            reload: Default::default(),
            checkout: None,
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
pub(super) fn found(recipe: &Recipe) -> Option<Availability> {
    found_in(recipe, None)
}

fn found_in(recipe: &Recipe, version: Option<&str>) -> Option<Availability> {
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
pub(super) fn short_folder() -> PathBuf {
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
fn routes_back_ends_and_certificates_are_accepted() {
    let check = ["-t", "-f", "DIR/apache.conf"];
    let routes = ("routes", Value::Integer(3));
    let groups = ("upstream_groups", Value::Integer(2));
    let names = ("certificates", Value::Integer(MORE as i64));
    let tls = ("tls", ON);
    accepted("apache", std::slice::from_ref(&routes), true, &check);
    let all = [routes.clone(), groups.clone()];
    let with_tls = [routes.clone(), groups, names.clone(), tls.clone()];
    let nginx = [
        "-t",
        "-q",
        "-p",
        "DIR",
        "-c",
        "DIR/nginx.conf",
        "-e",
        "stderr",
    ];
    accepted("nginx", &all, true, &nginx);
    accepted_with_tls("nginx", &with_tls, true, &nginx);
    let haproxy = ["-c", "-f", "DIR/haproxy.cfg"];
    accepted("haproxy", &all, true, &haproxy);
    accepted_with_tls("haproxy", &with_tls, true, &haproxy);
    let caddy = [
        "validate",
        "--adapter",
        "caddyfile",
        "--config",
        "DIR/Caddyfile",
    ];
    accepted("caddy", std::slice::from_ref(&routes), true, &caddy);
    accepted_with_tls("caddy", &[routes, names, tls], true, &caddy);
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
            &["-t", "-f", "DIR/apache.conf"],
        );
        accepted(
            "apache",
            &[mpm, cgi, log],
            false,
            &["-t", "-f", "DIR/apache.conf"],
        );
    }
}

#[test]
fn apache_accepts_upstreams_and_php() {
    let check = ["-t", "-f", "DIR/apache.conf"];
    for balance in ["byrequests", "bybusyness", "bytraffic"] {
        for keep in [ON, OFF] {
            let all = [("balance", text(balance)), ("upstream_keepalive", keep)];
            accepted("apache", &all, true, &check);
        }
    }
    for opcache in [ON, OFF] {
        accepted("apache-php", &[("opcache", opcache)], false, &check);
    }
    accepted("mediawiki-apache", &[], false, &check);
    accepted("apache", &[("upstream_http2", ON)], true, &check);
}

#[test]
fn crossroads_accepts_both_of_its_types() {
    let check = ["-c", "DIR/crossroads.conf", "configtest"];
    let all = [
        ("mode", text("http")),
        ("dispatch_mode", text("bysize")),
        ("over", Value::Integer(7)),
        ("max_connections", Value::Integer(300)),
        ("listen_backlog", Value::Integer(77)),
        ("retries", Value::Integer(3)),
    ];
    accepted("crossroads", &[], true, &check);
    accepted("crossroads", &all, true, &check);
}

#[test]
fn php_accepts_its_processes() {
    let check = ["-t", "-n", "-y", "DIR/fpm.conf"];
    let log = [("access_log", ON), ("max_requests", Value::Integer(9))];
    accepted("php-fpm", &[], false, &check);
    accepted("php-fpm", &log, false, &check);
    accepted("php-fpm", &[("socket", ON)], false, &check);
    accepted("mediawiki-fpm", &log, false, &check);
}

#[test]
fn lighttpd_accepts_both_of_its_parts() {
    accepted("lighttpd", &[], false, &["-tt", "-f", "DIR/lighttpd.conf"]);
    let log = ("access_log", Value::Boolean(true));
    accepted(
        "lighttpd",
        &[log],
        true,
        &["-tt", "-f", "DIR/lighttpd.conf"],
    );
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

const ON: Value = Value::Boolean(true);
const OFF: Value = Value::Boolean(false);

#[test]
fn nginx_accepts_all_that_it_can_be() {
    let check = [
        "-t",
        "-p",
        "DIR",
        "-c",
        "DIR/nginx.conf",
        "-e",
        "DIR/error.log",
    ];
    let site = [
        ("access_log", ON),
        ("gzip", ON),
        ("sendfile", OFF),
        ("reuseport", ON),
        ("open_file_cache", Value::Integer(100)),
    ];
    accepted("nginx", &[], false, &check);
    accepted("nginx", &site, false, &check);
    accepted("nginx", &[("answer", text("a \"$b\" \\"))], false, &check);
    accepted("nginx", &[], true, &check);
    let grpc = [("upstream_protocol", text("grpc")), ("http2", ON)];
    accepted("nginx", &grpc, true, &check);
    accepted("nginx", &[("websocket", ON)], true, &check);
    for balance in ["round_robin", "least_conn", "ip_hash", "random"] {
        let proxy = [
            ("balance", text(balance)),
            ("upstream_keepalive", Value::Integer(16)),
            ("proxy_buffering", ON),
            ("cache", ON),
        ];
        accepted("nginx", &proxy, true, &check);
    }
    for passed in ["all", "php"] {
        let pages = Value::List(vec!["100kB.txt".to_owned()]);
        let php = [
            ("upstream_protocol", text("fastcgi")),
            ("passed", text(passed)),
            ("cache", ON),
            ("files", pages),
        ];
        accepted("nginx", &php, true, &check);
        accepted("nginx", &[("passed", text(passed))], true, &check);
    }
    let socket = [
        ("upstream_protocol", text("fastcgi")),
        ("upstream_socket", text("php.sock")),
    ];
    accepted("nginx", &socket, true, &check);
    for balance in ["round_robin", "least_conn", "client_hash", "random"] {
        let relay = [("balance", text(balance)), ("access_log", ON)];
        accepted("nginx-stream", &relay, true, &check);
    }
}

#[test]
fn haproxy_accepts_both_modes() {
    let check = ["-c", "-f", "DIR/haproxy.cfg"];
    for mode in ["tcp", "http"] {
        accepted("haproxy", &[("mode", text(mode))], true, &check);
        for connections in ["keep-alive", "server-close", "close"] {
            let all = [
                ("mode", text(mode)),
                ("connections", text(connections)),
                ("http_reuse", text("always")),
                ("splice_auto", ON),
                ("access_log", ON),
                ("check", ON),
                ("check_path", text("/")),
            ];
            accepted("haproxy", &all, true, &check);
        }
    }
}

#[test]
fn squid_accepts_both_of_its_parts() {
    let check = ["-k", "parse", "-f", "DIR/squid.conf"];
    for proxy in [false, true] {
        accepted("squid", &[], proxy, &check);
        let kept = [
            ("cache", ON),
            ("cache_valid_min", Value::Integer(1)),
            ("access_log", ON),
        ];
        accepted("squid", &kept, proxy, &check);
    }
}

#[test]
fn nftables_accepts_its_rules() {
    if !net::os::is_root() {
        return testing::skip("nft-dnat: the kernel checks rules for root only");
    }
    for choice in ["inc", "random"] {
        for masquerade in [ON, OFF] {
            let all = [("choice", text(choice)), ("masquerade", masquerade)];
            accepted("nft-dnat", &all, true, &["-c", "-f", "DIR/rules.nft"]);
        }
    }
}

#[test]
fn varnish_compiles_its_language() {
    let check = ["-C", "-n", "DIR/work", "-f", "DIR/default.vcl"];
    for balance in ["round_robin", "random", "fallback"] {
        for on in [ON, OFF] {
            let all = [
                ("balance", text(balance)),
                ("cache", on.clone()),
                ("upstream_keepalive", on),
            ];
            accepted("varnish", &all, true, &check);
        }
    }
}

/// All that a recipe can be with TLS.
pub(super) fn tls_params() -> Vec<Vec<(&'static str, Value)>> {
    let mut all = vec![vec![("tls", ON)]];
    for version in ["any", "1.2", "1.3"] {
        all.push(vec![
            ("tls", ON),
            ("tls_version", text(version)),
            ("tls_tickets", OFF),
            ("tls_client_certs", ON),
            ("http2", ON),
        ]);
    }
    all
}

#[test]
fn servers_accept_tls_on_both_sides() {
    let nginx = ["-t", "-p", "DIR", "-c", "DIR/nginx.conf", "-e", "DIR/e.log"];
    let lighttpd = ["-tt", "-f", "DIR/lighttpd.conf"];
    for params in tls_params() {
        for proxy in [false, true] {
            accepted_with_tls("nginx", &params, proxy, &nginx);
            accepted_with_tls("apache", &params, proxy, &["-t", "-f", "DIR/apache.conf"]);
        }
        accepted_with_tls("haproxy", &params, true, &["-c", "-f", "DIR/haproxy.cfg"]);
        if Path::new("/usr/lib/lighttpd/mod_openssl.so").exists() {
            accepted_with_tls("lighttpd", &params, false, &lighttpd);
        } else {
            testing::skip("lighttpd-mod-openssl is not installed");
        }
    }
}

#[test]
fn caddy_and_hitch_accept_what_they_can_be() {
    let caddy = [
        "validate",
        "--adapter",
        "caddyfile",
        "--config",
        "DIR/Caddyfile",
    ];
    accepted("caddy", &[("access_log", ON)], false, &caddy);
    accepted(
        "caddy",
        &[("answer", text(r#"a "$b" \ {c}"#))],
        false,
        &caddy,
    );
    for balance in ["round_robin", "random", "least_conn", "ip_hash", "first"] {
        let proxy = [
            ("balance", text(balance)),
            ("upstream_keepalive", Value::Integer(0)),
        ];
        accepted("caddy", &proxy, true, &caddy);
    }
    for version in ["any", "1.2", "1.3"] {
        let version = ("tls_version", text(version));
        let asks = ("tls_client_certs", ON);
        let both = [
            ("tls", ON),
            ("http2", ON),
            ("http3", ON),
            asks.clone(),
            version.clone(),
        ];
        for proxy in [false, true] {
            accepted_with_tls("caddy", &both, proxy, &caddy);
        }
        let hitch = ["--test", "--config=DIR/hitch.conf"];
        accepted_with_tls("hitch", std::slice::from_ref(&version), true, &hitch);
        for header in ["off", "v1", "v2"] {
            let relay = [
                version.clone(),
                asks.clone(),
                ("http2", ON),
                ("proxy_protocol", text(header)),
            ];
            accepted_with_tls("hitch", &relay, true, &hitch);
        }
    }
}

#[test]
fn servers_accept_a_folder_and_lines_of_the_users_own() {
    let text = |text: &str| Value::Text(text.to_owned());
    let lines = |line: &str| Value::List(vec![line.to_owned()]);
    let nginx = [
        ("document_root", text("/tmp")),
        ("extra", lines("add_header X-Own yes;")),
        ("extra_http", lines("server_tokens off;")),
    ];
    accepted("nginx", &nginx, false, &["-t", "-c", "DIR/nginx.conf"]);
    let root = ("document_root", text("/tmp"));
    let apache = [root.clone(), ("extra", lines("ServerTokens Prod"))];
    let check = ["-t", "-d", "DIR", "-f", "DIR/apache.conf"];
    accepted("apache", &apache, false, &check);
    accepted("apache-php", &apache, false, &check);
    let extra = lines("server.tag = \"own\"");
    let lighttpd = [root.clone(), ("extra", extra)];
    let check = ["-tt", "-f", "DIR/lighttpd.conf"];
    accepted("lighttpd", &lighttpd, false, &check);
    let caddy = [root, ("extra", lines("encode gzip"))];
    let check = ["adapt", "--config", "DIR/Caddyfile"];
    accepted("caddy", &caddy, false, &check);
    let haproxy = [
        ("extra", lines("compression algo gzip")),
        ("extra_global", lines("tune.maxrewrite 1024")),
    ];
    accepted("haproxy", &haproxy, true, &["-c", "-f", "DIR/haproxy.cfg"]);
    let squid = [("extra", lines("via off"))];
    accepted(
        "squid",
        &squid,
        true,
        &["-k", "parse", "-f", "DIR/squid.conf"],
    );
    let varnish = [(
        "extra_vcl",
        lines("sub vcl_deliver { set resp.http.X-Own = \"yes\"; }"),
    )];
    let check = ["-C", "-f", "DIR/default.vcl", "-n", "DIR/work"];
    accepted("varnish", &varnish, true, &check);
}

#[test]
#[should_panic(expected = "nginx refuses its configuration")]
fn a_line_that_the_server_does_not_know_is_refused_by_it() {
    let extra = Value::List(vec!["no_such_directive on;".to_owned()]);
    accepted(
        "nginx",
        &[("extra", extra)],
        false,
        &["-t", "-c", "DIR/nginx.conf"],
    );
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
