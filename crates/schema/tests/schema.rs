//! Methods, messages and mistakes, by a schema in files and by one that a server gives.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use net::grpc::echo;
use prost_reflect::prost::Message as _;
use schema::{Method, MethodName, NotAsked, SchemaError, from_files, from_server};

const ORDERS: &str = include_str!("schema/orders.proto");
const MONEY: &str = r#"syntax = "proto3";
package shop.common;
message Money { int64 cents = 1; }
"#;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder() -> Folder {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("weigh-schema-{}-{number}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir(folder.path()).unwrap();
    std::fs::create_dir(folder.path().join("common")).unwrap();
    std::fs::write(folder.path().join("orders.proto"), ORDERS).unwrap();
    std::fs::write(folder.path().join("common/money.proto"), MONEY).unwrap();
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    vec![folder.join("orders.proto")]
}

fn name(text: &str) -> MethodName {
    MethodName::parse(text).unwrap()
}

fn place(folder: &Folder) -> Method {
    from_files(&name("shop.v1.Orders/Place"), &files(folder.path()), &[]).unwrap()
}

#[test]
fn json_becomes_the_message_that_the_files_describe() {
    let folder = folder();
    let method = place(&folder);
    assert!(!method.is_client_stream() && !method.is_server_stream());
    let json = r#"{"customerName": "Ada", "items": [{"count": 2, "price": {"cents": "300"}}],
                   "gifts": {"a": {"count": 1}}, "placed": "2026-01-02T03:04:05Z", "state": "PAID"}"#;
    let expected =
        b"\x0a\x03Ada\x12\x07\x08\x02\x12\x03\x08\xac\x02\x1a\x07\x0a\x01a\x12\x02\x08\x01\
                     \x22\x06\x08\xa5\xeb\xdc\xca\x06\x28\x01";
    assert_eq!(method.message(json).unwrap(), expected);
    // Names as in the file are as good.
    let own = method.message(r#"{"customer_name": "Ada"}"#).unwrap();
    assert_eq!(own, b"\x0a\x03Ada");
    assert_eq!(method.message("{}").unwrap(), b"");
    let kind = |text: &str| {
        let found = from_files(&name(text), &files(folder.path()), &[]).unwrap();
        (found.is_client_stream(), found.is_server_stream())
    };
    assert_eq!(kind("shop.v1.Orders/Watch"), (false, true));
    assert_eq!(kind("shop.v1.Orders/Upload"), (true, false));
}

