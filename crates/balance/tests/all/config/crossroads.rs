//! What the owner of a Crossroads file relies on.

use std::path::PathBuf;
use std::time::Duration;
use testing::Text as _;

use balance::config::model::{
    Dispatch, EditKind, Inspect, Recipient, Service, ServiceKind, StickyCookie, Weight,
};
use balance::config::{Syntax, WarningKind, parse_file, parse_text, write};
use balance::{Config, ConfigError, Warning};

use crate::support::control::Folder;

use super::{assert_said, mistakes_of, rows};

fn parse(text: &str) -> Result<(Config, Vec<Warning>), ConfigError> {
    parse_text("crossroads.conf", text, Syntax::Crossroads)
}

fn good(text: &str) -> Config {
    match parse(text) {
        Ok((config, _)) => config,
        Err(error) => panic!("{text}\n{:?}", miette::Report::new(error)),
    }
}

/// The mistakes as `line: message; help`.
fn mistakes(text: &str) -> Vec<String> {
    mistakes_of(parse(text).expect_err(text), "crossroads.conf")
}

/// A file with one service and one back end, which have these statements besides.
fn with(service: &str, backend: &str) -> String {
    format!(
        "service web {{\nport 8080; {service}\nbackend one {{\nserver 10.0.0.1:80; {backend}\n}}\n}}\n"
    )
}

fn service(statements: &str, backend: &str) -> Service {
    good(&with(statements, backend)).services.remove(0)
}

#[test]
fn the_two_configurations_of_the_published_benchmarks_are_read() {
    let squid = good(
        "service HttpProxy {\n    port 8080;\n    verbosity on;\n    backend LocalSquid {\n        \
         server 127.0.0.1;\n        port 3128;\n        verbosity on;\n    }\n}\n",
    );
    let [service] = squid.services.as_slice() else {
        panic!()
    };
    assert_eq!(
        (service.name.as_str(), service.kind),
        ("HttpProxy", ServiceKind::Tcp)
    );
    assert_eq!(service.listen, ["0.0.0.0:8080".parse().unwrap()]);
    assert_eq!(service.backends[0].address.to_string(), "127.0.0.1:3128");
    let lvs = good(
        "service http {\n    port 81;\n    dispatchmode roundrobin;\n    revivinginterval 5;\n    \
         backend one {\n        server 10.1.1.100;\n        port 80;\n    }\n    backend two {\n        \
         server 10.1.1.101;\n        port 80;\n    }\n}\n",
    );
    let [service] = lvs.services.as_slice() else {
        panic!()
    };
    assert_eq!(service.dispatch, Dispatch::RoundRobin);
    assert_eq!(service.reviving_interval, Duration::from_secs(5));
    let addresses: Vec<String> = service
        .backends
        .iter()
        .map(|b| b.address.to_string())
        .collect();
    assert_eq!(addresses, ["10.1.1.100:80", "10.1.1.101:80"]);
}

#[test]
fn every_keyword_of_a_service_is_understood() {
    let one = service(
        "type http; headerinspection off; bindto 127.0.0.1; verbosity yes; dispatchmode bysize \
         over 10; revivinginterval 0; checkinterval 3; maxconnections 100; backlog 128; shmkey \
         7; allowfrom 10/8 192.168.1.7; allowfrom 172.16/12; denyfrom 10.9; allowfile /a; \
         denyfile /d; trustedproxies 10.1.1.1; trustedproxies 10.1.1.2; useraccount nobody;",
        "",
    );
    assert_eq!(one.listen, ["127.0.0.1:8080".parse().unwrap()]);
    assert_eq!(
        one.kind,
        ServiceKind::Http {
            inspect: Inspect::FirstMessage
        }
    );
    assert_eq!(one.dispatch, Dispatch::BySize { over: Some(10) });
    assert_eq!(one.reviving_interval, Duration::ZERO);
    assert_eq!(one.check_interval, Duration::from_secs(3));
    assert_eq!((one.connections_max, one.backlog), (Some(100), 128));
    let allow: Vec<String> = one.access.allow.iter().map(ToString::to_string).collect();
    assert_eq!(allow, ["10.0.0.0/8", "192.168.1.7/32", "172.16.0.0/12"]);
    assert_eq!(one.access.deny[0].to_string(), "10.9.0.0/16");
    assert_eq!(one.access.allow_file, Some(PathBuf::from("/a")));
    assert_eq!(one.access.deny_file, Some(PathBuf::from("/d")));
    let proxies: Vec<String> = one
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(proxies, ["10.1.1.1/32", "10.1.1.2/32"]);
    assert_eq!(one.user_account.as_deref(), Some("nobody"));
}

