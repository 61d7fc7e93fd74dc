//! What operators tell a balancer that runs, and what it says of itself.

use crate::support::control::{BackEnd, Client, start, until, who};
use crate::support::on_both;
use net::IoKind;
use testing::Text as _;

fn two(one: &BackEnd, two: &BackEnd, more: &str) -> String {
    format!(
        "[services.web]\nlisten = \"127.0.0.1:0\"\nreviving_interval = \"0s\"\n{more}\n\
         [services.web.backends]\none = \"{}\"\ntwo = \"{}\"\n",
        one.address, two.address
    )
}

#[test]
fn each_state_can_be_told() {
    let (one, other) = (BackEnd::start("one"), BackEnd::start("two"));
    on_both(|io| {
        let running = start(&two(&one, &other, ""), io);
        let address = running.address();
        for state in ["down", "unavailable"] {
            running.done(&format!("tell web one state {state}"));
            assert_eq!(running.state(0, 0), state);
            for _ in 0..4 {
                assert_eq!(who(address).as_deref(), Some("two"));
            }
            running.done("tell web one state up");
            assert_eq!(running.state(0, 0), "available");
            let answers = [who(address).unwrap(), who(address).unwrap()];
            assert!(answers.contains(&"one".to_owned()), "{answers:?}");
        }
        // Waking: probed at once, and available when that went well, also from down.
        running.done("tell web one state down");
        running.done("tell web one state waking");
        until("it was woken", || running.state(0, 0) == "available");
        running.done("tell web two state available");
        // Nobody is left: clients are closed, and counted.
        running.done("tell web one state down");
        running.done("tell web two state down");
        Client::connect(address).closed();
        until("it was counted", || {
            running.done("status")["services"][0]["refused"] == 1
        });
    });
}

#[test]
fn a_back_end_can_be_moved_and_weighed() {
    let (one, other) = (BackEnd::start("one"), BackEnd::start("two"));
    let third = BackEnd::start("three");
    on_both(|io| {
        let running = start(
            &two(&one, &other, "dispatch = \"weighted-round-robin\""),
            io,
        );
        let address = running.address();
        let mut before = Client::connect(address);
        let at = before.ask();
        running.done("tell web two weight 3");
        assert_eq!(running.backend(0, 1)["weight"], 3);
        let answers: Vec<String> = (0..8).map(|_| who(address).unwrap()).collect();
        assert_eq!(answers.iter().filter(|who| *who == "two").count(), 6);
        running.done(&format!("tell web one server {}", third.address));
        running.done(&format!("tell web two server {}", third.address));
        assert_eq!(running.backend(0, 0)["address"], third.address.to_string());
        assert_eq!(who(address).as_deref(), Some("three"));
        assert_eq!(before.ask(), at, "who is connected stays where it is");
    });
}

#[test]
fn a_back_end_is_drained_and_cut_off_in_time() {
    let (one, other) = (BackEnd::start("one"), BackEnd::start("two"));
    on_both(|io| {
        let text = two(&one, &other, "dispatch = \"by-order\"\ndrain = \"400ms\"");
        let running = start(&text, io);
        let mut client = Client::connect(running.address());
        assert_eq!(client.ask(), "one");
        running.done("tell web one drain");
        assert_eq!(client.ask(), "one", "it may stay for a while");
        assert_eq!(who(running.address()).as_deref(), Some("two"));
        let status = running.backend(0, 0);
        assert_eq!(
            (&status["state"], &status["draining"]),
            (&"down".into(), &true.into())
        );
        client.closed();
        until("it was counted", || running.backend(0, 0)["active"] == 0);
        running.done("tell web one state up");
        assert_eq!(running.backend(0, 0)["draining"], false);
        let mut client = Client::connect(running.address());
        assert_eq!(client.ask(), "one");
        std::thread::sleep(std::time::Duration::from_millis(600));
        assert_eq!(client.ask(), "one", "it is not cut off any more");
    });
}

#[test]
fn mistakes_are_told_with_the_nearest_right_word() {
    let (one, other) = (BackEnd::start("one"), BackEnd::start("two"));
    let running = start(&two(&one, &other, ""), IoKind::Epoll);
    let table = include_str!("tell/mistakes.txt");
    for row in table.lines() {
        let (request, said) = row.split_once(" | ").unwrap();
        assert_eq!(running.refused(request), (said.to_owned(), 2), "{request}");
    }
    let (error, _) = running.refused("tell web one server 127.0.0.1:0");
    assert!(error.contains("a port is from 1 to 65535"), "{error}");
    let (error, _) = running.refused("tell web one server nowhere.invalid:80");
    error.begins("cannot look up `nowhere.invalid:80`");
    let long = "x".repeat(5000);
    assert!(
        running
            .refused(&long)
            .0
            .contains("it is longer than 4096 bytes")
    );
}

#[test]
fn the_status_counts_what_was_relayed() {
    let (one, other) = (BackEnd::start("one"), BackEnd::start("two"));
    on_both(|io| {
        let running = start(&two(&one, &other, ""), io);
        let mut clients: Vec<Client> = (0..6).map(|_| Client::connect(running.address())).collect();
        for client in &mut clients {
            client.ask();
        }
        let status = running.done("status");
        assert_eq!(status["pid"], std::process::id());
        assert_eq!(status["file"], running.file.display().to_string());
        assert_eq!(
            (&status["threads"], &status["reloads"]),
            (&1.into(), &0.into())
        );
        let service = &status["services"][0];
        assert_eq!(service["listen"][0], running.address().to_string());
        assert_eq!(
            (&service["active"], &service["clients"]),
            (&6.into(), &6.into())
        );
        for backend in service["backends"].as_array().unwrap() {
            assert_eq!(
                (&backend["active"], &backend["total"]),
                (&3.into(), &3.into())
            );
            let p50 = backend["connect_us"]["p50"].as_f64().unwrap();
            assert!(p50 <= backend["connect_us"]["p99"].as_f64().unwrap());
            assert!(backend["session_us"]["p50"].is_null(), "none has ended");
        }
        drop(clients);
        until("all is counted", || {
            let one = running.backend(0, 0);
            (one["active"] == 0)
                && (one["bytes_to"] == 6)
                && (one["bytes_from"] == 12)
                && one["session_us"]["p99"].as_f64().is_some()
        });
    });
}
