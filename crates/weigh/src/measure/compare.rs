//! `weigh compare`: an experiment over commands, revisions, and URLs that already run.

use experiment::{Experiment, ExperimentBuilder, Recipes};
use run::default_folder;

use crate::cli::{CompareArgs, ComparedRequestsArgs, HttpVersion, OwnFolders};
use crate::failure::Failure;
use crate::measure::before::Before;
use crate::measure::builds::clean;
use crate::measure::compared_traffic;
use crate::measure::dry_run::dry_run;
use crate::measure::load::body::{body, file};
use crate::measure::own_servers::{OwnServers, SubjectValue, refuse_unused};
use crate::measure::run::{Wanted, measure, note_counters};
use crate::recipes::recipes;
use crate::units;

/// The warm-up where none is given, and what a run may make of it by itself.
pub(super) const WARMUP: &str = "500ms";
pub(super) const WARMUP_MAX: &str = "10s";
/// The host of a load that has CPUs of its own.
const CLIENT: &str = "client";

/// Compares servers.
pub fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    if args.clean {
        return clean(args.own.cache.as_deref());
    }
    let recipes = recipes(&OwnFolders::default())?;
    let mut experiment = experiment(args, &recipes)?;
    crate::show::gates::add(&mut experiment, &args.gates, args.format)?;
    note_counters(&mut experiment);
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| default_folder("compare"));
    let before = Before::of(&mut experiment, args.within, args.bottleneck, &folder)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    if args.dry_run {
        return dry_run(&experiment, &recipes, seed, &before, args.format);
    }
    before.say()?;
    measure(&Wanted {
        experiment: &experiment,
        recipes: &recipes,
        noise: before.noise,
        seed,
        folder,
        resume: false,
        format: args.format,
        verbose: args.verbose,
        cache: args.own.cache.as_deref(),
        profile: args.profile.map(Into::into),
        gates: &args.gates,
        label: args.label.as_deref(),
    })
}

/// What a good answer is.
fn expect(args: &CompareArgs, builder: &mut ExperimentBuilder) {
    if let Some(status) = args.expect_status {
        let written = format!("--expect-status {status}");
        builder.option(&written, &["expect", "status"], u32::from(status));
    }
    if let Some(text) = &args.expect_contains {
        let written = format!("--expect-contains '{text}'");
        builder.option(&written, &["expect", "contains"], text.as_str());
    }
    if let Some(body) = args.expect_body {
        let name = body.name();
        builder.option(&format!("--expect-body {name}"), &["expect", "body"], name);
    }
    if let Some(same) = args.same {
        builder.option(&format!("--same={same}"), &["expect", "same"], same);
    }
}

/// What is asked, and how many requests a connection carries.
fn request(args: &CompareArgs, builder: &mut ExperimentBuilder) -> Result<(), Failure> {
    let (request, reuse) = (&args.request, &args.reuse);
    for (name, value) in &request.headers {
        let written = format!("--header '{name}: {value}'");
        let path = ["load", "headers", name.as_str()];
        builder.option(&written, &path, value.as_str());
    }
    if request.method != "GET" {
        let written = format!("--method {}", request.method);
        builder.option(&written, &["load", "method"], request.method.as_str());
    }
    let is_call = args.traffic.grpc.method_name.is_some();
    if let Some(given) = &request.body
        && let Some(path) = file(given).filter(|_| is_call)
    {
        let (written, path) = (format!("--body {}", given.display()), path.display());
        builder.option(&written, &["load", "body_file"], path.to_string());
    } else if let Some(given) = &request.body {
        let body = String::from_utf8(body(given)?).map_err(|_| {
            Failure::words(format!(
                "--body {}: this is no UTF-8 text; `weigh load` sends any bytes, comparisons only text",
                given.display()
            ))
        })?;
        let written = format!("--body {}", given.display());
        builder.option(&written, &["load", "body"], body);
    }
    if let Some(file) = &args.requests {
        let written = format!("--requests {file}");
        builder.option(&written, &["load", "requests"], file.as_str());
    }
    data(&args.data, builder);
    if reuse.no_keepalive {
        builder.option("--no-keepalive", &["load", "keepalive"], false);
    }
    if let Some(count) = reuse.requests_per_connection {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let written = format!("--requests-per-connection {count}");
        builder.option(&written, &["load", "requests_per_connection"], count);
    }
    Ok(())
}

