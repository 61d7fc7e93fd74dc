//! Printing a configuration as TOML, with every default.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use ::config::units::duration_text;

use super::model::{
    Backend, BackendTls, Check, Config, Dispatch, EditKind, HashKey, HeaderEdit, Inspect,
    LogFormat, Probing, ProxyVersion, Recipient, Service, ServiceKind, Weight,
};
use super::template::Template;

/// Prints a configuration as TOML; parsing it gives the same configuration.
///
/// Optional keys without a value are printed as comments.
pub fn toml(config: &Config) -> String {
    let mut out = Writer::default();
    out.line("threads", config.threads);
    out.line("connections_per_thread", config.connections_per_thread);
    let socket = config.status_socket.as_deref().map(path);
    out.optional("status_socket", socket, "none");
    let prometheus = config
        .prometheus
        .map(|address| quoted(&address.to_string()));
    out.optional("prometheus", prometheus, "nowhere");
    for one in &config.services {
        service(&mut out, one);
    }
    out.text
}

#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn table(&mut self, path: &[&str]) {
        let path: Vec<String> = path.iter().map(|name| key(name)).collect();
        // Writing into a string cannot fail, here and below.
        let _ = write!(self.text, "\n[{}]\n", path.join("."));
    }

    fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn duration(&mut self, key: &str, value: Duration) {
        self.line(key, quoted(&duration_text(value)));
    }

    fn optional(&mut self, key: &str, value: Option<impl std::fmt::Display>, absent: &str) {
        match value {
            Some(value) => self.line(key, value),
            None => {
                let _ = writeln!(self.text, "# {key}: {absent}");
            }
        }
    }
}

fn service(out: &mut Writer, service: &Service) {
    let top = ["services", &service.name];
    out.table(&top);
    out.line(
        "listen",
        list(service.listen.iter().map(ToString::to_string)),
    );
    match service.kind {
        ServiceKind::Tcp => out.line("kind", quoted("tcp")),
        ServiceKind::Http { inspect } => {
            out.line("kind", quoted("http"));
            let word = match inspect {
                Inspect::FirstMessage => "first",
                Inspect::EveryMessage => "every",
            };
            out.line("inspect", quoted(word));
        }
    }
    let versions = service.offered_versions.map(|versions| {
        let all = [(versions.one, "1.1"), (versions.two, "2")];
        let offered = all.iter().filter(|(is_offered, _)| *is_offered);
        list(offered.map(|(_, name)| (*name).to_owned()))
    });
    out.optional("http_versions", versions, "both with TLS, else 1.1");
    out.line("dispatch", dispatch(&service.dispatch));
    out.duration("reviving_interval", service.reviving_interval);
    out.duration("check_interval", service.check_interval);
    out.line("check", check(&service.check, &service.probing));
    let ejection = service.ejection.map(|ejection| {
        format!(
            "{{ failures = {}, duration = {} }}",
            ejection.failures,
            quoted(&duration_text(ejection.duration))
        )
    });
    out.optional("ejection", ejection, "never");
    out.duration("slow_start", service.slow_start);
    out.duration("drain", service.drain);
    out.optional("connections_max", service.connections_max, "no limit");
    out.line("backlog", service.backlog);
    out.line("proxy_protocol_in", service.proxy_protocol_in);
    let proxies = service.trusted_proxies.iter().map(ToString::to_string);
    out.line("trusted_proxies", list(proxies));
    out.line("resends", service.resends);
    out.line("half_close", service.half_close);
    out.line("body_rate_min", service.body_rate_min);
    out.optional(
        "access_log",
        service.access_log.as_deref().map(path),
        "none",
    );
    let form = match service.access_log_form {
        LogFormat::Common => "common",
        LogFormat::Combined => "combined",
    };
    out.line("access_log_form", quoted(form));
    let account = service.user_account.as_deref().map(quoted);
    out.optional("user_account", account, "the balancer's own");

    let rules = service.sni.iter().map(|rule| {
        let names = list(rule.names.iter().cloned());
        let back_ends = list(rule.back_ends.iter().cloned());
        format!("{{ names = {names}, back_ends = {back_ends} }}")
    });
    let rules: Vec<String> = rules.collect();
    if !rules.is_empty() {
        out.line("sni", format!("[{}]", rules.join(", ")));
    }

    out.table(&[top[0], top[1], "queue"]);
    out.line("length", service.queue.length);
    out.duration("time_limit", service.queue.time_limit);

    out.table(&[top[0], top[1], "access"]);
    let access = &service.access;
    out.line("allow", list(access.allow.iter().map(ToString::to_string)));
    out.line("deny", list(access.deny.iter().map(ToString::to_string)));
    out.optional("allow_file", access.allow_file.as_deref().map(path), "none");
    out.optional("deny_file", access.deny_file.as_deref().map(path), "none");

    out.table(&[top[0], top[1], "timeouts"]);
    let timeouts = &service.timeouts;
    out.duration("connect", timeouts.connect);
    out.duration("client_header", timeouts.client_header);
    out.duration("client_body", timeouts.client_body);
    out.duration("client_idle", timeouts.client_idle);
    out.duration("half_closed", timeouts.half_closed);
    out.duration("upstream_answer", timeouts.upstream_answer);
    out.duration("write_stall", timeouts.write_stall);

    if let Some(tls) = &service.tls {
        out.table(&[top[0], top[1], "tls"]);
        out.line("certificate", path(&tls.certificate));
        out.line("key", path(&tls.key));
        let version = tls.version.map(|version| quoted(version.name()));
        out.optional("version", version, "1.2 and 1.3");
        out.line("suites", list(tls.suites.iter().cloned()));
        out.line("groups", list(tls.groups.iter().cloned()));
        out.line("tickets", tls.tickets);
        out.optional("client_ca", tls.client_ca.as_deref().map(path), "none");
    }

    for one in &service.backends {
        out.table(&[top[0], top[1], "backends", &one.name]);
        backend(out, one);
    }
}

