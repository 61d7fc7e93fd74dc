//! Traffic that lasts.

use std::time::Duration;

use crate::support::{good, parse};
use experiment::{Experiment, HttpVersion, Rate};
use readings::{Condition, EventFormat, TrafficKind};

/// An experiment with these lines in `[load]`, and these after it.
fn with(load: &str, more: &str) -> String {
    format!(
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\nb = \"http://127.0.0.1:2/\"\n\
         [load]\n{load}\n{more}"
    )
}

fn read(load: &str, more: &str) -> Experiment {
    let experiment = good(parse(&with(load, more)));
    let written = experiment.to_toml();
    assert_eq!(good(parse(&written)), experiment, "{written}");
    experiment
}

#[test]
fn each_kind_is_read_and_written_back() {
    let events = read("events = \"lines\"\npace = \"20ms\"\nstall = \"1s\"", "");
    let traffic = &events.load.traffic;
    assert_eq!(traffic.kind(), TrafficKind::Events);
    assert_eq!(traffic.events, Some(EventFormat::Lines));
    assert_eq!(traffic.pace, Some(Duration::from_millis(20)));
    assert_eq!(traffic.stall, Some(Duration::from_secs(1)));
    assert!(events.design.latency_window.is_zero(), "the sender's pace");
    assert!(!events.design.bottleneck);
    let with_rate = read("events = true\nrate = 10", "");
    assert!(!with_rate.design.latency_window.is_zero());

    let text = "websocket = true\nconnections = 20\nin_flight = 4\nmessage_bytes = 100\n\
                message_rate = \"2/s\"\nretire_after = 10";
    let echo = read(text, "");
    assert_eq!(echo.load.traffic.kind(), TrafficKind::WebSocket);
    assert_eq!(echo.load.traffic.retire_after, Some(10));
    let load = echo.under(&Condition::new()).load;
    assert_eq!(load.rate, Rate::PerSecond(40.0));
    assert_eq!(load.requests_per_connection, None);

    let text = "websocket = true\nconnections = 20\nmessage_rate = \"2/s\"\nfan_out =";
    for (written, members) in [("true", 0), ("10", 10)] {
        let topics = read(
            &format!("{text} {written}"),
            "[gates]\nall = \"reach > 99.9%\"",
        );
        assert_eq!(topics.load.traffic.fan_out, Some(members));
        assert_eq!(topics.under(&Condition::new()).load.rate, Rate::Auto);
        assert!(topics.design.latency_window.is_zero(), "the topics' pace");
    }
    let only = read("websocket = true\nreceive = true", "");
    assert!(only.load.traffic.receive && only.design.latency_window.is_zero());

    let text = "grpc = \"weigh.v1.Echo/Unary\"\nbody = \"\\n\\u0005hello\"\ncall_messages = 3\ndeadline = \"2s\"\nstreams = 8";
    let both = read(&format!("{text}\nin_flight = 4"), "");
    assert_eq!(both.load.traffic.in_flight, Some(4));
    let grpc = read(text, "");
    assert_eq!(grpc.load.traffic.kind(), TrafficKind::Grpc);
    let subject = &grpc.under(&Condition::new()).subjects[0];
    assert_eq!(
        (subject.http, subject.streams),
        (HttpVersion::Http2, Some(8))
    );
}

#[test]
fn keys_of_traffic_are_factors() {
    let factors = "[factors]\nmessage_rate = [\"1/s\", 2]\nmessage_bytes = [32, 1024]";
    let experiment = read("websocket = true\nconnections = 10", factors);
    let rates = experiment.conditions();
    let rates = rates.iter().map(|one| experiment.under(one).load.rate);
    let wanted = [10.0, 10.0, 20.0, 20.0].map(Rate::PerSecond);
    assert_eq!(rates.collect::<Vec<_>>(), wanted);
    assert_eq!(experiment.open_loop_factors(), ["message_rate"]);
    let several = "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n\
                   [loads.send]\nwebsocket = true\n[loads.hear]\nrole = \"background\"\n\
                   websocket = true\n[factors]\n\"send.in_flight\" = [1, 2]";
    assert_eq!(good(parse(several)).conditions().len(), 2);
}

#[cfg(feature = "full")]
mod schemas {
    use std::path::Path;

    use crate::support::{recipes, scratch};
    use experiment::{Experiment, ExperimentError};
    use readings::Condition;

