//! `weigh compare` with a time budget and the servers' CPU time, and `weigh plan` on its folder.

use serde_json::Value;

use crate::common::{Origin, Place, array};

fn trials(place: &Place, run: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path(run).join("journal.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.filter(|row: &Value| row["row"] == "trial").collect()
}

mod quiet {
    use super::*;

    #[test]
    fn the_process_that_listens_is_counted_and_a_pilot_says_how_many_blocks_are_needed() {
        let place = Place::quiet();
        let origin = Origin::start(&place);
        let subjects = [
            format!("a={}/delay/constant/1ms", origin.url),
            format!("b={}/delay/constant/2ms", origin.url),
        ];
        let call = format!(
            "compare {} {} -c 4 --within 12s --window 300ms --latency=false --seed 1 --format \
             json --out run",
            subjects[0], subjects[1]
        );
        let document = place.run(&call).result();
        let metrics = array(&document["comparisons"]);
        assert!(!metrics.is_empty());
        let is_latency = |one: &Value| one["metric"].to_string().contains("latency");
        assert!(!metrics.iter().any(is_latency), "{metrics:#?}");
        let port = origin.url.rsplit(':').next().unwrap();
        let name = format!("weigh:{port}");
        for trial in trials(&place, "run") {
            let reading = &trial["outcome"]["done"];
            let server = &reading["servers"][0];
            assert_eq!(server["server"], name.as_str(), "{server}");
            assert!(server["cpu_s"].as_f64().unwrap() > 0.0, "{server}");
            let seen = &reading["probed"]["servers"][&name];
            assert!(seen["rss_bytes_max"].as_u64().unwrap() > 100_000, "{seen}");
            let machine = &reading["probed"]["machine"];
            assert!(machine["busy_s"].as_f64().unwrap() > 0.0, "{machine}");
        }
        let advice = place.run("plan run --format json").expect(0).json();
        assert_eq!(advice["block_measured"], true);
        let row = &advice["rows"][0];
        assert_eq!(row["metric"], "requests_per_s");
        assert_eq!(array(&row["targets"]).len(), 3, "{row}");
        assert!(row["spread"]["components"]["slices"].is_number(), "{row}");
    }
}
