//! `recipe.toml` to [`Recipe`], with every mistake shown in the file.

use std::collections::BTreeMap;
use std::time::Duration;

use super::relays::relays;
use super::reload::{SIGNALS, reload};
use super::render::stays_inside;
use super::settings::settings;
use super::{Need, Ready, ReadyTemplates, Recipe, RecipeError, RecipeFile, RecipeTls, Upstreams};
use crate::manifest::{
    Kind, Param, command, packages, pairs, params, programs, template, version, version_param,
};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units;
use readings::HttpVersion;

const KEYS: [&str; 25] = [
    "summary",
    "homepage",
    "packages",
    "programs",
    "needs",
    "upstreams",
    "params",
    "files",
    "copy",
    "dirs",
    "memory_dirs",
    "run_as",
    "setuid_programs",
    "longest_dir_bytes",
    "log_files",
    "counts",
    "start",
    "stop",
    "ready",
    "reload",
    "relays",
    "tls",
    "version",
    "settings",
    "defaults",
];
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Reads a recipe from the text of its `recipe.toml` and the files of its folder.
///
/// # Errors
/// [`RecipeError::Mistakes`] with every mistake that was found.
pub(super) fn recipe(
    name: &str,
    source_name: &str,
    text: &str,
    files: BTreeMap<String, Vec<u8>>,
) -> Result<Recipe, RecipeError> {
    let recipe = config::open::read(source_name, text, |reader, table| {
        whole(reader, name, &Section::whole(&table), files)
    })?;
    Ok(recipe)
}

fn whole(
    reader: &mut Reader,
    name: &str,
    top: &Section<'_>,
    files: BTreeMap<String, Vec<u8>>,
) -> Recipe {
    top.only(reader, &KEYS);
    let packages = packages(reader, top, name, &files);
    let mut params = params(reader, top);
    version_param(reader, top, &mut params, &packages, name);
    let start = top.section(reader, "start");
    if top.table.get("start").is_none() {
        reader.advise(
            top.place,
            "`start` is missing",
            "no command starts the server",
            "add a table such as: [start] command = [\"{{ programs.x }}\", \"-f\"]",
        );
    }
    let (command, env) = start.as_ref().map_or_else(Default::default, |start| {
        start.only(
            reader,
            &["command", "env", "variables", "cwd", "inherit_env"],
        );
        (
            command(reader, start),
            pairs(reader, start, "env")
                .into_iter()
                .map(|(name, value, _)| (name, value))
                .collect(),
        )
    });
    let (ready, ready_templates) = ready(reader, top);
    let start = start.as_ref();
    let variables = start.and_then(|start| list_param(reader, start, "variables", &params));
    let cwd = start.and_then(|start| {
        let text = start.text(reader, "cwd")?;
        template(reader, start.value_place("cwd"), "the folder", &text);
        Some(text)
    });
    let inherit_env = start.and_then(|start| start.boolean(reader, "inherit_env"));
    Recipe {
        name: name.to_owned(),
        folder: None,
        summary: top
            .required_text(reader, "summary", "\"what it is, in a sentence\"")
            .unwrap_or_default(),
        homepage: top.text(reader, "homepage"),
        packages,
        programs: programs(reader, top),
        needs: needs(reader, top),
        upstreams: top
            .word(reader, "upstreams", &Upstreams::WORDS)
            .and_then(|word| Upstreams::of_word(&word))
            .unwrap_or(Upstreams::None),
        dirs: inner_paths(reader, top, "dirs"),
        memory_dirs: memory_dirs(reader, top),
        run_as: top.text(reader, "run_as"),
        setuid_programs: top.boolean(reader, "setuid_programs").unwrap_or(false),
        longest_dir_bytes: top
            .integer(reader, "longest_dir_bytes", 20..=4000)
            .and_then(|bytes| usize::try_from(bytes).ok()),
        log_files: inner_paths(reader, top, "log_files"),
        counts: counts(reader, top),
        templates: templates(reader, top, &params, &files),
        copies: copies(reader, top, "copy", &params, &files),
        params,
        command,
        env,
        variables,
        cwd,
        inherit_env: inherit_env.unwrap_or(false),
        stop: stop(reader, top),
        ready,
        ready_templates,
        reload: reload(reader, top),
        relays: relays(reader, top),
        tls: tls(reader, top),
        version: version(reader, top, "\"Server/\""),
        settings: settings(reader, top),
        defaults: pairs(reader, top, "defaults")
            .into_iter()
            .map(|(what, why, _)| (what, why))
            .collect(),
        files,
    }
}

fn memory_dirs(reader: &mut Reader, top: &Section<'_>) -> Vec<String> {
    let paths = top.texts(reader, "memory_dirs").unwrap_or_default();
    for (path, place) in &paths {
        template(reader, *place, "the folder", path);
    }
    inner_paths(reader, top, "memory_dirs")
}

