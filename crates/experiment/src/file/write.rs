//! An experiment written out as a file again, with every default.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::{Table, Value as Toml};

use super::load::background::NONE;
use crate::spec::{
    Apart, BodyCheck, Choice, Design, Effect, EventTarget, EventWhat, Experiment, HttpVersion,
    LoadSpec, NamedLoad, ParamValue, Rate, SameAnswers, Server, SliceLength, SubjectLoad, Target,
    TlsSpec, Upstream,
};
use config::units;
use readings::{Access, ContainerSource, HostSpec, Reach};

impl Experiment {
    /// The experiment as the text of a file. Reading it back, with the same recipes, gives the
    /// same experiment; changes by `--quick` and `--set` are in it.
    pub fn to_toml(&self) -> String {
        let mut top = Table::new();
        put(&mut top, "name", text(&self.name));
        put(&mut top, "title", text(&self.title));
        if let Some(question) = &self.question {
            put(&mut top, "question", text(question));
        }
        let hosts = self.hosts.iter().filter(|one| one.is_first());
        let hosts = hosts.map(|one| (one.declared_name().to_owned(), Toml::Table(host(one))));
        put_table(&mut top, "hosts", hosts.collect());
        let servers = self
            .servers
            .iter()
            .map(|one| (one.name.clone(), Toml::Table(server(one))));
        put_table(&mut top, "servers", servers.collect());
        let subjects = self.subjects.iter().map(|subject| {
            let authority = match &subject.target {
                Target::Server(name) | Target::Address(name) => name,
            };
            let url = format!("{}://{authority}{}", subject.scheme, subject.path);
            let mut table = Table::new();
            if let Some(driver) = &subject.driver {
                put_driver(&mut table, driver);
            }
            put_subject_load(&mut table, subject.load);
            if let Some(names) = &subject.background {
                put(&mut table, "background", background(names));
            }
            let value = match table.is_empty() {
                true => Toml::String(url),
                false => {
                    put(&mut table, "url", Toml::String(url));
                    Toml::Table(table)
                }
            };
            (subject.name.clone(), value)
        });
        put_table(&mut top, "subjects", subjects.collect());
        let factors = self.factors.iter().map(|factor| {
            let levels = factor.levels.iter().map(|level| match &level.effect {
                Effect::Loads(parts) => {
                    let parts = parts.iter();
                    let parts = parts.map(|part| (part.key.clone(), part.value.to_toml()));
                    Toml::Table(parts.collect())
                }
                _ => level.value.to_toml(),
            });
            (factor.name.clone(), Toml::Array(levels.collect()))
        });
        put_table(&mut top, "factors", factors.collect());
        match self.loads.is_empty() {
            true => put(&mut top, "load", Toml::Table(load(&self.load))),
            false => {
                let loads = self.loads.iter().map(named_load);
                put(&mut top, "loads", Toml::Table(loads.collect()));
            }
        }
        self.put_events(&mut top);
        let mut expect = Table::new();
        put(&mut expect, "status", i64::from(self.expect.status).into());
        if let Some(contains) = &self.expect.contains {
            put(&mut expect, "contains", text(contains));
        }
        let body = match self.expect.body {
            BodyCheck::Same => "same",
            BodyCheck::Varies => "varies",
            BodyCheck::Auto => "auto",
        };
        put(&mut expect, "body", text(body));
        match self.expect.same {
            SameAnswers::Auto => {}
            SameAnswers::All => put(&mut expect, "same", true.into()),
            SameAnswers::Differ => put(&mut expect, "same", false.into()),
        }
        if !self.expect.every_server {
            put(&mut expect, "every_server", false.into());
        }
        put(&mut top, "expect", Toml::Table(expect));
        put(&mut top, "design", Toml::Table(design(&self.design)));
        self.put_gates(&mut top);
        let sysctls = self
            .sysctls
            .iter()
            .map(|(name, value)| (name.clone(), text(value)));
        put_table(&mut top, "sysctls", sysctls.collect());
        self.put_published(&mut top);
        top.to_string()
    }

