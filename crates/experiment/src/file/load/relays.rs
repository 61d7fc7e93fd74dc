//! Whether the servers of a path pass a load's traffic on.

use readings::{HttpVersion, TrafficKind};

use crate::recipe::Relay;
use crate::recipes::Recipes;
use crate::spec::{ResolvedCondition, ServerSpec, SubjectSpec};
use config::reader::{Problem, Reader};
use config::section::Section;

/// Refuses the first server of a condition that cannot pass on what is sent through it.
pub(crate) fn check(
    reader: &mut Reader,
    top: &Section<'_>,
    resolved: &ResolvedCondition,
    recipes: &Recipes,
) {
    let beside = resolved.beside.iter().map(|one| (&one.load, &one.subjects));
    for (load, subjects) in beside.chain([(&resolved.load, &resolved.subjects)]) {
        let kind = load.traffic.kind();
        for subject in subjects {
            // Behind the first server of a path, what is spoken is that server's to say.
            let mut http = subject.http;
            for name in &subject.through {
                let server = resolved.servers.iter().find(|one| one.name == *name);
                if let Some(server) = server.filter(|one| !one.upstreams.is_empty()) {
                    let path = Path { subject, server };
                    path.check(reader, top, recipes, (kind, http));
                }
                http = HttpVersion::default();
                if !reader.is_clean() {
                    return;
                }
            }
        }
    }
}

/// A server on the path of a subject.
struct Path<'a> {
    subject: &'a SubjectSpec,
    server: &'a ServerSpec,
}

impl Path<'_> {
    fn check(
        &self,
        reader: &mut Reader,
        top: &Section<'_>,
        recipes: &Recipes,
        (kind, http): (TrafficKind, HttpVersion),
    ) {
        let Some(recipe) = recipes.get(&self.server.recipe) else {
            return;
        };
        // Parameters that do not fit were reported.
        let Ok(params) = recipe.fill(&self.server.params) else {
            return;
        };
        let what = match (kind, http) {
            (TrafficKind::WebSocket, HttpVersion::Http2) => "WebSockets over HTTP/2",
            (TrafficKind::WebSocket, _) => "WebSockets",
            _ => "gRPC",
        };
        let name = &self.server.name;
        let place = top.place_of(&["servers", name]).unwrap_or_default();
        let problem = |label: &str| {
            let recipe = &recipe.name;
            let message = format!("the server `{name}` (recipe `{recipe}`) does not relay {what}");
            Problem::at(place, message, label)
        };
        reader.report(match recipe.relays(kind, http, &params) {
            Ok(Relay::Yes) => return,
            Ok(Relay::No) => problem("the program cannot").help(format!(
                "leave the subject `{}` out, or choose another recipe",
                self.subject.name
            )),
            Ok(Relay::With(param)) => {
                problem("as it is set here").help(format!("write {param} in [servers.{name}.with]"))
            }
            Err(error) => Problem::at(place, error.to_string(), "its recipe"),
        });
    }
}
