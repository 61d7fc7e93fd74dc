//! A process that may have few files open, as many ordinary users' may: a loop takes as many
//! connections as that allows. In a process of its own, since the limit is the process's.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use net::{Event, Io, IoOptions, Uring};

const FEW: u64 = 64;

#[test]
#[allow(unsafe_code)]
fn a_loop_takes_fewer_connections_where_few_files_may_be_open() {
    const ALONE: &str = "WEIGH_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let test = "few_files::a_loop_takes_fewer_connections_where_few_files_may_be_open";
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        let status = own.args(["--exact", test]).env(ALONE, "1").status();
        return assert!(status.unwrap().success());
    }
    let limit = libc::rlimit {
        rlim_cur: FEW,
        rlim_max: FEW,
    };
    // SAFETY: `limit` is valid.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    assert_eq!(net::os::open_files(), FEW);
    let options = IoOptions {
        outgoing: 4,
        accepted: 65_536,
        ..IoOptions::default()
    };
    let mut io = match Uring::open(options) {
        Ok(io) => io,
        // Where the kernel has no io_uring there is no table either.
        Err(e) => return assert_ne!(e.raw_os_error(), Some(libc::EMFILE), "{e}"),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"hello").unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    let mut received = false;
    while !received && Instant::now() < end {
        io.poll(Some(10_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            if let Event::Data { buf, .. } = event {
                received = io.bytes(&buf) == b"hello";
                io.recycle(buf);
            }
        }
    }
    assert!(received);
}