    fn put_events(&self, top: &mut Table) {
        if self.events.is_empty() {
            return;
        }
        let events = self.events.iter().map(|event| {
            let mut table = Table::new();
            let time = |time| Toml::String(units::duration_text(time));
            put(&mut table, "at", time(event.at));
            match &event.target {
                EventTarget::Host(host) => put(&mut table, "host", text(host)),
                EventTarget::Servers(names) => match &names[..] {
                    [name] => put(&mut table, "server", text(name)),
                    names => put(&mut table, "servers", texts(names)),
                },
            }
            let what = match &event.what {
                EventWhat::Kind(kind) => text(kind.word()),
                EventWhat::Factor { factor, .. } => Toml::String(format!("{{{factor}}}")),
            };
            put(&mut table, "what", what);
            if let Some(until) = event.until {
                put(&mut table, "until", time(until));
            }
            let settings = &event.settings;
            put_table(&mut table, "params", params(&settings.params));
            if let Some(quota) = settings.quota {
                put(&mut table, "quota", Toml::Float(quota));
            }
            if let Some(loss) = settings.loss {
                put(&mut table, "loss", Toml::String(units::share_text(loss)));
            }
            for (key, value) in [("delay", settings.delay), ("pause", settings.pause)] {
                if let Some(value) = value {
                    put(&mut table, key, time(value));
                }
            }
            Toml::Table(table)
        });
        put(top, "events", Toml::Array(events.collect()));
    }

    fn put_gates(&self, top: &mut Table) {
        let is_unnamed = |gate: &readings::Gate| gate.name == gate.full_text();
        if self.gates.iter().all(is_unnamed) {
            let texts = self.gates.iter().map(|gate| Toml::String(gate.full_text()));
            let texts: Vec<Toml> = texts.collect();
            if !texts.is_empty() {
                put(top, "gates", Toml::Array(texts));
            }
            return;
        }
        let gates = self.gates.iter();
        let gates = gates.map(|gate| (gate.name.clone(), Toml::String(gate.full_text())));
        put_table(top, "gates", gates.collect());
    }

    fn put_published(&self, top: &mut Table) {
        if self.published.is_empty() {
            return;
        }
        let figures = self.published.iter().map(|figure| {
            let mut table = Table::new();
            put(&mut table, "what", text(&figure.what));
            put(&mut table, "value", Toml::Float(figure.value));
            put(&mut table, "unit", text(&figure.unit));
            put(&mut table, "source", text(&figure.source));
            Toml::Table(table)
        });
        put(top, "published", Toml::Array(figures.collect()));
    }
}

fn texts(words: &[String]) -> Toml {
    Toml::Array(words.iter().map(|word| text(word)).collect())
}

/// What opens the pipe to a host, as its key has it.
fn how_reached(reach: &Reach) -> Toml {
    let mut table = Table::new();
    let mut name = |key: &str, value: Option<&String>| {
        if let Some(value) = value {
            put(&mut table, key, text(value));
        }
    };
    let (options, count) = match reach {
        Reach::Ssh(destination) => return text(destination),
        Reach::Exec(words) => return texts(words),
        Reach::Podman(podman) => {
            match &podman.source {
                ContainerSource::Container(container) => name("container", Some(container)),
                ContainerSource::Image(image) => name("image", Some(image)),
            }
            (podman.options.as_slice(), None)
        }
        Reach::Slurm(member) => {
            name("partition", member.spec.partition.as_ref());
            (
                member.spec.options.as_slice(),
                member.count.map(|it| ("nodes", it)),
            )
        }
        Reach::Kubernetes(member) => {
            name("image", Some(&member.spec.image));
            name("namespace", member.spec.namespace.as_ref());
            let count = member.count.map(|it| ("replicas", it));
            (member.spec.options.as_slice(), count)
        }
        Reach::Nomad(member) => {
            name("job", Some(&member.spec.job));
            name("task", member.spec.task.as_ref());
            name("namespace", member.spec.namespace.as_ref());
            (&[][..], member.count.map(|it| ("allocations", it)))
        }
    };
    if let Some((key, count)) = count {
        put(&mut table, key, i64::from(count).into());
    }
    if !options.is_empty() {
        put(&mut table, "options", texts(options));
    }
    Toml::Table(table)
}

