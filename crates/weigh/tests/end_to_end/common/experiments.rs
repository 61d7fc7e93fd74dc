//! Experiments that several tests run, and how the program is called for them.

use serde_json::Value;

use super::{Place, array, find, has, skip};

#[track_caller]
pub fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no {from} in {text}");
    text.replace(from, to)
}

/// A page with a delay of 2 ms: a few connections do not saturate a CPU. For tests that do not depend
/// on the throughput.
pub const DELAYED_PAGE: &str = "/delay/constant/2ms";

/// A built-in back end on one host, the balancer before it on another, and both as subjects, asked for
/// [`DELAYED_PAGE`].
pub fn proxy_and_backend(backend_host: &str, proxy_host: &str) -> String {
    format!(
        "[servers.backend]\nrecipe = \"origin\"\nhost = \"{backend_host}\"\n\
         [servers.proxy]\nrecipe = \"balance\"\nhost = \"{proxy_host}\"\n\
         upstreams = [\"backend\"]\n\
         [subjects]\ndirect = \"http://backend{DELAYED_PAGE}\"\nproxy = \"http://proxy{DELAYED_PAGE}\"\n"
    )
}

/// Writes the experiment `proxy-cost` with [`DELAYED_PAGE`] and few connections; returns the file's
/// name.
pub fn write_light_proxy_cost(place: &Place) -> &'static str {
    const NAME: &str = "proxy-cost.toml";
    let text = include_str!("../../../../../experiments/proxy-cost.toml");
    let mut text = replaced(text, "connections = 64", "connections = 8");
    for server in ["origin", "balancer"] {
        let url = format!("http://{server}");
        text = replaced(&text, &format!("{url}/"), &format!("{url}{DELAYED_PAGE}"));
    }
    place.write(NAME, &text);
    NAME
}

/// Runs `x.toml` with the recipes in `recipes`, into the folder `r`.
pub const RUN: &str = "run x.toml --recipes recipes --format json --out r";

/// The arguments that run an experiment with other values for some keys, into a folder.
pub fn run_with<'a>(experiment: &'a str, sets: &[&'a str], folder: &'a str) -> Vec<&'a str> {
    let mut call = vec!["run", experiment, "--out", folder];
    for set in sets {
        call.extend(["--set", set]);
    }
    call
}

/// The same in the experiment's quick form, with a document for an answer.
pub fn quickly<'a>(experiment: &'a str, sets: &[&'a str], folder: &'a str) -> Vec<&'a str> {
    let mut call = run_with(experiment, sets, folder);
    call.extend(["--quick", "--format", "json"]);
    call
}

/// Fails unless the trials of some blocks, and no others, failed with all of these texts.
#[track_caller]
pub fn only_blocks_failed(trials: &[Value], is_lost: impl Fn(u64) -> bool, says: &[&str]) {
    for trial in trials {
        let reason = trial["outcome"]["failed"]["reason"].as_str();
        match (is_lost(trial["block"].as_u64().unwrap()), reason) {
            (true, Some(reason)) => says.iter().for_each(|text| has(reason, text)),
            (false, None) => {}
            _ => panic!("{trial}"),
        }
    }
}

/// Whether an experiment of the program's own can run here; says so when it cannot.
pub fn can_run(place: &Place, name: &str) -> bool {
    let listing = place.run("list --format json").expect(0).json();
    let experiment = find(array(&listing["experiments"]), "name", name);
    if experiment["can_run"] == false {
        skip(&format!("{name}: {}", experiment["missing"]));
        return false;
    }
    true
}
