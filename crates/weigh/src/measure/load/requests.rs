//! The requests that files and placeholders describe.

use std::path::Path;

use load::Target;
use readings::requests::{Fill, Piece, RequestSet, RequestSpec, Template, Users};
use requests::har::{self, HarOptions};
use requests::log::{self, LogOptions};
use requests::placeholder::{Names, Part, has_places};

use super::target::{Url, Wanted};
use crate::cli::LoadArgs;
use crate::failure::Failure;

/// The requests, if files, placeholders or users are asked for; `wanted` are those of the URL, or of
/// --urls, and `body` is theirs.
///
/// # Errors
/// When a file or a placeholder is wrong, or options do not fit.
pub(super) fn set(
    args: &LoadArgs,
    wanted: &[Wanted],
    body: &[u8],
) -> Result<Option<RequestSet>, Failure> {
    let Some(option) = asked_by(args, wanted, body) else {
        return Ok(None);
    };
    fits(args, wanted, option)?;
    let feeds = args.data.feeds.iter().map(|feed| {
        let order = args.data.feed_order.into();
        requests::feed::open(&feed.name, &feed.path, order).map_err(Failure::file)
    });
    let feeds = feeds.collect::<Result<Vec<_>, Failure>>()?;
    let mut set = if let Some(file) = &args.data.requests {
        let mut set = requests::file::open(file, feeds).map_err(Failure::file)?;
        set.in_order |= args.in_order;
        set
    } else if let Some(file) = &args.recorded.har {
        recorded(args, file)?
    } else if let Some(file) = &args.recorded.replay {
        replayed(args, file, &wanted[0].url)?
    } else {
        RequestSet {
            requests: from_words(args, wanted, body, &feeds)?,
            feeds,
            in_order: args.in_order,
            ..RequestSet::default()
        }
    };
    if args.data.cookies {
        set.users = Some(Users {
            keeps_cookies: true,
        });
    }
    if args.data.requests.is_some() || args.recorded.har.is_some() || args.recorded.replay.is_some()
    {
        add_headers(args, &mut set)?;
    }
    every_feed_is_used(args, &set)?;
    finish(args, &wanted[0].url, &mut set);
    Ok(Some(set))
}

/// A target with these requests.
pub(super) fn target_of(args: &LoadArgs, set: &RequestSet, url: &Url, target: Target) -> Target {
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let headers = args.request.headers.iter();
    let host = headers.rev().find(|(name, _)| is_host(name));
    let host = host.map_or(url.host.as_str(), |(_, value)| value.as_str());
    let close = ("Connection".to_owned(), "close".to_owned());
    let fields = match args.reuse.no_keepalive {
        true => vec![close],
        false => Vec::new(),
    };
    target.with_requests(set, host, &fields)
}

/// What asks for such requests: an option, or the place of a placeholder.
fn asked_by(args: &LoadArgs, wanted: &[Wanted], body: &[u8]) -> Option<&'static str> {
    let has = |text: &str| has_places(text);
    let headers = || args.request.headers.iter().any(|(_, value)| has(value));
    let in_body = || std::str::from_utf8(body).is_ok_and(has);
    let asked = [
        ("--requests", args.data.requests.is_some()),
        ("--har", args.recorded.har.is_some()),
        ("--replay", args.recorded.replay.is_some()),
        ("--feed", !args.data.feeds.is_empty()),
        ("--cookies", args.data.cookies),
        ("{{ in the URL", wanted.iter().any(|one| has(&one.url.path))),
        ("{{ in --header", headers()),
        ("{{ in --body", in_body()),
    ];
    let found = asked.into_iter().find(|(_, is_asked)| *is_asked);
    found.map(|(option, _)| option)
}

