//! Recipes give what they promise: configurations, commands, and mistakes shown in their place.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use testing::Text as _;

use crate::support::{Scratch, assert_shown, recipes, rendered, scratch};
use experiment::manifest::Value;
use experiment::recipe::{Behind, Recipe, RecipeError, RenderContext, Rendered, Upstreams};
use experiment::{LoadError, Recipes};

pub(crate) fn context(recipe: &Recipe, dir: &Path, params: &[(&str, Value)]) -> RenderContext {
    let upstreams = match recipe.upstreams {
        Upstreams::None => Vec::new(),
        _ => vec![behind("backend", "127.0.0.1:8081")],
    };
    RenderContext {
        name: "web".to_owned(),
        dir: dir.to_owned(),
        listen_addr: "127.0.0.1:8080".parse().unwrap(),
        upstreams,
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        programs: BTreeMap::new(),
        weigh: PathBuf::from("/usr/bin/weigh"),
        cpus: 2,
        certificates: None,
        reload: Default::default(),
        checkout: None,
    }
}

/// A recipe filled in with these parameters.
fn filled(recipe: &Recipe, params: &[(&str, Value)]) -> Rendered {
    let context = context(recipe, Path::new("/d"), params);
    recipe.render(&context).unwrap()
}

/// Recipes of programs that users bring: they need a command or an image, and nothing is known of
/// their settings.
pub(super) fn is_of_users(name: &str) -> bool {
    ["command", "image"].contains(&name)
}

fn behind(name: &str, addr: &str) -> Behind {
    Behind {
        name: name.to_owned(),
        addr: addr.parse().unwrap(),
        dir: Some(PathBuf::from("/behind")),
        tls: false,
    }
}

pub(super) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn scripts() -> (&'static str, Value) {
    ("cgi", Value::List(vec!["second.pl".to_owned()]))
}

pub(super) fn file(rendered: &Rendered, path: &str) -> String {
    let file = rendered.files.iter().find(|file| file.path == path);
    let file = file.unwrap_or_else(|| panic!("no file {path}"));
    String::from_utf8(file.bytes.clone()).unwrap()
}

#[test]
fn every_recipe_fills_in_with_its_defaults() {
    let recipes = recipes();
    let names: Vec<&str> = recipes.names().collect();
    let expected = "apache apache-php balance caddy command crossroads envoy h2o haproxy hitch image \
                    ipvs lighttpd mariadb mediawiki-apache mediawiki-fpm nft-dnat nghttpd nghttpx \
                    nginx nginx-stream node origin pen php-fpm pingora redis retwis squid traefik \
                    trafficserver varnish";
    assert_eq!(names.join(" "), expected);
    for recipe in recipes.iter().filter(|one| !is_of_users(&one.name)) {
        let out = filled(recipe, &[]);
        assert!(!out.command.is_empty() && !out.stop.is_empty());
        for file in &out.files {
            let text = String::from_utf8_lossy(&file.bytes);
            assert!(
                !text.contains("{{") && !text.contains("{%"),
                "{}",
                file.path
            );
        }
        for param in &recipe.params {
            assert!(!param.doc.is_empty(), "{}.{}", recipe.name, param.name);
        }
        assert!(!recipe.summary.is_empty());
    }
}

#[test]
fn configurations_are_as_shown() {
    let recipes = recipes();
    let dir = Path::new("/run/web");
    let apache = recipes.get("apache").unwrap();
    let alone = |params: &[(&str, Value)]| {
        let mut with = context(apache, dir, params);
        with.upstreams.clear();
        apache.render(&with).unwrap()
    };
    let event = alone(&[scripts()]);
    assert_shown("apache-event", &file(&event, "apache.conf"));
    let prefork = [
        ("mpm", text("prefork")),
        scripts(),
        ("access_log", Value::Boolean(true)),
    ];
    let prefork = alone(&prefork);
    assert_shown("apache-prefork", &file(&prefork, "apache.conf"));
    let lighttpd = recipes.get("lighttpd").unwrap();
    let mut with = context(lighttpd, dir, &[]);
    let proxy = lighttpd.render(&with).unwrap();
    assert_shown("lighttpd-proxy", &file(&proxy, "lighttpd.conf"));
    with.upstreams.clear();
    let site = file(&lighttpd.render(&with).unwrap(), "lighttpd.conf");
    assert!(!site.contains("proxy"), "{site}");
}

