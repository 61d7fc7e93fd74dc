//! The client side of the control socket.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

/// Longest reply in bytes: thousands of back ends.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no balancer answers on {}: {source}", path.display())]
    Nobody {
        /// The socket.
        path: PathBuf,
        source: io::Error,
    },
    #[error("the balancer on {} did not answer within {limit:?}: {source}", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        limit: Duration,
        source: io::Error,
    },
    #[error("what answers on {} is no balancer", path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
    },
}

/// Sends a request, which is words separated by spaces. The reply is an object: `ok` is true, or
/// `ok` is false with `error` and the exit `status` it stands for.
///
/// # Errors
/// When there is no valid reply.
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
