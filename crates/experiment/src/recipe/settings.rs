//! A recipe's settings in terms that are common to all servers.

use crate::manifest::template;
use config::reader::Reader;
use config::section::Section;
use readings::ServerSettings;

/// The settings that change results most.
pub(crate) const SETTINGS: [&str; 9] = [
    "workers",
    "keepalive_client",
    "keepalive_upstream",
    "access_log",
    "caching",
    "compression",
    ServerSettings::BUFFERING,
    "tls",
    ServerSettings::QUIC_CONGESTION,
];

/// The table `[settings]`: names with templates; none where a recipe has no such table.
pub(super) fn settings(reader: &mut Reader, top: &Section<'_>) -> Vec<(String, String)> {
    let Some(section) = top.section(reader, "settings") else {
        return Vec::new();
    };
    section.only(reader, &SETTINGS);
    let entries = section.table.entries.iter();
    entries
        .filter_map(|entry| {
            let text = reader.text(&entry.node, &section.name_of(&entry.name))?;
            template(reader, entry.node.place, "the setting", &text);
            Some((entry.name.clone(), text))
        })
        .collect()
}

/// A filled-in setting: `on` and `off` for what is true or false; nothing for what comes out
/// empty, which does not apply to this server as it is set.
pub(super) fn setting_value(filled: &str) -> Option<String> {
    Some(match filled.trim() {
        "" => return None,
        "true" | "True" => "on".to_owned(),
        "false" | "False" => "off".to_owned(),
        other => other.to_owned(),
    })
}
