//! Gates decide exit statuses, and stand in every form of a result.

use std::fs;
use std::process::Command;
use testing::Text as _;

use crate::common::{Done, Origin, Place, array, flat, has, skip};

/// Compares pages of a back end; their delays set the throughput, whatever else the machine does.
fn compare(
    place: &Place,
    origin: &Origin<'_>,
    pages: [&str; 2],
    blocks: &str,
    more: &[&str],
) -> Done {
    let subjects = [
        format!("base={}{}", origin.url, pages[0]),
        format!("head={}{}", origin.url, pages[1]),
    ];
    let mut call = vec!["compare", &subjects[0], &subjects[1], "-c", "4"];
    call.extend(["--window", "200ms", "--latency=false", "--bottleneck=false"]);
    call.extend(["--same=false", "--blocks", blocks, "--out", "r"]);
    call.extend(more);
    let _ = fs::remove_dir_all(place.path("r"));
    place.run(&call)
}

const FAST: &str = "/delay/constant/4ms";
const SLOW: &str = "/delay/constant/40ms";

#[test]
fn a_breached_gate_ends_with_3_and_stands_in_every_form() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let files = ["--markdown", "c.md", "--junit", "j.xml"];
    let gates = ["--gate", "throughput > -3%", "--gate", "failed < 30%"];
    let more = [&gates[..], &files].concat();
    let done = compare(&place, &origin, [FAST, SLOW], "5", &more).expect(3);
    let text = flat(&done.out);
    // "at least … lower" if the machine stalled, so that the client was the bottleneck.
    let breached = " breached throughput > -3%: head ";
    assert!(
        ["-", "at least "]
            .iter()
            .any(|high| text.contains(&format!("{breached}{high}"))),
        "{text}"
    );
    has(&text, "passed failed < 30%: head 0% [0%, ");
    let read = |name: &str| place.read(name);
    let comment = read("c.md");
    has(&comment, "1 of 2 gates passed; breached: throughput > -3%.");
    has(&comment, "| throughput | ");
    assert!(comment.contains("Linux "), "the machine: {comment}");
    let junit = read("j.xml");
    has(&junit, "tests=\"2\" failures=\"1\" errors=\"0\"");
    well_formed(&place, "j.xml");
    assert!(read("r/report.html").contains("<section id=\"gates\">"));
    assert!(read("r/summary.md").contains("- **breached**: throughput > -3%"));
    let document: serde_json::Value = serde_json::from_str(&read("r/summary.json")).unwrap();
    let gates = array(&document["gates"]);
    assert_eq!(gates[0]["outcome"], "breached");
    assert_eq!(gates[0]["bound"], -0.03);
    assert!(gates[0]["high"].as_f64().unwrap() < -0.03, "{document}");
    assert_eq!(
        (&gates[1]["outcome"], &gates[1]["metric"]),
        (&"passed".into(), &"failed".into())
    );
    // The run carries its gates.
    assert!(read("r/experiment.toml").contains("gates = [\"throughput > -3%\", \"failed < 30%\"]"));
    assert!(
        read("r/journal.jsonl")
            .lines()
            .next()
            .unwrap()
            .contains("\"gates\":[{")
    );

    // Shown again it is no judgement, unless a gate is given.
    let shown = flat(&place.run("report r --verbose").expect(0).out);
    assert!(shown.starts_with("Gates breached"), "{shown}");
    let answer = place.run("report r").expect(0).out;
    let gate = |line: &&str| line.starts_with("breached ") || line.starts_with("passed ");
    assert_eq!(answer.lines().filter(gate).count(), 2, "{answer}");
    place.run("report r --unsettled pass").expect(3);
    let kept = place
        .run("report r --verbose --gate 'head: throughput > -99%'")
        .expect(0);
    flat(&kept.out).begins("Gates passed head: throughput > -99%");
    let comment = place.run("report r --markdown -").expect(0).out;
    comment.begins("<!-- weigh compare -->\n### base against head");
    let cases = place.run("report r --junit -").expect(0).out;
    assert!(cases.starts_with("<?xml"), "{cases}");
    let both = ["report", "r", "--format", "json", "--markdown", "-"];
    place
        .run(&both)
        .expect(2)
        .says(&["both want standard output"]);
    let pair = "report r r --markdown -";
    place.run(pair).expect(2).says(&["cannot be used with"]);
    assert!(!place.path("-").exists(), "no file has this name");
}

