//! Parameters of recipes that say what back ends ought to count.

use crate::manifest::Value;
use crate::spec::{ResolvedCondition, ServerSpec, Upstream};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units::shown;

/// By this one a server lets so many requests through in a second.
pub const RATE_LIMIT: &str = "rate_limit_per_s";
/// By this one it weighs its upstreams, in their order.
pub const WEIGHTS: &str = "weights";

pub(crate) fn check(reader: &mut Reader, top: &Section<'_>, resolved: &ResolvedCondition) {
    for server in &resolved.servers {
        check_weights(reader, top, server);
        let is_limited =
            matches!(server.params.get(RATE_LIMIT), Some(Value::Integer(limit)) if *limit > 0);
        if is_limited && !resolved.load.more_hosts.is_empty() {
            let (place, name) = (place(top, server, RATE_LIMIT, None), shown(&server.name));
            let problem = Problem::at(
                place,
                format!("`servers.{name}.with.{RATE_LIMIT}` needs a load from one host"),
                "a limit may be one for each client address",
            );
            reader.report(problem.help("give `load.hosts` one host, or remove the limit"));
        }
    }
}

fn check_weights(reader: &mut Reader, top: &Section<'_>, server: &ServerSpec) {
    let (Some(Value::List(weights)), upstreams) = (server.params.get(WEIGHTS), &server.upstreams)
    else {
        return;
    };
    if weights.is_empty() || upstreams.is_empty() {
        return;
    }
    let key = format!("`servers.{}.with.{WEIGHTS}`", shown(&server.name));
    if weights.len() != upstreams.len() {
        let names = upstreams.iter().map(|one| match one {
            Upstream::Server(name) => shown(name),
            Upstream::Address(address) => shown(&address.to_string()),
        });
        reader.report(Problem::at(
            place(top, server, WEIGHTS, None),
            format!(
                "{key}: {} weights for {} upstreams",
                weights.len(),
                upstreams.len()
            ),
            format!(
                "expected one for each of {}",
                names.collect::<Vec<_>>().join(", ")
            ),
        ));
    }
    for (at, weight) in weights.iter().enumerate() {
        if !weight.parse::<u32>().is_ok_and(|weight| weight > 0) {
            reader.report(Problem::at(
                place(top, server, WEIGHTS, Some(at)),
                format!("{key}: `{}` is no weight", shown(weight)),
                "expected a whole number from 1",
            ));
        }
    }
}

/// Where the parameter, or one of its items, is written.
fn place(top: &Section<'_>, server: &ServerSpec, param: &str, item: Option<usize>) -> Place {
    let path = ["servers", &server.name, "with"];
    let mut table = Some(top.table);
    for key in path {
        table = table.and_then(|table| match &table.get(key)?.node.tree {
            Tree::Table(inner) => Some(inner),
            _ => None,
        });
    }
    let Some(entry) = table.and_then(|table| table.get(param)) else {
        return Place::default();
    };
    match (&entry.node.tree, item) {
        (Tree::Array(items), Some(at)) => items.get(at).map_or(entry.node.place, |one| one.place),
        _ => entry.node.place,
    }
}
