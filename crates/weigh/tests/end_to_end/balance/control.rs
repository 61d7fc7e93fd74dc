//! A balancer that runs, as its operator sees it: status, tell, reload, stop, counters.
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::common::{Answering, Done, KILL, LIMIT, Place, Running, TERM, has, skip, wait_until};

const HUP: i32 = 1;

/// A configuration whose back ends answer by HTTP.
fn config(place: &Place, back_ends: &[(&str, SocketAddr)]) {
    let mut text = "[services.web]\nlisten = \"127.0.0.1:0\"\n[services.web.backends]\n".to_owned();
    for (name, address) in back_ends {
        text.push_str(&format!("{name} = \"{address}\"\n"));
    }
    place.write("b.toml", &text);
}

fn start<'a>(place: &'a Place, more: &[&str]) -> (Running<'a>, SocketAddr) {
    let mut running = place.start(&[&["balance", "b.toml"], more].concat());
    running.until_said("back ends: ");
    let said = running.errors();
    let line = said
        .lines()
        .find(|line| line.starts_with("service web on "));
    let address = line.unwrap().split([' ', ',']).nth(3).unwrap();
    (running, address.parse().unwrap())
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The program refused its words.
fn refused(done: Done, said: &str) {
    let done = done.expect(2);
    assert!(
        done.err.contains(said),
        "expected `{said}` in:\n{}",
        done.err
    );
    assert_eq!(done.out, "");
}

#[test]
fn an_operator_looks_tells_reloads_and_stops() {
    let (one, two) = (Answering::start(|_| 200), Answering::start(|_| 200));
    let place = Place::new();
    config(&place, &[("one", one.address)]);
    let (mut running, address) = start(&place, &["--metrics", "127.0.0.1:0"]);
    assert!(get(address, "/").starts_with("HTTP/1.1 200"));
    let status = || {
        let done = place.run("balance --status b.toml --format json").expect(0);
        serde_json::from_str::<serde_json::Value>(&done.out).unwrap()
    };
    wait_until("the connection is counted", LIMIT, || {
        status()["services"][0]["backends"][0]["active"] == 0
    });
    let now = status();
    assert_eq!(now["pid"], running.pid());
    assert_eq!(now["services"][0]["backends"][0]["total"], 1);
    let text = place.run("balance --status b.toml").expect(0).out;
    assert!(
        text.starts_with(&format!("balancer {}, ", running.pid())),
        "{text}"
    );
    let line = text
        .lines()
        .find(|line| line.starts_with("  one "))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        words[..6],
        ["one", &one.address.to_string(), "available", "0", "1", "0"]
    );

    let said = running.errors();
    let page = said
        .lines()
        .find_map(|line| line.strip_prefix("counters on http://"))
        .unwrap();
    let page = page.strip_suffix("/metrics").unwrap().parse().unwrap();
    let series = "weigh_balance_backend_connections_total{service=\"web\",backend=\"one\"} 1\n";
    assert!(get(page, "/metrics").contains(series));

    let tell =
        |words: &[&str]| place.run(&[&["balance", "tell"], words, &["--file", "b.toml"]].concat());
    tell(&["web", "one", "state", "down"]).expect(0);
    assert_eq!(status()["services"][0]["backends"][0]["state"], "down");
    tell(&["web", "one", "state", "up"]).expect(0);
    refused(
        tell(&["web", "one", "state", "dwon"]),
        "did you mean `down`?",
    );
    refused(tell(&["wbe", "one", "drain"]), "did you mean `web`?");
    refused(
        tell(&["web", "o e", "drain"]),
        "expected a word without space",
    );
    let loose = place.run("balance tell web one drain");
    refused(loose, "<--file <FILE>|--socket <PATH>>");

    // Mistakes change nothing, whoever asks.
    place.write("b.toml", "[services.web]\nlistn = \"127.0.0.1:0\"\n");
    refused(place.run("balance reload b.toml"), "did you mean `listen`?");
    running.signal(HUP);
    running.until_said("the configuration stays as it was");
    running.until_said("did you mean `listen`?");
    assert!(get(address, "/").starts_with("HTTP/1.1 200"));
    config(&place, &[("one", one.address), ("two", two.address)]);
    running.signal(HUP);
    running.until_said("configuration replaced, services: 1");
    let done = place.run("balance reload b.toml").expect(0);
    has(
        &done.err,
        "configuration replaced, services: 1, back ends: 2",
    );
    wait_until("both are asked", LIMIT, || {
        get(address, "/");
        one.answers() > 0 && two.answers() > 0
    });
    assert_eq!(status()["reloads"], 2);

    let done = place.run("balance stop b.toml --limit 5s").expect(0);
    has(&done.err, "stopped; all clients had gone");
    let done = running.end().expect(0);
    has(&done.err, " clients, 0 refused, by back end: [");
    assert!(!Path::new(&place.path("b.toml.sock")).exists());
    let done = place.run("balance --status b.toml").expect(1);
    has(&done.err, "no balancer answers on b.toml.sock");
    refused(
        place.run("balance --status"),
        "expected the configuration file of the balancer",
    );
    refused(place.run("balance"), "<CONFIG>");
}

