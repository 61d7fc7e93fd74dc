//! `weigh load`.

use std::io::IsTerminal;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use load::{
    Arrivals, BodyRule, Expect, Job, Lane, LearnError, Progress, StatusRule, Stint, Stop, Target,
    Wait, learn, run,
};
use net::IoKind;
use readings::{LoadReading, Pacing};
use serde_json::{Map, Value, json};

use crate::cli::{self, Format, LoadArgs};
use crate::failure::Failure;
use crate::output::{print_json, print_text};
use crate::signals::Signals;

/// Exit status when it was measured, but is invalid.
const INVALID: u8 = 4;

/// Puts load on a URL.
pub fn load(args: &LoadArgs) -> Result<u8, Failure> {
    let signals = Signals::listen()?;
    let (address, host, path) = locate(&args.url)?;
    let target = target(args, address, &host, &path)?;
    let (target, varies) = check(args, target)?;
    if varies {
        eprintln!("weigh: the answers differ from time to time; their content is not compared");
    }
    let job = job(args, target);
    let reading = run_watched(&job, &signals)?;
    write_hlog(args, &reading)?;
    let reasons = verdict::reasons(&reading);
    match args.format {
        Format::Json => print_json(&report::load_json(&reading, extra(args, varies))),
        Format::Text => print_text(&report::load_terminal(&reading, &args.url)),
    }
    if let Some(status) = signals.status() {
        return Ok(status);
    }
    Ok(if reasons.is_empty() { 0 } else { INVALID })
}

