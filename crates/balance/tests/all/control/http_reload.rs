//! Replacing the configuration of an HTTP service at work, and what its traffic logs hold.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::control::{start, until};
use crate::support::http::{BackEnd, Peer, get, ok};
use crate::support::on_both;

fn service(back_ends: &[(&str, SocketAddr)], more: &str) -> String {
    let mut text = format!(
        "threads = 2\n[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"http\"\n{more}\n\
         [services.web.backends]\n"
    );
    for (name, address) in back_ends {
        text.push_str(&format!("{name} = \"{address}\"\n"));
    }
    text
}

/// Whether one more request is answered well. A connection that is used again may be closed just
/// as the request is sent, as by any server: then a new one has to do.
fn served(address: SocketAddr, kept: &mut Option<Peer>) -> bool {
    let mut reused = kept.is_some();
    loop {
        let mut peer = kept.take().unwrap_or_else(|| Peer::connect(address));
        peer.say(get("/x"));
        let Some(answer) = peer.answer() else {
            if std::mem::take(&mut reused) {
                continue;
            }
            return false;
        };
        if answer.values("connection") != ["close"] {
            *kept = Some(peer);
        }
        return answer.status() == 200 && answer.text().ends_with("/x");
    }
}

#[test]
fn a_reload_under_load_loses_no_request() {
    let (one, two) = (BackEnd::named("one"), BackEnd::named("two"));
    on_both(|io| {
        let both = [("one", one.address), ("two", two.address)];
        let more = "drain = \"200ms\"";
        let running = start(&service(&both, more), io);
        let address = running.address();
        let stop = Arc::new(AtomicBool::new(false));
        let (good, lost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let load: Vec<_> = [true, true, false]
            .into_iter()
            .map(|keeps| {
                let (stop, good, lost) = (stop.clone(), good.clone(), lost.clone());
                std::thread::spawn(move || {
                    let mut kept = None;
                    while !stop.load(Ordering::Relaxed) {
                        let count = if served(address, &mut kept) {
                            &good
                        } else {
                            &lost
                        };
                        count.fetch_add(1, Ordering::Relaxed);
                        kept = kept.filter(|_| keeps);
                    }
                })
            })
            .collect();
        for round in 0..6 {
            let so_far = good.load(Ordering::Relaxed);
            until("the load goes on", || {
                good.load(Ordering::Relaxed) > so_far + 50 || lost.load(Ordering::Relaxed) > 0
            });
            let some = if round % 2 == 0 {
                &both[..1]
            } else {
                &both[..]
            };
            running.rewrite(&service(some, more));
            running.done("reload");
        }
        stop.store(true, Ordering::Relaxed);
        load.into_iter().for_each(|one| one.join().unwrap());
        assert_eq!(lost.load(Ordering::Relaxed), 0, "of {good:?}, {io:?}");
        until("earlier configurations are gone", || {
            running.supervisor.reap_retired();
            running.done("status")["earlier_configurations"] == 0
        });
    });
}

#[test]
fn requests_at_a_back_end_that_was_removed_end_in_time() {
    on_both(|io| {
        let ended = Arc::new(AtomicUsize::new(0));
        let count = ended.clone();
        let gone = BackEnd::new(move |peer, _, all| {
            while let Some(request) = peer.request() {
                let path = request.head.split(' ').nth(1).unwrap().to_owned();
                all.note(request);
                match path.as_str() {
                    "/never" => continue,
                    "/late" => std::thread::sleep(Duration::from_millis(300)),
                    _ => {}
                }
                peer.say(ok("gone"));
            }
            count.fetch_add(1, Ordering::SeqCst);
        });
        let stays = BackEnd::named("stays");
        let more = "dispatch = \"by-order\"\ndrain = \"1s\"";
        let both = [("gone", gone.address), ("stays", stays.address)];
        let running = start(&service(&both, more), io);
        let mut clients: Vec<Peer> = (0..4).map(|_| Peer::connect(running.address())).collect();
        clients[1].say(get("/late"));
        clients[2].say(get("/never"));
        clients[3].say("POST /never HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        until("they are there", || gone.requests().len() == 3);
        // Leaves a connection in the pool.
        assert_eq!(clients[0].ask(get("/")).text(), "gone");
        assert_eq!(gone.connections(), 4);
        running.rewrite(&service(&both[1..], more));
        running.done("reload");
        let reloaded = Instant::now();
        assert_eq!(clients[1].answer().unwrap().text(), "gone");
        // The idle one and the one that was just answered, of four.
        until("idle connections end", || ended.load(Ordering::SeqCst) >= 2);
        assert!(reloaded.elapsed() < Duration::from_millis(900), "at once");
        assert_eq!(ended.load(Ordering::SeqCst), 2, "those under way go on");
        // What may be repeated is answered by another one, when the time is over.
        assert_eq!(clients[2].answer().unwrap().text(), "stays/never");
        assert!(
            reloaded.elapsed() > Duration::from_millis(900),
            "not before"
        );
        assert_eq!(clients[3].answer().unwrap().status(), 502);
        until("all have ended", || ended.load(Ordering::SeqCst) == 4);
        assert_eq!(
            Peer::connect(running.address()).ask(get("/")).text(),
            "stays/"
        );
    });
}

#[test]
fn a_traffic_log_holds_what_the_back_end_gets_and_sends() {
    let back = BackEnd::named("a");
    on_both(|io| {
        let address = back.address;
        let running = start(
            &format!(
                "[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"http\"\n\
                 [services.web.backends]\n\
                 one = {{ address = \"{address}\", traffic_log = \"FOLDER/traffic\", headers = [\
                 {{ towards = \"server\", how = \"set\", name = \"X-From\", value = \"%r\" }}] }}\n"
            ),
            io,
        );
        let mut client = Peer::connect(running.address());
        let local = client.stream.local_addr().unwrap();
        assert_eq!(client.ask(get("/first")).text(), "a/first");
        // On the connection that was kept, and a body that comes later.
        client.say("PUT /second HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
        until("the head is there", || {
            running.folder.read("traffic").contains("PUT /second")
        });
        client.say("later");
        assert_eq!(client.answer().unwrap().text(), "a/second");
        let expected = [
            "> one \"GET /first HTTP/1.1\\x0D\\x0AHost: test\\x0D\\x0AX-From: 127.0.0.1\\x0D\\x0A\\x0D\\x0A\"",
            "< one \"HTTP/1.1 200 OK\\x0D\\x0AContent-Length: 7\\x0D\\x0A\\x0D\\x0Aa/first\"",
            "> one \"PUT /second HTTP/1.1\\x0D\\x0AHost: a\\x0D\\x0AContent-Length: 5\\x0D\\x0AX-From: 127.0.0.1\\x0D\\x0A\\x0D\\x0A\"",
            "> one \"later\"",
            "< one \"HTTP/1.1 200 OK\\x0D\\x0AContent-Length: 8\\x0D\\x0A\\x0D\\x0Aa/second\"",
        ];
        until("everything is written", || {
            running.folder.read("traffic").lines().count() >= expected.len()
        });
        let text = running.folder.read("traffic");
        for (line, expected) in text.lines().zip(expected) {
            let (time, rest) = line.split_once(' ').unwrap();
            assert!(time.parse::<f64>().is_ok(), "{line}");
            assert_eq!(rest, format!("{local} {expected}"));
        }
    });
}
