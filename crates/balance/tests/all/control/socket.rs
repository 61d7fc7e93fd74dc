//! The socket, the page with counters, and logs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use testing::Text as _;

use crate::support::control::{BackEnd, Client, Folder, permissions, start, until, who};
use balance::control::{Page, Socket, SocketError, Supervisor, beside};
use net::IoKind;

fn config(back_end: &BackEnd) -> String {
    format!(
        "[services.web]\nlisten = \"127.0.0.1:0\"\nbackends.one = \"{}\"\n",
        back_end.address
    )
}

#[test]
fn only_its_user_can_use_the_socket_and_it_goes_with_the_balancer() {
    let back_end = BackEnd::start("one");
    let running = start(&config(&back_end), IoKind::Epoll);
    let path = running.socket.path().to_owned();
    assert_eq!(path, running.folder.0.join("b.toml.sock"));
    assert_eq!(permissions(&path), 0o600);
    let names = |folder: &Folder| {
        let entries = std::fs::read_dir(&folder.0).unwrap();
        entries
            .map(|one| one.unwrap().file_name().into_string().unwrap())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        names(&running.folder),
        ["b.toml", "b.toml.sock"].map(str::to_owned).into()
    );
    let crate::support::control::Running {
        supervisor,
        socket,
        folder,
        ..
    } = running;
    drop(socket);
    assert_eq!(names(&folder), ["b.toml".to_owned()].into());
    drop(supervisor);
}

#[test]
fn a_living_balancer_keeps_its_socket_and_a_dead_one_loses_it() {
    let back_end = BackEnd::start("one");
    let running = start(&config(&back_end), IoKind::Epoll);
    let (config, _) = balance::parse_file(&running.file).unwrap();
    let other = Supervisor::start(&config, &running.file, IoKind::Epoll).unwrap();
    let refused = Socket::check(running.socket.path()).unwrap_err();
    assert!(matches!(refused, SocketError::Live { .. }), "{refused}");
    let refused = Socket::open(running.socket.path(), &other).err().unwrap();
    let own = u64::from(std::process::id());
    assert!(
        matches!(&refused, SocketError::Live { pid, .. } if *pid == own),
        "{refused}"
    );
    assert!(
        refused
            .to_string()
            .contains(&format!("with process id {own}; stop it by"))
    );
    // One that was left behind: its listener is closed, its file is there.
    let stale = beside(&running.folder.0.join("stale"));
    drop(UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    Socket::check(&stale).unwrap();
    assert!(stale.exists());
    let socket = Socket::open(&stale, &other).unwrap();
    assert_eq!(
        balance::control::ask(&stale, "status", crate::support::LONG).unwrap()["ok"],
        true
    );
    assert_eq!(permissions(socket.path()), 0o600);
    // A file that is no socket is nobody's to remove.
    let file = running.folder.write("file", "mine");
    let refused = Socket::open(&file, &other).err().unwrap();
    refused.to_string().has("exists and is no socket");
    assert_eq!(running.folder.read("file"), "mine");
    // Somebody else's.
    let strange = running.folder.0.join("strange");
    let listener = UnixListener::bind(&strange).unwrap();
    let thread = std::thread::spawn(move || {
        for _ in 0..2 {
            let _ = listener.accept().unwrap().0.write_all(b"hello\n");
        }
    });
    let refused = Socket::open(&strange, &other).err().unwrap();
    assert!(matches!(refused, SocketError::Stranger { .. }), "{refused}");
    thread.join().unwrap();
}

#[test]
fn slow_and_silent_operators_hold_up_nobody() {
    use std::os::unix::net::UnixStream;
    let back_end = BackEnd::start("one");
    let running = start(&config(&back_end), IoKind::Epoll);
    let connect = || UnixStream::connect(running.socket.path()).unwrap();
    let silent: Vec<UnixStream> = (0..4).map(|_| connect()).collect();
    running.done("status");
    drop(silent);
    // More than are answered at one time are closed.
    let many: Vec<UnixStream> = (0..32).map(|_| connect()).collect();
    let mut closed = 0;
    for mut stream in many {
        stream
            .set_read_timeout(Some(std::time::Duration::from_millis(20)))
            .unwrap();
        closed += usize::from(matches!(stream.read(&mut [0]), Ok(0)));
    }
    assert!(closed >= 20, "{closed}");
    until("it answers again", || {
        balance::control::ask(running.socket.path(), "status", crate::support::LONG).is_ok()
    });
}

fn get(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The samples of a page by their names and labels; checks the form on the way.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let mut types = BTreeMap::<String, String>::new();
    let mut helped = BTreeSet::new();
    let mut all = BTreeMap::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(!text.is_empty() && helped.insert(name.to_owned()), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(helped.contains(name) && types.insert(name.into(), kind.into()).is_none());
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|end| name.strip_suffix(end))
                .find(|family| types.get(*family).is_some_and(|kind| kind == "histogram"))
                .unwrap_or(name);
            assert!(types.contains_key(family), "no TYPE before {line}");
            assert!(
                all.insert(series.to_owned(), value.parse().unwrap())
                    .is_none(),
                "{line}"
            );
        }
    }
    assert!(page.ends_with('\n'));
    all
}

