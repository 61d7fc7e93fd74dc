//! Filling a recipe in: configuration files, command lines and probes for one server.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use minijinja::{Environment, context};
use readings::{HttpVersion, ServerSettings};
use tls::KeyType;

use super::context::{
    Certificates, Ready, RenderContext, Rendered, RenderedFile, certificate_name,
};
use super::items::{Placeholders, param_of};
use super::reload::{Reload, ReloadSign};
use super::settings::setting_value;
use super::{Recipe, RecipeError};
use crate::manifest::{Param, VERSION, Value, complaint, environment, params_seen, programs_seen};

/// The folder of the certificates inside the server's folder.
const TLS_FOLDER: &str = "tls";
/// The folder of extra certificates inside that.
const EXTRA_FOLDER: &str = "certificates";
/// A private key is for its server only.
const KEY_MODE: u32 = 0o600;

impl Recipe {
    /// Fills the recipe in for one server. Nothing is read, written or started.
    ///
    /// # Errors
    /// When a parameter or the number of upstreams does not fit, the folder's path is unusable,
    /// or a template fails.
    pub fn render(&self, ctx: &RenderContext) -> Result<Rendered, RecipeError> {
        if !self.upstreams.takes(ctx.upstreams.len()) {
            return Err(RecipeError::Upstreams {
                recipe: self.name.clone(),
                takes: self.upstreams.words(),
                found: ctx.upstreams.len(),
            });
        }
        let filler = Filler::new(self, ctx)?;
        let mut files = Vec::new();
        for template in &self.templates {
            for item in filler.items(template.each.as_deref()) {
                let item = item.as_deref();
                let (from, source) = filler.source("files", template, item)?;
                let text = String::from_utf8_lossy(source);
                files.push(RenderedFile {
                    path: filler.path("files", &template.to, item)?,
                    bytes: filler.text(&from, &text, item)?.into_bytes(),
                    mode: template.mode,
                });
            }
        }
        for copy in &self.copies {
            for item in filler.items(copy.each.as_deref()) {
                let item = item.as_deref();
                let (_, bytes) = filler.source("copy", copy, item)?;
                files.push(RenderedFile {
                    path: filler.path("copy", &copy.to, item)?,
                    bytes: bytes.to_vec(),
                    mode: copy.mode,
                });
            }
        }
        files.extend(ctx.certificates.iter().flat_map(certificate_files));
        let mut env = self
            .env
            .iter()
            .map(|(name, value)| Ok((name.clone(), filler.text("start.env", value, None)?)))
            .collect::<Result<Vec<_>, RecipeError>>()?;
        if let Some(list) = &self.variables {
            env.push(("PORT".to_owned(), ctx.listen_addr.port().to_string()));
            env.extend(filler.variables(list)?);
        }
        let cwd = self
            .cwd
            .as_ref()
            .map(|text| filler.text("start.cwd", text, None).map(PathBuf::from))
            .transpose()?;
        let contains = self
            .ready
            .contains
            .as_ref()
            .map(|text| filler.text("ready.contains", text, None))
            .transpose()?;
        let templates = &self.ready_templates;
        let http = templates.http.as_ref().map(|text| {
            let name = filler.text("ready.http", text, None)?;
            HttpVersion::of(&name).ok_or_else(|| {
                let why = format!("expected 1.1, 2 or 3, found `{name}`");
                template_error(self, "ready.http", why)
            })
        });
        let proxy_protocol = templates.proxy_protocol.as_ref().map(|text| {
            let filled = filler.text("ready.proxy_protocol", text, None)?;
            Ok::<_, RecipeError>(setting_value(&filled).as_deref() == Some("on"))
        });
        let mut settings = BTreeMap::new();
        for (name, text) in &self.settings {
            let filled = filler.text(&format!("settings.{name}"), text, None)?;
            if let Some(value) = setting_value(&filled) {
                let value = filler
                    .overriding(name)
                    .map_or(value, ServerSettings::unknown);
                settings.insert(name.clone(), value);
            }
        }
        let memory_dirs = filler.words("memory_dirs", &self.memory_dirs)?;
        let on_disk = |dir: &&String| !memory_dirs.contains(dir);
        Ok(Rendered {
            files,
            dirs: self.dirs.iter().filter(on_disk).cloned().collect(),
            memory_dirs,
            command: filler.words("start.command", &self.command)?,
            env,
            cwd,
            inherit_env: self.inherit_env,
            stop: self.stop.clone(),
            ready: Ready {
                path: filler.text("ready.path", &self.ready.path, None)?,
                contains,
                http: http.transpose()?.unwrap_or_default(),
                proxy_protocol: proxy_protocol.transpose()?.unwrap_or_default(),
                ..self.ready.clone()
            },
            reload: filler.reload()?,
            setuid_programs: self.setuid_programs,
            logs: self.log_files.clone(),
            counts: self.counts.clone(),
            version_command: self
                .version
                .as_ref()
                .map(|version| filler.words("version.command", &version.command))
                .transpose()?,
            settings,
        })
    }