/// Feeds, cookies and the log.
fn data(data: &ComparedRequestsArgs, builder: &mut ExperimentBuilder) {
    let order = requests::file::feed_order_word(data.feed_order.into());
    for feed in &data.feeds {
        let file = feed.path.display().to_string();
        let written = format!("--feed {}={file}", feed.name);
        let path = ["load", "feeds", feed.name.as_str()];
        builder.option(&written, &[&path[..], &["file"]].concat(), file.as_str());
        builder.option(&written, &[&path[..], &["order"]].concat(), order);
    }
    if data.cookies {
        builder.option("--cookies", &["load", "cookies"], true);
    }
    if let Some(file) = &data.replay {
        let written = format!("--replay {file}");
        builder.option(&written, &["load", "replay"], file.as_str());
    }
    if let Some(speed) = data.speed {
        builder.option(&format!("--speed {speed}"), &["load", "speed"], speed);
    }
}

/// How long the closed and the open loop are measured: with a log, as long as that.
fn windows(args: &CompareArgs, builder: &mut ExperimentBuilder) {
    if args.data.replay.is_some() {
        return;
    }
    let written = format!("--window {}", args.window);
    let window = args.window.as_str();
    builder.option(&written, &["design", "window"], window);
    match args.latency {
        true => builder.option(&written, &["design", "latency_window"], window),
        false => builder.option("--latency=false", &["design", "latency_window"], "0s"),
    }
}

