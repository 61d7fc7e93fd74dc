//! Latency against offered rate, from the experiment to the report.

use crate::common::{Place, array, flat, has};

#[test]
fn a_curve_of_the_built_in_servers_stands_in_every_form_of_the_report() {
    let place = Place::new();
    place.write(
        "x.toml",
        "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\n[servers.b]\nrecipe = \"balance\"\n\
         upstreams = [\"o\"]\n[subjects]\ndirect = \"http://o/\"\nbalanced = \"http://b/\"\n\
         [load]\nconnections = 8\ncurve = [300, 1500, \"20%\"]\nbounds = [\"1us\", \"10s\"]\n[design]\n\
         blocks = 3\nwarmup = \"50ms\"\nwindow = \"200ms\"\nlatency_window = \"0s\"\n\
         curve_window = \"300ms\"\nbottleneck = false\nretries = 0\n",
    );
    let document = place.run("run x.toml --format json --out r").result();
    let curves = array(&document["curves"]);
    assert_eq!(curves.len(), 1, "{document}");
    let subjects = array(&curves[0]["subjects"]);
    assert_eq!(subjects.len(), 2);
    for one in subjects {
        assert_eq!(array(&one["rates"]).len(), 2, "{one}");
        assert_eq!(array(&one["shares"]).len(), 1, "{one}");
        assert!(one["capacity_per_s"].as_f64().unwrap() > 1500.0, "{one}");
        // Nothing answers within a microsecond.
        if let Some(first) = array(&one["bounds"]).first() {
            assert!(first["passes"] != "within", "{first}");
        }
    }
    let page = place.read("r/report.html");
    has(&page, "Latency against offered rate");
    let text = flat(&place.run("report r --verbose").expect(0).out);
    has(&text, "offered/s");
    has(&text, "Poisson arrivals");
    let summary = place.read("r/summary.md");
    has(&summary, "Latency against offered rate");
}