fn host(host: &HostSpec) -> Table {
    let mut table = Table::new();
    if !host.cpus.is_empty() {
        let cpus = host.cpus.iter().map(|cpu| Toml::from(i64::from(*cpu)));
        put(&mut table, "cpus", Toml::Array(cpus.collect()));
    }
    if let Some(reach) = &host.reach {
        put(&mut table, reach.key(), how_reached(reach));
    }
    if let Some(binary) = &host.binary {
        put(&mut table, "binary", text(&binary.to_string_lossy()));
    }
    if let Some(address) = &host.address {
        put(&mut table, "address", text(&address.to_string()));
    }
    if let Some(quota) = host.quota {
        put(&mut table, "quota", Toml::Float(quota));
    }
    if let Some(link) = &host.link {
        let mut inner = Table::new();
        let time = |ns| Toml::String(units::duration_text(Duration::from_nanos(ns)));
        put(&mut inner, "rtt", time(link.rtt_ns));
        put(&mut inner, "jitter", time(link.jitter_ns));
        let loss = Toml::String(units::share_text(link.loss));
        put(&mut inner, "loss", loss);
        if let Some(rate) = link.rate_bits_per_s {
            put(&mut inner, "rate", Toml::String(units::bit_rate_text(rate)));
        }
        put(&mut table, "link", Toml::Table(inner));
    }
    if host.access == Access::External {
        put(&mut table, "access", text("external"));
    }
    let settings = host.settings.iter();
    let settings = settings.map(|(name, value)| (name.clone(), text(value)));
    put_table(&mut table, "settings", settings.collect());
    table
}

fn server(server: &Server) -> Table {
    let mut table = Table::new();
    put(&mut table, "recipe", text(&server.recipe));
    if let Some(host) = &server.host {
        put(&mut table, "host", text(host));
    }
    if let Some(port) = server.port {
        put(&mut table, "port", i64::from(port).into());
    }
    if !server.upstreams.is_empty() {
        let names = server.upstreams.iter().map(|upstream| match upstream {
            Upstream::Server(name) => text(name),
            Upstream::Address(addr) => Toml::String(addr.to_string()),
        });
        put(&mut table, "upstreams", Toml::Array(names.collect()));
    }
    put_table(&mut table, "with", params(&server.with));
    table
}

fn params(given: &BTreeMap<String, ParamValue>) -> Table {
    let params = given.iter().map(|(name, given)| {
        let value = match given {
            ParamValue::Value(value) => value.to_toml(),
            ParamValue::Factor { factor, .. } => Toml::String(format!("{{{factor}}}")),
        };
        (name.clone(), value)
    });
    params.collect()
}

fn put_driver(table: &mut Table, driver: &Choice) {
    put(table, "driver", text(&driver.name));
    let with = driver.params.iter();
    let with = with.map(|(name, value)| (name.clone(), value.to_toml()));
    put_table(table, "with", with.collect());
}

fn put_subject_load(table: &mut Table, load: SubjectLoad) {
    for (key, count) in [("connections", load.connections), ("streams", load.streams)] {
        if let Some(count) = count {
            put(table, key, i64::from(count).into());
        }
    }
    if let Some(count) = load.requests_per_connection {
        // What was read is at most 10^9.
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        put(table, "requests_per_connection", count.into());
    }
    if let Some(http) = load.http {
        put(table, "http", text(http.name()));
    }
}

fn put_tls(table: &mut Table, tls: &TlsSpec) {
    let names = |names: &[String]| Toml::Array(names.iter().map(|name| text(name)).collect());
    if let Some(version) = tls.version {
        put(table, "tls_version", text(version.name()));
    }
    if !tls.suites.is_empty() {
        put(table, "tls_suites", names(&tls.suites));
    }
    if !tls.groups.is_empty() {
        put(table, "tls_groups", names(&tls.groups));
    }
    if tls.resumption {
        put(table, "tls_resumption", true.into());
    }
    if let Some(path) = &tls.ca {
        put(table, "tls_ca", text(path));
    }
    if tls.insecure {
        put(table, "tls_insecure", true.into());
    }
    if let Some(key) = tls.client_key {
        put(table, "tls_client_key", text(key.name()));
    }
}

fn background(names: &[String]) -> Toml {
    match names.is_empty() {
        true => text(NONE),
        false => texts(names),
    }
}

fn named_load(one: &NamedLoad) -> (String, Toml) {
    let mut table = load(&one.load);
    table.remove("driver");
    put(&mut table, "role", text(one.role.word()));
    if let Some(path) = &one.path {
        put(&mut table, "path", text(path));
    }
    (one.name.clone(), Toml::Table(table))
}

