//! `weigh compare`: an experiment over commands, revisions, and URLs that already run.

use experiment::{Experiment, ExperimentBuilder, Recipes};
use run::default_folder;

use crate::cli::{CompareArgs, HttpVersion, OwnFolders};
use crate::failure::Failure;
use crate::measure::before::Before;
use crate::measure::builds::clean;
use crate::measure::own_servers::{OwnServers, SubjectValue, refuse_unused};
use crate::measure::run::{Wanted, measure, note_counters};
use crate::recipes::recipes;
use crate::units;

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
    before.say()?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
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

/// The header fields of requests, and what a good answer is.
fn expect(args: &CompareArgs, builder: &mut ExperimentBuilder) {
    for (name, value) in &args.headers {
        let written = format!("--header '{name}: {value}'");
        builder.option(
            &written,
            &["load", "headers", name.as_str()],
            value.as_str(),
        );
    }
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
    for (name, text) in &args.subjects {
        let value = SubjectValue::of(name, text)?;
        all_run &= matches!(value, SubjectValue::Url(_));
        own.add(&mut builder, name, text, value)?;
    }
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
    builder.set(&["design", "warmup"], "500ms");
    let written = format!("--window {}", args.window);
    builder.option(&written, &["design", "window"], args.window.as_str());
    match args.latency {
        true => builder.option(
            &written,
            &["design", "latency_window"],
            args.window.as_str(),
        ),
        false => builder.option("--latency=false", &["design", "latency_window"], "0s"),
    }
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
    builder.set(&["design", "bottleneck"], args.bottleneck.unwrap_or(true));
    builder.build(recipes).map_err(Failure::file)
}
