//! Any configuration that is printed is read as itself, every key has an effect, and no bytes do harm.

use balance::Config;
use balance::config::{Syntax, Warning, WarningKind, parse_text, write};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;
use proptest::string::string_regex;

/// Parts of the lines below.
const PARTS: [(&str, &str); 7] = [
    ("<bool>", "(true|false)"),
    ("<path>", r#""/([a-z ä.]|\\"|\\\\){0,12}/x""#),
    (
        "<text>",
        r#""[a-z=ä{}]([a-z =;äß{}]|\\"|\\\\|%r|%b|%s|%%){0,12}[a-z]""#,
    ),
    (
        "<edit>",
        r#"\{ towards = "(client|server)", how = "(add|append|set)", name = "X-[a-zA-Z0-9-]{1,8}", value = <text> \}"#,
    ),
    // None of them is a default.
    (
        "<time>",
        r#""([1-9][0-9]{0,3}[1-9]ms|[1-9][0-9]{4,7}[1-9]us|[1-9][0-9]{3}[1-9]s)""#,
    ),
    (
        "<prefix>",
        r#""([1-9][0-9]\.[1-9][0-9]?\.0\.0/[12]?[0-9]|10\.7\.6\.5|2001:db8:[1-9a-f]{1,4}::/[1-9][0-9])""#,
    ),
    (
        "<mode>",
        r#""(random|by-order|by-client-ip|weighted-round-robin|least-connections|peak-ewma)"|\{ mode = "by-(size|duration|connections)", over = [1-9][0-9]{0,3} \}|\{ mode = "external", command = <text> \}|\{ mode = "peak-ewma", decay = <time> \}"#,
    ),
];

/// Lines of a service, as regular expressions. Each changes something.
const SERVICE: &[&str] = &[
    "reviving_interval = <time>",
    "check_interval = <time>",
    r#"check = \{ kind = "http", path = "/([a-z?=]|\\"){0,8}", host = "[a-z.:0-9]{1,8}", status = [1-4][0-9]{2}, rise = [1-9], fall = [1-9][0-9], timeout = <time> \}"#,
    r#"check = \{ kind = "tcp", rise = [2-9], fall = [1-9] \}"#,
    r"ejection = \{ failures = [1-9], duration = <time> \}",
    "slow_start = <time>",
    "drain = <time>",
    "connections_max = [1-9][0-9]{0,8}",
    r"queue = \{ length = (0|[1-9][0-9]{0,2}), time_limit = <time> \}",
    "backlog = [1-9][0-9]{0,2}",
    r"access = \{ allow = \[<prefix>\], deny = \[<prefix>, <prefix>\], allow_file = <path>, deny_file = <path> \}",
    r"timeouts = \{ connect = <time>, client_header = <time>, client_body = <time>, client_idle = <time>, half_closed = <time>, upstream_answer = <time>, write_stall = <time> \}",
    "proxy_protocol_in = true",
    r"trusted_proxies = \[<prefix>\]",
    "resends = ([013-9]|[1-9][0-9])",
    "half_close = true",
    "body_rate_min = [1-9][0-9]{0,1}",
    "access_log = <path>",
    r#"access_log_form = "combined""#,
    r#"user_account = "[a-z]{1,8}""#,
    r#"tls = \{ certificate = <path>, key = <path>, version = "1\.[23]", suites = \["TLS_AES_128_GCM_SHA256"\], groups = \["x25519"\], tickets = <bool>, client_ca = <path> \}"#,
];

const TCP: &[&str] = &[r#"dispatch = (<mode>|\{ mode = "consistent-hash" \})"#];
const SNI: &str =
    "sni = [{ names = [\"a.example\", \"*.b.example\", \"*\"], back_ends = [\"b.0\"] }]\n";
const HTTP: &[&str] = &[
    r#"dispatch = (<mode>|\{ mode = "consistent-hash", key = "(header|cookie)", name = "[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,10}" \}|\{ mode = "consistent-hash", key = "path" \})"#,
    r"headers = \[<edit>, <edit>\]",
];
const EVERY: &[&str] = &[r#"http = "2""#, r#"http_versions = \["2"(, "1\.1")?\]"#];
const FIRST: &[&str] = &[r#"inspect = "first""#];

const BACK_END: &[&str] = &[
    "(weight|penalty) = [2-9][0-9]{0,5}",
    "decay_percent = [1-9][0-9]?",
    "connections_max = [1-9][0-9]{0,8}",
    "retries = [1-9]",
    "on_start = <text>",
    "on_end = <text>",
    "on_fail = <text>",
    "traffic_log = <path>",
    "throughput_log = <path>",
    "session_timeout = <time>",
    r#"tls = (true|\{ name = "[a-z]{1,8}", ca = <path>, insecure = <bool> \})"#,
    r#"initial_state = "(unavailable|down)""#,
];
const PROXY: &[&str] = &[r#"proxy_protocol_out = "v[12]""#];
const HTTP_BACK_END: &[&str] = &[
    r#"sticky_cookie = \{ name = "[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,9}", value = "[a-z]{6}[=:/A-Z]", set = <bool> \}"#,
    r"headers = \[<edit>\]",
];

/// Tables of lines.
type Tables = &'static [&'static [&'static str]];

/// What a kind of service and its back ends may have besides.
const KINDS: [(&str, Tables, Tables); 3] = [
    ("tcp", &[TCP], &[PROXY]),
    ("http", &[HTTP, EVERY], &[HTTP_BACK_END]),
    ("http", &[HTTP, FIRST], &[HTTP_BACK_END, PROXY]),
];

fn line(pattern: &str) -> BoxedStrategy<String> {
    // Parts have parts.
    let whole = PARTS
        .iter()
        .chain(&PARTS)
        .fold(pattern.to_owned(), |text, (name, part)| {
            text.replace(name, part)
        });
    let lines = string_regex(&whole).unwrap_or_else(|e| panic!("{whole}: {e}"));
    lines.prop_map(|line| line + "\n").boxed()
}

/// Some of the lines, at most one for a key.
fn some(tables: &[&[&str]]) -> impl Strategy<Value = String> + use<> {
    let all = tables.concat();
    let lines: Vec<_> = all
        .iter()
        .map(|pattern| option::of(line(pattern)))
        .collect();
    lines.prop_map(|lines| {
        let mut text = String::new();
        for line in lines.into_iter().flatten() {
            let key = line.split(' ').next().unwrap_or_default();
            if !text
                .lines()
                .any(|other| other.split(' ').next() == Some(key))
            {
                text += &line;
            }
        }
        text
    })
}

fn service(number: usize, kind: usize) -> impl Strategy<Value = String> {
    let (word, more, behind) = KINDS[kind];
    let address = r#"address = "(10\.[1-9][0-9]?\.0\.[1-9]|[a-z]{1,8}\.example|\[2001:db8::[1-9a-f]{1,4}\]):[1-9][0-9]{0,3}""#;
    let back_end = (line(address), some(&[&[BACK_END], behind].concat()));
    let parts = (
        some(&[&[SERVICE], more].concat()),
        vec(back_end, 1..4),
        any::<bool>(),
    );
    parts.prop_map(move |(lines, back_ends, has_rules)| {
        let name = format!("services.\"s.{number}\"");
        let listen = format!("\"127.0.0.1:{}\", \"[::1]:{0}\"", 40_000 + number);
        let mut text = format!("[{name}]\nlisten = [{listen}]\nkind = \"{word}\"\n{lines}");
        if has_rules && kind == 0 && !lines.contains("tls = ") {
            text += SNI;
        }
        for (at, (address, lines)) in back_ends.iter().enumerate() {
            text += &format!("[{name}.backends.\"b.{at}\"]\n{address}{lines}");
        }
        text
    })
}

fn read(text: &str) -> (Config, Vec<Warning>) {
    match parse_text("x.toml", text, Syntax::Native) {
        Ok(read) => read,
        Err(error) => panic!("{:?}\n{text}", miette::Report::new(error)),
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(
        top in some(&[&[
            "threads = [1-9][0-9]{0,2}",
            "connections_per_thread = [1-9][0-9]{0,4}",
            "status_socket = <path>",
            r#"prometheus = "10\.0\.0\.[1-9]:6[0-4][0-9]{3}""#,
        ]]),
        services in vec((0..KINDS.len()).prop_flat_map(|kind| service(kind, kind)), 1..3),
    ) {
        let mut services = services;
        services.dedup_by_key(|text| text.lines().next().map(str::to_owned));
        let (config, _) = read(&(top + &services.concat()));
        let text = write::toml(&config);
        let (again, warnings) = read(&text);
        prop_assert_eq!(again, config, "{}", text);
        let is_weight = |one: &Warning| match &one.kind {
            WarningKind::Ignored { what, .. } => what == "weight" || what == "penalty",
            WarningKind::Unconfirmed { .. } => false,
        };
        prop_assert!(warnings.iter().all(is_weight), "{:?}\n{}", warnings, text);
    }

    #[test]
    fn every_key_has_an_effect(
        (kind, line, is_of_back_end) in (0..KINDS.len(), any::<bool>()).prop_flat_map(|(kind, behind)| {
            let (_, more, of_back_end) = KINDS[kind];
            let tables = match behind {
                true => [&[BACK_END], of_back_end].concat(),
                false => [&[SERVICE], more].concat(),
            };
            let one = select(tables.concat()).prop_flat_map(line);
            one.prop_map(move |line| (kind, line, behind))
        }),
    ) {
        let text = |of_service: &str, of_back_end: &str| format!(
            "[services.s]\nlisten = \"127.0.0.1:1\"\nkind = \"{}\"\n{of_service}\
             [services.s.backends.b]\naddress = \"10.0.0.1:1\"\n{of_back_end}",
            KINDS[kind].0
        );
        let with = if is_of_back_end { text("", &line) } else { text(&line, "") };
        prop_assert_ne!(read(&with).0, read(&text("", "")).0, "{}", line);
    }

    #[test]
    fn no_text_does_harm(
        words in vec(select(WORDS.split('~').collect::<Vec<_>>()), 0..60), noise in "\\PC{0,20}",
    ) {
        let text = format!("{}{noise}", words.concat());
        for form in [Syntax::Native, Syntax::Crossroads] {
            if let Err(error) = parse_text("x", &text, form) {
                // Showing it must not do harm either.
                let _ = format!("{:?}", miette::Report::new(error));
            }
        }
    }
}

/// Pieces that bring a parser into its corners, divided by `~`.
const WORDS: &str = "service~backend~ a~ b ~{~}~;~\n~ port ~80~\"~\\~/*~*/~//~#define ~\
    #include \"x\"~#~A B\n~type http;~server x:1;~dispatchmode ~over~stickycookie a=b;~%r~%~:~=~\
    [services.s]\n~listen~'~[[~]~{}~\u{feff}~ä~\u{a0}~\0~99999999999999999999~-1~,~0/0~::";