#[test]
fn the_snippets_of_the_action_and_of_the_recipes_for_ci_run() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let has = |program: &str, arguments: &[&str]| {
        let call = Command::new(program).args(arguments).output();
        call.is_ok_and(|output| output.status.success())
    };
    if !has("python3", &["-c", "import yaml"]) || !has("git", &["--version"]) {
        return skip("python3 with PyYAML, or git, is not installed");
    }
    let script = format!("{root}/ci/test");
    let output = Command::new("python3")
        .args([&script, "none", "--stub"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// By a real parser of XML, where there is one.
fn well_formed(place: &Place, name: &str) {
    let script = "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])";
    let call = Command::new("python3")
        .args(["-c", script])
        .arg(place.path(name))
        .output();
    match call {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => skip("python3 is not installed"),
    }
}

#[test]
fn passed_gates_end_with_0_and_unsettled_ones_as_the_caller_decides() {
    let place = Place::new();
    let origin = Origin::start(&place);
    // Passes even if the machine stalls during some of the five blocks.
    let passed = compare(
        &place,
        &origin,
        [FAST, FAST],
        "5",
        &["--gate", "throughput > -80%"],
    );
    let passed = passed.expect(0);
    flat(&passed.out).has(" passed throughput > -80%: head ");
    // One block says nothing about a gate.
    let one_block = |more: &[&str]| {
        let more = [&["--gate", "throughput > -50%"], more].concat();
        compare(&place, &origin, [FAST, FAST], "1", &more)
    };
    let open = one_block(&["--junit", "j.xml"]).expect(0);
    let text = flat(&open.out);
    text.has("unsettled throughput > -50%: head; 1 block can be used, and a gate needs at least 3; a run of about 3 blocks");
    let junit = place.read("j.xml");
    has(&junit, "skipped=\"1\"");
    one_block(&["--unsettled", "fail"]).expect(3);
}

#[test]
fn a_gate_that_cannot_be_judged_ends_with_4_and_a_wrong_one_with_2() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let broken = compare(
        &place,
        &origin,
        [FAST, "/status/500"],
        "3",
        &["--gate", "throughput > -3%", "--junit", "j.xml"],
    )
    .expect(4);
    flat(&broken.out).has("not judged throughput > -3%: head");
    let junit = place.read("j.xml");
    has(&junit, "<error message=\"throughput &gt; -3%");
    // What was not measured is not judged either.
    let of_p99 = "report r --gate 'p99 < 20ms'";
    let missing = place.run(of_p99).expect(4);
    flat(&missing.out).has("the run did not measure it");

    let wrong = |gate: &str, part: &str| {
        let done = compare(&place, &origin, [FAST, FAST], "1", &["--gate", gate]).expect(2);
        assert!(flat(&done.err).contains(part), "{}", done.err);
    };
    wrong(
        "speed > -3%",
        "--gate 'speed > -3%': unknown metric `speed`",
    );
    // It is known before the run that it will not be measured.
    wrong("p99 < 20ms", "`p99` is measured in the open loop");
    wrong("haed: p99 < 1ms", "did you mean `head`?");
    for both in [
        ["--format", "json", "--markdown", "-"],
        ["--format", "json", "--junit", "-"],
        ["--junit", "-", "--markdown", "-"],
    ] {
        let both = compare(&place, &origin, [FAST, FAST], "1", &both).expect(2);
        has(&both.err, "both want standard output");
    }
    assert!(!place.path("r").exists(), "nothing was measured");

    place.write(
        "x.toml",
        "title = \"t\"\n[subjects]\na = \"http://127.0.0.1:1/\"\nb = \"http://127.0.0.1:1/x\"\n\
         [gates]\nspeed = \"throughput < -3%\"\n",
    );
    let file = place.run("run x.toml --dry-run").expect(2);
    let told = flat(&file.err);
    has(&told, "`gates.speed` is not a gate");
    has(&told, "expected `>`, found `<` (at character 12)");
}