#[test]
fn mistakes_in_a_message_are_named_with_their_place() {
    let folder = folder();
    let method = place(&folder);
    for (json, what) in [
        (
            r#"{"costumerName": 1}"#,
            "costumerName: the message shop.v1.Order has no such field; did you mean `customer_name`?",
        ),
        (
            r#"{"items": [{}, {"cuont": 1}]}"#,
            "items[1].cuont: the message shop.v1.Item has no such field; did you mean `count`?",
        ),
        (
            r#"{"gifts": {"a": {"price": {"x": 1}}}}"#,
            "gifts.a.price.x: the message shop.common.Money has no such field; known fields: `cents`",
        ),
        (
            "{\"customer_name\":\n  7}",
            "not a message shop.v1.Order: invalid type: integer `7`, expected a string at line 2",
        ),
        (r#"{"items": [{"count": 3000000000}]}"#, "line 1 column"),
        (r#"{"state": "PAYED"}"#, "line 1 column"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        (r#"{} {}"#, "trailing characters at line 1 column 4"),
        ("[]", "not a message shop.v1.Order: invalid type"),
    ] {
        let said = method.message(json).unwrap_err().to_string();
        assert!(said.contains(what), "{json}: {said}");
    }
}

#[test]
fn a_method_that_there_is_not_is_named_with_the_nearest() {
    let folder = folder();
    let said = |text: &str| {
        let found = from_files(&name(text), &files(folder.path()), &[]);
        found.unwrap_err().to_string()
    };
    assert_eq!(
        said("shop.v1.Orders/place"),
        "the service shop.v1.Orders has no method `place`; did you mean `Place`?"
    );
    assert_eq!(
        said("shop.Orders/Place"),
        "there is no service `shop.Orders`; did you mean `shop.v1.Orders`?"
    );
    for bad in ["", "shop.v1.Orders", "a/b/c", "/x", "a b/c"] {
        let error = MethodName::parse(bad).unwrap_err();
        assert!(matches!(error, SchemaError::Name(_)), "{bad}");
    }
    assert_eq!(name("/a.B/C"), name("a.B/C"));
}

#[test]
fn a_wrong_file_is_named_with_the_line() {
    let folder = folder();
    let said = || {
        let found = from_files(&name("a.B/C"), &files(folder.path()), &[]);
        found.unwrap_err().to_string()
    };
    std::fs::write(
        folder.path().join("orders.proto"),
        "syntax = \"proto3\";\n\nmessage {",
    )
    .unwrap();
    assert!(said().contains("orders.proto:3:9"), "{}", said());
    std::fs::write(
        folder.path().join("orders.proto"),
        "syntax = \"proto3\";\nimport \"no.proto\";",
    )
    .unwrap();
    assert!(
        said().contains("orders.proto:2:1") && said().contains("no.proto"),
        "{}",
        said()
    );
    std::fs::remove_file(folder.path().join("orders.proto")).unwrap();
    assert!(said().contains("orders.proto"), "{}", said());
}

/// A tag and the field behind it.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![tag << 3 | 2];
    prost_reflect::prost::encode_length_delimiter(bytes.len(), &mut out).unwrap();
    out.extend(bytes);
    out
}

/// Answers of a server that has these files, by name, and these services.
fn answer(message: &[u8], services: &[(&str, &str)], files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let text = std::str::from_utf8(&message[2..]).unwrap();
    let file = match message[0] >> 3 {
        3 => Some(text),
        4 => services.iter().find(|one| one.0 == text).map(|one| one.1),
        _ => {
            let listed = services
                .iter()
                .flat_map(|one| field(1, &field(1, one.0.as_bytes())));
            return field(6, &listed.collect::<Vec<_>>());
        }
    };
    match file.and_then(|name| files.iter().find(|one| one.0 == name)) {
        Some((_, bytes)) => field(4, &field(1, bytes)),
        None => field(7, b"\x08\x05\x12\x09not found"),
    }
}

#[test]
fn a_server_gives_the_files_one_by_one() {
    let folder = folder();
    let mut compiler = protox::Compiler::new([folder.path()]).unwrap();
    compiler.include_imports(true);
    compiler
        .open_file(folder.path().join("orders.proto"))
        .unwrap();
    let set = compiler.file_descriptor_set();
    let files: Vec<(&str, Vec<u8>)> = set
        .file
        .iter()
        .map(|one| (one.name(), one.encode_to_vec()))
        .collect();
    let services = [("shop.v1.Orders", "orders.proto")];
    // Only the older version of the service.
    let mut asked = Vec::new();
    let mut ask = |path: &str, message: &[u8]| {
        asked.push(path.contains("v1alpha"));
        match path.contains("v1alpha") {
            true => Ok(vec![answer(message, &services, &files)]),
            false => Err(NotAsked::Status {
                status: 12,
                message: "unknown service".into(),
            }),
        }
    };
    let method = from_server(&name("shop.v1.Orders/Place"), &mut ask).unwrap();
    assert_eq!(
        method.message(r#"{"customer_name": "Ada"}"#).unwrap(),
        b"\x0a\x03Ada"
    );
    let error = from_server(&name("shop.v1.Order/Place"), &mut ask).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no service `shop.v1.Order`; did you mean `shop.v1.Orders`?"
    );
    assert_eq!(asked[..2], [false, true]);
}

#[test]
fn a_server_without_reflection_says_so() {
    let refused = NotAsked::Status {
        status: 12,
        message: "unknown service".into(),
    };
    let error = from_server(&name("a.B/C"), |_, _| Err(refused.clone())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server gives no schema: it answers with grpc-status 12: unknown service"
    );
    for (bytes, what) in [
        (field(4, &field(1, b"\x0a\xff")), "a schema that is wrong"),
        (vec![0xff], "the server gives no schema"),
        // Nothing at all.
        (Vec::new(), "there is no service `a.B`"),
    ] {
        let error = from_server(&name("a.B/C"), |_, _| Ok(vec![bytes.clone()])).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn the_schema_of_the_built_in_service_is_one() {
    let files = [(echo::FILE_NAME, echo::FILE_DESCRIPTOR.to_vec())];
    let services = [(echo::SERVICE, echo::FILE_NAME)];
    let ask = |_: &str, message: &[u8]| Ok(vec![answer(message, &services, &files)]);
    let method = from_server(&name("weigh.v1.Echo/Paced"), ask).unwrap();
    assert!(method.is_server_stream() && !method.is_client_stream());
    let message = method
        .message(r#"{"messages": 3, "everyUs": 20000, "bytes": 100}"#)
        .unwrap();
    let request = echo::PacedRequest {
        messages: 3,
        every_us: 20_000,
        bytes: 100,
    };
    assert_eq!(echo::PacedRequest::decode(&message), Some(request));
}
