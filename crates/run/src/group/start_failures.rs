//! Servers that do not start: who is affected, and what is said about it, once.

use std::fs;
use std::path::{Path, PathBuf};

use agent::AgentError;
use agent::wire::{StartServer, without_last_output};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::context::Context;
use crate::group::result::GroupResult;
use crate::testbed::copies::original;
use experiment::recipe::is_certificate;

/// Larger files of a server are content, not configuration.
const CONFIGURATION_BYTES_MAX: usize = 64 * 1024;
/// Files that are named in the message.
const NAMED_MAX: usize = 3;
/// The folder of the files in the run's folder.
const FOLDER: &str = "not-started";

/// Why a group's servers could not be started or measured.
#[derive(Debug)]
pub(crate) struct GroupFailure {
    /// The servers that are at fault: their subjects caused it.
    pub(crate) servers: Vec<String>,
    pub(crate) error: AgentError,
    /// Whether what the server printed is reported separately.
    pub(crate) is_told: bool,
    /// Whether servers had started, and one went wrong while subjects were measured.
    pub(crate) while_measured: bool,
}

impl From<AgentError> for GroupFailure {
    fn from(error: AgentError) -> Self {
        Self::of_servers(error, Vec::new())
    }
}

impl GroupFailure {
    /// The same as this server's fault; the loss of an agent is no server's.
    pub(crate) fn of_server(error: AgentError, server: &str) -> Self {
        let servers = match error {
            AgentError::Failed(_) => vec![server.to_owned()],
            AgentError::Lost(_) => Vec::new(),
        };
        Self::of_servers(error, servers)
    }

    pub(crate) fn of_servers(error: AgentError, servers: Vec<String>) -> Self {
        Self {
            servers,
            error,
            is_told: false,
            while_measured: false,
        }
    }

    /// The same in a measurement.
    pub(crate) fn while_measured(self) -> Self {
        Self {
            while_measured: !self.servers.is_empty(),
            ..self
        }
    }

    /// The reason, without what the server printed where that is reported separately.
    pub(crate) fn reason(&self) -> String {
        let text = self.error.to_string();
        let text = match self.is_told {
            true => without_last_output(&text).to_owned(),
            false => text,
        };
        match self.while_measured {
            true => format!("during the measurement {text}"),
            false => text,
        }
    }
}

/// Reports once per server, with its configuration, that it did not start.
pub(crate) fn tell(
    cx: &mut Context<'_>,
    failure: &mut GroupFailure,
    start: Option<&StartServer>,
    result: &mut GroupResult,
) {
    let ([server], AgentError::Failed(error)) = (failure.servers.as_slice(), &failure.error) else {
        return;
    };
    failure.is_told = true;
    let server = original(server).to_owned();
    if !cx.learned.not_started.insert(server.clone()) {
        return;
    }
    let mut text = format!("server `{server}` did not start: {error}");
    if let Some(start) = start {
        text.push_str(&format!("\n  its command: {}", start.command.join(" ")));
        text.push_str(&configuration(cx.options.folder, &server, start, error));
    }
    result.found.warnings.push(text);
}

/// Writes the files of a server into the run's folder and names those that its command names. If
/// the server's last output names a line of a file, that line is shown.
fn configuration(folder: &Path, server: &str, start: &StartServer, words: &str) -> String {
    let folder = folder.join(FOLDER).join(server);
    let mut written: Vec<(PathBuf, String, bool)> = Vec::new();
    for file in &start.files {
        let Ok(bytes) = STANDARD.decode(&file.content) else {
            continue;
        };
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(&folder);
        // A private key is for its server only.
        let is_configuration =
            bytes.len() <= CONFIGURATION_BYTES_MAX && !is_certificate(&file.path);
        if is_configuration
            && fs::create_dir_all(parent).is_ok()
            && fs::write(&path, &bytes).is_ok()
        {
            let is_named = start.command.iter().any(|word| word.contains(&file.path));
            let text = String::from_utf8_lossy(&bytes).into_owned();
            written.push((path, text, is_named));
        }
    }
    if written.iter().any(|(_, _, is_named)| *is_named) {
        written.retain(|(_, _, is_named)| *is_named);
    }
    let mut out = String::new();
    for (path, text, _) in written.iter().take(NAMED_MAX) {
        out.push_str(&format!("\n  its configuration: {}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some((number, line)) = line_named(words, &name, text) {
            out.push_str(&format!(", line {number}: {}", line.trim()));
        }
    }
    out
}

/// The line of a file that words such as `nginx.conf:12` name.
fn line_named<'t>(words: &str, name: &str, text: &'t str) -> Option<(usize, &'t str)> {
    let after = words.split(&format!("{name}:")).nth(1)?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let number: usize = digits.parse().ok()?;
    let line = text.lines().nth(number.checked_sub(1)?)?;
    Some((number, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_private_key_is_kept() {
        let folder = std::env::temp_dir().join(format!("weigh-not-started-{}", std::process::id()));
        let file = |path: &str| agent::wire::FileToWrite {
            path: path.into(),
            content: STANDARD.encode("x"),
            mode: 0o600,
        };
        let start = StartServer {
            server: "front".into(),
            files: vec![file("tls/key.pem"), file("front.conf")],
            command: vec!["front".into(), "/d/front.conf".into()],
            ..StartServer::default()
        };
        let said = configuration(&folder, "front", &start, "");
        let kept = folder.join(FOLDER).join("front");
        let there = ["front.conf", "tls"].map(|name| kept.join(name).exists());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(there, [true, false], "{said}");
    }

    #[test]
    fn the_line_that_a_server_complains_of_is_found() {
        let text = "events {}\nhttp {\n  proxy_passs x;\n}\n";
        let words = "unknown directive \"proxy_passs\" in /tmp/x/nginx.conf:3";
        let found = line_named(words, "nginx.conf", text);
        assert_eq!(found, Some((3, "  proxy_passs x;")));
        assert_eq!(line_named("nginx.conf:9", "nginx.conf", text), None);
        assert_eq!(line_named("no file", "nginx.conf", text), None);
    }

    #[test]
    fn the_reason_is_a_line_and_the_last_output_stands_apart() {
        let error = AgentError::Failed("`x` ended by itself; its last output:\n  oh\n  no".into());
        let mut failure = GroupFailure::of_server(error, "x");
        assert!(failure.reason().ends_with("no"));
        failure.is_told = true;
        assert_eq!(failure.reason(), "`x` ended by itself");
        assert_eq!(failure.servers, ["x"]);
        let failure = failure.while_measured();
        assert_eq!(
            failure.reason(),
            "during the measurement `x` ended by itself"
        );
        let lost = GroupFailure::of_server(AgentError::Lost("gone".into()), "x");
        assert!(lost.servers.is_empty());
    }
}
