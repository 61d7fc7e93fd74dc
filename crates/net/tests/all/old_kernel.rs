//! epoll where the kernel or a seccomp filter refuses `epoll_pwait2`. Each test runs in a process
//! of its own, since a filter cannot be removed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use net::{Epoll, Event, Io, IoOptions, os};

use crate::no_descriptors::alone;

#[test]
fn epoll_waits_without_epoll_pwait2() {
    let path = "old_kernel::epoll_waits_without_epoll_pwait2";
    let errnos = [libc::ENOSYS, libc::EPERM].map(|errno| errno.to_string());
    alone(path, &errnos.each_ref().map(String::as_str), |errno| {
        refuse(libc::SYS_epoll_pwait2, errno.parse().unwrap());
        waits_as_long_as_told();
        serves();
    });
}

/// Makes a system call fail in this thread from now on.
#[allow(unsafe_code)]
fn refuse(call: i64, errno: i32) {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut steps = [
        // The number of the call is the first field.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            call as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | errno as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: takes numbers, touches no memory.
    let alone = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(alone, 0);
    // SAFETY: the program and its steps are valid during the call.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

fn waits_as_long_as_told() {
    let mut io = Epoll::open(IoOptions::default()).unwrap();
    os::sharpen_timers();
    for us in [0, 300, 3_000, 3_400] {
        let limit = Duration::from_micros(us);
        // The machine may delay some of them.
        let shortest = (0..20).map(|_| {
            let begun = Instant::now();
            io.poll(Some(limit.as_nanos() as u64)).unwrap();
            begun.elapsed()
        });
        let shortest = shortest.min().unwrap();
        assert!(shortest >= limit, "{shortest:?} instead of {limit:?}");
        let late = shortest - limit;
        assert!(
            late < Duration::from_micros(400),
            "{late:?} after {limit:?}"
        );
    }
}

fn serves() {
    let mut io = Epoll::open(IoOptions {
        accepted: 4,
        ..IoOptions::default()
    })
    .unwrap();
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 16, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    let client = std::thread::spawn(move || {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"hello").unwrap();
        let mut answer = [0; 5];
        client.read_exact(&mut answer).unwrap();
        answer
    });
    while !client.is_finished() {
        io.poll(Some(5_500_000)).unwrap();
        while let Some(event) = io.next_event() {
            if let Event::Data { conn, buf } = event {
                io.forward(conn, buf);
            }
        }
    }
    assert_eq!(&client.join().unwrap(), b"hello");
}
