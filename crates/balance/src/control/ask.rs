//! Asks a balancer that runs.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

/// Longest answer, bytes: thousands of back ends.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody is there.
    #[error("no balancer answers on {}: {source}", path.display())]
    Nobody {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It did not answer in time, or ended.
    #[error("the balancer on {} did not answer within {limit:?}: {source}", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long was waited at most.
        limit: Duration,
        /// What happened.
        source: io::Error,
    },
    /// What answers is no balancer.
    #[error("what answers on {} is no balancer", path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
    },
}

/// Asks the balancer at a socket; the words of a request are divided by space. The answer is an
/// object: with `ok` true, or with `ok` false, `error`, and the exit `status` that it stands for.
///
/// # Errors
/// When there is no such answer.
pub fn ask(path: &Path, request: &str, limit: Duration) -> Result<Value, AskError> {
    let own = || path.to_path_buf();
    let mut stream = UnixStream::connect(path).map_err(|source| AskError::Nobody {
        path: own(),
        source,
    })?;
    let mut answer = Vec::new();
    let mut talk = || -> io::Result<()> {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        (&stream).take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok(())
    };
    talk().map_err(|source| AskError::Silent {
        path: own(),
        limit,
        source,
    })?;
    match serde_json::from_slice::<Value>(&answer) {
        Ok(answer) if answer["ok"].is_boolean() => Ok(answer),
        _ => Err(AskError::Stranger { path: own() }),
    }
}