fn needs(reader: &mut Reader, top: &Section<'_>) -> Vec<Need> {
    let mut needs = Vec::new();
    for section in tables(reader, top, "needs") {
        section.only(reader, &["file", "package"]);
        let file = section.required_text(reader, "file", "\"/usr/lib/…\"");
        needs.push(Need {
            file: file.unwrap_or_default(),
            package: section.text(reader, "package"),
        });
    }
    needs
}

fn templates(
    reader: &mut Reader,
    top: &Section<'_>,
    params: &[Param],
    files: &BTreeMap<String, Vec<u8>>,
) -> Vec<RecipeFile> {
    let templates = copies(reader, top, "files", params, files);
    let Some(section) = top.section(reader, "files") else {
        return templates;
    };
    for entry in &section.table.entries {
        let made = templates.iter().find(|made| made.to == entry.name);
        let Some(bytes) = made.and_then(|made| files.get(&made.from)) else {
            continue;
        };
        let (from, place) = (&made.map_or("", |made| &made.from), entry.node.place);
        match std::str::from_utf8(bytes) {
            Ok(text) => template(reader, place, from, text),
            Err(_) => reader.report(Problem::at(
                place,
                format!("the template `{from}` is not UTF-8"),
                "put binary files under [copy]",
            )),
        }
    }
    templates
}

fn copies(
    reader: &mut Reader,
    top: &Section<'_>,
    key: &str,
    params: &[Param],
    files: &BTreeMap<String, Vec<u8>>,
) -> Vec<RecipeFile> {
    let Some(section) = top.section(reader, key) else {
        return Vec::new();
    };
    let mut copies = Vec::new();
    for entry in &section.table.entries {
        let path = section.name_of(&entry.name);
        let (from, place, each, mode) = match &entry.node.tree {
            Tree::Text(from) => (from.clone(), entry.node.place, None, 0o644),
            _ => {
                let Some(inner) = reader.section(entry, path) else {
                    continue;
                };
                inner.only(reader, &["from", "mode", "each"]);
                let from = inner.required_text(reader, "from", "\"file\"");
                let place = inner
                    .table
                    .get("from")
                    .map_or(entry.place, |e| e.node.place);
                (
                    from.unwrap_or_default(),
                    place,
                    list_param(reader, &inner, "each", params),
                    mode(reader, &inner),
                )
            }
        };
        template(reader, place, "the path", &from);
        template(reader, entry.place, "the path", &entry.name);
        if !from.contains('{') && !files.contains_key(&from) {
            no_such_file(reader, place, &from, files);
        }
        copies.push(RecipeFile {
            to: entry.name.clone(),
            from,
            each,
            mode,
        });
    }
    copies
}

/// The name of a list parameter under a key.
fn list_param(
    reader: &mut Reader,
    section: &Section<'_>,
    key: &str,
    params: &[Param],
) -> Option<String> {
    let name = section.text(reader, key)?;
    let lists = || params.iter().filter(|param| param.kind == Kind::List);
    if !lists().any(|param| param.name == name) {
        let place = section.value_place(key);
        reader.advise(
            place,
            format!("no list parameter is called `{}`", units::shown(&name)),
            "expected the name of a parameter of type list",
            suggestion(
                &name,
                "list parameters",
                lists().map(|param| param.name.as_str()),
            ),
        );
    }
    Some(name)
}

fn mode(reader: &mut Reader, section: &Section<'_>) -> u32 {
    const USUAL: u32 = 0o644;
    let Some(text) = section.text(reader, "mode") else {
        return USUAL;
    };
    match u32::from_str_radix(&text, 8) {
        Ok(mode) if mode <= 0o777 => mode,
        _ => {
            let place = section.value_place("mode");
            reader.report(Problem::at(
                place,
                format!("`{}` is not a file mode", units::shown(&text)),
                "expected three or four octal digits, such as \"0755\"",
            ));
            USUAL
        }
    }
}

fn stop(reader: &mut Reader, top: &Section<'_>) -> Vec<(String, Duration)> {
    let usual = || vec![("TERM".to_owned(), Duration::from_secs(5))];
    let Some(section) = top.section(reader, "stop") else {
        return usual();
    };
    section.only(reader, &["signals"]);
    let mut steps = Vec::new();
    for step in tables(reader, &section, "signals") {
        step.only(reader, &["signal", "wait"]);
        step.required_text(reader, "signal", "\"TERM\"");
        let signal = step.word(reader, "signal", &SIGNALS);
        let wait = step.duration(reader, "wait", Duration::ZERO..=LONGEST_WAIT);
        steps.push((
            signal.unwrap_or_default(),
            wait.unwrap_or(Duration::from_secs(5)),
        ));
    }
    if steps.is_empty() { usual() } else { steps }
}

