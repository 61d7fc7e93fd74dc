//! Reading an experiment never panics, and what is written out reads back the same.

use crate::support::{GOOD, good, parse, parse_set, recipes};
use experiment::{CurveSpec, Experiment, Rate, SliceLength, catalogue};
use proptest::prelude::*;

fn comes_back(experiment: &Experiment) -> String {
    let text = experiment.to_toml();
    let again = good(Experiment::parse("y.toml", &text, &[], false, recipes()));
    assert_eq!(&again, experiment, "\n{text}");
    text
}

/// An experiment in which every key has a value that is not its default.
const FULL: &str = include_str!("../../good/full.toml");

#[test]
fn every_key_comes_back() {
    let full = good(parse(FULL));
    assert_eq!(full.name, "full-1");
    assert_eq!(full.conditions().len(), 64);
    assert_eq!(full.load.rate, Rate::PerSecond(1234.5));
    assert_eq!(
        full.design.slice,
        SliceLength::Fixed(std::time::Duration::from_millis(33))
    );
    let text = comes_back(&full);
    for key in ["max_error", "body", "rate", "threads_per_child", "source"] {
        assert!(text.contains(key), "{key} is not written:\n{text}");
    }
}

#[test]
fn keys_of_the_load_that_vary_together_come_back() {
    let levels =
        "load = [{ threads = 8, connections = 96 }, { connections = 400, timeout = \"9s\" }]";
    let text = GOOD.replace("connections = [96, 400]", levels)
        + "[load]\nthreads = 2\n[quick.factors]\nload = [{ connections = 400, timeout = \"9s\" }]\n";
    let experiment = good(parse(&text));
    comes_back(&experiment);
    let loads: Vec<_> = experiment
        .conditions()
        .iter()
        .map(|condition| {
            let load = experiment.under(condition).load;
            let text = condition["load"].clone();
            (text, load.threads, load.connections, load.timeout.as_secs())
        })
        .collect();
    let (first, second) = ("threads 8, connections 96", "connections 400, timeout 9s");
    let expected = [
        (first.to_owned(), Some(8), 96, 5),
        (second.to_owned(), Some(2), 400, 9),
    ];
    assert_eq!(loads, expected);
    let quick = good(Experiment::parse("x.toml", &text, &[], true, recipes()));
    assert_eq!(quick.factors[0].levels.len(), 1);
    comes_back(&quick);
}

