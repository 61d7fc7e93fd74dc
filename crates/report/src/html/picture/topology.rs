//! The topology: hosts as lanes with their links, servers in them, and each subject's path.

use readings::text::{number, once, time};
use readings::{HostSpec, LinkSpec, Reach};

use crate::html::picture::svg::{Anchor, Picture};
use crate::html::table::table;
use crate::section::columns::Columns;
use crate::{TopologyFacts, TopologyServer};
use readings::text::compact::ends_kept;

/// Widths and heights in pixels: the lane's label, a box, and the space between boxes for paths.
const LABEL: f64 = 190.0;
const BOX: (f64, f64) = (170.0, 44.0);
const GAP: f64 = 70.0;
const ROW: f64 = 62.0;
/// The height of a line in the load's box, which names a subject.
const LINE: f64 = 20.0;
/// The distance between paths that share two boxes.
const APART: f64 = 4.0;

const HERE: &str = "this machine";
const ELSEWHERE: &str = "already running";

/// A server, or the address of something that already runs.
struct Node<'a> {
    name: &'a str,
    kind: &'a str,
    lane: &'a str,
    column: usize,
    /// Its upper left corner.
    at: (f64, f64),
}

/// The picture, and a table of the hosts.
pub(crate) fn topology(facts: &TopologyFacts) -> String {
    if facts.subjects.is_empty() {
        return String::new();
    }
    let mut nodes = nodes(facts);
    let load_lane = facts.load_host.as_deref().unwrap_or(HERE);
    let lanes = once(
        [load_lane]
            .into_iter()
            .chain(nodes.iter().map(|node| node.lane)),
    );
    let columns = nodes.iter().map(|node| node.column).max().unwrap_or(1);
    let width = LABEL + (columns + 1) as f64 * (BOX.0 + GAP) - GAP + 24.0;
    let load_height = 24.0 + LINE * facts.subjects.len() as f64;
    let mut drawn: Vec<(&str, f64, f64)> = Vec::new();
    let mut top = 8.0;
    for lane in &lanes {
        let here = nodes.iter_mut().filter(|node| node.lane == *lane);
        let mut rows = 0;
        for node in here {
            let x = LABEL + node.column as f64 * (BOX.0 + GAP);
            node.at = (x, top + 12.0 + ROW * rows as f64);
            rows += 1;
        }
        let host = facts.hosts.iter().find(|host| host.name == *lane);
        let words = 44.0 + 16.0 * about(host).len() as f64;
        let mut height = (ROW * rows as f64 + 6.0).max(words).max(ROW + 6.0);
        if *lane == load_lane {
            height = height.max(load_height + 24.0);
        }
        drawn.push((lane, top, height));
        top += height + 10.0;
    }
    let described: Vec<String> = facts
        .subjects
        .iter()
        .map(|subject| {
            let path: Vec<&str> = edges(facts, &subject.target)
                .iter()
                .map(|(_, to)| *to)
                .collect();
            format!("{}: load, {}", subject.name, path.join(", "))
        })
        .collect();
    let mut picture = Picture::new("topology", width, "Topology", &described.join("; "));
    for (lane, top, height) in &drawn {
        let host = facts.hosts.iter().find(|host| host.name == *lane);
        picture.rect("lane", (2.0, *top), (width - 4.0, *height));
        let title = ends_kept(lane, 22);
        picture.text_with_hint("label", (14.0, top + 24.0), &title, lane);
        for (line, text) in about(host).iter().enumerate() {
            let at = (14.0, top + 42.0 + 16.0 * line as f64);
            picture.text_with_hint("tick", at, &ends_kept(text, 28), text);
        }
    }
    paths(&mut picture, facts, &nodes, drawn[0].1 + 12.0);
    for node in &nodes {
        let (x, y) = node.at;
        picture.rect("box", node.at, BOX);
        let (name, kind) = (ends_kept(node.name, 20), ends_kept(node.kind, 24));
        picture.text_with_hint("label", (x + 10.0, y + 19.0), &name, node.name);
        picture.text_with_hint("tick", (x + 10.0, y + 35.0), &kind, node.kind);
    }
    load_box(&mut picture, facts, drawn[0].1 + 12.0, load_height);
    let svg = picture.finish(top);
    let begin = format!("<svg style=\"max-width:{width:.0}px\" ");
    let svg = svg.replacen("<svg ", &begin, 1);
    format!(
        "<figure class=\"wide\"><figcaption>Hosts are lanes, boxes are servers, and each subject's \
         requests follow its line from the load.</figcaption>\n{svg}</figure>\n{}",
        hosts(facts)
    )
}

