//! What is said on the connections of a comparison: events, WebSockets and gRPC calls, as keys of
//! the experiment that it is.

use std::borrow::Cow;
use std::time::Duration;

use experiment::ExperimentBuilder;

use crate::cli::CompareArgs;
use crate::failure::Failure;

/// A subject's URL as experiments have it: `http` for `ws`, and whether it was that of a WebSocket.
pub(super) fn url(text: &str) -> (Cow<'_, str>, bool) {
    match text.strip_prefix("ws") {
        Some(rest) if rest.starts_with("://") || rest.starts_with("s://") => {
            (format!("http{rest}").into(), true)
        }
        _ => (text.into(), false),
    }
}

/// Adds the keys. `websockets` has, for each subject, whether its URL is that of a WebSocket.
///
/// # Errors
/// When options or URLs do not fit together.
pub(super) fn add(
    args: &CompareArgs,
    websockets: &[bool],
    builder: &mut ExperimentBuilder,
) -> Result<(), Failure> {
    let traffic = &args.traffic;
    let is_websocket = websockets.contains(&true);
    if is_websocket && websockets.contains(&false) {
        return Err(Failure::words(
            "expected ws:// or wss:// URLs for all subjects or for none: messages are not compared \
             with requests",
        ));
    }
    let are_calls = traffic.grpc.method_name.is_some();
    if !is_websocket && let Some(option) = traffic.websocket.given(are_calls) {
        return Err(Failure::words(format!(
            "{option} is for WebSockets; expected ws:// or wss:// URLs"
        )));
    }
    let refused = [
        ("--messages", traffic.websocket.messages.is_some()),
        ("--binary", traffic.websocket.binary),
        ("--deflate", traffic.websocket.deflate),
    ];
    if let Some((option, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::words(format!(
            "{option} is an option of `weigh load`, not of comparisons: leave it out"
        )));
    }
    let mut time = |option: &str, key: &str, value: Option<Duration>| {
        if let Some(value) = value {
            let text = format!("{}us", value.as_micros());
            builder.option(&format!("{option} {text}"), &["load", key], text.as_str());
        }
    };
    time("--pace", "pace", traffic.events.pace);
    time("--stall", "stall", traffic.events.stall);
    time("--deadline", "deadline", traffic.grpc.deadline);
    let websocket = &traffic.websocket;
    let retire_after = websocket.retire_after;
    let counts = [
        ("--message-bytes", "message_bytes", websocket.message_bytes),
        ("--in-flight", "in_flight", websocket.in_flight),
        (
            "--retire-after",
            "retire_after",
            retire_after.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        ),
        (
            "--call-messages",
            "call_messages",
            traffic.grpc.call_messages,
        ),
    ];
    for (option, key, count) in counts {
        if let Some(count) = count {
            builder.option(&format!("{option} {count}"), &["load", key], count);
        }
    }
    if let Some(rate) = websocket.message_rate {
        builder.option(
            &format!("--message-rate {rate}"),
            &["load", "message_rate"],
            rate,
        );
    }
    if let Some(format) = traffic.events.events {
        let name = load::EventFormat::from(format).name();
        let path = ["load", "events"];
        match name {
            "auto" => builder.option("--events", &path, true),
            name => builder.option(&format!("--events={name}"), &path, name),
        }
    }
    if let Some(method) = &traffic.grpc.method_name {
        let written = format!("--grpc {method}");
        builder.option(&written, &["load", "grpc"], method.as_str());
    }
    let grpc = &traffic.grpc;
    for (option, key, paths) in [
        ("--proto", "proto", &grpc.proto),
        ("--proto-path", "proto_path", &grpc.proto_path),
    ] {
        let paths: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        if !paths.is_empty() {
            let written = format!("{option} {}", paths.join(&format!(" {option} ")));
            builder.option(&written, &["load", key], paths);
        }
    }
    if websocket.receive {
        builder.option("--receive", &["load", "receive"], true);
    }
    match websocket.fan_out {
        Some(0) => builder.option("--fan-out", &["load", "fan_out"], true),
        Some(members) => {
            let written = format!("--fan-out={members}");
            builder.option(&written, &["load", "fan_out"], members);
        }
        None => {}
    }
    if is_websocket {
        builder.set(&["load", "websocket"], true);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_websockets_are_told_from_others() {
        assert_eq!(url("ws://h:1/a"), ("http://h:1/a".into(), true));
        assert_eq!(url("wss://h:1/a"), ("https://h:1/a".into(), true));
        assert_eq!(url("http://h:1/a"), ("http://h:1/a".into(), false));
        assert_eq!(url("wsx://h"), ("wsx://h".into(), false));
    }
}
