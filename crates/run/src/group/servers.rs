//! Starts and stops the servers of a group, and records their configurations.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

use crate::context::Context;
use crate::context::orders::ready_request;
use crate::group::ready_wait::ReadyWait;
use crate::group::result::GroupResult;
use crate::group::start_failures::GroupFailure;
use crate::testbed::copies::{is_copy, original};
use crate::testbed::{StartedServer, cpu_placement, to_write, unexpected};
use agent::AgentError;
use agent::wire::{Answer, AwaitServer, Order, StartServer};
use experiment::plan::Group;
use experiment::recipe::{Behind, ReloadState, RenderContext, Rendered, is_certificate};
use experiment::{EventKind, HttpVersion, ResolvedCondition, ServerSpec, Upstream};
use readings::{ServerSettings, ServerStart};
use tls::{ClientSettings, KeyType, TlsError};

/// Longer files are left out of a recorded configuration.
const CONFIGURATION_BYTES_MAX: usize = 64 * 1024;
/// How long a server may take to show that it still answers.
const STILL_READY_MS: u64 = 1_000;

/// Starts a condition's servers, upstreams first, and waits until each is ready. Returns their
/// addresses.
pub(crate) fn start_servers(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    up: &mut Vec<StartedServer>,
    random: &mut fastrand::Rng,
) -> Result<BTreeMap<String, SocketAddr>, GroupFailure> {
    let began = Instant::now();
    let started = start_each(cx, resolved, up, random);
    cx.starting += began.elapsed();
    started
}

fn start_each(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    up: &mut Vec<StartedServer>,
    random: &mut fastrand::Rng,
) -> Result<BTreeMap<String, SocketAddr>, GroupFailure> {
    let mut addresses = BTreeMap::new();
    for server in cpu_placement::start_order(&resolved.servers, random) {
        let host = server.host.as_deref();
        let port = match server.port {
            Some(port) => port,
            None => cx.testbed.hosts.at(host)?.free_port(random),
        };
        let address = SocketAddr::new(cx.testbed.hosts.address(host, host), port);
        addresses.insert(server.name.clone(), address);
        start_server(cx, server, address, &addresses, up)?;
    }
    Ok(addresses)
}