/// The experiment that the arguments describe; the first subject is the baseline.
fn experiment(args: &CompareArgs, recipes: &Recipes) -> Result<Experiment, Failure> {
    let names: Vec<&str> = args
        .subjects
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let mut builder = ExperimentBuilder::new("compare", "weigh compare");
    builder.set(&["title"], names.join(" against "));
    let mut own =
        OwnServers::new(&args.own, &names)?.over_http2(args.http == Some(HttpVersion::Http2));
    let mut all_run = true;
    let mut websockets = Vec::new();
    for (name, text) in &args.subjects {
        let (text, is_websocket) = compared_traffic::url(text);
        websockets.push(is_websocket);
        let value = SubjectValue::of(name, &text, recipes)?;
        all_run &= matches!(value, SubjectValue::Url(_));
        own.add(&mut builder, name, &text, value)?;
    }
    compared_traffic::add(args, &websockets, &mut builder)?;
    if all_run {
        refuse_unused(&args.own)?;
    }
    own.finish(&mut builder);
    let written = format!("--connections {}", args.connections);
    builder.option(&written, &["load", "connections"], args.connections);
    if let Some(threads) = args.threads {
        builder.option(
            &format!("--threads {threads}"),
            &["load", "threads"],
            threads,
        );
    }
    if let Some(rate) = args.rate {
        builder.option(&format!("--rate {rate}"), &["load", "rate"], rate);
    }
    if let Some(version) = args.http {
        let name = version.name();
        builder.option(&format!("--http {name}"), &["load", "http"], name);
    }
    if let Some(streams) = args.streams {
        let option = format!("--streams {streams}");
        builder.option(&option, &["load", "streams"], streams);
    }
    if let Some(congestion) = args.quic_congestion {
        let name = congestion.name();
        let option = format!("--quic-congestion {name}");
        builder.option(&option, &["load", "quic_congestion"], name);
    }
    if let Some(file) = &args.ca {
        builder.option(&format!("--ca {file}"), &["load", "tls_ca"], file.as_str());
    }
    if args.insecure {
        builder.option("--insecure", &["load", "tls_insecure"], true);
    }
    if args.curve {
        builder.option("--curve", &["load", "curve"], true);
    }
    let written = format!("--blocks {}", args.blocks);
    builder.option(&written, &["design", "blocks"], args.blocks);
    match args.warmup {
        Some(warmup) => {
            let text = format!("{}ms", warmup.as_millis());
            builder.option(
                &format!("--warmup {text}"),
                &["design", "warmup"],
                text.as_str(),
            );
        }
        None => {
            builder.set(&["design", "warmup"], WARMUP);
            builder.set(&["design", "warmup_max"], WARMUP_MAX);
        }
    }
    windows(args, &mut builder);
    request(args, &mut builder)?;
    expect(args, &mut builder);
    let written = format!("--matters {}", args.matters);
    builder.option(&written, &["design", "matters"], args.matters.as_str());
    if let Some(latency) = &args.matters_latency {
        let written = format!("--matters-latency {latency}");
        let path = ["design", "matters_latency"];
        builder.option(&written, &path, latency.as_str());
    }
    if !args.cpus.is_empty() {
        let cpus = units::cpus(&args.cpus);
        let listed: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let written = format!("--cpus {}", listed.join(","));
        builder.option(&written, &["hosts", CLIENT, "cpus"], cpus);
        builder.option(&written, &["load", "host"], CLIENT);
    }
    // A log has no closed loop, in which bottlenecks are looked for.
    let bottleneck = args.bottleneck.unwrap_or(args.data.replay.is_none());
    builder.set(&["design", "bottleneck"], bottleneck);
    builder
        .build_with(&args.set, recipes)
        .map_err(Failure::file)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CompareArgs,
    }

    fn of(more: &[&str]) -> Experiment {
        let line = ["weigh", "a=http://127.0.0.1:1/", "b=http://127.0.0.1:2/"];
        let line = Line::parse_from(line.iter().chain(more));
        experiment(&line.args, &Recipes::embedded().unwrap())
            .ok()
            .unwrap()
    }

    #[test]
    fn what_a_load_is_asked_for_may_be_asked_of_a_comparison() {
        let more = "-m POST --body {} --no-keepalive -H A:b --warmup 3s --set load.timeout=2s \
                    --set design.blocks=7 --dry-run";
        let experiment = of(&more.split(' ').collect::<Vec<_>>());
        let load = &experiment.load;
        assert_eq!(
            (load.method.as_str(), load.body.as_deref()),
            ("POST", Some("{}"))
        );
        assert!(!load.keepalive);
        assert_eq!(load.headers, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(load.timeout, Duration::from_secs(2));
        let design = &experiment.design;
        assert_eq!(
            (design.blocks, design.warmup_max),
            (7, Duration::from_secs(3))
        );
    }

    #[test]
    fn traffic_that_lasts_may_be_compared() {
        let load = of(&["--events=sse", "--pace", "20ms"]).load;
        assert_eq!(load.traffic.kind(), readings::TrafficKind::Events);
        assert_eq!(load.traffic.pace, Some(Duration::from_millis(20)));
        let line = ["weigh", "a=ws://127.0.0.1:1/", "b=ws://127.0.0.1:2/"];
        let of_line = |more: &[&str]| {
            let line = Line::parse_from(line.iter().chain(more));
            experiment(&line.args, &Recipes::embedded().unwrap())
        };
        let load = of_line(&["--in-flight", "4"]).ok().unwrap().load;
        assert_eq!(load.traffic.kind(), readings::TrafficKind::WebSocket);
        assert_eq!(load.traffic.in_flight, Some(4));
        assert!(of_line(&["--binary"]).is_err());
        assert!(of_line(&["c=http://127.0.0.1:3/"]).is_err());
    }

    #[test]
    fn requests_with_data_and_those_of_a_log_may_be_compared() {
        let folder = std::env::temp_dir().join(format!("weigh-compare-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let users = file("users.csv", "id\n1\n2\n");
        let line = |second: u32| {
            format!("h - - [27/Nov/2026:10:00:0{second} +0000] \"GET / HTTP/1.1\" 200 5\n")
        };
        let log = file("access.log", &(line(0) + &line(4)));
        let header = "A: {{ users.id }}";
        let load = of(&[
            "--feed",
            &users,
            "--feed-order",
            "once",
            "--cookies",
            "-H",
            header,
        ])
        .load;
        let feed = &load.feeds.feeds[0];
        assert_eq!((feed.name.as_str(), feed.rows.len()), ("users", 2));
        assert_eq!(feed.order, readings::requests::FeedOrder::Once);
        assert!(load.cookies && load.request_set("/").is_some());
        let replayed = of(&["--replay", &log, "--speed", "2"]);
        let design = &replayed.design;
        assert_eq!(design.latency_window, Duration::from_millis(2_001));
        assert!(design.window.is_zero() && !design.bottleneck);
        let line = [
            "weigh",
            "a=http://h:1/",
            "b=http://h:2/",
            "--replay",
            &log,
            "--rate",
            "5",
        ];
        assert!(Line::try_parse_from(line).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_warm_up_that_is_not_given_may_grow() {
        let design = of(&[]).design;
        assert_eq!(design.warmup, Duration::from_millis(500));
        assert_eq!(design.warmup_max, Duration::from_secs(10));
    }
}