    /// Whether the recipe says how its server is reloaded.
    pub fn can_reload(&self) -> bool {
        self.reload.is_some()
    }

    /// The server's configuration after a reload with changed parameters: `started` is what it was
    /// started with, `number` that of the reload.
    ///
    /// # Errors
    /// As [`Recipe::render`]; also when a changed parameter is in the command or its environment,
    /// which a reload leaves as they are.
    pub fn render_reload(
        &self,
        started: &RenderContext,
        changed: &BTreeMap<String, Value>,
        number: u32,
    ) -> Result<Rendered, RecipeError> {
        let mut context = started.clone();
        context.params.extend(changed.clone());
        context.reload.number = number;
        let before = self.render(started)?;
        let after = self.render(&context)?;
        let is_same =
            (&before.command, &before.env, &before.cwd) == (&after.command, &after.env, &after.cwd);
        if is_same && !changed.contains_key(VERSION) {
            return Ok(after);
        }
        let params: Vec<String> = changed.keys().map(|name| format!("`{name}`")).collect();
        Err(RecipeError::Reload {
            recipe: self.name.clone(),
            params: params.join(", "),
        })
    }
}

/// Whether a path inside a server's folder is that of a certificate or a key.
pub fn is_certificate(path: &str) -> bool {
    Path::new(path).starts_with(TLS_FOLDER)
}

/// The files that the names under `tls` in templates stand for.
fn certificate_files(certificates: &Certificates) -> Vec<RenderedFile> {
    let file = |name: &str, text: &str, mode| RenderedFile {
        path: format!("{TLS_FOLDER}/{name}"),
        bytes: text.as_bytes().to_vec(),
        mode,
    };
    let mut files = vec![file("authority.pem", &certificates.authority, 0o644)];
    if let Some(own) = &certificates.own {
        files.push(file("chain.pem", &own.chain, 0o644));
        files.push(file("key.pem", &own.key, KEY_MODE));
        let both = format!("{}{}", own.chain, own.key);
        files.push(file("both.pem", &both, KEY_MODE));
    }
    for (at, one) in certificates.extra.iter().enumerate() {
        let both = format!("{}{}", one.chain, one.key);
        let name = format!("{EXTRA_FOLDER}/{}.pem", certificate_name(at + 1));
        files.push(file(&name, &both, KEY_MODE));
    }
    files
}

