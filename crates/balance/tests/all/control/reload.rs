//! Replacing the configuration of a balancer that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use testing::Text as _;

use crate::support::control::{BackEnd, Client, LONG, start, until, who};
use crate::support::on_both;
use net::IoKind;

fn service(name: &str, back_ends: &[(&str, &BackEnd)], more: &str) -> String {
    let mut text = format!(
        "[services.{name}]\nlisten = \"127.0.0.1:0\"\n{more}\n[services.{name}.backends]\n"
    );
    for (name, back_end) in back_ends {
        text.push_str(&format!("{name} = \"{}\"\n", back_end.address));
    }
    text
}

#[test]
fn a_reload_under_load_loses_no_connection() {
    let (one, two) = (BackEnd::start("one"), BackEnd::start("two"));
    on_both(|io| {
        for threads in [1, 2] {
            let config = |back_ends: &[(&str, &BackEnd)], threads: u32| {
                format!("threads = {threads}\n{}", service("web", back_ends, ""))
            };
            let running = start(&config(&[("one", &one)], threads), io);
            let address = running.address();
            let mut before = Client::connect(address);
            assert_eq!(before.ask(), "one");
            let stop = Arc::new(AtomicBool::new(false));
            let (served, lost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let load: Vec<_> = (0..2)
                .map(|_| {
                    let (stop, served, lost) = (stop.clone(), served.clone(), lost.clone());
                    std::thread::spawn(move || {
                        while !stop.load(Ordering::Relaxed) {
                            match who(address) {
                                Some(_) => served.fetch_add(1, Ordering::Relaxed),
                                None => lost.fetch_add(1, Ordering::Relaxed),
                            };
                        }
                    })
                })
                .collect();
            let mut during = Vec::new();
            for round in 0..4 {
                let so_far = served.load(Ordering::Relaxed);
                until("the load goes on", || {
                    served.load(Ordering::Relaxed) > so_far + 20
                });
                let both = [("one", &one), ("two", &two)];
                // Back ends and threads come and go.
                let back_ends = if round % 2 == 0 {
                    &both[..]
                } else {
                    &both[..1]
                };
                running.rewrite(&config(back_ends, threads + round % 2));
                running.done("reload");
                during.push(Client::connect(address));
            }
            stop.store(true, Ordering::Relaxed);
            load.into_iter().for_each(|one| one.join().unwrap());
            assert_eq!(lost.load(Ordering::Relaxed), 0, "of {served:?}");
            assert_eq!(
                running.address(),
                address,
                "the socket is the same, though port 0 was asked"
            );
            assert_eq!(before.ask(), "one");
            for client in &mut during {
                client.ask();
            }
            let status = running.done("status");
            assert_eq!(status["reloads"], 4);
            let clients = status["services"][0]["clients"].as_u64().unwrap();
            assert_eq!(
                clients,
                served.load(Ordering::Relaxed) + 1 + 4,
                "counters go on"
            );
            drop((before, during));
            until("earlier configurations are gone", || {
                running.supervisor.reap_retired();
                running.done("status")["earlier_configurations"] == 0
            });
        }
    });
}

#[test]
fn a_file_with_mistakes_changes_nothing_and_is_shown() {
    let one = BackEnd::start("one");
    let running = start(&service("web", &[("one", &one)], ""), IoKind::Epoll);
    running.done("tell web one weight 7");
    running.rewrite("[services.web]\nlistn = \"127.0.0.1:0\"\n");
    let (error, status) = running.refused("reload");
    assert_eq!(status, 2);
    error.has("listn");
    error.has("did you mean `listen`?");
    assert!(error.contains("b.toml:2"), "the place: {error}");
    // What is only found when it starts changes nothing, either.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    running.rewrite(
        &format!(
            "{}[services.more]\nlisten = \"{port}\"\nbackends.b = \"{port}\"\n",
            service("web", &[("one", &one)], "")
        )
        .replace(
            &format!("backends.b = \"{port}\""),
            "backends.b = \"127.0.0.1:9\"",
        ),
    );
    let (error, status) = running.refused("reload");
    assert_eq!(status, 2);
    assert!(
        error.contains(&format!("cannot listen on {port}")),
        "{error}"
    );
    assert_eq!(running.backend(0, 0)["weight"], 7);
    assert_eq!(who(running.address()).as_deref(), Some("one"));
    let status = running.done("status");
    assert_eq!(
        (&status["reloads"], &status["reload_failures"]),
        (&0.into(), &2.into())
    );
    // Probes go on as well.
    running.done("tell web one state waking");
    until("it was probed", || running.state(0, 0) == "available");
}

