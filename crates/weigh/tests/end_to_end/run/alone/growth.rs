//! Growth with the configuration, of servers whose cost is planted.

use serde_json::Value;

use crate::common::{Place, array, is_installed, number, skip};

/// Waits 300 ms and 1 ms for each unit of the configuration, holds 100 MB and 200 kB for each, and then
/// becomes a back end. That is much, as the back end's own pages are shared with what else runs it.
const PLANTED: &str = include_str!("growth/recipe.toml");

/// CPU time grows with `/burn/N`.
const EXPERIMENT: &str = include_str!("growth/experiment.toml");

#[test]
fn planted_growth_is_named_with_its_slope_and_a_constant_server_has_none() {
    if !is_installed("perl") {
        return skip("perl");
    }
    let place = Place::alone();
    place.recipe("planted", PLANTED);
    place.write("x.toml", EXPERIMENT);
    let document = place
        .run("run x.toml --recipes recipes --format json --out r")
        .none_failed();
    let growth = array(&document["growth"]);
    let of = |metric: &str, subject: &str| -> &Value {
        let mut found = growth.iter();
        let found = found.find(|one| one["metric"] == metric && one["subject"] == subject);
        found.unwrap_or_else(|| panic!("no {metric} of {subject}: {growth:?}"))
    };
    // Planted for each unit, and by how much it may be off. To fill the memory takes time at the start.
    let planted = [
        ("first_server_start_us", 1_000.0, 0.3),
        ("first_server_rest_bytes", 200_000.0, 0.1),
        ("server_rss_bytes_max", 200_000.0, 0.1),
    ];
    for (metric, slope, off) in planted {
        let linear = of(metric, "linear");
        assert_eq!(linear["shape"], "linear", "{linear}");
        let found = number(&linear["slope"]["value"]);
        assert!((found / slope - 1.0).abs() < off, "{linear}");
        let constant = of(metric, "constant");
        let shape = constant["shape"].as_str().unwrap();
        assert!(["constant", "unsettled"].contains(&shape), "{constant}");
        let found = number(&constant["slope"]["value"]);
        assert!(found.abs() < 0.1 * slope, "{constant}");
    }
    let memory = of("first_server_rest_bytes", "constant");
    assert_eq!(memory["shape"], "constant", "{memory}");
    // CPU time is noisier where others use the machine.
    let metric = "server_cpu_us_per_request";
    let (linear, constant) = (of(metric, "linear"), of(metric, "constant"));
    assert_eq!(linear["growing"], "rises", "{linear}");
    assert!(number(&linear["exponent"]["value"]) > 0.5, "{linear}");
    let slope = number(&linear["slope"]["value"]);
    let other = number(&constant["slope"]["value"]);
    assert!(other.abs() < 0.2 * slope, "{constant} {linear}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}