fn load(load: &LoadSpec) -> Table {
    let mut table = Table::new();
    put_driver(&mut table, &load.driver);
    match &load.host {
        Some(host) if load.more_hosts.is_empty() => put(&mut table, "host", text(host)),
        Some(host) => {
            let hosts = [host].into_iter().chain(&load.more_hosts);
            let hosts: Vec<toml::Value> = hosts.map(|one| text(one)).collect();
            put(&mut table, "hosts", hosts.into());
        }
        None => {}
    }
    put(
        &mut table,
        "connections",
        i64::from(load.connections).into(),
    );
    if let Some(threads) = load.threads {
        put(&mut table, "threads", i64::from(threads).into());
    }
    put(&mut table, "keepalive", load.keepalive.into());
    if let Some(count) = load.requests_per_connection {
        // What was read is at most 10^9.
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        put(&mut table, "requests_per_connection", count.into());
    }
    put(&mut table, "method", text(&load.method));
    if let Some(body) = &load.body {
        put(&mut table, "body", text(body));
    }
    put(
        &mut table,
        "timeout",
        Toml::String(units::duration_text(load.timeout)),
    );
    let rate = match load.rate {
        Rate::Auto => "auto".to_owned(),
        Rate::PerSecond(per_s) => units::rate_text(per_s),
    };
    put(&mut table, "rate", Toml::String(rate));
    if let Some(curve) = &load.curve {
        let shares = curve.shares.iter().map(|one| units::share_text(*one));
        let points = match &curve.rates_per_s {
            // It means the default shares.
            None => Toml::Boolean(true),
            Some(rates) => {
                let rates = rates.iter().map(|one| units::rate_text(*one));
                Toml::Array(rates.chain(shares).map(Toml::String).collect())
            }
        };
        put(&mut table, "curve", points);
        let bounds = curve.bounds.iter().map(|one| units::duration_text(*one));
        let bounds = bounds.map(Toml::String).collect();
        put(&mut table, "bounds", Toml::Array(bounds));
    }
    if load.http != HttpVersion::Http1 {
        put(&mut table, "http", text(load.http.name()));
        put(&mut table, "streams", i64::from(load.streams).into());
    }
    if let Some(congestion) = load.quic_congestion {
        put(&mut table, "quic_congestion", text(congestion.name()));
    }
    put_tls(&mut table, &load.tls);
    let headers = load
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), text(value)));
    put_table(&mut table, "headers", headers.collect());
    table
}

fn design(design: &Design) -> Table {
    let mut table = Table::new();
    let slice = match design.slice {
        SliceLength::Auto => "auto".to_owned(),
        SliceLength::Fixed(length) => units::duration_text(length),
    };
    put(&mut table, "baseline", text(&design.baseline));
    put(&mut table, "blocks", i64::from(design.blocks).into());
    for (key, value) in [
        ("warmup", units::duration_text(design.warmup)),
        ("window", units::duration_text(design.window)),
        (
            "latency_window",
            units::duration_text(design.latency_window),
        ),
        ("curve_window", units::duration_text(design.curve_window)),
        ("slice", slice),
        ("matters", units::share_text(design.matters)),
        (
            "matters_failures",
            units::share_text(design.matters_failures),
        ),
        ("max_error", units::share_text(design.max_error)),
    ] {
        put(&mut table, key, Toml::String(value));
    }
    for (key, time) in [
        ("within", design.within),
        ("matters_latency", design.matters_latency),
    ] {
        if let Some(time) = time {
            put(&mut table, key, Toml::String(units::duration_text(time)));
        }
    }
    put(&mut table, "retries", i64::from(design.retries).into());
    let apart = match design.apart {
        Apart::Auto => "auto",
        Apart::Never => "never",
        Apart::Always => "always",
    };
    put(&mut table, "apart", text(apart));
    put(&mut table, "bottleneck", design.bottleneck.into());
    table
}

fn text(value: &str) -> Toml {
    Toml::String(value.to_owned())
}

fn put(table: &mut Table, key: &str, value: Toml) {
    table.insert(key.to_owned(), value);
}

/// An empty table is left out.
fn put_table(table: &mut Table, key: &str, inner: Table) {
    if !inner.is_empty() {
        put(table, key, Toml::Table(inner));
    }
}
