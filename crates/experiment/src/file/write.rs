//! An experiment written out as a file again, with every default.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::{Table, Value as Toml};

use super::load::background::NONE;
use crate::manifest::Value;
use crate::spec::{
    Apart, BodyCheck, Choice, Design, Effect, Event, EventTarget, EventWhat, Expect, Experiment,
    Factor, Feeds, HttpVersion, LoadSpec, NamedLoad, ParamValue, Published, Rate, SameAnswers,
    Server, SliceLength, Subject, SubjectLoad, Target, TlsSpec, TrafficSpec, Upstream,
};
use config::units::{bit_rate_text, duration_text, rate_text, share_text, size_text};
use readings::{Access, ContainerSource, HostSpec, LinkSpec, Reach};
use requests::file::feed_order_word;

impl Experiment {
    /// The experiment as the text of a file. Reading it back, with the same recipes, gives the
    /// same experiment; changes by `--quick` and `--set` are in it.
    pub fn to_toml(&self) -> String {
        let mut top = Table::new();
        top.put("name", self.name.as_str());
        top.put("title", self.title.as_str());
        top.put_some("question", self.question.as_deref());
        let hosts = self.hosts.iter().filter(|one| one.is_first());
        top.put_table("hosts", hosts.map(|one| (one.declared_name(), host(one))));
        let servers = self.servers.iter();
        top.put_table("servers", servers.map(|one| (&one.name, server(one))));
        // Tables are written after values, so one that follows a table is a table too: their order counts.
        let mut in_tables = false;
        let subjects = self.subjects.iter().map(|one| {
            let table = subject(one);
            in_tables |= table.len() > 1;
            (
                &one.name,
                if in_tables {
                    table.into()
                } else {
                    table["url"].clone()
                },
            )
        });
        top.put_table("subjects", subjects);
        let factors = self.factors.iter();
        top.put_table("factors", factors.map(|one| (&one.name, levels(one))));
        match self.loads.is_empty() {
            true => top.put("load", load(&self.load)),
            false => {
                let loads = self.loads.iter();
                top.put_table("loads", loads.map(|one| (&one.name, named_load(one))));
            }
        }
        top.put_list("events", self.events.iter().map(event));
        top.put("expect", expect(&self.expect));
        let mut design = design(&self.design);
        if self.load.replay.is_some() {
            // It follows from the log.
            design.remove("latency_window");
        }
        top.put("design", design);
        self.put_gates(&mut top);
        top.put_table("sysctls", pairs(&self.sysctls));
        top.put_list("published", self.published.iter().map(published));
        top.to_string()
    }

    fn put_gates(&self, top: &mut Table) {
        let gates = self.gates.iter();
        match self.gates.iter().all(|gate| gate.name == gate.full_text()) {
            true => top.put_list("gates", gates.map(|gate| gate.full_text())),
            false => top.put_table("gates", gates.map(|gate| (&gate.name, gate.full_text()))),
        }
    }
}

/// Keys and what they hold.
trait Put {
    fn put(&mut self, key: &str, value: impl Into<Toml>);
    fn put_some(&mut self, key: &str, value: Option<impl Into<Toml>>);
    /// An empty list is left out.
    fn put_list(&mut self, key: &str, list: impl IntoIterator<Item = impl Into<Toml>>);
    /// An empty table is left out.
    fn put_table(
        &mut self,
        key: &str,
        inner: impl IntoIterator<Item = (impl ToString, impl Into<Toml>)>,
    );
}

impl Put for Table {
    fn put(&mut self, key: &str, value: impl Into<Toml>) {
        self.insert(key.to_owned(), value.into());
    }

