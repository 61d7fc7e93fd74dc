//! Any configuration that is printed is read as itself, and no bytes do harm.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use balance::access::Prefix;
use balance::config::model::{
    Access, Address, Backend, BackendTls, Check, Config, Dispatch, EditKind, Ejection, HashKey,
    HeaderEdit, Hooks, Host, HttpVersion, HttpVersions, Inspect, LogFormat, Probing, ProxyVersion,
    Queue, Recipient, Service, ServiceKind, ServiceTls, SniRule, StickyCookie, Timeouts, Weight,
};
use balance::config::{Syntax, Template, Warning, WarningKind, parse_text, write};
use balance::health::State;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_.-]{1,12}"
}

fn token() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,10}"
}

/// Times that a file can say: whole microseconds, up to a week.
fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0..604_800u64).prop_map(Duration::from_secs),
        (1_000..604_800_000_000u64).prop_map(Duration::from_micros),
    ]
}

fn positive() -> impl Strategy<Value = Duration> {
    (1_000..604_800_000_000u64).prop_map(Duration::from_micros)
}

fn template() -> impl Strategy<Value = Template> {
    "[a-zA-Z0-9=;\"\\\\/ä{}]([a-zA-Z0-9 =;\"\\\\/äß{}]|%r|%b|%s|%%){0,12}[a-z]"
        .prop_map(|text| Template::parse(&text).unwrap())
}

fn path() -> impl Strategy<Value = PathBuf> {
    "/[a-z \"\\\\ä.]{0,12}/x".prop_map(PathBuf::from)
}

fn ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from),
    ]
}

fn prefixes() -> impl Strategy<Value = Vec<Prefix>> {
    vec(
        (ip(), 0..=128u8).prop_map(|(ip, bits)| Prefix::new(ip, bits)),
        0..3,
    )
}

fn dispatch() -> impl Strategy<Value = Dispatch> {
    let over = || option::of(1..=65_536u32);
    let key = prop_oneof![
        Just(HashKey::ClientIp),
        token().prop_map(HashKey::Header),
        token().prop_map(HashKey::Cookie),
        Just(HashKey::Path),
    ];
    prop_oneof![
        Just(Dispatch::RoundRobin),
        Just(Dispatch::Random),
        over().prop_map(|over| Dispatch::BySize { over }),
        over().prop_map(|over| Dispatch::ByDuration { over }),
        over().prop_map(|over| Dispatch::ByConnections { over }),
        Just(Dispatch::ByOrder),
        Just(Dispatch::ByClientIp),
        template().prop_map(|command| Dispatch::External { command }),
        Just(Dispatch::WeightedRoundRobin),
        Just(Dispatch::LeastConnections),
        positive().prop_map(|decay| Dispatch::PeakEwma { decay }),
        key.prop_map(|key| Dispatch::ConsistentHash { key }),
    ]
}

fn check() -> impl Strategy<Value = Check> {
    let http = (
        "/[a-z?=\"\\\\]{0,8}",
        option::of("[a-z.:0-9]{1,8}"),
        100..=599u16,
    )
        .prop_map(|(path, host, status)| Check::Http { path, host, status });
    prop_oneof![Just(Check::Tcp), http]
}

fn backend() -> impl Strategy<Value = Backend> {
    let host = prop_oneof![
        ip().prop_map(Host::Ip),
        "[a-z][a-z0-9]{0,6}(\\.[a-z]{1,5}){0,2}".prop_map(Host::Name),
    ];
    let weight = prop_oneof![
        (1..=1_000_000u32).prop_map(Weight::Share),
        (1..=1_000_000u32).prop_map(Weight::Penalty),
    ];
    let hooks = (
        option::of(template()),
        option::of(template()),
        option::of(template()),
    )
        .prop_map(|(on_start, on_end, on_fail)| Hooks {
            on_start,
            on_end,
            on_fail,
        });
    let cookie = (token(), "[a-zA-Z0-9=:/]{1,8}", any::<bool>())
        .prop_map(|(name, value, set)| StickyCookie { name, value, set });
    let edit = (
        select(&[Recipient::Client, Recipient::Server][..]),
        select(&[EditKind::Add, EditKind::Append, EditKind::Set][..]),
        "X-[a-zA-Z0-9-]{1,8}",
        template(),
    )
        .prop_map(|(recipient, how, name, value)| HeaderEdit {
            recipient,
            how,
            name,
            value,
        });
    (
        (name(), host, 1..=u16::MAX, weight, 0..=100u8),
        (
            option::of(1..=u32::MAX),
            0..=100u32,
            hooks,
            option::of(path()),
            option::of(path()),
        ),
        (
            option::of(cookie),
            vec(edit, 0..3),
            duration(),
            backend_tls(),
        ),
        option::of(select(&[ProxyVersion::V1, ProxyVersion::V2][..])),
        select(&[State::Available, State::Unavailable, State::Down][..]),
    )
        .prop_map(|(first, second, third, version, initial_state)| {
            let (name, host, port, weight, decay_percent) = first;
            let (connections_max, retries, hooks, traffic_log, throughput_log) = second;
            let (sticky_cookie, header_edits, session_timeout, tls) = third;
            Backend {
                weight,
                decay_percent,
                connections_max,
                retries,
                hooks,
                traffic_log,
                throughput_log,
                sticky_cookie,
                header_edits,
                session_timeout,
                proxy_protocol_out: version,
                tls,
                initial_state,
                ..Backend::new(&name, Address { host, port })
            }
        })
}

