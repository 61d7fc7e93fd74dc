//! Instructions per request, with CPU time in their place, which every kernel counts.

use serde_json::Value;

use crate::common::{Place, has, skip, trials};

const EXPERIMENT: &str = include_str!("instructions/experiment.toml");

/// Figures per request of two loads of one run differ by less, also on a busy machine.
const ALIKE: f64 = 2.0;

#[test]
fn each_server_of_a_path_is_counted_by_what_a_request_takes() {
    let place = Place::new();
    let file = place.write("x.toml", EXPERIMENT);
    let file = file.to_str().unwrap();
    let mut command = place.weigh(&format!("run {file} --out r --format json"));
    command.env("WEIGH_COUNTED_EVENT", "task_clock");
    let done = place.start_command(command).end();
    let document = done.result();
    let mut counted = 0;
    for trial in trials(&place.path("r")) {
        let reading = &trial["outcome"]["done"];
        let instructions = &reading["instructions"];
        if instructions.is_null() {
            continue;
        }
        counted += 1;
        let requests = instructions["requests"].as_f64().unwrap();
        assert!(requests > 0.0, "{instructions}");
        let names = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        let path: &[&str] = match trial["subject"] == "direct" {
            true => &["back"],
            false => &["back", "front"],
        };
        assert_eq!(names(&instructions["servers"]), path, "{instructions}");
        let seen = &reading["probed"];
        for name in path {
            let each_us = instructions["servers"][name].as_f64().unwrap() / requests / 1e3;
            let part = |key: &str| seen["servers"][name][key].as_f64().unwrap_or(0.0);
            let sampled_us = (part("user_s") + part("system_s")) * 1e6;
            let sampled_us = sampled_us / seen["requests"].as_f64().unwrap();
            let ratio = each_us / sampled_us;
            assert!(
                ratio < ALIKE && 1.0 / ratio < ALIKE,
                "{name}: {each_us} us counted, {sampled_us} us sampled"
            );
        }
    }
    if counted == 0 {
        return skip("the kernel counts no CPU time by perf_event_open");
    }
    // Beside other programs a reading of the counters may miss the idle time between two subjects,
    // which leaves a trial without a count.
    assert!(counted >= 3, "{counted} trials are counted\n{}", done.err);
    let text = document["comparisons"].to_string();
    has(&text, "instructions_per_request");
    assert!(place.left().is_empty(), "{:?}", place.left());
}
