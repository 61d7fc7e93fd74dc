//! Asks servers whether they are ready.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::fetch::Answer;
use readings::ServerStart;

use super::Servers;
use crate::protocol::wire::{AnswerSummary, AwaitServer, OtherServer, time_limit_phrase};
use crate::sampling::network::listening::{at_port, holds};
use crate::sampling::server::state::server_state;
use crate::serving::probe::{POLL_WAIT, Probe, ReadinessWait};

/// How long the answer to one request may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it may take at least, however little time is left.
const PROBE_TIMEOUT_MIN: Duration = Duration::from_millis(50);
/// Between an answer that does not fit and the next request.
const PAUSE: Duration = Duration::from_millis(10);

/// How often it is looked at where a server listens that refuses connections: one that listens on
/// several addresses begins with all of them within that time.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Servers {
    /// Waits until a server answers as expected, or `stop` is set. Returns what it answered, where
    /// it was asked by HTTP.
    pub(crate) fn wait_until_ready(
        &mut self,
        order: &AwaitServer,
        stop: &AtomicBool,
    ) -> Result<Option<AnswerSummary>, String> {
        let mut waiting = ReadinessWait::begin();
        while !stop.load(Ordering::Relaxed) {
            if let Some((at_ns, summary)) = self.poll_ready(&mut waiting, order, PAUSE)? {
                self.record_start(order, at_ns);
                return Ok(summary);
            }
            if waiting.probe.is_none() {
                sleep(PAUSE);
            }
        }
        Err(format!("waiting for `{}` was given up", order.name()))
    }

    /// How a server started; `None` as long as it was not waited for.
    pub(crate) fn start_of(&self, server: &str) -> Option<ServerStart> {
        self.running.get(server)?.start
    }

    /// Records how a server started when it is ready for the first time.
    fn record_start(&mut self, order: &AwaitServer, at_ns: i64) {
        let Some(server) = order.server.as_deref() else {
            return;
        };
        if self
            .running
            .get(server)
            .is_none_or(|one| one.start.is_some())
        {
            return;
        }
        let rest_bytes = self.memory_bytes(server);
        if let Some(one) = self.running.get_mut(server) {
            one.start = Some(ServerStart {
                start_ms: at_ns.saturating_sub(one.began_ns) as f64 / 1e6,
                rest_bytes,
            });
        }
    }

    /// The memory of a server that runs, all its processes together; shared pages count in part (PSS),
    /// or for each process where the kernel does not tell.
    pub(crate) fn memory_bytes(&self, server: &str) -> Option<u64> {
        let state = server_state(&OtherServer {
            server: server.to_owned(),
            pid: self.running.get(server)?.pid(),
            also: Vec::new(),
            group: self.group_of(server),
            counts: None,
        });
        state.map(|state| state.memory_bytes)
    }

    /// When a server that was started answered as expected, by CLOCK_MONOTONIC; `None` if it has
    /// not yet. Returns within about [`POLL_WAIT`]; the caller polls.
    ///
    /// # Errors
    /// When the server does not run, or has not answered within its time limit.
    pub(crate) fn is_ready(&mut self, order: &AwaitServer) -> Result<Option<i64>, String> {
        let server = order.server.as_deref();
        self.must_be_alive(server)?;
        let mut waiting = server
            .and_then(|name| self.running.get_mut(name)?.waiting.take())
            .unwrap_or_else(ReadinessWait::begin);
        let ready = self.poll_ready(&mut waiting, order, POLL_WAIT)?;
        if ready.is_none()
            && let Some(one) = server.and_then(|name| self.running.get_mut(name))
        {
            one.waiting = Some(waiting);
        }
        Ok(ready.map(|(at_ns, _)| at_ns))
    }

    /// Waits a while for an answer, asking first if no request is under way. Returns when one came
    /// that fits, and its summary.
    fn poll_ready(
        &mut self,
        waiting: &mut ReadinessWait,
        order: &AwaitServer,
        within: Duration,
    ) -> Result<Option<(i64, Option<AnswerSummary>)>, String> {
        let (name, server) = (order.name(), order.server.as_deref());
        let limit = Duration::from_millis(order.timeout_ms);
        let left = limit.saturating_sub(waiting.since.elapsed());
        let probe = match waiting.probe.take() {
            Some(probe) => probe,
            None => Probe::begin(order, left.clamp(PROBE_TIMEOUT_MIN, PROBE_TIMEOUT))
                .map_err(|error| format!("cannot ask `{name}`: {error}"))?,
        };
        let Some((at_ns, answer)) = probe.answer(within) else {
            waiting.probe = Some(probe);
            return Ok(None);
        };
        let answer = answer.and_then(|answer| match &answer {
            Some(answer) => fits(order, answer).map(|()| (!order.raw).then(|| summary(answer))),
            None => Ok(None),
        });
        self.must_be_alive(server)?;
        match answer {
            Ok(summary) => Ok(Some((at_ns, summary))),
            Err(found) if waiting.since.elapsed() >= limit => {
                let output = server.map(|server| self.last_output(server));
                Err(format!(
                    "`{name}` did not answer as expected{}{found}{}",
                    time_limit_phrase(order.timeout_ms),
                    output.unwrap_or_default()
                ))
            }
            Err(_) if waiting.looked.elapsed() >= LOOK_EVERY => {
                waiting.looked = Instant::now();
                let elsewhere = self.listens_elsewhere(server, order.address);
                elsewhere.map_or(Ok(None), |elsewhere| match server {
                    Some(_) => Err(format!(
                        "`{name}` listens on {elsewhere} only, where it is asked at {}: have it listen \
                         on that address ({{address}} in a command), or on all addresses",
                        order.address
                    )),
                    None => Err(format!(
                        "nothing listens on {name}, but something does on {elsewhere}: use that address"
                    )),
                })
            }
            Err(_) => Ok(None),
        }
    }

    /// Another address at the port of `address` on which a server listens, where it does not listen on
    /// that one: many programs take `localhost` for `::1` alone. Without a server it is any that listens
    /// there on this machine.
    fn listens_elsewhere(&self, server: Option<&str>, address: SocketAddr) -> Option<SocketAddr> {
        if server.is_none() && !address.ip().is_loopback() {
            return None;
        }
        let (there, elsewhere) = at_port(address);
        if !there.is_empty() {
            return None;
        }
        let pids = server.map(|server| self.watched(server).pids());
        let is_its = |inode: u64| {
            let pids = pids.as_deref();
            pids.is_none_or(|pids| pids.iter().any(|pid| holds(*pid, &[inode].into())))
        };
        let mut elsewhere = elsewhere.into_iter();
        elsewhere.find_map(|(at, inode)| is_its(inode).then_some(at))
    }
}

