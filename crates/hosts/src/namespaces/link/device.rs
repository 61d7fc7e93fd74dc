//! The thread that forwards packets between TUN devices.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::Duration;

use net::tun::Waiter;

use super::router::{Addresses, Router};
use readings::{LinkCounters, LinkSpec, PACKET_BYTES_MAX};

/// Packets read from one device before the others have their turn.
const PACKETS_AT_ONCE: usize = 64;

enum Request {
    Counters(Sender<Vec<LinkCounters>>),
    /// New rates of links, by host number; answered when they are set.
    Rates(Vec<(usize, u64)>, Sender<()>),
    /// New parameters of the link of a host; answered when they are set.
    Change(usize, LinkSpec, Sender<()>),
}

/// Links in user space; dropping it ends them.
pub(crate) struct Link {
    requests: Sender<Request>,
    wake: io::PipeWriter,
}

impl Link {
    /// Starts forwarding packets between the hosts' devices.
    pub(crate) fn start(
        devices: Vec<File>,
        hosts: &[(Addresses, LinkSpec)],
        seed: u64,
        cpus: &[u32],
    ) -> io::Result<Self> {
        let (wake_reader, wake) = io::pipe()?;
        let (sender, requests) = mpsc::channel();
        let mut descriptors: Vec<_> = devices.iter().map(File::as_raw_fd).collect();
        descriptors.push(wake_reader.as_raw_fd());
        let mut thread = Thread {
            waiter: Waiter::new(&descriptors),
            router: Router::new(hosts, seed),
            devices,
            wake: wake_reader,
            requests,
        };
        let cpus = cpus.to_vec();
        net::os::start_thread("of the links", move || {
            if !cpus.is_empty() {
                // If this fails, the link may be late, which is counted.
                let _ = net::os::bind_to_cpus(&cpus);
            }
            net::os::sharpen_timers();
            // Only root may raise its priority.
            let _ = net::os::run_first();
            // When it ends, the devices vanish and no packet passes.
            let _ = thread.work();
        })?;
        Ok(Self {
            requests: sender,
            wake,
        })
    }

    /// The counters, by host.
    pub(crate) fn counters(&mut self) -> io::Result<Vec<LinkCounters>> {
        let (sender, receiver) = mpsc::channel();
        self.ask(Request::Counters(sender), &receiver)
    }

    /// Changes the rates of links that have one, by host number.
    pub(crate) fn set_rates(&mut self, rates: Vec<(usize, u64)>) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        self.ask(Request::Rates(rates, sender), &receiver)
    }

    pub(crate) fn change(&mut self, host: usize, spec: LinkSpec) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        self.ask(Request::Change(host, spec, sender), &receiver)
    }

    fn ask<T>(&mut self, request: Request, receiver: &Receiver<T>) -> io::Result<T> {
        let gone = || io::Error::other("the links have ended");
        self.requests.send(request).map_err(|_| gone())?;
        self.wake.write_all(b"x")?;
        receiver.recv().map_err(|_| gone())
    }
}

struct Thread {
    waiter: Waiter,
    router: Router,
    devices: Vec<File>,
    wake: io::PipeReader,
    requests: Receiver<Request>,
}

impl Thread {
    fn work(&mut self) -> io::Result<()> {
        let mut readable = Vec::with_capacity(self.devices.len() + 1);
        let mut buffer = vec![0; PACKET_BYTES_MAX + 64];
        loop {
            let limit = self
                .router
                .next_ns()
                .map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(net::os::now_ns())));
            readable.clear();
            self.waiter.wait(limit, |number| readable.push(number))?;
            for &number in &readable {
                if number < self.devices.len() {
                    self.read(number, &mut buffer)?;
                } else if !self.answer()? {
                    return Ok(());
                }
            }
            let devices = &mut self.devices;
            self.router.deliver(net::os::now_ns(), |to, packet| {
                // A packet that the kernel refuses, for lack of memory or because the device is
                // down, is lost, as on any network.
                let _ = devices[to].write(packet);
            });
        }
    }

    fn read(&mut self, number: usize, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..PACKETS_AT_ONCE {
            match self.devices[number].read(buffer) {
                Ok(0) => break,
                // The time after the read: with one from before, a packet that came while this
                // thread stood still would pass the link too soon.
                Ok(bytes) => self
                    .router
                    .take(net::os::now_ns(), number, &buffer[..bytes]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Carries out requests; false when there can be no more.
    fn answer(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 64];
        if self.wake.read(&mut bytes)? == 0 {
            return Ok(false);
        }
        loop {
            match self.requests.try_recv() {
                // A receiver that is gone needs no answer.
                Ok(Request::Counters(sender)) => drop(sender.send(self.router.counters())),
                Ok(Request::Rates(rates, sender)) => {
                    for (host, bits_per_s) in rates {
                        self.router.set_rate(host, bits_per_s);
                    }
                    let _ = sender.send(());
                }
                Ok(Request::Change(host, spec, sender)) => {
                    self.router.change(host, &spec);
                    let _ = sender.send(());
                }
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }
}