fn service() -> impl Strategy<Value = Service> {
    let inspect = select(&[Inspect::FirstMessage, Inspect::EveryMessage][..]);
    let kind = prop_oneof![
        Just(ServiceKind::Tcp),
        inspect.prop_map(|inspect| ServiceKind::Http { inspect })
    ];
    let ejection = (1..=1_000_000u32, positive())
        .prop_map(|(failures, duration)| Ejection { failures, duration });
    let queue = (0..=1_000_000u32, positive())
        .prop_map(|(length, time_limit)| Queue { length, time_limit });
    let access = (
        prefixes(),
        prefixes(),
        option::of(path()),
        option::of(path()),
    )
        .prop_map(|(allow, deny, allow_file, deny_file)| Access {
            allow,
            deny,
            allow_file,
            deny_file,
        });
    let client = (duration(), duration(), duration(), duration());
    let timeouts = (duration(), client, duration(), duration()).prop_map(
        |(connect, client, upstream_answer, write_stall)| Timeouts {
            connect,
            client_header: client.0,
            client_body: client.1,
            client_idle: client.2,
            half_closed: client.3,
            upstream_answer,
            write_stall,
        },
    );
    (
        (
            vec((ip(), any::<u16>()).prop_map(SocketAddr::from), 1..3),
            kind,
            dispatch(),
        ),
        (
            duration(),
            duration(),
            (check(), 1..=100u32, 1..=100u32, duration()),
            option::of(ejection),
            duration(),
            duration(),
        ),
        (
            option::of(1..=u32::MAX),
            queue,
            1..=65_535u32,
            access,
            timeouts,
        ),
        (
            any::<bool>(),
            any::<bool>(),
            option::of(path()),
            any::<bool>(),
            option::of("[a-z]{1,8}"),
        ),
        (
            prefixes(),
            0..=100u32,
            any::<bool>(),
            any::<u32>(),
            service_tls(),
        ),
        vec(backend(), 1..4),
    )
        .prop_map(|(first, second, third, fourth, fifth, mut backends)| {
            let (listen, kind, dispatch) = first;
            for backend in &mut backends {
                if kind == ServiceKind::HTTP
                    && backend.proxy_protocol_out.is_none()
                    && backend.retries > 50
                {
                    backend.http = HttpVersion::Two;
                }
            }
            let (reviving_interval, check_interval, check, ejection, slow_start, drain) = second;
            let (check, rise, fall, timeout) = check;
            let probing = Probing {
                rise,
                fall,
                timeout,
            };
            let (connections_max, queue, backlog, access, timeouts) = third;
            let (proxy_protocol_in, verbosity, access_log, combined, user_account) = fourth;
            let (trusted_proxies, resends, half_close, body_rate_min, tls) = fifth;
            let has_tls = tls.is_some();
            Service {
                trusted_proxies,
                resends,
                half_close,
                body_rate_min,
                offered_versions: match (&kind, half_close) {
                    (ServiceKind::Http { inspect }, true) => Some(HttpVersions {
                        one: true,
                        two: *inspect == Inspect::EveryMessage,
                    }),
                    _ => None,
                },
                sni: match (&kind, has_tls, verbosity) {
                    (ServiceKind::Tcp, false, true) => vec![SniRule {
                        names: vec!["a.example".into(), "*".into()],
                        back_ends: vec![backends[0].name.clone()],
                    }],
                    _ => Vec::new(),
                },
                tls,
                name: String::new(),
                listen,
                kind,
                dispatch,
                reviving_interval,
                check_interval,
                check,
                probing,
                ejection,
                slow_start,
                drain,
                connections_max,
                queue,
                backlog,
                access,
                timeouts,
                proxy_protocol_in,
                verbosity,
                access_log,
                access_log_form: match combined {
                    true => LogFormat::Combined,
                    false => LogFormat::Common,
                },
                user_account,
                backends,
            }
        })
}