/// Address, host name and path of a URL.
fn locate(url: &str) -> Result<(SocketAddr, String, String), Failure> {
    let rest = url.strip_prefix("http://").ok_or_else(|| {
        let why = if url.starts_with("https://") {
            "TLS is not spoken; measure behind it, with http://"
        } else {
            "expected a URL such as http://127.0.0.1:8080/path"
        };
        Failure::words(format!("{url}: {why}"))
    })?;
    let (host, path) = match rest.find(['/', '?']) {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let path = match path.split('#').next().unwrap_or("/") {
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_string(),
    };
    let bad = host.is_empty()
        || host.contains('@')
        || url
            .bytes()
            .any(|b| b.is_ascii_whitespace() || b.is_ascii_control());
    if bad {
        return Err(Failure::words(format!(
            "{url}: expected a URL such as http://127.0.0.1:8080/path"
        )));
    }
    let has_port = match host.rfind(']') {
        Some(end) => host[end..].contains(':'),
        None => host.contains(':'),
    };
    let with_port = if has_port {
        host.to_string()
    } else {
        format!("{host}:80")
    };
    let address = with_port
        .to_socket_addrs()
        .map_err(|e| Failure::words(format!("{url}: `{host}` cannot be resolved: {e}")))?
        .next()
        .ok_or_else(|| Failure::words(format!("{url}: `{host}` has no address")))?;
    Ok((address, host.to_string(), path))
}

fn target(args: &LoadArgs, address: SocketAddr, host: &str, path: &str) -> Result<Target, Failure> {
    let method_ok = !args.method.is_empty() && args.method.bytes().all(|b| b.is_ascii_alphabetic());
    if !method_ok {
        return Err(Failure::words(format!(
            "--method: expected a word such as GET or POST, found `{}`",
            args.method
        )));
    }
    let mut fields = args.headers.clone();
    if args.no_keepalive {
        fields.push(("Connection".into(), "close".into()));
    }
    let mut body = Vec::new();
    if let Some(file) = &args.body {
        body = std::fs::read(file)
            .map_err(|e| Failure::words(format!("--body {}: {e}", file.display())))?;
        fields.push(("Content-Length".into(), body.len().to_string()));
    }
    let mut request = net::fetch::request(&args.method, host, path, &fields);
    request.extend_from_slice(&body);
    Ok(Target {
        address,
        request,
        expect: Expect {
            status: args
                .expect_status
                .map_or(StatusRule::Success, StatusRule::Exactly),
            body: match &args.expect_contains {
                Some(text) => BodyRule::Contains(text.as_bytes().into()),
                None => BodyRule::Any,
            },
        },
    })
}

/// Asks the target first: what it answers now is the measure for all later answers.
fn check(args: &LoadArgs, mut target: Target) -> Result<(Target, bool), Failure> {
    if args.body_varies {
        return Ok((target, false));
    }
    match learn(&target, args.timeout) {
        Ok(learned) => {
            target.expect = learned.expect;
            Ok((target, learned.varies))
        }
        Err(LearnError::Status(status)) => Err(Failure::failed(format!(
            "{} answers with status {status}; say --expect-status {status} if that is intended",
            args.url
        ))),
        Err(e) => Err(Failure::failed(format!(
            "{} does not answer: {e}",
            args.url
        ))),
    }
}

fn job(args: &LoadArgs, target: Target) -> Job {
    let pacing = match args.rate {
        None => Pacing::Closed,
        Some(rate_per_s) => Pacing::Open { rate_per_s },
    };
    let stop = match args.count {
        Some(count) => Stop::Requests(count),
        None => Stop::After(args.duration.unwrap_or(Duration::from_secs(10))),
    };
    Job {
        lanes: vec![Lane {
            target,
            connections: args.connections,
        }],
        stints: vec![Stint {
            lane: 0,
            pacing,
            cut: args.warmup,
            stop,
            reading: Some(0),
        }],
        threads: args.threads.min(args.connections) as usize,
        requests_per_connection: if args.no_keepalive {
            Some(1)
        } else {
            args.requests_per_connection
        },
        connect_timeout: args.timeout,
        timeout: args.timeout,
        arrivals: match args.arrivals {
            cli::Arrivals::Even => Arrivals::Even,
            cli::Arrivals::Poisson => Arrivals::Poisson,
        },
        cpus: args.cpus.clone(),
        sources: args
            .source
            .iter()
            .map(|ip| SocketAddr::new(*ip, 0))
            .collect(),
        io: args.io.unwrap_or_else(IoKind::best),
        wait: match args.wait {
            cli::Wait::Spin => Wait::Spin,
            cli::Wait::Sleep => Wait::Sleep,
            cli::Wait::Auto => {
                let cpus = net::os::allowed_cpus().map_or(1, |cpus| cpus.len());
                if (args.threads as usize) < cpus {
                    Wait::Spin
                } else {
                    Wait::Sleep
                }
            }
        },
        seed: fastrand::u64(..),
    }
}

/// Runs the job; a line a second on standard error when it is a terminal.
fn run_watched(job: &Job, signals: &Signals) -> Result<LoadReading, Failure> {
    let show = std::io::stderr().is_terminal();
    let start = Instant::now();
    let (mut requests, mut errors, mut shown) = (0, 0, start);
    let mut readings = run(job, &signals.stop, |progress| {
        if let Progress::Tick {
            requests: more,
            errors: failed,
            ..
        } = progress
        {
            requests += more;
            errors += failed;
            let since = shown.elapsed().as_secs_f64();
            if show && since >= 1.0 {
                eprint!(
                    "\r\x1b[K{:>5.0} s  {:>9.0} requests/s  {errors} errors",
                    start.elapsed().as_secs_f64(),
                    requests as f64 / since,
                );
                (requests, shown) = (0, Instant::now());
            }
        }
    })
    .map_err(Failure::failed)?;
    if show {
        eprint!("\r\x1b[K");
    }
    if readings.is_empty() {
        return Err(Failure::failed("nothing was measured"));
    }
    Ok(readings.remove(0))
}

fn write_hlog(args: &LoadArgs, reading: &LoadReading) -> Result<(), Failure> {
    let Some(path) = &args.hlog else {
        return Ok(());
    };
    let text = reading.response.to_base64() + "\n";
    std::fs::write(path, text)
        .map_err(|e| Failure::words(format!("--hlog {}: {e}", path.display())))
}

fn extra(args: &LoadArgs, varies: bool) -> Map<String, Value> {
    let mut extra = Map::new();
    extra.insert("url".into(), json!(args.url));
    extra.insert(
        "content_compared".into(),
        json!(!varies && !args.body_varies),
    );
    extra
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> Option<(String, String, String)> {
        locate(url)
            .ok()
            .map(|(address, host, path)| (address.to_string(), host, path))
    }

    #[test]
    fn urls_are_taken_apart() {
        let expected = |a: &str, h: &str, p: &str| Some((a.into(), h.into(), p.into()));
        assert_eq!(
            parts("http://127.0.0.1:81/a?b#c"),
            expected("127.0.0.1:81", "127.0.0.1:81", "/a?b")
        );
        assert_eq!(
            parts("http://127.0.0.1"),
            expected("127.0.0.1:80", "127.0.0.1", "/")
        );
        assert_eq!(
            parts("http://[::1]?x=1"),
            expected("[::1]:80", "[::1]", "/?x=1")
        );
        for bad in [
            "127.0.0.1",
            "https://127.0.0.1/",
            "http://",
            "http://a b/",
            "ftp://x/",
        ] {
            assert!(locate(bad).is_err(), "{bad}");
        }
    }
}