impl AwaitServer {
    /// The server's name, or its address.
    fn name(&self) -> String {
        match &self.server {
            Some(server) => server.clone(),
            None => self.address.to_string(),
        }
    }
}

fn summary(answer: &Answer) -> AnswerSummary {
    let coding = answer.field("content-encoding").unwrap_or_default();
    AnswerSummary {
        status: answer.status,
        body_bytes: answer.body.len() as u64,
        body_hash: fnv_1a(&answer.body),
        coding: String::from_utf8_lossy(coding).trim().to_ascii_lowercase(),
    }
}

/// The 64-bit FNV-1a hash, which is the same on every machine.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn fits(order: &AwaitServer, answer: &Answer) -> Result<(), String> {
    let status_fits = match order.status {
        _ if order.raw => true,
        Some(status) => answer.status == status,
        None => answer.status < 500,
    };
    if !status_fits {
        let expected = order.status.map_or("below 500".into(), |s| s.to_string());
        return Err(format!("status {} (expected {expected})", answer.status));
    }
    let text = String::from_utf8_lossy(&answer.body);
    match &order.contains {
        Some(wanted) if !text.contains(wanted.as_str()) => Err(if order.raw {
            format!("an answer without `{wanted}`, which begins: {text:.120}")
        } else {
            format!(
                "status {} without `{wanted}` in the body, which begins: {text:.120}",
                answer.status
            )
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::time::Duration;

    use crate::kernel::clock;
    use crate::serving::servers::fixtures::{NAME, await_at, end, servers};

    #[test]
    fn a_slow_answer_is_not_waited_for_and_its_time_is_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let order = await_at(listener.local_addr().unwrap(), 60_000);
        let (release, released) = mpsc::channel::<()>();
        let answers = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            released.recv().unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).unwrap();
            clock::monotonic_ns()
        });
        let mut servers = servers("exec sleep 60");
        for _ in 0..3 {
            assert_eq!(servers.is_ready(&order), Ok(None));
        }
        let released_ns = clock::monotonic_ns();
        release.send(()).unwrap();
        // Only one connection is accepted: the request that is under way is the one that counts.
        answers.join().unwrap();
        let ready_ns = loop {
            if let Some(ready_ns) = servers.is_ready(&order).unwrap() {
                break ready_ns;
            }
        };
        assert!(released_ns <= ready_ns && ready_ns <= clock::monotonic_ns());
        end(servers);
    }

    #[test]
    fn how_a_server_started_is_known_once_it_is_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let order = await_at(listener.local_addr().unwrap(), 60_000);
        let mut servers = servers("exec sleep 60");
        assert_eq!(servers.start_of(NAME), None);
        let answers = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            std::thread::sleep(Duration::from_millis(60));
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).unwrap();
        });
        servers
            .wait_until_ready(&order, &AtomicBool::new(false))
            .unwrap();
        answers.join().unwrap();
        let start = servers.start_of(NAME).unwrap();
        assert!(start.start_ms >= 60.0, "{start:?}");
        assert!(start.rest_bytes.unwrap() > 50_000, "{start:?}");
        end(servers);
    }

    #[test]
    fn a_server_that_does_not_answer_in_time_is_an_error() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let order = await_at(closed.local_addr().unwrap(), 30);
        drop(closed);
        let mut servers = servers("exec sleep 60");
        let why = loop {
            if let Err(why) = servers.is_ready(&order) {
                break why;
            }
        };
        assert!(why.contains("within 30 ms"), "{why}");
        end(servers);
    }

    #[test]
    fn a_server_that_listens_on_another_address_alone_is_told_so_at_once() {
        let port = match TcpListener::bind("[::1]:0") {
            Ok(listener) => listener.local_addr().unwrap().port(),
            Err(why) => return testing::skip(&format!("no IPv6: {why}")),
        };
        if !std::path::Path::new("/usr/bin/python3").exists() {
            return testing::skip("no python3");
        }
        // An address of its own: other tests may be given the port on 127.0.0.1.
        let order = await_at(([127, 77, 3, 9], port).into(), 60_000);
        let mut servers = servers(&format!(
            "exec /usr/bin/python3 -c \"import socket, time; s = socket.socket(socket.AF_INET6); \
             s.bind(('::1', {port})); s.listen(); time.sleep(60)\""
        ));
        let why = loop {
            if let Err(why) = servers.is_ready(&order) {
                break why;
            }
        };
        assert!(
            why.contains(&format!("listens on [::1]:{port} only")),
            "{why}"
        );
        end(servers);
    }
}
