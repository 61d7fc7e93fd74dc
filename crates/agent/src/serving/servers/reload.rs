//! Reloads of servers: replaces files, sends a signal or runs a command, and checks whether the new
//! configuration is in effect.

use std::time::Duration;

use net::os;
use net::process::status_unreaped;

use super::Servers;
use super::server::{ReloadCommand, Reloading, describe};
use super::start::{command, environment, isolated};
use crate::kernel::clock;
use crate::protocol::wire::{ReloadProbe, ReloadServer, ReloadSign};
use crate::serving::probe::{POLL_WAIT, Probe, has_text};

/// Time limit of the request that checks whether a reload is in effect.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

impl Servers {
    /// Replaces files of a server, and begins the reload by a signal or a command.
    pub(crate) fn reload(
        &mut self,
        order: &ReloadServer,
        signal: Option<i32>,
    ) -> Result<(), String> {
        let server = order.server.as_str();
        self.must_be_alive(Some(server))?;
        let pids = self.watched(server).pids();
        let folder = self
            .folders
            .get(server)
            .ok_or_else(|| format!("`{server}` has no folder"))?;
        folder
            .replace(&order.files)
            .map_err(|e| format!("cannot replace the files of `{server}`: {e}"))?;
        let output_bytes = folder.output_bytes();
        let command = match order.command.split_first() {
            None => None,
            Some((program, arguments)) => {
                let output = folder.shared_output().map_err(|e| e.to_string())?;
                let mut command = command(folder, program, arguments, folder.path(), output)
                    .map_err(|e| e.to_string())?;
                command.env_clear().envs(environment(folder.path()));
                os::set_up_child(&mut command, isolated());
                let child = command.spawn().map_err(|e| {
                    let lacking = os::Lacking(&e);
                    format!("cannot start {program}, which reloads `{server}`: {e}{lacking}")
                })?;
                Some(ReloadCommand(child))
            }
        };
        let one = self
            .running
            .get_mut(server)
            .ok_or_else(|| format!("`{server}` does not run"))?;
        if let Some(signal) = signal {
            os::kill(one.pid(), signal)
                .map_err(|e| format!("cannot send a signal to `{server}`: {e}"))?;
        }
        one.reload = Some(Reloading {
            pids,
            output_bytes,
            command,
            probe: None,
        });
        Ok(())
    }

    /// When the latest reload of a server was seen to be in effect, by CLOCK_MONOTONIC; `None` if it
    /// is not yet. Returns within about [`POLL_WAIT`]; the caller polls.
    ///
    /// # Errors
    /// When the command failed, with what it printed, or the server has ended.
    pub(crate) fn is_reloaded(&mut self, probe: &ReloadProbe) -> Result<Option<i64>, String> {
        let server = probe.server.as_str();
        self.must_be_alive(Some(server))?;
        self.check_command(server)?;
        let reload = self
            .running
            .get_mut(server)
            .and_then(|one| one.reload.as_mut())
            .ok_or_else(|| format!("`{server}` was not reloaded"))?;
        let seen = match &probe.sign {
            ReloadSign::Answer(text) => {
                let request = match reload.probe.take() {
                    Some(request) => request,
                    None => Probe::begin(&probe.ask, PROBE_TIMEOUT)?,
                };
                return Ok(match request.answer(POLL_WAIT) {
                    None => {
                        reload.probe = Some(request);
                        None
                    }
                    Some((at_ns, Ok(Some(answer)))) => has_text(&answer, text).then_some(at_ns),
                    Some(_) => None,
                });
            }
            ReloadSign::Output(text) => self
                .folders
                .get(server)
                .is_some_and(|folder| folder.output_since(reload.output_bytes).contains(text)),
            ReloadSign::NewProcess => {
                let before = reload.pids.clone();
                let now = self.watched(server).pids();
                now.iter().any(|pid| !before.contains(pid))
            }
        };
        Ok(seen.then(clock::monotonic_ns))
    }

    fn check_command(&mut self, server: &str) -> Result<(), String> {
        let reload = self.running.get_mut(server);
        let Some(reload) = reload.and_then(|one| one.reload.as_mut()) else {
            return Ok(());
        };
        let Some(command) = &reload.command else {
            return Ok(());
        };
        let Ok(Some(status)) = status_unreaped(command.0.id() as i32) else {
            return Ok(());
        };
        reload.command = None;
        match status.success() {
            true => Ok(()),
            false => Err(format!(
                "the command that reloads `{server}` failed ({}){}",
                describe(status),
                self.last_output(server)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::serving::servers::fixtures::{NAME, await_at, end, servers, until_it_printed};

    const HUP: i32 = 1;

    fn probe(sign: ReloadSign) -> ReloadProbe {
        ReloadProbe {
            server: NAME.into(),
            sign,
            ask: await_at(([127, 0, 0, 1], 1).into(), 0),
        }
    }

    fn order(command: &[&str]) -> ReloadServer {
        ReloadServer {
            server: NAME.into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            ..ReloadServer::default()
        }
    }

    /// Probes for some seconds, until the reload is in effect or an error.
    fn outcome(servers: &mut Servers, sign: &ReloadSign) -> Result<bool, String> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let seen = servers.is_reloaded(&probe(sign.clone()));
            let seen = seen.map(|at_ns| at_ns.is_some());
            if seen != Ok(false) || Instant::now() >= end {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_signal_is_in_effect_when_the_server_prints_or_forks_something_new() {
        // The trap starts the process itself: a signal just before `wait` would not end `wait`.
        let script = "trap 'sleep 30 & echo read again' HUP; echo ready to read again at HUP; \
                      while :; do sleep 30 & wait; done";
        let mut servers = servers(script);
        until_it_printed(&servers, "ready");
        let text = ReloadSign::Output("read again".into());
        assert!(servers.is_reloaded(&probe(text.clone())).is_err());
        servers.reload(&order(&[]), Some(HUP)).unwrap();
        // What the server printed before the reload does not count.
        assert_eq!(outcome(&mut servers, &text), Ok(true));
        assert_eq!(outcome(&mut servers, &ReloadSign::NewProcess), Ok(true));
        let never = ReloadSign::Output("never printed".into());
        assert_eq!(servers.is_reloaded(&probe(never)), Ok(None));
        end(servers);
    }

    #[test]
    fn a_command_that_fails_is_told_with_what_it_printed() {
        let mut servers = servers("echo ready; exec sleep 30");
        until_it_printed(&servers, "ready");
        let sign = ReloadSign::Output("done".into());
        servers
            .reload(&order(&["/bin/sh", "-c", "echo done"]), None)
            .unwrap();
        assert_eq!(outcome(&mut servers, &sign), Ok(true));
        let command = ["/bin/sh", "-c", "echo line 7 is wrong; exit 3"];
        servers.reload(&order(&command), None).unwrap();
        let why = outcome(&mut servers, &sign).unwrap_err();
        assert!(
            why.contains("status 3") && why.contains("line 7 is wrong"),
            "{why}"
        );
        end(servers);
    }

    #[test]
    fn a_server_that_a_reload_ends_is_told() {
        let mut servers = servers("echo ready; exec sleep 30");
        until_it_printed(&servers, "ready");
        servers.reload(&order(&[]), Some(HUP)).unwrap();
        let why = outcome(&mut servers, &ReloadSign::NewProcess).unwrap_err();
        assert!(why.contains("ended by itself (signal 1)"), "{why}");
        end(servers);
    }
}
