//! WebSockets: ws:// and wss:// URLs, and the options that go with them.

use load::{BodyRule, Expect, StatusRule, Traffic, WebSocket};

use super::target::Url;
use crate::cli::{HttpVersion, LoadArgs};
use crate::failure::Failure;

/// The options that a load of messages has no use for, and what to do instead.
fn refused(args: &LoadArgs) -> Option<(&'static str, &'static str)> {
    let LoadArgs {
        length,
        reuse,
        request,
        answer,
        traffic,
        ..
    } = args;
    let content = "each echo is compared with its message: leave it out";
    let (messages, http) = ("give --messages N", "it needs an http:// URL");
    let version = args.version.http != HttpVersion::Http1;
    let requests = reuse.requests_per_connection.is_some();
    let contains = answer.expect_contains.is_some();
    let options = [
        ("--count", length.count.is_some(), messages),
        (
            "--each-connection",
            length.each_connection.is_some(),
            messages,
        ),
        (
            "--no-keepalive",
            reuse.no_keepalive,
            "give --retire-after 1",
        ),
        (
            "--requests-per-connection",
            requests,
            "give --retire-after N",
        ),
        (
            "--http",
            version,
            "WebSockets are supported over HTTP/1.1 only: leave it out",
        ),
        ("--streams", args.version.streams > 1, "give --in-flight N"),
        (
            "--method",
            request.method != "GET",
            "a WebSocket begins with GET: leave it out",
        ),
        ("--body", request.body.is_some(), "give --message-bytes N"),
        ("--expect-status", answer.expect_status.is_some(), content),
        ("--expect-contains", contains, content),
        ("--body-varies", answer.body_varies, content),
        ("--crawl", args.site.crawl, http),
        ("--grpc", traffic.grpc.method_name.is_some(), http),
        ("--events", traffic.events.events.is_some(), http),
        (
            "--idle-silent",
            args.idle.idle_silent,
            "a WebSocket begins with its handshake: leave it out",
        ),
        ("--urls", args.urls.is_some(), "give one URL"),
        (
            "--proxy",
            args.route.proxy.is_some(),
            "give the URL of the server, or of a reverse proxy before it",
        ),
    ];
    let given = options.into_iter().find(|(_, is_given, _)| *is_given);
    given.map(|(option, _, instead)| (option, instead))
}

/// The traffic that a URL and the options describe, and the answers that are good.
///
/// # Errors
/// When they do not go together.
pub(super) fn traffic(
    args: &LoadArgs,
    url: &Url,
    expect: Expect,
) -> Result<(Traffic, Expect), Failure> {
    let given = &args.traffic.websocket;
    if !url.is_websocket {
        let scheme = if url.is_tls { "wss" } else { "ws" };
        return match given.given(args.traffic.grpc.method_name.is_some()) {
            None => Ok((args.traffic.traffic(), expect)),
            Some(option) => Err(Failure::words(format!(
                "{option} is for WebSockets; expected {scheme}://{}{}",
                url.host, url.path
            ))),
        };
    }
    if let Some((option, instead)) = refused(args) {
        return Err(Failure::words(format!(
            "{option} does not go with a WebSocket; {instead}"
        )));
    }
    let has_rate = args.pacing.rate.is_some() || !args.pacing.stages.is_empty();
    if given.messages.is_some()
        && (args.length.duration.is_some() || !args.pacing.stages.is_empty())
    {
        return Err(Failure::words(
            "--messages does not go with --duration or --stages; leave out one of them",
        ));
    }
    if given.message_rate.is_some() && has_rate {
        return Err(Failure::words(
            "--message-rate is the rate of each connection or topic, --rate and --stages that of all; \
             leave out one of them",
        ));
    }
    if given
        .fan_out
        .is_some_and(|n| n > 0 && !args.connections().is_multiple_of(n))
    {
        return Err(Failure::words(format!(
            "--fan-out: expected a number that divides the {} connections",
            args.connections()
        )));
    }
    let of_handshake = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("sec-websocket-") || name == "upgrade" || name == "connection"
    };
    let mut headers = args.request.headers.iter();
    if let Some((name, _)) = headers.find(|(name, _)| of_handshake(name)) {
        return Err(Failure::words(format!(
            "--header {name}: the handshake has this field already; leave it out"
        )));
    }
    let websocket = WebSocket {
        in_flight: given.in_flight.unwrap_or(1),
        message_bytes: given.message_bytes.unwrap_or(32),
        is_binary: given.binary,
        deflate: given.deflate,
        paced_by_connection: given.message_rate.is_some(),
        flow: given.flow(args.connections()),
    };
    let expect = Expect {
        status: StatusRule::Exactly(101),
        body: BodyRule::Any,
    };
    Ok((Traffic::WebSocket(websocket), expect))
}