fn ready(reader: &mut Reader, top: &Section<'_>) -> (Ready, ReadyTemplates) {
    let mut templates = ReadyTemplates::default();
    let mut ready = Ready {
        path: "/".to_owned(),
        http: HttpVersion::default(),
        proxy_protocol: false,
        send: None,
        status: None,
        contains: None,
        timeout: Duration::from_secs(10),
    };
    let Some(section) = top.section(reader, "ready") else {
        return (ready, templates);
    };
    let keys = [
        "path",
        "http",
        "proxy_protocol",
        "send",
        "status",
        "contains",
        "timeout",
    ];
    section.only(reader, &keys);
    ready.send = section.text(reader, "send");
    if ready.send.is_some() {
        for key in ["path", "http", "proxy_protocol", "status"] {
            if let Some(entry) = section.table.get(key) {
                reader.report(Problem::at(
                    entry.place,
                    format!("`ready.{key}` is for HTTP, and `ready.send` for other protocols"),
                    "expected one of the two",
                ));
            }
        }
    }
    if let Some(path) = section.text(reader, "path") {
        let place = section.value_place("path");
        if !path.starts_with(['/', '{']) {
            reader.report(Problem::at(
                place,
                format!("`ready.path` is not a path: `{}`", units::shown(&path)),
                "expected a path that begins with `/`",
            ));
        }
        template(reader, place, "the path", &path);
        ready.path = path;
    }
    ready.status = section
        .integer(reader, "status", 100..=599)
        .and_then(|status| u16::try_from(status).ok());
    ready.contains = section.text(reader, "contains");
    let timeout = section.duration(reader, "timeout", Duration::from_millis(100)..=LONGEST_WAIT);
    ready.timeout = timeout.unwrap_or(ready.timeout);
    let mut template_of = |key: &str| {
        let text = section.text(reader, key)?;
        template(reader, section.value_place(key), "the value", &text);
        Some(text)
    };
    templates.http = template_of("http");
    templates.proxy_protocol = template_of("proxy_protocol");
    if let Some(text) = &templates.http
        && !text.contains('{')
        && HttpVersion::of(text).is_none()
    {
        reader.report(Problem::at(
            section.value_place("http"),
            format!(
                "`ready.http` is not a version of HTTP: `{}`",
                units::shown(text)
            ),
            "expected \"1.1\", \"2\" or \"3\"",
        ));
    }
    (ready, templates)
}

fn tls(reader: &mut Reader, top: &Section<'_>) -> Option<RecipeTls> {
    let section = top.section(reader, "tls")?;
    section.only(reader, &["enabled", "key", "client_certs", "certificates"]);
    for key in ["enabled", "key", "client_certs", "certificates"] {
        if let Some(text) = section.text(reader, key) {
            template(reader, section.value_place(key), "the value", &text);
        }
    }
    Some(RecipeTls {
        enabled: section.required_text(reader, "enabled", "\"{{ params.tls }}\"")?,
        key: section.text(reader, "key"),
        client_certs: section.text(reader, "client_certs"),
        certificates: section.text(reader, "certificates"),
    })
}

/// The tables in an array.
fn tables<'t>(reader: &mut Reader, section: &Section<'t>, key: &str) -> Vec<Section<'t>> {
    let Some((entry, path)) = section.entry(key) else {
        return Vec::new();
    };
    let Tree::Array(items) = &entry.node.tree else {
        reader.expected(
            &entry.node,
            &path,
            "a list of tables, such as [{ … }, { … }]",
        );
        return Vec::new();
    };
    let mut found = Vec::new();
    for item in items {
        match &item.tree {
            Tree::Table(table) => found.push(Section {
                path: format!("{path}[]"),
                place: item.place,
                table,
            }),
            _ => reader.expected(item, &format!("{path}[]"), "a table, such as { … }"),
        }
    }
    found
}

/// Paths that have to stay inside the server's folder.
/// The name of the file in which the server counts what it receives.
fn counts(reader: &mut Reader, top: &Section<'_>) -> Option<String> {
    let name = top.text(reader, "counts")?;
    if name.contains('/') || !stays_inside(&name) {
        reader.report(Problem::at(
            top.value_place("counts"),
            format!("`{}` is not the name of a file", units::shown(&name)),
            "expected a file directly in the server's folder, such as \"counts\"",
        ));
    }
    Some(name)
}

fn inner_paths(reader: &mut Reader, top: &Section<'_>, key: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (path, place) in top.texts(reader, key).unwrap_or_default() {
        if !stays_inside(&path) {
            reader.report(Problem::at(
                place,
                format!("`{}` is outside the server's folder", units::shown(&path)),
                "expected a path inside it, without `..`",
            ));
        }
        paths.push(path);
    }
    paths
}

fn no_such_file(reader: &mut Reader, place: Place, name: &str, files: &BTreeMap<String, Vec<u8>>) {
    let there = files
        .keys()
        .map(String::as_str)
        .filter(|file| *file != "recipe.toml");
    reader.advise(
        place,
        format!("the recipe's folder has no file `{}`", units::shown(name)),
        "no such file",
        suggestion(name, "files", there),
    );
}