fn backend(out: &mut Writer, backend: &Backend) {
    out.line("address", quoted(&backend.address.to_string()));
    match backend.weight {
        Weight::Share(share) => out.line("weight", share),
        Weight::Penalty(penalty) => out.line("penalty", penalty),
    }
    out.line("decay_percent", backend.decay_percent);
    out.optional("connections_max", backend.connections_max, "no limit");
    out.line("retries", backend.retries);
    for (key, hook) in [
        ("on_start", &backend.hooks.on_start),
        ("on_end", &backend.hooks.on_end),
        ("on_fail", &backend.hooks.on_fail),
    ] {
        out.optional(key, hook.as_ref().map(template), "nothing");
    }
    for (key, log) in [
        ("traffic_log", &backend.traffic_log),
        ("throughput_log", &backend.throughput_log),
    ] {
        out.optional(key, log.as_deref().map(path), "none");
    }
    let cookie = backend.sticky_cookie.as_ref().map(|cookie| {
        format!(
            "{{ name = {}, value = {}, set = {} }}",
            quoted(&cookie.name),
            quoted(&cookie.value),
            cookie.set
        )
    });
    out.optional("sticky_cookie", cookie, "none");
    if backend.header_edits.is_empty() {
        out.line("headers", "[]");
    } else {
        out.line("headers", "[");
        // One item per line.
        for edit in &backend.header_edits {
            let _ = writeln!(out.text, "    {},", header(edit));
        }
        out.text.push_str("]\n");
    }
    out.duration("session_timeout", backend.session_timeout);
    let version = backend.proxy_protocol_out.map(|version| match version {
        ProxyVersion::V1 => quoted("v1"),
        ProxyVersion::V2 => quoted("v2"),
    });
    out.optional("proxy_protocol_out", version, "none");
    let tls = backend.tls.as_ref().map(backend_tls);
    out.optional("tls", tls, "none");
    out.line("http", quoted(backend.http.name()));
    out.line("initial_state", quoted(backend.initial_state.word()));
}

fn backend_tls(tls: &BackendTls) -> String {
    let name = tls
        .name
        .iter()
        .map(|name| format!("name = {}", quoted(name)));
    let ca = tls.ca.iter().map(|ca| format!("ca = {}", path(ca)));
    let insecure = format!("insecure = {}", tls.insecure);
    let all: Vec<String> = name.chain(ca).chain([insecure]).collect();
    format!("{{ {} }}", all.join(", "))
}

fn dispatch(dispatch: &Dispatch) -> String {
    let mode = quoted(dispatch.name());
    let rest = match dispatch {
        Dispatch::BySize { over: Some(over) }
        | Dispatch::ByDuration { over: Some(over) }
        | Dispatch::ByConnections { over: Some(over) } => format!("over = {over}"),
        Dispatch::External { command } => format!("command = {}", template(command)),
        Dispatch::PeakEwma { decay } => format!("decay = {}", quoted(&duration_text(*decay))),
        Dispatch::ConsistentHash { key } => match key {
            HashKey::ClientIp => "key = \"client-ip\"".to_owned(),
            HashKey::Header(name) => format!("key = \"header\", name = {}", quoted(name)),
            HashKey::Cookie(name) => format!("key = \"cookie\", name = {}", quoted(name)),
            HashKey::Path => "key = \"path\"".to_owned(),
        },
        _ => return mode,
    };
    format!("{{ mode = {mode}, {rest} }}")
}

fn check(check: &Check, probing: &Probing) -> String {
    let Probing {
        rise,
        fall,
        timeout,
    } = probing;
    let timeout = quoted(&duration_text(*timeout));
    let probing = format!("rise = {rise}, fall = {fall}, timeout = {timeout}");
    match check {
        Check::Tcp => format!("{{ kind = \"tcp\", {probing} }}"),
        Check::Http { path, host, status } => {
            let host = host
                .as_ref()
                .map(|host| format!(", host = {}", quoted(host)))
                .unwrap_or_default();
            format!(
                "{{ kind = \"http\", path = {}{host}, status = {status}, {probing} }}",
                quoted(path)
            )
        }
    }
}

fn header(edit: &HeaderEdit) -> String {
    let recipient = match edit.recipient {
        Recipient::Client => "client",
        Recipient::Server => "server",
    };
    let how = match edit.how {
        EditKind::Add => "add",
        EditKind::Append => "append",
        EditKind::Set => "set",
    };
    format!(
        "{{ towards = \"{recipient}\", how = \"{how}\", name = {}, value = {} }}",
        quoted(&edit.name),
        template(&edit.value)
    )
}

fn template(template: &Template) -> String {
    quoted(&template.to_string())
}

fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.map(|item| quoted(&item)).collect();
    format!("[{}]", items.join(", "))
}

/// A key: bare if possible.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