    fn put_some(&mut self, key: &str, value: Option<impl Into<Toml>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn put_list(&mut self, key: &str, list: impl IntoIterator<Item = impl Into<Toml>>) {
        let list: Vec<Toml> = list.into_iter().map(Into::into).collect();
        self.put_some(key, (!list.is_empty()).then_some(list));
    }

    fn put_table(
        &mut self,
        key: &str,
        inner: impl IntoIterator<Item = (impl ToString, impl Into<Toml>)>,
    ) {
        let inner = inner.into_iter();
        let inner: Table = inner
            .map(|(key, value)| (key.to_string(), value.into()))
            .collect();
        self.put_some(key, (!inner.is_empty()).then_some(inner));
    }
}

fn host(host: &HostSpec) -> Table {
    let mut table = Table::new();
    table.put_list("cpus", host.cpus.iter().copied());
    if let Some(reach) = &host.reach {
        table.put(reach.key(), how_reached(reach));
    }
    let binary = host.binary.as_ref().map(|path| path.to_string_lossy());
    table.put_some("binary", binary.as_deref());
    table.put_some("address", host.address.map(|address| address.to_string()));
    table.put_some("quota", host.quota);
    table.put_some("link", host.link.as_ref().map(link));
    if host.access == Access::External {
        table.put("access", "external");
    }
    table.put_table("settings", pairs(&host.settings));
    table
}

/// What opens the pipe to a host, as its key has it.
fn how_reached(reach: &Reach) -> Toml {
    let mut table = Table::new();
    let options = match reach {
        Reach::Ssh(destination) => return destination.as_str().into(),
        Reach::Exec(words) => return words.clone().into(),
        Reach::Podman(podman) => {
            match &podman.source {
                ContainerSource::Container(container) => table.put("container", container.as_str()),
                ContainerSource::Image(image) => table.put("image", image.as_str()),
            }
            podman.options.as_slice()
        }
        Reach::Slurm(member) => {
            table.put_some("partition", member.spec.partition.as_deref());
            table.put_some("nodes", member.count);
            &member.spec.options
        }
        Reach::Kubernetes(member) => {
            table.put("image", member.spec.image.as_str());
            table.put_some("namespace", member.spec.namespace.as_deref());
            table.put_some("replicas", member.count);
            &member.spec.options
        }
        Reach::Nomad(member) => {
            table.put("job", member.spec.job.as_str());
            table.put_some("task", member.spec.task.as_deref());
            table.put_some("namespace", member.spec.namespace.as_deref());
            table.put_some("allocations", member.count);
            &[]
        }
    };
    table.put_list("options", options.iter().cloned());
    table.into()
}

fn link(link: &LinkSpec) -> Table {
    let mut table = Table::new();
    table.put("rtt", duration_text(Duration::from_nanos(link.rtt_ns)));
    let jitter = Duration::from_nanos(link.jitter_ns);
    table.put("jitter", duration_text(jitter));
    table.put("loss", share_text(link.loss));
    table.put_some("rate", link.rate_bits_per_s.map(bit_rate_text));
    table
}

fn server(server: &Server) -> Table {
    let mut table = Table::new();
    table.put("recipe", server.recipe.as_str());
    table.put_some("host", server.host.as_deref());
    table.put_some("port", server.port.map(u32::from));
    let upstreams = server.upstreams.iter().map(|upstream| match upstream {
        Upstream::Server(name) => name.clone(),
        Upstream::Address(addr) => addr.to_string(),
    });
    table.put_list("upstreams", upstreams);
    table.put_table("with", params(&server.with));
    table
}

/// A subject: its URL, and what it sets of its own.
fn subject(subject: &Subject) -> Table {
    let (Target::Server(authority) | Target::Address(authority)) = &subject.target;
    let url = format!("{}://{authority}{}", subject.scheme, subject.path);
    let mut table = Table::new();
    if let Some(driver) = &subject.driver {
        put_driver(&mut table, driver);
    }
    put_subject_load(&mut table, subject.load);
    match subject.background.as_deref() {
        Some([]) => table.put("background", NONE),
        Some(names) => table.put("background", names.to_vec()),
        None => {}
    }
    table.put("url", url);
    table
}

fn put_subject_load(table: &mut Table, load: SubjectLoad) {
    table.put_some("connections", load.connections);
    table.put_some("streams", load.streams);
    let requests = load.requests_per_connection.map(count);
    table.put_some("requests_per_connection", requests);
    table.put_some("http", load.http.map(HttpVersion::name));
}

/// What was read is at most 10^9.
fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn levels(factor: &Factor) -> Vec<Toml> {
    let levels = factor.levels.iter().map(|level| match &level.effect {
        Effect::Loads(parts) => {
            let parts = parts.iter();
            let parts = parts.map(|part| (part.key.clone(), part.value.to_toml()));
            Toml::Table(parts.collect())
        }
        _ => level.value.to_toml(),
    });
    levels.collect()
}

/// The key with the name of a factor that fills it in.
fn placeholder(factor: &str) -> String {
    format!("{{{factor}}}")
}

fn params(given: &BTreeMap<String, ParamValue>) -> impl Iterator<Item = (&String, Toml)> {
    given.iter().map(|(name, given)| match given {
        ParamValue::Value(value) => (name, value.to_toml()),
        ParamValue::Factor { factor, .. } => (name, placeholder(factor).into()),
    })
}

fn pairs(pairs: &[(String, String)]) -> impl Iterator<Item = (&String, &str)> {
    pairs.iter().map(|(name, value)| (name, value.as_str()))
}

fn put_driver(table: &mut Table, driver: &Choice) {
    table.put("driver", driver.name.as_str());
    let with = driver.params.iter();
    table.put_table(
        "with",
        with.map(|(name, value)| (name, Value::to_toml(value))),
    );
}

fn named_load(one: &NamedLoad) -> Table {
    let mut table = load(&one.load);
    table.remove("driver");
    table.put("role", one.role.word());
    table.put_some("path", one.path.as_deref());
    table
}

fn load(load: &LoadSpec) -> Table {
    let mut table = Table::new();
    put_driver(&mut table, &load.driver);
    match load.more_hosts.is_empty() {
        true => table.put_some("host", load.host.as_deref()),
        false => table.put_list("hosts", load.host.iter().chain(&load.more_hosts).cloned()),
    }
    table.put("connections", load.connections);
    if load.idle > 0 {
        table.put("idle", load.idle);
    }
    table.put_some("threads", load.threads);
    table.put("keepalive", load.keepalive);
    let requests = load.requests_per_connection.map(count);
    table.put_some("requests_per_connection", requests);
    table.put("method", load.method.as_str());
    table.put_some("body", load.body.as_deref());
    let requests = load.requests.as_ref().map(|file| file.path.as_str());
    table.put_some("requests", requests);
    put_feeds(&mut table, &load.feeds);
    table.put_some("cookies", load.cookies.then_some(true));
    table.put_some("ages", load.ages.then_some(true));
    table.put_some("body_bytes", load.body_bytes.map(size_text));
    table.put("timeout", duration_text(load.timeout));
    match load.rate {
        _ if load.replay.is_some() => {}
        Rate::Auto => table.put("rate", "auto"),
        Rate::PerSecond(per_s) => table.put("rate", rate_text(per_s)),
    }
    if let Some(curve) = &load.curve {
        match &curve.rates_per_s {
            // It means the default shares.
            None => table.put("curve", true),
            Some(rates) => {
                let rates = rates.iter().map(|one| rate_text(*one));
                let shares = curve.shares.iter().map(|one| share_text(*one));
                table.put("curve", rates.chain(shares).collect::<Vec<_>>());
            }
        }
        let bounds = curve.bounds.iter().map(|one| duration_text(*one));
        table.put("bounds", bounds.collect::<Vec<_>>());
    }
    if load.http != HttpVersion::Http1 {
        table.put("http", load.http.name());
    }
    if load.http != HttpVersion::Http1 || load.streams != 1 {
        table.put("streams", load.streams);
    }
    table.put_some(
        "quic_congestion",
        load.quic_congestion.map(|one| one.name()),
    );
    if let Some(replay) = &load.replay {
        table.put("replay", replay.path.as_str());
        table.put("speed", replay.speed);
        table.put_some("from", replay.from.as_deref());
        table.put_some("to", replay.to.as_deref());
        table.put_list("replay_methods", replay.methods.iter().cloned());
    }
    put_tls(&mut table, &load.tls);
    put_traffic(&mut table, &load.traffic);
    table.put_table("headers", pairs(&load.headers));
    table
}

fn put_feeds(table: &mut Table, feeds: &Feeds) {
    let both = feeds.files.iter().zip(&feeds.feeds);
    let named = both.map(|(file, feed)| {
        let mut keys = Table::new();
        keys.put("file", file.as_str());
        keys.put("order", feed_order_word(feed.order));
        (feed.name.as_str(), keys)
    });
    table.put_table("feeds", named);
}

fn put_tls(table: &mut Table, tls: &TlsSpec) {
    table.put_some("tls_version", tls.version.map(|version| version.name()));
    table.put_list("tls_suites", tls.suites.iter().cloned());
    table.put_list("tls_groups", tls.groups.iter().cloned());
    table.put_some("tls_resumption", tls.resumption.then_some(true));
    table.put_some("tls_ca", tls.ca.as_deref());
    table.put_some("tls_insecure", tls.insecure.then_some(true));
    table.put_some("tls_client_key", tls.client_key.map(|key| key.name()));
}

fn put_traffic(table: &mut Table, traffic: &TrafficSpec) {
    table.put_some("events", traffic.events.map(|format| format.name()));
    table.put_some("pace", traffic.pace.map(duration_text));
    table.put_some("stall", traffic.stall.map(duration_text));
    table.put_some("websocket", traffic.websocket.then_some(true));
    table.put_some("in_flight", traffic.in_flight);
    table.put_some("message_bytes", traffic.message_bytes);
    table.put_some("message_rate", traffic.message_rate.map(rate_text));
    table.put_some("receive", traffic.receive.then_some(true));
    match traffic.fan_out {
        Some(0) => table.put_some("fan_out", Some(true)),
        members => table.put_some("fan_out", members),
    }
    table.put_some("retire_after", traffic.retire_after.map(count));
    table.put_some("grpc", traffic.grpc.as_deref());
    if let Some(schema) = &traffic.proto {
        table.put_list("proto", schema.files.iter().cloned());
        table.put_list("proto_path", schema.folders.iter().cloned());
    }
    let body_file = traffic.body_file.as_ref().map(|file| file.path.as_str());
    table.put_some("body_file", body_file);
    table.put_some("call_messages", traffic.call_messages);
    table.put_some("deadline", traffic.deadline.map(duration_text));
}

fn event(event: &Event) -> Table {
    let mut table = Table::new();
    table.put("at", duration_text(event.at));
    match &event.target {
        EventTarget::Host(host) => table.put("host", host.as_str()),
        EventTarget::Servers(names) => match &names[..] {
            [name] => table.put("server", name.as_str()),
            names => table.put("servers", names.to_vec()),
        },
    }
    match &event.what {
        EventWhat::Kind(kind) => table.put("what", kind.word()),
        EventWhat::Factor { factor, .. } => table.put("what", placeholder(factor)),
    }
    table.put_some("until", event.until.map(duration_text));
    let settings = &event.settings;
    table.put_table("params", params(&settings.params));
    table.put_some("quota", settings.quota);
    table.put_some("loss", settings.loss.map(share_text));
    table.put_some("delay", settings.delay.map(duration_text));
    table.put_some("pause", settings.pause.map(duration_text));
    table
}

fn expect(expect: &Expect) -> Table {
    let mut table = Table::new();
    table.put("status", u32::from(expect.status));
    table.put_some("contains", expect.contains.as_deref());
    let body = match expect.body {
        BodyCheck::Same => "same",
        BodyCheck::Varies => "varies",
        BodyCheck::Auto => "auto",
    };
    table.put("body", body);
    match expect.same {
        SameAnswers::Auto => {}
        SameAnswers::All => table.put("same", true),
        SameAnswers::Differ => table.put("same", false),
    }
    if !expect.every_server {
        table.put("every_server", false);
    }
    table
}

fn design(design: &Design) -> Table {
    let mut table = Table::new();
    table.put("baseline", design.baseline.as_str());
    let reference = design.reference.iter();
    table.put_table("reference", reference.map(|(f, level)| (f, level.as_str())));
    table.put_list("growth", design.growth.iter().cloned());
    table.put("blocks", design.blocks);
    table.put("warmup", duration_text(design.warmup));
    // Where it is not written, it is the warm-up.
    let most = Some(design.warmup_max).filter(|most| *most > design.warmup);
    table.put_some("warmup_max", most.map(duration_text));
    table.put("window", duration_text(design.window));
    table.put("latency_window", duration_text(design.latency_window));
    table.put("curve_window", duration_text(design.curve_window));
    match design.slice {
        SliceLength::Auto => table.put("slice", "auto"),
        SliceLength::Fixed(length) => table.put("slice", duration_text(length)),
    }
    table.put("matters", share_text(design.matters));
    table.put("matters_failures", share_text(design.matters_failures));
    table.put("max_error", share_text(design.max_error));
    table.put_some("within", design.within.map(duration_text));
    table.put_some("matters_latency", design.matters_latency.map(duration_text));
    if !design.primary.is_empty() {
        let names: Vec<&str> = design.primary.iter().map(|metric| metric.name()).collect();
        table.put("primary", names);
    }
    table.put("retries", design.retries);
    let apart = match design.apart {
        Apart::Auto => "auto",
        Apart::Never => "never",
        Apart::Always => "always",
    };
    table.put("apart", apart);
    if !design.alternate {
        table.put("alternate", false);
    }
    table.put("bottleneck", design.bottleneck);
    table
}

fn published(figure: &Published) -> Table {
    let mut table = Table::new();
    table.put("what", figure.what.as_str());
    table.put("value", figure.value);
    table.put("unit", figure.unit.as_str());
    table.put("source", figure.source.as_str());
    table
}
