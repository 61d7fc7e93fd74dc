//! What is the same must not look different.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Origin, Place, array};

/// Conditions, which are independent of each other: each has connections of its own.
const CONDITIONS: usize = 4;
/// With fewer there is no verdict beside other programs.
const BLOCKS: usize = 5;
/// Metrics of which the intervals are counted.
const METRICS: [&str; 4] = [
    "requests_per_s",
    "latency_us_p50",
    "latency_us_p99",
    "server_cpu_us_per_request",
];
/// Conditions of which a metric's 95% interval may leave out the truth, as each does in one of
/// twenty. Any of the four metrics exceeds this by chance in 1 of 40,000 runs (binomial).
const OFF_MAX: usize = 3;
/// Conditions that may be called different. More would happen by chance in fewer than 1 of 1,000
/// runs: by Holm's procedure the least of some 16 p values is to be below 0.0031.
const DIFFERENT_MAX: usize = 1;

#[test]
fn a_url_compared_with_itself_is_hardly_ever_faster_or_slower() {
    let place = Place::new();
    let origin = Origin::start(&place);
    // A page that keeps the server busier than the load, which would otherwise be what is compared.
    let url = format!("{}/burn/20000", origin.url);
    place.write(
        "x.toml",
        &format!(
            "title = \"t\"\n[subjects]\na = \"{url}\"\nb = \"{url}\"\n\
             [factors]\nconnections = [1, 3, 6, 12]\n\
             [design]\nblocks = {BLOCKS}\nwarmup = \"50ms\"\nwindow = \"100ms\"\n\
             latency_window = \"100ms\"\nbottleneck = false\nretries = 0\n"
        ),
    );
    let call = ["run", "x.toml", "--seed", "1", "--format", "json"];
    let done = place.run(&[&call[..], &["--out", "r"]].concat());
    let document = done.result();
    assert_eq!(document["trials"]["done"], 3 * BLOCKS * CONDITIONS);
    assert_eq!(document["trials"]["failed"], 0);
    assert_eq!(document["seed"], 1);
    assert!(!array(&document["noise_floor"]).is_empty());
    let comparisons = array(&document["comparisons"]);
    assert!(!comparisons.is_empty());
    let mut off: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut different = BTreeSet::new();
    for one in comparisons {
        if one["verdict"] == "faster" || one["verdict"] == "slower" {
            different.insert(one["condition"].to_string());
        }
        let metric = one["metric"].as_str().unwrap();
        let is_above = one["low"].as_f64().is_some_and(|low| low > 1.0);
        let is_below = one["high"].as_f64().is_some_and(|high| high < 1.0);
        if METRICS.contains(&metric) && (is_above || is_below) {
            off.entry(metric)
                .or_default()
                .push(one["sentence"].to_string());
        }
    }
    assert!(different.len() <= DIFFERENT_MAX, "{comparisons:#?}");
    assert!(off.values().all(|some| some.len() <= OFF_MAX), "{off:#?}");
}
