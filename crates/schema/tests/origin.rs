//! The schema that the built-in back end gives of itself.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use load::{Expect, Http2, Target, call};
use net::grpc::{decode_message, echo};
use origin::{Origin, OriginOptions};
use schema::{Method, MethodName, NotAsked, SchemaError, from_server};

#[test]
fn the_origin_says_what_its_methods_take() {
    let origin = Origin::start(&OriginOptions::default()).unwrap();
    let request = net::fetch::request("POST", "origin", "/", &[]);
    let mut target = Target::new(origin.address(), request, Expect::default());
    target.http2 = Some(Http2 { streams: 1 });
    let limit = Duration::from_secs(20);
    let find = |name: &str| -> Result<Method, SchemaError> {
        from_server(&MethodName::parse(name).unwrap(), |path, message| {
            let answer = call(&target, path, message, limit);
            answer.map_err(|error| match error {
                load::CallError::Status { status, message } => NotAsked::Status {
                    status,
                    message: decode_message(&message),
                },
                load::CallError::Other(why) => NotAsked::Other(why),
            })
        })
    };
    let method = find("weigh.v1.Echo/Unary").unwrap();
    let message = method.message(r#"{"payload": "aGk="}"#).unwrap();
    assert_eq!(echo::payload(&message), Some(&b"hi"[..]));
    let answered = call(&target, "/weigh.v1.Echo/Unary", &message, limit);
    assert_eq!(answered.unwrap(), [message]);
    let said = find("weigh.v1.Ecco/Unary").unwrap_err().to_string();
    assert!(said.contains("did you mean `weigh.v1.Echo`?"), "{said}");
    let said = find("weigh.v1.Echo/Unry").unwrap_err().to_string();
    assert!(said.contains("did you mean `Unary`?"), "{said}");
}