#[test]
fn a_socket_belongs_to_one_balancer_at_a_time() {
    let one = Answering::start(|_| 200);
    let place = Place::new();
    config(&place, &[("one", one.address)]);
    let (running, _) = start(&place, &["--socket", "s"]);
    let pid = running.pid();
    let second = place.run("balance b.toml --socket s");
    refused(
        second,
        &format!("a balancer answers on s already, with process id {pid}"),
    );
    // Killed, it leaves the socket behind, and the next one takes its place.
    running.signal(KILL);
    assert_eq!(running.end().status, -KILL);
    assert!(place.path("s").exists());
    let (running, address) = start(&place, &["--socket", "s"]);
    assert!(get(address, "/").starts_with("HTTP/1.1 200"));
    let done = place.run("balance --status --socket s").expect(0);
    assert!(
        done.out
            .starts_with(&format!("balancer {}, ", running.pid()))
    );
    place.write("mine", "text");
    refused(
        place.run("balance b.toml --socket mine"),
        "mine exists and is no socket",
    );
    running.signal(TERM);
    running.end().expect(0);
    assert!(!place.path("s").exists(), "it goes with the balancer");
}

#[test]
fn a_second_balancer_of_the_same_file_names_the_first() {
    let one = Answering::start(|_| 200);
    let place = Place::new();
    config(&place, &[("one", one.address)]);
    let (running, address) = start(&place, &[]);
    // The port is in use, too.
    let text = place.read("b.toml");
    place.write("b.toml", &text.replace("127.0.0.1:0", &address.to_string()));
    refused(
        place.run("balance b.toml"),
        &format!(
            "b.toml.sock already, with process id {}; stop it by",
            running.pid()
        ),
    );
    running.signal(TERM);
    running.end().expect(0);
}

#[test]
fn a_check_counts_services_and_says_which_names_are_unknown() {
    let place = Place::new();
    place.write(
        "b.toml",
        "[services.web]\nlisten = \"127.0.0.1:0\"\n\
         backends.one = \"no-such-host.invalid:80\"\nbackends.two = \"127.0.0.1:80\"\n",
    );
    let done = place.run("balance b.toml --check").expect(0);
    for said in [
        "b.toml is valid, services: 1, back ends: 2",
        "weigh: service `web`, back end `one`: ",
        "`no-such-host.invalid:80`",
    ] {
        has(&done.err, said);
    }
}

#[test]
fn where_the_folder_cannot_be_written_it_runs_without_a_socket() {
    let one = Answering::start(|_| 200);
    let place = Place::new();
    config(&place, &[("one", one.address)]);
    // A name that leaves no room for the socket's, as root may write to any folder.
    let long = format!("{}.toml", "n".repeat(120));
    fs::rename(place.path("b.toml"), place.path(&long)).unwrap();
    let mut running = place.start(&format!("balance {long}"));
    running.until_said("--status and tell need --socket");
    running.until_said("service web on ");
    running.signal(TERM);
    running.end().expect(0);
}

#[test]
fn it_goes_on_as_another_user_once_everything_is_open() {
    let one = Answering::start(|_| 200);
    let place = Place::new();
    config(&place, &[("one", one.address)]);
    refused(
        place.run("balance b.toml --user nobody-of-that-name"),
        "--user: this machine has no user `nobody-of-that-name`",
    );
    let Some((user, group)) = net::os::user_ids("nobody") else {
        return skip("balance --user: this machine has no user `nobody`");
    };
    if !net::os::is_root() {
        let done = place.run("balance b.toml --user nobody");
        refused(done, "--user: only root can go on as `nobody`");
        return skip("balance --user: going on as another user needs root");
    }
    let (running, address) = start(&place, &["--user", "nobody"]);
    let tasks = format!("/proc/{}/task", running.pid());
    for task in fs::read_dir(tasks).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let line = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(line("Uid:"), vec![user.to_string(); 4]);
        assert_eq!(line("Gid:"), vec![group.to_string(); 4]);
        assert_eq!(line("Groups:"), [group.to_string()]);
    }
    assert!(get(address, "/").starts_with("HTTP/1.1 200"));
    let owner = fs::metadata(place.path("b.toml.sock")).unwrap();
    assert_eq!((owner.uid(), owner.gid()), (user, group));
    running.signal(TERM);
    running.end().expect(0);
    // Its user may not remove the socket from this folder; the next one replaces it.
    let (running, _) = start(&place, &[]);
    running.signal(TERM);
    running.end().expect(0);
    assert!(!place.path("b.toml.sock").exists());
}

#[test]
fn an_address_in_use_is_said_and_leaves_nothing_behind() {
    let one = Answering::start(|_| 200);
    let place = Place::new();
    config(&place, &[("one", one.address)]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let done = place.run(&format!("balance b.toml --metrics {address}"));
    refused(done, &format!("cannot listen on {address}"));
    place.write(
        "s.toml",
        &format!("listen = \"{address}\"\nupstreams = [\"127.0.0.1:1\"]\n"),
    );
    place
        .run("balance s.toml")
        .expect(2)
        .says(&[&address, "in use"]);
    assert_eq!(
        place.names(),
        ["b.toml".to_owned(), "s.toml".to_owned()].into()
    );
}

#[test]
fn a_mistake_is_shown_in_its_line() {
    let place = Place::new();
    for (text, says) in [
        ("", ["b.toml", "`listen` or `services` is missing"]),
        ("thread = 1\n", ["b.toml:1", "unknown key `thread`"]),
    ] {
        place.write("b.toml", text);
        let done = place.run("balance b.toml").expect(2);
        done.says(&says);
        assert_eq!(done.out, "");
    }
    place
        .run("balance absent.toml")
        .expect(2)
        .says(&["absent.toml"]);
}
