//! What can be wrong with a pipe.

/// Characters of foreign text in a message.
const SHOWN_MAX: usize = 120;

/// Why a pipe cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipeFault {
    /// The pipe ended without a final frame. `status` is that of its command, if it has ended.
    #[error("{}", ended(.status))]
    Ended { status: Option<i32> },
    #[error("its pipe was cut off in the middle of a message, after {bytes} bytes of it")]
    Truncated { bytes: usize },
    #[error("its pipe lost {} before message {found}", messages(.found, .expected))]
    Missing { expected: u32, found: u32 },
    #[error("its pipe repeated message {found}; expected message {expected}")]
    Repeated { expected: u32, found: u32 },
    #[error("its pipe damaged a message: expected message {expected}, found {found}")]
    Damaged { expected: u32, found: String },
    #[error("its pipe carries something else than messages: `{text}`")]
    Foreign { text: String },
    #[error(
        "its pipe returns what is sent into it, as a terminal does: remove options such as -t from \
         its command"
    )]
    Echo,
    #[error("a message is longer than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
    #[error("what came before its greeting has a line longer than {bytes_max} bytes")]
    LongLine { bytes_max: usize },
    #[error("it was silent for {seconds} s: no heartbeat came")]
    Silent { seconds: u64 },
    #[error("what was sent to it did not arrive as sent: {reason}")]
    AtAgent { reason: String },
    #[error("its pipe cannot be read: {reason}")]
    Unreadable { reason: String },
}

impl PipeFault {
    pub(super) fn foreign(line: &[u8]) -> Self {
        Self::Foreign {
            text: shortened(&String::from_utf8_lossy(line)),
        }
    }
}

/// The start of a text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn messages(found: &u32, expected: &u32) -> String {
    match found.saturating_sub(*expected) {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

fn ended(status: &Option<i32>) -> String {
    match status {
        None => "it ended without a final message".to_owned(),
        Some(0) => {
            "it ended without a final message, though the command of its pipe reports success \
                    (status 0): it may still run there, and ends when it gets no heartbeat"
                .to_owned()
        }
        Some(status) => format!(
            "it ended without a final message, and the command of its pipe with status {status}"
        ),
    }
}