#[test]
fn curves_come_back() {
    let curve = |value: &str| {
        let sets = [("load.curve".to_owned(), value.to_owned())];
        let experiment = good(Experiment::parse("x.toml", GOOD, &sets, false, recipes()));
        comes_back(&experiment);
        experiment.load.curve
    };
    assert_eq!(curve("false"), None);
    assert_eq!(curve("true"), Some(CurveSpec::auto()));
    let mixed = curve(r#"[5000, "1000/s", "90%", 2000.5, "50%"]"#).unwrap();
    assert_eq!(
        mixed.rates_per_s.as_deref(),
        Some(&[1000.0, 2000.5, 5000.0][..])
    );
    assert_eq!(mixed.shares, [0.5, 0.9]);
    let shares = curve(r#"["50%"]"#).unwrap();
    assert_eq!(shares.rates_per_s.as_deref(), Some(&[][..]));
    assert_eq!(shares.points(), 1);
}

#[test]
fn defaults_are_written_out() {
    let text = comes_back(&good(parse(
        "title = \"t\"\n[subjects]\na = \"http://h:1/\"\n",
    )));
    for line in [
        "connections = 64",
        "blocks = 30",
        "warmup = \"2s\"",
        "window = \"10s\"",
        "latency_window = \"5s\"",
        "slice = \"auto\"",
        "matters = \"3%\"",
        "max_error = \"1%\"",
        "retries = 2",
        "apart = \"auto\"",
        "bottleneck = true",
        "status = 200",
        "body = \"auto\"",
        "rate = \"auto\"",
        "timeout = \"5s\"",
        "baseline = \"a\"",
    ] {
        assert!(text.contains(line), "{line} is not written:\n{text}");
    }
}

#[test]
fn quick_and_sets_come_back_as_applied() {
    let quick = good(Experiment::parse("x.toml", FULL, &[], true, recipes()));
    assert_eq!(quick.design.blocks, 2);
    assert_eq!(quick.factors[0].levels.len(), 1);
    comes_back(&quick);
    comes_back(&good(parse_set(GOOD, &[("design.window", "3s")])));
}

#[test]
fn a_set_wins_over_quick() {
    let sets = [("design.blocks".to_owned(), "7".to_owned())];
    let experiment = good(Experiment::parse("x.toml", FULL, &sets, true, recipes()));
    assert_eq!(experiment.design.blocks, 7);
    let experiment = good(Experiment::parse("x.toml", GOOD, &sets, true, recipes()));
    assert_eq!(experiment.design.blocks, 7);
    assert_eq!(experiment.design.window.as_millis(), 1500);
}

#[test]
fn the_catalogue_is_good_and_comes_back() {
    assert!(catalogue::names().contains(&"proxy-cost"));
    assert!(catalogue::names().contains(&"lighttpd-proxy"));
    for name in catalogue::names() {
        for quick in [false, true] {
            let experiment = good(catalogue::open_experiment(name, &[], quick, recipes()));
            assert_eq!(experiment.name, name);
            comes_back(&experiment);
        }
    }
}

#[test]
fn a_name_almost_right_is_suggested() {
    let error = catalogue::find("proxycost").unwrap_err();
    let shown = crate::support::rendered(&error);
    assert!(shown.contains("did you mean `proxy-cost`?"), "{shown}");
}

#[test]
fn a_file_with_a_byte_order_mark_or_windows_line_ends_is_read() {
    good(parse(&format!("\u{feff}{GOOD}")));
    assert_eq!(good(parse(&GOOD.replace('\n', "\r\n"))), good(parse(GOOD)));
}

#[test]
fn deep_nesting_is_a_mistake_and_not_a_crash() {
    for text in [
        format!("{}a = 1", "a.".repeat(400_000)),
        format!("[{}a]\nb = 1", "a.".repeat(400_000)),
        format!("a = {}", "[".repeat(500_000)),
        format!("a = {}", "{a=".repeat(300_000)),
    ] {
        assert!(parse(&text).is_err());
    }
    let deep = format!("[{}]", "[".repeat(300_000));
    assert!(parse_set(GOOD, &[("factors.connections", &deep)]).is_err());
    let key = format!("{}a", "a.".repeat(300_000));
    assert!(parse_set(GOOD, &[(&key, "1")]).is_err());
}

#[test]
fn a_mebibyte_of_noise_is_refused_in_a_moment() {
    let fill = |piece: &str| piece.repeat(1_000_000 / piece.len());
    let numbered = |form: &str| -> String {
        (0..900_000 / (form.len() + 5))
            .map(|n| form.replace('#', &n.to_string()))
            .collect()
    };
    for (what, text) in [
        ("bytes", fill("\u{1}")),
        ("brackets", fill("[")),
        ("lines", fill("=\n")),
        ("words", fill("a b ")),
        ("keys", numbered("k# = 1\n")),
        ("factors", format!("[factors]\n{}", numbered("k# = [1]\n"))),
        ("nested", format!("[factors]\n{}", numbered("a.k# = [1]\n"))),
        (
            "levels",
            format!(
                "[factors]\nconnections = [{}]\n[quick.factors]\nconnections = [{}]",
                numbered("#,").split_at(400_000).0,
                numbered("#,").split_at(400_000).0
            ),
        ),
        ("servers", numbered("[servers.s#]\nrecipe = \"origin\"\n")),
        ("cpus", format!("[hosts.a]\ncpus = [{}]", numbered("#,"))),
    ] {
        let started = std::time::Instant::now();
        let error = parse(&text).expect_err(what);
        let shown = crate::support::rendered(&error);
        assert!(shown.len() < 60_000, "{what}: {} bytes shown", shown.len());
        // Without optimisation this takes some tenths of a second; what is quadratic takes hours.
        let took = started.elapsed();
        assert!(took.as_secs() < 20, "{what} took {took:?}");
        println!("{what}: {took:?}");
    }
}

#[test]
fn numbers_beyond_all_bounds_are_mistakes() {
    for line in [
        "blocks = 99999999999999999999",
        "blocks = -1",
        "window = \"99999999999999999999999999s\"",
        "window = \"1e9s\"",
        "matters = \"inf%\"",
        "matters = \"0%\"",
    ] {
        let text = format!("title = \"t\"\n[subjects]\na = \"http://h:1/\"\n[design]\n{line}\n");
        assert!(parse(&text).is_err(), "{line}");
    }
}

#[test]
fn combinations_without_end_are_refused() {
    let levels: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let levels = levels.join(",");
    let text = format!(
        "title = \"t\"\n[subjects]\na = \"http://h:1/{{x}}/{{y}}\"\n[factors]\nx = [{levels}]\ny = [{levels}]\n"
    );
    let shown = crate::support::rendered(&parse(&text).unwrap_err());
    assert!(shown.contains("more than 1000 conditions"), "{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*", key in "\\PC*", value in "\\PC*") {
        let sets = [(key, value)];
        let recipes = recipes();
        let _ = Experiment::parse(&text, &text, &[], true, recipes)
            .map_err(|error| crate::support::rendered(&error));
        let _ = Experiment::parse("x", GOOD, &sets, false, recipes)
            .map_err(|error| crate::support::rendered(&error));
    }

    /// Lines of a good file, cut, doubled and mixed: nearer to the real mistakes than noise is.
    #[test]
    fn a_good_file_cut_up_is_read_or_refused(
        picks in proptest::collection::vec((any::<proptest::sample::Index>(), 0usize..40), 1..60),
        quick: bool,
    ) {
        let lines: Vec<&str> = FULL.lines().collect();
        let mut text = String::new();
        for (index, cut) in picks {
            let line = lines[index.index(lines.len())];
            let kept: String = if cut < 30 { line.to_owned() } else { line.chars().take(cut - 28).collect() };
            text.push_str(&kept);
            text.push('\n');
        }
        match Experiment::parse("x", &text, &[], quick, recipes()) {
            Ok(experiment) => { comes_back(&experiment); }
            Err(error) => { crate::support::rendered(&error); }
        }
    }
}

#[test]
fn servers_of_the_users_own_are_recipes_with_parameters() {
    let text = include_str!("text/own_servers.toml");
    let experiment = good(parse(text));
    let written = comes_back(&experiment);
    assert!(written.contains("recipe = \"command\""), "{written}");
    let conditions = experiment.conditions();
    assert_eq!(conditions.len(), 8);
    let server = |name: &str, at: usize| {
        let servers = experiment.under(&conditions[at]).servers;
        servers.into_iter().find(|one| one.name == name).unwrap()
    };
    let param = |name, at, param: &str| server(name, at).params[param].to_string();
    assert_eq!(param("one", 0, "command"), "./one,--port,{port},10");
    assert_eq!(param("one", 7, "command"), "./one,--port,{port},20");
    assert_eq!(param("one", 0, "env"), "A=b c,DIR={dir}");
    assert_eq!(param("two", 0, "command"), "./two,a b,{address}:{port}");
    assert_eq!(param("two", 0, "env"), "X=1");
    assert_eq!(
        (param("two", 0, "revision"), param("two", 7, "revision")),
        ("v1".into(), "v2".into())
    );
    assert_eq!(server("three", 0).recipe, "image");
    assert_eq!(param("three", 1, "image"), "nginx:2");
}
