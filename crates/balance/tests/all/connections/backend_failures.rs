//! Back ends that are gone, limits, and queues, on both event loops.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{
    ask, clients_now, connect, dead, echo, echo_on, ends, is_reset, on_both, queued_now, read,
    serve, serve_on, service, start, until,
};
use balance::config::model::{Ejection, Queue};
use balance::engine::events::Event;
use balance::health::{HealthEvent, State};

/// A listening socket that accepts nothing any more, as that of a process that was stopped: its
/// queue is full.
fn stuck() -> (TcpListener, Vec<TcpStream>) {
    let listener = net::os::listen("127.0.0.1:0".parse().unwrap(), 0, false).unwrap();
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        filling.push(stream);
        assert!(filling.len() < 10, "the queue never fills");
    }
    (listener, filling)
}

#[test]
fn a_dead_back_end_is_told_of_and_revived() {
    on_both(|io| {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = gone.local_addr().unwrap();
        drop(gone);
        let mut service = service(&[address, echo("b")]);
        service.reviving_interval = Duration::from_millis(50);
        let balancer = start(io, service);
        let events = balancer.take_events().unwrap();
        for _ in 0..4 {
            assert_eq!(ask(&balancer, b"!"), "b!");
        }
        let state = balancer.shared();
        let first = &state.services[0].backends[0];
        assert_eq!(first.connect_failures.get(), 1, "only the first meets it");
        assert!(matches!(first.state(), State::Unavailable | State::Waking));
        let changed = |usable, cause, errno| Event::BackendChanged {
            service: 0,
            backend: 0,
            usable,
            cause,
            errno,
        };
        assert_eq!(
            events.recv_timeout(crate::support::LONG).unwrap(),
            changed(false, HealthEvent::ConnectFailed, Some(111))
        );
        serve_on(TcpListener::bind(address).unwrap(), |stream| {
            echo_on(stream, "a");
        });
        assert_eq!(
            events.recv_timeout(crate::support::LONG).unwrap(),
            changed(true, HealthEvent::ProbeOk, None)
        );
        let mut got = [ask(&balancer, b""), ask(&balancer, b"")];
        got.sort();
        assert_eq!(got, ["a", "b"]);
    });
}

#[test]
fn a_stopped_back_end_is_passed_over_once_its_queue_is_full() {
    on_both(|io| {
        let (listener, _filling) = stuck();
        let stopped = listener.local_addr().unwrap();
        let mut service = service(&[stopped, echo("b")]);
        service.timeouts.connect = Duration::from_millis(1500);
        let balancer = start(io, service);
        let mut first = connect(&balancer);
        first.write_all(b"1").unwrap();
        assert_eq!(ask(&balancer, b"2"), "b2");
        std::thread::sleep(Duration::from_millis(500));
        let mut third = connect(&balancer);
        third.write_all(b"3").unwrap();
        assert_eq!(read(&mut first, 2), "b1", "what it had sent is kept");
        assert_eq!(read(&mut third, 2), "b3");
        let state = balancer.shared();
        let stopped = &state.services[0].backends[0];
        assert_eq!(
            stopped.connect_failures.get(),
            1,
            "who waited with the first is sent on when that one has failed"
        );
        assert_eq!(state.services[0].timeouts.get(), 1);
    });
}

#[test]
fn it_is_asked_again_as_often_as_told() {
    on_both(|io| {
        let mut service = service(&[dead(), echo("b")]);
        service.backends[0].retries = 2;
        let balancer = start(io, service);
        assert_eq!(ask(&balancer, b""), "b");
        let state = balancer.shared();
        assert_eq!(state.services[0].backends[0].connect_failures.get(), 3);
    });
}

#[test]
fn a_back_end_that_breaks_connections_is_ejected() {
    on_both(|io| {
        // What it has not read makes closing a reset.
        let breaking = serve(|stream| drop(stream.peek(&mut [0])));
        let mut service = service(&[breaking, echo("b")]);
        service.ejection = Some(Ejection {
            failures: 2,
            duration: Duration::from_secs(60),
        });
        let balancer = start(io, service);
        let state = balancer.shared();
        let mut broken = 0;
        until("it is ejected", || {
            let mut stream = connect(&balancer);
            stream.write_all(b"xy").unwrap();
            let mut byte = [0];
            broken += u32::from(!matches!(stream.read(&mut byte), Ok(1)));
            !state.services[0].backends[0].usable()
        });
        assert_eq!(broken, 2);
        for _ in 0..4 {
            assert_eq!(ask(&balancer, b""), "b");
        }
    });
}