#[test]
fn the_page_is_what_prometheus_reads() {
    let back_end = BackEnd::start("one");
    let running = start(&config(&back_end), IoKind::Epoll);
    let page = Page::open("127.0.0.1:0".parse().unwrap(), &running.supervisor).unwrap();
    for _ in 0..5 {
        assert_eq!(who(running.address()).as_deref(), Some("one"));
    }
    until("all is counted", || {
        running.backend(0, 0)["bytes_from"] == 20 && running.backend(0, 0)["active"] == 0
    });
    let (head, body) = get(page.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    let samples = samples(&body);
    let sample = |name: &str, labels: &str| {
        let series = format!("weigh_balance_{name}{{service=\"web\"{labels}}}");
        *samples
            .get(&series)
            .unwrap_or_else(|| panic!("no {series} in\n{body}"))
    };
    assert_eq!(sample("clients_total", ""), 5.0);
    let one = ",backend=\"one\"";
    assert_eq!(sample("backend_connections_total", one), 5.0);
    assert_eq!(sample("backend_sent_bytes_total", one), 10.0);
    assert_eq!(sample("backend_received_bytes_total", one), 20.0);
    assert_eq!(sample("backend_up", one), 1.0);
    assert_eq!(
        sample("backend_state", ",backend=\"one\",state=\"available\""),
        1.0
    );
    assert_eq!(
        sample("backend_state", ",backend=\"one\",state=\"down\""),
        0.0
    );
    for family in ["backend_connect_seconds", "backend_session_seconds"] {
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|(series, count)| {
                let start =
                    format!("weigh_balance_{family}_bucket{{service=\"web\",backend=\"one\",le=\"");
                let bound = series.strip_prefix(&start)?.strip_suffix("\"}")?;
                Some((bound.parse::<f64>().unwrap(), *count))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(buckets.len(), 13);
        assert!(
            buckets.windows(2).all(|two| two[0].1 <= two[1].1),
            "{buckets:?}"
        );
        assert_eq!(buckets[12], (f64::INFINITY, 5.0));
        assert_eq!(sample(&format!("{family}_count"), one), 5.0);
        assert!(sample(&format!("{family}_sum"), one) >= 0.0);
    }
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        ("nonsense\r\n\r\n", "400 Bad Request"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK"),
    ] {
        let (head, _) = get(page.address(), request);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{request:?}: {head}"
        );
    }
    let (head, body) = get(page.address(), "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty());
}

#[test]
fn logs_and_commands_tell_of_each_connection() {
    let back_end = BackEnd::start("one");
    for io in [IoKind::Uring, IoKind::Epoll] {
        let running = start(
            &format!(
                "[services.web]\nlisten = \"127.0.0.1:0\"\naccess_log = \"FOLDER/access\"\n\
                 [services.web.backends.one]\naddress = \"{}\"\n\
                 on_start = \"echo start %s %b %r >> FOLDER/commands\"\n\
                 on_end = \"echo end >> FOLDER/commands\"\n\
                 traffic_log = \"FOLDER/traffic\"\nthroughput_log = \"FOLDER/throughput\"\n",
                back_end.address
            ),
            io,
        );
        let mut client = Client::connect(running.address());
        let own = client.0.local_addr().unwrap();
        assert_eq!(client.ask(), "one");
        drop(client);
        let read = |name: &str| running.folder.read(name);
        until("all is written", || {
            read("commands").lines().count() == 2
                && read("traffic").lines().count() == 2
                && !read("access").is_empty()
                && !read("throughput").is_empty()
        });
        let mut commands: Vec<String> = read("commands").lines().map(str::to_owned).collect();
        commands.sort();
        assert_eq!(commands, ["end", "start web one 127.0.0.1"]);
        let traffic = read("traffic");
        let lines: Vec<&str> = traffic
            .lines()
            .map(|line| line.split_once(' ').unwrap().1)
            .collect();
        assert_eq!(lines[0], format!("{own} > one \"?\\x0A\""));
        assert_eq!(lines[1], format!("{own} < one \"one\\x0A\""));
        let access = read("access");
        assert!(
            access.starts_with("127.0.0.1 - - [") && access.contains("] \"TCP\" - 4 duration_us=")
        );
        access.ends("service=web backend=one bytes_to=2\n");
        let throughput = read("throughput");
        let words: Vec<&str> = throughput.split_whitespace().collect();
        assert_eq!(
            (words.len(), &words[1..3]),
            (4, &["2", "4"][..]),
            "{throughput}"
        );
        // A reload opens the files anew, so that they can be moved away.
        std::fs::rename(
            running.folder.0.join("access"),
            running.folder.0.join("old"),
        )
        .unwrap();
        running.done("reload");
        assert_eq!(who(running.address()).as_deref(), Some("one"));
        until("the new file is written", || {
            read("access").lines().count() == 1
        });
        assert_eq!(read("old").lines().count(), 1);
        assert_eq!(running.done("status")["events_lost"], 0);
    }
}

#[test]
fn an_account_that_cannot_be_had_is_refused_at_the_start() {
    let back_end = BackEnd::start("one");
    let folder = Folder::new();
    let text = format!(
        "service s {{ port 0; useraccount nobody-of-that-name; \
         backend one {{ server {}; onfail \"true\"; }} }}",
        back_end.address
    )
    .replace("port 0", "port 1");
    let file = folder.write(
        "c.conf",
        &text.replace("port 1", "bindto 127.0.0.1; port 65001"),
    );
    let (config, _) = balance::parse_file(&file).unwrap();
    let refused = Supervisor::start(&config, &file, IoKind::Epoll)
        .err()
        .unwrap();
    let said = "service `s`: `user_account` cannot be used: there is no user account \
                `nobody-of-that-name`";
    assert_eq!(refused.to_string(), said);
}