fn nodes(facts: &TopologyFacts) -> Vec<Node<'_>> {
    let mut nodes: Vec<Node<'_>> = facts
        .servers
        .iter()
        .map(|server| Node {
            name: &server.name,
            kind: &server.recipe,
            lane: server.host.as_deref().unwrap_or(HERE),
            column: 1,
            at: (0.0, 0.0),
        })
        .collect();
    let targets = facts.subjects.iter().map(|subject| &subject.target);
    let upstreams = facts.servers.iter().flat_map(|server| &server.upstreams);
    for name in targets.chain(upstreams) {
        if !nodes.iter().any(|node| node.name == name) {
            nodes.push(Node {
                name,
                kind: "",
                lane: ELSEWHERE,
                column: 1,
                at: (0.0, 0.0),
            });
        }
    }
    // Each box is to the right of all that send it requests. The loop ends even if servers send
    // requests in a circle.
    for _ in 0..facts.servers.len() {
        for server in &facts.servers {
            let column = |nodes: &[Node<'_>], name: &str| {
                let mut all = nodes.iter();
                all.find(|node| node.name == name).map_or(0, |n| n.column)
            };
            let next = column(&nodes, &server.name) + 1;
            if next > facts.servers.len() + 1 {
                continue;
            }
            for node in &mut nodes {
                if server.upstreams.iter().any(|name| name == node.name) {
                    node.column = node.column.max(next);
                }
            }
        }
    }
    nodes
}

/// The steps of the requests to a target, each once: `None` is the load.
fn edges<'a>(facts: &'a TopologyFacts, target: &'a str) -> Vec<(Option<&'a str>, &'a str)> {
    let mut found: Vec<(Option<&str>, &str)> = vec![(None, target)];
    let mut at = 0;
    while at < found.len() {
        let from = found[at].1;
        let mut servers = facts.servers.iter();
        let server: Option<&TopologyServer> = servers.find(|server| server.name == from);
        for upstream in server.iter().flat_map(|server| &server.upstreams) {
            let step = (Some(from), upstream.as_str());
            if !found.contains(&step) {
                found.push(step);
            }
        }
        at += 1;
    }
    found
}

