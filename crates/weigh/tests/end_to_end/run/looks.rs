//! When a run ends, what it makes again, and when it parts its subjects.

use std::fs;
use testing::Text as _;

use crate::common::{Place, RUN, array, has, journal, trials};

const QUICK: &str =
    "warmup = \"30ms\"\nwindow = \"100ms\"\nlatency_window = \"0s\"\nbottleneck = false\n";

#[test]
fn a_run_ends_at_the_first_look_at_which_everything_is_settled() {
    let place = Place::new();
    // Ten times the difference that any machine's noise could make.
    place.write(
        "x.toml",
        &format!(
            "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\n[subjects]\nfast = \"http://o/\"\n\
             slow = \"http://o/delay/constant/40ms\"\n[load]\nconnections = 4\n[design]\n{QUICK}"
        ),
    );
    let dry = place.run("run x.toml --dry-run").expect(0).out;
    has(&dry, "after 10, 20, 30 blocks");
    let done = place.run("run x.toml --format json --out r");
    let document = done.result();
    // Where a client shares its CPU with other programs, the second look may be the first to do.
    let look = document["stage"]["look"].as_u64().unwrap();
    assert!(look == 1 || look == 2, "{}", done.err);
    let blocks = 10 * look;
    let said = format!("everything is settled after {blocks} of at most 30 blocks");
    has(&done.err, &said);
    has(&done.err, "(look after block 10) to ");
    assert_eq!(document["stage"]["blocks_done"], blocks);
    assert_eq!(document["comparisons"][0]["verdict"], "slower");
    let folder = place.path("r");
    assert_eq!(journal(&folder).last().unwrap()["complete"], true);
    let sentence = format!("ook {look} of 3, after {blocks} of at most 30 blocks");
    for name in ["report.html", "summary.md"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.contains(&sentence), "{name}");
    }
    let text = crate::common::flat(&place.run("report r --verbose").expect(0).out);
    has(&text, &sentence);

    // Cut off right after its tenth block, it looks before it goes on, and ends.
    let file = folder.join("journal.jsonl");
    let lines = fs::read_to_string(&file).unwrap();
    let kept: Vec<&str> = lines
        .lines()
        .filter(|line| !line.contains("\"row\":\"end\""))
        .collect();
    fs::write(&file, kept.join("\n") + "\n").unwrap();
    let before = trials(&folder);
    assert_eq!(place.run("run --resume r --format json").result(), document);
    assert_eq!(trials(&folder), before);
    assert_eq!(journal(&folder).last().unwrap()["complete"], true);
}

