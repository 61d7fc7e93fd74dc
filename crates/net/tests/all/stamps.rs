//! Times of arrival are the kernel's, not those of the thread that reads late.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use net::{Epoll, Event, Io, IoOptions, Uring, os};

fn open<I: Io>(stamps: bool) -> I {
    I::open(IoOptions {
        outgoing: 4,
        accepted: 4,
        buffers: 8,
        buffers_max: 8,
        buffer_size: 4096,
        files: false,
        stamps,
    })
    .unwrap()
}

/// The bytes that come until the peer ends its side, and the times of arrival.
fn taken<I: Io>(io: &mut I) -> (Vec<u8>, Vec<Option<u64>>) {
    let (mut bytes, mut times) = (Vec::new(), Vec::new());
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        io.poll(Some(5_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            match event {
                Event::Data { buf, .. } => {
                    bytes.extend_from_slice(io.bytes(&buf));
                    times.push(buf.arrived_ns());
                    io.recycle(buf);
                }
                Event::Eof { conn } => {
                    io.close(conn);
                    return (bytes, times);
                }
                Event::Failed { errno, .. } => panic!("{errno}"),
                _ => {}
            }
        }
    }
    panic!("the end never came");
}

/// Sends a byte at a time until one comes with a time: the kernel begins to stamp some time after the
/// first socket has asked for it.
fn send_until_stamped<I: Io>(io: &mut I, client: &mut TcpStream) {
    let until = Instant::now() + Duration::from_secs(10);
    let mut is_open = false;
    while Instant::now() < until {
        if is_open {
            client.write_all(b"x").unwrap();
        }
        io.poll(Some(5_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            match event {
                Event::Accepted { .. } => is_open = true,
                Event::Data { buf, .. } => {
                    let is_stamped = buf.arrived_ns().is_some();
                    io.recycle(buf);
                    if is_stamped {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
    panic!("no byte had a time");
}

fn accepted_bytes_have_the_time_when_they_came<I: Io>() {
    let mut io = open::<I>(true);
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 8, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    send_until_stamped(&mut io, &mut client);
    let sent: Vec<u8> = (0..100_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    let before = os::now_ns();
    client.write_all(&sent[..1000]).unwrap();
    let rest = sent[1000..].to_vec();
    let writing = std::thread::spawn(move || {
        client.write_all(&rest).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        client
    });
    let (bytes, times) = taken(&mut io);
    writing.join().unwrap();
    assert!(bytes == sent);
    let times: Vec<u64> = times.into_iter().flatten().collect();
    assert!(times.len() > 1, "{times:?}");
    // How far the two clocks are apart is read anew for each turn, and never quite the same.
    let sorted = times.is_sorted_by(|one, next| *one <= next + 1_000_000);
    assert!(sorted, "{times:?}");
    assert!(times[0] + 1_000_000 >= before, "{} {before}", times[0]);
    assert!(*times.last().unwrap() <= os::now_ns() + 1_000_000);
}

fn an_answer_has_the_time_when_it_came<I: Io>() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut io = open::<I>(true);
    let target = io.add_target(&address.into(), &[]);
    let request = io.add_payload((*b"ask").into());
    io.connect(target, Some(request)).unwrap();
    io.poll(Some(1_000_000)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    // The request goes out as soon as the loop has seen that the connection is open.
    server
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    let mut asked = [0; 3];
    while server.read(&mut asked).is_err() {
        io.poll(Some(1_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            assert!(!matches!(event, Event::Data { .. }));
        }
    }
    assert_eq!(&asked, b"ask");
    let before = os::now_ns();
    server.write_all(b"answer").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(60));
    let late = os::now_ns();
    let (bytes, times) = taken(&mut io);
    assert_eq!(bytes, b"answer");
    let came = times[0].unwrap();
    assert!(
        came + 1_000_000 >= before && came < late,
        "{before} {came} {late}"
    );
}

fn none_is_told_that_was_not_asked_for<I: Io>() {
    let mut io = open::<I>(false);
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 8, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"x").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(taken(&mut io), (b"x".to_vec(), vec![None]));
}

#[test]
fn on_io_uring() {
    accepted_bytes_have_the_time_when_they_came::<Uring>();
    an_answer_has_the_time_when_it_came::<Uring>();
    none_is_told_that_was_not_asked_for::<Uring>();
}

#[test]
fn on_epoll() {
    accepted_bytes_have_the_time_when_they_came::<Epoll>();
    an_answer_has_the_time_when_it_came::<Epoll>();
    none_is_told_that_was_not_asked_for::<Epoll>();
}
