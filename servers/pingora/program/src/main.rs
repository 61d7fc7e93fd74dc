//! A reverse proxy on Pingora: `weigh-pingora FILE`, or with `--check` before the file only whether the
//! file is right. SIGHUP has it read the file again, except for what belongs to its threads and its port.

mod proxy;
mod settings;

use std::process::ExitCode;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora::apps::HttpServerOptions;
use pingora::listeners::tls::TlsSettings;
use pingora::proxy::http_proxy_service;
use pingora::server::configuration::ServerConf;
use pingora::server::{Server, ShutdownWatch};
use pingora::services::background::{BackgroundService, background_service};
use pingora::tls::{
    RootCertStore, WebPkiClientVerifier, install_default_crypto_provider, load_ca_file_into_store,
    load_certs_and_key_files,
};
use tokio::signal::unix::{SignalKind, signal};

use proxy::{Proxy, Routes};
use settings::{Settings, Tls};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--version"] => {
            println!("pingora {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        ["--check", file] => {
            Settings::read(file).and_then(|settings| server(file, settings).map(drop))
        }
        [file] => Settings::read(file)
            .and_then(|settings| server(file, settings))
            .map(|server| server.run_forever()),
        _ => Err("usage: weigh-pingora [--check] FILE".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("weigh-pingora: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Everything but the start of its threads.
fn server(file: &str, settings: Settings) -> Result<Server, String> {
    let conf = ServerConf {
        threads: settings.threads,
        upstream_keepalive_pool_size: settings.upstream.keepalive.max(1),
        ca_file: settings.upstream.authority.clone(),
        // It ends at once: clients that keep their connections are not waited for.
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let routes = Arc::new(ArcSwap::from_pointee(Routes::new(settings.clone())?));
    let proxy = Proxy::new(routes.clone());
    let mut service = http_proxy_service(&server.configuration, proxy);
    let mut options = HttpServerOptions::default();
    options.h2c = settings.http2 && settings.tls.is_none();
    options.keepalive_request_limit = Some(settings.keepalive_requests).filter(|&limit| limit > 0);
    if let Some(logic) = service.app_logic_mut() {
        logic.server_options = Some(options);
    }
    let address = settings.listen.to_string();
    match &settings.tls {
        Some(tls) => {
            service.add_tls_with_settings(&address, None, tls_settings(tls, settings.http2)?)
        }
        None => service.add_tcp(&address),
    }
    let file = file.to_owned();
    server.add_service(service);
    server.add_service(background_service("reloads", Reloads { file, routes }));
    Ok(server)
}

fn tls_settings(tls: &Tls, http2: bool) -> Result<TlsSettings, String> {
    install_default_crypto_provider();
    let certificate = load_certs_and_key_files(&tls.chain, &tls.key);
    let is_there = certificate.map_err(|why| why.to_string())?.is_some();
    if !is_there {
        return Err(format!(
            "no certificate and key in {} and {}",
            tls.chain, tls.key
        ));
    }
    let mut settings =
        TlsSettings::intermediate(&tls.chain, &tls.key).map_err(|why| why.to_string())?;
    if let Some(authority) = &tls.client_authority {
        let mut roots = RootCertStore::empty();
        load_ca_file_into_store(authority, &mut roots).map_err(|why| why.to_string())?;
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
        settings.set_client_cert_verifier(verifier.map_err(|why| why.to_string())?);
    }
    if http2 {
        settings.enable_h2();
    }
    Ok(settings)
}

/// Reads the file again at each SIGHUP.
struct Reloads {
    file: String,
    routes: Arc<ArcSwap<Routes>>,
}

#[async_trait]
impl BackgroundService for Reloads {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut hang_ups = match signal(SignalKind::hangup()) {
            Ok(hang_ups) => hang_ups,
            Err(why) => return eprintln!("weigh-pingora: SIGHUP: {why}"),
        };
        loop {
            tokio::select! {
                _ = shutdown.changed() => return,
                _ = hang_ups.recv() => {}
            }
            match Settings::read(&self.file).and_then(Routes::new) {
                Ok(routes) => self.routes.store(Arc::new(routes)),
                Err(why) => eprintln!("weigh-pingora: as it was, since {why}"),
            }
        }
    }
}
