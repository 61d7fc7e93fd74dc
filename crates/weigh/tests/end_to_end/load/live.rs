//! `weigh load` on a terminal: what it draws, and that it leaves the terminal as it was.

use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};

use crate::common::{INT, Origin, Place, Running, Shown, TERM, shown, signal, skip};

/// The other screen is taken, is given back, and the cursor is shown.
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";
const CURSOR: &str = "\x1b[?25h";
/// A foreground colour, as the drawing sets it.
const COLOUR: &str = "\x1b[38;5;";

/// A load on a pseudo-terminal.
struct OnTerminal<'a> {
    running: Running<'a>,
    keys: ChildStdin,
}

impl<'a> OnTerminal<'a> {
    /// Starts `weigh load` with these words in a terminal of so many lines and columns; `None`
    /// where util-linux's `script` is missing.
    fn start(place: &'a Place, size: (u16, u16), environment: &str, words: &str) -> Option<Self> {
        if Command::new("script")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_err()
        {
            skip("load on a terminal: `script` of util-linux is not installed");
            return None;
        }
        let (lines, columns) = size;
        let weigh = env!("CARGO_BIN_EXE_weigh");
        // The settings of the terminal before and after, the process, its exit status.
        let line = format!(
            "stty rows {lines} cols {columns}; echo before=$(stty -g); \
             sh -c 'echo process=$$; exec env {environment} {weigh} load {words}'; \
             echo status=$?; echo after=$(stty -g)"
        );
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]);
        place.settle(&mut command);
        command.env("TERM", "xterm-256color").stdin(Stdio::piped());
        let mut running = place.start_command(command);
        let keys = running.input();
        Some(Self { running, keys })
    }

    /// Waits until the drawing is so.
    fn until_drawn(&mut self, what: &str, mut is_so: impl FnMut(&Shown) -> bool) {
        let out = self.running.output_file();
        self.running.until(&format!("{what} was drawn"), || {
            let bytes = std::fs::read(&out).unwrap();
            let shown = shown(&String::from_utf8_lossy(&bytes));
            shown.other && is_so(&shown)
        });
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The process of `weigh`.
    fn pid(&self) -> u32 {
        value(&self.running.output(), "process").parse().unwrap()
    }

    /// Waits for the end; all that the terminal has got. The terminal has to be as it was.
    fn end(self, statuses: &[i32]) -> String {
        let done = self.running.end();
        let shown = done.out;
        let status = value(&shown, "status").parse().unwrap();
        assert!(statuses.contains(&status), "{shown}");
        assert_eq!(value(&shown, "before"), value(&shown, "after"), "{shown}");
        assert_eq!(
            shown.matches(TAKEN).count(),
            shown.matches(GIVEN_BACK).count()
        );
        if let Some(taken) = shown.rfind(TAKEN) {
            let given_back = shown.rfind(GIVEN_BACK).unwrap();
            let cursor = shown.rfind(CURSOR).unwrap();
            assert!(taken < given_back && given_back < cursor, "{shown:?}");
            // Nothing is drawn any more, and the result is on the screen that stays.
            let rest = &shown[cursor + CURSOR.len()..];
            assert!(!rest.contains('\x1b'), "{rest:?}");
            // A second signal may end it before there is one.
            if statuses.len() == 1 {
                assert!(rest.contains("Requests/sec:"), "{rest:?}");
            }
        }
        shown
    }
}

