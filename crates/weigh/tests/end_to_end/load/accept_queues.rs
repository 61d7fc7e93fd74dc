//! A full accept queue is named, with its server and its backlog, where requests fail for it.

use crate::common::{Origin, Place, RUN, array, has, load, trials};

// An accept queue holds two connections, one more than its backlog, and the server takes far longer for
// an answer than a request may take.

#[test]
fn a_load_names_the_full_queue_of_a_server_of_this_machine() {
    let place = Place::new();
    let origin = Origin::with(&place, "--backlog=1");
    let port = origin.url.rsplit(':').next().unwrap().trim_end_matches('/');
    let url = format!("{}burn/2000000", origin.url);
    let (_, document) = load(&place, &url, "-c 48 -d 1s --timeout 400ms --no-keepalive");
    let problem = document["problems"][0].as_str().unwrap();
    let named = format!("; the accept queue of `weigh:{port}` (backlog 1) was full ");
    has(problem, &named);
    let queue = &document["accept_queues"][0];
    assert!(queue["full"].as_u64().unwrap() > 0, "{queue}");
}

#[test]
fn a_run_names_the_full_queue_of_the_subject_whose_requests_failed_and_of_no_other() {
    let place = Place::new();
    place.origin_recipe("short", &["--backlog", "1"], "");
    // The good one answers at once, however busy the machine is. In one slice, since requests that are
    // under way at the end of a slice do not count.
    place.write(
        "x.toml",
        "title = \"good against short\"\n[servers.good]\nrecipe = \"origin\"\n\
         [servers.short]\nrecipe = \"short\"\n\
         [subjects]\ngood = \"http://good/\"\nshort = \"http://short/burn/500000\"\n\
         [load]\nconnections = 48\nkeepalive = false\ntimeout = \"400ms\"\n\
         [design]\nblocks = 1\nwarmup = \"100ms\"\nwindow = \"1s\"\nslice = \"1s\"\n\
         latency_window = \"0s\"\n\
         bottleneck = false\nretries = 0\n",
    );
    place.run(RUN);
    let mut named = 0;
    let rows = trials(&place.path("r"));
    for trial in &rows {
        let load = &trial["outcome"]["done"]["throughput"];
        let empty = Vec::new();
        let queues = load["accept_queues"].as_array().unwrap_or(&empty);
        let servers = queues.iter().filter_map(|one| one["server"].as_str());
        for server in servers {
            assert_eq!(server, "short", "{trial}");
            assert_eq!(trial["subject"], "short");
            named += 1;
        }
    }
    assert_eq!(named, 1, "its one trial: {rows:?}");
    let document = place.read_json("r/summary.json");
    let invalid = array(&document["trials"]["invalid_trials"]);
    let reasons: Vec<String> = invalid
        .iter()
        .map(|one| one["reasons"].to_string())
        .collect();
    let named = "the accept queue of `short` (backlog 1) was full ";
    assert!(reasons.iter().any(|one| one.contains(named)), "{reasons:?}");
}
