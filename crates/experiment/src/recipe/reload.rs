//! `[reload]`: how a server is made to read its configuration again, and what shows that it did.

use crate::manifest::{command, template};
use config::reader::{Problem, Reader};
use config::section::Section;

/// The signals that a recipe can send.
pub(super) const SIGNALS: [&str; 7] = ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH"];
const KEYS: [&str; 5] = ["signal", "command", "answer", "output", "new_process"];

/// The table `[reload]`, as templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecipeReload {
    /// Sent to the process that was started.
    pub signal: Option<String>,
    /// Run instead of a signal.
    pub command: Vec<String>,
    pub answer: Option<String>,
    pub output: Option<String>,
    pub new_process: bool,
}

/// What templates know of the reloads of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadState {
    /// Whether the experiment reloads it: some servers have to be started differently then.
    pub is_expected: bool,
    /// The number of the reload that this configuration is for; 0 for the one that it starts with.
    pub number: u32,
}

/// How a server is reloaded once its files are in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// A signal without `SIG`, for the process that was started.
    pub signal: Option<String>,
    /// A command to run instead.
    pub command: Vec<String>,
    pub sign: ReloadSign,
}

/// What shows that a reload is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadSign {
    /// The answer to the request of `[ready]` on a new connection has this text in a header field
    /// or in its body, in any letter case.
    Answer(String),
    /// It prints this text after the reload began.
    Output(String),
    /// It has a process that it did not have before.
    NewProcess,
}

pub(super) fn reload(reader: &mut Reader, top: &Section<'_>) -> Option<RecipeReload> {
    let section = top.section(reader, "reload")?;
    section.only(reader, &KEYS);
    let signal = section.word(reader, "signal", &SIGNALS);
    let has_command = section.table.get("command").is_some();
    if has_command == section.table.get("signal").is_some() {
        reader.report(Problem::at(
            section.place,
            "`reload` needs either a signal or a command",
            "expected signal = \"HUP\", or command = [\"…\"]",
        ));
    }
    let command = match has_command {
        true => command(reader, &section),
        false => Vec::new(),
    };
    let mut text = |key: &str| {
        let text = section.text(reader, key)?;
        template(reader, section.value_place(key), "the text", &text);
        Some(text)
    };
    let (answer, output) = (text("answer"), text("output"));
    let new_process = section.boolean(reader, "new_process").unwrap_or(false);
    if answer.is_none() && output.is_none() && !new_process {
        reader.advise(section.place,
                "`reload` does not say how it shows that the new configuration is in effect",
                "expected `answer`, `output` or `new_process`", "such as answer = \"X-Weigh-Reload: {{ reload.number }}\", a field that the configuration adds");
    }
    Some(RecipeReload {
        signal,
        command,
        answer,
        output,
        new_process,
    })
}