#[test]
fn what_failed_once_is_made_again_in_its_block_and_all_rows_are_kept() {
    let place = Place::new();
    let flag = place.path("started-before");
    place.recipe(
        "second-time",
        &format!(
            "summary = \"does not start at first\"\nrun_as = \"root\"\n[start]\n\
             command = [\"sh\", \"-c\", \"if [ -e {0} ]; then exec {{{{ weigh }}}} origin --listen {{{{ listen.addr }}}}; fi; touch {0}; exit 1\"]\n\
             [ready]\npath = \"/\"\nstatus = 200\ntimeout = \"20s\"\n",
            flag.display()
        ),
    );
    let experiment = |retries: u32| {
        format!(
            "title = \"t\"\n[servers.o]\nrecipe = \"second-time\"\n[subjects]\nx = \"http://o/\"\n\
             y = \"http://o/bytes/9\"\n[design]\nblocks = 2\nretries = {retries}\n{QUICK}"
        )
    };
    place.write("x.toml", &experiment(2));
    let done = place.run(RUN);
    let document = done.result();
    has(&done.err, "the condition is repeated (2 retries left");
    assert_eq!(document["trials"]["failed"], 0);
    assert_eq!(document["trials"]["done"], 6);
    let rows = trials(&place.path("r"));
    // On a busy machine a block may be repeated a second time: three more rows.
    assert!([9, 12].contains(&rows.len()), "{rows:?}");
    let failed = rows
        .iter()
        .filter(|row| row["outcome"]["failed"].is_object());
    assert_eq!(failed.count(), 3);
    assert!(rows[..3].iter().all(|row| row["block"] == 1));

    // Without retries it stays as it came, and is named.
    fs::remove_file(&flag).unwrap();
    fs::remove_dir_all(place.path("r")).unwrap();
    place.write("x.toml", &experiment(0));
    let document = place.run(RUN).json();
    assert_eq!(document["trials"]["failed"], 3);
    assert_eq!(trials(&place.path("r")).len(), 6);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

/// Runs two subjects, of which the second is behind a server of this command.
fn two(place: &Place, apart: &str, command: &str) -> (serde_json::Value, Vec<String>) {
    place.recipe(
        "odd",
        &format!(
            "summary = \"odd\"\nrun_as = \"root\"\n[start]\ncommand = [\"sh\", \"-c\", \"{command}\"]\n\
             [ready]\npath = \"/\"\nstatus = 200\ntimeout = \"20s\"\n"
        ),
    );
    place.write(
        "x.toml",
        &format!(
            "title = \"t\"\n[servers.a]\nrecipe = \"odd\"\n[servers.b]\nrecipe = \"odd\"\n\
             [subjects]\nx = \"http://a/\"\ny = \"http://b/\"\n[load]\nconnections = 4\n\
             [design]\nblocks = 1\nretries = 0\napart = \"{apart}\"\n{QUICK}"
        ),
    );
    let document = place.run(RUN).json();
    assert!(place.left().is_empty(), "{:?}", place.left());
    fs::remove_dir_all(place.path("r")).unwrap();
    let warnings = array(&document["warnings"])
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .filter(|text| text.contains("one after the other"))
        .collect();
    (document, warnings)
}

#[test]
fn a_server_that_is_busy_while_nobody_asks_it_is_measured_alone() {
    let place = Place::new();
    let busy = "while :; do :; done & exec {{ weigh }} origin --listen {{ listen.addr }}";
    let (document, warnings) = two(&place, "auto", busy);
    assert_eq!(document["trials"]["done"], 3, "{document}");
    assert_eq!(warnings.len(), 1, "{document}");
    warnings[0].has("% of a CPU without load");
    let (document, warnings) = two(&place, "never", busy);
    assert_eq!(document["trials"]["done"], 3, "{document}");
    assert!(warnings.is_empty(), "{warnings:?}");
    let quiet = "exec {{ weigh }} origin --listen {{ listen.addr }}";
    let (_, warnings) = two(&place, "auto", quiet);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn what_has_failed_is_made_again_even_where_nothing_is_left_to_settle() {
    let place = Place::new();
    place.recipe(
        "later",
        &format!(
            "summary = \"ends at once until there is a file\"\n[programs]\nsh = [\"sh\"]\n\
             [start]\ncommand = [\"{{{{ programs.sh }}}}\", \"-c\", \"test -e {} && \
             exec {{{{ weigh }}}} origin --listen {{{{ listen.addr }}}}\"]\n[ready]\npath = \"/\"\n",
            place.path("home/up").display()
        ),
    );
    place.write(
        "x.toml",
        &format!(
            "title = \"t\"\n[servers.a]\nrecipe = \"later\"\n[subjects]\nx = \"http://a/\"\n\
             y = \"http://a/bytes/9\"\n[design]\nblocks = 3\nretries = 1\n{QUICK}"
        ),
    );
    // Nothing is left to compare after the first block.
    let document = place.run(RUN).expect(1).json();
    assert_eq!(document["trials"]["done"], 0, "{document}");
    assert_eq!(document["trials"]["failed"], 3, "{document}");
    place.write("home/up", "");
    let mut call = vec!["run", "--resume", "r", "--format", "json"];
    call.extend(["--recipes", "recipes"]);
    let document = place.run(&call).result();
    assert_eq!(document["trials"]["done"], 9, "{document}");
    assert_eq!(document["trials"]["failed"], 0, "{document}");
}