/// Without them the configurations are as before, and each is asked for the last of its routes.
#[test]
fn routes_are_as_shown() {
    let recipes = recipes();
    for (name, path) in [
        ("nginx", "nginx.conf"),
        ("haproxy", "haproxy.cfg"),
        ("caddy", "Caddyfile"),
        ("apache", "apache.conf"),
    ] {
        let recipe = recipes.get(name).unwrap();
        let render = |params: &[(&str, Value)]| filled(recipe, params);
        let (plain, routed) = (render(&[]), render(&[("routes", Value::Integer(3))]));
        assert_eq!(
            (&*plain.ready.path, &*routed.ready.path),
            ("/", "/r3/"),
            "{name}"
        );
        let (plain, routed) = (file(&plain, path), file(&routed, path));
        assert_shown(&format!("routes-none-{name}"), &plain);
        assert_shown(&format!("routes-{name}"), &routed);
    }
}

#[test]
fn scripts_are_copied_only_when_asked_for_and_can_be_run() {
    let recipes = recipes();
    let apache = recipes.get("apache").unwrap();
    let without = filled(apache, &[]);
    assert!(
        without
            .files
            .iter()
            .all(|file| !file.path.contains("cgi-bin"))
    );
    assert!(!file(&without, "apache.conf").contains("cgi"));
    let with = filled(apache, &[scripts()]);
    let script = with
        .files
        .iter()
        .find(|file| file.path == "cgi-bin/second.pl")
        .unwrap();
    assert_eq!(script.mode, 0o755);
    assert!(script.bytes.starts_with(b"#!/usr/bin/perl\n"));
}

#[test]
fn built_in_servers_are_started_by_the_program_itself() {
    let recipes = recipes();
    let origin = recipes.get("origin").unwrap();
    let out = filled(origin, &[("threads", Value::Integer(2))]);
    assert_eq!(
        out.command,
        [
            "/usr/bin/weigh",
            "origin",
            "--listen",
            "127.0.0.1:8080",
            "--threads",
            "2",
            "--counts",
            "/d/counts"
        ]
    );
    let balance = recipes.get("balance").unwrap();
    let mut with = context(balance, Path::new("/d"), &[]);
    with.upstreams.push(behind("six", "[::1]:8082"));
    let out = balance.render(&with).unwrap();
    assert_eq!(
        out.command,
        ["/usr/bin/weigh", "balance", "/d/balance.toml"]
    );
    let config: toml::Table = file(&out, "balance.toml").parse().unwrap();
    assert_eq!(config["threads"].as_integer(), Some(1));
    let service = &config["services"]["balance"];
    assert_eq!(service["listen"].as_str(), Some("127.0.0.1:8080"));
    assert_eq!(service["kind"].as_str(), Some("tcp"));
    assert_eq!(service["backends"].as_table().unwrap().len(), 2);
    assert_eq!(
        service["backends"]["upstream2"].as_str(),
        Some("[::1]:8082")
    );
    with.params.insert("mode".to_owned(), text("http"));
    let out = balance.render(&with).unwrap();
    let config: toml::Table = file(&out, "balance.toml").parse().unwrap();
    let service = &config["services"]["balance"];
    assert_eq!(service["kind"].as_str(), Some("http"));
    assert_eq!(
        service["backends"]["upstream2"].as_str(),
        Some("[::1]:8082")
    );
    // A file of the user's takes its place, behind what it needs to know.
    let own = "service s { port LISTEN_PORT; backend b { server SERVER1; port PORT1; } }";
    with.params.insert("crossroads".to_owned(), text(own));
    let out = balance.render(&with).unwrap();
    assert_eq!(out.command[2], "/d/crossroads.conf");
    let lines = file(&out, "crossroads.conf");
    assert!(lines.contains("\n#define LISTEN_PORT 8080\n"), "{lines}");
    assert!(lines.contains("\n#define PORT2 8082\n"), "{lines}");
    assert!(lines.trim_end().ends_with(own), "{lines}");
    with.upstreams.clear();
    assert!(matches!(
        balance.render(&with),
        Err(RecipeError::Upstreams { found: 0, .. })
    ));
}

