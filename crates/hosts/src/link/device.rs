//! The thread that passes packets on between TUN devices.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::Duration;

use net::tun::Waiter;

use super::router::{Addresses, Router};
use readings::{LinkCounters, LinkSpec, PACKET_BYTES_MAX};

/// So many packets are read from one device before the others have their turn.
const PACKETS_AT_ONCE: usize = 64;

/// What the thread is asked for.
enum Ask {
    Counters(Sender<Vec<LinkCounters>>),
    /// New rates of the links of hosts, by their places in the list; answered when they hold.
    Rates(Vec<(usize, u64)>, Sender<()>),
}

/// Links in user space, for as long as this lives.
pub(crate) struct Link {
    asks: Sender<Ask>,
    bell: io::PipeWriter,
}

impl Link {
    /// Starts passing packets on between the devices of hosts.
    pub(crate) fn start(
        devices: Vec<File>,
        hosts: &[(Addresses, LinkSpec)],
        seed: u64,
        cpus: &[u32],
    ) -> io::Result<Self> {
        let (bell_end, bell) = io::pipe()?;
        let (asks, asked) = mpsc::channel();
        let mut descriptors: Vec<_> = devices.iter().map(File::as_raw_fd).collect();
        descriptors.push(bell_end.as_raw_fd());
        let mut thread = Thread {
            waiter: Waiter::new(&descriptors)?,
            router: Router::new(hosts, seed),
            devices,
            bell: bell_end,
            asked,
        };
        let cpus = cpus.to_vec();
        std::thread::Builder::new()
            .name("link".into())
            .spawn(move || {
                if !cpus.is_empty() {
                    // Where it cannot be done the link is late now and then, which is counted.
                    let _ = net::os::bind_to_cpus(&cpus);
                }
                net::os::sharpen_timers();
                // A wire does not wait for a CPU. An ordinary user's does, as only root may go first.
                let _ = net::os::run_first();
                // When it ends, so do the devices, and nothing gets through any more.
                let _ = thread.work();
            })?;
        Ok(Self { asks, bell })
    }

    /// What has become of the packets so far, by host.
    pub(crate) fn counters(&mut self) -> io::Result<Vec<LinkCounters>> {
        let (sender, receiver) = mpsc::channel();
        self.ask(Ask::Counters(sender), &receiver)
    }

    /// Changes rates of links that have one, by host.
    pub(crate) fn set_rates(&mut self, rates: Vec<(usize, u64)>) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        self.ask(Ask::Rates(rates, sender), &receiver)
    }

    fn ask<T>(&mut self, ask: Ask, receiver: &Receiver<T>) -> io::Result<T> {
        let gone = || io::Error::other("the links have ended");
        self.asks.send(ask).map_err(|_| gone())?;
        self.bell.write_all(b"x")?;
        receiver.recv().map_err(|_| gone())
    }
}

struct Thread {
    waiter: Waiter,
    router: Router,
    devices: Vec<File>,
    bell: io::PipeReader,
    asked: Receiver<Ask>,
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
            self.router.hand_over(net::os::now_ns(), |to, packet| {
                // A packet that the kernel does not take, for want of memory or because the device
                // is down, is lost, as it would be anywhere.
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

    /// Does what it is asked for; false when nobody can any more.
    fn answer(&mut self) -> io::Result<bool> {
        let mut rung = [0; 64];
        if self.bell.read(&mut rung)? == 0 {
            return Ok(false);
        }
        loop {
            match self.asked.try_recv() {
                // Who does not wait any more does not need it.
                Ok(Ask::Counters(sender)) => drop(sender.send(self.router.counters())),
                Ok(Ask::Rates(rates, sender)) => {
                    for (host, bits_per_s) in rates {
                        self.router.set_rate(host, bits_per_s);
                    }
                    let _ = sender.send(());
                }
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }
}
