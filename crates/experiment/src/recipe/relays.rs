//! `[relays]`: which traffic besides requests with one answer a server passes on.

use std::collections::BTreeMap;

use config::reader::Reader;
use config::section::Section;
use readings::{HttpVersion, TrafficKind};

use super::{Recipe, RecipeError, render};
use crate::manifest::{Value, template};

/// The kinds of traffic, by the keys of `[relays]`.
pub(super) const RELAYS: [&str; 3] = ["websocket", "websocket_http2", "grpc"];

/// Whether a server passes a kind of traffic on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relay {
    /// It does, or its recipe does not say.
    Yes,
    /// It cannot.
    No,
    /// It does once this parameter is set, such as `websocket = true`.
    With(String),
}

/// The table `[relays]`: names with templates; none where a recipe has no such table.
pub(super) fn relays(reader: &mut Reader, top: &Section<'_>) -> Vec<(String, String)> {
    let Some(section) = top.section(reader, "relays") else {
        return Vec::new();
    };
    section.only(reader, &RELAYS);
    let entries = section.table.entries.iter();
    entries
        .filter_map(|entry| {
            let text = reader.text(&entry.node, &section.name_of(&entry.name))?;
            template(reader, entry.node.place, "the answer", &text);
            Some((entry.name.clone(), text))
        })
        .collect()
}

impl Recipe {
    /// Whether a server with these parameters, which are complete, passes this traffic on to
    /// upstreams. `http`: the version that its clients speak.
    ///
    /// # Errors
    /// When a template of `[relays]` fails.
    pub fn relays(
        &self,
        traffic: TrafficKind,
        http: HttpVersion,
        params: &BTreeMap<String, Value>,
    ) -> Result<Relay, RecipeError> {
        let key = match (traffic, http) {
            (TrafficKind::Answers | TrafficKind::Events, _) => return Ok(Relay::Yes),
            (TrafficKind::WebSocket, HttpVersion::Http2) => "websocket_http2",
            (TrafficKind::WebSocket, _) => "websocket",
            (TrafficKind::Grpc, _) => "grpc",
        };
        let Some((_, text)) = self.relays.iter().find(|(name, _)| name == key) else {
            return Ok(Relay::Yes);
        };
        let filled = render::filled_params(self, params, &format!("relays.{key}"), text)?;
        Ok(match filled.trim() {
            "yes" => Relay::Yes,
            "no" => Relay::No,
            param => Relay::With(param.to_owned()),
        })
    }
}