/// [`Recipe::tls`].
pub(super) fn tls(
    recipe: &Recipe,
    params: &BTreeMap<String, Value>,
) -> Result<Option<KeyType>, RecipeError> {
    let Some(tls) = &recipe.tls else {
        return Ok(None);
    };
    let filled = |place: &str, text: &str| filled_params(recipe, params, place, text);
    if setting_value(&filled("tls.enabled", &tls.enabled)?).as_deref() != Some("on") {
        return Ok(None);
    }
    let Some(key) = &tls.key else {
        return Ok(Some(KeyType::default()));
    };
    let key = filled("tls.key", key)?;
    let key = key.parse();
    key.map(Some)
        .map_err(|why| template_error(recipe, "tls.key", why))
}

/// See [`Recipe::wants_client_certs`].
pub(super) fn wants_client_certs(
    recipe: &Recipe,
    params: &BTreeMap<String, Value>,
) -> Result<bool, RecipeError> {
    let text = recipe
        .tls
        .as_ref()
        .and_then(|tls| tls.client_certs.as_ref());
    let (Some(text), Some(_)) = (text, tls(recipe, params)?) else {
        return Ok(false);
    };
    let filled = filled_params(recipe, params, "tls.client_certs", text)?;
    Ok(setting_value(&filled).as_deref() == Some("on"))
}

/// See [`Recipe::extra_certificates`].
pub(super) fn extra_certificates(
    recipe: &Recipe,
    params: &BTreeMap<String, Value>,
) -> Result<usize, RecipeError> {
    let text = recipe
        .tls
        .as_ref()
        .and_then(|tls| tls.certificates.as_ref());
    let (Some(text), Some(_)) = (text, tls(recipe, params)?) else {
        return Ok(0);
    };
    let filled = filled_params(recipe, params, "tls.certificates", text)?;
    let why = |_| {
        let why = format!("expected a number of certificates, found `{filled}`");
        template_error(recipe, "tls.certificates", why)
    };
    filled.trim().parse().map_err(why)
}

/// Renders a template that knows parameters only.
pub(super) fn filled_params(
    recipe: &Recipe,
    params: &BTreeMap<String, Value>,
    place: &str,
    text: &str,
) -> Result<String, RecipeError> {
    let names = context! { params => params_seen(&recipe.params, params) };
    let result = environment().render_named_str(place, text, names);
    result.map_err(|error| template_error(recipe, place, complaint(&error)))
}

fn template_error(recipe: &Recipe, place: &str, why: String) -> RecipeError {
    RecipeError::Template {
        recipe: recipe.name.clone(),
        place: place.to_owned(),
        why,
    }
}

/// Replaces `{dir}` in lines that go into the server's configuration.
fn fill_in_dir(recipe: &Recipe, params: &mut BTreeMap<String, Value>, dir: &str) {
    for param in recipe.params.iter().filter(|one| !one.overrides.is_empty()) {
        if let Some(Value::List(lines)) = params.get_mut(&param.name) {
            for line in lines {
                *line = line.replace("{dir}", dir);
            }
        }
    }
}

/// An environment in which the recipe's templates can include each other, by their paths.
fn with_includes(recipe: &Recipe) -> Result<Environment<'_>, RecipeError> {
    let mut environment = environment();
    let templates = recipe
        .files
        .iter()
        .filter(|(path, _)| path.ends_with(".j2"));
    for (path, bytes) in templates {
        if let Ok(text) = std::str::from_utf8(bytes) {
            let added = environment.add_template(path, text);
            added.map_err(|error| template_error(recipe, path, complaint(&error)))?;
        }
    }
    Ok(environment)
}

struct Filler<'r> {
    recipe: &'r Recipe,
    environment: Environment<'r>,
    names: minijinja::Value,
    params: BTreeMap<String, Value>,
    placeholders: Placeholders,
}