#[test]
fn programs_that_were_found_go_by_their_path() {
    let recipes = recipes();
    let lighttpd = recipes.get("lighttpd").unwrap();
    let mut with = context(lighttpd, Path::new("/d"), &[]);
    assert_eq!(lighttpd.render(&with).unwrap().command[0], "lighttpd");
    with.programs
        .insert("lighttpd".to_owned(), "/opt/lighttpd".into());
    assert_eq!(lighttpd.render(&with).unwrap().command[0], "/opt/lighttpd");
}

#[test]
fn folders_that_a_server_cannot_bear_are_refused() {
    let recipes = recipes();
    let apache = recipes.get("apache").unwrap();
    let long = format!("/{}", "d".repeat(90));
    let error = apache
        .render(&context(apache, Path::new(&long), &[]))
        .unwrap_err();
    assert!(
        matches!(
            error,
            RecipeError::DirTooLong {
                longest: 80,
                found: 91,
                ..
            }
        ),
        "{error}"
    );
    for dir in ["relative", "/with\"quote", "/with\nline"] {
        let error = apache
            .render(&context(apache, Path::new(dir), &[]))
            .unwrap_err();
        assert!(matches!(error, RecipeError::Path { .. }), "{error}");
    }
}

#[test]
fn parameters_are_checked_again_when_filled_in() {
    let recipes = recipes();
    let apache = recipes.get("apache").unwrap();
    for (name, value) in [
        ("mpm", text("nonsense")),
        ("listen_backlog", Value::Integer(0)),
        ("nothing", Value::Integer(0)),
        ("cgi", Value::List(vec!["../../etc/passwd".to_owned()])),
    ] {
        let error = apache.render(&context(apache, Path::new("/d"), &[(name, value)]));
        assert!(matches!(error, Err(RecipeError::Param { .. })), "{name}");
    }
}

#[test]
fn versions_are_found_in_what_servers_print() {
    let recipes = recipes();
    let version = |recipe: &str, printed: &str| recipes.get(recipe).unwrap().version_in(printed);
    assert_eq!(
        version(
            "apache",
            "Server version: Apache/2.4.62 (Debian)\nServer built: …"
        ),
        Some("2.4.62".to_owned())
    );
    assert_eq!(
        version(
            "lighttpd",
            "lighttpd/1.4.69 (ssl) - a light and fast webserver"
        ),
        Some("1.4.69".to_owned())
    );
    assert_eq!(version("origin", "weigh 0.1.0\n"), Some("0.1.0".to_owned()));
    assert_eq!(version("origin", "nonsense"), None);
}

pub(super) fn load(dir: &Scratch) -> Result<Recipes, LoadError> {
    Recipes::load(std::slice::from_ref(dir), &[])
}

/// Writes a recipe of a user's into `DIR/NAME` and returns DIR.
pub(super) fn own(test: &str, name: &str, toml: &str, files: &[(&str, &str)]) -> Scratch {
    let dir = scratch(test);
    let folder = dir.join(name);
    for (path, content) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("recipe.toml"), toml).unwrap();
    dir
}

#[test]
fn a_users_recipe_wins_over_one_of_the_same_name() {
    let toml = "summary = \"mine\"\n[programs]\nx = [\"no-such-program\"]\n[packages]\ndebian = [\"no-such-package\"]\n[start]\ncommand = [\"{{ programs.x }}\"]\n";
    let dir = own("own-recipe", "apache", toml, &[]);
    let recipes = load(&dir).unwrap();
    let mine = recipes.get("apache").unwrap();
    assert_eq!(mine.summary, "mine");
    assert!(recipes.get("lighttpd").is_some());
    let available = mine.available();
    assert_eq!(available.missing_programs, ["no-such-program"]);
    assert_eq!(
        available.sentence().unwrap(),
        "no-such-program is not installed: `apt-get install --no-install-recommends no-such-package`"
    );
}

#[test]
fn a_program_of_a_registry_names_the_command_that_installs_it() {
    let toml = |pip: &str| {
        format!(
            "summary = \"s\"\n[programs]\nx = [\"no-such-program\"]\n[packages]\npip = \"{pip}\"\n\
             [start]\ncommand = [\"{{{{ programs.x }}}}\"]\n"
        )
    };
    let recipes = load(&own("own-pip", "mine", &toml("no-such-x==1.2"), &[])).unwrap();
    assert_eq!(
        recipes.get("mine").unwrap().available().sentence().unwrap(),
        "no-such-program is not installed: `weigh install mine`"
    );
    let error = load(&own("own-pip-any", "mine", &toml("x>=1"), &[])).unwrap_err();
    let said = rendered(&error);
    said.has("`x>=1` is no package of a fixed version");
}