/// Whether other options go with such requests.
fn fits(args: &LoadArgs, wanted: &[Wanted], option: &str) -> Result<(), Failure> {
    let is_replay = args.recorded.replay.is_some();
    let is_file = is_replay || args.data.requests.is_some() || args.recorded.har.is_some();
    let url = &wanted[0].url;
    let (length, pacing, traffic) = (&args.length, &args.pacing, &args.traffic);
    let of_file = [
        ("--urls", args.urls.is_some(), "each is a list of requests"),
        (
            "--method",
            args.request.method != "GET",
            "the file says the methods",
        ),
    ];
    let times = "the log has the times";
    let of_replay = [
        ("--rate", pacing.rate.is_some(), times),
        ("--stages", !pacing.stages.is_empty(), times),
        ("--count", length.count.is_some(), times),
        (
            "--duration",
            length.duration.is_some(),
            "--to ends it earlier",
        ),
        ("--each-connection", length.each_connection.is_some(), times),
        ("--warmup", !length.warmup.is_zero(), times),
    ];
    let of_any = [
        ("--crawl", args.site.crawl, "it finds the requests itself"),
        (
            "--grpc",
            traffic.grpc.method_name.is_some(),
            "calls have one message",
        ),
        ("a ws:// URL", url.is_websocket, "messages are not requests"),
        (
            "--idle alone",
            args.is_idle_alone(),
            "nothing is sent; add --connections",
        ),
        (
            "--events",
            traffic.events.events.is_some() && is_file,
            "its streams have no requests of their own",
        ),
    ];
    let of_file = of_file.iter().filter(|_| is_file);
    let of_replay = of_replay.iter().filter(|_| is_replay);
    let mut others = of_any.iter().chain(of_file).chain(of_replay);
    match others.find(|(_, is_given, _)| *is_given) {
        Some((other, _, why)) => Err(Failure::words(format!(
            "{other} does not go with {option}: {why}"
        ))),
        None if is_file && url.path != "/" => Err(Failure::words(format!(
            "{option}: the file says the paths; expected a URL without one, found `{}`",
            url.path
        ))),
        None => Ok(()),
    }
}

/// A template of an option.
fn template(name: &str, text: &str, names: Names<'_>, part: Part) -> Result<Template, Failure> {
    requests::template(name, text, names, part).map_err(Failure::file)
}

/// The requests of a URL, or of the lines of --urls.
fn from_words(
    args: &LoadArgs,
    wanted: &[Wanted],
    body: &[u8],
    feeds: &[readings::requests::Feed],
) -> Result<Vec<RequestSpec>, Failure> {
    let names = Names {
        feeds,
        ..Names::default()
    };
    let fields = headers(args, names)?;
    let body = match (&args.request.body, std::str::from_utf8(body)) {
        (None, _) => None,
        (Some(_), Ok(text)) => Some(template("--body", text, names, Part::Text)?),
        (Some(_), Err(_)) => Some(Template::fixed(body)),
    };
    let source = match &args.urls {
        Some(file) => format!("--urls {}", file.display()),
        None => "the URL".to_owned(),
    };
    let spec = |one: &Wanted| {
        Ok(RequestSpec {
            name: format!("{} {}", one.method, one.url.path),
            method: one.method.clone(),
            path: template(&source, &one.url.path, names, Part::Path)?,
            fields: fields.clone(),
            body: body.clone(),
            weight: one.weight,
            ..RequestSpec::default()
        })
    };
    wanted.iter().map(spec).collect()
}

/// The options' header fields, besides the host.
fn headers(args: &LoadArgs, names: Names<'_>) -> Result<Vec<(String, Template)>, Failure> {
    let mut fields = Vec::new();
    for (name, value) in &args.request.headers {
        if name.eq_ignore_ascii_case("host") {
            if has_places(value) {
                return Err(Failure::words(format!(
                    "--header 'Host: {value}': all requests go to one host; placeholders go into \
                     other headers"
                )));
            }
            continue;
        }
        let option = format!("--header {name}");
        fields.push((name.clone(), template(&option, value, names, Part::Text)?));
    }
    Ok(fields)
}

/// Gives the options' header fields to each request of a file that has no such field of its own.
fn add_headers(args: &LoadArgs, set: &mut RequestSet) -> Result<(), Failure> {
    let names = Names {
        feeds: &set.feeds,
        ..Names::default()
    };
    let fields = headers(args, names)?;
    for (name, value) in &fields {
        set.add_field(name, value);
    }
    Ok(())
}