impl<'r> Filler<'r> {
    fn new(recipe: &'r Recipe, ctx: &RenderContext) -> Result<Self, RecipeError> {
        let dir = usable_dir(recipe, &ctx.dir)?;
        let mut params = recipe.fill(&ctx.params)?;
        fill_in_dir(recipe, &mut params, &dir);
        let programs = programs_seen(&recipe.programs, &ctx.programs);
        let upstreams: Vec<minijinja::Value> = ctx
            .upstreams
            .iter()
            .map(|behind| {
                context! {
                    name => behind.name,
                    addr => behind.addr.to_string(),
                    ip => behind.addr.ip().to_string(),
                    port => behind.addr.port(),
                    dir => behind.dir.as_ref().map(|dir| dir.to_string_lossy()),
                    tls => behind.tls,
                }
            })
            .collect();
        let listen = context! {
            addr => ctx.listen_addr.to_string(),
            ip => ctx.listen_addr.ip().to_string(),
            port => ctx.listen_addr.port(),
        };
        let own = ctx.certificates.as_ref().filter(|one| one.own.is_some());
        let tls = context! {
            enabled => own.is_some(),
            chain => format!("{dir}/{TLS_FOLDER}/chain.pem"),
            key => format!("{dir}/{TLS_FOLDER}/key.pem"),
            both => format!("{dir}/{TLS_FOLDER}/both.pem"),
            authority => format!("{dir}/{TLS_FOLDER}/authority.pem"),
            certificates => format!("{dir}/{TLS_FOLDER}/{EXTRA_FOLDER}"),
        };
        let names = context! {
            name => ctx.name,
            dir => dir,
            tls => tls,
            listen => listen,
            upstreams => upstreams,
            params => params_seen(&recipe.params, &params),
            programs => programs,
            weigh => ctx.weigh.to_string_lossy(),
            cpus => ctx.cpus,
            reload => context! {
                expected => ctx.reload.is_expected,
                number => ctx.reload.number,
            },
            checkout => ctx.checkout.as_ref().map(|path| path.to_string_lossy()),
        };
        Ok(Self {
            recipe,
            environment: with_includes(recipe)?,
            names,
            params,
            placeholders: Placeholders::of(ctx, &dir),
        })
    }

    fn text(&self, place: &str, text: &str, item: Option<&str>) -> Result<String, RecipeError> {
        let names = match item {
            Some(item) => context! { item => item, ..self.names.clone() },
            None => self.names.clone(),
        };
        self.environment
            .render_named_str(place, text, names)
            .map_err(|error| RecipeError::Template {
                recipe: self.recipe.name.clone(),
                place: place.to_owned(),
                why: complaint(&error),
            })
    }