#[test]
fn every_keyword_of_a_back_end_is_understood() {
    let one = service(
        "type http;",
        "verbosity off; retries 2; maxconnections 7; weight 3; decay 10; onstart /bin/a %r; onend \
         /bin/b; onfail \"/bin/c; x\"; trafficlog /t; throughputlog /p; stickycookie \"Id=one\"; \
         addclientheader \"Set-Cookie: Id=one; path=/\"; appendserverheader \"X-Forwarded-For: \
         %r\"; setserverheader \"Host: x.example.org\"; addserverheader \"A: 1\"; \
         appendclientheader \"Via: 1.1 x\"; setclientheader \"Server: y\"; sessiontimeout 60;",
    )
    .backends
    .remove(0);
    assert_eq!((one.retries, one.connections_max), (2, Some(7)));
    assert_eq!((one.weight, one.decay_percent), (Weight::Penalty(3), 10));
    assert_eq!(one.hooks.on_start.unwrap().to_string(), "/bin/a %r");
    assert_eq!(one.hooks.on_fail.unwrap().to_string(), "/bin/c; x");
    assert_eq!(one.traffic_log, Some(PathBuf::from("/t")));
    assert_eq!(one.session_timeout, Duration::from_secs(60));
    assert_eq!(
        one.sticky_cookie,
        Some(StickyCookie {
            name: "Id".to_owned(),
            value: "one".to_owned(),
            set: false,
        }),
        "the header sets it already"
    );
    let edits: Vec<_> = one
        .header_edits
        .iter()
        .map(|edit| (edit.recipient, edit.how, edit.name.as_str()))
        .collect();
    assert_eq!(
        edits,
        [
            (Recipient::Client, EditKind::Add, "Set-Cookie"),
            (Recipient::Server, EditKind::Append, "X-Forwarded-For"),
            (Recipient::Server, EditKind::Set, "Host"),
            (Recipient::Server, EditKind::Add, "A"),
            (Recipient::Client, EditKind::Append, "Via"),
            (Recipient::Client, EditKind::Set, "Server"),
        ]
    );
    assert_eq!(one.header_edits[0].value.to_string(), "Id=one; path=/");
}

#[test]
fn every_dispatch_mode_has_its_words() {
    for (text, mode) in [
        ("roundrobin", Dispatch::RoundRobin),
        ("random", Dispatch::Random),
        ("bysize", Dispatch::BySize { over: None }),
        ("byduration over 3", Dispatch::ByDuration { over: Some(3) }),
        ("byconnections", Dispatch::ByConnections { over: None }),
        ("byorder", Dispatch::ByOrder),
        ("byclientip", Dispatch::ByClientIp),
    ] {
        assert_eq!(service(&format!("dispatchmode {text};"), "").dispatch, mode);
    }
    let Dispatch::External { command } =
        service("dispatchmode externalhandler /usr/bin/pick %r over 3;", "").dispatch
    else {
        panic!()
    };
    assert_eq!(command.to_string(), "/usr/bin/pick %r over 3");
}

#[test]
fn mistakes_are_shown_in_their_lines_with_what_to_write() {
    // A statement of the service, one of the back end, and what is said.
    let cases = include_str!("crossroads/mistakes.txt");
    for [service, backend, says] in rows(cases) {
        let text = with(&service, &backend);
        assert_said(&mistakes(&text), &says, &text);
    }
    let text = with("dispatchmode externalhandler /bin/choose \u{19} %r;", "");
    assert_said(&mistakes(&text), "externalhandler and a command", &text);
}

#[test]
fn what_is_missing_is_named() {
    let cases = include_str!("crossroads/missing.txt");
    for [text, says] in rows(cases) {
        assert_said(&mistakes(&text), &says, &text);
    }
}

#[test]
fn a_misspelt_keyword_is_the_only_mistake() {
    assert_eq!(
        mistakes("service a {\n prot 80;\n backend b { srever x; port 1; }\n}").len(),
        2
    );
}

