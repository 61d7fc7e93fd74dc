//! Foreign text in journals and outputs controls no terminal and no spreadsheet; a damaged journal
//! is salvaged; a full disk loses nothing that was measured.

use std::fs::{self, File};
use std::process::Command;
use testing::Text as _;

use crate::common::{Place, flat, has, journal, trials};

/// Sets the title of the terminal's window, clears the screen, reverses the text direction, and writes
/// black on black.
const BAD: &str = "\\u001b]0;x\\u0007\\u009b2J\\u202e\\r\\u001b[30;40m";

/// Makes a run of two subjects, as someone else may send it.
fn foreign(place: &Place) {
    let subject = "=HYPERLINK(1)";
    let header = format!(
        "{{\"row\":\"run\",\"weigh_version\":\"1{BAD}\",\"experiment\":\"e{BAD}\",\
         \"title\":\"t{BAD}\",\"seed\":1,\"baseline\":\"a\",\"subjects\":[\"a\",\"{subject}\"],\
         \"conditions\":[{{\"-c{BAD}\":\"@l{BAD}\"}}],\"blocks\":1,\"matters\":0.03,\
         \"matters_failures\":0.001,\"max_error\":0.01,\
         \"started_unix_s\":5,\"published\":[{{\"what\":\"w{BAD}\",\"value\":1.0,\
         \"unit\":\"u{BAD}\",\"source\":\"s{BAD}\"}}]}}\n"
    );
    let trial = |number: u32, subject: &str| {
        format!(
            "{{\"row\":\"trial\",\"trial\":{number},\"block\":1,\
             \"condition\":{{\"-c{BAD}\":\"@l{BAD}\"}},\"subject\":\"{subject}\",\
             \"baseline_copy\":false,\"attempt\":1,\"outcome\":{{\"failed\":{{\"reason\":\"+r{BAD}\\nnext\"}}}}}}\n"
        )
    };
    let warning = format!("{{\"row\":\"warning\",\"text\":\"a server says {BAD}\"}}\n");
    let rows = header + &trial(1, "a") + &trial(2, subject) + &warning;
    place.write("r/journal.jsonl", &rows);
}

fn acts(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}'
}

#[test]
fn words_of_others_reach_no_terminal_and_no_spreadsheet() {
    let place = Place::new();
    foreign(&place);
    for format in ["text", "md", "csv", "json", "html"] {
        let done = place.run(&format!("report r --format {format}")).expect(0);
        let found: Vec<char> = done.out.chars().filter(|c| acts(*c)).collect();
        assert!(found.is_empty(), "{format}: {found:?}\n{}", done.out);
        let file = format!("r.{format}");
        let call = format!("report r --format {format} -o {file}");
        place.run(&call).expect(0);
        let text = place.read(&file);
        // The same holds for the file.
        assert!(!text.contains(acts), "{format}: {text:?}");
    }
    let all = place.run("report r --verbose").expect(0).out;
    assert!(!all.contains(acts), "{all:?}");
    let csv = place.run("report r --format csv").expect(0).out;
    has(&csv, ",\"'-c\u{241b}]0;x");
    has(&csv, ",'=HYPERLINK(1),");
    csv.has(",\"'@l\u{241b}");
    csv.has("\"'+r\u{241b}");
    let json = place.run("report r --format json").expect(0);
    let title = json.json()["title"].as_str().unwrap().to_owned();
    title.begins("t\u{1b}]0;x\u{7}\u{9b}2J\u{202e}");
}

#[test]
fn words_of_others_in_messages_reach_no_terminal() {
    let place = Place::new();
    place.write("x\u{1b}]0;t\u{7}.txt", "nothing that is known");
    let done = place.run(&["read", "x\u{1b}]0;t\u{7}.txt"]).expect(2);
    has(&done.err, "x\u{241b}]0;t\u{2407}.txt");
    assert!(!done.err.contains(acts), "{:?}", done.err);
}

#[test]
fn a_damaged_journal_is_salvaged() {
    let place = Place::new();
    foreign(&place);
    let file = place.path("r/journal.jsonl");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes
        .windows(9)
        .rposition(|it| it == b"\"trial\":2")
        .unwrap();
    bytes[at] = 0;
    fs::write(&file, bytes).unwrap();
    let done = place.run("report r").expect(2);
    done.says(&["journal.jsonl: line 3", "weigh report --salvage r"]);
    let done = place.run("report --salvage r --verbose").expect(0);
    has(&done.err, "1 of 4 lines");
    flat(&done.out).has("line 3 of the journal is damaged");
    let json = ["report", "--salvage", "r", "--format", "json"];
    let document = place.run(&json).expect(0).json();
    assert_eq!(document["trials"]["failed"], 1);
    // Without its first line, nothing can be salvaged, and no hint says so.
    let bytes = fs::read(&file).unwrap();
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    fs::write(&file, &bytes[first + 1..]).unwrap();
    for arguments in [&["report", "r"][..], &["report", "--salvage", "r"]] {
        let done = place.run(arguments).expect(2);
        done.says(&["journal.jsonl: expected the run's header", "must be intact"]);
        assert!(!done.err.contains("uses the intact rows"), "{}", done.err);
    }
}

#[test]
fn a_text_without_end_is_not_read_to_its_end() {
    let place = Place::new();
    let mut command = place.weigh("read");
    command.stdin(File::open("/dev/zero").unwrap());
    let done = place.start_command(command).end().expect(2);
    done.says(&["standard input: expected at most 64 MiB"]);
    place.run("read /dev/zero").expect(2);
}

#[test]
fn a_full_disk_ends_a_run_and_keeps_what_was_measured() {
    let place = Place::new();
    place.write(
        "x.toml",
        "title = \"x\"\n[servers.a]\nrecipe = \"origin\"\n\
         [subjects]\nx = \"http://a/\"\ny = \"http://a/bytes/10\"\n\
         [expect]\nsame = false\n\
         [design]\nblocks = 40\nwindow = \"100ms\"\nwarmup = \"20ms\"\nlatency_window = \"0s\"\n\
         bottleneck = false\nretries = 0\n",
    );
    // A limit on the size of each file stands for a full disk: 256 KiB, in blocks of 512 bytes.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 512; exec \"$0\" run x.toml --out r"]);
    command.arg(env!("CARGO_BIN_EXE_weigh"));
    place.settle(&mut command);
    let done = place.start_command(command).end().expect(1);
    done.says(&["File too large", "trials are kept in r"]);
    let kept = trials(&place.path("r")).len();
    assert!(kept > 0);
    place.run("report r").expect(0);
    assert!(place.left().is_empty(), "{:?}", place.left());
    // With space again, the journal continues after its last complete row.
    let mut resumed = place.start("run --resume r");
    let folder = place.path("r");
    resumed.until("there is a trial more", || trials(&folder).len() > kept);
    resumed.signal(crate::common::INT);
    resumed.end().expect(130);
    assert_eq!(journal(&place.path("r")).last().unwrap()["row"], "end");
}
