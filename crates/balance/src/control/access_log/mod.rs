//! The thread that writes logs and starts hooks.
//!
//! It reads [`Event`]s from the workers' bounded channel. Workers never wait for a slow disk or
//! command; events that do not fit are dropped and counted.

mod date;
mod file;
mod hooks;
mod lines;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use net::os::{StartThreadError, start_thread};

use crate::config::model::{Backend, Config, ServiceKind};
use crate::config::{Placeholders, Template};
use crate::engine::restart_on_panic;
use crate::engine::shared::ProcessState;
use crate::engine::shared::events::Event;

use file::LogFile;
use hooks::Runner;
use lines::{Line, Served};

/// Events are taken and lines written in batches, to save wake-ups and system calls.
const FLUSH_INTERVAL: Duration = Duration::from_millis(20);

/// Starts the thread and opens the logs. It ends when all senders are gone and everything is
/// written; running hooks have one more second.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(
    config: Arc<Config>,
    process: Arc<ProcessState>,
    events: Receiver<Event>,
) -> Result<JoinHandle<()>, StartThreadError> {
    // It stays open when the thread panics: the process may no longer be allowed to open it.
    let mut access_log = AccessLog::new(config, process.clone());
    start_thread("of the access log", move || {
        restart_on_panic("the log thread", &process, || access_log.run(&events));
    })
}

/// Unix time; 0 if the clock is set before 1970.
fn unix_time() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

struct AccessLog {
    config: Arc<Config>,
    process: Arc<ProcessState>,
    files: Vec<LogFile>,
    services: Vec<Logs>,
    runner: Option<Runner>,
    /// Buffer for a command line.
    command: Vec<u8>,
}

/// Indexes into `files`.
#[derive(Default)]
struct Logs {
    access: Option<usize>,
    /// By back end.
    throughput: Vec<Option<usize>>,
    /// By back end.
    traffic: Vec<Option<usize>>,
}

