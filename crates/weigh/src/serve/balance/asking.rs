//! Requests to a running balancer.

use std::path::Path;
use std::time::Duration;

use balance::control::ask;
use serde_json::Value;

use super::{shown, socket_of};
use crate::cli::{BalanceRequest, Format};
use crate::failure::Failure;
use crate::terminal::output::{print_json, print_text};

/// Time limit of a request, which may read files and resolve names.
const LIMIT: Duration = Duration::from_secs(30);

/// Prints state and counters.
pub fn status(file: Option<&Path>, socket: Option<&Path>, format: Format) -> Result<u8, Failure> {
    let status = answer(&socket_of(file, socket)?, "status", LIMIT)?;
    match format {
        Format::Json => print_json(&status),
        Format::Text => print_text(&shown::status(&status)),
    }
    Ok(0)
}

/// Sends a request.
pub fn request(request: &BalanceRequest) -> Result<u8, Failure> {
    match request {
        BalanceRequest::Tell {
            service,
            backend,
            what,
            socket,
            file,
        } => {
            let socket = socket_of(file.as_deref(), socket.as_deref())?;
            let mut words = vec!["tell", one_word(service)?, one_word(backend)?];
            for word in what {
                words.push(one_word(word)?);
            }
            answer(&socket, &words.join(" "), LIMIT)?;
        }
        BalanceRequest::Reload { file, socket } => {
            let socket = socket_of(file.as_deref(), socket.as_deref())?;
            let answer = answer(&socket, "reload", LIMIT)?;
            for warning in answer["warnings"].as_array().into_iter().flatten() {
                eprintln!("weigh: {}", warning.as_str().unwrap_or_default());
            }
            eprintln!(
                "configuration replaced, services: {}, back ends: {}",
                answer["services"], answer["backends"]
            );
        }
        BalanceRequest::Stop {
            file,
            socket,
            limit,
        } => {
            let socket = socket_of(file.as_deref(), socket.as_deref())?;
            let request = format!("stop {}", limit.as_millis());
            let answer = answer(&socket, &request, limit.saturating_add(LIMIT))?;
            match answer["cut_off"].as_u64() {
                Some(1..) => eprintln!("stopped; clients cut off: {}", answer["cut_off"]),
                _ => eprintln!("stopped; all clients had gone"),
            }
        }
    }
    Ok(0)
}

/// A word of a request; words are separated by spaces.
fn one_word(word: &str) -> Result<&str, Failure> {
    match word.is_empty() || word.contains(char::is_whitespace) {
        true => Err(Failure::words(format!(
            "expected a word without space, found `{}`",
            word.escape_debug()
        ))),
        false => Ok(word),
    }
}

fn answer(socket: &Path, request: &str, limit: Duration) -> Result<Value, Failure> {
    let answer = ask(socket, request, limit).map_err(Failure::failed)?;
    if answer["ok"].as_bool() == Some(true) {
        return Ok(answer);
    }
    let error = answer["error"].as_str().unwrap_or("it refused").trim_end();
    Err(match answer["status"].as_u64() {
        Some(2) => Failure::words(error),
        _ => Failure::failed(error),
    })
}