#[test]
fn names_and_addresses_are_used_once() {
    let found = mistakes(
        "service a { port 1; backend b { server x:1; } backend b { server x:2; } }\n\
         service a { port 1; backend c { server 0.0.0.0:1; } }\n\
         service d { type http; port 2; backend e { server x:1; stickycookie a=1; }\n\
         backend f { server y:1; stickycookie a=1; } }\n",
    );
    for says in [
        "1: two back ends are called `b`",
        "2: two services are called `a`",
        "2: 0.0.0.0:1 is listened on twice",
        "2: the balancer would be its own upstream",
        "4: two back ends of `d` have the sticky cookie a=1",
    ] {
        let is_said = found.iter().any(|one| one.starts_with(says));
        assert!(is_said, "{says}: {found:#?}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_shown_up_to_a_bound() {
    let text = format!("service a {{ {} }}", "wrong 1;\n".repeat(30));
    let error = parse(&text).unwrap_err();
    assert!(error.to_string().contains("30 mistakes"), "{error}");
    assert_eq!(error.mistakes().len(), 20);
}

#[test]
fn what_no_manual_confirms_is_told() {
    let (_, warnings) = parse(&with(
        "verbosity on; checkinterval 3; dispatchmode byduration over 5; shmkey 3; maxconnections 0;",
        "weight 2; decay 5; onfail /bin/x %b;",
    ))
    .unwrap();
    let told: Vec<(usize, bool, &str)> = warnings
        .iter()
        .map(|one| match &one.kind {
            WarningKind::Unconfirmed { what, .. } => (one.line, true, what.as_str()),
            WarningKind::Ignored { what, .. } => (one.line, false, what.as_str()),
        })
        .collect();
    assert_eq!(
        told,
        [
            (2, false, "verbosity"),
            (2, true, "checkinterval"),
            (2, true, "dispatchmode byduration over"),
            (2, false, "shmkey"),
            (2, true, "maxconnections 0"),
            (4, true, "weight"),
            (4, true, "decay"),
            (4, true, "onfail %b"),
        ]
    );
    warnings[1]
        .to_string()
        .begins("crossroads.conf:2:26: `checkinterval`");
    assert_eq!(parse(&with("", "")).unwrap().1, []);
}

#[test]
fn files_include_each_other_and_share_their_symbols() {
    let folder = Folder::new();
    folder.write(
        "parts/one.conf",
        "#include \"../ports.conf\"\nbackend one { server x:WEBPORT; port WEBPORT; }\n",
    );
    folder.write("ports.conf", "#define WEBPORT 8081\n");
    let path = folder.write(
        "all.conf",
        "service web {\nport 80;\n#include \"parts/one.conf\"\n}\n",
    );
    let error = parse_file(&path).unwrap_err();
    // A symbol is a whole word: `x:WEBPORT` has none in it. The mistake is in its own file.
    let (file, line) = error.mistakes()[0].line().unwrap();
    assert!(file.ends_with("parts/one.conf"), "{file}");
    assert_eq!(line, 2);
    folder.write(
        "parts/one.conf",
        "#include \"../ports.conf\"\nbackend one { server x; port WEBPORT; }\n",
    );
    let (config, _) = parse_file(&path).unwrap();
    assert_eq!(config.services[0].backends[0].address.to_string(), "x:8081");
}

#[test]
fn files_that_include_themselves_are_refused() {
    let folder = Folder::new();
    let path = folder.write("a.conf", "#include \"b.conf\"\n");
    folder.write("b.conf", "\n#include \"a.conf\"\n");
    let error = parse_file(&path).unwrap_err();
    let message = error.mistakes()[0].message();
    assert!(message.contains("includes itself"), "{message}");
    // By another name each time, and many of them: still bounded.
    folder.write("c.conf", &"#include \"./././c.conf\"\n".repeat(3));
    let path = folder.write("d.conf", "#include \"c.conf\"\n");
    let error = parse_file(&path).unwrap_err();
    assert!(error.to_string().contains("mistakes"), "{error}");
    let absent = folder.write("e.conf", "#include \"absent.conf\"\n");
    let error = parse_file(&absent).unwrap_err();
    error.to_string().has("absent.conf cannot be read");
}

#[test]
fn a_file_that_is_no_text_or_too_large_is_refused() {
    let folder = Folder::new();
    let path = folder.write("large.conf", "");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(100 << 20)
        .unwrap();
    assert!(
        parse_file(&path)
            .unwrap_err()
            .to_string()
            .contains("at most")
    );
    std::fs::write(&path, b"service \xff\xfe").unwrap();
    assert!(
        parse_file(&path)
            .unwrap_err()
            .to_string()
            .contains("not UTF-8")
    );
}

#[test]
fn what_is_read_is_the_same_as_toml() {
    let one = good(&with(
        "type http; headerinspection on; dispatchmode byconnections over 4; allowfrom 10/8;",
        "weight 2; stickycookie a=b; setserverheader \"X: %r %% %b\"; onfail \"a \\\"b\\\"\";",
    ));
    let text = write::toml(&one);
    let (again, _) = parse_text("x.toml", &text, Syntax::Native).unwrap();
    assert_eq!(again, one, "{text}");
}

#[test]
fn version_2_is_named_where_it_is_found() {
    for text in [
        "xr -s tcp:0:80 -b 10.1.1.1:80 -d l\n",
        "#!/bin/sh\nexec /usr/sbin/xr --verbose \\\n  --server http:127.0.0.1:8080\n",
        "\n<configuration><service><backend/></service></configuration>",
    ] {
        let found = mistakes(text);
        assert!(found.len() == 1 && found[0].contains("Crossroads 2.x has options of `xr`"));
    }
    // Version 1 may name the program.
    good(&with("", "onstart xr -s tcp:0:80;"));
}