fn start_server(
    cx: &mut Context<'_>,
    server: &ServerSpec,
    address: SocketAddr,
    addresses: &BTreeMap<String, SocketAddr>,
    up: &mut Vec<StartedServer>,
) -> Result<(), GroupFailure> {
    let recipe = cx
        .options
        .recipes
        .get(&server.recipe)
        .ok_or_else(|| failed(&format!("no recipe is called `{}`", server.recipe)))?;
    let host = server.host.as_deref();
    let version = recipe.wanted_version(&server.params);
    let programs = cx.testbed.programs(host, recipe, version)?;
    let weigh = cx.testbed.hosts.at(host)?.remote_program();
    let (folder, copy_of_weigh) = match cx.testbed.agent(host)?.ask(&Order::Folder {
        server: server.name.clone(),
        user: recipe.run_as.clone(),
    })? {
        Answer::Folder { path, weigh } => (PathBuf::from(path), weigh.map(PathBuf::from)),
        other => return Err(unexpected(&other).into()),
    };
    let wanted = builds::revision_of(&server.params);
    let built = wanted.map(|wanted| {
        let built = cx.options.builds.get(&wanted);
        built.ok_or_else(|| failed(&format!("`{}` is not built", wanted.revision)))
    });
    let built = built.transpose()?;
    let cpus = match server.cpus.is_empty() {
        true => cx.placement.server_cpus.clone(),
        false => server.cpus.clone(),
    };
    let upstreams = upstreams(cx, server, addresses, up)?;
    let at_fault = |error| GroupFailure::of_server(error, &server.name);
    let filled = recipe.fill(&server.params);
    let secured = filled.and_then(|params| {
        let key_type = recipe.tls(&params)?;
        let more = recipe.extra_certificates(&params)?;
        Ok((key_type, recipe.wants_client_certs(&params)?, more))
    });
    let (key_type, wants_client_certs, more) = secured.map_err(|e| at_fault(failed(&e)))?;
    let needs_certificates = key_type.is_some() || upstreams.iter().any(|one| one.tls);
    let certificates = needs_certificates
        .then(|| {
            let authority = &cx.authority;
            authority.certificates(&server.name, address, key_type, more)
        })
        .transpose()
        .map_err(|e| failed(&e))?;
    let context = RenderContext {
        name: original(&server.name).to_owned(),
        dir: folder.clone(),
        listen_addr: address,
        upstreams,
        params: server.params.clone(),
        programs,
        weigh: copy_of_weigh
            .or(weigh)
            .unwrap_or_else(|| cx.options.weigh.to_path_buf()),
        cpus: cpus.len().max(1),
        certificates,
        checkout: built.map(|built| built.path().to_owned()),
        reload: ReloadState {
            is_expected: is_reloaded(cx, &server.name),
            number: 0,
        },
    };
    let mut rendered = recipe.render(&context).map_err(|e| at_fault(failed(&e)))?;
    if rendered.cwd.as_ref().is_some_and(|cwd| cwd.is_relative()) {
        // Another machine has no such folder.
        let here = (!cx.testbed.is_remote(host)).then(std::env::current_dir);
        let here = here.transpose().map_err(|e| failed(&e))?;
        rendered.cwd = here.map(|here| here.join(rendered.cwd.unwrap_or_default()));
    }
    if !is_copy(&server.name) {
        record_configuration(cx, server, address, &cpus, &rendered);
        let command = rendered.version_command.as_deref();
        let version = command.and_then(|it| cx.testbed.version(host, recipe, it));
        if let Some(configuration) = cx.configurations.get_mut(&server.name) {
            configuration["version"] = json!(version);
        }
    }
    let signals = rendered
        .stop
        .iter()
        .map(|(signal, wait)| (signal.clone(), wait.as_millis() as u64))
        .collect();
    let tls = key_type.map(|_| {
        let identity = wants_client_certs.then(|| cx.authority.client_identity(KeyType::default()));
        Ok::<_, TlsError>(ClientSettings {
            identity: identity.transpose()?,
            ..cx.authority.client_of_server(&server.name)?
        })
    });
    let tls = tls.transpose().map_err(|e| failed(&e))?;
    let (start, ready) = orders(server, address, cpus, rendered, tls);
    up.push(StartedServer {
        name: server.name.clone(),
        host: server.host.clone(),
        folder,
        signals,
        recipe: server.recipe.clone(),
        context,
        start: start.clone(),
        ready: ready.clone(),
        began: None,
    });
    let tcp_congestion = cx.testbed.start_server(host, start).map_err(at_fault)?;
    record_congestion(cx, &server.name, tcp_congestion.as_deref());
    let began = await_ready(cx, host, &ready)?.map_err(at_fault)?;
    if let Some(started) = up.last_mut() {
        started.began = began;
    }
    Ok(())
}

/// Waits until a server is ready, and says from time to time what it is waiting for. Returns how it
/// started, if its agent knows. The outer error is about reaching the host's agent, the inner one about
/// the server.
fn await_ready(
    cx: &mut Context<'_>,
    host: Option<&str>,
    ready: &AwaitServer,
) -> Result<Result<Option<ServerStart>, AgentError>, AgentError> {
    let mut wait = ReadyWait::new(ready);
    loop {
        let agent = cx.testbed.agent(host)?;
        let answer = agent.ask_unless(&Order::Await(wait.next_order()), cx.stop);
        let answer = answer.map(|answer| match answer {
            Answer::Up(start) => Some(start),
            _ => None,
        });
        if cx.stopped() {
            return Ok(answer);
        }
        match wait.take(answer) {
            ControlFlow::Continue(line) => cx.note(line),
            ControlFlow::Break(end) => return Ok(end),
        }
    }
}