#[test]
fn clients_queue_for_a_back_end_at_its_limit() {
    on_both(|io| {
        let mut service = service(&[echo("a")]);
        service.backends[0].connections_max = Some(1);
        service.queue = Queue {
            length: 1,
            time_limit: Duration::from_secs(30),
        };
        let balancer = start(io, service);
        let state = balancer.shared();
        let mut first = connect(&balancer);
        assert_eq!(read(&mut first, 1), "a");
        let mut second = connect(&balancer);
        second.write_all(b"held").unwrap();
        let queued = || queued_now(&balancer);
        until("the second waits", || queued() == 1);
        assert!(ends(&mut connect(&balancer)), "no room for a third");
        assert_eq!(state.services[0].overflowed.get(), 1);
        drop(first);
        assert_eq!(read(&mut second, 5), "aheld");
        assert_eq!(queued(), 0);
        // One that waits and goes leaves nothing behind.
        let third = connect(&balancer);
        until("the third waits", || queued() == 1);
        third.shutdown(std::net::Shutdown::Both).unwrap();
        drop((second, third));
        until("all have gone", || {
            clients_now(&balancer) == 0 && queued() == 0
        });
    });
}

#[test]
fn a_service_takes_so_many_clients_and_no_more() {
    on_both(|io| {
        let mut service = service(&[echo("a")]);
        service.connections_max = Some(2);
        let balancer = start(io, service);
        let mut held = [connect(&balancer), connect(&balancer)];
        held.iter_mut().for_each(|one| drop(read(one, 1)));
        assert!(ends(&mut connect(&balancer)));
        drop(held);
        until("places are given back", || clients_now(&balancer) == 0);
        assert_eq!(ask(&balancer, b""), "a");
    });
}

#[test]
fn silence_ends_a_connection() {
    on_both(|io| {
        let mut service = service(&[echo("a")]);
        service.backends[0].session_timeout = Duration::from_millis(400);
        let balancer = start(io, service);
        let mut stream = connect(&balancer);
        assert_eq!(read(&mut stream, 1), "a");
        let begun = Instant::now();
        // Traffic keeps it open for longer than the limit.
        while begun.elapsed() < Duration::from_millis(900) {
            stream.write_all(b"x").unwrap();
            assert_eq!(read(&mut stream, 1), "x");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(ends(&mut stream));
        assert_eq!(balancer.shared().services[0].timeouts.get(), 1);
    });
}

#[test]
fn who_takes_nothing_is_cut_off() {
    on_both(|io| {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = ended.clone();
        let endless = serve(move |mut stream| {
            let piece = [0; 65536];
            while stream.write_all(&piece).is_ok() {}
            seen.store(true, Ordering::Relaxed);
        });
        let mut service = service(&[endless]);
        service.timeouts.write_stall = Duration::from_millis(300);
        let balancer = start(io, service);
        let mut stream = connect(&balancer);
        until("the back end is told", || ended.load(Ordering::Relaxed));
        // What is in the client's socket already may still be read.
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest);
        assert!(end.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
        assert_eq!(balancer.shared().services[0].timeouts.get(), 1);
    });
}

#[test]
fn resets_are_passed_on() {
    on_both(|io| {
        let breaking = serve(|stream| drop(stream.peek(&mut [0])));
        let balancer = start(io, service(&[breaking]));
        let mut stream = connect(&balancer);
        stream.write_all(b"unread").unwrap();
        assert!(is_reset(&mut stream), "from the back end");

        let seen = Arc::new(AtomicBool::new(false));
        let note = seen.clone();
        let greeting = serve(move |mut stream| {
            stream.write_all(b"unread").unwrap();
            note.store(is_reset(&mut stream), Ordering::Relaxed);
        });
        let balancer = start(io, service(&[greeting]));
        let stream = connect(&balancer);
        stream.peek(&mut [0]).unwrap();
        drop(stream);
        until("from the client", || seen.load(Ordering::Relaxed));
    });
}

#[test]
fn a_back_end_can_end_its_side_and_still_listen() {
    on_both(|io| {
        let (sender, said) = std::sync::mpsc::channel();
        let half = serve(move |mut stream| {
            stream.write_all(b"bye").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut got = String::new();
            stream.read_to_string(&mut got).unwrap();
            sender.send(got).unwrap();
        });
        let balancer = start(io, service(&[half]));
        let mut stream = connect(&balancer);
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        assert_eq!(got, "bye");
        stream.write_all(b"late ").unwrap();
        stream.write_all(b"words").unwrap();
        drop(stream);
        assert_eq!(
            said.recv_timeout(crate::support::LONG).unwrap(),
            "late words"
        );
    });
}
