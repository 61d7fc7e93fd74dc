//! gRPC calls, as the options describe them.

use load::{BodyRule, CallKind, Expect, Grpc, Request, StatusRule, Target, Traffic};

use super::target::Url;
use crate::cli::{HttpVersion, LoadArgs};
use crate::failure::Failure;

/// A message as it is sent, and the kind of its method.
struct Message {
    bytes: Vec<u8>,
    call: CallKind,
}

/// Makes a target one of gRPC calls, where the options ask for them.
///
/// # Errors
/// When options do not fit, or the message is not one that the method takes.
pub(super) fn complete(args: &LoadArgs, url: &Url, target: &mut Target) -> Result<(), Failure> {
    let given = &args.traffic.grpc;
    let Some(name) = &given.method_name else {
        return Ok(());
    };
    let others = [
        ("--urls", args.urls.is_some()),
        ("--events", args.traffic.events.events.is_some()),
        ("--idle", args.idle.idle.is_some()),
        ("--crawl", args.site.crawl),
        ("--method", args.request.method != "GET"),
        ("--http 3", args.version.http == HttpVersion::Http3),
        ("--no-keepalive", args.reuse.no_keepalive),
        ("--expect-status", args.answer.expect_status.is_some()),
    ];
    if let Some((option, _)) = others.iter().find(|(_, is_given)| *is_given) {
        let why = "calls are POST requests over HTTP/2, judged by their grpc-status";
        return Err(Failure::words(format!(
            "{option}: leave it out with --grpc: {why}"
        )));
    }
    if url.path != "/" {
        return Err(Failure::words(format!(
            "--grpc {name}: the method is the path; expected a URL without one, found `{}`",
            url.path
        )));
    }
    let path = path(name)?;
    let head = net::fetch::request("POST", &url.host, &path, &args.request.headers);
    let expect = target.requests[0].expect.clone();
    target.requests = vec![Request {
        name: path.trim_start_matches('/').to_owned(),
        bytes: head,
        expect,
        weight: 1,
    }];
    let message = message(args, name, target)?;
    let takes_stream = matches!(message.call, CallKind::ClientStream | CallKind::Both);
    let in_flight = args.traffic.websocket.in_flight;
    if in_flight.is_some() && message.call != CallKind::Both {
        return Err(Failure::words(format!(
            "--in-flight: {name} does not stream both ways; leave it out"
        )));
    }
    let messages = given.call_messages.unwrap_or(1);
    if messages > 1 && !takes_stream {
        return Err(Failure::words(format!(
            "--call-messages {messages}: {name} takes one message"
        )));
    }
    let request = &mut target.requests[0];
    request.bytes.extend_from_slice(&message.bytes);
    request.expect = Expect {
        status: StatusRule::Exactly(200),
        body: match (message.call, &request.expect.body) {
            // A stream may have no end to wait for.
            (CallKind::ServerStream | CallKind::Both, BodyRule::Auto) => BodyRule::Any,
            (_, rule) => rule.clone(),
        },
    };
    target.traffic = Traffic::Grpc(Grpc {
        call: message.call,
        messages,
        in_flight: in_flight.unwrap_or(1),
        deadline: given.deadline,
    });
    Ok(())
}

/// The path of a method.
fn path(name: &str) -> Result<String, Failure> {
    let is_name = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        !text.is_empty() && text.bytes().all(allowed)
    };
    match name.strip_prefix('/').unwrap_or(name).split_once('/') {
        Some((service, method)) if is_name(service) && is_name(method) => {
            Ok(format!("/{service}/{method}"))
        }
        _ => Err(Failure::words(format!(
            "--grpc {name}: expected PACKAGE.SERVICE/METHOD, such as weigh.v1.Echo/Unary"
        ))),
    }
}

fn message(args: &LoadArgs, name: &str, target: &Target) -> Result<Message, Failure> {
    let given = &args.traffic.grpc;
    let body = args.request.body.as_deref();
    let body = body.map(super::body::body).transpose()?;
    match body {
        Some(bytes) if !bytes.starts_with(b"{") && given.proto.is_empty() => Ok(Message {
            bytes,
            call: match (given.call_messages, args.traffic.websocket.in_flight) {
                (_, Some(_)) => CallKind::Both,
                (Some(_), None) => CallKind::ClientStream,
                (None, None) => CallKind::Unary,
            },
        }),
        body => by_schema(args, name, target, body),
    }
}

#[cfg(feature = "full")]
fn by_schema(
    args: &LoadArgs,
    name: &str,
    target: &Target,
    body: Option<Vec<u8>>,
) -> Result<Message, Failure> {
    use agent::schema_of;
    use schema::{MethodName, from_files};

    let given = &args.traffic.grpc;
    let wrong = |error: schema::SchemaError| Failure::words(format!("--grpc {name}: {error}"));
    let asked = MethodName::parse(name).map_err(wrong)?;
    let method = match given.proto.is_empty() {
        false => from_files(&asked, &given.proto, &given.proto_path).map_err(wrong)?,
        true => schema_of(target, &asked, args.limits.timeout).map_err(|error| match error {
            schema::SchemaError::Reflection(why) => Failure::failed(format!(
                "--grpc {name}: {}: {why}; name the schema with --proto FILE, or give an encoded \
                 message with --body @FILE",
                target.address
            )),
            other => wrong(other),
        })?,
    };
    let call = match (method.is_client_stream(), method.is_server_stream()) {
        (false, false) => CallKind::Unary,
        (false, true) => CallKind::ServerStream,
        (true, false) => CallKind::ClientStream,
        (true, true) => CallKind::Both,
    };
    let bytes = match body {
        Some(bytes) if !bytes.starts_with(b"{") => bytes,
        body => {
            let json = body.unwrap_or_else(|| b"{}".to_vec());
            let json = String::from_utf8(json)
                .map_err(|_| Failure::words("--body: expected JSON in UTF-8"))?;
            let message = method.message(&json);
            message.map_err(|error| Failure::words(format!("--body: {error}")))?
        }
    };
    Ok(Message { bytes, call })
}

#[cfg(not(feature = "full"))]
fn by_schema(
    _: &LoadArgs,
    name: &str,
    _: &Target,
    body: Option<Vec<u8>>,
) -> Result<Message, Failure> {
    match body {
        // The empty message, which every schema has.
        None => Ok(Message {
            bytes: Vec::new(),
            call: CallKind::Unary,
        }),
        Some(_) => Err(Failure::words(format!(
            "--grpc {name}: this build reads no schemas; build it with --features full, or give an \
             encoded message with --body @FILE and without --proto"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_a_path() {
        for good in ["a.v1.B/C", "/a.v1.B/C"] {
            assert_eq!(path(good).ok().as_deref(), Some("/a.v1.B/C"));
        }
        for bad in ["", "a.B", "a.B/", "/C", "a/b/c", "a b/c", "http://h/a.B/C"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