/// Whether an event reloads a server, under any condition.
fn is_reloaded(cx: &Context<'_>, server: &str) -> bool {
    cx.options.experiment.events.iter().any(|event| {
        let mut servers = event.target.servers().iter();
        event.what.all().contains(&EventKind::Reload) && servers.any(|it| it == original(server))
    })
}

/// The upstreams of a server as its recipe sees them.
fn upstreams(
    cx: &Context<'_>,
    server: &ServerSpec,
    addresses: &BTreeMap<String, SocketAddr>,
    up: &[StartedServer],
) -> Result<Vec<Behind>, AgentError> {
    let from = server.host.as_deref();
    let behind = |upstream: &Upstream| match upstream {
        Upstream::Server(name) => {
            let addr = cx
                .testbed
                .address_of(cx.options.experiment, from, name, addresses)
                .ok_or_else(|| failed(&format!("upstream `{name}` is not running")))?;
            let started = up.iter().find(|one| one.name == *name);
            Ok(Behind {
                name: original(name).to_owned(),
                addr,
                dir: started.map(|one| one.folder.clone()),
                tls: started.is_some_and(|one| one.ready.tls.is_some()),
            })
        }
        Upstream::Address(address) => Ok(Behind {
            name: address.to_string(),
            addr: *address,
            dir: None,
            tls: false,
        }),
    };
    server.upstreams.iter().map(behind).collect()
}

fn record_configuration(
    cx: &mut Context<'_>,
    server: &ServerSpec,
    address: SocketAddr,
    cpus: &[u32],
    rendered: &Rendered,
) {
    let files: BTreeMap<&str, String> = rendered
        .files
        .iter()
        .map(|file| {
            // Content can be large, and its recipe can generate it again.
            let text = match file.bytes.len() {
                _ if is_certificate(&file.path) => "(made for this run)".to_owned(),
                ..=CONFIGURATION_BYTES_MAX => String::from_utf8_lossy(&file.bytes).into_owned(),
                bytes => format!("({bytes} bytes)"),
            };
            (file.path.as_str(), text)
        })
        .collect();
    let wanted = builds::revision_of(&server.params);
    let built = wanted.and_then(|wanted| cx.options.builds.get(&wanted));
    let image = builds::image_of(&server.params).and_then(|image| cx.options.builds.image(&image));
    let mut configuration = json!({
        "recipe": server.recipe,
        "address": address.to_string(),
        "host": server.host,
        "cpus": cpus,
        "command": rendered.command,
        "version_command": rendered.version_command,
        "settings": rendered.settings,
        "files": files,
    });
    if let Some(built) = built {
        configuration["revision"] = json!({
            "name": built.revision(),
            "commit": built.commit(),
        });
    }
    if let Some(image) = image {
        configuration["image"] = json!({ "name": image.name, "digest": image.digest });
    }
    cx.configurations.insert(server.name.clone(), configuration);
}

/// Adds the congestion control of a started server to its settings.
fn record_congestion(cx: &mut Context<'_>, server: &str, tcp: Option<&str>) {
    let settings = cx.configurations.get_mut(server);
    let Some(settings) = settings.and_then(|one| one.get_mut("settings")) else {
        return;
    };
    if let Ok(mut told) = serde_json::from_value::<BTreeMap<String, String>>(settings.clone()) {
        ServerSettings::add_tcp_congestion(&mut told, tcp);
        *settings = json!(told);
    }
}