fn service_tls() -> impl Strategy<Value = Option<ServiceTls>> {
    let suites = vec(select(tls::suite_names()), 0..3);
    let groups = vec(select(tls::group_names()), 0..3);
    let version = option::of(select(vec![tls::Version::Tls12, tls::Version::Tls13]));
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let parts = (
        "[a-z]{1,8}",
        "[a-z]{1,8}",
        version,
        suites,
        groups,
        any::<bool>(),
        option::of("[a-z]{1,8}".prop_map(PathBuf::from)),
    );
    option::of(parts.prop_map(
        move |(certificate, key, version, suites, groups, tickets, client_ca)| ServiceTls {
            certificate: certificate.into(),
            key: key.into(),
            version,
            suites: owned(suites),
            groups: owned(groups),
            tickets,
            client_ca,
        },
    ))
}

fn backend_tls() -> impl Strategy<Value = Option<BackendTls>> {
    let path = option::of("[a-z]{1,8}".prop_map(PathBuf::from));
    let parts = (option::of("[a-z]{1,8}"), path, any::<bool>());
    option::of(parts.prop_map(|(name, ca, insecure)| BackendTls { name, ca, insecure }))
}

/// Makes a service one that a file may hold: names of their own, and of HTTP only what HTTP can.
fn settle(service: &mut Service, number: usize) {
    service.name = format!("s.{number}");
    for (at, address) in service.listen.iter_mut().enumerate() {
        // Each listens on a port of its own.
        address.set_port(u16::try_from(1 + number * 10 + at).unwrap());
    }
    for (at, backend) in service.backends.iter_mut().enumerate() {
        backend.name.push_str(&at.to_string());
        backend.address.port = backend.address.port.max(100);
        if let Some(cookie) = &mut backend.sticky_cookie {
            cookie.value.push_str(&at.to_string());
        }
        if service.kind == ServiceKind::Tcp {
            backend.sticky_cookie = None;
            backend.header_edits.clear();
        }
    }
    for rule in &mut service.sni {
        rule.back_ends = vec![service.backends[0].name.clone()];
    }
    if let (ServiceKind::Tcp, Dispatch::ConsistentHash { key }) =
        (service.kind, &mut service.dispatch)
    {
        *key = HashKey::ClientIp;
    }
}

fn config() -> impl Strategy<Value = Config> {
    (
        vec(service(), 1..3),
        1..=1024usize,
        1..=500_000u32,
        option::of(path()),
        option::of((ip(), 60_000..=u16::MAX).prop_map(SocketAddr::from)),
    )
        .prop_map(
            |(mut services, threads, connections, status_socket, prometheus)| {
                for (number, service) in services.iter_mut().enumerate() {
                    settle(service, number);
                }
                Config {
                    services,
                    threads,
                    connections_per_thread: connections,
                    status_socket,
                    prometheus,
                }
            },
        )
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(config in config()) {
        let text = write::toml(&config);
        match parse_text("x.toml", &text, Syntax::Native) {
            Ok((again, warnings)) => {
                prop_assert_eq!(again, config, "{}", text);
                let is_weight = |one: &Warning| match &one.kind {
                    WarningKind::Ignored { what, .. } => what == "weight" || what == "penalty",
                    WarningKind::Unconfirmed { .. } => false,
                };
                prop_assert!(warnings.iter().all(is_weight), "{:?}\n{}", warnings, text);
            }
            Err(error) => prop_assert!(false, "{:?}\n{}", miette::Report::new(error), text),
        }
    }

    #[test]
    fn no_text_does_harm(words in vec(select(WORDS), 0..60), noise in "\\PC{0,20}") {
        let text = format!("{}{noise}", words.concat());
        for form in [Syntax::Native, Syntax::Crossroads] {
            if let Err(error) = parse_text("x", &text, form) {
                // Showing it must not do harm either.
                let _ = format!("{:?}", miette::Report::new(error));
            }
        }
    }
}

/// Pieces that bring a parser into its corners.
const WORDS: &[&str] = &[
    "service",
    "backend",
    " a",
    " b ",
    "{",
    "}",
    ";",
    "\n",
    " port ",
    "80",
    "\"",
    "\\",
    "/*",
    "*/",
    "//",
    "#define ",
    "#include \"x\"",
    "#",
    "A B\n",
    "type http;",
    "server x:1;",
    "dispatchmode ",
    "over",
    "stickycookie a=b;",
    "%r",
    "%",
    ":",
    "=",
    "[services.s]\n",
    "listen",
    "=",
    "'",
    "[[",
    "]",
    "{}",
    "\u{feff}",
    "ä",
    "\u{a0}",
    "\0",
    "99999999999999999999",
    "-1",
    ",",
    "0/0",
    "::",
];
