//! `weigh run --profile`: a function that was planted in a real server shows in the difference.

use std::fs;
use std::process::Command;

use crate::common::{Place, has, skip};

/// A web server of one thread that answers each request, and with `hot` burns time before.
const SERVER: &str = r#"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void planted_hot_function(void) {
    for (unsigned long i = 0; i < 60000; i++) sink += i;
}
int main(int argc, char **argv) {
    const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    int hot = argc > 2 && !strcmp(argv[2], "true");
    int l = socket(AF_INET, SOCK_STREAM, 0), one = 1, n = 1;
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(l, (void *)&a, sizeof a) || listen(l, 100)) return 1;
    struct pollfd fds[512] = {{.fd = l, .events = POLLIN}};
    char buf[8192];
    for (;;) {
        poll(fds, n, -1);
        for (int i = n - 1; i > 0; i--) {
            if (!fds[i].revents) continue;
            if (read(fds[i].fd, buf, sizeof buf) <= 0) {
                close(fds[i].fd);
                fds[i] = fds[--n];
                continue;
            }
            if (hot) planted_hot_function();
            if (write(fds[i].fd, answer, strlen(answer)) < 0) continue;
        }
        if (fds[0].revents && n < 512) {
            int c = accept(l, 0, 0);
            if (c >= 0) fds[n++] = (struct pollfd){.fd = c, .events = POLLIN};
        }
    }
}
"#;

const RECIPE: &str = r#"
summary = "a server with a planted function"
[params.hot]
type = "boolean"
default = false
[copy]
"server" = { from = "server", mode = "0755" }
[start]
command = ["{{ dir }}/server", "{{ listen.port }}", "{{ 'true' if params.hot else 'false' }}"]
[ready]
path = "/"
contains = "ok"
"#;

const EXPERIMENT: &str = r#"[servers.base]
recipe = "planted"
[servers.hot]
recipe = "planted"
with = { hot = true }
[subjects]
plain = "http://base/"
burning = "http://hot/"
[load]
connections = 4
"#;

fn place() -> Option<Place> {
    let place = Place::new();
    place.recipe("planted", RECIPE);
    fs::write(place.path("server.c"), SERVER).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-g", "-fno-omit-frame-pointer", "-o"])
        .arg(place.path("recipes/planted/server"))
        .arg(place.path("server.c"))
        .status();
    if !built.is_ok_and(|status| status.success()) {
        skip("no C compiler");
        return None;
    }
    place.experiment(EXPERIMENT);
    Some(place)
}

fn perf_works(place: &Place) -> bool {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-o"]);
    perf.arg(place.path("try.data")).args(["--", "true"]);
    perf.stderr(std::process::Stdio::null());
    perf.stdout(std::process::Stdio::null());
    perf.status().is_ok_and(|status| status.success())
}

/// The samples of a file of stacks: those with the function, and all.
fn samples(folded: &str, function: &str) -> (u64, u64) {
    let mut found = (0, 0);
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        found.1 += count;
        if stack.split(';').any(|frame| frame == function) {
            found.0 += count;
        }
    }
    found
}

const CALL: &str = "run x.toml --recipes recipes --profile --out r";

#[test]
fn a_planted_function_stands_in_the_difference_to_the_baseline() {
    let Some(place) = place() else { return };
    if !perf_works(&place) {
        return skip("perf is not installed or not allowed");
    }
    // A single block decides nothing.
    let end = place.run(CALL);
    let read = |name: &str| {
        let path = place.path(&format!("r/profile/{name}"));
        fs::read_to_string(path).unwrap_or_else(|e| panic!("{name}: {e}\n{}", end.err))
    };
    let (hot, all) = samples(&read("burning-hot.folded"), "planted_hot_function");
    assert!(all > 100 && hot * 3 > all, "{hot} of {all} samples");
    let (hot, all) = samples(&read("plain-base.folded"), "planted_hot_function");
    assert!(all > 100 && hot == 0, "{hot} of {all} samples");
    for name in ["plain-base.svg", "burning-hot.svg"] {
        assert!(read(name).contains("<svg"), "{name}");
    }
    let graph = read("burning-difference.svg");
    let title = graph
        .split("<title>")
        .find(|one| one.starts_with("planted_hot_function"));
    // Its share of the samples grew from nothing.
    assert!(title.unwrap_or_default().contains("; +"), "{title:?}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn without_perf_one_line_says_so_and_the_run_goes_on() {
    let Some(place) = place() else { return };
    let mut command = place.weigh(CALL);
    command.env("PATH", place.path("nothing-here"));
    let end = place.start_command(command).end();
    let journal = place.read("r/journal.jsonl");
    let rows = journal
        .lines()
        .filter(|row| row.contains("perf is not installed"));
    assert_eq!(rows.count(), 1, "{journal}\n{}", end.err);
    has(&journal, "\"complete\":true");
    assert!(!place.path("r/profile").exists());
}