/// The servers that have ended, or do not answer any more as when they were started.
pub(crate) fn broken_servers(cx: &mut Context<'_>, up: &[StartedServer]) -> Vec<String> {
    let mut broken = Vec::new();
    for server in up {
        let order = Order::Await(AwaitServer {
            timeout_ms: STILL_READY_MS,
            ..server.ready.clone()
        });
        let Ok(agent) = cx.testbed.agent(server.host.as_deref()) else {
            continue;
        };
        if let Err(AgentError::Failed(_)) = agent.ask_unless(&order, cx.stop) {
            broken.push(server.name.clone());
        }
    }
    broken
}

/// Stops the servers, upstreams last, and collects their logs.
pub(crate) fn stop_servers(
    cx: &mut Context<'_>,
    group: &Group,
    up: &[StartedServer],
    result: &mut GroupResult,
) {
    let mut files = BTreeMap::new();
    // Servers take up to two seconds to end, so all begin before the first is waited for.
    for server in up.iter().rev() {
        let (Some((signal, _)), Ok(agent)) = (
            server.signals.first(),
            cx.testbed.agent(server.host.as_deref()),
        ) else {
            continue;
        };
        let order = Order::BeginStop {
            server: server.name.clone(),
            signal: signal.clone(),
        };
        if let Err(AgentError::Lost(_)) = agent.ask(&order) {
            result.agent_lost = true;
            return;
        }
    }
    for server in up.iter().rev() {
        let signals = server.signals.clone();
        let name = server.name.clone();
        let Ok(agent) = cx.testbed.agent(server.host.as_deref()) else {
            continue;
        };
        let logs = agent.ask(&Order::Logs {
            server: name.clone(),
        });
        if let Ok(Answer::Logs { files: own }) = logs {
            for (file, text) in own {
                files.insert(format!("{name}-{file}"), text);
            }
        }
        match agent.ask(&Order::Stop {
            server: name.clone(),
            signals,
        }) {
            Ok(Answer::Stopped { killed: true, .. }) => result.found.warnings.push(format!(
                "server `{name}` did not stop after its signals and was killed"
            )),
            Ok(_) | Err(AgentError::Failed(_)) => {}
            Err(AgentError::Lost(_)) => {
                result.agent_lost = true;
                return;
            }
        }
    }
    if let Some(first) = group.trials.iter().map(|planned| planned.trial).min() {
        result.found.logs.push((first, files));
    }
}

fn failed(e: &dyn std::fmt::Display) -> AgentError {
    AgentError::Failed(e.to_string())
}

/// The orders to start a server and to await its readiness.
fn orders(
    server: &ServerSpec,
    address: SocketAddr,
    cpus: Vec<u32>,
    rendered: Rendered,
    tls: Option<ClientSettings>,
) -> (StartServer, AwaitServer) {
    let files = rendered.files.iter().map(to_write);
    let start = StartServer {
        server: server.name.clone(),
        dirs: rendered.dirs,
        memory_dirs: rendered.memory_dirs,
        files: files.collect(),
        command: rendered.command,
        env: rendered.env,
        cwd: rendered.cwd,
        inherit_env: rendered.inherit_env,
        setuid_programs: rendered.setuid_programs,
        cpus,
        logs: rendered.logs,
        counts: rendered.counts,
    };
    let ready = rendered.ready;
    let raw = ready.send.is_some();
    // Without a path, an open port is enough.
    let by_port = ready.path.is_empty().then(String::new);
    let is_http = ready.send.is_none() && by_port.is_none();
    let http = if is_http {
        ready.http
    } else {
        HttpVersion::default()
    };
    let request =
        (ready.send.or(by_port)).unwrap_or_else(|| ready_request(&server.name, &ready.path));
    let ready = AwaitServer {
        server: Some(server.name.clone()),
        address,
        request,
        raw,
        status: ready.status,
        contains: ready.contains,
        tls: tls.map(|tls| ClientSettings {
            alpn: vec![http.alpn().into()],
            ..tls
        }),
        http,
        proxy_protocol: ready.proxy_protocol,
        timeout_ms: ready.timeout.as_millis() as u64,
    };
    (start, ready)
}