    const ORDERS: &str = "syntax = \"proto3\";\npackage shop;\nimport \"money.proto\";\n\
                          message Order { string name = 1; Money price = 2; }\n\
                          service Orders {\n  rpc Place(Order) returns (Order);\n  \
                          rpc Watch(Order) returns (stream Order);\n}\n";
    const MONEY: &str = "syntax = \"proto3\";\npackage shop;\nmessage Money { int64 cents = 1; }\n";

    fn read(folder: &Path, more: &str) -> Result<Experiment, ExperimentError> {
        std::fs::create_dir_all(folder.join("imports")).unwrap();
        for (name, text) in [
            ("orders.proto", ORDERS),
            ("imports/money.proto", MONEY),
            ("order.json", r#"{"name": "b", "price": {"cents": "5"}}"#),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        std::fs::write(folder.join("message.bin"), b"\xff\xfe").unwrap();
        let path = folder.join("x.toml");
        let proto = "proto = \"orders.proto\"\nproto_path = [\".\", \"imports\"]\n";
        let text = super::with(&more.replace("PROTO", proto), "");
        std::fs::write(&path, text).unwrap();
        Experiment::read(&path, &[], false, recipes())
    }

    /// The message and which sides stream, also of the experiment as it is written out.
    fn call(folder: &Path, more: &str) -> Option<(Vec<u8>, bool, bool)> {
        let experiment = read(folder, more).unwrap();
        let again = Experiment::parse("run.toml", &experiment.to_toml(), &[], false, recipes());
        assert_eq!(again.unwrap(), experiment);
        let call = experiment.under(&Condition::new()).load.traffic.call;
        call.map(|call| {
            (
                call.message.clone(),
                call.client_streams,
                call.server_streams,
            )
        })
    }

    #[test]
    fn json_is_the_message_that_the_schema_describes() {
        let folder = scratch("schemas-of-calls");
        let price = b"\x0a\x01b\x12\x02\x08\x05".to_vec();
        let place = "grpc = \"shop.Orders/Place\"\nPROTO";
        let of_file = call(&folder, &format!("{place}body_file = \"order.json\""));
        assert_eq!(of_file, Some((price, false, false)));
        let inline = call(&folder, &format!("{place}body = '{{\"name\": \"a\"}}'"));
        assert_eq!(inline, Some((b"\x0a\x01a".to_vec(), false, false)));
        let watch = "grpc = \"shop.Orders/Watch\"\nPROTO";
        assert_eq!(call(&folder, watch), Some((Vec::new(), false, true)));
        assert!(
            read(&folder, watch)
                .unwrap()
                .design
                .latency_window
                .is_zero()
        );
        // Any bytes are a message without a schema, and JSON needs the server's.
        let bytes = call(&folder, "grpc = \"a.B/C\"\nbody_file = \"message.bin\"");
        assert_eq!(bytes, Some((b"\xff\xfe".to_vec(), false, false)));
        assert_eq!(call(&folder, "grpc = \"a.B/C\"\nbody = \"{}\""), None);
    }

    #[test]
    fn what_does_not_fit_the_schema_is_told_with_its_key() {
        let folder = scratch("schemas-that-do-not-fit");
        let place = "grpc = \"shop.Orders/Place\"\nPROTO";
        for (more, part) in [
            (
                "grpc = \"shop.Orders/Plce\"\nPROTO",
                "`grpc`: the service shop.Orders has no method",
            ),
            (
                &*format!("{place}body = '{{\"nmae\": 1}}'"),
                "did you mean `name`?",
            ),
            (
                &*format!("{place}in_flight = 2"),
                "`in_flight`: shop.Orders/Place does not stream",
            ),
            (
                &*format!("{place}call_messages = 2"),
                "`call_messages`: shop.Orders/Place takes one",
            ),
            (
                &*format!("{place}body = '{{}}'\nbody_file = \"order.json\""),
                "`body_file` and `body`",
            ),
            ("grpc = \"a.B/C\"\nproto = \"orders.proto\"", "money.proto"),
            ("grpc = \"a.B/C\"\nproto = \"absent.proto\"", "absent.proto"),
            ("grpc = \"a.B/C\"\nbody_file = \"absent\"", "No such file"),
            ("body_file = \"order.json\"", "`body_file` needs `grpc`"),
        ] {
            let error = read(&folder, more).unwrap_err();
            let said = format!("{error:?} {error}");
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    }
}
