//! `weigh load --crawl`: the pages of a site, fetched in order, pass after pass.

use std::sync::Arc;

use load::{
    BodyRule, Choice, CrawlLimit, CrawlLimits, Expect, Request, Segment, StatusRule, Stop, Target,
};
use readings::LoadReading;
use serde_json::json;

use super::target::{self, Called, Destination, Url, Wanted};
use super::{fit, requests};
use crate::cli::{Format, LoadArgs};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::output::{print_json, print_text};

/// Most bytes of all pages together: they stay in memory, to be compared with later answers.
const BYTES_MAX: usize = 1 << 30;

/// Discovers the pages, then fetches them as often as asked.
pub(super) fn crawl(args: &LoadArgs, signals: &Signals) -> Result<u8, Failure> {
    let text = args.url.as_deref().unwrap_or_default();
    let url = target::url(text).map_err(Failure::words)?;
    let wanted = Wanted {
        weight: 1,
        method: "GET".to_owned(),
        url: url.clone(),
    };
    // Requests with data are refused before any page is fetched.
    requests::set(args, &[wanted], &[])?;
    let tls = target::tls(args, &url)?;
    let Destination { address, chosen } = target::destination(args, &url)?;
    fit::look_at_families(args, &address)?;
    let client = tls.as_ref().map(::tls::ClientTls::new).transpose();
    let client = client.map_err(Failure::words)?;
    let bytes = |path: &str| {
        let page = Url {
            is_tls: url.is_tls,
            is_websocket: url.is_websocket,
            host: url.host.clone(),
            path: path.to_string(),
        };
        target::request_bytes(args, "GET", &page, &[])
    };
    let limits = CrawlLimits {
        pages: args.site.pages_max as usize,
        bytes: BYTES_MAX,
        depth: args.site.depth as usize,
        timeout: args.limits.timeout,
    };
    let host = &url.host;
    let site = load::crawl(
        &address,
        client.as_ref(),
        host,
        &url.path,
        limits,
        bytes,
        &signals.stop,
    )
    .map_err(|e| Failure::failed(format!("{text}: {e}")))?;
    for (path, status) in &site.refused {
        eprintln!("weigh: {path} answers with status {status} and is left out");
    }
    if let Some(limit) = site.limit {
        let most = args.site.pages_max;
        let why = match limit {
            CrawlLimit::Pages => format!("more than --pages-max {most} pages"),
            CrawlLimit::Refused => format!("{most} pages were refused (--pages-max)"),
            CrawlLimit::Bytes => format!(
                "the pages exceed {} GiB in total; lower --pages-max or --depth",
                BYTES_MAX >> 30
            ),
            CrawlLimit::Links => "all links exceed 32 MiB; lower --depth".to_owned(),
        };
        eprintln!("weigh: {} links were not followed: {why}", site.left);
    }
    let pages = site.pages.len();
    let page_bytes: usize = site.pages.iter().map(|page| page.body.len()).sum();
    let requests = site
        .pages
        .into_iter()
        .map(|page| Request {
            bytes: bytes(&page.path),
            name: page.path,
            expect: Expect {
                status: StatusRule::Exactly(page.status),
                body: BodyRule::Bytes(Arc::from(page.body)),
            },
            weight: 1,
        })
        .collect();
    let target = Target {
        address,
        connections: 1,
        requests,
        choice: Choice::InOrder,
        proxy_header: None,
        tls,
        http2: None,
        http3: None,
        requests_per_connection: None,
        idle: None,
        traffic: load::Traffic::Answers,
        filling: None,
    };
    let readings = if signals.stopped() {
        eprintln!("weigh: stopped while looking for pages, after {pages}");
        Vec::new()
    } else {
        passes(args, target, pages as u64, signals)?
    };
    let flaws = readings.iter().flat_map(verdict::load_flaws);
    let problems: Vec<String> = flaws.map(|flaw| report::flaw(&flaw)).collect();
    match args.output.format {
        Format::Json => print_json(&json!({
            "url": text,
            "address": chosen,
            "pages": pages,
            "page_bytes": page_bytes,
            "refused": site.refused,
            "passes": readings.iter().map(|reading| json!({
                "duration_s": reading.duration_s,
                "requests": reading.requests,
                "bytes_read": reading.bytes_read,
                "errors": reading.errors,
                "client_cpu_s": reading.client.cpu_s,
                "latency_us": reading.response.quantiles(),
            })).collect::<Vec<_>>(),
            "problems": problems,
        })),
        Format::Text => {
            let url = text.to_owned();
            let shown = Called { url, chosen }.to_string();
            print_text(&report::crawl_terminal(
                &readings, &shown, pages, page_bytes, &problems,
            ));
        }
    }
    if let Some(status) = signals.status() {
        return Ok(status);
    }
    Ok(if problems.is_empty() {
        0
    } else {
        super::INVALID
    })
}

/// One segment per pass, each with its reading, on one connection.
fn passes(
    args: &LoadArgs,
    target: Target,
    pages: u64,
    signals: &Signals,
) -> Result<Vec<LoadReading>, Failure> {
    let mut job = super::job(args, target);
    job.threads = 1;
    job.rows = None;
    job.segments = (0..args.site.passes as usize)
        .map(|pass| Segment::closed(Stop::Requests(pages)).on(0, Some(pass)))
        .collect();
    let mut readings = load::run(&job, &signals.stop, |_| {}).map_err(Failure::failed)?;
    // A stop from outside leaves passes that did not happen, and one that was cut short.
    let fetched = |reading: &LoadReading| reading.requests + reading.errors.total();
    let complete = readings.iter().filter(|r| fetched(r) == pages).count();
    if signals.stopped() && complete < args.site.passes as usize {
        let cut = readings.get(complete).map_or(0, fetched);
        eprintln!(
            "weigh: stopped in pass {}, after {cut} of {pages} pages",
            complete + 1
        );
    } else if complete == 0 {
        return Err(Failure::failed("no pass was complete"));
    }
    readings.retain(|reading| fetched(reading) == pages);
    Ok(readings)
}
