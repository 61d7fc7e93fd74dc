//! A program that chooses back ends: asked for each connection and each request, beside the
//! threads that pass on bytes, and not waited for longer than 2 s.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::{config, connect, dead, echo, on_both, read, service, start, until};
use balance::Balancer;
use balance::config::Template;
use balance::config::model::{Dispatch, Service, StickyCookie};
use net::IoKind;

/// A file's place of a test's own.
fn place() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("we-{}-{number}", std::process::id()))
}

fn asks(service: &mut Service, command: &str) {
    service.dispatch = Dispatch::External {
        command: Template::parse(command).unwrap(),
    };
}

fn asking(io: IoKind, backends: &[SocketAddr], command: &str) -> Balancer {
    let mut service = service(backends);
    asks(&mut service, command);
    start(io, service)
}

/// Who greets the next clients.
fn who(balancer: &Balancer, count: usize) -> String {
    (0..count)
        .map(|_| read(&mut connect(balancer), 1))
        .collect()
}

#[test]
fn the_program_names_the_back_end_of_each_connection() {
    on_both(|io| {
        let backends = [echo("0"), echo("1"), echo("2")];
        let file = place();
        std::fs::write(&file, "b2\n").unwrap();
        let balancer = asking(io, &backends, &format!("cat {}", file.display()));
        assert_eq!(who(&balancer, 3), "222");
        // Its number does as well; and it is asked each time.
        std::fs::write(&file, " 1 ").unwrap();
        assert_eq!(who(&balancer, 2), "11");
        assert_eq!(balancer.shared().hook_failures.get(), 0);
        std::fs::remove_file(&file).unwrap();
        // What a client sent while it waited is not lost.
        let balancer = asking(io, &backends, "sleep 0.1; test %r = 127.0.0.1 && echo b1");
        let mut early = connect(&balancer);
        early.write_all(b"hello").unwrap();
        assert_eq!(read(&mut early, 6), "1hello");
        // Many at one time.
        let mut clients: Vec<_> = (0..40).map(|_| connect(&balancer)).collect();
        assert!(clients.iter_mut().all(|client| read(client, 1) == "1"));
        assert_eq!(balancer.shared().hook_failures.get(), 0);
        // Clients that go while it is asked leave nothing behind.
        drop((0..40).map(|_| connect(&balancer)).collect::<Vec<_>>());
        drop((clients, early));
        let shared = balancer.shared();
        until("all have gone", || {
            shared.services[0].active.load(Ordering::Relaxed) == 0
        });
        assert_eq!(who(&balancer, 1), "1");
    });
}

#[test]
fn without_a_good_answer_it_is_one_after_the_other() {
    on_both(|io| {
        let backends = [echo("0"), echo("1")];
        for command in [
            "exit 1",
            "echo b1; exit 3",
            "echo b7",
            "echo 2",
            "echo -1",
            "true",
            "yes",
            "/nonexistent/program",
        ] {
            let balancer = asking(io, &backends, command);
            assert_eq!(who(&balancer, 4), "0101", "{command}");
            let own = balancer.shared().process.clone();
            assert_eq!(own.hook_failures.get(), 4, "{command}");
        }
        // One that is named but cannot be reached is passed over.
        let balancer = asking(io, &[dead(), echo("1")], "echo b0");
        assert_eq!(who(&balancer, 3), "111");
        assert_eq!(balancer.shared().hook_failures.get(), 0);
    });
}

#[test]
fn a_program_that_hangs_holds_up_its_own_clients_for_a_while_only() {
    on_both(|io| {
        let file = place();
        let hanging = format!("echo $$ > {}; sleep 60; echo b1", file.display());
        let mut slow = service(&[echo("0"), echo("1")]);
        asks(&mut slow, &hanging);
        let mut config = config(slow);
        let mut other = service(&[echo("x")]);
        other.name = "other".to_owned();
        config.services.push(other);
        let balancer = Balancer::start(&config, io).unwrap();
        let began = Instant::now();
        let mut held = connect(&balancer);
        // Others are served meanwhile by the same thread.
        let address = balancer.addresses()[1].1;
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(read(&mut stream, 1), "x");
        assert!(began.elapsed() < Duration::from_secs(2));
        assert_eq!(read(&mut held, 1), "0");
        assert!(began.elapsed() >= Duration::from_millis(1900));
        let process = std::fs::read_to_string(&file).unwrap();
        let process = PathBuf::from(format!("/proc/{}", process.trim()));
        until("it is killed", || !process.exists());
        // One that runs goes with the balancer, which does not wait for it.
        let _again = connect(&balancer);
        std::fs::remove_file(&file).unwrap();
        until("it runs", || {
            std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
        });
        let ending = Instant::now();
        drop(balancer);
        assert!(ending.elapsed() < Duration::from_secs(1));
        std::fs::remove_file(&file).unwrap();
    });
}

#[test]
fn each_request_is_asked_for_unless_a_cookie_binds_it() {
    use crate::support::http::{BackEnd, client_with, get};
    let backends = [BackEnd::named("zero"), BackEnd::named("one")];
    let addresses = backends.each_ref().map(|one| one.address);
    on_both(|io| {
        let file = place();
        std::fs::write(&file, "back1").unwrap();
        let (balancer, mut client) = client_with(io, &addresses, |service| {
            asks(service, &format!("cat {}", file.display()));
            service.backends[0].sticky_cookie = Some(StickyCookie {
                name: "at".to_owned(),
                value: "0".to_owned(),
                set: false,
            });
        });
        assert_eq!(client.ask(get("/a")).text(), "one/a");
        std::fs::write(&file, "0").unwrap();
        assert_eq!(client.ask(get("/b")).text(), "zero/b");
        std::fs::write(&file, "back1").unwrap();
        // Pipelined, with a body that comes while the program is asked.
        client.say(get("/c"));
        client.say("PUT /d HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
        client.say("dy");
        assert_eq!(client.answer().unwrap().text(), "one/c");
        assert_eq!(client.answer().unwrap().text(), "one/d");
        let bound = "GET /e HTTP/1.1\r\nHost: a\r\nCookie: at=0\r\n\r\n";
        assert_eq!(client.ask(bound).text(), "zero/e");
        std::fs::remove_file(&file).unwrap();
        let failed = balancer.shared().hook_failures.get();
        assert_eq!(client.ask(bound).text(), "zero/e", "nothing is asked");
        assert_eq!(balancer.shared().hook_failures.get(), failed);
        assert_eq!(client.ask(get("/f")).status(), 200);
        assert_eq!(balancer.shared().hook_failures.get(), failed + 1);
    });
}
