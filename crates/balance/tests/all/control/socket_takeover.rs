//! A balancer that follows another one, and one that ends.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::on_both;
use crate::support::until;
use crate::support::{LONG, ask, config, connect, echo, ends, read, service, start};
use balance::{Balancer, BalancerError, Config};

fn threads(count: usize, backend: &'static str) -> Config {
    let mut config = config(service(&[echo(backend)]));
    config.threads = count;
    config
}

#[test]
fn no_client_is_lost_when_a_balancer_follows_another() {
    on_both(|io| {
        let mut balancer = Balancer::start(&threads(2, "0"), io).unwrap();
        let address = balancer.address();
        let mut stays = connect(&balancer);
        assert_eq!(read(&mut stays, 1), "0");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut served = 0;
                        while !done.load(Ordering::Relaxed) {
                            let mut stream = TcpStream::connect(address).unwrap();
                            stream.set_read_timeout(Some(LONG)).unwrap();
                            stream.write_all(b"x").unwrap();
                            let got = read(&mut stream, 2);
                            assert!(got.ends_with('x'));
                            served += 1;
                        }
                        served
                    })
                })
                .collect();
            // More threads, fewer, and as many.
            for (number, count) in [(1, 3), (2, 1), (3, 1)] {
                let names = ["0", "1", "2", "3"];
                let next = balancer
                    .start_next(&threads(count, names[number]), io)
                    .unwrap();
                assert_eq!(next.address(), address);
                let old = std::mem::replace(&mut balancer, next);
                if number == 1 {
                    assert!(!old.drain(Duration::from_millis(50)), "one stays");
                    stays.write_all(b"y").unwrap();
                    assert_eq!(read(&mut stays, 1), "y");
                    stays.shutdown(std::net::Shutdown::Both).unwrap();
                }
                assert!(old.drain(LONG));
                drop(old);
                assert_eq!(ask(&balancer, b""), names[number]);
            }
            done.store(true, Ordering::Relaxed);
            for client in clients {
                assert!(client.join().unwrap() > 0);
            }
        });
    });
}

#[test]
fn one_that_drains_refuses_the_new_and_serves_the_old() {
    on_both(|io| {
        let balancer = start(io, service(&[echo("a")]));
        let mut stream = connect(&balancer);
        assert_eq!(read(&mut stream, 1), "a");
        assert!(!balancer.drain(Duration::from_millis(10)));
        until("it does not listen any more", || {
            TcpStream::connect(balancer.address()).is_err()
        });
        stream.write_all(b"x").unwrap();
        assert_eq!(read(&mut stream, 1), "x");
        drop(stream);
        assert!(balancer.drain(LONG));
    });
}

#[test]
fn dropping_it_ends_everything() {
    on_both(|io| {
        let balancer = start(io, service(&[echo("a")]));
        let address: SocketAddr = balancer.address();
        let mut stream = connect(&balancer);
        assert_eq!(read(&mut stream, 1), "a");
        drop(balancer);
        assert!(ends(&mut stream));
        assert!(TcpStream::connect(address).is_err());
    });
}

#[test]
fn an_address_in_use_is_an_error_also_for_several_threads() {
    on_both(|io| {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = threads(2, "a");
        config.services[0].listen[0] = other.local_addr().unwrap();
        let error = Balancer::start(&config, io).err().unwrap();
        assert!(matches!(error, BalancerError::Listen { .. }), "{error}");
        // The same while another balancer listens there, which shares its port with its threads.
        let balancer = Balancer::start(&threads(2, "a"), io).unwrap();
        config.services[0].listen[0] = balancer.address();
        let error = Balancer::start(&config, io).err().unwrap();
        assert!(matches!(error, BalancerError::Listen { .. }), "{error}");
    });
}