/// Whether each feed of the options has a placeholder: single braces are none.
fn every_feed_is_used(args: &LoadArgs, set: &RequestSet) -> Result<(), Failure> {
    let texts = set.requests.iter().flat_map(|one| {
        let fields = one.fields.iter().map(|(_, value)| value);
        fields.chain([&one.path]).chain(&one.body)
    });
    let used: Vec<usize> = texts
        .flat_map(|text| &text.0)
        .filter_map(|piece| match piece {
            Piece::Place {
                fill: Fill::Column { feed, .. },
                ..
            } => Some(*feed),
            _ => None,
        })
        .collect();
    let given = |name: &str| args.data.feeds.iter().any(|feed| feed.name == name);
    let mut feeds = set.feeds.iter().enumerate();
    match feeds.find(|(number, feed)| given(&feed.name) && !used.contains(number)) {
        None => Ok(()),
        Some((_, feed)) => Err(Failure::words(format!(
            "--feed {0}: no placeholder names it; write {{{{ {0}.{1} }}}} in the URL, in a --header, \
             in --body or in a file of requests",
            feed.name, feed.columns[0]
        ))),
    }
}

/// What the options say of all requests.
fn finish(args: &LoadArgs, url: &Url, set: &mut RequestSet) {
    let contains = args.answer.expect_contains.as_deref();
    set.expect(args.answer.expect_status, contains);
    for request in &mut set.requests {
        // A forward proxy gets the absolute form (RFC 9112, 3.2.2).
        if args.route.proxy.is_some() {
            let before = format!("http://{}", url.host).into_bytes();
            match request.path.0.first_mut() {
                Some(Piece::Text(text)) => drop(text.splice(..0, before)),
                _ => request.path.0.insert(0, Piece::Text(before)),
            }
        }
    }
}

/// The requests of a HAR file.
fn recorded(args: &LoadArgs, file: &Path) -> Result<RequestSet, Failure> {
    let options = HarOptions {
        keeps_secrets: args.recorded.har_secrets,
        keeps_pauses: args.recorded.har_pauses,
    };
    let found = har::open(file, &options).map_err(Failure::file)?;
    for note in found.notes() {
        eprintln!("weigh: --har {}: {note}", file.display());
    }
    Ok(found.set)
}

/// Writes the requests of a HAR file, if options ask for that.
///
/// # Errors
/// When it cannot be read or written.
pub(super) fn write(args: &LoadArgs) -> Result<bool, Failure> {
    let (Some(har), Some(to)) = (&args.recorded.har, &args.recorded.write_requests) else {
        return Ok(false);
    };
    let set = recorded(args, har)?;
    let text = requests::file::write(&set).map_err(Failure::words)?;
    write_private(to, &text)
        .map_err(|e| Failure::words(format!("--write-requests {}: {e}", to.display())))?;
    eprintln!(
        "weigh: {} requests are in {1}; `weigh load URL --requests {1}` sends them",
        set.requests.len(),
        to.display()
    );
    Ok(true)
}

/// Writes a file that only its owner can read: bodies and paths may hold secrets.
fn write_private(to: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(to)?.write_all(text.as_bytes())
}

/// The requests of a log.
fn replayed(args: &LoadArgs, file: &Path, url: &Url) -> Result<RequestSet, Failure> {
    let options = LogOptions {
        methods: args.recorded.replay_methods.clone(),
        speed: args.recorded.speed.unwrap_or(1.0),
        from: args.recorded.from,
        to: args.recorded.to,
        host: Some(url.host.clone()),
    };
    let set = log::open(file, &options).map_err(Failure::file)?;
    let left_out = set.replay.iter().flat_map(|replay| &replay.left_out);
    for (why, count) in left_out {
        let lines = if *count == 1 { "line is" } else { "lines are" };
        eprintln!("weigh: --replay: {count} {lines} left out: {why}");
    }
    Ok(set)
}