/// What follows `NAME=` on its line.
fn value(shown: &str, name: &str) -> String {
    let name = format!("{name}=");
    let from = shown
        .find(&name)
        .unwrap_or_else(|| panic!("no {name} in {shown:?}"));
    shown[from + name.len()..]
        .lines()
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn a_load_is_drawn_and_ends_by_itself() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let words = format!("{} -d 2s -c 4", origin.url);
    let Some(load) = OnTerminal::start(&place, (24, 80), "", &words) else {
        return;
    };
    let bytes = load.end(&[0]);
    assert!(bytes.contains(COLOUR), "{bytes:?}");
    let shown = shown(&bytes);
    for text in [
        &origin.url,
        "q stops",
        "closed loop, 4 connections, 1 thread",
        " requests/s, mean ",
        " good answers, no errors",
        "Last 1.00s",
        "So far",
        "Client: 1 thread at ",
        "Requests/s",
        "Latency  ⠒ p50  • p99",
        "Answers by latency",
        "█",
    ] {
        assert!(
            shown.drawn.contains(text),
            "no {text:?} in\n{}",
            shown.drawn
        );
    }
}

#[test]
fn q_and_control_c_end_a_load_and_its_result_is_printed() {
    let place = Place::new();
    let origin = Origin::start(&place);
    for key in ["q", "\x03"] {
        let words = format!("{} -d 90s -c 2 --rate 200", origin.url);
        let Some(mut load) = OnTerminal::start(&place, (30, 100), "NO_COLOR=1", &words) else {
            return;
        };
        load.until_drawn("the rate", |shown| {
            shown.drawn.contains("open loop at 200/s")
                && shown.drawn.contains(" requests/s of 200 due")
                && shown.drawn.contains(" left ")
        });
        load.press(key);
        let bytes = load.end(&[130]);
        assert!(!bytes.contains(COLOUR), "{bytes:?}");
    }
}

#[test]
fn a_signal_gives_the_terminal_back_and_so_do_two() {
    let place = Place::new();
    let origin = Origin::start(&place);
    // Of two signals of one kind, sent at once, the kernel delivers one.
    for (signals, status) in [(&[TERM][..], &[143][..]), (&[TERM, INT], &[143, 130])] {
        let words = format!("{} -d 90s", origin.url);
        let Some(mut load) = OnTerminal::start(&place, (24, 80), "", &words) else {
            return;
        };
        load.until_drawn("something", |shown| shown.drawn.contains("q stops"));
        let pid = load.pid();
        for &number in signals {
            signal(pid, number);
        }
        load.end(status);
    }
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let words = format!("{} -d 90s", origin.url);
    let Some(mut load) = OnTerminal::start(&place, (24, 80), "", &words) else {
        return;
    };
    load.until_drawn("something", |shown| shown.drawn.contains("q stops"));
    let pid = load.pid();
    for (lines, columns) in [(12, 50), (4, 20), (40, 132)] {
        let mut stty = Command::new("stty");
        stty.args(["-F", &format!("/proc/{pid}/fd/2")]);
        stty.args(["rows", &lines.to_string(), "cols", &columns.to_string()]);
        assert!(stty.status().unwrap().success());
        load.until_drawn("the new size", |shown| {
            let long = |line: &str| line.chars().count();
            let widest = shown.drawn.lines().map(long).max().unwrap_or(0);
            widest <= columns && (widest > columns / 2) && shown.drawn.lines().count() <= lines
        });
    }
    load.press("q");
    load.end(&[130]);
}

#[test]
fn lines_take_the_place_of_the_view_where_it_does_not_fit() {
    let place = Place::new();
    let origin = Origin::start(&place);
    for (size, environment, more, lines) in [
        ((8, 80), "", "", true),
        ((24, 30), "", "", true),
        ((24, 80), "TERM=dumb", "", true),
        ((24, 80), "", "--plain", true),
        ((24, 80), "", "--format json", true),
        ((24, 80), "", "--quiet", false),
    ] {
        let words = format!("{} -d 300ms --interval 100ms {more}", origin.url);
        let Some(load) = OnTerminal::start(&place, size, environment, &words) else {
            return;
        };
        let shown = load.end(&[0]);
        assert!(!shown.contains('\x1b'), "{shown:?}");
        assert_eq!(shown.contains(" requests/s  p50"), lines, "{shown}");
    }
}
