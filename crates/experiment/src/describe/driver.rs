//! The complete description of a driver.

use serde::Serialize;

use super::{Page, ParamDescription, PinnedDescription, names, params, pinned, pinned_names};
use crate::driver::{Driver, ENGINE, LOAD_WORDS, NO_KEEPALIVE};
use crate::spec::HttpVersion;

/// What a driver's file says, and which settings of the load it supports.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DriverDescription {
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    pub homepage: Option<String>,
    /// Debian packages that bring it.
    pub packages: Vec<String>,
    /// The packages of registries that bring it, each in a fixed version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<PinnedDescription>,
    /// The programs it needs, each with the names to search for.
    pub programs: Vec<Vec<String>>,
    /// The URL schemes that it supports.
    pub schemes: Vec<String>,
    /// The versions of HTTP that it speaks; empty if it speaks other protocols only.
    pub http: Vec<&'static str>,
    /// Next to `driver`: `with.PARAM`.
    pub params: Vec<ParamDescription>,
    /// Keys of `[load]`, and whether it supports each.
    pub load: Vec<LoadSetting>,
    /// Whether it can keep to a rate.
    pub open_loop: bool,
    pub connections_max: Option<u32>,
    /// What to know before its figures are used, in sentences.
    pub notes: Vec<String>,
    /// The command that runs it, as templates.
    pub command: Vec<String>,
}

/// A key of `[load]`, and whether a driver supports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadSetting {
    pub key: String,
    /// Whether it can be set; a factor can then vary it.
    pub supported: bool,
    /// What the driver always does instead or why it cannot, if that is known.
    pub note: Option<String>,
}

impl DriverDescription {
    /// The built-in engine.
    pub fn engine() -> Self {
        Self {
            name: ENGINE.to_owned(),
            title: "the built-in engine: closed and open loops that alternate between subjects, \
                    on io_uring or epoll"
                .to_owned(),
            schemes: vec!["http".to_owned(), "https".to_owned()],
            http: HttpVersion::ALL.map(HttpVersion::name).to_vec(),
            load: std::iter::once("connections")
                .chain(keys())
                .chain(["curve"])
                .map(|key| LoadSetting {
                    key: key.to_owned(),
                    supported: true,
                    note: None,
                })
                .collect(),
            open_loop: true,
            ..Self::default()
        }
    }

    pub fn of(driver: &Driver) -> Self {
        let mut load = vec![LoadSetting {
            key: "connections".to_owned(),
            supported: true,
            note: driver
                .connections_max
                .map(|most| format!("at most {most}"))
                .or_else(|| {
                    let divide = "a multiple of its threads".to_owned();
                    driver.threads_divide.then_some(divide)
                }),
        }];
        load.extend(keys().map(|key| setting(driver, key)));
        Self {
            name: driver.name.clone(),
            title: driver.title.clone(),
            homepage: driver.homepage.clone(),
            packages: driver.packages.debian.clone(),
            pinned: pinned(&driver.packages),
            programs: driver.programs.iter().map(|(_, all)| all.clone()).collect(),
            schemes: driver.schemes.clone(),
            http: match driver.schemes.iter().any(|one| one.starts_with("http")) {
                true => driver.http.iter().map(|one| one.name()).collect(),
                false => Vec::new(),
            },
            params: params(&driver.params),
            load,
            open_loop: driver.has_open_loop(),
            connections_max: driver.connections_max,
            notes: driver.notes.clone(),
            command: driver.command.clone(),
        }
    }

    /// The description for a person to read.
    pub fn page(&self) -> Page {
        let mut page = Page::new(&self.name);
        page.paragraph(&self.title);
        let programs: Vec<String> = self.programs.iter().map(|all| all.join(" or ")).collect();
        let open = match self.open_loop {
            true => "closed and open loop",
            false => "closed loop only",
        };
        page.fields(vec![
            ("home page", self.homepage.clone().unwrap_or_default()),
            (
                "packages (Debian)",
                names(self.packages.iter().map(String::as_str)),
            ),
            ("packages (weigh install)", pinned_names(&self.pinned)),
            ("programs", names(programs.iter().map(String::as_str))),
            ("URLs", names(self.schemes.iter().map(String::as_str))),
            ("HTTP", names(self.http.iter().copied())),
            ("loads", open.to_owned()),
        ]);
        page.params(
            "Parameters: `with = { NAME = VALUE }` next to `driver`",
            &self.params,
        );
        let supported = self.load.iter().map(|one| {
            let word = if one.supported { "yes" } else { "no" };
            let note = one.note.clone().unwrap_or_default();
            vec![format!("`{}`", one.key), word.to_owned(), note]
        });
        page.table(
            "Keys of `[load]`; what it supports, a factor can vary, except `headers` and `curve`",
            &["key", "supported", "note"],
            supported.collect(),
        );
        let notes = self.notes.iter().map(|note| vec![format!("- {note}")]);
        if self.notes.is_empty() {
            return page;
        }
        page.paragraph("Before its figures are used:");
        for note in notes {
            page.paragraph(&note.join(""));
        }
        page
    }
}

/// The keys of `[load]` that drivers differ in.
fn keys() -> impl Iterator<Item = &'static str> {
    LOAD_WORDS
        .into_iter()
        .filter(|word| !NO_KEEPALIVE.contains(word))
}

fn setting(driver: &Driver, key: &'static str) -> LoadSetting {
    let reason = |word: &str| driver.cannot.get(word).cloned();
    let (supported, note) = match key {
        "keepalive" if driver.cannot.contains_key("keepalive") => (
            false,
            Some("it opens a connection for each request".to_owned()),
        ),
        "keepalive" if driver.cannot.contains_key("no_keepalive") || !driver.uses("keepalive") => {
            (false, Some("it always keeps connections alive".to_owned()))
        }
        _ => (driver.can(key), None),
    };
    LoadSetting {
        key: key.to_owned(),
        supported,
        note: note.or_else(|| reason(key).filter(|_| !supported)),
    }
}
