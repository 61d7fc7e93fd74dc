//! The server side of the control socket.
//!
//! A request is a line of words; the reply is one JSON object, after which the connection is
//! closed.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ::config::nearest::suggestion;
use ::config::units::shown;
use serde_json::{Value, json};

use super::server::read_while;
use super::status::status;
use super::supervisor::{ReloadError, Supervisor, Tell};
use crate::config::ConfigError;
use crate::engine::BalancerError;

/// Longest request, bytes.
const REQUEST_BYTES_MAX: usize = 4096;
/// Read of an overlong request, so that its sender sees the error.
const UNREAD_BYTES_MAX: usize = 65_536;
/// Time limit of a request, and of its reply.
const LIMIT: Duration = Duration::from_secs(5);
/// Exit statuses: failed, and invalid request.
const FAILED: u8 = 1;
const INVALID: u8 = 2;

/// An error reply.
struct Refusal {
    status: u8,
    error: String,
}

fn invalid(error: impl ToString) -> Refusal {
    let error = error.to_string();
    Refusal {
        status: INVALID,
        error,
    }
}

/// Answers one request.
pub(super) fn serve(mut stream: UnixStream, line: io::Result<String>, supervisor: &Supervisor) {
    let answer = match line {
        Ok(line) => answer(&line, supervisor),
        Err(error) => Err(invalid(format!("expected a line with a request: {error}"))),
    };
    let answer = answer.unwrap_or_else(
        |refusal| json!({ "ok": false, "status": refusal.status, "error": refusal.error }),
    );
    let _ = stream.set_write_timeout(Some(LIMIT));
    // The client may have gone.
    let _ = stream.write_all(format!("{answer}\n").as_bytes());
}

pub(super) fn read_line(stream: &mut UnixStream) -> io::Result<String> {
    let line = read_while(stream, LIMIT, |line| {
        !line.contains(&b'\n') && line.len() <= UNREAD_BYTES_MAX
    })?;
    if line.len() > REQUEST_BYTES_MAX {
        return Err(io::Error::other("it is longer than 4096 bytes"));
    }
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8(line.to_vec()).map_err(io::Error::other)
}

fn answer(line: &str, supervisor: &Supervisor) -> Result<Value, Refusal> {
    let all: Vec<&str> = line.split_whitespace().collect();
    match all.as_slice() {
        ["status"] => Ok(status(supervisor)),
        ["reload"] => reload(supervisor),
        ["stop"] => Ok(stop(supervisor, Duration::from_secs(30))),
        ["stop", limit] => {
            let limit_ms = limit.parse().map_err(|_| {
                invalid(format!(
                    "expected milliseconds after `stop`, found `{}`",
                    shown(limit)
                ))
            })?;
            Ok(stop(supervisor, Duration::from_millis(limit_ms)))
        }
        ["tell", service, backend, what @ ..] => {
            let what = tell(what)?;
            supervisor.tell(service, backend, &what).map_err(invalid)?;
            Ok(json!({ "ok": true }))
        }
        ["tell", ..] => Err(invalid("expected a service and a back end after `tell`")),
        [other, ..] => {
            let help = suggestion(other, "requests", ["status", "reload", "stop", "tell"]);
            Err(invalid(format!(
                "there is no request `{}`; {help}",
                shown(other)
            )))
        }
        [] => Err(invalid("expected a request, found an empty line")),
    }
}

fn tell(what: &[&str]) -> Result<Tell, Refusal> {
    Ok(match what {
        ["drain"] => Tell::Drain,
        ["state", state] => Tell::State(state.parse().map_err(|error| {
            let states = ["up", "available", "unavailable", "down", "waking"];
            invalid(format!("{error}; {}", suggestion(state, "states", states)))
        })?),
        ["server", address] => Tell::Server((*address).to_owned()),
        ["weight", weight] => match weight.parse() {
            Ok(weight @ 1..=1_000_000) => Tell::Weight(weight),
            _ => {
                let found = shown(weight);
                return Err(invalid(format!(
                    "expected a weight from 1 to 1000000, found `{found}`"
                )));
            }
        },
        [known @ ("state" | "server" | "weight"), ..] => {
            return Err(invalid(format!("expected one value after `{known}`")));
        }
        [other, ..] => {
            let all = ["state", "server", "weight", "drain"];
            let help = suggestion(other, "things to tell", all);
            return Err(invalid(format!("cannot tell `{}`; {help}", shown(other))));
        }
        [] => {
            return Err(invalid(
                "expected `state`, `server`, `weight` or `drain` after the back end",
            ));
        }
    })
}

fn reload(supervisor: &Supervisor) -> Result<Value, Refusal> {
    let (config, warnings) = supervisor.reload().map_err(|error| Refusal {
        status: match &error {
            ReloadError::Config(_) => INVALID,
            ReloadError::Start(BalancerError::Loop(_)) => FAILED,
            ReloadError::Start(_) => INVALID,
            ReloadError::TooMany | ReloadError::Stopping => FAILED,
        },
        error: match &error {
            ReloadError::Config(mistakes) => {
                format!("the configuration stays as it was\n{}", render(mistakes))
            }
            ReloadError::Start(BalancerError::Access { source, .. }) => {
                format!("{error}\n{}", render(source))
            }
            _ => error.to_string(),
        },
    })?;
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    Ok(json!({
        "ok": true,
        "services": config.services.len(),
        "backends": config.services.iter().map(|one| one.backends.len()).sum::<usize>(),
        "warnings": warnings,
    }))
}

/// Renders errors with their source lines.
fn render(error: &ConfigError) -> String {
    let theme = miette::GraphicalTheme::unicode_nocolor();
    let mut text = String::new();
    match miette::GraphicalReportHandler::new_themed(theme).render_report(&mut text, error) {
        Ok(()) => text,
        Err(_) => error.to_string(),
    }
}

fn stop(supervisor: &Supervisor, limit: Duration) -> Value {
    let cut_off = supervisor.stop(limit);
    json!({ "ok": true, "cut_off": cut_off })
}