#[test]
fn a_template_includes_another_of_its_recipe() {
    let toml = "summary = \"s\"\n[files]\n\"a\" = \"a.j2\"\n[start]\ncommand = [\"x\"]\n";
    let files = [
        ("a.j2", "1 {% include \"part.j2\" %}"),
        ("part.j2", "by {{ name }}"),
    ];
    let recipes = load(&own("own-include", "x", toml, &files)).unwrap();
    let recipe = recipes.get("x").unwrap();
    let out = recipe.render(&context(recipe, Path::new("/d"), &[]));
    assert_eq!(file(&out.unwrap(), "a"), "1 by web");
}

#[test]
fn a_missing_module_names_its_package() {
    let toml = "summary = \"s\"\nneeds = [{ file = \"/no/such/mod_x.so\", package = \"mod-x\" }]\n[packages]\ndebian = [\"y\"]\n[start]\ncommand = [\"x\"]\n";
    let recipes = load(&own("own-needs", "x", toml, &[])).unwrap();
    let available = recipes.get("x").unwrap().available();
    assert!(!available.is_complete());
    assert_eq!(
        available.install_command.unwrap(),
        "apt-get install --no-install-recommends mod-x"
    );
}

#[test]
fn mistakes_in_a_recipe_are_shown_in_it() {
    let toml = include_str!("rules/mistakes.toml");
    let files = [("a.conf", "x"), ("b.conf", "{% if %}\n")];
    let dir = own("own-mistakes", "wrong", toml, &files);
    let error = load(&dir).unwrap_err();
    let shown = rendered(&error).replace(&dir.display().to_string(), "DIR");
    // The frame is as wide as the path is long; what counts is inside.
    assert_shown("recipe-mistakes", &shown);
}

#[test]
fn a_template_that_uses_an_unknown_name_is_an_error() {
    let toml = "summary = \"s\"\n[files]\n\"a\" = \"a.j2\"\n[start]\ncommand = [\"x\"]\n";
    let dir = own(
        "own-unknown-name",
        "x",
        toml,
        &[("a.j2", "one\n{{ params.nothing }}\n")],
    );
    let recipes = load(&dir).unwrap();
    let recipe = recipes.get("x").unwrap();
    let error = recipe
        .render(&context(recipe, Path::new("/d"), &[]))
        .unwrap_err();
    let said = error.to_string();
    assert!(said.contains("a.j2") && said.contains("line 2"), "{said}");
}

#[test]
fn files_are_made_for_each_item_of_a_list_and_may_be_shared_between_recipes() {
    let toml = "summary = \"s\"\nupstreams = \"any\"\n[params.pages]\ntype = \"list\"\ndefault = []\n\
                [files]\n\"www/{{ item }}\" = { from = \"shared/page.j2\", each = \"pages\", mode = \"0755\" }\n\
                [copy]\n\"{{ item }}\" = { from = \"shared/{{ item }}\", each = \"pages\" }\n\
                [start]\ncommand = [\"x\", \"{{ upstreams[0].dir or 'unknown' }}\"]\n";
    let page = "{{ item }} by {{ name }}";
    let dir = own("own-shared", "x", toml, &[("b", "own")]);
    let shared = dir.join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("page.j2"), page).unwrap();
    fs::write(shared.join("a"), "whole").unwrap();
    let recipes = load(&dir).unwrap();
    let recipe = recipes.get("x").unwrap();
    assert!(recipes.get("shared").is_none());
    let pages = |pages: &[&str]| {
        let list = pages.iter().map(|page| (*page).to_owned()).collect();
        ("pages", Value::List(list))
    };
    let mut with = context(recipe, Path::new("/d"), &[pages(&["a"])]);
    let out = recipe.render(&with).unwrap();
    assert_eq!(file(&out, "www/a"), "a by web");
    assert_eq!(file(&out, "a"), "whole");
    let modes: Vec<u32> = out.files.iter().map(|file| file.mode).collect();
    assert_eq!(modes, [0o755, 0o644]);
    assert_eq!(out.command, ["x", "/behind"]);
    with.upstreams[0].dir = None;
    with.params = BTreeMap::from([("pages".to_owned(), Value::List(Vec::new()))]);
    let none = recipe.render(&with).unwrap();
    assert!(none.files.is_empty());
    assert_eq!(none.command, ["x", "unknown"]);
    // What lies in the recipe's folder is no file of `shared`.
    let other = context(recipe, Path::new("/d"), &[pages(&["b"])]);
    assert!(matches!(
        recipe.render(&other),
        Err(RecipeError::Path { .. })
    ));
}