#[test]
fn services_come_and_go_and_their_connections_end_in_time() {
    let (one, two) = (BackEnd::start("one"), BackEnd::start("two"));
    on_both(|io| {
        let gone = service("gone", &[("one", &one)], "drain = \"400ms\"");
        let stays = service(
            "stays",
            &[("one", &one), ("two", &two)],
            "drain = \"400ms\"",
        );
        let running = start(&format!("{gone}{stays}"), io);
        let addresses = running.supervisor.addresses();
        let (mut leaving, mut staying) = (
            Client::connect(addresses[0].1),
            Client::connect(addresses[1].1),
        );
        let mut moved = Client::connect(addresses[1].1);
        assert_eq!(
            (leaving.ask(), staying.ask(), moved.ask()),
            ("one".into(), "one".into(), "two".into())
        );
        let more = service("new", &[("two", &two)], "");
        let less = service("stays", &[("one", &one)], "drain = \"400ms\"");
        running.rewrite(&format!("{less}{more}"));
        running.done("reload");
        until("its socket is closed", || {
            std::net::TcpStream::connect_timeout(&addresses[0].1, LONG).is_err()
        });
        let new = running.supervisor.addresses()[1].1;
        assert_eq!(who(new).as_deref(), Some("two"));
        // Of the service, and of the back end, that are gone.
        leaving.closed();
        moved.closed();
        assert_eq!(staying.ask(), "one");
    });
}

#[test]
fn what_operators_have_told_stays_as_far_as_the_file_does_not_say() {
    let (one, two) = (BackEnd::start("one"), BackEnd::start("two"));
    let third = BackEnd::start("three");
    let text = service("web", &[("one", &one), ("two", &two)], "");
    let running = start(&text, IoKind::Epoll);
    running.done("tell web one state down");
    running.done("tell web two weight 5");
    running.done(&format!("tell web two server {}", third.address));
    assert_eq!(who(running.address()).as_deref(), Some("three"));
    running.done("reload");
    assert_eq!(
        running.state(0, 0),
        "down",
        "nothing but an operator brings it back"
    );
    let backend = running.backend(0, 1);
    assert_eq!(
        (&backend["weight"], &backend["total"]),
        (&1.into(), &1.into())
    );
    assert_eq!(who(running.address()).as_deref(), Some("two"));
}

#[test]
fn stopping_waits_for_clients_but_not_for_ever() {
    let one = BackEnd::start("one");
    on_both(|io| {
        let running = start(&service("web", &[("one", &one)], ""), io);
        let (mut goes, mut stays) = (
            Client::connect(running.address()),
            Client::connect(running.address()),
        );
        assert_eq!((goes.ask(), stays.ask()), ("one".into(), "one".into()));
        let (address, path) = (running.address(), running.socket.path().to_owned());
        let stopping =
            std::thread::spawn(move || balance::control::ask(&path, "stop 1000", LONG).unwrap());
        until("nobody is let in", || {
            std::net::TcpStream::connect(address).is_err()
        });
        assert_eq!(goes.ask(), "one");
        drop(goes);
        let answer = stopping.join().unwrap();
        assert_eq!(answer["cut_off"], 1, "{answer}");
        assert!(running.supervisor.is_stopped());
        assert_eq!(running.refused("reload").0, "the balancer is stopping");
        drop(running);
        stays.closed();
    });
}

#[test]
fn earlier_configurations_are_bounded() {
    let one = BackEnd::start("one");
    let running = start(&service("web", &[("one", &one)], ""), IoKind::Epoll);
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = Client::connect(running.address());
        client.ask();
        clients.push(client);
        running.done("reload");
    }
    let mut last = Client::connect(running.address());
    last.ask();
    let (error, status) = running.refused("reload");
    assert_eq!(status, 1);
    error.begins("16 earlier configurations still have clients");
    clients.clear();
    until("one has gone", || running.ask("reload")["ok"] == true);
    assert_eq!(last.ask(), "one");
}
