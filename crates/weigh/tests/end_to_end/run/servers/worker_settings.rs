//! How the compared servers were set: what their recipes tell, side by side.

use serde_json::Value;

use crate::common::{Place, RUN, array, has};

const DESIGN: &str = "[design]\nblocks = 1\nwarmup = \"50ms\"\nwindow = \"100ms\"\n\
    latency_window = \"0s\"\nretries = 0\nbottleneck = false\n";

/// A recipe around the built-in origin that tells its threads as its workers, or tells nothing.
fn telling(place: &Place, name: &str, tells: bool) {
    let settings = match tells {
        true => "[settings]\nworkers = \"{{ params.threads }}\"\naccess_log = \"{{ false }}\"\n",
        false => "",
    };
    place.recipe(
        name,
        &format!(
            "summary = \"{name}\"\n[params.threads]\ntype = \"integer\"\ndefault = 1\n[start]\n\
             command = [\"{{{{ weigh }}}}\", \"origin\", \"--listen\", \"{{{{ listen.addr }}}}\", \
             \"--threads\", \"{{{{ params.threads }}}}\"]\n[ready]\npath = \"/\"\nstatus = 200\n\
             [version]\ncommand = [\"{{{{ weigh }}}}\", \"--version\"]\nafter = \"weigh \"\n{settings}"
        ),
    );
}

#[test]
fn recipes_with_different_workers_are_warned_of_and_with_equal_ones_are_not() {
    let place = Place::new();
    telling(&place, "one", true);
    telling(&place, "two", true);
    telling(&place, "mute", false);
    let run = |threads: u32, folder: &str| {
        let text = format!(
            "title = \"t\"\n[servers.a]\nrecipe = \"one\"\n[servers.b]\nrecipe = \"two\"\n\
             with = {{ threads = {threads} }}\n[servers.c]\nrecipe = \"mute\"\n[subjects]\n\
             x = \"http://a/\"\ny = \"http://b/\"\nz = \"http://c/\"\n[load]\nconnections = 4\n{DESIGN}\
             baseline = \"x\"\n"
        );
        place.write("x.toml", &text);
        let document = place
            .run(&RUN.replace("--out r", &format!("--out {folder}")))
            .result();
        let warnings = array(&document["warnings"]).iter();
        let about: Vec<String> = warnings
            .filter_map(|one| one.as_str())
            .filter(|one| one.contains("the compared servers differ"))
            .map(str::to_owned)
            .collect();
        (document, about)
    };
    let (document, about) = run(2, "differ");
    assert_eq!(about.len(), 1, "{about:?}");
    assert!(about[0].contains("workers: 1 (x), 2 (y)"), "{about:?}");
    let side = &document["settings"][0];
    assert_eq!(
        side["subjects"][1]["servers"][0]["settings"]["workers"],
        "2"
    );
    assert_eq!(
        side["subjects"][0]["servers"][0]["version"],
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(side["differences"][0]["setting"], "workers");
    let read = |name: &str| std::fs::read_to_string(place.path("differ").join(name)).unwrap();
    let hosts: Value = serde_json::from_str(&read("hosts.json")).unwrap();
    let settings = &hosts["local"]["servers"]["b"]["settings"];
    assert_eq!(
        (&settings["workers"], &settings["access_log"]),
        (&"2".into(), &"off".into())
    );
    // Only what the run itself knows of every server.
    let known = hosts["local"]["servers"]["c"]["settings"]
        .as_object()
        .unwrap();
    assert!(known.keys().all(|key| key == "tcp_congestion"), "{known:?}");
    let markdown = read("summary.md");
    has(&markdown, "## Settings side by side");
    has(&markdown, "| y | b | two |");
    assert!(read("report.html").contains("<h2>Settings side by side</h2>"));
    let (_, about) = run(1, "alike");
    assert!(about.is_empty(), "{about:?}");
}