#[test]
fn another_protocol_has_no_path_and_no_status() {
    let ready = |keys: &str| {
        let toml = format!("summary = \"s\"\n[start]\ncommand = [\"x\"]\n[ready]\n{keys}\n");
        load(&own("own-protocol", "x", &toml, &[]))
    };
    let recipes = ready("send = \"PING\\r\\n\"\ncontains = \"+PONG\"").unwrap();
    let recipe = recipes.get("x").unwrap();
    let out = filled(recipe, &[]);
    assert_eq!(out.ready.send.as_deref(), Some("PING\r\n"));
    for keys in [
        "send = \"PING\"\npath = \"/\"",
        "send = \"PING\"\nstatus = 200",
    ] {
        let said = rendered(&ready(keys).unwrap_err());
        assert!(said.contains("is for HTTP"), "{said}");
    }
}

#[test]
fn no_path_leaves_the_servers_folder() {
    let toml = "summary = \"s\"\n[params.where]\ntype = \"string\"\n[copy]\n\"{{ params.where }}\" = \"a\"\n[start]\ncommand = [\"x\"]\n";
    let recipes = load(&own("own-climbs", "x", toml, &[("a", "a")])).unwrap();
    let recipe = recipes.get("x").unwrap();
    let copy_to =
        |path: &str| recipe.render(&context(recipe, Path::new("/d"), &[("where", text(path))]));
    assert!(copy_to("inside/file").is_ok());
    for path in ["../outside", "/etc/passwd", "a/../../b", ""] {
        assert!(
            matches!(copy_to(path), Err(RecipeError::Path { .. })),
            "{path}"
        );
    }
}

#[test]
fn every_recipe_tells_its_settings_in_the_same_words() {
    let recipes = recipes();
    for name in recipes.names().filter(|name| !is_of_users(name)) {
        let recipe = recipes.get(name).unwrap();
        let dir = Path::new("/run/web");
        let rendered = recipe.render(&context(recipe, dir, &[])).unwrap();
        let settings = &rendered.settings;
        for expected in ["access_log", "caching", "tls"] {
            assert!(
                settings.contains_key(expected),
                "{name} tells no {expected}"
            );
        }
        for value in settings.values() {
            assert!(
                !["", "true", "false"].contains(&value.to_lowercase().as_str()),
                "{name}: {settings:?}"
            );
        }
    }
    let nginx = recipes.get("nginx").unwrap();
    let params = [
        ("keepalive_timeout_s", Value::Integer(0)),
        ("workers", Value::Integer(3)),
    ];
    let mut context = context(nginx, Path::new("/run/web"), &params);
    let proxy = nginx.render(&context).unwrap().settings;
    assert_eq!(
        (&*proxy["workers"], &*proxy["keepalive_client"]),
        ("3", "off")
    );
    assert_eq!(proxy["keepalive_upstream"], "off");
    context.upstreams.clear();
    let files = nginx.render(&context).unwrap().settings;
    assert!(
        !files.contains_key("keepalive_upstream"),
        "there is no upstream: {files:?}"
    );
}

#[test]
fn a_setting_of_another_name_is_shown_with_the_nearest() {
    let toml = "summary = \"s\"\n[start]\ncommand = [\"x\"]\n[settings]\nworker = \"1\"\n";
    let dir = own("own-settings", "x", toml, &[]);
    let said = rendered(&load(&dir).unwrap_err());
    said.has("worker");
    said.has("`workers`");
    let plain = "summary = \"s\"\n[start]\ncommand = [\"x\"]\n";
    let recipes = load(&own("own-no-settings", "x", plain, &[])).unwrap();
    let recipe = recipes.get("x").unwrap();
    let rendered = filled(recipe, &[]);
    assert!(rendered.settings.is_empty());
}