    /// The first parameter that is given and whose text may set something else than the setting says.
    fn overriding(&self, setting: &str) -> Option<&'r str> {
        let is_given = |param: &&Param| match self.params.get(&param.name) {
            Some(Value::List(items)) => !items.is_empty(),
            Some(Value::Text(text)) => !text.is_empty(),
            _ => false,
        };
        let mut params = self.recipe.params.iter();
        let found = params
            .find(|param| param.overrides.iter().any(|one| one == setting) && is_given(param));
        found.map(|param| param.name.as_str())
    }

    /// How the server is reloaded. Of its signs the first counts that is not empty once rendered.
    fn reload(&self) -> Result<Option<Reload>, RecipeError> {
        let Some(reload) = &self.recipe.reload else {
            return Ok(None);
        };
        let filled = |key: &str, text: &Option<String>| {
            let text = text.as_deref().unwrap_or_default();
            self.text(&format!("reload.{key}"), text, None)
        };
        let answer = filled("answer", &reload.answer)?;
        let output = filled("output", &reload.output)?;
        let sign = match (answer.is_empty(), output.is_empty()) {
            (false, _) => ReloadSign::Answer(answer),
            (true, false) => ReloadSign::Output(output),
            (true, true) => ReloadSign::NewProcess,
        };
        Ok(Some(Reload {
            signal: reload.signal.clone(),
            command: self.words("reload.command", &reload.command)?,
            sign,
        }))
    }

    /// Command words; a word that comes out empty is left out, so that an option can be dropped,
    /// and one that is a list parameter becomes a word for each item.
    fn words(&self, place: &str, words: &[String]) -> Result<Vec<String>, RecipeError> {
        let mut filled = Vec::new();
        for word in words {
            if let Some(Value::List(items)) = param_of(word).and_then(|name| self.params.get(name))
            {
                for item in items {
                    filled.push(self.item(place, item)?);
                }
                continue;
            }
            let word = self.text(place, word, None)?;
            if !word.is_empty() {
                filled.push(word);
            }
        }
        Ok(filled)
    }

    /// An item of a list that users wrote, with its placeholders replaced.
    fn item(&self, place: &str, item: &str) -> Result<String, RecipeError> {
        let filled = self.placeholders.fill(item);
        filled.map_err(|why| template_error(self.recipe, place, why))
    }

    /// The variables in a list parameter.
    fn variables(&self, list: &str) -> Result<Vec<(String, String)>, RecipeError> {
        let Some(Value::List(items)) = self.params.get(list) else {
            return Ok(Vec::new());
        };
        let place = "start.variables";
        let variables = items.iter().map(|item| {
            let (name, value) = item
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| {
                    let why = format!("expected NAME=VALUE, found `{item}`");
                    template_error(self.recipe, place, why)
                })?;
            Ok((name.to_owned(), self.item(place, value)?))
        });
        variables.collect()
    }

    fn path(&self, place: &str, text: &str, item: Option<&str>) -> Result<String, RecipeError> {
        let path = self.text(place, text, item)?;
        if stays_inside(&path) {
            return Ok(path);
        }
        Err(RecipeError::Path {
            recipe: self.recipe.name.clone(),
            place: place.to_owned(),
            path,
            why: "expected a path inside the folder".to_owned(),
        })
    }

    /// A file of the recipe's: its path and its content.
    fn source(
        &self,
        place: &str,
        file: &super::RecipeFile,
        item: Option<&str>,
    ) -> Result<(String, &'r [u8]), RecipeError> {
        let from = self.path(place, &file.from, item)?;
        match self.recipe.files.get(&from) {
            Some(bytes) => Ok((from, bytes)),
            None => Err(RecipeError::Path {
                recipe: self.recipe.name.clone(),
                place: place.to_owned(),
                path: from,
                why: "the recipe's folder has no such file".to_owned(),
            }),
        }
    }

    /// The items of a list parameter, or one `None` for a copy that is made once.
    fn items(&self, each: Option<&str>) -> Vec<Option<String>> {
        let Some(name) = each else {
            return vec![None];
        };
        match self.params.get(name) {
            Some(Value::List(items)) => items.iter().cloned().map(Some).collect(),
            _ => Vec::new(),
        }
    }
}

/// Whether a path is relative and never climbs.
pub(super) fn stays_inside(path: &str) -> bool {
    !path.is_empty()
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}

/// The folder's path as text, when configuration files can hold it.
fn usable_dir(recipe: &Recipe, dir: &Path) -> Result<String, RecipeError> {
    let unusable = |why: &str| RecipeError::Path {
        recipe: recipe.name.clone(),
        place: "the server's folder".to_owned(),
        path: dir.display().to_string(),
        why: why.to_owned(),
    };
    let Some(text) = dir.to_str() else {
        return Err(unusable("expected UTF-8"));
    };
    if !dir.is_absolute() {
        return Err(unusable("expected an absolute path"));
    }
    if text
        .chars()
        .any(|c| c.is_control() || matches!(c, '"' | '\'' | '\\' | '$'))
    {
        return Err(unusable(
            "configuration files cannot hold quotes, backslashes, dollar signs or control characters",
        ));
    }
    match recipe.longest_dir_bytes {
        Some(longest) if text.len() > longest => Err(RecipeError::DirTooLong {
            recipe: recipe.name.clone(),
            longest,
            found: text.len(),
        }),
        _ => Ok(text.to_owned()),
    }
}