fn paths(picture: &mut Picture, facts: &TopologyFacts, nodes: &[Node<'_>], load_top: f64) {
    let all: Vec<Vec<(Option<&str>, &str)>> = facts
        .subjects
        .iter()
        .map(|subject| edges(facts, &subject.target))
        .collect();
    for (subject, own) in all.iter().enumerate() {
        for step in own {
            let Some(to) = nodes.iter().find(|node| node.name == step.1) else {
                continue;
            };
            // The lines of several subjects at one box are drawn apart.
            let users: Vec<usize> = (0..all.len())
                .filter(|other| all[*other].iter().any(|(_, name)| *name == step.1))
                .collect();
            let place = users.iter().position(|other| *other == subject);
            let place = place.unwrap_or(0) as f64 - (users.len() as f64 - 1.0) / 2.0;
            let most = BOX.1 / 2.0 - 5.0;
            let apart = APART.min(2.0 * most / users.len() as f64) * place;
            let (x, y) = (to.at.0, to.at.1 + BOX.1 / 2.0 + apart);
            let from = nodes.iter().find(|node| Some(node.name) == step.0);
            let (from_x, from_y) = match from {
                Some(from) => (from.at.0 + BOX.0, from.at.1 + BOX.1 / 2.0 + apart),
                None => (
                    LABEL + BOX.0,
                    load_top + 26.0 + LINE * (subject as f64 + 0.5),
                ),
            };
            let (bend, half) = (from_x + GAP - 14.0, (GAP - 14.0) / 2.0);
            let commands = format!(
                "M{from_x:.1} {from_y:.1}C{:.1} {from_y:.1} {:.1} {y:.1} {bend:.1} {y:.1}L{:.1} {y:.1}",
                from_x + half,
                bend - half,
                x - 5.0
            );
            let class = format!("path l{} d{}", subject % 8, subject % 4);
            picture.path(&class, &commands);
            let tip = format!("M{x:.1} {y:.1}l-7 -3.5v7z");
            picture.path(&format!("tip l{}", subject % 8), &tip);
        }
    }
}

/// The load with a line for each subject, from which its path begins.
fn load_box(picture: &mut Picture, facts: &TopologyFacts, top: f64, height: f64) {
    picture.rect("box", (LABEL, top), (BOX.0, height + 6.0));
    picture.text("tick", (LABEL + 10.0, top + 17.0), Anchor::Start, "load");
    for (number, subject) in facts.subjects.iter().enumerate() {
        let y = top + 26.0 + LINE * (number as f64 + 0.5);
        let class = format!("mark c{}", number % 8);
        picture.mark(number, &class, (LABEL + 16.0, y), &subject.url);
        let hint = format!("{} ({})", subject.name, subject.url);
        let name = ends_kept(&subject.name, 18);
        picture.text_with_hint("figure", (LABEL + 28.0, y + 4.0), &name, &hint);
    }
}

/// What is known of a host, in lines.
fn about(host: Option<&HostSpec>) -> Vec<String> {
    let Some(host) = host else { return Vec::new() };
    let mut lines = Vec::new();
    let cpus: Vec<String> = host.cpus.iter().map(u32::to_string).collect();
    match cpus.len() {
        0 => {}
        1 => lines.push(format!("CPU {}", cpus[0])),
        _ => lines.push(format!("CPUs {}", cpus.join(", "))),
    }
    lines.extend(host.link.iter().flat_map(link_words));
    lines
}

/// `link RTT 50.0 ms`, `jitter`, `loss`, `100 Mbit/s`.
fn link_words(link: &LinkSpec) -> Vec<String> {
    let mut words = vec![format!("link RTT {}", time(link.rtt_ns as f64 / 1e3))];
    if link.jitter_ns > 0 {
        words.push(format!("jitter {}", time(link.jitter_ns as f64 / 1e3)));
    }
    if link.loss > 0.0 {
        words.push(format!("loss {}", loss(link.loss)));
    }
    words.extend(link.rate_bits_per_s.map(bit_rate));
    words
}

fn loss(share: f64) -> String {
    let text = number(share * 100.0, 4, false);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn bit_rate(bits_per_s: u64) -> String {
    match bits_per_s {
        0..1_000_000 => format!("{} kbit/s", bits_per_s as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{} Mbit/s", bits_per_s as f64 / 1e6),
        _ => format!("{} Gbit/s", bits_per_s as f64 / 1e9),
    }
}

/// Every declared host, including those that make load only under some conditions.
fn hosts(facts: &TopologyFacts) -> String {
    if facts.hosts.is_empty() {
        return String::new();
    }
    let rows = facts.hosts.iter().map(|host| {
        let servers = facts.servers.iter();
        let servers = servers.filter(|server| server.host.as_ref() == Some(&host.name));
        let mut runs: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
        let own_loads = facts.loads.iter().rev();
        let own_loads = own_loads.filter(|(_, on)| on.as_ref() == Some(&host.name));
        let own_loads: Vec<String> = own_loads.map(|(name, _)| format!("load {name}")).collect();
        for load in &own_loads {
            runs.insert(0, load);
        }
        if facts.loads.is_empty() && facts.load_host.as_ref() == Some(&host.name) {
            runs.insert(0, "load");
        }
        let cpus: Vec<String> = host.cpus.iter().map(u32::to_string).collect();
        let or_none = |text: String| match text.is_empty() {
            true => "-".to_owned(),
            false => text,
        };
        let link = host.link.as_ref();
        vec![
            host.name.clone(),
            or_none(runs.join(", ")),
            or_none(cpus.join(", ")),
            link.map_or("-".to_owned(), |l| time(l.rtt_ns as f64 / 1e3)),
            link.map_or("-".to_owned(), |l| time(l.jitter_ns as f64 / 1e3)),
            link.map_or("-".to_owned(), |l| loss(l.loss)),
            link.and_then(|l| l.rate_bits_per_s)
                .map_or("-".to_owned(), bit_rate),
            match &host.reach {
                Some(Reach::Ssh(destination)) => format!("ssh {destination}"),
                Some(reach) => reach.key().to_owned(),
                None => "-".to_owned(),
            },
        ]
    });
    let head = "host,runs,CPUs,RTT,jitter,loss,rate,reached by".split(',');
    let columns = Columns {
        head: head.map(str::to_owned).collect(),
        numeric: vec![false, false, false, true, true, true, true, false],
        rows: rows.collect(),
    };
    table(&columns, "hosts and links")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopologySubject;
    use testing::Text as _;

    fn server(name: &str, host: Option<&str>, upstreams: &[&str]) -> TopologyServer {
        TopologyServer {
            name: name.into(),
            recipe: "r".into(),
            host: host.map(str::to_owned),
            upstreams: upstreams.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    fn facts(servers: Vec<TopologyServer>, targets: &[&str]) -> TopologyFacts {
        let link = LinkSpec {
            rtt_ns: 50_000_000,
            loss: 0.001,
            rate_bits_per_s: Some(100_000_000),
            ..LinkSpec::default()
        };
        TopologyFacts {
            load_host: Some("far".into()),
            loads: Vec::new(),
            hosts: vec![HostSpec {
                name: "far".into(),
                link: Some(link),
                ..HostSpec::default()
            }],
            servers,
            subjects: targets
                .iter()
                .map(|target| TopologySubject {
                    name: format!("<{target}>"),
                    target: (*target).to_owned(),
                    url: format!("http://{target}/"),
                })
                .collect(),
        }
    }

    #[test]
    fn paths_lead_from_the_load_to_the_last_server() {
        let servers = vec![
            server("origin", None, &[]),
            server("proxy", Some("vm"), &["origin", "10.0.0.1:80"]),
        ];
        let page = topology(&facts(servers, &["origin", "proxy"]));
        // One step to the origin; to the proxy, and from there to two upstreams.
        assert_eq!(page.matches("class=\"path ").count(), 4);
        assert_eq!(page.matches("class=\"box\"").count(), 4);
        page.has_all([
            ">link RTT 50.0 ms<",
            ">loss 0.1%<",
            ">100 Mbit/s<",
            "already running",
            "&lt;proxy&gt;: load, proxy, origin, 10.0.0.1:80",
        ]);
    }

    #[test]
    fn servers_that_ask_in_a_circle_are_drawn() {
        let servers = vec![server("a", None, &["b"]), server("b", None, &["a"])];
        let page = topology(&facts(servers, &["a"]));
        assert_eq!(page.matches("class=\"path ").count(), 3);
        page.lacks("NaN");
    }
}