impl AccessLog {
    fn new(config: Arc<Config>, process: Arc<ProcessState>) -> AccessLog {
        let mut files = Vec::new();
        let mut known = HashMap::<PathBuf, usize>::new();
        // Logs with the same path share a file, so that lines are not torn.
        let mut file = |path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            Some(*known.entry(path.clone()).or_insert_with(|| {
                files.push(LogFile::open(path.clone(), &process));
                files.len() - 1
            }))
        };
        let services = config.services.iter().map(|service| Logs {
            access: file(&service.access_log),
            throughput: service
                .backends
                .iter()
                .map(|backend| file(&backend.throughput_log))
                .collect(),
            traffic: service
                .backends
                .iter()
                .map(|backend| file(&backend.traffic_log))
                .collect(),
        });
        let services = services.collect();
        let hooks = |backend: &Backend| backend.hooks != Default::default();
        let any = config
            .services
            .iter()
            .any(|one| one.backends.iter().any(hooks));
        AccessLog {
            runner: any.then(|| Runner::start(&config, &process)),
            config,
            process,
            files,
            services,
            command: Vec::new(),
        }
    }

    fn run(&mut self, events: &Receiver<Event>) {
        // What was left in the buffers by a panic.
        self.write();
        while let Ok(event) = events.recv() {
            self.take(&event);
            loop {
                std::thread::sleep(FLUSH_INTERVAL);
                let taken = events.try_iter().map(|event| self.take(&event)).count();
                self.write();
                if taken == 0 {
                    break;
                }
            }
        }
    }

    /// Writes the buffers of all files.
    fn write(&mut self) {
        for file in &mut self.files {
            file.write(&self.process);
        }
    }

    fn take(&mut self, event: &Event) {
        #[cfg(test)]
        self.process
            .meet_panic(crate::engine::shared::Fault::LogPanic);
        match event {
            Event::ConnectionOpened {
                service,
                backend,
                client,
            } => self.hook(*service, *backend, Some(*client), |one| &one.hooks.on_start),
            Event::BackendFailed {
                service,
                backend,
                client,
            } => self.hook(*service, *backend, *client, |one| &one.hooks.on_fail),
            Event::ConnectionClosed {
                service,
                backend,
                client,
                bytes_to,
                bytes_from,
                duration_ns,
                cut,
            } => {
                // HTTP services log requests instead, and upgraded connections that were cut.
                let is_tcp = matches!(self.kind(*service), Some(ServiceKind::Tcp));
                if is_tcp || cut.is_some() {
                    let line = Line {
                        client: client.ip(),
                        served: match is_tcp {
                            true => Served::Connection,
                            false => Served::Upgraded,
                        },
                        cut: *cut,
                        bytes_to: *bytes_to,
                        bytes_from: *bytes_from,
                        duration_ns: *duration_ns,
                    };
                    self.log(*service, Some(*backend), &line);
                }
                self.hook(*service, *backend, Some(*client), |one| &one.hooks.on_end);
            }
            Event::RequestFinished {
                service,
                backend,
                client,
                line,
                status,
                bytes_to,
                bytes_from,
                duration_ns,
                cut,
            } => {
                let bytes = line.as_ref().map_or(0, |line| line.bytes());
                self.process.line_bytes.fetch_sub(bytes, Ordering::Relaxed);
                let line = Line {
                    client: client.ip(),
                    served: Served::Request {
                        line: line.as_deref(),
                        status: *status,
                    },
                    cut: *cut,
                    bytes_to: *bytes_to,
                    bytes_from: *bytes_from,
                    duration_ns: *duration_ns,
                };
                self.log(*service, *backend, &line);
            }
            Event::Traffic {
                service,
                backend,
                client,
                to_backend,
                bytes,
            } => {
                self.process
                    .traffic_bytes
                    .fetch_sub(bytes.len() as u64, Ordering::Relaxed);
                self.traffic(*service, *backend, *client, *to_backend, bytes);
            }
            Event::BackendChanged {
                service,
                backend,
                usable,
                cause,
                errno,
            } => {
                let Some(service) = self.config.services.get(*service) else {
                    return;
                };
                let Some(backend) = service.backends.get(*backend) else {
                    return;
                };
                let (service, backend) = (&service.name, &backend.name);
                let notice = match usable {
                    true => format!("service {service}: back end {backend} is used again"),
                    false => {
                        let cause = cause.what();
                        let why = errno.map(|errno| match errno {
                            net::TLS_FAILED => ": the TLS handshake failed".to_owned(),
                            errno => format!(": {}", std::io::Error::from_raw_os_error(errno)),
                        });
                        let why = why.unwrap_or_default();
                        format!(
                            "service {service}: back end {backend} is not used any more: \
                             {cause}{why}"
                        )
                    }
                };
                self.process.notices.push(notice);
            }
        }
    }

    fn traffic(
        &mut self,
        service: usize,
        backend: usize,
        client: SocketAddr,
        to_backend: bool,
        bytes: &[u8],
    ) {
        let log = self.services.get(service);
        let Some(file) = log.and_then(|logs| *logs.traffic.get(backend)?) else {
            return;
        };
        let name = &self.config.services[service].backends[backend].name;
        let time = unix_time();
        self.files[file].append(|out| lines::traffic(time, client, to_backend, name, bytes, out));
    }

    fn kind(&self, service: usize) -> Option<ServiceKind> {
        self.config.services.get(service).map(|one| one.kind)
    }

    fn log(&mut self, service: usize, backend: Option<usize>, line: &Line<'_>) {
        let (Some(logs), Some(model)) = (
            self.services.get(service),
            self.config.services.get(service),
        ) else {
            return;
        };
        let name = backend.and_then(|one| model.backends.get(one));
        let time = unix_time();
        if let Some(file) = logs.access {
            let name = name.map(|one| one.name.as_str());
            let form = model.access_log_form;
            let whose = (model.name.as_str(), name);
            self.files[file].append(|out| line.access(form, time.as_secs(), whose, out));
        }
        let throughput = backend.and_then(|one| *logs.throughput.get(one)?);
        if let Some(file) = throughput {
            self.files[file].append(|out| line.throughput(time, out));
        }
    }

    fn hook(
        &mut self,
        service: usize,
        backend: usize,
        client: Option<SocketAddr>,
        which: impl Fn(&Backend) -> &Option<Template>,
    ) {
        let (Some(runner), Some(model)) = (&mut self.runner, self.config.services.get(service))
        else {
            return;
        };
        let Some(one) = model.backends.get(backend) else {
            return;
        };
        let Some(template) = which(one) else { return };
        self.command.clear();
        let placeholders = Placeholders {
            // Probes have no client.
            client: client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |client| client.ip()),
            backend: &one.name,
            service: &model.name,
        };
        template.fill(&placeholders, &mut self.command);
        runner.run(service, &self.command, &self.process);
    }
}
