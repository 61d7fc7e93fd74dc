//! The short form: one TCP service with round robin.

use std::time::Duration;

use ::config::reader::{Problem, Reader};
use ::config::section::Section;

use super::fields;
use super::fields::required;
use crate::config::model::{Backend, Config, Service};
use crate::config::validate::{self, BackendPlaces, HelpTerms, LocatedService};

const KEYS: &str = "listen upstreams threads backlog connections connect_timeout_ms";

pub(super) const NAME: &str = "balance";

pub(super) fn parse(reader: &mut Reader, top: &Section<'_>) -> Option<Config> {
    fields::only(reader, top, KEYS);
    let mut config = Config::new();
    let mut service = Service::new(NAME);
    fields::count(reader, top, "threads", 1..=1024, &mut config.threads);
    fields::count(
        reader,
        top,
        "connections",
        1..=500_000,
        &mut config.connections_per_thread,
    );
    fields::count(reader, top, "backlog", 1..=65_535, &mut service.backlog);
    let mut connect_ms = 5_000_u32;
    fields::count(
        reader,
        top,
        "connect_timeout_ms",
        1..=3_600_000,
        &mut connect_ms,
    );
    service.timeouts.connect = Duration::from_millis(u64::from(connect_ms));
    let (listen, upstreams) = (
        required(reader, top, "listen"),
        required(reader, top, "upstreams"),
    );
    listen?;
    upstreams?;
    service.listen = vec![fields::socket(reader, top, "listen")?];
    let (entry, path) = top.entry("upstreams")?;
    let ::config::tree::Tree::Array(items) = &entry.node.tree else {
        reader.expected(
            &entry.node,
            &path,
            "a list of addresses, such as [\"127.0.0.1:8081\"]",
        );
        return None;
    };
    let mut backends = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let Some(address) = fields::socket_of(reader, item, &path) else {
            continue;
        };
        if address.port() == 0 {
            reader.report(Problem::at(
                item.place,
                format!("an upstream needs a port from 1 to 65535, found {address}"),
                "nobody listens on port 0",
            ));
        }
        let name = format!("upstream{}", at + 1);
        service.backends.push(Backend::new(&name, address.into()));
        backends.push(BackendPlaces::at(item.place));
    }
    if items.is_empty() {
        reader.report(Problem::at(
            entry.node.place,
            "expected at least one upstream",
            "no address in it",
        ));
    }
    let place = top.entry("listen")?.0.node.place;
    let located = LocatedService {
        kind: place,
        dispatch: place,
        listen: vec![place],
        backends,
        service,
    };
    let terms = HelpTerms {
        http: "write it as [services.NAME] with kind = \"http\"",
    };
    let located = [located];
    validate::check(reader, &located, &config, &terms);
    config.services = located.into_iter().map(|located| located.service).collect();
    reader.is_clean().then_some(config)
}
